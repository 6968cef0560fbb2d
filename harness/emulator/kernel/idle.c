// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /proc/espbench_idle: how long the CPU has stood still, as the board itself knows it (espbench; qemu/idle.c).
 *
 * The kernel's own idle time is no measure under load: an interrupt that comes during a softirq of the idle task
 * starts the idle clock on its way out, and the rest of the softirq counts as idle; so do the ways into and out of
 * the idle loop.
 */
#include <linux/init.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <sysdev/fsl_soc.h>

#include "idle.h"

enum { OFFSET = 0xc0000, LENGTH = 0x1000, LOW = 4, MAGIC_AT = 8, MAGIC = 0x49444c45 };

static void __iomem *registers;

u64 espbench_idle_ns(void)
{
	u64 high;

	if (!registers)
		return 0;
	high = in_be32(registers); /* takes the low word along */
	return high << 32 | in_be32(registers + LOW);
}

static int show(struct seq_file *file, void *unused)
{
	u64 idle = espbench_idle_ns();

	seq_printf(file, "now_ns=%llu\nidle_ns=%llu\n", ktime_get_ns(), idle);
	return 0;
}

static int __init idle_init(void)
{
	registers = ioremap(get_immrbase() + OFFSET, LENGTH);
	if (registers && in_be32(registers + MAGIC_AT) != MAGIC) {
		iounmap(registers);
		registers = NULL;
	}
	return !registers || proc_create_single("espbench_idle", 0444, NULL, show) ? 0 : -ENOMEM;
}
device_initcall(idle_init);
