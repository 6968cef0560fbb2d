// SPDX-License-Identifier: GPL-2.0-or-later
/* The accelerator test's suites, its key, and the proof that what was timed is what the suite says. */
#include <crypto/aead.h>
#include <crypto/authenc.h>
#include <linux/crypto.h>
#include <linux/err.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "accel.h"

#define KEY_ROOM 128

static const struct accel_suite suites[] = {
	{ "3des-sha1", "authenc(hmac(sha1),cbc(des3_ede))",
	  "authenc(hmac(sha1-generic),cbc(des3_ede-generic))", 24, 20, 12 },
	{ "3des-md5", "authenc(hmac(md5),cbc(des3_ede))",
	  "authenc(hmac(md5-generic),cbc(des3_ede-generic))", 24, 16, 12 },
	{ "aes128-sha1", "authenc(hmac(sha1),cbc(aes))",
	  "authenc(hmac(sha1-generic),cbc(aes-generic))", 16, 20, 12 },
	{ "aes256-sha1", "authenc(hmac(sha1),cbc(aes))",
	  "authenc(hmac(sha1-generic),cbc(aes-generic))", 32, 20, 12 },
	{ "aes256-sha256", "authenc(hmac(sha256),cbc(aes))",
	  "authenc(hmac(sha256-generic),cbc(aes-generic))", 32, 32, 16 },
};

const struct accel_suite *accel_suite(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(suites); i++)
		if (!strcmp(suites[i].name, name))
			return &suites[i];
	return NULL;
}

static int set_key(struct crypto_aead *tfm, const struct accel_suite *suite, unsigned int number)
{
	u8 key[KEY_ROOM];
	struct rtattr *attribute = (void *)key;
	struct crypto_authenc_key_param *parameter = RTA_DATA(attribute);
	unsigned int length = RTA_SPACE(sizeof(*parameter));
	unsigned int i;

	attribute->rta_type = CRYPTO_AUTHENC_KEYA_PARAM;
	attribute->rta_len = RTA_LENGTH(sizeof(*parameter));
	parameter->enckeylen = cpu_to_be32(suite->cipher_key);
	/* Three different DES keys: equal ones are refused. */
	for (i = 0; i < suite->hash_key + suite->cipher_key; i++)
		key[length + i] = 37 * i + 11 + number;
	return crypto_aead_setkey(tfm, key, length + suite->hash_key + suite->cipher_key);
}

struct crypto_aead *accel_open(const struct accel_suite *suite, const char *algorithm, unsigned int key)
{
	struct crypto_aead *tfm = crypto_alloc_aead(algorithm, 0, 0);
	int error;

	if (IS_ERR(tfm))
		return tfm;
	error = set_key(tfm, suite, key);
	if (!error)
		error = crypto_aead_setauthsize(tfm, suite->icv);
	if (!error)
		return tfm;
	crypto_free_aead(tfm);
	return ERR_PTR(error);
}

int accel_once(struct crypto_aead *tfm, bool encrypt, u8 *data, unsigned int size, const u8 *iv)
{
	struct aead_request *request = aead_request_alloc(tfm, GFP_KERNEL);
	DECLARE_CRYPTO_WAIT(wait);
	struct scatterlist sg;
	u8 own_iv[ACCEL_IV];
	unsigned int icv = crypto_aead_authsize(tfm);
	int error;

	if (!request)
		return -ENOMEM;
	memcpy(own_iv, iv, sizeof(own_iv)); /* some drivers write to it */
	sg_init_one(&sg, data, ACCEL_HEADER + size + icv);
	aead_request_set_callback(request, CRYPTO_TFM_REQ_MAY_SLEEP, crypto_req_done, &wait);
	aead_request_set_ad(request, ACCEL_HEADER);
	aead_request_set_crypt(request, &sg, &sg, encrypt ? size : size + icv, own_iv);
	error = crypto_wait_req(encrypt ? crypto_aead_encrypt(request) : crypto_aead_decrypt(request), &wait);
	aead_request_free(request);
	return error;
}

int accel_check(struct crypto_aead *tfm, const struct accel_suite *suite, struct accel_example *example)
{
	unsigned int size = example->size, plain = ACCEL_HEADER + size, whole = plain + suite->icv;
	struct crypto_aead *software = accel_open(suite, suite->software, example->key);
	int error;

	if (IS_ERR(software))
		return PTR_ERR(software);
	error = accel_once(software, true, example->input, size, example->iv);
	if (!error && memcmp(example->input, example->output, whole))
		error = -EBADMSG;
	if (!error)
		error = accel_once(software, false, example->input, size, example->iv);
	if (!error)
		error = accel_once(tfm, false, example->output, size, example->iv);
	if (!error && memcmp(example->input, example->output, plain))
		error = -EBADMSG;
	/* Both are plain again, with the ICV behind. */
	if (!error)
		error = accel_once(tfm, true, example->output, size, example->iv);
	if (!error) {
		example->output[whole - 1] ^= 1;
		error = accel_once(tfm, false, example->output, size, example->iv);
		error = error == -EBADMSG ? 0 : error ?: -EBADMSG;
	}
	crypto_free_aead(software);
	return error;
}
