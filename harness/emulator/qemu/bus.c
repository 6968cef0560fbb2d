/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one count of what devices move; every device of the board adds to it. */
#include "qemu/osdep.h"
#include "bus.h"

struct espbench_bus espbench_bus;
