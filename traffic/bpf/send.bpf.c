// SPDX-License-Identifier: Apache-2.0
// The sender: the kernel runs it once for each live frame (BPF_F_TEST_XDP_LIVE_FRAMES). It picks the stream that
// is due next, waits for the time of departure, writes the frame and redirects it to the stream's port.
//
// The kernel sends the frames of a batch only when it has run the program for all of them. Sending may wake another
// CPU, which takes as long as making many frames. So the program never waits while a frame of its batch is pending:
// it fills the rest of the batch with frames that are already due, and drops the other frames of the batch at once.
// A sender that is behind schedule fills its batches, and one that is on time sends frame by frame.
//
// The kernel reuses the pages of frames that passed through the DUT, which changed them (MAC addresses, TTL,
// ciphertext), so every byte is written again.

#include "common.h"

#define LATE_NS 100000
#define STALL_NS 500000
#define HOPELESS 8 /* as in tx_stalls.rs */
#define STALLS 1000 /* the same as LISTED in src/count/tx_stalls.rs */
#define STEPS 16
#define SLACK_NS 20000 /* as in src/send/pace.rs: frames that are due this close together may leave at once */

/* One kind of test frame: the places of its headers, and its sums. Its bytes are in `templates`. */
struct variant {
    u16 l3, l4, payload; /* offsets */
    u16 src_port;
    u8 tcp;
    u8 unused[7];
    u64 ip_sum; /* sum of the IPv4 header's words that do not change, in the machine's byte order */
    u64 l4_sum; /* the same for the UDP or TCP header with pseudo header and pattern */
};

/* A part of the schedule in which the rate stays the same. */
struct stretch {
    u64 first;         /* number of its first frame; all ones: there is no such stretch */
    u64 due_ns;        /* time at which its first frame is due */
    u64 due_frac;      /* its fraction of a nanosecond, in units of 2^-32 ns */
    u64 interval_ns;
    u64 interval_frac;
    u64 catch_up_ns;   /* smallest interval while the sender catches up */
};

/* A stream. User space fills this in before the trial. */
struct stream {
    u64 planned; /* number of frames; all ones: no limit */
    u64 until_ns; /* no frame leaves at this time or later */
    u64 leeway_ns; /* total time by which pauses may postpone the frames after them */
    u64 tag_ns;  /* the first frame that leaves at this time or later is noted */
    u64 first_sequence;
    u64 step;  /* distance of the indexes of two successive frames of this program */
    u64 phase; /* index of this program's first frame */
    u32 address_base;  /* index of its first flow in `addresses` */
    u32 template_base; /* index of its first variant in `templates` */
    u32 flows;
    u32 ports;
    u32 order_length;
    u16 id;
    u8 ipv6;
    u8 dont_fragment;
    u32 raw;   /* number of templates that are sent unchanged, in turn (noise); 0: test frames */
    u32 paced; /* 0: as fast as possible */
    u64 counter;    /* of noise: the number of its first round */
    u32 counter_at; /* offset of 8 bytes that the number of the round changes; 0: there are none */
    u32 unused;
    struct stretch stretches[STEPS];
    struct variant variants[VARIANTS];
};

/* The progress of a stream. It changes with every frame, and user space reads it while the trial runs. */
struct progress {
    u64 sent;
    u64 due_ns;
    u64 due_frac;
    u64 gate_ns;
    u64 first_tx_ns;
    u64 last_tx_ns;
    u64 late_frames;
    u64 stalls_more;
    u64 stalls_more_ns; /* sum of the lengths of those stalls */
    u64 late_ns; /* lateness of the previous frame */
    u64 stall_at_ns; /* start of the current stall; 0: there is none */
    u64 stall_paused_ns;
    u64 stall_before_ns; /* lateness before the stall */
    u64 stall_after_ns;  /* lateness after its last pause */
    u64 put_off_ns; /* time by which the frames to come are postponed; lateness includes it, stalls do not */
    u32 stalls;
    u32 marks;
    u64 mark_ns;
    u64 marked;
    u64 tagged; /* index of the frame + 1 */
    u64 tagged_ns;
    u32 stretch;
    u32 unused;
    struct { u64 at_ns, paused_ns, until_ns; } stall[STALLS];
};

