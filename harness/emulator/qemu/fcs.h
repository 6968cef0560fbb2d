/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QEMU's frames have no FCS: so a link that damages one says it beside it, to whatever port takes the frame. */
#ifndef ESPBENCH_FCS_H
#define ESPBENCH_FCS_H

#include <stdbool.h>

/* The frame that is being handed over has a wrong FCS (esplink.c sets it). */
extern bool espbench_fcs_is_wrong;

#endif
