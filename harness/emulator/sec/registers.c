// SPDX-License-Identifier: GPL-2.0-or-later
/* The register space: what reads answer and what writes start. Registers that are not modelled read as zero. */
#include "sec_internal.h"

#include <string.h>

static const uint32_t unit_pages[16] = {	/* units by page, as bits of sec_version.units */
	[PAGE_DEU] = 1u << UNIT_DEU, [PAGE_AESU] = 1u << UNIT_AESU, [PAGE_MDEU] = 1u << UNIT_MDEU_A,
	[PAGE_RNGU] = 1u << UNIT_RNGU, [PAGE_PKEU] = 1u << UNIT_PKEU,
};

static void reset_unit(struct sec *sec, unsigned int page)
{
	sec->state.unit_status[page] = 0;
	/* Key parity (DEU's alone) and internal errors are masked until software asks for them. */
	sec->state.unit_mask[page] = page == PAGE_DEU ? EU_KPE | EU_IE : EU_IE;
}

static void reset_all(struct sec *sec)
{
	sec->state.interrupt_mask = 0;
	sec->state.master_control = 0;
	for (unsigned int i = 0; i < sec->config.version->channels; i++)
		sec->state.channels[i].level = 0;	/* none begins while another is being reset */
	for (unsigned int i = 0; i < sec->config.version->channels; i++) {
		struct sec_channel_state *channel = &sec->state.channels[i];

		sec_channel_reset(sec, i, false);
		channel->done_interrupts = 0;
		channel->done_overflow = 0;
		channel->error_interrupt = 0;
	}
	for (unsigned int page = 0; page < 16; page++)
		reset_unit(sec, page);
	sec_interrupts_update(sec);
}

void sec_init(struct sec *sec, const struct sec_config *config, const struct sec_world *world)
{
	memset(sec, 0, sizeof(*sec));
	sec->config = *config;
	sec->world = *world;
	sec->state.size = sizeof(sec->state);
	sec_reset(sec);
}

void sec_reset(struct sec *sec)
{
	reset_all(sec);
	memset(&sec->state.statistics, 0, sizeof(sec->state.statistics));
	sec->state.random = sec->config.seed;
	sec->state.carry = 0;
}

/* The half of a doubleword register that an offset names. */
static uint32_t half(uint64_t value, uint32_t offset)
{
	return offset & 4 ? (uint32_t)value : (uint32_t)(value >> 32);
}

static void set_half(uint64_t *value, uint32_t offset, uint32_t word)
{
	if (offset & 4)
		*value = (*value & 0xffffffff00000000ull) | word;
	else
		*value = (*value & 0xffffffffull) | (uint64_t)word << 32;
}

/* Which channel has which unit: four bits for each, 0 is none, 15 that there is no such unit. */
static uint64_t assignment(const struct sec *sec)
{
	static const struct { uint32_t unit, shift; } fields[] = {
		{ 0x1, 56 }, { UNIT_MDEU_A, 48 }, { UNIT_AESU, 40 }, { UNIT_DEU, 32 },
		{ 0x8, 20 }, { 0x7, 16 }, { UNIT_PKEU, 8 }, { UNIT_RNGU, 0 },
	};
	const struct sec_state *state = &sec->state;
	uint32_t header = state->in_service ? state->channels[state->channel].descriptor[0] : 0;
	uint64_t value = 0;

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint32_t unit = fields[i].unit;
		bool mdeu_b = unit == UNIT_MDEU_A && (HEADER_UNIT0(header) == UNIT_MDEU_B ||
						      HEADER_UNIT1(header) == UNIT_MDEU_B);

		if (!(sec->config.version->units >> unit & 1))
			value |= 0xfull << fields[i].shift;
		else if (HEADER_UNIT0(header) == unit || HEADER_UNIT1(header) == unit || mdeu_b)
			value |= (uint64_t)(state->channel + 1) << fields[i].shift;
	}
	return value;
}

static uint32_t read_channel(struct sec *sec, unsigned int n, uint32_t offset)
{
	const struct sec_channel_state *channel = &sec->state.channels[n];
	bool low = sec->config.version->level_in_low_word;

	if (offset >= REG_DESCRIPTOR && offset < REG_DESCRIPTOR + sizeof(channel->descriptor))
		return channel->descriptor[(offset - REG_DESCRIPTOR) / 4];
	switch (offset) {
	case REG_CCR + 4:
		return channel->config;
	case REG_CPSR:
		return low ? 0 : channel->level << 24;
	case REG_CPSR + 4:
		return channel->error | (low ? channel->level << 24 : 0);
	case REG_CDPR:
	case REG_CDPR + 4:
		return half(channel->current, offset);
	default:	/* CCR's R and CON are done at once, so its high word is always zero */
		return 0;
	}
}

