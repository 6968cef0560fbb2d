// SPDX-License-Identifier: GPL-2.0-or-later
/* The machine's power switch: off and on again, from one instruction to the next. */
#include <errno.h>
#include <sys/io.h>
#include <unistd.h>

#include "../guest.h"

/* qemu/x86/power_port.c: "OFF!" is what is read there, and what switches off. */
enum { PORT = 0x5f4, OFF = 0x2146464f };

void do_power_cycle(struct answer *answer, char *arguments)
{
	(void)arguments;
	if (getpid() != 1 || iopl(3) < 0 || inl(PORT) != OFF) {
		refuse(answer, ENODEV, "power_cycle: no power switch");
		return;
	}
	outl(OFF, PORT);
	for (;;) /* the machine is off before this */
		pause();
}
