// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A lean ESP (espbench): RFC 4303 in tunnel mode over IPv4, beside the kernel's own network stack.
 *
 * It takes packets where the driver leaves them: one look into the flow cache, the headers written, one request to
 * the crypto API (the same algorithm that XFRM asks for, so the same descriptor), and on its completion the packet
 * goes to the other port's queue. No policy, no route and no bundle is looked for, nothing is allocated once a few
 * packets have passed. What it does not know it leaves to the stack: other protocols, options, packets whose TTL
 * ends, addresses without an SA. It bounds what an IPsec stack's own code can cost beside the engine, and stands
 * for no product.
 *
 * Not there: fragmentation (a packet too long for its port is dropped), IPv6, ESN, ECN (the outer header says not
 * capable: RFC 6040, compatibility mode).
 */
#include <linux/bug.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/esp.h>
#include <net/ip.h>

#include "lean.h"

#define OUTER_TTL 64

u64 lean_errors[LEAN_ERRORS];

static void drop(struct sk_buff *skb, enum lean_error error)
{
	lean_errors[error]++;
	kfree_skb(skb);
}

static void drop_refused(struct sk_buff *skb, int error)
{
	bool full = error == -EAGAIN || error == -ENOSPC || error == -EBUSY;

	drop(skb, full ? LEAN_QUEUE_FULL : error == -EBADMSG ? LEAN_ICV : LEAN_CIPHER);
}

static struct lean_operation *begin(struct lean_sa *sa, struct sk_buff *skb, crypto_completion_t done)
{
	struct lean_operation *operation = sa->free;

	if (operation) {
		sa->free = operation->next;
	} else {
		operation = kmalloc(sizeof(*operation) + crypto_aead_reqsize(sa->tfm), GFP_ATOMIC);
		if (!operation)
			return NULL;
		operation->sa = sa;
		aead_request_set_tfm(&operation->request, sa->tfm);
		aead_request_set_callback(&operation->request, 0, done, operation);
		aead_request_set_ad(&operation->request, LEAN_ESP_HEADER);
	}
	operation->skb = skb;
	sa->in_flight++;
	return operation;
}

static struct sk_buff *end(struct lean_operation *operation)
{
	struct lean_sa *sa = operation->sa;

	operation->next = sa->free;
	sa->free = operation;
	sa->in_flight--;
	return operation->skb;
}

/* An IPv4 packet for this gateway to forward or to open, at skb->data; NULL: the stack's affair. */
static struct iphdr *packet_in(struct sk_buff *skb)
{
	struct iphdr *ip;

	if (!pskb_may_pull(skb, sizeof(*ip)))
		return NULL;
	ip = (void *)skb->data;
	if (ip->version != 4 || ip->ihl != 5 || ntohs(ip->tot_len) > skb->len || ntohs(ip->tot_len) < sizeof(*ip) ||
	    ip_fast_csum(ip, ip->ihl))
		return NULL;
	return ip;
}

/* Ours alone and in one piece, with room for what comes before and behind it. */
static bool make_room(struct sk_buff *skb, unsigned int before, unsigned int behind)
{
	unsigned int headroom = skb_headroom(skb), tailroom = skb_tailroom(skb);

	if (skb_linearize(skb))
		return false;
	if (likely(!skb_cloned(skb) && headroom >= before && tailroom >= behind))
		return true;
	return !pskb_expand_head(skb, headroom >= before ? 0 : before - headroom,
				 tailroom >= behind ? 0 : behind - tailroom, GFP_ATOMIC);
}

static void put_ethernet(struct sk_buff *skb, const struct lean_flow *flow)
{
	memcpy(skb_push(skb, ETH_HLEN), flow->header, ETH_HLEN);
	skb->dev = flow->dev;
}

static void send(struct sk_buff *skb)
{
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = htons(ETH_P_IP);
	skb->ip_summed = CHECKSUM_NONE;
	dev_queue_xmit(skb);
}

static void encrypted(struct lean_operation *operation, int error)
{
	struct lean_sa *sa = operation->sa;
	unsigned int around = ETH_HLEN + sizeof(struct iphdr) + LEAN_ESP_HEADER + sa->iv + sa->icv;
	struct sk_buff *skb = end(operation);

	if (error) {
		drop_refused(skb, error);
		return;
	}
	sa->packets++;
	sa->bytes += skb->len - around;
	send(skb);
}

static void on_encrypted(struct crypto_async_request *request, int error)
{
	if (error != -EINPROGRESS)
		encrypted(request->data, error);
}

