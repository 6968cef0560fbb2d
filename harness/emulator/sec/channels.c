// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fetch FIFOs and the server behind them; an engine with several sets of units has as many servers.
 *
 * A descriptor's header is read when its service begins, which fixes its time; its data are read, worked on and
 * written when the service ends. On a bus that others use too, the service waits for the bus first, and does not end
 * before all bytes have crossed it. The next service begins at that very instant, with the next channel in the round
 * that has something queued, so that the engine's rate does not depend on when it is looked at.
 */
#include "sec_internal.h"

static uint32_t be32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint64_t now(struct sec *sec)
{
	return sec->world.now(sec->world.opaque);
}

void sec_channel_error(struct sec *sec, unsigned int n, uint32_t error)
{
	struct sec_channel_state *channel = &sec->state.channels[n];

	channel->error |= error;
	channel->error_interrupt = 1;
	sec->state.statistics.errors++;
	sec_interrupts_update(sec);
}

/* When a service from `start` on ends that takes `duration` of the engine's own time and moves so many bytes. */
static uint64_t end_of_service(struct sec *sec, uint64_t start, uint64_t duration, uint64_t bytes)
{
	struct sec_transfer transfer;

	if (!sec->world.transfer)
		return start + duration;
	transfer = sec->world.transfer(sec->world.opaque, start, bytes);
	return transfer.begins + duration > transfer.ends ? transfer.begins + duration : transfer.ends;
}

/* Take the next queued descriptor of channel n into service at time `start`. */
static void begin(struct sec *sec, unsigned int n, uint64_t start)
{
	struct sec_state *state = &sec->state;
	struct sec_channel_state *channel = &state->channels[n];
	uint64_t cost = sec->config.costs.descriptor;
	uint64_t bytes;
	uint8_t raw[64] = { 0 };
	struct sec_descriptor descriptor;

	channel->current = channel->fifo[channel->head];
	channel->head = (channel->head + 1) % sec->config.version->fifo_length;
	channel->level--;
	state->channel = n;

	channel->failed = 0;
	if (!channel->current)
		channel->failed = ERROR_FPZ;
	else if (!sec->world.read(sec->world.opaque, channel->current, raw, sizeof(raw)))
		channel->failed = ERROR_MDTE;
	for (unsigned int i = 0; i < 16; i++)
		channel->descriptor[i] = be32(raw + 4 * i);
	bytes = sizeof(raw);
	if (!channel->failed) {
		sec_decode(sec, n, &descriptor);
		channel->failed = sec_plan(sec, &descriptor, &cost);
		bytes += sec_bytes_moved(&descriptor);
	}
	channel->serving = 1;
	state->in_service++;
	channel->began = start;
	channel->due = end_of_service(sec, start, sec_duration(sec, cost), bytes);
}

/* The next service, from time `start` on: the first channel after `last`, round and round, that can be served. */
static void begin_next(struct sec *sec, unsigned int last, uint64_t start)
{
	unsigned int channels = sec->config.version->channels;

	for (unsigned int i = 1; i <= channels && sec->state.in_service < sec->config.at_once; i++) {
		unsigned int n = (last + i) % channels;
		struct sec_channel_state *channel = &sec->state.channels[n];

		if (channel->level && !channel->halted && !channel->serving)
			begin(sec, n, start);
	}
}

/* Tell the host: DONE in the header and the ICV's verdict, if the channel is to write them; an interrupt likewise. */
static uint32_t notify(struct sec *sec, unsigned int n, uint32_t status, bool checked)
{
	struct sec_channel_state *channel = &sec->state.channels[n];
	bool wanted = !(channel->config & CCR_NT) || channel->descriptor[0] & HEADER_DN;
	bool done = channel->config & CCR_CDWE && wanted;
	bool verdict = channel->config & CCR_AWSE || (channel->config & CCR_IWSE && checked);
	uint32_t high = channel->descriptor[0] | (done ? HEADER_DONE : 0);
	const uint8_t raw[8] = {
		(uint8_t)(high >> 24), (uint8_t)(high >> 16), (uint8_t)(high >> 8), (uint8_t)high,
		(uint8_t)(status >> 24), (uint8_t)(status >> 16), (uint8_t)(status >> 8), (uint8_t)status,
	};

	if ((done || verdict) && !sec->world.write(sec->world.opaque, channel->current, raw, verdict ? 8 : 4))
		return ERROR_MDTE;
	if (channel->config & CCR_CDIE && wanted)
		sec_done_interrupt(sec, n);
	return 0;
}

