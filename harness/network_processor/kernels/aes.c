/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AES-128, ten rounds by four tables of a kilobyte (FIPS 197). Level 0: a loop, and a fifth table for the last round, all
 * in the second fastest memory. Level 1: unrolled, as many tables as fit in the fastest memory, and the last round by two
 * of them. Level 2: all look-ups of a round are under way at once.
 */
#include "engine.h"

#define BLOCK_WORDS 4

FAST uint32_t aes_key[44];
#if LEVEL == 0
SECOND uint32_t aes_t0[256], aes_t1[256], aes_t2[256], aes_t3[256], aes_t4[256];
#elif defined ALL_LOCAL
LOCAL uint32_t aes_t0[256], aes_t1[256], aes_t2[256], aes_t3[256];
#elif defined LOCAL_MEMORY
LOCAL uint32_t aes_t0[256], aes_t1[256];
SCRATCH uint32_t aes_t2[256], aes_t3[256];
#else
SCRATCH uint32_t aes_t0[256], aes_t1[256], aes_t2[256];
SRAM uint32_t aes_t3[256];
#endif

struct context {
    uint32_t unused;
};

#define BYTE3(x) ((x) >> 24)
#define BYTE2(x) ((x) >> 16 & 255)
#define BYTE1(x) ((x) >> 8 & 255)
#define BYTE0(x) ((x) & 255)

/* One column of a round: table look-ups one after the other. */
#define COLUMN(a, b, c, d, k) (aes_t0[BYTE3(a)] ^ aes_t1[BYTE2(b)] ^ aes_t2[BYTE1(c)] ^ aes_t3[BYTE0(d)] ^ aes_key[k])
/* The last round's: the S-box is within the first two tables, whose words are 2s s s 3s and 3s 2s s s. */
#define LAST(a, b, c, d, k) \
    (aes_t1[BYTE3(a)] << 24 ^ (aes_t0[BYTE2(b)] & 0xff0000) ^ (aes_t0[BYTE1(c)] & 0xff00) ^ \
     (aes_t1[BYTE0(d)] & 255) ^ aes_key[k])

#define LOOK_UP(number, table, index) READ(number, &(table)[index], 1, LOOKED_UP)

#if LEVEL >= 2 && defined LOCAL_MEMORY
#define LOOK_UP_COLUMN(n, a, b, c, d) (void)0; LOOK_UP(2 * (n), aes_t2, BYTE1(c)); LOOK_UP(2 * (n) + 1, aes_t3, BYTE0(d))
#define NEAR_COLUMN(a, b, k) (aes_t0[BYTE3(a)] ^ aes_t1[BYTE2(b)] ^ aes_key[k])
#define FAR_COLUMN(n) (GET(2 * (n)) ^ GET(2 * (n) + 1))
#elif LEVEL >= 2
#define LOOK_UP_COLUMN(n, a, b, c, d) \
    LOOK_UP(4 * (n), aes_t3, BYTE0(d)); \
    LOOK_UP(4 * (n) + 1, aes_t0, BYTE3(a)); \
    LOOK_UP(4 * (n) + 2, aes_t1, BYTE2(b)); \
    LOOK_UP(4 * (n) + 3, aes_t2, BYTE1(c))
#define NEAR_COLUMN(a, b, k) aes_key[k]
#define FAR_COLUMN(n) (GET(4 * (n)) ^ GET(4 * (n) + 1) ^ GET(4 * (n) + 2) ^ GET(4 * (n) + 3))
#endif

#if LEVEL >= 2 && !defined ALL_LOCAL
#define ROUND(s, t, k) \
    LOOK_UP_COLUMN(0, s##0, s##1, s##2, s##3); \
    LOOK_UP_COLUMN(1, s##1, s##2, s##3, s##0); \
    LOOK_UP_COLUMN(2, s##2, s##3, s##0, s##1); \
    LOOK_UP_COLUMN(3, s##3, s##0, s##1, s##2); \
    t##0 = NEAR_COLUMN(s##0, s##1, k); \
    t##1 = NEAR_COLUMN(s##1, s##2, k + 1); \
    t##2 = NEAR_COLUMN(s##2, s##3, k + 2); \
    t##3 = NEAR_COLUMN(s##3, s##0, k + 3); \
    WAIT(LOOKED_UP); \
    t##0 ^= FAR_COLUMN(0); \
    t##1 ^= FAR_COLUMN(1); \
    t##2 ^= FAR_COLUMN(2); \
    t##3 ^= FAR_COLUMN(3)
#else
#define ROUND(s, t, k) \
    t##0 = COLUMN(s##0, s##1, s##2, s##3, k); \
    t##1 = COLUMN(s##1, s##2, s##3, s##0, (k) + 1); \
    t##2 = COLUMN(s##2, s##3, s##0, s##1, (k) + 2); \
    t##3 = COLUMN(s##3, s##0, s##1, s##2, (k) + 3)
#endif

static inline void begin(struct context *context, uint32_t thread)
{
    context->unused = thread;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    uint32_t s0 = x[0] ^ aes_key[0], s1 = x[1] ^ aes_key[1], s2 = x[2] ^ aes_key[2], s3 = x[3] ^ aes_key[3];
    uint32_t t0, t1, t2, t3;

    (void)context;
#if LEVEL == 0
    for (uint32_t k = 4; k < 40; k += 4) {
        ROUND(s, t, k);
        s0 = t0;
        s1 = t1;
        s2 = t2;
        s3 = t3;
    }
#define FINAL(a, b, c, d, k) \
    ((aes_t4[BYTE3(a)] & 0xff000000) ^ (aes_t4[BYTE2(b)] & 0xff0000) ^ (aes_t4[BYTE1(c)] & 0xff00) ^ \
     (aes_t4[BYTE0(d)] & 255) ^ aes_key[k])
    x[0] = FINAL(s0, s1, s2, s3, 40);
    x[1] = FINAL(s1, s2, s3, s0, 41);
    x[2] = FINAL(s2, s3, s0, s1, 42);
    x[3] = FINAL(s3, s0, s1, s2, 43);
#else
    ROUND(s, t, 4);
    ROUND(t, s, 8);
    ROUND(s, t, 12);
    ROUND(t, s, 16);
    ROUND(s, t, 20);
    ROUND(t, s, 24);
    ROUND(s, t, 28);
    ROUND(t, s, 32);
    ROUND(s, t, 36);
    x[0] = LAST(t0, t1, t2, t3, 40);
    x[1] = LAST(t1, t2, t3, t0, 41);
    x[2] = LAST(t2, t3, t0, t1, 42);
    x[3] = LAST(t3, t0, t1, t2, 43);
#endif
}

#include "blocks.h"
