// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Netlink: messages relayed as they come, and one asked for by this program itself. The meaning of the request
 * is that of espbench's agent: REQUEST and ACK are set, an interrupted dump is asked for again.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "guest.h"

enum { DUMP_ATTEMPTS = 5 };

int netlink_open(struct answer *answer, int protocol)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	struct timeval patience = { .tv_sec = 10 };
	int one = 1, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0) {
		refuse(answer, errno, "netlink protocol %d", protocol);
		return -1;
	}
	/* The ACK then does not carry the request, which may hold keys. */
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
		refuse(answer, errno, "netlink protocol %d", protocol);
		close(fd);
		return -1;
	}
	return fd;
}

/* A negative ACK in words: errno, and the kernel's own remark where it made one. */
static void explain(struct answer *answer, const char *what, const struct nlmsghdr *reply)
{
	const struct nlmsgerr *error = NLMSG_DATA(reply);
	size_t offset = NLMSG_LENGTH(sizeof(*error));
	const char *remark = NULL;
	size_t length = 0;

	if (!(reply->nlmsg_flags & NLM_F_CAPPED))
		offset += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(error->msg);
	while ((reply->nlmsg_flags & NLM_F_ACK_TLVS) && offset + sizeof(struct nlattr) <= reply->nlmsg_len) {
		const struct nlattr *attribute = (const void *)((const char *)reply + offset);

		if (attribute->nla_len < NLA_HDRLEN || offset + attribute->nla_len > reply->nlmsg_len)
			break;
		if (attribute->nla_type == NLMSGERR_ATTR_MSG) {
			remark = (const char *)attribute + NLA_HDRLEN;
			length = strnlen(remark, attribute->nla_len - NLA_HDRLEN);
		}
		offset += NLA_ALIGN(attribute->nla_len);
	}
	refuse(answer, -error->error, "%s%s%.*s", what, remark ? ": " : "", (int)length, remark ? remark : "");
}

static enum outcome collect(struct answer *answer, int fd, const char *what, uint32_t sequence,
			    netlink_reply *on_reply, void *context)
{
	static char buffer[NETLINK_ROOM] __attribute__((aligned(8)));
	bool interrupted = false;

	for (;;) {
		ssize_t length = recv(fd, buffer, sizeof(buffer), MSG_TRUNC);
		const struct nlmsghdr *reply = (const void *)buffer;
		size_t left;

		if (length < 0) {
			refuse(answer, errno, "the kernel did not answer %s", what);
			return REFUSED;
		}
		if ((size_t)length > sizeof(buffer)) {
			refuse(answer, EMSGSIZE, "the kernel's answer to %s", what);
			return REFUSED;
		}
		for (left = (size_t)length; NLMSG_OK(reply, left); reply = NLMSG_NEXT(reply, left)) {
			if (reply->nlmsg_seq != sequence)
				continue;
			interrupted |= !!(reply->nlmsg_flags & NLM_F_DUMP_INTR);
			if (reply->nlmsg_type != NLMSG_ERROR && reply->nlmsg_type != NLMSG_DONE) {
				if (on_reply)
					on_reply(context, reply);
				continue;
			}
			if (reply->nlmsg_len >= NLMSG_LENGTH(sizeof(int)) && *(const int *)NLMSG_DATA(reply) < 0) {
				explain(answer, what, reply);
				return REFUSED;
			}
			return interrupted ? INTERRUPTED : DONE;
		}
	}
}

enum outcome netlink_ask(struct answer *answer, int fd, const char *what, struct nlmsghdr *message,
			 netlink_reply *on_reply, void *context)
{
	static uint32_t sequence;

	message->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	message->nlmsg_pid = 0;
	message->nlmsg_seq = ++sequence;
	if (send(fd, message, message->nlmsg_len, 0) < 0) {
		refuse(answer, errno, "%s", what);
		return REFUSED;
	}
	return collect(answer, fd, what, sequence, on_reply, context);
}

static void add_reply(void *context, const struct nlmsghdr *reply)
{
	struct text *replies = context;

	text_printf(replies, "%s\"", replies->data[replies->length - 1] == '[' ? "" : ",");
	text_hex(replies, reply, reply->nlmsg_len);
	text_bytes(replies, "\"", 1);
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* The bytes of a message; 0 if that is no hex or no netlink message of its own length. */
static size_t unhex(const char *text, void *bytes, size_t room)
{
	size_t length = strlen(text) / 2;
	unsigned char *at = bytes;

	if (strlen(text) % 2 || length > room || length < NLMSG_HDRLEN)
		return 0;
	for (size_t i = 0; i < length; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return 0;
		at[i] = (unsigned char)(high << 4 | low);
	}
	return ((struct nlmsghdr *)bytes)->nlmsg_len == length ? length : 0;
}

/* Send a message until its dump is not interrupted by a change. */
static bool relay(struct answer *answer, int fd, const char *what, struct nlmsghdr *message)
{
	size_t before = answer->fields.length;

	for (int attempt = 0; attempt < DUMP_ATTEMPTS; attempt++) {
		answer->fields.length = before;
		switch (netlink_ask(answer, fd, what, message, add_reply, &answer->fields)) {
		case DONE:
			return true;
		case REFUSED:
			return false;
		case INTERRUPTED:
			break;
		}
	}
	refuse(answer, 0, "%s: the kernel's tables changed during every attempt to dump them", what);
	return false;
}

void do_netlink(struct answer *answer, char *arguments)
{
	static char message[NETLINK_ROOM] __attribute__((aligned(8)));
	const char *first = word(&arguments), *hex, *comma = "";
	uint64_t protocol;
	char what[32];
	int fd;

	if (!number(first, 31, &protocol)) {
		refuse(answer, 0, "netlink: expected PROTOCOL HEX...");
		return;
	}
	fd = netlink_open(answer, (int)protocol);
	if (fd < 0)
		return;
	text_printf(&answer->fields, ",\"replies\":[");
	for (int count = 1; (hex = word(&arguments)); count++) {
		snprintf(what, sizeof(what), "message %d", count);
		if (!unhex(hex, message, sizeof(message))) {
			refuse(answer, 0, "%s: expected a netlink message in hex, of the length it says", what);
			break;
		}
		text_printf(&answer->fields, "%s[", comma);
		if (!relay(answer, fd, what, (void *)message))
			break;
		text_bytes(&answer->fields, "]", 1);
		comma = ",";
	}
	text_bytes(&answer->fields, "]", 1);
	memset(message, 0, sizeof(message)); /* it may have held keys */
	close(fd);
}

/* The kernel takes ESP out of UDP (RFC 3948) only on sockets that ask for it; this one stays open. */
void do_udp_encap(struct answer *answer, char *arguments)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int kind = UDP_ENCAP_ESPINUDP, one = 1;
	uint64_t port;

	if (!number(word(&arguments), 65535, &port)) {
		refuse(answer, 0, "udp_encap: expected PORT");
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
		struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
		bool is_six = families[i] == AF_INET6;
		int fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && is_six)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		if (fd < 0 || bind(fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof(six) : sizeof(four)) < 0 ||
		    setsockopt(fd, IPPROTO_UDP, UDP_ENCAP, &kind, sizeof(kind)) < 0) {
			refuse(answer, errno, "ESP in UDP over IPv%d, port %d", is_six ? 6 : 4, (int)port);
			if (fd >= 0)
				close(fd);
			return;
		}
	}
}
