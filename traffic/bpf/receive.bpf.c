// SPDX-License-Identifier: Apache-2.0
// The receiver: attached to a port, it verifies every byte of a test frame, counts it, notes its time of arrival
// and its latency, and drops it.
//
// This program counts frames that are intact, and frames of earlier trials. All others go through a ring to user
// space, where src/receive/verify.rs judges them: damaged frames are rare, but there are many rules for them.

#include "common.h"

#define SLICES 20
#define GAPS 64
#define BINS 16384
#define SMALL 256 /* bytes of a small sample; most frames that are handed over fit into one */

/* A stream as it is expected. User space fills this in before the trial. */
struct expected {
    u64 first_sequence;
    u64 sequences;
    u64 start_ns;
    u64 slice_ns;
    u64 tail_ns;   /* time at which the bins of the tail begin */
    u64 bin_ns;    /* width of a bin */
    u64 tag_ns;    /* the tagged frame is the first one sent at this time or later */
    u64 bitmap_at; /* index of its first word in `arrived` */
    u32 lead;      /* index in `arrivals` of the whole stream that it is a part of */
    u32 unused_too;
    u32 lengths;
    u16 id;
    u8 ipv6;
    u8 unused;
    struct { u32 length, unused; u64 pattern_sum; } sizes[64];
};

struct slice { u64 frames, min_ns, total_ns; };

struct count {
    u64 received;
    u64 duplicated;
    u64 reordered;
    u64 highest; /* number + 1 */
    u64 last_rx_ns;
    u64 beyond; /* arrivals after the last bin */
    u64 tagged; /* lowest number + 1 of the frames sent at tag_ns or later; 0: none has arrived */
    u64 tagged_latency_ns;
    u64 early; /* frames that arrived before they left: two clocks differ */
    struct slice slices[SLICES];
};

struct gap { u64 from_ns, to_ns; };

/* The arrivals of a whole stream, which several CPUs may send in parts. */
struct arrivals {
    u64 over_ns; /* gaps longer than this are listed */
    u64 first_ns;
    u64 last_ns;
    struct gap longest;
    u64 listed;
    u64 more;
    struct gap gap[GAPS];
};

struct control {
    struct run_key key;
    u64 total;
    u64 stale;
    u64 odd;      /* frames that were to be handed to user space */
    u64 unjudged; /* odd frames for which the ring had no room: the tester's own loss */
    u32 streams;
    u32 unused;
};

struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct control); } control SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct expected); } expected SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct count); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct arrivals); } arrivals SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS * HDR_SLOTS);
    __uint(map_flags, BPF_F_MMAPABLE); __type(key, u32); __type(value, u64); } latency SEC(".maps");
/* Counts of arrivals in bins of time around the end of sending: user space counts from them the arrivals after the
 * last departure. */
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS * BINS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, u64); } tail SEC(".maps");
/* One bit for each number of every stream: set if an intact frame with this number arrived. */
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, u64); } arrived SEC(".maps");
struct pattern { u8 bytes[LONGEST + 8]; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct pattern); } pattern SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 24); } samples SEC(".maps");

struct small { u64 at_ns; u32 wire_length, captured; u8 bytes[SMALL]; };
struct large { u64 at_ns; u32 wire_length, captured; u8 bytes[LONGEST]; };

ALWAYS void add(u64 *to, u64 n)
{
    __sync_fetch_and_add(to, n);
}

ALWAYS u64 be48(const u16 *words)
{
    return (u64)bpf_ntohs(words[0]) << 32 | (u64)bpf_ntohs(words[1]) << 16 | bpf_ntohs(words[2]);
}

/* Does the same as `Arrivals::note` in src/count/arrivals.rs. */
ALWAYS void note_arrival(struct arrivals *a, u64 at_ns)
{
    u64 last_ns = a->last_ns;

    if (!last_ns) {
        a->first_ns = at_ns;
    } else {
        u64 took_ns = at_ns > last_ns ? at_ns - last_ns : 0;

        if (!a->longest.to_ns || took_ns > a->longest.to_ns - a->longest.from_ns) {
            a->longest.from_ns = last_ns;
            a->longest.to_ns = took_ns ? at_ns : last_ns;
        }
        if (took_ns > a->over_ns) {
            u64 n = a->listed;

            if (n < GAPS) {
                a->gap[n].from_ns = last_ns;
                a->gap[n].to_ns = at_ns;
                a->listed = n + 1;
            } else {
                a->more++;
            }
        }
    }
    if (at_ns > last_ns)
        a->last_ns = at_ns;
}

