/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SEAL 2.0, up to four kilobytes of key stream for each thread's number. Level 0: all tables in the second fastest memory
 * (SRAM where there is no local memory). Level 1: the one that is looked into eight times for a block in the fastest.
 * Level 2: the four words that mask a block are on their way while it is made.
 */
#include "engine.h"

#define BLOCK_WORDS 4

FAST uint32_t seal_n[1];
#if LEVEL == 0
SECOND uint32_t seal_t[512], seal_s[256], seal_r[16];
#elif defined LOCAL_MEMORY
LOCAL uint32_t seal_t[512];
SCRATCH uint32_t seal_s[256], seal_r[16];
#else
SCRATCH uint32_t seal_t[512], seal_s[256], seal_r[16];
#endif

struct context {
    uint32_t a, b, c, d, n1, n2, n3, n4;
    uint32_t number, made; /* made: blocks */
};

#define T(p) (*(const uint32_t *)((const char *)seal_t + (p)))
#define ADD(to, from) \
    do { \
        uint32_t p = from & 0x7fc; \
        to += T(p); \
        from = rotate_right(from, 9); \
    } while (0)

static inline void begin(struct context *context, uint32_t thread)
{
    context->number = seal_n[0] + thread;
    context->made = 0;
    context->a = context->b = context->c = context->d = 0;
    context->n1 = context->n2 = context->n3 = context->n4 = 0;
}

/* Begin the next kilobyte. */
static inline __attribute__((always_inline)) void initialise(struct context *context)
{
    const uint32_t *r = seal_r + context->made / 16;
    uint32_t n = context->number;
    uint32_t a = n ^ r[0], b = rotate_right(n, 8) ^ r[1];
    uint32_t c = rotate_right(n, 16) ^ r[2], d = rotate_right(n, 24) ^ r[3];

    for (int turn = 0; turn < 2; turn++) {
        ADD(b, a);
        ADD(c, b);
        ADD(d, c);
        ADD(a, d);
    }
    context->n1 = d;
    context->n2 = b;
    context->n3 = a;
    context->n4 = c;
    ADD(b, a);
    ADD(c, b);
    ADD(d, c);
    ADD(a, d);
    context->a = a;
    context->b = b;
    context->c = c;
    context->d = d;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
    const uint32_t *s = seal_s + context->made % 64 * 4;
    uint32_t a, b, c, d, p, q;

    if (context->made % 64 == 0)
        initialise(context);
#if LEVEL >= 2
    READ(0, s, 4, LOOKED_UP);
#endif
    a = context->a;
    b = context->b;
    c = context->c;
    d = context->d;
    p = a & 0x7fc;
    b += T(p);
    a = rotate_right(a, 9);
    b ^= a;
    q = b & 0x7fc;
    c ^= T(q);
    b = rotate_right(b, 9);
    c += b;
    p = (p + c) & 0x7fc;
    d += T(p);
    c = rotate_right(c, 9);
    d ^= c;
    q = (q + d) & 0x7fc;
    a ^= T(q);
    d = rotate_right(d, 9);
    a += d;
    p = (p + a) & 0x7fc;
    b ^= T(p);
    a = rotate_right(a, 9);
    q = (q + b) & 0x7fc;
    c += T(q);
    b = rotate_right(b, 9);
    p = (p + c) & 0x7fc;
    d ^= T(p);
    c = rotate_right(c, 9);
    q = (q + d) & 0x7fc;
    a += T(q);
    d = rotate_right(d, 9);
#if LEVEL >= 2
    WAIT(LOOKED_UP);
    x[0] ^= b + GET(0);
    x[1] ^= c ^ GET(1);
    x[2] ^= d + GET(2);
    x[3] ^= a ^ GET(3);
#else
    x[0] ^= b + s[0];
    x[1] ^= c ^ s[1];
    x[2] ^= d + s[2];
    x[3] ^= a ^ s[3];
#endif
    /* The first of a pair of blocks takes n1 and n2, the second n3 and n4. */
    if (context->made % 2 == 0) {
        a += context->n1;
        c += context->n2;
    } else {
        a += context->n3;
        c += context->n4;
    }
    context->a = a;
    context->b = b;
    context->c = c;
    context->d = d;
    context->made++;
}

#include "blocks.h"
