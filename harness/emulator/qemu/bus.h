/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the board's devices moved over the memory's bus since the boot, in bytes; esplink tells the generator. */
#ifndef ESPBENCH_BUS_H
#define ESPBENCH_BUS_H

#include <stdint.h>

struct espbench_bus {
    uint64_t port_read, port_written;   /* Ethernet: frames, and their descriptors */
    uint64_t port_frame_read, port_frame_written;   /* of these, frames alone */
    uint64_t sec_read, sec_written;     /* the SEC: data, keys, contexts, descriptors, link tables */
    uint64_t sec_descriptors;           /* requests it completed */
};

extern struct espbench_bus espbench_bus;

#endif
