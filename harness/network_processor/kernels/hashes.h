/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop around a hash: blocks of 64 bytes come from DRAM in one burst, the digest goes there at the end. Included by
 * a kernel that defines STATE_WORDS, `begin` and COMPRESS(first transfer register of the block, what is done as soon as
 * these registers are free). TAKES_ALL: they are before the work begins; else after it.
 *
 * Levels 0 and 1: a block is read and awaited. Level 2: the next block is on its way, if need be into the other half of
 * the transfer registers. Level 3 is level 2: a burst cannot be longer.
 */
void kernel(const uint32_t *in, uint32_t *out, uint32_t chunks, uint32_t thread)
{
    uint32_t h[STATE_WORDS];

    (void)thread;
    begin(h);
#if LEVEL < 2
    for (uint32_t left = chunks; left; left--) {
        READ(0, in, CHUNK_WORDS, ARRIVED);
        WAIT(ARRIVED);
        COMPRESS(0, (void)0);
        in += CHUNK_WORDS;
    }
#elif defined TAKES_ALL
    READ(0, in, CHUNK_WORDS, ARRIVED);
    for (uint32_t left = chunks; left; left--) {
        WAIT(ARRIVED);
        in += CHUNK_WORDS;
        COMPRESS(0, READ(0, in, CHUNK_WORDS, ARRIVED)); /* the last one reads beyond the end, where there is room */
    }
#else
    READ(0, in, CHUNK_WORDS, ARRIVED);
    for (uint32_t left = chunks; left; left -= 2) { /* blocks come in pairs: chunks is even */
        WAIT(ARRIVED);
        in += CHUNK_WORDS;
        READ(DATA, in, CHUNK_WORDS, ARRIVED);
        COMPRESS(0, (void)0);
        WAIT(ARRIVED);
        in += CHUNK_WORDS;
        READ(0, in, CHUNK_WORDS, ARRIVED); /* the last one reads beyond the end, where there is room */
        COMPRESS(DATA, (void)0);
    }
#endif
    PUT(0, h[0]);
    PUT(1, h[1]);
    PUT(2, h[2]);
    PUT(3, h[3]);
#if STATE_WORDS == 5
    PUT(4, h[4]);
#endif
    WRITE(0, out, STATE_WORDS, WRITTEN);
    WAIT(WRITTEN);
}
