// SPDX-License-Identifier: GPL-2.0-or-later
/* The driver-level accelerator test: asks the kernel's part of it (kernel/accel.c) and passes its figures on. */
#include <errno.h>
#include <string.h>

#include "guest.h"

static const char PATH[] = "/proc/espbench_accel";

/* The kernel answers `name=value` words: numbers, and names of drivers, which need no quoting. */
static void add_figures(struct text *fields, char *figures)
{
	uint64_t ignored;
	char *pair;

	while ((pair = word(&figures))) {
		char *value = strchr(pair, '=');

		if (!value)
			continue;
		*value++ = '\0';
		text_printf(fields, number(value, UINT64_MAX, &ignored) ? ",\"%s\":%s" : ",\"%s\":\"%s\"", pair, value);
	}
}

void do_accel(struct answer *answer, char *arguments)
{
	static struct text figures;
	char *end;

	if (!spill(PATH, arguments, strlen(arguments))) {
		refuse(answer, errno, "accel %s", arguments);
		return;
	}
	if (!slurp(PATH, &figures)) {
		refuse(answer, errno, "cannot read %s", PATH);
		return;
	}
	end = strchr(figures.data, '\n');
	if (end)
		*end = '\0';
	add_figures(&answer->fields, figures.data);
}
