// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests on files: read, write, the interfaces' counters, the CPU's idle time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool slurp(const char *path, struct text *text)
{
	char chunk[4096];
	ssize_t length;
	int fd = open(path, O_RDONLY | O_CLOEXEC), failure;

	text_clear(text);
	text_bytes(text, "", 0);
	if (fd < 0)
		return false;
	while ((length = read(fd, chunk, sizeof(chunk))) > 0)
		text_bytes(text, chunk, (size_t)length);
	failure = errno;
	close(fd);
	errno = failure;
	return length == 0;
}

bool spill(const char *path, const char *data, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), failure;
	ssize_t written;

	if (fd < 0)
		return false;
	written = write(fd, data, length); /* a file of /proc or /sys takes a value whole or not */
	failure = written < 0 ? errno : EIO;
	close(fd);
	errno = failure;
	return written == (ssize_t)length;
}

void do_read(struct answer *answer, char *arguments)
{
	static struct text content;
	const char *path, *comma = "";

	text_printf(&answer->fields, ",\"texts\":{");
	while ((path = word(&arguments))) {
		bool found = slurp(path, &content);

		if (!found && errno != ENOENT && errno != ENOTDIR) {
			refuse(answer, errno, "cannot read %s", path);
			return;
		}
		text_bytes(&answer->fields, comma, strlen(comma));
		text_json(&answer->fields, path, strlen(path));
		text_bytes(&answer->fields, ":", 1);
		if (found)
			text_json(&answer->fields, content.data, content.length);
		else
			text_bytes(&answer->fields, "null", 4);
		comma = ",";
	}
	text_bytes(&answer->fields, "}", 1);
}

void do_write(struct answer *answer, char *arguments)
{
	const char *path = word(&arguments);

	if (!path || !*arguments)
		refuse(answer, 0, "write: expected PATH TEXT");
	else if (!spill(path, arguments, strlen(arguments)))
		refuse(answer, errno, "cannot write %s", path);
}

/* A file of several lines, in as many requests as it takes: each says how many bytes went before. */
void do_put(struct answer *answer, char *arguments)
{
	const char *path = word(&arguments);
	uint64_t before;
	char *digits = NULL;
	size_t length = 0;
	ssize_t written;
	int fd;

	if (!path || !number(word(&arguments), UINT32_MAX, &before) ||
	    ((digits = word(&arguments)) && !from_hex(digits, &length))) {
		refuse(answer, 0, "put: expected PATH BYTES HEX");
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (before ? O_APPEND : O_TRUNC), 0600);
	if (fd < 0) {
		refuse(answer, errno, "put %s", path);
		return;
	}
	written = write(fd, digits ? digits : "", length);
	if (written != (ssize_t)length)
		refuse(answer, written < 0 ? errno : ENOSPC, "put %s", path);
	close(fd);
}

void do_counters(struct answer *answer, char *arguments)
{
	static struct text content;
	char *line, *rest;
	const char *comma = "";

	if (word(&arguments)) {
		refuse(answer, 0, "counters: expected no argument");
		return;
	}
	if (!slurp("/proc/net/dev", &content)) {
		refuse(answer, errno, "cannot read /proc/net/dev");
		return;
	}
	text_printf(&answer->fields, ",\"links\":{");
	for (line = strtok_r(content.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		uint64_t in[4], out[4]; /* bytes, packets, errors, dropped */
		char name[32];

		/* The two lines of titles hold no numbers. */
		if (sscanf(line, " %31[^:]: %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   name, &in[0], &in[1], &in[2], &in[3], &out[0], &out[1], &out[2], &out[3]) != 9)
			continue;
		text_printf(&answer->fields,
			    "%s\"%s\":{\"rx_packets\":%" PRIu64 ",\"rx_errors\":%" PRIu64 ",\"rx_dropped\":%" PRIu64
			    ",\"tx_packets\":%" PRIu64 ",\"tx_errors\":%" PRIu64 ",\"tx_dropped\":%" PRIu64 "}",
			    comma, name, in[1], in[2], in[3], out[1], out[2], out[3]);
		comma = ",";
	}
	text_bytes(&answer->fields, "}", 1);
}

/* The board itself knows (kernel/idle.c, or ports of a PC). False if it does not. */
static bool idle_of_board(uint64_t *now, uint64_t *idle)
{
	static struct text content;

#ifdef __x86_64__
	if (idle_of_ports(now, idle))
		return true;
#endif

	return slurp("/proc/espbench_idle", &content) &&
	       sscanf(content.data, "now_ns=%" SCNu64 "\nidle_ns=%" SCNu64, now, idle) == 2;
}

/*
 * /proc/stat counts idle time in 10 ms. The kernel itself keeps it in ns, from when the idle loop is entered
 * or an interrupt leaves it to when one comes, and shows that, with the time of the reading, in timer_list.
 */
static bool idle_of_kernel(struct answer *answer, uint64_t *now, uint64_t *total)
{
	static const char *const idle[] = { ".idle_sleeptime", ".iowait_sleeptime" };
	static struct text content;
	uint64_t spent;
	const char *at;

	*total = 0;
	if (!slurp("/proc/timer_list", &content)) {
		refuse(answer, errno, "cannot read /proc/timer_list");
		return false;
	}
	at = strstr(content.data, "now at ");
	if (!at || sscanf(at, "now at %" SCNu64, now) != 1) {
		refuse(answer, 0, "/proc/timer_list: expected `now at`, got none");
		return false;
	}
	for (size_t i = 0; i < 2; i++) {
		at = strstr(content.data, idle[i]);
		if (!at || sscanf(at + strlen(idle[i]), " : %" SCNu64, &spent) != 1) {
			refuse(answer, 0, "/proc/timer_list: expected `%s`, got none", idle[i]);
			return false;
		}
		for (; at; at = strstr(at + 1, idle[i]))
			if (sscanf(at + strlen(idle[i]), " : %" SCNu64, &spent) == 1)
				*total += spent;
	}
	return true;
}

void do_cpu(struct answer *answer, char *arguments)
{
	uint64_t now, idle;
	bool exact;

	if (word(&arguments)) {
		refuse(answer, 0, "cpu: expected no argument");
		return;
	}
	exact = idle_of_board(&now, &idle);
	if (exact || idle_of_kernel(answer, &now, &idle))
		text_printf(&answer->fields, ",\"now_ns\":%" PRIu64 ",\"idle_ns\":%" PRIu64 ",\"exact\":%s", now, idle,
			    exact ? "true" : "false");
}
