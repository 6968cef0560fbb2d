/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel may use beside C: where its tables lie, transfer registers, signals. One source for the machine of
 * ../machine (-DENGINE) and for any other computer, where a reference to memory is a copy and every signal has come.
 *
 * LEVEL 0 to 3: how far the kernel is optimised by hand (docs/npcryptbench.md). LOCAL_MEMORY: the engine has some.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdint.h>

/* A chunk is the unit in which work is dealt out, and the longest burst: 64 bytes. */
#define CHUNK_WORDS 16

/* Encrypt or hash so many chunks; thread: its number among all threads of all engines, from 0. */
void kernel(const uint32_t *in, uint32_t *out, uint32_t chunks, uint32_t thread);

static inline __attribute__((always_inline)) uint32_t rotate_left(uint32_t x, uint32_t by)
{
    return x << (by & 31) | x >> (-by & 31);
}

static inline __attribute__((always_inline)) uint32_t rotate_right(uint32_t x, uint32_t by)
{
    return x >> (by & 31) | x << (-by & 31);
}

#ifdef ENGINE

#define IN(memory) __attribute__((section(memory), aligned(4)))
#define LOCAL IN(".local")
#define SCRATCH IN(".scratch")
#define SRAM IN(".sram")

/* Read or write words of shared memory through this thread's transfer registers; the signal comes when it is done. */
#define READ(first, address, words, signal) \
    __asm__ volatile(".insn r 0x0b, 0, %1, x%2, %0, x0" ::"r"(address), "i"((words)-1 + 16 * (signal)), "i"(first))
#define WRITE(first, address, words, signal) \
    __asm__ volatile(".insn r 0x0b, 1, %1, x%2, %0, x0" ::"r"(address), "i"((words)-1 + 16 * (signal)), "i"(first))
/* A transfer register that was read into; or one to be written from. Their number is a constant. */
#define GET(number) \
    __extension__({ \
        uint32_t got_; \
        __asm__ volatile(".insn r 0x0b, 2, %1, %0, x0, x0" : "=r"(got_) : "i"(number)); \
        got_; \
    })
#define PUT(number, value) __asm__ volatile(".insn r 0x0b, 3, %1, x0, %0, x0" ::"r"(value), "i"(number))
/* The same with an index that is computed, added to the number. */
#define GET_AT(number, index) \
    __extension__({ \
        uint32_t got_; \
        __asm__ volatile(".insn r 0x0b, 5, %2, %0, %1, x0" : "=r"(got_) : "r"(index), "i"(number)); \
        got_; \
    })
#define PUT_AT(number, index, value) \
    __asm__ volatile(".insn r 0x0b, 6, %2, x0, %0, %1" ::"r"(value), "r"(index), "i"(number))
/* Wait until every reference that was given this signal is done; other threads run meanwhile. */
#define WAIT(signal) __asm__ volatile(".insn r 0x0b, 4, %0, x0, x0, x0" ::"i"(signal))

#else

#define LOCAL
#define SCRATCH
#define SRAM

extern uint32_t engine_in[64], engine_out[64];

#define READ(first, address, words, signal) __builtin_memcpy(engine_in + (first), (address), 4 * (words))
#define WRITE(first, address, words, signal) __builtin_memcpy((address), engine_out + (first), 4 * (words))
#define GET(number) engine_in[number]
#define PUT(number, value) (engine_out[number] = (value))
#define GET_AT(number, index) engine_in[(number) + (index)]
#define PUT_AT(number, index, value) (engine_out[(number) + (index)] = (value))
#define WAIT(signal) ((void)0)

#endif

/* The fastest memory that control data may lie in, and the second fastest. */
#ifdef LOCAL_MEMORY
#define FAST LOCAL
#define SECOND SCRATCH
#else
#define FAST SCRATCH
#define SECOND SRAM
#endif

/* Four tables of a kilobyte, the key and the rest of a cipher fit in the fastest memory. */
#if defined LOCAL_MEMORY && LOCAL_MEMORY >= 8192
#define ALL_LOCAL
#endif

/* Signals. */
#define ARRIVED 0
#define WRITTEN 1
#define LOOKED_UP 2

/* Transfer registers: those below are for tables. */
#define DATA 16

#endif
