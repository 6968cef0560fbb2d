/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the guest's only program share; PROTOCOL.md describes its requests and answers. */
#ifndef ESPBENCH_GUEST_H
#define ESPBENCH_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;

/* A text that grows; there is one answer at a time, so a failed allocation ends the program. */
struct text {
	char *data;
	size_t length, room;
};

void text_clear(struct text *text);
void text_bytes(struct text *text, const void *data, size_t length);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_json(struct text *text, const char *data, size_t length); /* a JSON string, quotes included */
/* The bytes of a text of hex, in its place, with a zero behind them; false if it is none. */
bool from_hex(char *text, size_t *length);
void text_hex(struct text *text, const void *data, size_t length);

/* Where the fields of an answer go; a request that fails calls refuse() and returns. */
struct answer {
	struct text fields;
	struct text error;
	int error_number;
	bool refused;
};

void refuse(struct answer *answer, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Requests: `arguments` is the rest of the line, to be cut into words in place. */
void do_read(struct answer *answer, char *arguments);
void do_write(struct answer *answer, char *arguments);
void do_put(struct answer *answer, char *arguments);
void do_counters(struct answer *answer, char *arguments);
void do_cpu(struct answer *answer, char *arguments);
void do_netlink(struct answer *answer, char *arguments);
void do_ip(struct answer *answer, char *arguments);
void do_udp_encap(struct answer *answer, char *arguments);
void do_accel(struct answer *answer, char *arguments);
void do_public_key(struct answer *answer, char *arguments);
void do_coalesce(struct answer *answer, char *arguments);
void do_run(struct answer *answer, char *arguments);
/* Of programs that `run` left running, those that have ended meanwhile. */
void bury_the_dead(void);

/* The next word of a line, NULL at its end. */
char *word(char **line);
/* A decimal number that is the whole of `text`; false if it is none or above `most`. */
bool number(const char *text, uint64_t most, uint64_t *value);
/* A file's content; false (errno says why) if it cannot be read. */
bool slurp(const char *path, struct text *text);
bool spill(const char *path, const char *data, size_t length);
uint64_t now_ns(void);

/* modules.c: false with the reason on the console if a module of the kernel cannot be loaded, */
bool load_modules(void);
/* or if the program /first fails. */
bool run_first(void);

#ifdef __x86_64__
/* x86/: the board's clock and how long it has been idle, ns, false if it cannot tell; */
bool idle_of_ports(uint64_t *now, uint64_t *idle);
/* how many frames the rings of an interface hold; */
void do_rings(struct answer *answer, char *arguments);
/* the kernel's functions and their addresses; */
void do_symbols(struct answer *answer, char *arguments);
/* ESP packets that an interface receives just now; */
void do_hear(struct answer *answer, char *arguments);
/* the machine's power, off and on. */
void do_power_cycle(struct answer *answer, char *arguments);
#endif

/* netlink.c */
enum { NETLINK_ROOM = 65536 };
typedef void netlink_reply(void *context, const struct nlmsghdr *reply);
int netlink_open(struct answer *answer, int protocol);
/* INTERRUPTED: a dump during which the table changed; not refused, the caller may ask again. */
enum outcome { DONE, INTERRUPTED, REFUSED };
enum outcome netlink_ask(struct answer *answer, int fd, const char *what, struct nlmsghdr *message,
			 netlink_reply *on_reply, void *context);

#endif