/* Returns the full time, near now_ns, of which a frame carries the low 48 bits, as `whole_time` in
 * src/receive/stream_count.rs does. */
ALWAYS u64 whole_time(u64 low, u64 now_ns)
{
    u64 half = 1ULL << 47, time = (now_ns & ~NUMBER_MASK) | low;

    if (time > now_ns + half)
        return time > NUMBER_MASK ? time - (NUMBER_MASK + 1) : 0;
    return time + half < now_ns ? time + NUMBER_MASK + 1 : time;
}

/* Counts an intact frame; returns 0 if it cannot, else 1. This is a global function so that the kernel's verifier
 * checks it once, and not again for each point at which the comparison of bytes may end. */
__attribute__((noinline)) int book(u32 which, u64 number, u64 time, u64 at_ns)
{
    u32 k = which;
    const struct expected *e = bpf_map_lookup_elem(&expected, &k);
    struct count *n = bpf_map_lookup_elem(&counts, &k);

    if (!e || !n)
        return 0;
    u32 lead = e->lead, word_at = e->bitmap_at + number / 64;
    struct arrivals *came = bpf_map_lookup_elem(&arrivals, &lead);
    u64 *word = bpf_map_lookup_elem(&arrived, &word_at);
    u64 bit = 1ULL << (number % 64);

    if (!came || !word)
        return 0;
    n->last_rx_ns = at_ns;
    if (__sync_fetch_and_or(word, bit) & bit) {
        add(&n->duplicated, 1);
        return 1;
    }
    add(&n->received, 1);
    if (number + 1 < n->highest)
        add(&n->reordered, 1);
    else
        n->highest = number + 1;
    note_arrival(came, at_ns);

    u64 sent_ns = whole_time(time, at_ns);
    u64 took_ns = at_ns > sent_ns ? at_ns - sent_ns : 1;

    if (sent_ns > at_ns)
        add(&n->early, 1);
    if (sent_ns >= e->tag_ns && (!n->tagged || number + 1 < n->tagged)) {
        n->tagged = number + 1;
        n->tagged_latency_ns = took_ns;
    }
    u32 slot = which * HDR_SLOTS + hdr_slot(took_ns);
    u64 *bar = bpf_map_lookup_elem(&latency, &slot);

    if (bar)
        add(bar, 1);
    u64 part = sent_ns > e->start_ns ? (sent_ns - e->start_ns) / e->slice_ns : 0;

    if (part >= SLICES)
        part = SLICES - 1;
    struct slice *slice = &n->slices[part];

    if (!slice->frames || took_ns < slice->min_ns)
        slice->min_ns = took_ns;
    add(&slice->frames, 1);
    add(&slice->total_ns, took_ns);
    if (at_ns >= e->tail_ns) {
        u64 bin = (at_ns - e->tail_ns) / e->bin_ns;

        if (bin < BINS) {
            u32 bin_at = which * BINS + bin;
            u64 *count_there = bpf_map_lookup_elem(&tail, &bin_at);

            if (count_there)
                add(count_there, 1);
        } else {
            add(&n->beyond, 1);
        }
    }
    return 1;
}

/* Copies a frame to the ring for user space, or counts it as unjudged if the ring is full. Always returns 0. */
ALWAYS int hand_over(struct xdp_md *ctx, struct control *c, u32 length, u64 at_ns)
{
    add(&c->odd, 1);
    if (length <= SMALL) {
        struct small *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);

        if (!sample) {
            add(&c->unjudged, 1);
            return 0;
        }
        sample->at_ns = at_ns;
        sample->wire_length = length;
        sample->captured = length;
        if (length < 1 || length > SMALL || bpf_xdp_load_bytes(ctx, 0, sample->bytes, length))
            sample->captured = 0;
        bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
    } else {
        struct large *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
        u32 captured = length < LONGEST ? length : LONGEST;

        if (!sample) {
            add(&c->unjudged, 1);
            return 0;
        }
        sample->at_ns = at_ns;
        sample->wire_length = length;
        sample->captured = captured;
        barrier_var(captured); /* else the compiler removes the check of its range, which the verifier needs */
        if (captured < 1 || captured > LONGEST || bpf_xdp_load_bytes(ctx, 0, sample->bytes, captured))
            sample->captured = 0;
        bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
    }
    return 0;
}

