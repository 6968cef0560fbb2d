/* SPDX-License-Identifier: Apache-2.0 */
/* RC5-32/16: two words, sixteen rounds of rotations by what the data say. Level 0: a loop. Level 1: unrolled. */
#include "engine.h"

#define BLOCK_WORDS 2

FAST uint32_t rc5_key[34];

struct context {
    uint32_t unused;
};

#define ROUND(i) \
    a = rotate_left(a ^ b, b) + rc5_key[2 * (i)]; \
    b = rotate_left(b ^ a, a) + rc5_key[2 * (i) + 1]

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t a = x[0] + rc5_key[0], b = x[1] + rc5_key[1];

    (void)context;
#if LEVEL == 0
    for (uint32_t i = 1; i <= 16; i++) {
        ROUND(i);
    }
#else
#define FOUR_ROUNDS(i) \
    ROUND(i); \
    ROUND((i) + 1); \
    ROUND((i) + 2); \
    ROUND((i) + 3)
    FOUR_ROUNDS(1);
    FOUR_ROUNDS(5);
    FOUR_ROUNDS(9);
    FOUR_ROUNDS(13);
#endif
    x[0] = a;
    x[1] = b;
}

#include "blocks.h"
