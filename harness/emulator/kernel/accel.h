/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the driver-level accelerator test share: what is asked for, its suites, its operations, its proofs. */
#ifndef ESPBENCH_ACCEL_H
#define ESPBENCH_ACCEL_H

#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/types.h>

#include "crypto.h"

struct aead_request;
struct crypto_aead;

#define ACCEL_HEADER 8 /* SPI and sequence number: authenticated, not encrypted (RFC 4303) */
#define ACCEL_IV 16

struct accel_suite {
	const char *name, *algorithm;
	const char *software;	/* the same, of the kernel's plain C */
	unsigned int cipher_key, hash_key, icv; /* bytes */
};

const struct accel_suite *accel_suite(const char *name);

#define ACCEL_KEYS 256 /* that differ */

/* An algorithm with the test's key of this number, or an error pointer. */
struct crypto_aead *accel_open(const struct accel_suite *suite, const char *algorithm, unsigned int key);

/* One operation on header, data and ICV, in place, to its end. */
int accel_once(struct crypto_aead *tfm, bool encrypt, u8 *data, unsigned int size, const u8 *iv);

/* What goes into an operation and what came of it: header, data, ICV, one behind the other. */
struct accel_example {
	u8 iv[ACCEL_IV];
	u8 *input, *output;
	unsigned int size; /* of the data */
	unsigned int key;  /* its number */
};

/*
 * 0 if the output is what software makes of the input, decryption gives the input back, and refuses it with one bit
 * of its ICV changed. Overwrites the example.
 */
int accel_check(struct crypto_aead *tfm, const struct accel_suite *suite, struct accel_example *example);

/* Which outputs are compared with the result of software, and whether while the clock runs. */
enum accel_checking { ACCEL_LAST, ACCEL_AFTER, ACCEL_DURING };

struct accel_asked {
	const struct accel_suite *suite;
	unsigned int size, count;
	unsigned int keys;		/* used in turns */
	bool decrypt;
	bool cached;			/* every operation reads the same block; each writes its own */
	bool prebuilt;			/* all at once: descriptors are built before the clock starts */
	enum accel_checking checking;
};

/* From "SUITE SIZE COUNT [decrypt] [cached] [prebuilt] [keys=N] [check=after|check=during]"; 0 or -EINVAL. */
int accel_parse(char *text, struct accel_asked *asked);

struct accel_run;

struct accel_operation {
	struct accel_run *run;
	struct accel_operation *next; /* in the list of free ones */
	struct aead_request *request;
	struct espbench_descriptor descriptor;
	struct scatterlist from, to;
	const u8 *source; /* what is read: the same as data, or the block that all read */
	u8 *data;
	u8 *expected;	  /* NULL: nobody asks */
	u8 iv[ACCEL_IV];
};

/* What is prepared of operations before a clock starts (accel_batch.c). */
struct accel_batch {
	const struct accel_asked *asked;
	struct crypto_aead **tfms;
	struct crypto_aead *software[ACCEL_KEYS]; /* NULL until used */
};

/* Does this need what no operation can be given while the clock runs? */
static inline bool accel_is_prepared(const struct accel_asked *asked)
{
	return asked->decrypt || asked->prebuilt || asked->checking != ACCEL_LAST;
}

/* The data to be encrypted by the operation of this number: no two are alike. */
static inline void accel_fill(struct accel_operation *operation, unsigned int number)
{
	__be32 mark = cpu_to_be32(number);

	memcpy(operation->data + ACCEL_HEADER - sizeof(mark), &mark, sizeof(mark));
	memcpy(operation->data + ACCEL_HEADER, &mark, sizeof(mark));
	memset(operation->iv, 0, sizeof(operation->iv));
	memcpy(operation->iv, &mark, sizeof(mark));
}

/* The input of an operation, what is to come of it, and with `build` its descriptor; 0 or an error. */
int accel_prepare(struct accel_batch *batch, struct accel_operation *operation, unsigned int number, bool build);

/* 0, or -EBADMSG if its output is not the one that was expected. */
int accel_compare(const struct accel_asked *asked, const struct accel_operation *operation);

#endif