SEC("xdp")
int receive(struct xdp_md *ctx)
{
    u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u64 at_ns = bpf_ktime_get_ns();
    u32 zero = 0, length = end - data;
    struct control *c = bpf_map_lookup_elem(&control, &zero);
    const struct pattern *wanted = bpf_map_lookup_elem(&pattern, &zero);
    const struct expected *e = 0;
    u16 *header = 0;
    u64 sequence = 0, time = 0;
    u32 which = 0;
    int ipv6 = 0;

    if (!c || !wanted)
        return XDP_PASS;
    add(&c->total, 1);
    if (data + 42 + TEST_HEADER > end)
        goto odd;
    for (u32 i = 0; i < STREAMS; i++) {
        u32 k = i;
        u16 *h;

        if (i >= c->streams)
            break;
        e = bpf_map_lookup_elem(&expected, &k);
        if (!e)
            goto odd;
        ipv6 = e->ipv6;
        if (ipv6) {
            if (data + 62 + TEST_HEADER > end)
                continue;
            h = (u16 *)(data + 62);
        } else {
            h = (u16 *)(data + 42);
        }
        if (h[0] != bpf_htons(c->key.magic) || h[1] != bpf_htons(e->id))
            continue;
        sequence = be48(h + 2);
        time = be48(h + 5);
        if (bpf_ntohs(h[8]) != check_of(&c->key, e->id, sequence, time))
            continue;
        header = h;
        which = i;
        break;
    }
    if (!header || !e)
        goto odd;

    u64 number = (sequence - e->first_sequence) & NUMBER_MASK;

    if (number >= e->sequences) {
        add(&c->stale, 1);
        return XDP_DROP;
    }

    u64 sum = 0, pattern_sum = 0;
    int known = 0;

    for (u32 i = 0; i < 64; i++) {
        if (i >= e->lengths)
            break;
        if (e->sizes[i].length == length) {
            pattern_sum = e->sizes[i].pattern_sum;
            known = 1;
            break;
        }
    }
    if (!known)
        goto odd;

    u8 *udp;
    u16 *words;

    if (ipv6) {
        if (data + 62 + TEST_HEADER > end)
            goto odd;
        udp = data + 54;
        words = (u16 *)(data + 14);
        if (*(u16 *)(data + 12) != bpf_htons(0x86dd) || data[14] >> 4 != 6 || data[20] != 17 ||
            bpf_ntohs(words[2]) != length - 54)
            goto odd;
        for (int i = 4; i < 20; i++)
            sum += words[i];
    } else {
        u64 ip_sum = 0;

        udp = data + 34;
        words = (u16 *)(data + 14);
        if (*(u16 *)(data + 12) != bpf_htons(0x0800) || data[14] != 0x45 || data[23] != 17 ||
            bpf_ntohs(words[1]) != length - 14 || words[3] & bpf_htons(0x3fff))
            goto odd;
        for (int i = 0; i < 10; i++)
            ip_sum += words[i];
        if (fold16(ip_sum) != 0xffff)
            goto odd;
        for (int i = 6; i < 10; i++)
            sum += words[i];
    }
    words = (u16 *)udp;
    if (bpf_ntohs(words[2]) != end - udp || !words[3])
        goto odd;
    sum += bpf_htons(17) + words[2];
    for (int i = 0; i < 4; i++)
        sum += words[i];
    for (int i = 0; i < 9; i++)
        sum += words[4 + i];
    if (fold16(sum + pattern_sum) != 0xffff)
        goto odd;

    /* The checksum does not detect every damage, so each byte of the pattern is compared. */
    {
        u32 at = (ipv6 ? 62 : 42) + TEST_HEADER;
        const u8 *p = wanted->bytes;
        u8 *d = data + at;

        for (u32 i = 0; i < LONGEST / 8; i++) {
            if (d + 8 > end)
                break;
            if (*(u64 *)d != *(const u64 *)p)
                goto odd;
            d += 8;
            p += 8;
        }
        for (u32 i = 0; i < 7; i++) {
            if (d + 1 > end)
                break;
            if (*d != *p)
                goto odd;
            d++;
            p++;
        }
    }

    if (!book(which, number, time, at_ns))
        goto odd;
    return XDP_DROP;

odd:
    hand_over(ctx, c, length, at_ns);
    return is_for_neighbours(data, end) ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";