struct control {
    struct run_key key;
    u64 start_ns;
    u64 slice_ns; /* longest time that one run of the program waits before it lets other tasks have the CPU */
    u64 mark_ns; /* interval at which a pair of (frame, time of departure) is noted */
    u32 streams;
    u32 stop;
    u32 finished;
    u32 batch;    /* number of frames that the kernel sends together, when it has run the program for all of them */
    u32 position; /* position of the next frame in the batch */
    u32 pending;  /* frames of this batch that have been made and not sent yet */
};

struct address {
    u8 bytes[32];
    u64 sum;
};


struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct control); } control SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct stream); } streams SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct progress); } progress SEC(".maps");
struct template { u32 length /* without FCS */, checksum_at /* of noise in UDP, or 0 */; u8 bytes[LONGEST]; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct template); } templates SEC(".maps");
/* The port of each stream, which may be in any network namespace. */
struct { __uint(type, BPF_MAP_TYPE_DEVMAP); __uint(max_entries, STREAMS);
    __type(key, u32); __type(value, u32); } ports SEC(".maps");
/* The variant of each frame of a cycle. */
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS * ORDER); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, u8); } order SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct address); } addresses SEC(".maps");
/* Pairs of (frame, time of departure): one in each `mark_ns`, and the last before each pause; `marks_each` places
 * for each stream. */
struct mark { u64 frame, at_ns; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, u32); __type(value, struct mark); } marks SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, STREAMS * HDR_SLOTS);
    __uint(map_flags, BPF_F_MMAPABLE); __type(key, u32); __type(value, u64); } lateness SEC(".maps");

volatile const u32 marks_each = 1;

struct wait { u64 until_ns, now_ns; };

static long tick(u32 i, struct wait *wait)
{
    (void)i;
    wait->now_ns = bpf_ktime_get_ns();
    return wait->now_ns >= wait->until_ns;
}

/* Tells that the sender falls further behind after a stall, and will never catch up (tx_stalls.rs: is_hopeless). */
ALWAYS int hopeless(const struct progress *p, u64 late_ns)
{
    u64 more_ns = p->stall_paused_ns / HOPELESS;

    return late_ns > p->stall_after_ns + (more_ns > STALL_NS ? more_ns : STALL_NS);
}

/* Does the same as src/count/tx_stalls.rs: a stall begins when lateness jumps, and lasts until the sender has caught
 * up, or falls further behind. The part of a pause by which the later frames are postponed (src/send/pace.rs) need
 * not be caught up. */
ALWAYS void note_lateness(u32 which, const struct stream *s, struct progress *p, u64 now, u64 late_ns)
{
    u32 slot = which * HDR_SLOTS + hdr_slot(late_ns ? late_ns : 1);
    u64 *count = bpf_map_lookup_elem(&lateness, &slot);
    u64 before = p->late_ns, pause;

    if (count)
        *count += 1;
    if (late_ns > LATE_NS)
        p->late_frames++;
    late_ns = late_ns > p->put_off_ns ? late_ns - p->put_off_ns : 0;
    pause = late_ns > before ? late_ns - before : 0;
    p->late_ns = late_ns;
    if (pause > STALL_NS) {
        if (!p->stall_at_ns) {
            p->stall_at_ns = now - pause;
            p->stall_before_ns = before;
            p->stall_paused_ns = 0;
        }
        u64 left = s->leeway_ns > p->put_off_ns ? s->leeway_ns - p->put_off_ns : 0;
        u64 granted = pause < left ? pause : left;

        p->stall_paused_ns += pause;
        p->put_off_ns += granted;
        p->late_ns = late_ns - granted;
        p->stall_after_ns = late_ns - granted;
    } else if (p->stall_at_ns && (late_ns < p->stall_before_ns + LATE_NS || hopeless(p, late_ns))) {
        u32 n = p->stalls;

        if (n < STALLS) {
            p->stall[n].at_ns = p->stall_at_ns;
            p->stall[n].paused_ns = p->stall_paused_ns;
            p->stall[n].until_ns = now;
            p->stalls = n + 1;
        } else {
            p->stalls_more++;
            p->stalls_more_ns += now - p->stall_at_ns;
        }
        p->stall_at_ns = 0;
    }
}

/* Notes when a frame left, unless the stream's places are used up. */
ALWAYS void mark(u32 which, struct progress *p, u64 frame, u64 at_ns)
{
    u32 n = which * marks_each + p->marks;
    struct mark *m = bpf_map_lookup_elem(&marks, &n);

    if (p->marks < marks_each && m) {
        m->frame = frame;
        m->at_ns = at_ns;
        p->marks++;
    }
}

