/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that the programs share with src/xdp/layout.rs and src/frame/test_header.rs: the layout of the maps
 * and the check of a test header. */
#pragma once

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define STREAMS 8         /* most streams that one program serves */
#define LONGEST 3456      /* most bytes of a frame without FCS: the rest of its page holds the kernel's own data */
#define ORDER 4096        /* most frames in the cycle of a mix */
#define VARIANTS 64       /* most different frames in a cycle */
#define TEST_HEADER 18
#define NUMBER_MASK ((1ULL << 48) - 1)
#define ALWAYS static __attribute__((always_inline)) inline

/* An HdrHistogram of 1 ns to 100 s with three significant digits, with the slots of the Rust crate. */
#define SUB_BITS 11
#define HDR_SLOTS 28672

struct run_key {
    u64 secret;
    u16 magic;
    u16 unused[3];
};

/* Folds a 128-bit product, as src/frame/test_header.rs does. BPF has no multiplication of more than 64 bits. */
ALWAYS u64 mix(u64 a, u64 b)
{
    u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    u64 low = al * bl, one = ah * bl, two = al * bh, high = ah * bh;
    u64 middle = (low >> 32) + (u32)one + (u32)two;

    high += (one >> 32) + (two >> 32) + (middle >> 32);
    return (middle << 32 | (u32)low) ^ high;
}

ALWAYS u16 check_of(const struct run_key *key, u16 stream, u64 sequence, u64 time)
{
    u64 first = (u64)key->magic << 48 | (u64)stream << 32 | sequence >> 16;
    u64 second = sequence << 48 | (time & NUMBER_MASK);
    u64 rotated = key->secret << 32 | key->secret >> 32;
    u64 mixed = mix(first ^ key->secret ^ 0xe7037ed1a0b428dbULL, second ^ rotated ^ 0x8ebc6af09c88c6e3ULL);

    return (u16)(mixed ^ mixed >> 32 ^ mixed >> 16);
}

/* Returns the position of the highest bit that is set. clang 14 crashes on __builtin_clzll for BPF. */
ALWAYS u32 highest_bit(u64 value)
{
    u32 at = 0;

    if (value >> 32) {
        at += 32;
        value >>= 32;
    }
    if (value >> 16) {
        at += 16;
        value >>= 16;
    }
    if (value >> 8) {
        at += 8;
        value >>= 8;
    }
    if (value >> 4) {
        at += 4;
        value >>= 4;
    }
    if (value >> 2) {
        at += 2;
        value >>= 2;
    }
    return at + (value >> 1);
}

ALWAYS u32 hdr_slot(u64 value)
{
    u32 bucket = highest_bit(value | ((1 << SUB_BITS) - 1)) + 1 - SUB_BITS;
    u64 slot = ((u64)bucket << (SUB_BITS - 1)) + (value >> bucket);

    return slot < HDR_SLOTS ? slot : HDR_SLOTS - 1;
}

/* Returns whether a frame is ARP or ICMPv6, with up to two VLAN tags: gateways resolve the tester's address by them. */
ALWAYS int is_for_neighbours(const u8 *data, const u8 *end)
{
    for (int tags = 0; tags < 2; tags++) {
        if (data + 18 > end || (*(const u16 *)(data + 12) != bpf_htons(0x8100) &&
                                *(const u16 *)(data + 12) != bpf_htons(0x88a8)))
            break;
        data += 4;
    }
    if (data + 21 > end)
        return 0;
    u16 type = *(const u16 *)(data + 12);

    return type == bpf_htons(0x0806) || (type == bpf_htons(0x86dd) && data[20] == 58);
}

/* One's complement sums may be computed in any byte order (RFC 1071, 2 B). These are in the machine's order. */
ALWAYS u64 fold32(u64 sum)
{
    sum = (u32)sum + (sum >> 32);
    sum = (u32)sum + (sum >> 32);
    return sum;
}

ALWAYS u16 fold16(u64 sum)
{
    sum = fold32(sum);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (u16)sum;
}
