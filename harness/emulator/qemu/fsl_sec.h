/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Freescale SEC for a board: its node in the device tree. */
#ifndef HW_MISC_FSL_SEC_H
#define HW_MISC_FSL_SEC_H

/*
 * Add the engine's node below `soc`, as the board's own tree would have it; nothing if the machine has none.
 * To be called when devices of the command line exist.
 */
void fsl_sec_add_to_fdt(void *fdt, const char *soc, uint32_t mpic_phandle);

#endif