/* Notes that a frame leaves now, and computes when the next one is due: an interval later, or at the start of the
 * next stretch. */
ALWAYS void go_on(u32 which, const struct stream *s, struct progress *p, u64 now)
{
    const struct stretch *at = &s->stretches[p->stretch & (STEPS - 1)];
    const struct stretch *next = &s->stretches[(p->stretch + 1) & (STEPS - 1)];
    u64 due = p->due_ns, frac = p->due_frac + at->interval_frac;

    note_lateness(which, s, p, now, now - due);
    p->due_ns = due + at->interval_ns + (frac >> 32);
    p->due_frac = (u32)frac;
    if (p->gate_ns < now - SLACK_NS)
        p->gate_ns = now - SLACK_NS;
    p->gate_ns += at->catch_up_ns;
    if (p->sent + 1 == next->first) {
        p->due_ns = next->due_ns;
        p->due_frac = next->due_frac;
        p->stretch++;
    }
}

/* Does the same as `count` in src/frame/noise.rs: makes a packet of noise another one in each round. */
ALWAYS int count_round(struct xdp_md *ctx, const struct stream *s, const struct template *t, u64 round)
{
    union { u64 number; u16 words[4]; } was, is;
    u16 checksum;
    u64 total;

    if (bpf_xdp_load_bytes(ctx, s->counter_at, &was, sizeof(was)))
        return 0;
    is.number = was.number ^ bpf_cpu_to_be64(s->counter ^ round);
    if (bpf_xdp_store_bytes(ctx, s->counter_at, &is, sizeof(is)))
        return 0;
    if (!t->checksum_at)
        return 1;
    if (bpf_xdp_load_bytes(ctx, t->checksum_at, &checksum, sizeof(checksum)))
        return 0;
    total = (u16)~checksum;
    for (int i = 0; i < 4; i++)
        total += (u64)(u16)~was.words[i] + is.words[i];
    checksum = ~fold16(total);
    if (!checksum)
        checksum = 0xffff; /* 0 would mean "no checksum" (RFC 768) */
    return !bpf_xdp_store_bytes(ctx, t->checksum_at, &checksum, sizeof(checksum));
}

