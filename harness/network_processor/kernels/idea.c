/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IDEA: four words of sixteen bits, eight and a half rounds of multiplication modulo 65537. Level 0: a loop, and zero is
 * told apart by branches. Level 1: unrolled.
 */
#include "engine.h"

#define BLOCK_WORDS 2

FAST uint32_t idea_key[52];

struct context {
    uint32_t unused;
};

/* Multiply modulo 65537, where 0 stands for 65536. */
static inline __attribute__((always_inline)) uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = a * b;

    if (product) {
        uint32_t low = product & 0xffff, high = product >> 16;

        return (low - high + (low < high)) & 0xffff;
    }
    return (1 - a - b) & 0xffff;
}

#define PLUS(a, b) (((a) + (b)) & 0xffff)

#define ROUND(k) \
    do { \
        a = times(a, idea_key[k]); \
        b = PLUS(b, idea_key[(k) + 1]); \
        c = PLUS(c, idea_key[(k) + 2]); \
        d = times(d, idea_key[(k) + 3]); \
        uint32_t u = times(a ^ c, idea_key[(k) + 4]); \
        uint32_t v = times(PLUS(b ^ d, u), idea_key[(k) + 5]); \
        uint32_t w = PLUS(u, v), from_b = b; \
        a ^= v; \
        b = c ^ v; \
        c = from_b ^ w; \
        d ^= w; \
    } while (0)

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t a = x[0] >> 16, b = x[0] & 0xffff, c = x[1] >> 16, d = x[1] & 0xffff;

    (void)context;
#if LEVEL == 0
    for (uint32_t k = 0; k < 48; k += 6)
        ROUND(k);
#else
    ROUND(0);
    ROUND(6);
    ROUND(12);
    ROUND(18);
    ROUND(24);
    ROUND(30);
    ROUND(36);
    ROUND(42);
#endif
    x[0] = times(a, idea_key[48]) << 16 | PLUS(c, idea_key[49]);
    x[1] = PLUS(b, idea_key[50]) << 16 | times(d, idea_key[51]);
}

#include "blocks.h"
