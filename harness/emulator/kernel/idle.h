/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ESPBENCH_IDLE_H
#define ESPBENCH_IDLE_H

#include <linux/types.h>

/* For how long the CPU has stood still since the boot, ns, to the instruction; 0 on a board that cannot tell. */
u64 espbench_idle_ns(void);

#endif
