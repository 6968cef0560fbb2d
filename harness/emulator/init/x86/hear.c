// SPDX-License-Identifier: GPL-2.0-or-later
/* The ESP packets that an interface receives, as an attacker on its link would hear them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../guest.h"

enum { LONGEST_PACKET = 2048, MOST_PACKETS = 256, AT_PROTOCOL = 9, AT_NEXT_HEADER = 6 };

/* Whole IP packets without options and extension headers, as gateways send ESP. */
static bool is_esp(const unsigned char *packet, ssize_t length)
{
	if (length < 20)
		return false;
	return packet[packet[0] >> 4 == 4 ? AT_PROTOCOL : AT_NEXT_HEADER] == IPPROTO_ESP;
}

static bool comes_before(int fd, uint64_t until_ns)
{
	struct pollfd source = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ns(), left = now < until_ns ? until_ns - now : 0;
	struct timespec wait = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };

	return left && ppoll(&source, 1, &wait, NULL) > 0;
}

void do_hear(struct answer *answer, char *arguments)
{
	static unsigned char packet[LONGEST_PACKET];
	const char *name = word(&arguments), *how_many = word(&arguments), *how_long = word(&arguments);
	struct sockaddr_ll where = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) }, from;
	uint64_t wanted, within_ns, until_ns;
	const char *comma = "";
	int fd;

	if (!name || !number(how_many, MOST_PACKETS, &wanted) || !number(how_long, UINT64_MAX / 2, &within_ns) ||
	    word(&arguments)) {
		refuse(answer, 0, "hear: expected NAME COUNT NANOSECONDS, at most %d packets", MOST_PACKETS);
		return;
	}
	where.sll_ifindex = (int)if_nametoindex(name);
	/* Protocol 0 until it is bound: not one packet of another interface. */
	fd = where.sll_ifindex ? socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
		refuse(answer, errno, "hear: interface %s", name);
		if (fd >= 0)
			close(fd);
		return;
	}
	text_printf(&answer->fields, ",\"packets\":[");
	until_ns = now_ns() + within_ns;
	while (wanted && comes_before(fd, until_ns)) {
		socklen_t size = sizeof(from);
		ssize_t length = recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size);

		if (length < 0 || from.sll_pkttype != PACKET_HOST || !is_esp(packet, length))
			continue;
		text_printf(&answer->fields, "%s\"", comma);
		text_hex(&answer->fields, packet, (size_t)length);
		text_bytes(&answer->fields, "\"", 1);
		comma = ",";
		wanted--;
	}
	text_bytes(&answer->fields, "]", 1);
	close(fd);
}