static void write_channel(struct sec *sec, unsigned int n, uint32_t offset, uint32_t value)
{
	struct sec_channel_state *channel = &sec->state.channels[n];
	uint64_t address;

	switch (offset) {
	case REG_CCR:
		if (value & (CCR_R | CCR_CON))
			sec_channel_reset(sec, n, !(value & CCR_R));
		break;
	case REG_CCR + 4:
		channel->config = value;
		break;
	case REG_FF:
		channel->fetch_high = value;
		break;
	case REG_FF + 4:
		address = channel->config & CCR_EAE ? (uint64_t)(channel->fetch_high & 0xf) << 32 | value : value;
		sec_fetch(sec, n, address);
		break;
	}
}

static uint32_t read_unit(struct sec *sec, unsigned int page, uint32_t offset)
{
	uint8_t word[4];

	switch (offset) {
	case REG_EU_STATUS + 4:
		return EU_STATUS_RD | (page == PAGE_RNGU ? EU_STATUS_OFL(32) : 0);
	case REG_EU_ISR + 4:
		return sec->state.unit_status[page];
	case REG_EU_ICR + 4:
		return sec->state.unit_mask[page];
	case REG_EU_FIFO:
	case REG_EU_FIFO + 4:
		if (page != PAGE_RNGU)
			return 0;
		sec_rngu_fill(sec, word, sizeof(word));
		return (uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 | word[3];
	default:
		return 0;
	}
}

static void write_unit(struct sec *sec, unsigned int page, uint32_t offset, uint32_t value)
{
	if (offset == REG_EU_RESET + 4 && value & EU_RESET_SR)
		reset_unit(sec, page);
	else if (offset == REG_EU_RESET + 4 && value & (EU_RESET_MI | EU_RESET_RI))
		sec->state.unit_status[page] = 0;
	else if (offset == REG_EU_ICR + 4)
		sec->state.unit_mask[page] = value;
}

/* The channel whose block an offset lies in; -1: it is no channel's. */
static int channel_of(const struct sec *sec, uint32_t offset)
{
	uint32_t n = (offset - CHANNEL_BASE) / CHANNEL_STRIDE;

	return offset >= CHANNEL_BASE && n < sec->config.version->channels ? (int)n : -1;
}

uint32_t sec_read(struct sec *sec, uint32_t offset)
{
	int channel = channel_of(sec, offset);
	unsigned int page = offset >> 12 & 0xf;

	sec_advance(sec);
	if (channel >= 0)
		return read_channel(sec, (unsigned int)channel, offset % CHANNEL_STRIDE);
	if (sec->config.version->units & unit_pages[page])
		return read_unit(sec, page, offset & 0xfff);
	switch (offset & ~4u) {
	case REG_IMR:
		return half(sec->state.interrupt_mask, offset);
	case REG_ISR:
		return half(sec_interrupt_status(sec), offset);
	case REG_ID:
		return half(sec->config.version->id, offset);
	case REG_EUASR:
		return half(assignment(sec), offset);
	case REG_MCR:
		return half(sec->state.master_control, offset);
	case REG_BLOCK_REVISION:
		return half(sec->config.version->block_revision, offset);
	default:
		return 0;
	}
}

void sec_write(struct sec *sec, uint32_t offset, uint32_t value)
{
	int channel = channel_of(sec, offset);
	unsigned int page = offset >> 12 & 0xf;

	sec_advance(sec);
	if (channel >= 0) {
		write_channel(sec, (unsigned int)channel, offset % CHANNEL_STRIDE, value);
		return;
	}
	if (sec->config.version->units & unit_pages[page]) {
		write_unit(sec, page, offset & 0xfff, value);
		return;
	}
	switch (offset & ~4u) {
	case REG_IMR:
		set_half(&sec->state.interrupt_mask, offset, value);
		sec_interrupts_update(sec);
		break;
	case REG_ICR:
		sec_interrupt_clear(sec, offset & 4 ? value : (uint64_t)value << 32);
		break;
	case REG_MCR:
		set_half(&sec->state.master_control, offset, value);
		if (offset == REG_MCR && value & MCR_SWR)
			reset_all(sec);
		break;
	}
}