/* The channel whose service ends first, or NULL if none is in service. */
static struct sec_channel_state *first_due(struct sec *sec)
{
	struct sec_channel_state *first = NULL;

	for (unsigned int n = 0; n < sec->config.version->channels; n++) {
		struct sec_channel_state *channel = &sec->state.channels[n];

		if (channel->serving && (!first || channel->due < first->due))
			first = channel;
	}
	return first;
}

static void complete(struct sec *sec, struct sec_channel_state *channel)
{
	struct sec_state *state = &sec->state;
	unsigned int n = (unsigned int)(channel - state->channels);
	uint32_t error = channel->failed;
	uint32_t status = 0;
	struct sec_descriptor descriptor;

	state->channel = n;
	channel->serving = 0;
	state->in_service--;
	state->statistics.busy_ns += channel->due - channel->began;
	if (!error) {
		sec_decode(sec, n, &descriptor);
		error = sec_execute(sec, &descriptor, &status);
	}
	if (!error)
		error = notify(sec, n, status, status != 0);
	if (error) {
		channel->halted = 1;
		sec_channel_error(sec, n, error);
	} else {
		state->statistics.descriptors++;
	}
	begin_next(sec, n, channel->due);
}

static void ask_for_wake(struct sec *sec)
{
	struct sec_channel_state *first = first_due(sec);

	sec->world.wake_at(sec->world.opaque, first ? first->due : SEC_NEVER);
}

/* Do all that is due by now, and ask for the call that the rest needs. */
void sec_advance(struct sec *sec)
{
	struct sec_channel_state *first;
	bool completed = false;

	while ((first = first_due(sec)) && first->due <= now(sec)) {
		complete(sec, first);
		completed = true;
	}
	if (completed)
		ask_for_wake(sec);
}

void sec_wake(struct sec *sec)
{
	sec_advance(sec);
	ask_for_wake(sec);	/* a call that came early is wanted again */
}

bool sec_restored(struct sec *sec)
{
	if (sec->state.size != sizeof(sec->state))
		return false;
	ask_for_wake(sec);
	sec_interrupts_update(sec);
	return true;
}

/* A write to a fetch FIFO. The caller has advanced the engine to now. */
void sec_fetch(struct sec *sec, unsigned int n, uint64_t address)
{
	struct sec_channel_state *channel = &sec->state.channels[n];
	uint32_t length = sec->config.version->fifo_length;

	if (channel->level == length) {
		sec_channel_error(sec, n, channel->error & ERROR_SOF ? ERROR_DOF : ERROR_SOF);
		return;
	}
	channel->fifo[(channel->head + channel->level) % length] = address;
	channel->level++;
	if (sec->state.in_service < sec->config.at_once && !channel->serving && !channel->halted) {
		begin(sec, n, now(sec));
		ask_for_wake(sec);
	}
}

/* CCR[R], or with keep_queue CCR[CON]: give up the current descriptor and its units, forget the error, go on. */
void sec_channel_reset(struct sec *sec, unsigned int n, bool keep_queue)
{
	struct sec_channel_state *channel = &sec->state.channels[n];
	bool serving = channel->serving;

	if (serving) {
		channel->serving = 0;
		sec->state.in_service--;
	}
	if (serving || channel->error & ERROR_EU) {
		for (unsigned int page = 0; page < 16; page++)
			sec->state.unit_status[page] = 0;
	}
	channel->current = 0;
	channel->error = 0;
	channel->halted = 0;
	channel->fetch_high = 0;
	for (unsigned int i = 0; i < 16; i++)
		channel->descriptor[i] = 0;
	if (!keep_queue) {
		channel->config = 0;
		channel->level = 0;
		channel->head = 0;
	}
	if (sec->state.in_service < sec->config.at_once) {
		begin_next(sec, n, now(sec));
		ask_for_wake(sec);
	}
}