static void put_trailer(struct sk_buff *skb, unsigned int padding, unsigned int icv)
{
	u8 *at = skb_put(skb, padding + LEAN_TRAILER + icv);
	unsigned int i;

	for (i = 0; i < padding; i++)
		at[i] = i + 1;
	at[padding] = padding;
	at[padding + 1] = IPPROTO_IPIP;
}

static void put_outer(struct sk_buff *skb, struct lean_sa *sa, u8 tos, __be16 df)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = tos & ~3;
	ip->tot_len = htons(skb->len);
	ip->id = htons(sa->identification++);
	ip->frag_off = df;
	ip->ttl = OUTER_TTL;
	ip->protocol = IPPROTO_ESP;
	ip->check = 0;
	ip->saddr = sa->source;
	ip->daddr = sa->destination;
	ip->check = ip_fast_csum(ip, ip->ihl);
}

/* ip is the packet at skb->data. All headers are written at once, so that a completion has only to send. */
static void encrypt(struct sk_buff *skb, struct iphdr *ip, const struct lean_flow *flow)
{
	struct lean_sa *sa = flow->sa;
	unsigned int length = ntohs(ip->tot_len), clear = ALIGN(length + LEAN_TRAILER, sa->block);
	unsigned int before = sizeof(*ip) + LEAN_ESP_HEADER + sa->iv, whole = before + clear + sa->icv;
	struct lean_operation *operation;
	struct ip_esp_hdr *esp;
	__be16 df;
	u8 tos;
	int error;

	if (whole > flow->dev->mtu) {
		drop(skb, LEAN_TOO_LONG);
		return;
	}
	if (sa->sequence == U32_MAX) { /* it must not come round (RFC 4303 3.3.3) */
		drop(skb, LEAN_SEQUENCE);
		return;
	}
	skb_trim(skb, length);
	if (!make_room(skb, ETH_HLEN + before, clear - length + sa->icv)) {
		drop(skb, LEAN_NO_MEMORY);
		return;
	}
	operation = begin(sa, skb, on_encrypted);
	if (!operation) {
		drop(skb, LEAN_NO_MEMORY);
		return;
	}
	ip = (void *)skb->data;
	ip_decrease_ttl(ip);
	tos = ip->tos;
	df = ip->frag_off & htons(IP_DF);
	put_trailer(skb, clear - length - LEAN_TRAILER, sa->icv);
	esp = skb_push(skb, LEAN_ESP_HEADER + sa->iv);
	esp->spi = sa->spi;
	esp->seq_no = htonl(++sa->sequence);
	/* What the algorithm makes its IV of. */
	memset(operation->iv, 0, sizeof(operation->iv));
	if (sa->iv)
		memcpy(operation->iv + sa->iv - sizeof(esp->seq_no), &esp->seq_no, sizeof(esp->seq_no));
	sg_init_one(&operation->sg, esp, skb->len);
	aead_request_set_crypt(&operation->request, &operation->sg, &operation->sg, sa->iv + clear, operation->iv);
	put_outer(skb, sa, tos, df);
	put_ethernet(skb, flow);
	error = crypto_aead_encrypt(&operation->request);
	if (error != -EINPROGRESS)
		encrypted(operation, error);
}

rx_handler_result_t lean_from_lan(struct sk_buff **given)
{
	struct sk_buff *skb = *given;
	const struct lean_flow *flow;
	struct iphdr *ip;

	if (skb->protocol != htons(ETH_P_IP) || skb->pkt_type != PACKET_HOST)
		return RX_HANDLER_PASS;
	skb = *given = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return RX_HANDLER_CONSUMED;
	ip = packet_in(skb);
	if (!ip || ip->ttl <= 1)
		return RX_HANDLER_PASS;
	flow = lean_flow(ip->saddr, ip->daddr);
	if (!flow || flow->sa->inbound)
		return RX_HANDLER_PASS;
	encrypt(skb, ip, flow);
	return RX_HANDLER_CONSUMED;
}

static bool is_replay(const struct lean_sa *sa, u32 sequence)
{
	u32 behind = sa->sequence - sequence;

	if (!sa->window)
		return false;
	if (!sequence)
		return true;
	if (sequence > sa->sequence)
		return false;
	return behind >= sa->window || sa->seen >> behind & 1;
}

static void note_sequence(struct lean_sa *sa, u32 sequence)
{
	if (sequence <= sa->sequence) {
		u32 behind = sa->sequence - sequence;

		if (behind < LEAN_WINDOW)
			sa->seen |= 1ULL << behind;
		return;
	}
	sa->seen = sequence - sa->sequence < LEAN_WINDOW ? sa->seen << (sequence - sa->sequence) : 0;
	sa->seen |= 1;
	sa->sequence = sequence;
}

