// SPDX-License-Identifier: GPL-2.0-or-later
/* How many frames an interface's rings hold (ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM). */
#include <errno.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../guest.h"

static bool exchange(int fd, const char *name, struct ethtool_ringparam *rings)
{
	struct ifreq asked = { .ifr_data = (void *)rings };

	snprintf(asked.ifr_name, sizeof(asked.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &asked) == 0;
}

void do_rings(struct answer *answer, char *arguments)
{
	struct ethtool_ringparam rings = { .cmd = ETHTOOL_GRINGPARAM };
	const char *name = word(&arguments), *first = word(&arguments), *second = word(&arguments);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t receive, transmit;

	if (!name || (first && (!number(first, UINT32_MAX, &receive) || !number(second, UINT32_MAX, &transmit))) ||
	    word(&arguments)) {
		refuse(answer, 0, "rings: expected NAME, or NAME RECEIVE TRANSMIT");
	} else if (!exchange(fd, name, &rings)) {
		refuse(answer, errno, "rings %s", name);
	} else if (first) {
		rings.cmd = ETHTOOL_SRINGPARAM;
		rings.rx_pending = (uint32_t)receive;
		rings.tx_pending = (uint32_t)transmit;
		if (!exchange(fd, name, &rings))
			refuse(answer, errno, "rings %s %" PRIu64 " %" PRIu64, name, receive, transmit);
		rings.cmd = ETHTOOL_GRINGPARAM;
		if (!exchange(fd, name, &rings))
			refuse(answer, errno, "rings %s", name);
	}
	close(fd);
	text_printf(&answer->fields, ",\"receive\":%u,\"transmit\":%u", rings.rx_pending, rings.tx_pending);
}
