/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a kernel on any computer with a C library: benchmarks/emulated_duts/cipher_kernels.py writes `data.h` beside it,
 * with its tables and data. Prints the output of the first call, then nanoseconds of the fastest of several series of calls.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "data.h"
#include "engine.h"

uint32_t engine_in[64], engine_out[64];

#define SERIES 25
#define CALLS 20

/* A kernel that reads ahead reads a chunk beyond the end. */
static uint32_t in[DATA_WORDS + CHUNK_WORDS];
static uint32_t out[DATA_WORDS];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(void)
{
    uint64_t best = UINT64_MAX;

    memcpy(in, data, sizeof(data));
    set_tables();
    kernel(in, out, DATA_WORDS / CHUNK_WORDS, 0);
    for (int i = 0; i < OUTPUT_WORDS; i++)
        printf("%" PRIu32 " ", out[i]);
    for (int series = 0; series < SERIES; series++) {
        uint64_t began = now_ns(), took;

        for (int call = 0; call < CALLS; call++)
            kernel(in, out, DATA_WORDS / CHUNK_WORDS, 0);
        took = now_ns() - began;
        if (took < best)
            best = took;
    }
    printf("\n%" PRIu64 " %d\n", best, CALLS);
    return 0;
}
