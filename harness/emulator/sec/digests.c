// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unit MDEU: MD5, SHA-1, SHA-2 and HMAC over messages that may be spread over several descriptors.
 *
 * Between descriptors the host keeps the unit's context: the chaining value (32 bytes; 64 for SHA-384 and SHA-512)
 * and the count of bits hashed (8 bytes). After the last descriptor the same bytes begin with the digest.
 */
#include "sec_internal.h"

#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <string.h>

struct sec_hash_kind {
	enum sec_algorithm algorithm;
	uint32_t block;			/* bytes */
	uint32_t word;			/* bytes of a word of the chaining value */
	uint32_t words;
	uint32_t digest;		/* bytes of the result */
	bool little_endian;		/* MD5 alone */
	void (*blocks)(uint64_t *words, uint32_t bytes, const uint8_t *data);
	void (*initial)(uint64_t *words);
};

/* Two functions around one of nettle's contexts: its initial chaining value, and hashing whole blocks from any. */
#define AROUND(name, context_type, count, init, update)							\
	static void name##_initial(uint64_t *words)							\
	{												\
		struct context_type context;								\
													\
		init(&context);										\
		for (unsigned int i = 0; i < (count); i++)						\
			words[i] = context.state[i];							\
	}												\
	static void name##_blocks(uint64_t *words, uint32_t bytes, const uint8_t *data)			\
	{												\
		struct context_type context;								\
													\
		init(&context);										\
		for (unsigned int i = 0; i < (count); i++)						\
			context.state[i] = (__typeof__(context.state[0]))words[i];			\
		update(&context, bytes, data);								\
		for (unsigned int i = 0; i < (count); i++)						\
			words[i] = context.state[i];							\
	}

AROUND(md5, md5_ctx, 4, md5_init, md5_update)
AROUND(sha1, sha1_ctx, 5, sha1_init, sha1_update)
AROUND(sha224, sha256_ctx, 8, sha224_init, sha256_update)
AROUND(sha256, sha256_ctx, 8, sha256_init, sha256_update)
AROUND(sha384, sha512_ctx, 8, sha384_init, sha512_update)
AROUND(sha512, sha512_ctx, 8, sha512_init, sha512_update)

static const struct sec_hash_kind kinds[] = {
	{ SEC_SHA1, 64, 4, 5, 20, false, sha1_blocks, sha1_initial },
	{ SEC_SHA256, 64, 4, 8, 32, false, sha256_blocks, sha256_initial },
	{ SEC_MD5, 64, 4, 4, 16, true, md5_blocks, md5_initial },
	{ SEC_SHA224, 64, 4, 8, 28, false, sha224_blocks, sha224_initial },
	{ SEC_SHA384, 128, 8, 8, 48, false, sha384_blocks, sha384_initial },
	{ SEC_SHA512, 128, 8, 8, 64, false, sha512_blocks, sha512_initial },
};

static const struct sec_hash_kind *kind_of(uint32_t unit, uint8_t mode)
{
	static const uint8_t a[4] = { 0, 1, 2, 3 }, b[4] = { 4, 1, 5, 3 };

	return &kinds[(unit == UNIT_MDEU_B ? b : a)[mode & MDEU_ALGORITHM]];
}

enum sec_algorithm sec_mdeu_algorithm(uint32_t unit, uint8_t mode)
{
	return kind_of(unit, mode)->algorithm;
}

static void put(uint8_t *bytes, uint64_t word, uint32_t size, bool little_endian)
{
	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(word >> 8 * (little_endian ? i : size - 1 - i));
}

static uint64_t get(const uint8_t *bytes, uint32_t size, bool little_endian)
{
	uint64_t word = 0;

	for (uint32_t i = 0; i < size; i++)
		word |= (uint64_t)bytes[i] << 8 * (little_endian ? i : size - 1 - i);
	return word;
}

static void put_words(const struct sec_hash *hash, uint8_t *bytes)
{
	const struct sec_hash_kind *kind = hash->kind;

	for (uint32_t i = 0; i < kind->words; i++)
		put(bytes + i * kind->word, hash->words[i], kind->word, kind->little_endian);
}

