// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own table of its functions and those of its modules, to whoever profiles it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#include "../guest.h"

/* qemu/profile.c takes words of 4 bytes there, of which 0 is the last. */
enum { PORT = 0x5f8 };

void do_symbols(struct answer *answer, char *arguments)
{
	static char line[1024];
	static struct text functions;
	uint64_t told = 0;
	FILE *table;

	(void)arguments;
	if (getpid() != 1 || iopl(3) < 0) {
		refuse(answer, errno, "symbols: no I/O ports");
		return;
	}
	/* Whoever may not see addresses is told zeros. */
	spill("/proc/sys/kernel/kptr_restrict", "0", 1);
	table = fopen("/proc/kallsyms", "re");
	if (!table) {
		refuse(answer, errno, "symbols: /proc/kallsyms");
		return;
	}
	text_clear(&functions);
	while (fgets(line, sizeof(line), table)) {
		const char *type = strchr(line, ' ');

		if (!type || !strchr("tw", tolower((unsigned char)type[1])))
			continue;
		text_bytes(&functions, line, strlen(line));
		told++;
	}
	fclose(table);
	text_bytes(&functions, "\n\n\n", 3); /* whole words */
	outsl(PORT, functions.data, functions.length / 4);
	outl(0, PORT);
	text_printf(&answer->fields, ",\"functions\":%" PRIu64, told);
}
