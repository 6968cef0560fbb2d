// SPDX-License-Identifier: GPL-2.0-or-later
/* The lines of `ip -batch` that espbench configures a gateway with, done by rtnetlink; there is no ip(8) here. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

struct message {
	struct nlmsghdr header;
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct ndmsg neighbour;
		struct rtmsg route;
		char room[512];
	} body;
};

struct address {
	int family;
	size_t length; /* bytes */
	unsigned prefix; /* bits */
	unsigned char bytes[16];
};

static void begin(struct message *message, unsigned kind, unsigned flags, size_t body)
{
	memset(message, 0, sizeof(*message));
	message->header.nlmsg_type = (uint16_t)kind;
	message->header.nlmsg_flags = (uint16_t)flags;
	message->header.nlmsg_len = NLMSG_LENGTH(body);
}

/* An attribute; returns it so that others can be nested in it (nest_end). */
static struct rtattr *attribute(struct message *message, unsigned kind, const void *value, size_t length)
{
	struct rtattr *at = (void *)((char *)message + NLMSG_ALIGN(message->header.nlmsg_len));

	at->rta_type = (uint16_t)kind;
	at->rta_len = (uint16_t)RTA_LENGTH(length);
	if (length)
		memcpy(RTA_DATA(at), value, length);
	message->header.nlmsg_len = NLMSG_ALIGN(message->header.nlmsg_len) + RTA_ALIGN(at->rta_len);
	return at;
}

static void nest_end(struct message *message, struct rtattr *at)
{
	at->rta_len = (uint16_t)((char *)message + message->header.nlmsg_len - (char *)at);
}

static bool is(const char *text, const char *expected)
{
	return text && !strcmp(text, expected);
}

static bool parse_address(const char *text, struct address *found)
{
	char copy[INET6_ADDRSTRLEN + 4];
	char *slash;
	uint64_t prefix;

	if (!text || strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	if (slash)
		*slash++ = '\0';
	found->family = strchr(copy, ':') ? AF_INET6 : AF_INET;
	found->length = found->family == AF_INET ? 4 : 16;
	prefix = 8 * found->length;
	if (slash && !number(slash, prefix, &prefix))
		return false;
	found->prefix = (unsigned)prefix;
	return inet_pton(found->family, copy, found->bytes) == 1;
}

static bool parse_mac(const char *text, unsigned char mac[6])
{
	char end;

	return text && sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1], &mac[2], &mac[3],
			      &mac[4], &mac[5], &end) == 6;
}

static bool interface(struct answer *answer, const char *name, int *index)
{
	*index = name ? (int)if_nametoindex(name) : 0;
	if (!*index)
		refuse(answer, ENODEV, "interface %s", name ? name : "(none named)");
	return *index;
}

static void link_flag(struct ifinfomsg *link, unsigned flag, bool on)
{
	link->ifi_change |= flag;
	link->ifi_flags = on ? link->ifi_flags | flag : link->ifi_flags & ~flag;
}

/* link set [dev] NAME [up|down] [address MAC] [mtu N] [arp on|off] [multicast on|off] [addrgenmode none] */
static bool link_set(struct answer *answer, char *line, struct message *message)
{
	struct ifinfomsg *link = &message->body.link;
	const char *key = word(&line);

	if (is(key, "dev"))
		key = word(&line);
	begin(message, RTM_NEWLINK, 0, sizeof(*link));
	if (!interface(answer, key, &link->ifi_index))
		return false;
	while ((key = word(&line))) {
		if (is(key, "up") || is(key, "down")) {
			link_flag(link, IFF_UP, is(key, "up"));
			continue;
		}
		const char *value = word(&line);
		bool on = is(value, "on"), either = on || is(value, "off");

		if (is(key, "address")) {
			unsigned char mac[6];

			if (!parse_mac(value, mac))
				return false;
			attribute(message, IFLA_ADDRESS, mac, sizeof(mac));
		} else if (is(key, "mtu")) {
			uint64_t bytes;
			uint32_t mtu;

			if (!number(value, UINT32_MAX, &bytes))
				return false;
			mtu = (uint32_t)bytes;
			attribute(message, IFLA_MTU, &mtu, sizeof(mtu));
		} else if (is(key, "addrgenmode") && is(value, "none")) {
			uint8_t none = IN6_ADDR_GEN_MODE_NONE;
			struct rtattr *families = attribute(message, IFLA_AF_SPEC, NULL, 0);
			struct rtattr *six = attribute(message, AF_INET6, NULL, 0);

			attribute(message, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof(none));
			nest_end(message, six);
			nest_end(message, families);
		} else if (is(key, "arp") && either) {
			link_flag(link, IFF_NOARP, !on);
		} else if (is(key, "multicast") && either) {
			link_flag(link, IFF_MULTICAST, on);
		} else {
			return false;
		}
	}
	return true;
}