void sec_mdeu_update(struct sec_hash *hash, const uint8_t *data, uint32_t length)
{
	uint32_t block = hash->kind->block;
	uint32_t whole;

	if (hash->filled) {
		uint32_t part = block - hash->filled < length ? block - hash->filled : length;

		memcpy(hash->block + hash->filled, data, part);
		hash->filled += part;
		data += part;
		length -= part;
		if (hash->filled < block)
			return;
		hash->kind->blocks(hash->words, block, hash->block);
		hash->count += 8ull * block;
		hash->filled = 0;
	}
	whole = length - length % block;
	hash->kind->blocks(hash->words, whole, data);
	hash->count += 8ull * whole;
	memcpy(hash->block, data + whole, length - whole);
	hash->filled = length - whole;
}

static void add_pad_of_key(struct sec_hash *hash, uint8_t pad)
{
	uint8_t block[BLOCK_MAX];

	for (uint32_t i = 0; i < hash->kind->block; i++)
		block[i] = hash->key[i] ^ pad;
	sec_mdeu_update(hash, block, hash->kind->block);
}

uint32_t sec_mdeu_begin(struct sec_hash *hash, const struct sec_version *version, uint32_t unit, uint8_t mode,
			const uint8_t *key, uint32_t key_length, const uint8_t *image, uint32_t image_length)
{
	const struct sec_hash_kind *kind = kind_of(unit, mode);
	uint32_t room = 8 * kind->word;		/* of the chaining value in the context */

	memset(hash, 0, sizeof(*hash));
	hash->kind = kind;
	hash->mode = mode;
	if (mode & MDEU_SMAC ||
	    (!version->sha224_and_icv_check && (mode & MDEU_CICV || kind->algorithm == SEC_SHA224)))
		return EU_ME;
	if (key_length > kind->block)
		return EU_KSE;
	if (image_length && image_length != room + 8)
		return EU_CE;
	if (key_length)
		memcpy(hash->key, key, key_length);

	if (mode & MDEU_INIT) {
		kind->initial(hash->words);
		if (mode & MDEU_HMAC)
			add_pad_of_key(hash, 0x36);
	} else if (image_length) {
		for (uint32_t i = 0; i < kind->words; i++)
			hash->words[i] = get(image + i * kind->word, kind->word, kind->little_endian);
		hash->count = get(image + room, 8, false);
	}
	return 0;
}

static void pad_and_close(struct sec_hash *hash)
{
	const struct sec_hash_kind *kind = hash->kind;
	uint64_t bits = hash->count + 8ull * hash->filled;
	uint32_t end = kind->block - 2 * kind->word;	/* where the length begins */
	uint8_t pad[2 * BLOCK_MAX] = { 0x80 };
	uint32_t length = hash->filled < end ? end - hash->filled : kind->block + end - hash->filled;

	put(pad + length + (kind->word == 8 ? 8 : 0), bits, 8, kind->little_endian);
	sec_mdeu_update(hash, pad, length + 2 * kind->word);
}

/* Leaves the context in `image`, of which the first bytes are the digest if the message is complete. */
uint32_t sec_mdeu_finish(struct sec_hash *hash, uint8_t image[IMAGE_MAX])
{
	const struct sec_hash_kind *kind = hash->kind;

	if (hash->mode & MDEU_PD && !(hash->mode & MDEU_CONT)) {
		pad_and_close(hash);
		if (hash->mode & MDEU_HMAC) {
			uint8_t inner[64];

			put_words(hash, inner);
			kind->initial(hash->words);
			hash->count = 0;
			add_pad_of_key(hash, 0x5c);
			sec_mdeu_update(hash, inner, kind->digest);
			pad_and_close(hash);
		}
	} else if (hash->filled) {	/* only padding makes a block of a part of one */
		return EU_DSE;
	}
	memset(image, 0, IMAGE_MAX);
	put_words(hash, image);
	put(image + 8 * kind->word, hash->count, 8, false);
	return 0;
}
