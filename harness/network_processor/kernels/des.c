/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DES by eight tables that join each S-box with the permutation after it (FIPS 46-3). Both halves are kept rotated by one
 * bit, so that the six bits of each S-box are adjacent. Level 0: a loop of eight double rounds. Level 1: unrolled.
 * Level 2: where the tables are in shared memory, a round's eight look-ups are under way at once.
 */
#include "engine.h"

#define BLOCK_WORDS 2

FAST uint32_t des_key[32];
FAST uint32_t des_sp[512];

struct context {
    uint32_t unused;
};

#define SIX(x, shift) ((x) >> (shift) & 63)

#if LEVEL >= 2 && !defined LOCAL_MEMORY
#define LOOK_UP(number, index) READ(number, &des_sp[index], 1, LOOKED_UP)
#define ROUND(l, r, k) \
    do { \
        uint32_t odd = rotate_right(r, 4) ^ des_key[k], even = (r) ^ des_key[(k) + 1]; \
        LOOK_UP(0, SIX(odd, 24)); \
        LOOK_UP(1, 128 + SIX(odd, 16)); \
        LOOK_UP(2, 256 + SIX(odd, 8)); \
        LOOK_UP(3, 384 + SIX(odd, 0)); \
        LOOK_UP(4, 64 + SIX(even, 24)); \
        LOOK_UP(5, 192 + SIX(even, 16)); \
        LOOK_UP(6, 320 + SIX(even, 8)); \
        LOOK_UP(7, 448 + SIX(even, 0)); \
        WAIT(LOOKED_UP); \
        l ^= GET(0) | GET(1) | GET(2) | GET(3) | GET(4) | GET(5) | GET(6) | GET(7); \
    } while (0)
#else
#define ROUND(l, r, k) \
    do { \
        uint32_t odd = rotate_right(r, 4) ^ des_key[k], even = (r) ^ des_key[(k) + 1]; \
        l ^= des_sp[SIX(odd, 24)] | des_sp[128 + SIX(odd, 16)] | des_sp[256 + SIX(odd, 8)] | \
             des_sp[384 + SIX(odd, 0)] | des_sp[64 + SIX(even, 24)] | des_sp[192 + SIX(even, 16)] | \
             des_sp[320 + SIX(even, 8)] | des_sp[448 + SIX(even, 0)]; \
    } while (0)
#endif

/* Swap the bits of `a`, shifted, with those of `b` under the mask. */
#define SWAP(a, b, shift, mask) \
    do { \
        uint32_t t = ((a) >> (shift) ^ (b)) & (mask); \
        b ^= t; \
        a ^= t << (shift); \
    } while (0)

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t l = x[0], r = x[1];

    (void)context;
    SWAP(l, r, 4, 0x0f0f0f0f);
    SWAP(l, r, 16, 0x0000ffff);
    SWAP(r, l, 2, 0x33333333);
    SWAP(r, l, 8, 0x00ff00ff);
    r = rotate_left(r, 1);
    SWAP(l, r, 0, 0xaaaaaaaa);
    l = rotate_left(l, 1);
#if LEVEL == 0
    for (uint32_t k = 0; k < 32; k += 4) {
        ROUND(l, r, k);
        ROUND(r, l, k + 2);
    }
#else
#define FOUR_ROUNDS(k) \
    ROUND(l, r, k); \
    ROUND(r, l, (k) + 2); \
    ROUND(l, r, (k) + 4); \
    ROUND(r, l, (k) + 6)
    FOUR_ROUNDS(0);
    FOUR_ROUNDS(8);
    FOUR_ROUNDS(16);
    FOUR_ROUNDS(24);
#endif
    r = rotate_right(r, 1);
    SWAP(l, r, 0, 0xaaaaaaaa);
    l = rotate_right(l, 1);
    SWAP(l, r, 8, 0x00ff00ff);
    SWAP(l, r, 2, 0x33333333);
    SWAP(r, l, 16, 0x0000ffff);
    SWAP(r, l, 4, 0x0f0f0f0f);
    x[0] = r;
    x[1] = l;
}

#include "blocks.h"
