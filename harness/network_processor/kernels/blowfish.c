/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blowfish: sixteen rounds of four table look-ups. Level 0: a loop; the S-boxes are in the second fastest memory. Level 1:
 * unrolled, and as many S-boxes as fit in the fastest. Level 2: look-ups in shared memory are under way at once.
 */
#include "engine.h"

#define BLOCK_WORDS 2

FAST uint32_t blowfish_p[18];
#if LEVEL == 0
SECOND uint32_t blowfish_s0[256], blowfish_s1[256], blowfish_s2[256], blowfish_s3[256];
#elif defined ALL_LOCAL
LOCAL uint32_t blowfish_s0[256], blowfish_s1[256], blowfish_s2[256], blowfish_s3[256];
#elif defined LOCAL_MEMORY
LOCAL uint32_t blowfish_s0[256], blowfish_s1[256];
SCRATCH uint32_t blowfish_s2[256], blowfish_s3[256];
#else
SCRATCH uint32_t blowfish_s0[256], blowfish_s1[256], blowfish_s2[256];
SRAM uint32_t blowfish_s3[256];
#endif

struct context {
    uint32_t unused;
};

#define LOOK_UP(number, table, index) READ(number, &(table)[index], 1, LOOKED_UP)

#if LEVEL >= 2 && defined LOCAL_MEMORY && !defined ALL_LOCAL
#define ROUND(l, r, i) \
    do { \
        l ^= blowfish_p[i]; \
        LOOK_UP(0, blowfish_s2, l >> 8 & 255); \
        LOOK_UP(1, blowfish_s3, l & 255); \
        uint32_t sum = blowfish_s0[l >> 24] + blowfish_s1[l >> 16 & 255]; \
        WAIT(LOOKED_UP); \
        r ^= (sum ^ GET(0)) + GET(1); \
    } while (0)
#elif LEVEL >= 2 && !defined ALL_LOCAL
#define ROUND(l, r, i) \
    do { \
        l ^= blowfish_p[i]; \
        LOOK_UP(3, blowfish_s3, l & 255); \
        LOOK_UP(0, blowfish_s0, l >> 24); \
        LOOK_UP(1, blowfish_s1, l >> 16 & 255); \
        LOOK_UP(2, blowfish_s2, l >> 8 & 255); \
        WAIT(LOOKED_UP); \
        r ^= ((GET(0) + GET(1)) ^ GET(2)) + GET(3); \
    } while (0)
#else
#define ROUND(l, r, i) \
    do { \
        l ^= blowfish_p[i]; \
        r ^= ((blowfish_s0[l >> 24] + blowfish_s1[l >> 16 & 255]) ^ blowfish_s2[l >> 8 & 255]) + \
             blowfish_s3[l & 255]; \
    } while (0)
#endif

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t l = x[0], r = x[1];

    (void)context;
#if LEVEL == 0
    for (uint32_t i = 0; i < 16; i += 2) {
        ROUND(l, r, i);
        ROUND(r, l, i + 1);
    }
#else
#define FOUR_ROUNDS(i) \
    ROUND(l, r, i); \
    ROUND(r, l, (i) + 1); \
    ROUND(l, r, (i) + 2); \
    ROUND(r, l, (i) + 3)
    FOUR_ROUNDS(0);
    FOUR_ROUNDS(4);
    FOUR_ROUNDS(8);
    FOUR_ROUNDS(12);
#endif
    x[0] = r ^ blowfish_p[17];
    x[1] = l ^ blowfish_p[16];
}

#include "blocks.h"
