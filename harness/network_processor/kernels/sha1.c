/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1, the schedule in sixteen words that are written over (FIPS 180-2). Level 0: four loops of twenty steps. Level 1:
 * unrolled, so that no variable moves and the schedule's words have fixed places.
 */
#include "engine.h"

#define STATE_WORDS 5
#define TAKES_ALL

#define CHOOSE(x, y, z) ((((y) ^ (z)) & (x)) ^ (z))
#define PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define MAJORITY(x, y, z) (((x) & (y)) | (((x) | (y)) & (z)))

#define TAKE(at) \
    w[0] = GET((at) + 0); \
    w[1] = GET((at) + 1); \
    w[2] = GET((at) + 2); \
    w[3] = GET((at) + 3); \
    w[4] = GET((at) + 4); \
    w[5] = GET((at) + 5); \
    w[6] = GET((at) + 6); \
    w[7] = GET((at) + 7); \
    w[8] = GET((at) + 8); \
    w[9] = GET((at) + 9); \
    w[10] = GET((at) + 10); \
    w[11] = GET((at) + 11); \
    w[12] = GET((at) + 12); \
    w[13] = GET((at) + 13); \
    w[14] = GET((at) + 14); \
    w[15] = GET((at) + 15); \
    (void)0

#if LEVEL == 0
#define TWENTY(f, from, constant) \
    for (uint32_t t = from; t < (from) + 20; t++) { \
        if (t >= 16) \
            w[t & 15] = rotate_left(w[(t + 13) & 15] ^ w[(t + 8) & 15] ^ w[(t + 2) & 15] ^ w[t & 15], 1); \
        uint32_t sum = rotate_left(a, 5) + f(b, c, d) + e + constant + w[t & 15]; \
        e = d; \
        d = c; \
        c = rotate_left(b, 30); \
        b = a; \
        a = sum; \
    }
#define STEPS \
    TWENTY(CHOOSE, 0, 0x5a827999) \
    TWENTY(PARITY, 20, 0x6ed9eba1) \
    TWENTY(MAJORITY, 40, 0x8f1bbcdc) \
    TWENTY(PARITY, 60, 0xca62c1d6)
#else
#define MIX(i, j, k, l) (w[i] = rotate_left(w[j] ^ w[k] ^ w[l] ^ w[i], 1))
#define STEP(f, a, b, c, d, e, word, constant) \
    e += rotate_left(a, 5) + f(b, c, d) + constant + (word); \
    b = rotate_left(b, 30)
