// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The only program of an e500 guest, and its process 1: answers requests (PROTOCOL.md) from the file /requests,
 * from a serial line and from frames of an EtherType of its own.
 *
 * Run as another process it serves its standard input and output and leaves the machine as it is: for tests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

/* Local Experimental EtherType 1 (IEEE 802, clause 9.2.4). */
enum { ETHERTYPE = 0x88b5, LONGEST_LINE = 60000 };

static int line_in = STDIN_FILENO, line_out = STDOUT_FILENO, frames = -1;

static void do_ping(struct answer *answer, char *arguments)
{
	(void)arguments;
	text_printf(&answer->fields, ",\"now_ns\":%" PRIu64, now_ns());
}

static void do_wait(struct answer *answer, char *arguments)
{
	uint64_t until;
	struct timespec moment;

	if (!number(word(&arguments), UINT64_MAX, &until) || word(&arguments)) {
		refuse(answer, 0, "wait: expected NANOSECONDS since the boot");
		return;
	}
	moment.tv_sec = (time_t)(until / 1000000000u);
	moment.tv_nsec = (long)(until % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR)
		;
	do_ping(answer, arguments);
}

static void do_listen(struct answer *answer, char *arguments)
{
	const char *name = word(&arguments);
	struct sockaddr_ll where = { .sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE) };
	int fd;

	where.sll_ifindex = name ? (int)if_nametoindex(name) : 0;
	if (!where.sll_ifindex) {
		refuse(answer, ENODEV, "listen: interface %s", name ? name : "(none named)");
		return;
	}
	/* Protocol 0 until it is bound: not one frame of another interface. */
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
		refuse(answer, errno, "listen %s", name);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (frames >= 0)
		close(frames);
	frames = fd;
}

static void do_poweroff(struct answer *answer, char *arguments)
{
	(void)answer;
	(void)arguments;
	tcdrain(line_out);
	if (getpid() != 1)
		exit(0);
	sync();
	reboot(RB_POWER_OFF);
	refuse(answer, errno, "poweroff");
}

static const struct {
	const char *name;
	void (*act)(struct answer *answer, char *arguments);
} requests[] = {
	{ "ping", do_ping },	     { "read", do_read },	{ "write", do_write },
	{ "counters", do_counters }, { "cpu", do_cpu },		{ "ip", do_ip },
	{ "netlink", do_netlink },   { "listen", do_listen },	{ "udp_encap", do_udp_encap },
	{ "accel", do_accel },	     { "wait", do_wait },	{ "poweroff", do_poweroff },
	{ "run", do_run },	     { "put", do_put },		{ "coalesce", do_coalesce },
	{ "public_key", do_public_key },
#ifdef __x86_64__
	{ "rings", do_rings },	     { "symbols", do_symbols }, { "hear", do_hear },
	{ "power_cycle", do_power_cycle },
#endif
};

static void send_line(const struct text *line)
{
	for (size_t at = 0; at < line->length;) {
		ssize_t written = write(line_out, line->data + at, line->length - at);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			exit(1); /* the line is gone; as process 1 that is a panic, which ends the guest */
		at += (size_t)written;
	}
}

static void give_back(const char *id, const struct answer *answer)
{
	static struct text line;

	text_clear(&line);
	if (answer->refused) {
		text_printf(&line, "{\"id\":%s,\"ok\":false,\"error\":", id);
		text_json(&line, answer->error.data, answer->error.length);
		if (answer->error_number)
			text_printf(&line, ",\"errno\":%d}\n", answer->error_number);
		else
			text_printf(&line, ",\"errno\":null}\n");
	} else {
		text_printf(&line, "{\"id\":%s,\"ok\":true", id);
		text_bytes(&line, answer->fields.data, answer->fields.length);
		text_printf(&line, "}\n");
	}
	send_line(&line);
}

/* One request, `ID NAME ARGUMENTS…`, cut up in place. */
static void serve(char *line)
{
	static struct answer answer;
	uint64_t ignored;
	char *rest = line, *id, *name;

	text_clear(&answer.fields);
	text_clear(&answer.error);
	text_bytes(&answer.fields, "", 0);
	answer.refused = false;
	answer.error_number = 0;
	id = word(&rest);
	if (!id)
		return;
	name = word(&rest);
	if (!number(id, UINT32_MAX, &ignored) || !name) {
		refuse(&answer, 0, "expected ID NAME [ARGUMENT...], one space between words");
		give_back("null", &answer);
		return;
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (strcmp(requests[i].name, name))
			continue;
		requests[i].act(&answer, rest);
		give_back(id, &answer);
		return;
	}
	refuse(&answer, 0, "unknown request %s", name);
	give_back(id, &answer);
}

