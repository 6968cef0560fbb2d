// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lean ESP's one flow cache: from a pair of addresses to the SA, the port and the Ethernet header, in one look.
 *
 * A miss asks the SAs' networks one by one, then routing and the neighbour table. An entry holds until any route,
 * address or neighbour changes.
 */
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/log2.h>
#include <linux/notifier.h>
#include <linux/string.h>
#include <net/ip.h>
#include <net/neighbour.h>
#include <net/netevent.h>
#include <net/route.h>

#include "lean.h"

static struct lean_flow flows[LEAN_FLOWS];
static u32 changes;
u64 lean_hits, lean_misses;

static u32 generation(void)
{
	return changes + rt_genid_ipv4(&init_net);
}

static bool in_network(__be32 address, __be32 network, __be32 mask)
{
	return (address & mask) == network;
}

static struct lean_sa *sa_for(__be32 source, __be32 destination)
{
	struct lean_sa *sa;

	list_for_each_entry(sa, &lean_sas, all) {
		__be32 near = sa->inbound ? destination : source, far = sa->inbound ? source : destination;

		if (in_network(near, sa->local, sa->local_mask) && in_network(far, sa->remote, sa->remote_mask))
			return sa;
	}
	return NULL;
}

/* The Ethernet header towards an address; false while there is no neighbour to send it to. */
static bool resolve(struct lean_flow *flow, __be32 address, struct net_device *port)
{
	struct rtable *route = ip_route_output(&init_net, address, 0, 0, 0);
	struct ethhdr *header = (void *)flow->header;
	struct neighbour *neighbour;
	bool found = false;

	if (IS_ERR(route))
		return false;
	neighbour = route->dst.dev == port ? dst_neigh_lookup(&route->dst, &address) : NULL;
	if (neighbour) {
		found = neighbour->nud_state & NUD_VALID;
		if (found)
			neigh_ha_snapshot((char *)header->h_dest, neighbour, port);
		else
			neigh_event_send(neighbour, NULL);
		neigh_release(neighbour);
	}
	ip_rt_put(route);
	ether_addr_copy(header->h_source, port->dev_addr);
	header->h_proto = htons(ETH_P_IP);
	flow->dev = port;
	return found;
}

struct lean_flow *lean_flow(__be32 source, __be32 destination)
{
	struct lean_flow *flow = &flows[hash_32((__force u32)source ^ rol32((__force u32)destination, 7),
						ilog2(LEAN_FLOWS))];
	struct lean_sa *sa;

	if (likely(flow->source == source && flow->destination == destination && flow->sa &&
		   flow->generation == generation())) {
		lean_hits++;
		return flow;
	}
	lean_misses++;
	flow->sa = NULL;
	sa = sa_for(source, destination);
	if (!sa || !resolve(flow, sa->inbound ? destination : sa->destination,
			    sa->inbound ? lean_ports.lan : lean_ports.wan))
		return NULL;
	flow->source = source;
	flow->destination = destination;
	flow->generation = generation();
	flow->sa = sa;
	return flow;
}

void lean_forget_flows(void)
{
	memset(flows, 0, sizeof(flows));
}

static int on_change(struct notifier_block *block, unsigned long event, void *about)
{
	if (event == NETEVENT_NEIGH_UPDATE)
		changes++;
	return NOTIFY_DONE;
}

static struct notifier_block neighbours = { .notifier_call = on_change };

static int __init lean_flow_init(void)
{
	return register_netevent_notifier(&neighbours);
}
device_initcall(lean_flow_init);
