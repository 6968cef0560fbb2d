/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a kernel on any computer with a C library: espbench writes `data.h` beside it, with the tables and data of its
 * jobs (harness/espbench/npcrypt/hosted.py). Prints the output of each job, then nanoseconds of the fastest of several
 * series of calls with the last one.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine.h"

struct job {
    void (*set_tables)(void);
    const uint32_t *data;
    uint32_t data_words, output_words;
};

#include "data.h"

uint32_t engine_in[64], engine_out[64];

#define JOBS (sizeof(jobs) / sizeof(*jobs))
#define SERIES 25
#define CALLS 20

/* A kernel that reads ahead reads a chunk beyond the end. */
static uint32_t in[MOST_WORDS + CHUNK_WORDS];
static uint32_t out[MOST_WORDS];

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run(const struct job *job)
{
    memcpy(in, job->data, job->data_words * sizeof(*in));
    job->set_tables();
    kernel(in, out, job->data_words / CHUNK_WORDS, 0);
    for (uint32_t i = 0; i < job->output_words; i++)
        printf("%" PRIu32 " ", out[i]);
    printf("\n");
}

int main(void)
{
    uint64_t best = UINT64_MAX;
    uint32_t chunks = jobs[JOBS - 1].data_words / CHUNK_WORDS;

    for (size_t i = 0; i < JOBS; i++)
        run(&jobs[i]);
    for (int series = 0; series < SERIES; series++) {
        uint64_t began = now_ns(), took;

        for (int call = 0; call < CALLS; call++)
            kernel(in, out, chunks, 0);
        took = now_ns() - began;
        if (took < best)
            best = took;
    }
    printf("%" PRIu64 " %d\n", best, CALLS);
    return 0;
}
