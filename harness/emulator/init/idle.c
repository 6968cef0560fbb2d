// SPDX-License-Identifier: GPL-2.0-or-later
/* How long the CPU has stood still, as the board itself knows it: a file of our kernel's, or ports of a PC. */
#include <inttypes.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <sys/io.h>
#endif

#include "guest.h"

#if defined(__x86_64__)
/* qemu/x86/idle_port.c: "IDLE", then the idle time and the clock, ns, low word first; the first read takes all along. */
enum { PORT = 0x5e0, MAGIC = 0x454c4449 };

static bool idle_of_ports(uint64_t *now, uint64_t *idle)
{
	if (iopl(3) < 0 || inl(PORT) != MAGIC)
		return false;
	*idle = inl(PORT + 4);
	*idle |= (uint64_t)inl(PORT + 8) << 32;
	*now = inl(PORT + 12);
	*now |= (uint64_t)inl(PORT + 16) << 32;
	return true;
}
#else
static bool idle_of_ports(uint64_t *now, uint64_t *idle)
{
	(void)now;
	(void)idle;
	return false;
}
#endif

bool idle_of_board(uint64_t *now, uint64_t *idle)
{
	static struct text content;

	return (slurp("/proc/espbench_idle", &content) &&
		sscanf(content.data, "now_ns=%" SCNu64 "\nidle_ns=%" SCNu64, now, idle) == 2) ||
	       idle_of_ports(now, idle);
}
