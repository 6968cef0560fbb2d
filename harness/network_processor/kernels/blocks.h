/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop around a cipher: blocks come from DRAM and go back there. Included by a kernel that defines BLOCK_WORDS (2 or
 * 4), `struct context`, `begin` and `encrypt`.
 *
 * Levels 0 and 1: a block is read, awaited, encrypted, written, awaited. Level 2: the next block is on its way while
 * this one is encrypted, and nobody waits for a write before the next one. Level 3: the same with bursts of 64 bytes.
 */
#include "engine.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#if LEVEL == 3
#define BURST CHUNK_WORDS
#define TAKEN(k) GET_AT(DATA + (k), at)
#define GIVE(k) PUT_AT(k, at, x[k])
#else
#define BURST BLOCK_WORDS
#define TAKEN(k) GET(DATA + (k))
#define GIVE(k) PUT(k, x[k])
#endif

#if BLOCK_WORDS == 4
#define TAKE() (x[0] = TAKEN(0), x[1] = TAKEN(1), x[2] = TAKEN(2), x[3] = TAKEN(3))
#define GIVE_ALL() \
    do { \
        GIVE(0); \
        GIVE(1); \
        GIVE(2); \
        GIVE(3); \
    } while (0)
#else
#define TAKE() (x[0] = TAKEN(0), x[1] = TAKEN(1))
#define GIVE_ALL() \
    do { \
        GIVE(0); \
        GIVE(1); \
    } while (0)
#endif

void kernel(const uint32_t *in, uint32_t *out, uint32_t chunks, uint32_t thread)
{
    struct context context;
    uint32_t x[BLOCK_WORDS];

    begin(&context, thread);
#if LEVEL >= 2
    READ(DATA, in, BURST, ARRIVED);
#endif
    for (uint32_t left = chunks * (CHUNK_WORDS / BURST); left; left--) {
#if LEVEL < 2
        READ(DATA, in, BURST, ARRIVED);
        WAIT(ARRIVED);
        TAKE();
        in += BURST;
        encrypt(&context, x);
        GIVE_ALL();
        WRITE(0, out, BURST, WRITTEN);
        WAIT(WRITTEN);
#elif LEVEL == 2
        WAIT(ARRIVED);
        TAKE();
        in += BURST;
        READ(DATA, in, BURST, ARRIVED); /* the last one reads beyond the end, where there is room */
        encrypt(&context, x);
        WAIT(WRITTEN);
        GIVE_ALL();
        WRITE(0, out, BURST, WRITTEN);
#else
        WAIT(ARRIVED);
        WAIT(WRITTEN);
        for (uint32_t at = 0; at < BURST; at += BLOCK_WORDS) {
            TAKE();
            if (at == BURST - BLOCK_WORDS) {
                in += BURST;
                READ(DATA, in, BURST, ARRIVED);
            }
            encrypt(&context, x);
            GIVE_ALL();
        }
        WRITE(0, out, BURST, WRITTEN);
#endif
        out += BURST;
    }
#if LEVEL >= 2
    WAIT(WRITTEN);
#endif
}
