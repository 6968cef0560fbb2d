/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time that the memory's bus takes for what devices move over it; the bytes are counted in bus.h. */
#ifndef ESPBENCH_MEMORY_BUS_H
#define ESPBENCH_MEMORY_BUS_H

#include <stdbool.h>
#include <stdint.h>

struct espbench_transfer {
    uint64_t begins_ns, ends_ns;
};

/* False without -device espbench-bus: then a transfer takes no time and waits for nothing. */
bool espbench_bus_has_clock(void);

/* Occupy the bus for so many bytes, from that time on at the earliest, after all who asked before. */
struct espbench_transfer espbench_bus_take(uint64_t from_ns, uint64_t bytes);

#endif
