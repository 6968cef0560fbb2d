// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading a descriptor: is it one that this version can run, and how long will it take? */
#include "sec_internal.h"

#define MODELLED_TYPES	(1u << TYPE_AESU_CTR | 1u << TYPE_IPSEC_ESP | 1u << TYPE_COMMON | 1u << TYPE_HMAC_SNOOP | \
			 1u << TYPE_PKEU_MM | 1u << TYPE_HMAC_SNOOP_CTR)
#define MODELLED_UNITS	(1u << UNIT_DEU | 1u << UNIT_MDEU_A | 1u << UNIT_RNGU | 1u << UNIT_PKEU | \
			 1u << UNIT_AESU | 1u << UNIT_MDEU_B)

void sec_decode(const struct sec *sec, unsigned int n, struct sec_descriptor *descriptor)
{
	const struct sec_channel_state *channel = &sec->state.channels[n];
	bool wide = channel->config & CCR_EAE;

	descriptor->header = channel->descriptor[0];
	for (unsigned int i = 0; i < 7; i++) {
		uint32_t high = channel->descriptor[2 + 2 * i];
		uint32_t low = channel->descriptor[3 + 2 * i];
		uint32_t extent = high >> 8 & 0xff;

		descriptor->pointers[i] = (struct sec_pointer){
			.address = wide ? (uint64_t)(high & 0xf) << 32 | low : low,
			.length = high >> 16,
			.extent = extent & POINTER_EXTENT,
			.jump = extent & POINTER_JUMP,
		};
	}
}

static bool is_mdeu(uint32_t unit)
{
	return unit == UNIT_MDEU_A || unit == UNIT_MDEU_B;
}

static bool is_cipher(uint32_t unit)
{
	return unit == UNIT_DEU || unit == UNIT_AESU;
}

/* Do the units fit the descriptor's type? */
static bool fits(uint32_t type, uint32_t primary, uint32_t secondary)
{
	switch (type) {
	case TYPE_AESU_CTR:
		return primary == UNIT_AESU && !secondary;
	case TYPE_COMMON:
		return (is_cipher(primary) || is_mdeu(primary) || primary == UNIT_RNGU) && !secondary;
	case TYPE_IPSEC_ESP:
	case TYPE_HMAC_SNOOP:
		return is_cipher(primary) && is_mdeu(secondary);
	case TYPE_HMAC_SNOOP_CTR:
		return primary == UNIT_AESU && is_mdeu(secondary);
	case TYPE_PKEU_MM:
		return primary == UNIT_PKEU && !secondary;
	default:
		return false;
	}
}

static uint32_t check(const struct sec_version *version, uint32_t header)
{
	uint32_t type = HEADER_TYPE(header);
	uint32_t primary = HEADER_UNIT0(header);
	uint32_t secondary = HEADER_UNIT1(header);
	uint32_t units = version->units & MODELLED_UNITS;

	if (!(version->types & MODELLED_TYPES & 1u << type))
		return ERROR_IDH;
	if (!(units >> primary & 1) || (secondary && !(units >> secondary & 1)))
		return ERROR_IEU;
	return fits(type, primary, secondary) ? 0 : ERROR_IDH;
}

static enum sec_algorithm cipher_algorithm(uint32_t header, uint32_t key_length)
{
	if (HEADER_UNIT0(header) == UNIT_DEU)
		return HEADER_MODE0(header) & DEU_TRIPLE ? SEC_3DES : SEC_DES;
	return key_length == 32 ? SEC_AES256 : key_length == 24 ? SEC_AES192 : SEC_AES128;
}

/* A private key operation takes as long as its exponent says, so this must be read first. */
static uint32_t pkeu_cost(struct sec *sec, const struct sec_descriptor *descriptor, uint64_t *cost)
{
	const struct sec_pointer *modulus = &descriptor->pointers[0];
	const struct sec_pointer *exponent = &descriptor->pointers[3];
	uint32_t error;

	if (modulus->length > PK_MAX || exponent->length > PK_MAX)
		return 0;	/* the unit will refuse it */
	error = sec_gather(sec, modulus, sec->input, modulus->length);
	if (!error)
		error = sec_gather(sec, exponent, sec->header, exponent->length);
	if (!error)
		*cost += 1000 * sec_pkeu_cycles(HEADER_MODE0(descriptor->header), sec->input, modulus->length,
						sec->header, exponent->length);
	return error;
}

/* Bytes that its seven pointers lead to; the descriptor itself and link tables are not among them. */
uint64_t sec_bytes_moved(const struct sec_descriptor *descriptor)
{
	uint64_t moved = 0;

	for (unsigned int i = 0; i < 7; i++)
		moved += descriptor->pointers[i].length + descriptor->pointers[i].extent;
	return moved;
}

/*
 * What the descriptor costs, in thousandths of a cycle, is added to *cost: the bytes on the bus, and the slower of
 * the two units that work on the data side by side. Returns CPSR error bits.
 */
uint32_t sec_plan(struct sec *sec, const struct sec_descriptor *descriptor, uint64_t *cost)
{
	const struct sec_costs *costs = &sec->config.costs;
	const struct sec_pointer *p = descriptor->pointers;
	uint32_t header = descriptor->header;
	uint32_t primary = HEADER_UNIT0(header);
	uint32_t error = check(sec->config.version, header);
	uint64_t first, second;

	if (error)
		return error;
	*cost += sec_bytes_moved(descriptor) * costs->bus;

	switch (HEADER_TYPE(header)) {
	case TYPE_PKEU_MM:
		return pkeu_cost(sec, descriptor, cost);
	case TYPE_AESU_CTR:
	case TYPE_COMMON:
		if (primary == UNIT_RNGU)
			*cost += (uint64_t)p[4].length * costs->per_byte[SEC_RNG];
		else if (is_mdeu(primary))
			*cost += (uint64_t)p[3].length *
				 costs->per_byte[sec_mdeu_algorithm(primary, HEADER_MODE0(header))];
		else
			*cost += (uint64_t)p[3].length * costs->per_byte[cipher_algorithm(header, p[2].length)];
		return 0;
	default:
		first = (uint64_t)p[4].length *
			costs->per_byte[cipher_algorithm(header, p[HEADER_TYPE(header) == TYPE_IPSEC_ESP ? 3 : 2].length)];
		second = (uint64_t)(p[1].length + p[4].length) *
			 costs->per_byte[sec_mdeu_algorithm(HEADER_UNIT1(header), HEADER_MODE1(header))];
		*cost += first > second ? first : second;
		return 0;
	}
}
