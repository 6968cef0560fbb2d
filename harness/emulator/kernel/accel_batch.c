// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the accelerator test prepares before its clock starts: what is asked for, ciphertexts to be decrypted, what
 * outputs are to be compared with, and descriptors. Ciphertexts and outputs are made by the kernel's software.
 */
#include <crypto/aead.h>
#include <linux/bottom_half.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "accel.h"

static int take_word(const char *word, struct accel_asked *asked)
{
	if (!strcmp(word, "decrypt"))
		asked->decrypt = true;
	else if (!strcmp(word, "cached"))
		asked->cached = true;
	else if (!strcmp(word, "prebuilt"))
		asked->prebuilt = true;
	else if (!strcmp(word, "check=after"))
		asked->checking = ACCEL_AFTER;
	else if (!strcmp(word, "check=during"))
		asked->checking = ACCEL_DURING;
	else if (!strncmp(word, "keys=", 5))
		return kstrtouint(word + 5, 10, &asked->keys);
	else
		return -EINVAL;
	return 0;
}

int accel_parse(char *text, struct accel_asked *asked)
{
	char name[32], *word;
	int length;

	*asked = (struct accel_asked){ .keys = 1 };
	if (sscanf(text, "%31s %u %u%n", name, &asked->size, &asked->count, &length) != 3)
		return -EINVAL;
	text = strim(text + length);
	while ((word = strsep(&text, " ")))
		if (*word && take_word(word, asked))
			return -EINVAL;
	asked->suite = accel_suite(name);
	if (!asked->suite || !asked->keys || asked->keys > ACCEL_KEYS)
		return -EINVAL;
	return asked->cached && asked->decrypt ? -EINVAL : 0; /* the block that all read is plain */
}

/* What software makes of the operation's data: in place if it is to be decrypted, else beside it. */
static int expect(struct accel_batch *batch, struct accel_operation *operation, unsigned int key)
{
	const struct accel_asked *asked = batch->asked;
	u8 *cipher = asked->decrypt ? operation->data : operation->expected;

	memcpy(operation->expected, operation->source, ACCEL_HEADER + asked->size);
	if (!batch->software[key]) {
		struct crypto_aead *software = accel_open(asked->suite, asked->suite->software, key);

		if (IS_ERR(software))
			return PTR_ERR(software);
		batch->software[key] = software;
	}
	return accel_once(batch->software[key], true, cipher, asked->size, operation->iv);
}

/* The driver's own code builds it; what else uses the driver must not come between. */
static int build_descriptor(const struct accel_asked *asked, struct accel_operation *operation)
{
	int error;

	local_bh_disable();
	espbench_built = &operation->descriptor;
	error = asked->decrypt ? crypto_aead_decrypt(operation->request) : crypto_aead_encrypt(operation->request);
	if (espbench_built) { /* whatever did it has no such descriptors */
		espbench_built = NULL;
		error = -EOPNOTSUPP;
	}
	local_bh_enable();
	return error == -EINPROGRESS ? 0 : error ?: -EOPNOTSUPP;
}

int accel_prepare(struct accel_batch *batch, struct accel_operation *operation, unsigned int number, bool build)
{
	unsigned int key = number % batch->asked->keys;
	int error = 0;

	accel_fill(operation, batch->asked->cached ? 0 : number);
	aead_request_set_tfm(operation->request, batch->tfms[key]);
	if (operation->expected)
		error = expect(batch, operation, key);
	if (!error && build)
		error = build_descriptor(batch->asked, operation);
	return error;
}

int accel_compare(const struct accel_asked *asked, const struct accel_operation *operation)
{
	unsigned int length = ACCEL_HEADER + asked->size + (asked->decrypt ? 0 : asked->suite->icv);

	return memcmp(operation->data, operation->expected, length) ? -EBADMSG : 0;
}
