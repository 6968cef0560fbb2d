// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver-level accelerator test and the public-key test: asks the kernel's part (kernel/accel.c, public_key.c) and
 * passes its figures on.
 */
#include <errno.h>
#include <string.h>

#include "guest.h"

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

static void ask(const char *name, const char *path, struct answer *answer, char *arguments)
{
	static struct text figures;
	char *end;

	if (!spill(path, arguments, strlen(arguments))) {
		refuse(answer, errno, "%s %s", name, arguments);
		return;
	}
	if (!slurp(path, &figures)) {
		refuse(answer, errno, "cannot read %s", path);
		return;
	}
	end = strchr(figures.data, '\n');
	if (end)
		*end = '\0';
	add_figures(&answer->fields, figures.data);
}

void do_accel(struct answer *answer, char *arguments)
{
	ask("accel", "/proc/espbench_accel", answer, arguments);
}

void do_public_key(struct answer *answer, char *arguments)
{
	ask("public_key", "/proc/espbench_public_key", answer, arguments);
}
