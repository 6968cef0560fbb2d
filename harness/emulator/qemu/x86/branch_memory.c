/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of a branch (../esplink.c), which fork() shares with the guest that it is a copy of.
 *
 * The first write to each page of it costs a fault of the host, and takes apart the large page in which the page was.
 * From then on the host looks up addresses far more often. So a branch copies the memory that its guest uses at once,
 * into large pages of its own. The guest finds the same in it. A host that has no large pages, or no room, goes on with
 * what fork() shares.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "exec/cpu-common.h"

#define LARGE (2u << 20)

/* True if the host has any page in this large one: nobody has read or written the others. */
static bool branch_uses(uint8_t *at)
{
    unsigned char pages[LARGE / 4096];
    size_t count = LARGE / qemu_real_host_page_size();

    if (mincore(at, LARGE, pages) != 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (pages[i] & 1) {
            return true;
        }
    }
    return false;
}

/* Puts a copy into the place of this memory; both ends are multiples of a large page. */
static void branch_copy(uint8_t *at, size_t length)
{
    uint8_t *place = mmap(NULL, length + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *copy = QEMU_ALIGN_PTR_UP(place, LARGE);

    if (place == MAP_FAILED) {
        return;
    }
    madvise(copy, length, MADV_HUGEPAGE);
    memcpy(copy, at, length);
    if (mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
        munmap(copy, length);
    }
    munmap(place, copy - place);
    munmap(copy + length, place + LARGE - copy);
}

static int branch_copy_block(RAMBlock *block, void *unused)
{
    uint8_t *begin = qemu_ram_get_host_addr(block), *end = begin + qemu_ram_get_used_length(block);

    begin = QEMU_ALIGN_PTR_UP(begin, LARGE);
    while (begin + LARGE <= end) {
        uint8_t *stop = begin;

        while (stop + LARGE <= end && branch_uses(stop)) {
            stop += LARGE;
        }
        if (stop > begin) {
            branch_copy(begin, stop - begin);
        }
        begin = stop + LARGE;
    }
    return 0;
}

static void branch_copy_all(void)
{
    qemu_ram_foreach_block(branch_copy_block, NULL);
}

/* Some memory may grow, such as that of ACPI's tables: a reset clears all that it could become. */
static int branch_let_fork(RAMBlock *block, void *unused)
{
    return madvise(qemu_ram_get_host_addr(block), qemu_ram_get_max_length(block), MADV_DOFORK);
}

static void branch_let_all_fork(void)
{
    qemu_ram_foreach_block(branch_let_fork, NULL);
}

/* Guests fork for nothing else. */
static void __attribute__((constructor)) branch_memory(void)
{
    pthread_atfork(branch_let_all_fork, NULL, branch_copy_all);
}