#define STEPS \
    STEP(CHOOSE, a, b, c, d, e, w[0], 0x5a827999); \
    STEP(CHOOSE, e, a, b, c, d, w[1], 0x5a827999); \
    STEP(CHOOSE, d, e, a, b, c, w[2], 0x5a827999); \
    STEP(CHOOSE, c, d, e, a, b, w[3], 0x5a827999); \
    STEP(CHOOSE, b, c, d, e, a, w[4], 0x5a827999); \
    STEP(CHOOSE, a, b, c, d, e, w[5], 0x5a827999); \
    STEP(CHOOSE, e, a, b, c, d, w[6], 0x5a827999); \
    STEP(CHOOSE, d, e, a, b, c, w[7], 0x5a827999); \
    STEP(CHOOSE, c, d, e, a, b, w[8], 0x5a827999); \
    STEP(CHOOSE, b, c, d, e, a, w[9], 0x5a827999); \
    STEP(CHOOSE, a, b, c, d, e, w[10], 0x5a827999); \
    STEP(CHOOSE, e, a, b, c, d, w[11], 0x5a827999); \
    STEP(CHOOSE, d, e, a, b, c, w[12], 0x5a827999); \
    STEP(CHOOSE, c, d, e, a, b, w[13], 0x5a827999); \
    STEP(CHOOSE, b, c, d, e, a, w[14], 0x5a827999); \
    STEP(CHOOSE, a, b, c, d, e, w[15], 0x5a827999); \
    STEP(CHOOSE, e, a, b, c, d, MIX(0, 13, 8, 2), 0x5a827999); \
    STEP(CHOOSE, d, e, a, b, c, MIX(1, 14, 9, 3), 0x5a827999); \
    STEP(CHOOSE, c, d, e, a, b, MIX(2, 15, 10, 4), 0x5a827999); \
    STEP(CHOOSE, b, c, d, e, a, MIX(3, 0, 11, 5), 0x5a827999); \
    STEP(PARITY, a, b, c, d, e, MIX(4, 1, 12, 6), 0x6ed9eba1); \
    STEP(PARITY, e, a, b, c, d, MIX(5, 2, 13, 7), 0x6ed9eba1); \
    STEP(PARITY, d, e, a, b, c, MIX(6, 3, 14, 8), 0x6ed9eba1); \
    STEP(PARITY, c, d, e, a, b, MIX(7, 4, 15, 9), 0x6ed9eba1); \
    STEP(PARITY, b, c, d, e, a, MIX(8, 5, 0, 10), 0x6ed9eba1); \
    STEP(PARITY, a, b, c, d, e, MIX(9, 6, 1, 11), 0x6ed9eba1); \
    STEP(PARITY, e, a, b, c, d, MIX(10, 7, 2, 12), 0x6ed9eba1); \
    STEP(PARITY, d, e, a, b, c, MIX(11, 8, 3, 13), 0x6ed9eba1); \
    STEP(PARITY, c, d, e, a, b, MIX(12, 9, 4, 14), 0x6ed9eba1); \
    STEP(PARITY, b, c, d, e, a, MIX(13, 10, 5, 15), 0x6ed9eba1); \
    STEP(PARITY, a, b, c, d, e, MIX(14, 11, 6, 0), 0x6ed9eba1); \
    STEP(PARITY, e, a, b, c, d, MIX(15, 12, 7, 1), 0x6ed9eba1); \
    STEP(PARITY, d, e, a, b, c, MIX(0, 13, 8, 2), 0x6ed9eba1); \
    STEP(PARITY, c, d, e, a, b, MIX(1, 14, 9, 3), 0x6ed9eba1); \
    STEP(PARITY, b, c, d, e, a, MIX(2, 15, 10, 4), 0x6ed9eba1); \
    STEP(PARITY, a, b, c, d, e, MIX(3, 0, 11, 5), 0x6ed9eba1); \
    STEP(PARITY, e, a, b, c, d, MIX(4, 1, 12, 6), 0x6ed9eba1); \
    STEP(PARITY, d, e, a, b, c, MIX(5, 2, 13, 7), 0x6ed9eba1); \
    STEP(PARITY, c, d, e, a, b, MIX(6, 3, 14, 8), 0x6ed9eba1); \
    STEP(PARITY, b, c, d, e, a, MIX(7, 4, 15, 9), 0x6ed9eba1); \
    STEP(MAJORITY, a, b, c, d, e, MIX(8, 5, 0, 10), 0x8f1bbcdc); \
    STEP(MAJORITY, e, a, b, c, d, MIX(9, 6, 1, 11), 0x8f1bbcdc); \
    STEP(MAJORITY, d, e, a, b, c, MIX(10, 7, 2, 12), 0x8f1bbcdc); \
    STEP(MAJORITY, c, d, e, a, b, MIX(11, 8, 3, 13), 0x8f1bbcdc); \
    STEP(MAJORITY, b, c, d, e, a, MIX(12, 9, 4, 14), 0x8f1bbcdc); \
    STEP(MAJORITY, a, b, c, d, e, MIX(13, 10, 5, 15), 0x8f1bbcdc); \
    STEP(MAJORITY, e, a, b, c, d, MIX(14, 11, 6, 0), 0x8f1bbcdc); \
    STEP(MAJORITY, d, e, a, b, c, MIX(15, 12, 7, 1), 0x8f1bbcdc); \
    STEP(MAJORITY, c, d, e, a, b, MIX(0, 13, 8, 2), 0x8f1bbcdc); \
    STEP(MAJORITY, b, c, d, e, a, MIX(1, 14, 9, 3), 0x8f1bbcdc); \
    STEP(MAJORITY, a, b, c, d, e, MIX(2, 15, 10, 4), 0x8f1bbcdc); \
    STEP(MAJORITY, e, a, b, c, d, MIX(3, 0, 11, 5), 0x8f1bbcdc); \
    STEP(MAJORITY, d, e, a, b, c, MIX(4, 1, 12, 6), 0x8f1bbcdc); \
    STEP(MAJORITY, c, d, e, a, b, MIX(5, 2, 13, 7), 0x8f1bbcdc); \
    STEP(MAJORITY, b, c, d, e, a, MIX(6, 3, 14, 8), 0x8f1bbcdc); \
    STEP(MAJORITY, a, b, c, d, e, MIX(7, 4, 15, 9), 0x8f1bbcdc); \
    STEP(MAJORITY, e, a, b, c, d, MIX(8, 5, 0, 10), 0x8f1bbcdc); \
    STEP(MAJORITY, d, e, a, b, c, MIX(9, 6, 1, 11), 0x8f1bbcdc); \
    STEP(MAJORITY, c, d, e, a, b, MIX(10, 7, 2, 12), 0x8f1bbcdc); \
    STEP(MAJORITY, b, c, d, e, a, MIX(11, 8, 3, 13), 0x8f1bbcdc); \
    STEP(PARITY, a, b, c, d, e, MIX(12, 9, 4, 14), 0xca62c1d6); \
    STEP(PARITY, e, a, b, c, d, MIX(13, 10, 5, 15), 0xca62c1d6); \
    STEP(PARITY, d, e, a, b, c, MIX(14, 11, 6, 0), 0xca62c1d6); \
    STEP(PARITY, c, d, e, a, b, MIX(15, 12, 7, 1), 0xca62c1d6); \
    STEP(PARITY, b, c, d, e, a, MIX(0, 13, 8, 2), 0xca62c1d6); \
    STEP(PARITY, a, b, c, d, e, MIX(1, 14, 9, 3), 0xca62c1d6); \
    STEP(PARITY, e, a, b, c, d, MIX(2, 15, 10, 4), 0xca62c1d6); \
    STEP(PARITY, d, e, a, b, c, MIX(3, 0, 11, 5), 0xca62c1d6); \
    STEP(PARITY, c, d, e, a, b, MIX(4, 1, 12, 6), 0xca62c1d6); \
    STEP(PARITY, b, c, d, e, a, MIX(5, 2, 13, 7), 0xca62c1d6); \
    STEP(PARITY, a, b, c, d, e, MIX(6, 3, 14, 8), 0xca62c1d6); \
    STEP(PARITY, e, a, b, c, d, MIX(7, 4, 15, 9), 0xca62c1d6); \
    STEP(PARITY, d, e, a, b, c, MIX(8, 5, 0, 10), 0xca62c1d6); \
    STEP(PARITY, c, d, e, a, b, MIX(9, 6, 1, 11), 0xca62c1d6); \
    STEP(PARITY, b, c, d, e, a, MIX(10, 7, 2, 12), 0xca62c1d6); \
    STEP(PARITY, a, b, c, d, e, MIX(11, 8, 3, 13), 0xca62c1d6); \
    STEP(PARITY, e, a, b, c, d, MIX(12, 9, 4, 14), 0xca62c1d6); \
    STEP(PARITY, d, e, a, b, c, MIX(13, 10, 5, 15), 0xca62c1d6); \
    STEP(PARITY, c, d, e, a, b, MIX(14, 11, 6, 0), 0xca62c1d6); \
    STEP(PARITY, b, c, d, e, a, MIX(15, 12, 7, 1), 0xca62c1d6); \
    (void)0;
#endif

#define COMPRESS(at, when_free) \
    do { \
        uint32_t w[16], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4]; \
        TAKE(at); \
        when_free; \
        STEPS \
        h[0] += a; \
        h[1] += b; \
        h[2] += c; \
        h[3] += d; \
        h[4] += e; \
    } while (0)

static inline __attribute__((always_inline)) void begin(uint32_t h[STATE_WORDS])
{
    h[0] = 0x67452301;
    h[1] = 0xefcdab89;
    h[2] = 0x98badcfe;
    h[3] = 0x10325476;
    h[4] = 0xc3d2e1f0;
}

#include "hashes.h"
