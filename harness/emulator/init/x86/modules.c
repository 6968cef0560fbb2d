// SPDX-License-Identifier: GPL-2.0-or-later
/* Modules of the kernel, where it has any: those that the file /modules/order names, before anything else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

bool load_modules(void)
{
	static struct text order;
	char *line, *rest;

	if (!slurp("/modules/order", &order))
		return true; /* there need be none */
	for (line = strtok_r(order.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char path[256], *parameters = strchr(line, ' ');
		int fd;

		if (parameters)
			*parameters++ = '\0';
		snprintf(path, sizeof(path), "/modules/%s", line);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		/* ENODEV: it drives instructions that this processor has not got; the kernel has others for the same cipher. */
		if (fd < 0 || (syscall(SYS_finit_module, fd, parameters ? parameters : "", 0) < 0 && errno != ENODEV)) {
			printf("espbench: module %s: %s\n", line, strerror(errno));
			fflush(stdout);
			return false;
		}
		close(fd);
		unlink(path); /* its room in memory is the gateway's */
	}
	return true;
}
