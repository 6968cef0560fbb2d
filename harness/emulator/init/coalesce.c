// SPDX-License-Identifier: GPL-2.0-or-later
/* How many frames, or how much time, an interface gathers before it interrupts: told to its driver, and read back. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

enum { VALUES = 4 };

static bool ask_driver(int fd, const char *name, struct ethtool_coalesce *values, __u32 command)
{
	struct ifreq asked = { .ifr_data = (void *)values };

	values->cmd = command;
	snprintf(asked.ifr_name, sizeof(asked.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &asked) == 0;
}

/* Frames and microseconds, receiving, then transmitting; false if there are not just as many. */
static bool read_values(char **arguments, __u32 *const fields[VALUES], const char *first)
{
	const char *at = first;
	uint64_t value;

	for (int i = 0; i < VALUES; i++, at = word(arguments)) {
		if (!number(at, UINT32_MAX, &value))
			return false;
		*fields[i] = (__u32)value;
	}
	return at == NULL;
}

void do_coalesce(struct answer *answer, char *arguments)
{
	static const char *const names[VALUES] = { "rx_frames", "rx_us", "tx_frames", "tx_us" };
	struct ethtool_coalesce values = { 0 };
	__u32 *const fields[VALUES] = { &values.rx_max_coalesced_frames, &values.rx_coalesce_usecs,
					&values.tx_max_coalesced_frames, &values.tx_coalesce_usecs };
	const char *name = word(&arguments), *first;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!name || fd < 0) {
		refuse(answer, name ? errno : 0, "coalesce: expected NAME [RX_FRAMES RX_US TX_FRAMES TX_US]");
	} else if (!ask_driver(fd, name, &values, ETHTOOL_GCOALESCE)) {
		refuse(answer, errno, "cannot read the coalescing of %s", name);
	} else if ((first = word(&arguments))) {
		/* What is not set stays as it was read. */
		if (!read_values(&arguments, fields, first))
			refuse(answer, 0, "coalesce %s: expected RX_FRAMES RX_US TX_FRAMES TX_US, four numbers", name);
		else if (!ask_driver(fd, name, &values, ETHTOOL_SCOALESCE) ||
			 !ask_driver(fd, name, &values, ETHTOOL_GCOALESCE))
			refuse(answer, errno, "cannot set the coalescing of %s", name);
	}
	if (fd >= 0)
		close(fd);
	for (int i = 0; i < VALUES; i++)
		text_printf(&answer->fields, ",\"%s\":%u", names[i], (unsigned)*fields[i]);
}
