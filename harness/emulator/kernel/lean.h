/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the three parts of the lean ESP share: lean_esp.c (packets), lean_flow.c (the cache), lean_sa.c (its SAs). */
#ifndef ESPBENCH_LEAN_H
#define ESPBENCH_LEAN_H

#include <crypto/aead.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>
#include <linux/skbuff.h>
#include <linux/types.h>

#define LEAN_IV 16
#define LEAN_ESP_HEADER 8 /* SPI and sequence number */
#define LEAN_TRAILER 2	  /* length of the padding and next header, behind it */
#define LEAN_WINDOW 64	  /* the widest replay window, packets */
#define LEAN_FLOWS 4096	  /* a power of two */

/* A Security Association in tunnel mode. Addresses are in the order of the network. */
struct lean_sa {
	struct list_head all;
	struct hlist_node by_spi; /* inbound ones */
	bool inbound;
	__be32 spi, source, destination;
	__be32 local, local_mask, remote, remote_mask; /* networks, as this gateway sees them */
	struct crypto_aead *tfm;
	unsigned int iv, block, icv; /* bytes */
	struct lean_operation *free;
	unsigned int in_flight;
	u32 sequence;		     /* the last one sent, or the highest that came */
	u64 seen;		     /* bit n: sequence - n has come */
	unsigned int window;	     /* 0: replays are not looked for */
	u16 identification;	     /* of the outer header */
	u64 packets, bytes;	     /* of cleartext */
};

/* One packet in the cipher's hands; kept for the next one of its SA. */
struct lean_operation {
	struct lean_operation *next;
	struct lean_sa *sa;
	struct sk_buff *skb;
	struct scatterlist sg;
	u8 iv[LEAN_IV];
	struct aead_request request; /* and the driver's context behind it */
};

/* Where packets between two addresses go, and the SA that takes or brings them. */
struct lean_flow {
	__be32 source, destination;
	u32 generation;
	struct lean_sa *sa; /* NULL: unused */
	struct net_device *dev;
	u8 header[ETH_HLEN];
};

enum lean_error {
	LEAN_QUEUE_FULL, LEAN_NO_MEMORY, LEAN_TOO_LONG, LEAN_SEQUENCE, LEAN_CIPHER,
	LEAN_ICV, LEAN_REPLAY, LEAN_MALFORMED, LEAN_SELECTOR, LEAN_TTL, LEAN_ERRORS,
};

/*
 * The guest has one CPU, and packets and completions are handled in softirqs: nothing here is locked. A process
 * that changes any of it keeps softirqs away.
 */
extern struct lean_ports {
	struct net_device *lan, *wan;
} lean_ports;
extern struct list_head lean_sas;
extern u64 lean_errors[LEAN_ERRORS];
extern u64 lean_hits, lean_misses;

/* Of an inbound SA; NULL: there is none. */
struct lean_sa *lean_sa_of(__be32 spi);

/* The entry for packets between two addresses, found or made; NULL: no SA is for them, or there is no way there. */
struct lean_flow *lean_flow(__be32 source, __be32 destination);
void lean_forget_flows(void);

rx_handler_result_t lean_from_lan(struct sk_buff **packet);
rx_handler_result_t lean_from_wan(struct sk_buff **packet);

#endif
