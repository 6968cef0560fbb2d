# SPDX-License-Identifier: Apache-2.0
"""What the emulated PowerQUICC gateways consist of, built from Debian's sources: kernel, initramfs, QEMU."""
