/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC6-32/20: four words, twenty rounds of two multiplications each. Level 0: a loop that moves the words on. Level 1: four
 * rounds unrolled, after which each word is back in its place.
 */
#include "engine.h"

#define BLOCK_WORDS 4

FAST uint32_t rc6_key[44];

struct context {
    uint32_t unused;
};

#define ROUND(a, b, c, d, i) \
    do { \
        uint32_t t = rotate_left(b * (2 * b + 1), 5), u = rotate_left(d * (2 * d + 1), 5); \
        a = rotate_left(a ^ t, u) + rc6_key[i]; \
        c = rotate_left(c ^ u, t) + rc6_key[(i) + 1]; \
    } while (0)

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t a = x[0], b = x[1] + rc6_key[0], c = x[2], d = x[3] + rc6_key[1];

    (void)context;
#if LEVEL == 0
    for (uint32_t i = 2; i < 42; i += 2) {
        ROUND(a, b, c, d, i);
        uint32_t first = a;
        a = b;
        b = c;
        c = d;
        d = first;
    }
#else
#define FOUR_ROUNDS(i) \
    ROUND(a, b, c, d, i); \
    ROUND(b, c, d, a, (i) + 2); \
    ROUND(c, d, a, b, (i) + 4); \
    ROUND(d, a, b, c, (i) + 6)
    FOUR_ROUNDS(2);
    FOUR_ROUNDS(10);
    FOUR_ROUNDS(18);
    FOUR_ROUNDS(26);
    FOUR_ROUNDS(34);
#endif
    x[0] = a + rc6_key[42];
    x[1] = b;
    x[2] = c + rc6_key[43];
    x[3] = d;
}

#include "blocks.h"
