/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What QEMU tells profile.c, which counts executed instructions: see there. */
#ifndef ESPBENCH_PROFILE_H
#define ESPBENCH_PROFILE_H

/* What the last instruction of a block is; that of an interrupt's end is only told where the stack does not. */
enum espbench_ending {
    ESPBENCH_GOES_ON,
    ESPBENCH_CALLS,
    ESPBENCH_RETURNS,
    ESPBENCH_ENDS_INTERRUPT,
    ESPBENCH_GOES_ELSEWHERE,    /* to where a register says: what was called is what comes next */
};

enum espbench_entry {
    ESPBENCH_CALL,
    ESPBENCH_INTERRUPT,
    ESPBENCH_EXCEPTION,
    ESPBENCH_USER,
};

struct espbench_block;

/* Set by -device espbench-profile, before the guest begins. */
extern bool espbench_profiling;

/* What is the kernel's begins here; a stack of its is as long as this power of two, at a multiple of that. */
extern uint64_t espbench_kernel_base;
extern unsigned espbench_stack_shift;

/* A block of this many instructions at these addresses, the next one at `after`; a user's or not. Kept for good. */
struct espbench_block *espbench_block_new(const uint64_t *pcs, unsigned count, uint64_t after,
                                          enum espbench_ending ending, bool user);

/* It begins, and will be executed whole unless the next says otherwise. space: of a user's addresses. */
void espbench_block_begins(struct espbench_block *block, uint64_t sp, uint64_t space);

/* Its last `left` instructions were not executed after all; the counter of instructions is told the same. */
void espbench_block_cut(struct espbench_block *block, unsigned left);

/* The guest is about to be interrupted, or an instruction raised an exception; it stands here. */
void espbench_entered(enum espbench_entry how, uint64_t pc, uint64_t sp, uint64_t space);

/* Writes what was executed since the last time, and begins anew; nothing unless it profiles. */
void espbench_profile_section(void);

#endif
