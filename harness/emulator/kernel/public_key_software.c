// SPDX-License-Identifier: GPL-2.0-or-later
/* The public-key test's other side: the kernel's own RSA, ECDH and ECDSA, each result compared with a known answer. */
#include <crypto/akcipher.h>
#include <crypto/ecdh.h>
#include <crypto/kpp.h>
#include <linux/crypto.h>
#include <linux/err.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "public_key.h"
#include "public_key_keys.h"

#define ROOM 512

const u8 *pk_rsa_key(unsigned int bits, unsigned int *length)
{
	switch (bits) {
	case 512:
		*length = sizeof(rsa_512);
		return rsa_512;
	case 1024:
		*length = sizeof(rsa_1024);
		return rsa_1024;
	case 2048:
		*length = sizeof(rsa_2048);
		return rsa_2048;
	}
	return NULL;
}

int pk_write(MPI number, u8 *to, unsigned int length)
{
	u8 digits[ROOM];
	unsigned int used = 0;
	int sign = 0, error = mpi_read_buffer(number, digits, sizeof(digits), &used, &sign);

	if (error)
		return error;
	if (sign || used > length)
		return -EOVERFLOW;
	memset(to, 0, length - used);
	memcpy(to + length - used, digits, used);
	return 0;
}

int pk_software_power(struct pk_power *power)
{
	MPI modulus = mpi_read_raw_data(power->modulus, power->length);
	MPI base = mpi_read_raw_data(power->base, power->length);
	MPI exponent = mpi_read_raw_data(power->exponent, power->exponent_length), result = mpi_alloc(0);
	int error = -ENOMEM;

	if (modulus && base && exponent && result)
		error = mpi_powm(result, base, exponent, modulus) ?: pk_write(result, power->result, power->length);
	mpi_free(modulus);
	mpi_free(base);
	mpi_free(exponent);
	mpi_free(result);
	return error;
}

/* RSA's private operation, by the primes (rsa.c does so with every key that has them), and then the public one. */
int pk_software_rsa(unsigned int bits, unsigned int count, struct pk_times *times)
{
	unsigned int key_length, size = bits / 8;
	const u8 *key = pk_rsa_key(bits, &key_length);
	struct crypto_akcipher *rsa = crypto_alloc_akcipher("rsa-generic", 0, 0);
	struct akcipher_request *request = NULL;
	struct scatterlist from, to;
	u8 *room = kzalloc(2 * size, GFP_KERNEL);
	int error;

	if (IS_ERR(rsa)) {
		kfree(room);
		return PTR_ERR(rsa);
	}
	error = key ? crypto_akcipher_set_priv_key(rsa, key, key_length) : -EINVAL;
	if (!error)
		request = akcipher_request_alloc(rsa, GFP_KERNEL);
	if (!error && (!request || !room))
		error = -ENOMEM;
	if (!error) {
		memset(room + 1, 0x5a, size - 1);
		sg_init_one(&from, room, size);
		sg_init_one(&to, room + size, size);
		akcipher_request_set_crypt(request, &from, &to, size, size);
		pk_begin(times);
		while (count-- && !error)
			error = crypto_akcipher_decrypt(request);
		pk_end(times);
	}
	if (!error) {
		u8 first[2] = { room[0], room[1] };

		/* The public operation must give back what the private one was given. */
		memset(room, 0, size);
		akcipher_request_set_crypt(request, &to, &from, size, size);
		error = crypto_akcipher_encrypt(request);
		if (!error && (room[0] != first[0] || room[1] != first[1] || room[size - 1] != 0x5a))
			error = -EBADMSG;
	}
	akcipher_request_free(request);
	crypto_free_akcipher(rsa);
	kfree(room);
	return error;
}

/* A point of the curve times a private key: the public key that belongs to it. */
int pk_software_ecdh(unsigned int bits, unsigned int count, struct pk_times *times)
{
	const u8 *private = bits == 256 ? p256_private : p384_private;
	const u8 *public = bits == 256 ? p256_public : p384_public;
	struct ecdh secret = { .key = (char *)private, .key_size = bits / 8 };
	struct crypto_kpp *curve = crypto_alloc_kpp(bits == 256 ? "ecdh-nist-p256" : "ecdh-nist-p384", 0, 0);
	struct kpp_request *request = NULL;
	struct scatterlist to;
	u8 *room = kzalloc(ROOM, GFP_KERNEL);
	int error;

	if (IS_ERR(curve)) {
		kfree(room);
		return PTR_ERR(curve);
	}
	error = room ? crypto_ecdh_encode_key(room, crypto_ecdh_key_len(&secret), &secret) : -ENOMEM;
	if (!error)
		error = crypto_kpp_set_secret(curve, room, crypto_ecdh_key_len(&secret));
	if (!error) {
		request = kpp_request_alloc(curve, GFP_KERNEL);
		error = request ? 0 : -ENOMEM;
	}
	if (!error) {
		sg_init_one(&to, room, bits / 4);
		kpp_request_set_input(request, NULL, 0);
		kpp_request_set_output(request, &to, bits / 4);
		pk_begin(times);
		while (count-- && !error)
			error = crypto_kpp_generate_public_key(request);
		pk_end(times);
	}
	if (!error && memcmp(room, public, bits / 4))
		error = -EBADMSG;
	if (request)
		kpp_request_free(request);
	crypto_free_kpp(curve);
	kfree(room);
	return error;
}

struct signature {
	const char *name;
	const u8 *public, *digest, *signature;
	unsigned int bytes, signature_length;
};

static int verified(struct crypto_akcipher *ecdsa, const struct signature *of, u8 *room)
{
	struct akcipher_request *request = akcipher_request_alloc(ecdsa, GFP_KERNEL);
	struct scatterlist from;
	int error;

	if (!request)
		return -ENOMEM;
	sg_init_one(&from, room, of->signature_length + of->bytes);
	akcipher_request_set_crypt(request, &from, NULL, of->signature_length, of->bytes);
	error = crypto_akcipher_verify(request);
	akcipher_request_free(request);
	return error;
}

/* A signature is verified; with one bit of its digest changed it must be refused. */
int pk_software_ecdsa(unsigned int bits, unsigned int count, struct pk_times *times)
{
	static const struct signature all[] = {
		{ "ecdsa-nist-p256", p256_public, p256_digest, p256_signature, 32, sizeof(p256_signature) },
		{ "ecdsa-nist-p384", p384_public, p384_digest, p384_signature, 48, sizeof(p384_signature) },
	};
	const struct signature *of = &all[bits == 384];
	struct crypto_akcipher *ecdsa = crypto_alloc_akcipher(of->name, 0, 0);
	u8 *room = kzalloc(ROOM, GFP_KERNEL);
	int error = room ? 0 : -ENOMEM;

	if (IS_ERR(ecdsa)) {
		kfree(room);
		return PTR_ERR(ecdsa);
	}
	if (!error) {
		room[0] = 4; /* an uncompressed point */
		memcpy(room + 1, of->public, 2 * of->bytes);
		error = crypto_akcipher_set_pub_key(ecdsa, room, 1 + 2 * of->bytes);
	}
	if (!error) {
		memcpy(room, of->signature, of->signature_length);
		memcpy(room + of->signature_length, of->digest, of->bytes);
		pk_begin(times);
		while (count-- && !error)
			error = verified(ecdsa, of, room);
		pk_end(times);
	}
	if (!error) {
		room[of->signature_length] ^= 1;
		error = verified(ecdsa, of, room) == -EKEYREJECTED ? 0 : -EBADMSG;
	}
	crypto_free_akcipher(ecdsa);
	kfree(room);
	return error;
}
