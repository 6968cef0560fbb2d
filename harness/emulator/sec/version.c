// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The versions of the engine: what each has, and what its ID registers say.
 *
 * Channels, FIFO and the masks of units and descriptor types are those the manuals' header tables give and firmware
 * hands to the operating system; the identification is that of the first silicon of each version.
 */
#include "sec.h"

#include <string.h>

#define TREE(list)	.compatible = list, .compatible_length = sizeof(list)
#define SEC20		"fsl,sec2.0"
#define SEC21		"fsl,sec2.1\0" SEC20
#define SEC22		"fsl,sec2.2\0" SEC21
#define SEC24		"fsl,sec2.4\0" SEC22
#define SEC30		"fsl,sec3.0\0" SEC24

static const struct sec_version versions[] = {
	{	/* MPC8555E, MPC8541E */
		.name = "2.0", TREE(SEC20), .id = 0x40, .block_revision = 0,
		.channels = 4, .fifo_length = 24, .units = 0x07e, .types = 0x01010ebf,
	},
	{	/* MPC8548E, MPC8544E */
		.name = "2.1", TREE(SEC21), .id = 0x40, .block_revision = 0x0030000000000000ull,
		.channels = 4, .fifo_length = 24, .units = 0x0fe, .types = 0x012b0ebf,
		.sha224_and_icv_check = true,
	},
	{	/* MPC8313E, MPC8323E: the small one, without RNGU and PKEU */
		.name = "2.2", TREE(SEC22), .id = 0xa0, .block_revision = 0xa0,
		.channels = 1, .fifo_length = 24, .units = 0x04c, .types = 0x0122003f,
		.sha224_and_icv_check = true,
	},
	{	/* MPC8349EA, MPC8360EA */
		.name = "2.4", TREE(SEC24), .id = 0x0030000000000003ull, .block_revision = 0x0030000000000003ull,
		.channels = 4, .fifo_length = 24, .units = 0x07e, .types = 0x012b0ebf,
		.sha224_and_icv_check = true,
	},
	{	/* MPC8379E */
		.name = "3.0", TREE(SEC30), .id = 0x0030030000000000ull, .block_revision = 0x0030030000000000ull,
		.channels = 4, .fifo_length = 24, .units = 0x9fe, .types = 0x03ab0ebf,
		.sha224_and_icv_check = true, .level_in_low_word = true,
	},
};

const char sec_version_names[] = "2.0, 2.1, 2.2, 2.4, 3.0";

const struct sec_version *sec_version_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(versions[i].name, name))
			return &versions[i];
	return NULL;
}
