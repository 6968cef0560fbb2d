// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Running a descriptor: which pointer means what for each type. Everything is read before anything is written, since
 * input and output may be the same memory.
 */
#include "sec_internal.h"

#include <string.h>

/* A unit found something wrong: its status register keeps what, and the channel stops. */
static uint32_t unit_error(struct sec *sec, uint32_t unit, uint32_t bits)
{
	static const uint8_t pages[16] = {
		[UNIT_DEU] = PAGE_DEU, [UNIT_AESU] = PAGE_AESU, [UNIT_MDEU_A] = PAGE_MDEU,
		[UNIT_MDEU_B] = PAGE_MDEU, [UNIT_PKEU] = PAGE_PKEU,
	};

	sec->state.unit_status[pages[unit]] |= bits;
	return bits ? ERROR_EU : 0;
}

/* Read key and context of a cipher; `job` gets all but its data. */
static uint32_t load_cipher(struct sec *sec, const struct sec_descriptor *descriptor, const struct sec_pointer *key,
			    const struct sec_pointer *context, struct sec_cipher_job *job)
{
	uint32_t unit = HEADER_UNIT0(descriptor->header);
	uint32_t error;

	memset(job, 0, sizeof(*job));
	job->mode = HEADER_MODE0(descriptor->header);
	job->key_length = key->length;
	job->input = sec->input;
	job->output = sec->output;
	if (key->length > sizeof(job->key))
		return unit_error(sec, unit, EU_KSE);
	if (context->length > sizeof(job->context))
		return unit_error(sec, unit, EU_CE);
	error = sec_gather(sec, context, job->context, context->length);
	return error ? error : sec_gather(sec, key, job->key, key->length);
}

static uint32_t run_cipher(struct sec *sec, uint32_t unit, struct sec_cipher_job *job)
{
	if (unit == UNIT_AESU)
		return unit_error(sec, unit, sec_aesu_run(job));
	return unit_error(sec, unit, sec_deu_run(job, !(sec->state.unit_mask[PAGE_DEU] & EU_KPE)));
}

/* The verdict over an ICV: into the status that is written back, or an error of the MDEU, as its mask says. */
static uint32_t check_icv(struct sec *sec, uint32_t unit, bool same, unsigned int shift, uint32_t *status)
{
	if (!same && !(sec->state.unit_mask[PAGE_MDEU] & EU_ICE))
		return unit_error(sec, unit, EU_ICE);
	*status |= (same ? ICCR_PASS : ICCR_FAIL) << shift;
	return 0;
}

static void count_bytes(struct sec *sec, uint32_t in, uint32_t out)
{
	sec->state.statistics.bytes_in += in;
	sec->state.statistics.bytes_out += out;
}

/*
 * Cipher and hash in one pass: the hash sees a header of its own and then the ciphertext, which is the cipher's
 * input or output as the direction says. ipsec_esp has the ICVs behind the data, hmac_snoop behind a pointer.
 *
 * Input and output are equally long; where they are not, the shorter counts. (Linux says so of an empty packet in
 * scattered memory: one of the two pointers then has the ICV's length.)
 */
static uint32_t run_snoop(struct sec *sec, const struct sec_descriptor *descriptor, uint32_t *status)
{
	const struct sec_pointer *p = descriptor->pointers;
	uint32_t header = descriptor->header;
	bool esp = HEADER_TYPE(header) == TYPE_IPSEC_ESP;
	bool inbound = header & HEADER_INBOUND;
	bool check = esp && inbound && HEADER_MODE1(header) & MDEU_CICV;
	uint32_t unit = HEADER_UNIT0(header), hash_unit = HEADER_UNIT1(header);
	uint8_t hash_key[BLOCK_MAX], received[POINTER_EXTENT], image[POINTER_EXTENT + 1] = { 0 };
	uint32_t length = p[4].length < p[5].length ? p[4].length : p[5].length;
	struct sec_cipher_job job;
	struct sec_cursor cursor;
	struct sec_hash hash;
	uint32_t error;

	if (p[0].length > sizeof(hash_key))
		return unit_error(sec, hash_unit, EU_KSE);
	if (p[6].length > (esp ? sizeof(job.context) : sizeof(image)))
		return unit_error(sec, unit, EU_DSE);
	error = sec_gather(sec, &p[0], hash_key, p[0].length);
	if (!error)
		error = sec_gather(sec, &p[1], sec->header, p[1].length);
	if (!error)
		error = load_cipher(sec, descriptor, &p[esp ? 3 : 2], &p[esp ? 2 : 3], &job);
	sec_cursor_start(&cursor, sec, &p[4], false);
	if (!error)
		error = sec_transfer(&cursor, sec->input, length);
	if (!error && check)
		error = sec_transfer(&cursor, received, p[4].extent);
	if (!error)
		error = unit_error(sec, hash_unit,
				   sec_mdeu_begin(&hash, sec->config.version, hash_unit, HEADER_MODE1(header),
						  hash_key, p[0].length, NULL, 0));
	job.length = length;
	if (!error)
		error = run_cipher(sec, unit, &job);
	if (error)
		return error;

	sec_mdeu_update(&hash, sec->header, p[1].length);
	sec_mdeu_update(&hash, inbound ? sec->input : sec->output, length);
	error = unit_error(sec, hash_unit, sec_mdeu_finish(&hash, image));
	image[0] ^= sec->config.flip_icv;
	if (!error && check)
		error = check_icv(sec, hash_unit, !memcmp(image, received, p[4].extent), ICCR1_SHIFT, status);

	sec_cursor_start(&cursor, sec, &p[5], true);
	if (!error)
		error = sec_transfer(&cursor, sec->output, length);
	if (!error && esp)
		error = sec_transfer(&cursor, image, p[5].extent);
	if (!error)
		error = sec_scatter(sec, &p[6], esp ? job.context : image, p[6].length);
	if (!error)
		count_bytes(sec, length, length);
	return error;
}

