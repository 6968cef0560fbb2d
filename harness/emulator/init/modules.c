// SPDX-License-Identifier: GPL-2.0-or-later
/* Prepares a guest before its first request: loads modules of its kernel, and runs a program of the user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

/*
 * Loads one module. ENODEV of an optional one is no failure: it drives instructions that this processor has not got; the
 * kernel has others for the same cipher.
 */
static bool load_module(const char *file, const char *parameters, bool optional)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || (syscall(SYS_finit_module, fd, parameters, 0) < 0 && !(optional && errno == ENODEV))) {
		printf("espbench: module %s: %s\n", file, strerror(errno));
		fflush(stdout);
		return false;
	}
	close(fd);
	unlink(path); /* its room in memory is the gateway's */
	return true;
}

bool load_modules(void)
{
	static struct text order;
	char *line, *rest;

	if (!slurp("/modules/order", &order))
		return true; /* there need be none */
	for (line = strtok_r(order.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *parameters = strchr(line, ' ');
		bool optional = *line == '?';

		if (parameters)
			*parameters++ = '\0';
		if (!load_module(line + optional, parameters ? parameters : "", optional))
			return false;
	}
	return true;
}

bool run_first(void)
{
	int status = 0;
	pid_t child;

	if (access("/first", F_OK) < 0)
		return true; /* there need be none */
	child = fork();
	if (child == 0) {
		execl("/first", "/first", (char *)NULL);
		printf("espbench: /first: %s\n", strerror(errno));
		fflush(stdout);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		printf("espbench: /first: %s\n", strerror(errno));
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return true;
	} else {
		printf("espbench: /first ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	fflush(stdout);
	return false;
}