/* Its ICV is right: the cleartext is between the IV and the padding. */
static void take_out(struct sk_buff *skb, struct lean_sa *sa)
{
	const struct ip_esp_hdr *esp = (const void *)skb->data;
	unsigned int clear = skb->len - LEAN_ESP_HEADER - sa->iv - sa->icv;
	const u8 *end = skb->data + skb->len - sa->icv;
	u32 sequence = ntohl(esp->seq_no);
	unsigned int padding = end[-LEAN_TRAILER];
	struct lean_flow *flow;
	struct iphdr *ip;

	if (is_replay(sa, sequence)) { /* of one that came in while this one was in the cipher's hands */
		drop(skb, LEAN_REPLAY);
		return;
	}
	note_sequence(sa, sequence);
	if (end[-1] != IPPROTO_IPIP || padding + LEAN_TRAILER > clear) {
		drop(skb, LEAN_MALFORMED);
		return;
	}
	skb_trim(skb, skb->len - sa->icv - LEAN_TRAILER - padding);
	skb_pull(skb, LEAN_ESP_HEADER + sa->iv);
	ip = packet_in(skb);
	if (!ip) {
		drop(skb, LEAN_MALFORMED);
		return;
	}
	flow = lean_flow(ip->saddr, ip->daddr);
	if (!flow || flow->sa != sa) {
		drop(skb, LEAN_SELECTOR);
		return;
	}
	if (ip->ttl <= 1) {
		drop(skb, LEAN_TTL);
		return;
	}
	skb_trim(skb, ntohs(ip->tot_len));
	ip_decrease_ttl(ip);
	sa->packets++;
	sa->bytes += clear;
	put_ethernet(skb, flow);
	send(skb);
}

static void decrypted(struct lean_operation *operation, int error)
{
	struct lean_sa *sa = operation->sa;
	struct sk_buff *skb = end(operation);

	if (error)
		drop_refused(skb, error);
	else
		take_out(skb, sa);
}

static void on_decrypted(struct crypto_async_request *request, int error)
{
	if (error != -EINPROGRESS)
		decrypted(request->data, error);
}

/* ip is the outer header at skb->data. */
static void decrypt(struct sk_buff *skb, const struct iphdr *ip, struct lean_sa *sa)
{
	unsigned int length = ntohs(ip->tot_len) - sizeof(*ip), around = LEAN_ESP_HEADER + sa->iv + sa->icv;
	const struct ip_esp_hdr *esp = (const void *)(ip + 1);
	struct lean_operation *operation;
	int error;

	if (length < around + sa->block || (length - around) % sa->block) {
		drop(skb, LEAN_MALFORMED);
		return;
	}
	if (is_replay(sa, ntohl(esp->seq_no))) {
		drop(skb, LEAN_REPLAY);
		return;
	}
	skb_trim(skb, sizeof(*ip) + length);
	skb_pull(skb, sizeof(*ip));
	operation = make_room(skb, 0, 0) ? begin(sa, skb, on_decrypted) : NULL;
	if (!operation) {
		drop(skb, LEAN_NO_MEMORY);
		return;
	}
	sg_init_one(&operation->sg, skb->data, length);
	aead_request_set_crypt(&operation->request, &operation->sg, &operation->sg, length - LEAN_ESP_HEADER,
			       operation->iv);
	error = crypto_aead_decrypt(&operation->request);
	if (error != -EINPROGRESS)
		decrypted(operation, error);
}

rx_handler_result_t lean_from_wan(struct sk_buff **given)
{
	struct sk_buff *skb = *given;
	struct lean_sa *sa;
	struct iphdr *ip;

	if (skb->protocol != htons(ETH_P_IP) || skb->pkt_type != PACKET_HOST)
		return RX_HANDLER_PASS;
	skb = *given = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return RX_HANDLER_CONSUMED;
	ip = packet_in(skb);
	if (!ip || ip->protocol != IPPROTO_ESP || ip_is_fragment(ip) ||
	    ntohs(ip->tot_len) < sizeof(*ip) + LEAN_ESP_HEADER || !pskb_may_pull(skb, sizeof(*ip) + LEAN_ESP_HEADER))
		return RX_HANDLER_PASS;
	ip = (void *)skb->data;
	sa = lean_sa_of(((const struct ip_esp_hdr *)(ip + 1))->spi);
	if (!sa || ip->saddr != sa->source || ip->daddr != sa->destination)
		return RX_HANDLER_PASS;
	decrypt(skb, ip, sa);
	return RX_HANDLER_CONSUMED;
}