SEC("xdp")
int send(struct xdp_md *ctx)
{
    u32 zero = 0, which = STREAMS;
    struct control *c = bpf_map_lookup_elem(&control, &zero);
    u64 due_ns = ~0ULL, fewest = ~0ULL, now;

    if (!c)
        return XDP_DROP;
    if (c->position == 0)
        c->pending = 0;
    c->position = c->position + 1 < c->batch ? c->position + 1 : 0;
    if (c->finished)
        return XDP_DROP;
    now = bpf_ktime_get_ns();
    if (c->stop) {
        c->finished = 1;
        return XDP_DROP;
    }
    for (u32 i = 0; i < STREAMS; i++) {
        u32 k = i;
        struct stream *s;
        struct progress *p;
        u64 next;

        if (i >= c->streams)
            break;
        s = bpf_map_lookup_elem(&streams, &k);
        p = bpf_map_lookup_elem(&progress, &k);
        if (!s || !p || p->sent >= s->planned || now >= s->until_ns)
            continue;
        next = p->due_ns + p->put_off_ns;
        next = next > p->gate_ns ? next : p->gate_ns;
        /* Floods are all due since the start, so they take turns. */
        if (next < due_ns || (next == due_ns && p->sent < fewest)) {
            due_ns = next;
            fewest = p->sent;
            which = i;
        }
    }
    if (which == STREAMS) {
        c->finished = 1;
        return XDP_DROP;
    }
    if (now < due_ns) {
        struct wait wait = {};

        if (c->pending)
            return XDP_DROP; /* the pending frames leave when the batch is over */
        wait.now_ns = now;
        wait.until_ns = due_ns < now + c->slice_ns ? due_ns : now + c->slice_ns;
        bpf_loop(4096, tick, &wait, 0);
        now = wait.now_ns;
        if (now < due_ns)
            return XDP_DROP; /* not due yet; other tasks may have the CPU */
    }

    struct stream *s = bpf_map_lookup_elem(&streams, &which);
    struct progress *p = bpf_map_lookup_elem(&progress, &which);

    if (!s || !p)
        return XDP_DROP;

    u64 sent = p->sent, index = s->phase + sent * s->step, flow = 0, port = 0;
    u32 slot = which * ORDER, chosen, place;

    if (s->raw) {
        chosen = index % s->raw;
    } else {
        if (s->order_length > 1)
            slot += index % s->order_length;
        u8 *kind = bpf_map_lookup_elem(&order, &slot);

        if (!kind)
            return XDP_DROP;
        chosen = *kind & (VARIANTS - 1);
    }
    place = s->template_base + chosen;
    struct template *t = bpf_map_lookup_elem(&templates, &place);

    if (!t)
        return XDP_DROP;
    u32 length = t->length;

    if (length < 46 || length > LONGEST)
        return XDP_DROP;
    if (length != (u32)(ctx->data_end - ctx->data) &&
        bpf_xdp_adjust_tail(ctx, (int)length - (int)(ctx->data_end - ctx->data)))
        return XDP_DROP;
    if (bpf_xdp_store_bytes(ctx, 0, t->bytes, length))
        return XDP_DROP;
    if (s->raw) {
        if (s->counter_at && !count_round(ctx, s, t, index / s->raw))
            return XDP_DROP;
        goto made;
    }

    const struct variant *v = &s->variants[chosen & (VARIANTS - 1)];

    if (s->flows > 1) {
        flow = index % s->flows;
        if (s->ports > 1)
            port = index / s->flows % s->ports;
    } else if (s->ports > 1) {
        port = index % s->ports;
    }
    place = s->address_base + (u32)flow;
    struct address *a = bpf_map_lookup_elem(&addresses, &place);

    if (!a)
        return XDP_DROP;

    u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    u64 sequence = s->first_sequence + index;
    u16 check = check_of(&c->key, s->id, sequence, now);
    u16 src_port = bpf_htons(v->src_port + (u16)port);
    u8 *ip = data + (v->l3 & 31), *l4 = data + (v->l4 & 127);
    u16 *header = (u16 *)(data + (v->payload & 255));

    if (ip + 40 > end || l4 + 20 > end || (u8 *)header + TEST_HEADER > end)
        return XDP_DROP;
    if (s->ipv6) {
        __builtin_memcpy(ip + 8, a->bytes, 32);
    } else {
        /* An identification is only meaningful if the frame may be fragmented (RFC 6864). */
        u16 identification = s->dont_fragment ? 0 : bpf_htons((u16)index);

        *(u16 *)(ip + 4) = identification;
        *(u16 *)(ip + 10) = ~fold16(v->ip_sum + a->sum + identification);
        __builtin_memcpy(ip + 12, a->bytes, 8);
    }
    header[0] = bpf_htons(c->key.magic);
    header[1] = bpf_htons(s->id);
    header[2] = bpf_htons((u16)(sequence >> 32));
    header[3] = bpf_htons((u16)(sequence >> 16));
    header[4] = bpf_htons((u16)sequence);
    header[5] = bpf_htons((u16)(now >> 32));
    header[6] = bpf_htons((u16)(now >> 16));
    header[7] = bpf_htons((u16)now);
    header[8] = bpf_htons(check);
    *(u16 *)l4 = src_port;

    u64 sum = v->l4_sum + a->sum + src_port;

    for (int i = 0; i < 9; i++)
        sum += header[i];
    u16 checksum = ~fold16(sum);

    if (!checksum)
        checksum = 0xffff; /* 0 would mean "no checksum" (RFC 768) */
    if (v->tcp)
        *(u16 *)(l4 + 16) = checksum;
    else
        *(u16 *)(l4 + 6) = checksum;

made:
    if (!sent)
        p->first_tx_ns = now;
    if (now - p->mark_ns >= c->mark_ns) {
        if (sent && index > p->marked + 1 && now - p->last_tx_ns >= c->mark_ns)
            mark(which, p, index - 1, p->last_tx_ns);
        mark(which, p, index, now);
        p->mark_ns = now;
        p->marked = index;
    }
    if (now >= s->tag_ns && !p->tagged) {
        p->tagged = index + 1;
        p->tagged_ns = now;
    }
    if (s->paced)
        go_on(which, s, p, now);
    p->last_tx_ns = now;
    p->sent = sent + 1;
    c->pending++;
    return bpf_redirect_map(&ports, which, XDP_DROP);
}

char _license[] SEC("license") = "Apache-2.0";
