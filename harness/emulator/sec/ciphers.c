// SPDX-License-Identifier: GPL-2.0-or-later
/* The units DEU (DES, 3DES) and AESU (AES): what they accept, and the work, which is nettle's. */
#include "sec_internal.h"

#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <nettle/ctr.h>
#include <nettle/des.h>
#include <string.h>

static bool odd_parity(const uint8_t *key, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (!__builtin_parity(key[i]))
			return false;
	return true;
}

/*
 * The key schedules of the last few keys: the two directions of a tunnel have a key each, and every descriptor brings
 * its own again. It saves the host time, and nothing in the guest depends on it.
 */
static const struct des3_ctx *des3_schedule(const uint8_t *keys)
{
	static struct {
		uint8_t keys[DES3_KEY_SIZE];
		bool valid;
		struct des3_ctx context;
	} known[4];
	static unsigned int oldest;

	for (unsigned int i = 0; i < 4; i++)
		if (known[i].valid && !memcmp(known[i].keys, keys, DES3_KEY_SIZE))
			return &known[i].context;
	oldest = (oldest + 1) % 4;
	memcpy(known[oldest].keys, keys, DES3_KEY_SIZE);
	known[oldest].valid = true;
	des3_set_key(&known[oldest].context, keys);	/* weak keys are set as well; they are the host's business */
	return &known[oldest].context;
}

uint32_t sec_deu_run(struct sec_cipher_job *job, bool check_parity)
{
	struct des_ctx single;
	bool triple = job->mode & DEU_TRIPLE;
	bool encrypt = job->mode & DEU_ENCRYPT;
	bool cbc = (job->mode & DEU_CHAINING) == DEU_CBC;
	const void *key;
	nettle_cipher_func *work;
	uint8_t keys[DES3_KEY_SIZE];

	if (job->mode & ~(DEU_ENCRYPT | DEU_TRIPLE | DEU_CBC))
		return EU_ME;
	if (triple ? job->key_length != 16 && job->key_length != 24 : job->key_length != 8)
		return EU_KSE;
	if (job->length % DES_BLOCK_SIZE)
		return EU_DSE;
	if (check_parity && !odd_parity(job->key, job->key_length))
		return EU_KPE;

	memcpy(keys, job->key, sizeof(keys));
	if (job->key_length == 16)	/* two keys: the third is the first */
		memcpy(keys + 16, keys, 8);
	if (triple) {
		key = des3_schedule(keys);
		work = (nettle_cipher_func *)(encrypt ? des3_encrypt : des3_decrypt);
	} else {
		des_set_key(&single, keys);
		key = &single;
		work = (nettle_cipher_func *)(encrypt ? des_encrypt : des_decrypt);
	}

	if (!cbc)
		work(key, job->length, job->output, job->input);
	else if (encrypt)
		cbc_encrypt(key, work, DES_BLOCK_SIZE, job->context, job->length, job->output, job->input);
	else
		cbc_decrypt(key, work, DES_BLOCK_SIZE, job->context, job->length, job->output, job->input);
	return 0;
}

/* A key schedule of AES and the function that works with it. */
struct aes_work {
	union {
		struct aes128_ctx aes128;
		struct aes192_ctx aes192;
		struct aes256_ctx aes256;
	} key;
	nettle_cipher_func *function;
};

static void aes_set(struct aes_work *work, const uint8_t *key, uint32_t length, bool encrypt)
{
	switch (length) {
	case 16:
		(encrypt ? aes128_set_encrypt_key : aes128_set_decrypt_key)(&work->key.aes128, key);
		work->function = (nettle_cipher_func *)(encrypt ? aes128_encrypt : aes128_decrypt);
		break;
	case 24:
		(encrypt ? aes192_set_encrypt_key : aes192_set_decrypt_key)(&work->key.aes192, key);
		work->function = (nettle_cipher_func *)(encrypt ? aes192_encrypt : aes192_decrypt);
		break;
	default:
		(encrypt ? aes256_set_encrypt_key : aes256_set_decrypt_key)(&work->key.aes256, key);
		work->function = (nettle_cipher_func *)(encrypt ? aes256_encrypt : aes256_decrypt);
		break;
	}
}

uint32_t sec_aesu_run(struct sec_cipher_job *job)
{
	uint8_t chaining = job->mode & AESU_CHAINING;
	bool encrypt = job->mode & AESU_ENCRYPT;
	struct aes_work work;

	if (job->mode & ~(AESU_ENCRYPT | AESU_CHAINING) ||
	    (chaining != AESU_ECB && chaining != AESU_CBC && chaining != AESU_CTR))
		return EU_ME;
	if (job->key_length != 16 && job->key_length != 24 && job->key_length != 32)
		return EU_KSE;
	if (job->length % AES_BLOCK_SIZE)	/* CTR too: the host pads its input */
		return EU_DSE;

	aes_set(&work, job->key, job->key_length, encrypt || chaining == AESU_CTR);
	if (chaining == AESU_CTR)
		ctr_crypt(&work.key, work.function, AES_BLOCK_SIZE, job->context, job->length, job->output, job->input);
	else if (chaining == AESU_ECB)
		work.function(&work.key, job->length, job->output, job->input);
	else if (encrypt)
		cbc_encrypt(&work.key, work.function, AES_BLOCK_SIZE, job->context, job->length, job->output,
			    job->input);
	else
		cbc_decrypt(&work.key, work.function, AES_BLOCK_SIZE, job->context, job->length, job->output,
			    job->input);
	return 0;
}