static void greet(void)
{
	struct answer answer = { 0 };
	struct utsname kernel;

	uname(&kernel);
	text_printf(&answer.fields, ",\"kernel\":\"%s\",\"machine\":\"%s\",\"pid\":%d", kernel.release, kernel.machine,
		    (int)getpid());
	do_ping(&answer, NULL);
	give_back("0", &answer);
	free(answer.fields.data);
}

static void serve_file(const char *path)
{
	struct text content = { 0 };
	char *line, *rest;

	if (!slurp(path, &content))
		return; /* there need be none */
	for (line = strtok_r(content.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		serve(line);
	memset(content.data, 0, content.length); /* it may have held keys */
	free(content.data);
	unlink(path);
}

static void serve_frame(void)
{
	char frame[2048];
	ssize_t length = recv(frames, frame, sizeof(frame) - 1, 0);
	char *end;

	if (length <= 0)
		return;
	frame[length] = '\0';
	end = strchr(frame, '\n');
	if (!end) /* a short request is padded: only the end of line says where it stops */
		return;
	*end = '\0';
	serve(frame);
}

/* What is there of the line; false when the other side has hung up. */
static bool serve_line(void)
{
	static char line[LONGEST_LINE + 1];
	static size_t held;
	static bool too_long;
	ssize_t length = read(line_in, line + held, LONGEST_LINE - held);
	char *start = line, *end;

	if (length < 0 && errno == EINTR)
		return true;
	if (length <= 0)
		return false;
	held += (size_t)length;
	while ((end = memchr(start, '\n', held))) {
		*end++ = '\0';
		if (!too_long)
			serve(start);
		too_long = false;
		held -= (size_t)(end - start);
		start = end;
	}
	memmove(line, start, held);
	if (held == LONGEST_LINE) { /* its rest is passed over; its id cannot be trusted to be one */
		struct answer answer = { 0 };

		refuse(&answer, 0, "expected a line of at most %d bytes", LONGEST_LINE - 1);
		give_back("null", &answer);
		free(answer.error.data);
		too_long = true;
		held = 0;
	}
	return true;
}

#ifndef __x86_64__
/*
 * GRO off. It sums every UDP packet to be forwarded, by the CPU: QEMU's eTSEC does not verify checksums as the real
 * one does. The kernels of the boards that this one stands for had no GRO.
 */
static void no_gro(void)
{
	struct ethtool_value off = { .cmd = ETHTOOL_SGRO };
	struct if_nameindex *interfaces = if_nameindex();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (struct if_nameindex *at = interfaces; at && at->if_index; at++) {
		struct ifreq asked = { .ifr_data = (void *)&off };

		snprintf(asked.ifr_name, sizeof(asked.ifr_name), "%s", at->if_name);
		if (strncmp(at->if_name, "eth", 3) == 0 && ioctl(fd, SIOCETHTOOL, &asked) < 0)
			printf("espbench: GRO of %s stays on: %s\n", at->if_name, strerror(errno));
	}
	fflush(stdout);
	if_freenameindex(interfaces);
	close(fd);
}
#endif

static void become_first(void)
{
	const char *name = getenv("control"); /* from the kernel's command line */
	struct termios raw;
	char path[64];
	int fd;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	if (!load_modules() || !run_first())
		exit(1);
	snprintf(path, sizeof(path), "/dev/%s", name ? name : "console");
	fd = open(path, O_RDWR | O_NOCTTY);
	if (fd < 0) {
		printf("espbench: cannot open %s: %s\n", path, strerror(errno));
		fflush(stdout);
		exit(1);
	}
	line_in = line_out = fd;
	prctl(PR_SET_TIMERSLACK, 1ul); /* wait: to the ns, not the usual 50 us later */
	if (tcgetattr(fd, &raw) == 0) {
		cfmakeraw(&raw);
		tcsetattr(fd, TCSANOW, &raw);
	}
#ifndef __x86_64__
	no_gro();
#endif
}

int main(void)
{
	if (getpid() == 1)
		become_first();
	greet();
	if (getpid() == 1)
		serve_file("/requests");
	for (;;) {
		struct pollfd sources[] = { { .fd = line_in, .events = POLLIN }, { .fd = frames, .events = POLLIN } };

		if (poll(sources, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (sources[1].revents)
			serve_frame();
		if (sources[0].revents && !serve_line())
			return 0;
	}
}