/* addr add ADDRESS/BITS dev NAME [nodad] */
static bool addr_add(struct answer *answer, char *line, struct message *message)
{
	struct ifaddrmsg *body = &message->body.address;
	struct address own;
	const char *option;
	int index;

	begin(message, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*body));
	if (!parse_address(word(&line), &own) || !is(word(&line), "dev") || !interface(answer, word(&line), &index))
		return false;
	body->ifa_family = (uint8_t)own.family;
	body->ifa_prefixlen = (uint8_t)own.prefix;
	body->ifa_index = (unsigned)index;
	option = word(&line);
	if (is(option, "nodad"))
		body->ifa_flags |= IFA_F_NODAD;
	else if (option)
		return false;
	attribute(message, IFA_LOCAL, own.bytes, own.length);
	attribute(message, IFA_ADDRESS, own.bytes, own.length);
	return !word(&line);
}

/* neigh replace ADDRESS lladdr MAC dev NAME nud permanent */
static bool neigh_replace(struct answer *answer, char *line, struct message *message)
{
	struct ndmsg *body = &message->body.neighbour;
	struct address other;
	unsigned char mac[6];

	begin(message, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*body));
	if (!parse_address(word(&line), &other) || !is(word(&line), "lladdr") || !parse_mac(word(&line), mac) ||
	    !is(word(&line), "dev") || !interface(answer, word(&line), &body->ndm_ifindex) ||
	    !is(word(&line), "nud") || !is(word(&line), "permanent"))
		return false;
	body->ndm_family = (uint8_t)other.family;
	body->ndm_state = NUD_PERMANENT;
	attribute(message, NDA_DST, other.bytes, other.length);
	attribute(message, NDA_LLADDR, mac, sizeof(mac));
	return !word(&line);
}

/* route add|replace PREFIX [via ADDRESS] dev NAME */
static bool route(struct answer *answer, char *line, struct message *message, unsigned flags)
{
	struct rtmsg *body = &message->body.route;
	struct address prefix, gateway = { 0 };
	const char *key;
	int index;

	begin(message, RTM_NEWROUTE, NLM_F_CREATE | flags, sizeof(*body));
	if (!parse_address(word(&line), &prefix))
		return false;
	key = word(&line);
	if (is(key, "via")) {
		if (!parse_address(word(&line), &gateway) || gateway.family != prefix.family)
			return false;
		key = word(&line);
	}
	if (!is(key, "dev") || !interface(answer, word(&line), &index))
		return false;
	body->rtm_family = (uint8_t)prefix.family;
	body->rtm_dst_len = (uint8_t)prefix.prefix;
	body->rtm_table = RT_TABLE_MAIN;
	body->rtm_protocol = RTPROT_BOOT;
	body->rtm_scope = gateway.length || prefix.family == AF_INET6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	body->rtm_type = RTN_UNICAST;
	attribute(message, RTA_DST, prefix.bytes, prefix.length);
	if (gateway.length)
		attribute(message, RTA_GATEWAY, gateway.bytes, gateway.length);
	attribute(message, RTA_OIF, &index, sizeof(index));
	return !word(&line);
}

void do_ip(struct answer *answer, char *arguments)
{
	static const char known[] = "link set, addr add, neigh replace, route add or replace";
	struct message message;
	char whole[256];
	const char *object, *verb;
	bool built = false;
	int fd;

	snprintf(whole, sizeof(whole), "`ip %s`", arguments);
	object = word(&arguments);
	verb = word(&arguments);
	if (is(object, "link") && is(verb, "set"))
		built = link_set(answer, arguments, &message);
	else if (is(object, "addr") && is(verb, "add"))
		built = addr_add(answer, arguments, &message);
	else if (is(object, "neigh") && is(verb, "replace"))
		built = neigh_replace(answer, arguments, &message);
	else if (is(object, "route") && is(verb, "add"))
		built = route(answer, arguments, &message, NLM_F_EXCL);
	else if (is(object, "route") && is(verb, "replace"))
		built = route(answer, arguments, &message, NLM_F_REPLACE);
	else
		refuse(answer, 0, "%s: expected %s", whole, known);
	if (!built) {
		refuse(answer, EINVAL, "%s", whole);
		return;
	}
	fd = netlink_open(answer, NETLINK_ROUTE);
	if (fd < 0)
		return;
	netlink_ask(answer, fd, whole, &message.header, NULL, NULL);
	close(fd);
}
