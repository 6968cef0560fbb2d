/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC4: each thread has a flow with a state of its own. Level 0: a word for each of its 256 bytes, one flow an engine.
 * Level 1: bytes, so that eight flows fit, and sixteen steps unrolled. What follows is the loop around it.
 */
#include "engine.h"

#define BLOCK_WORDS 4

#if LEVEL == 0
#ifdef LOCAL_MEMORY
LOCAL uint32_t rc4_words[256];
#else
SRAM uint32_t rc4_words[256];
#endif
typedef uint32_t entry;
#elif defined LOCAL_MEMORY
#define FLOWS 8 /* of one engine */
LOCAL uint8_t rc4_bytes[FLOWS][256];
typedef uint8_t entry;
#else
#define FLOWS 8 /* of all engines */
SCRATCH uint8_t rc4_bytes[FLOWS][256];
typedef uint8_t entry;
#endif

struct context {
    entry *state;
    uint32_t i, j;
};

static inline __attribute__((always_inline)) uint32_t step(struct context *context)
{
    entry *state = context->state;
    uint32_t at_i, at_j;

    context->i = (context->i + 1) & 255;
    at_i = state[context->i];
    context->j = (context->j + at_i) & 255;
    at_j = state[context->j];
    state[context->i] = (entry)at_j;
    state[context->j] = (entry)at_i;
    return state[(at_i + at_j) & 255];
}

static inline void begin(struct context *context, uint32_t thread)
{
#if LEVEL == 0
    (void)thread;
    context->state = rc4_words;
#else
    context->state = rc4_bytes[thread & (FLOWS - 1)];
#endif
    context->i = context->j = 0;
}

static inline __attribute__((always_inline)) void encrypt(struct context *context, uint32_t x[BLOCK_WORDS])
{
#if LEVEL == 0
#define WORD(k) \
    for (uint32_t shift = 0; shift < 32; shift += 8) \
    x[k] ^= step(context) << shift
#else
#define WORD(k) \
    x[k] ^= step(context); \
    x[k] ^= step(context) << 8; \
    x[k] ^= step(context) << 16; \
    x[k] ^= step(context) << 24
#endif
    WORD(0);
    WORD(1);
    WORD(2);
    WORD(3);
}

#include "blocks.h"
