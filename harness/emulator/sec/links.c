// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gather and scatter: the bytes a pointer leads to, in one piece or through a chain of link tables.
 *
 * A parcel is one length or extent. Several parcels may follow each other behind one pointer; then each but the last
 * must end where a segment of the table ends. Segments may be longer than the last parcel.
 */
#include "sec_internal.h"

#define CHAIN_MAX	1024	/* tables in a row without a segment: a chain that bites its tail */

void sec_cursor_start(struct sec_cursor *cursor, struct sec *sec, const struct sec_pointer *pointer, bool scatter)
{
	*cursor = (struct sec_cursor){
		.sec = sec,
		.address = pointer->address,
		.left = pointer->jump ? 0 : UINT32_MAX,
		.entry = pointer->address,
		.table = pointer->jump,
		.scatter = scatter,
	};
}

/* Go to the next segment that the link table names. */
static uint32_t next_segment(struct sec_cursor *cursor)
{
	struct sec *sec = cursor->sec;
	uint64_t high_bits = sec->state.channels[sec->state.channel].config & CCR_EAE ? 0xf : 0;

	for (unsigned int i = 0; i < CHAIN_MAX && !cursor->last; i++) {
		uint8_t raw[8];
		uint64_t address;

		if (!sec->world.read(sec->world.opaque, cursor->entry, raw, sizeof(raw)))
			return ERROR_MDTE;
		address = (raw[3] & high_bits) << 32 | (uint64_t)raw[4] << 24 | (uint64_t)raw[5] << 16 |
			  (uint64_t)raw[6] << 8 | raw[7];
		if (raw[2] & ENTRY_NEXT) {
			cursor->entry = address;
			continue;
		}
		cursor->entry += sizeof(raw);
		cursor->last = raw[2] & ENTRY_RETURN;
		cursor->address = address;
		cursor->left = (uint32_t)raw[0] << 8 | raw[1];
		return cursor->left ? 0 : ERROR_SGDLZ;
	}
	return cursor->scatter ? ERROR_SRL : ERROR_GRL;
}

/* Move one parcel between memory and buffer, in the cursor's direction. */
uint32_t sec_transfer(struct sec_cursor *cursor, void *buffer, uint32_t length)
{
	const struct sec_world *world = &cursor->sec->world;
	uint8_t *bytes = buffer;

	if (length && cursor->table && cursor->left)	/* the parcel before ended within a segment */
		return cursor->scatter ? ERROR_SB : ERROR_GB;
	while (length) {
		uint32_t chunk;
		bool moved;

		if (!cursor->left) {
			uint32_t error = next_segment(cursor);

			if (error)
				return error;
		}
		chunk = length < cursor->left ? length : cursor->left;
		moved = cursor->scatter ? world->write(world->opaque, cursor->address, bytes, chunk)
					: world->read(world->opaque, cursor->address, bytes, chunk);
		if (!moved)
			return ERROR_MDTE;
		cursor->address += chunk;
		cursor->left -= cursor->table ? chunk : 0;
		bytes += chunk;
		length -= chunk;
	}
	return 0;
}

uint32_t sec_gather(struct sec *sec, const struct sec_pointer *pointer, void *buffer, uint32_t length)
{
	struct sec_cursor cursor;

	sec_cursor_start(&cursor, sec, pointer, false);
	return sec_transfer(&cursor, buffer, length);
}

uint32_t sec_scatter(struct sec *sec, const struct sec_pointer *pointer, const void *buffer, uint32_t length)
{
	struct sec_cursor cursor;

	sec_cursor_start(&cursor, sec, pointer, true);
	return sec_transfer(&cursor, (void *)buffer, length);	/* scattering only reads the buffer */
}