static uint32_t run_plain_cipher(struct sec *sec, const struct sec_descriptor *descriptor)
{
	const struct sec_pointer *p = descriptor->pointers;
	uint32_t unit = HEADER_UNIT0(descriptor->header);
	struct sec_cipher_job job;
	uint32_t error;

	if (p[4].length > p[3].length || p[5].length > sizeof(job.context))
		return unit_error(sec, unit, EU_DSE);
	error = load_cipher(sec, descriptor, &p[2], &p[1], &job);
	job.length = p[3].length;
	if (!error)
		error = sec_gather(sec, &p[3], sec->input, job.length);
	if (!error)
		error = run_cipher(sec, unit, &job);
	if (!error)
		error = sec_scatter(sec, &p[4], sec->output, p[4].length);
	if (!error)
		error = sec_scatter(sec, &p[5], job.context, p[5].length);
	if (!error)
		count_bytes(sec, p[3].length, p[4].length);
	return error;
}

static uint32_t run_hash(struct sec *sec, const struct sec_descriptor *descriptor, uint32_t *status)
{
	const struct sec_pointer *p = descriptor->pointers;
	uint32_t unit = HEADER_UNIT0(descriptor->header);
	uint8_t mode = HEADER_MODE0(descriptor->header);
	uint8_t key[BLOCK_MAX], context[IMAGE_MAX], image[IMAGE_MAX], received[IMAGE_MAX];
	struct sec_hash hash;
	uint32_t error;

	if (p[2].length > sizeof(key))
		return unit_error(sec, unit, EU_KSE);
	if (p[1].length > sizeof(context))
		return unit_error(sec, unit, EU_CE);
	if (p[4].length > sizeof(received) || p[5].length > sizeof(image))
		return unit_error(sec, unit, EU_DSE);
	error = sec_gather(sec, &p[1], context, p[1].length);
	if (!error)
		error = sec_gather(sec, &p[2], key, p[2].length);
	if (!error)
		error = sec_gather(sec, &p[3], sec->input, p[3].length);
	if (!error && mode & MDEU_CICV)
		error = sec_gather(sec, &p[4], received, p[4].length);
	if (!error)
		error = unit_error(sec, unit, sec_mdeu_begin(&hash, sec->config.version, unit, mode, key,
							     p[2].length, context, p[1].length));
	if (error)
		return error;
	sec_mdeu_update(&hash, sec->input, p[3].length);
	error = unit_error(sec, unit, sec_mdeu_finish(&hash, image));
	if (!error && mode & MDEU_CICV)
		error = check_icv(sec, unit, !memcmp(image, received, p[4].length), ICCR0_SHIFT, status);
	if (!error)
		error = sec_scatter(sec, &p[5], image, p[5].length);
	if (!error)
		count_bytes(sec, p[3].length, p[5].length);
	return error;
}

static uint32_t run_random(struct sec *sec, const struct sec_descriptor *descriptor)
{
	const struct sec_pointer *out = &descriptor->pointers[4];

	sec_rngu_fill(sec, sec->output, out->length);
	count_bytes(sec, 0, out->length);
	return sec_scatter(sec, out, sec->output, out->length);
}

static uint32_t run_public_key(struct sec *sec, const struct sec_descriptor *descriptor)
{
	const struct sec_pointer *p = descriptor->pointers;
	uint8_t operands[4][PK_MAX], out[PK_MAX] = { 0 };
	struct sec_pk_job job = {
		.mode = HEADER_MODE0(descriptor->header),
		.n = operands[0], .b = operands[1], .a = operands[2], .e = operands[3],
		.n_length = p[0].length, .b_length = p[1].length, .a_length = p[2].length, .e_length = p[3].length,
	};
	uint32_t error, length;

	for (unsigned int i = 0; i < 4; i++) {
		if (p[i].length > sizeof(operands[i]))
			return unit_error(sec, UNIT_PKEU, i == 3 ? EU_KSE : EU_DSE);
		error = sec_gather(sec, &p[i], operands[i], p[i].length);
		if (error)
			return error;
	}
	if (p[4].length > sizeof(out))
		return unit_error(sec, UNIT_PKEU, EU_DSE);
	error = unit_error(sec, UNIT_PKEU, sec_pkeu_run(&job));
	if (error)
		return error;
	/* Numbers end at the same place whatever their room: its low bytes, with zeros in front. */
	length = job.n_length < p[4].length ? job.n_length : p[4].length;
	memcpy(out + p[4].length - length, job.result + job.n_length - length, length);
	count_bytes(sec, job.n_length, p[4].length);
	return sec_scatter(sec, &p[4], out, p[4].length);
}

/* Returns CPSR error bits; *status is what the header's low word says of integrity checks, 0 if there was none. */
uint32_t sec_execute(struct sec *sec, const struct sec_descriptor *descriptor, uint32_t *status)
{
	*status = 0;
	if (HEADER_UNIT1(descriptor->header))
		return run_snoop(sec, descriptor, status);
	switch (HEADER_UNIT0(descriptor->header)) {
	case UNIT_PKEU:
		return run_public_key(sec, descriptor);
	case UNIT_RNGU:
		return run_random(sec, descriptor);
	case UNIT_MDEU_A:
	case UNIT_MDEU_B:
		return run_hash(sec, descriptor, status);
	default:
		return run_plain_cipher(sec, descriptor);
	}
}
