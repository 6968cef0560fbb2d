// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The controller's interrupt registers: one line, high while a status bit is up that the mask lets through.
 *
 * A channel's done interrupts are queued: each clear takes one, and the bit stays up while there are more. More than
 * config.done_queue of them raise the channel's overflow bit instead.
 */
#include "sec_internal.h"

uint64_t sec_interrupt_status(const struct sec *sec)
{
	uint64_t status = 0;

	for (unsigned int i = 0; i < sec->config.version->channels; i++) {
		const struct sec_channel_state *channel = &sec->state.channels[i];

		status |= channel->done_interrupts ? ISR_DONE(i) : 0;
		status |= channel->done_overflow ? ISR_OVERFLOW(i) : 0;
		status |= channel->error_interrupt ? ISR_ERROR(i) : 0;
	}
	return status;
}

void sec_interrupts_update(struct sec *sec)
{
	sec->world.interrupt(sec->world.opaque, (sec_interrupt_status(sec) & sec->state.interrupt_mask) != 0);
}

void sec_interrupt_clear(struct sec *sec, uint64_t bits)
{
	for (unsigned int i = 0; i < sec->config.version->channels; i++) {
		struct sec_channel_state *channel = &sec->state.channels[i];

		if (bits & ISR_DONE(i) && channel->done_interrupts)
			channel->done_interrupts--;
		if (bits & ISR_OVERFLOW(i))
			channel->done_overflow = 0;
		if (bits & ISR_ERROR(i))
			channel->error_interrupt = 0;
	}
	sec_interrupts_update(sec);
}

void sec_done_interrupt(struct sec *sec, unsigned int channel)
{
	struct sec_channel_state *state = &sec->state.channels[channel];

	if (state->done_interrupts < sec->config.done_queue)
		state->done_interrupts++;
	else if (sec->config.done_queue > 1)	/* a latch has nothing to overflow */
		state->done_overflow = 1;
	sec_interrupts_update(sec);
}
