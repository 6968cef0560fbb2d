# SPDX-License-Identifier: GPL-2.0-or-later
# The guest kernel: what is not here is off (allnoconfig). A router with IPsec on an e500v2, nothing else.

# The processor and QEMU's ppce500 board.
CONFIG_PPC_85xx=y
CONFIG_PPC_E500=y
CONFIG_FSL_SOC_BOOKE=y
CONFIG_PPC_QEMU_E500=y
CONFIG_SPE=y
CONFIG_PCI=y
# The board's registers (CCSR) are above 4 GiB.
CONFIG_PHYS_64BIT=y
# The cross compiler's C library is made for a floating point unit, which an e500 lacks.
CONFIG_MATH_EMULATION=y
# Switching off goes through a GPIO.
CONFIG_GPIOLIB=y
CONFIG_GPIO_MPC8XXX=y
CONFIG_POWER_RESET=y
CONFIG_POWER_RESET_GPIO=y

# Time: no tick while idle, so that idle time is what it is to the nanosecond (init/PROTOCOL.md).
CONFIG_HZ_100=y
CONFIG_NO_HZ_IDLE=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_PREEMPT_NONE=y

# What the one program needs.
CONFIG_EXPERT=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_RD_GZIP=y
CONFIG_BINFMT_ELF=y
CONFIG_PRINTK=y
CONFIG_BUG=y
CONFIG_KALLSYMS=y
# Switches that are never thrown cost the path nothing.
CONFIG_JUMP_LABEL=y
CONFIG_FUTEX=y
CONFIG_POSIX_TIMERS=y
CONFIG_MULTIUSER=y
CONFIG_PROC_FS=y
CONFIG_PROC_SYSCTL=y
CONFIG_SYSFS=y
CONFIG_DEVTMPFS=y
# A 32-bit C library's clock_nanosleep() and futexes.
CONFIG_COMPAT_32BIT_TIME=y
CONFIG_TTY=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_SERIAL_OF_PLATFORM=y

# The router.
CONFIG_NET=y
CONFIG_PACKET=y
CONFIG_UNIX=y
CONFIG_INET=y
CONFIG_IP_ADVANCED_ROUTER=y
CONFIG_IPV6=y
CONFIG_NETDEVICES=y
CONFIG_NET_CORE=y
CONFIG_ETHERNET=y
CONFIG_NET_VENDOR_FREESCALE=y
CONFIG_GIANFAR=y
CONFIG_PHYLIB=y
CONFIG_FIXED_PHY=y

# IPsec.
CONFIG_XFRM=y
CONFIG_XFRM_USER=y
CONFIG_XFRM_STATISTICS=y
CONFIG_INET_ESP=y
CONFIG_INET6_ESP=y

# Ciphers in software. CRYPTO_USER lets a request of netlink change which of two drivers is preferred.
CONFIG_CRYPTO=y
CONFIG_CRYPTO_USER=y
CONFIG_CRYPTO_AUTHENC=y
CONFIG_CRYPTO_CBC=y
CONFIG_CRYPTO_ECB=y
CONFIG_CRYPTO_CTR=y
CONFIG_CRYPTO_DES=y
CONFIG_CRYPTO_AES=y
CONFIG_CRYPTO_SHA1=y
CONFIG_CRYPTO_SHA256=y
CONFIG_CRYPTO_SHA512=y
CONFIG_CRYPTO_MD5=y
CONFIG_CRYPTO_HMAC=y
CONFIG_CRYPTO_GCM=y
CONFIG_CRYPTO_NULL=y
CONFIG_CRYPTO_ECHAINIV=y
CONFIG_CRYPTO_SEQIV=y

# Public keys in software, beside those of the SEC's PKEU (kernel/public_key.c).
CONFIG_CRYPTO_RSA=y
CONFIG_CRYPTO_ECDH=y
CONFIG_CRYPTO_ECDSA=y

# Tests of every algorithm as it registers, the fuzzing ones too; cryptomgr.notests=1 leaves them out at boot.
CONFIG_DEBUG_KERNEL=y
CONFIG_CRYPTO_MANAGER=y
CONFIG_CRYPTO_MANAGER_DISABLE_TESTS=n
CONFIG_CRYPTO_MANAGER_EXTRA_TESTS=y

# The SEC. SEC 1 (TALITOS1) cannot be had on an 85xx.
CONFIG_CRYPTO_HW=y
CONFIG_CRYPTO_DEV_TALITOS=y
CONFIG_CRYPTO_DEV_TALITOS2=y
CONFIG_HW_RANDOM=y

# What a daemon needs that is laid over the guest's root; and how many instructions of its the kernel stood in for
# (/sys/kernel/debug/powerpc/emulated_instructions).
CONFIG_EPOLL=y
CONFIG_EVENTFD=y
CONFIG_SIGNALFD=y
CONFIG_TIMERFD=y
CONFIG_FILE_LOCKING=y
CONFIG_DEBUG_FS=y
CONFIG_PPC_EMULATED_STATS=y
