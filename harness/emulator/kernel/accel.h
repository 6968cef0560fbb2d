/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two parts of the driver-level accelerator test share: its suites and the proof of its results. */
#ifndef ESPBENCH_ACCEL_H
#define ESPBENCH_ACCEL_H

#include <linux/types.h>

struct crypto_aead;

#define ACCEL_HEADER 8 /* SPI and sequence number: authenticated, not encrypted (RFC 4303) */
#define ACCEL_IV 16

struct accel_suite {
	const char *name, *algorithm;
	const char *software;	/* the same, of the kernel's plain C */
	unsigned int cipher_key, hash_key, icv; /* bytes */
};

const struct accel_suite *accel_suite(const char *name);

/* An algorithm with the test's one key, or an error pointer. */
struct crypto_aead *accel_open(const struct accel_suite *suite, const char *algorithm);

/* What goes into an operation and what came of it: header, data, ICV, one behind the other. */
struct accel_example {
	u8 iv[ACCEL_IV];
	u8 *input, *output;
	unsigned int size; /* of the data */
};

/*
 * 0 if the output is what software makes of the input, decryption gives the input back, and refuses it with one bit
 * of its ICV changed. Overwrites the example.
 */
int accel_check(struct crypto_aead *tfm, const struct accel_suite *suite, struct accel_example *example);

#endif
