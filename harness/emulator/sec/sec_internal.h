/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the model tell each other; which file does what is in README.md. */
#ifndef ESPBENCH_SEC_INTERNAL_H
#define ESPBENCH_SEC_INTERNAL_H

#include "sec_registers.h"
#include "sec.h"

#define BLOCK_MAX	128	/* of a hash: SHA-512's */
#define IMAGE_MAX	72	/* of MDEU's context: SHA-512's state and the count */
#define PK_MAX		256	/* bytes of PKEU's operands: 2048 bits */

/* One of a descriptor's seven pointers. */
struct sec_pointer {
	uint64_t address;
	uint32_t length;
	uint32_t extent;
	bool jump;		/* the address is a link table's */
};

struct sec_descriptor {
	uint32_t header;
	struct sec_pointer pointers[7];
};

/* Where the next byte of a parcel is. One pointer may lead through several parcels, one after the other. */
struct sec_cursor {
	struct sec *sec;
	uint64_t address;	/* of the next byte */
	uint32_t left;		/* bytes left in its segment */
	uint64_t entry;		/* of the next link table entry */
	bool table;
	bool last;		/* no entry follows */
	bool scatter;
};

/* costs.c */
uint64_t sec_duration(struct sec *sec, uint64_t thousandths);

/* interrupts.c */
void sec_interrupts_update(struct sec *sec);
uint64_t sec_interrupt_status(const struct sec *sec);
void sec_interrupt_clear(struct sec *sec, uint64_t bits);
void sec_done_interrupt(struct sec *sec, unsigned int channel);

/* channels.c: fetch FIFOs and the one server behind them */
void sec_advance(struct sec *sec);
void sec_fetch(struct sec *sec, unsigned int channel, uint64_t address);
void sec_channel_reset(struct sec *sec, unsigned int channel, bool keep_queue);
void sec_channel_error(struct sec *sec, unsigned int channel, uint32_t error);

/* links.c: all return CPSR error bits, 0 if there is none */
void sec_cursor_start(struct sec_cursor *cursor, struct sec *sec, const struct sec_pointer *pointer, bool scatter);
uint32_t sec_transfer(struct sec_cursor *cursor, void *buffer, uint32_t length);
uint32_t sec_gather(struct sec *sec, const struct sec_pointer *pointer, void *buffer, uint32_t length);
uint32_t sec_scatter(struct sec *sec, const struct sec_pointer *pointer, const void *buffer, uint32_t length);

/* descriptors.c, plan.c */
void sec_decode(const struct sec *sec, unsigned int channel, struct sec_descriptor *descriptor);
uint32_t sec_plan(struct sec *sec, const struct sec_descriptor *descriptor, uint64_t *cost);
uint64_t sec_bytes_moved(const struct sec_descriptor *descriptor);
uint32_t sec_execute(struct sec *sec, const struct sec_descriptor *descriptor, uint32_t *status);

/* Execution units: EU interrupt status bits, 0 if there is none. */
struct sec_cipher_job {
	uint8_t mode;
	uint8_t key[32];
	uint32_t key_length;
	uint8_t context[16];	/* IV or counter: in and out */
	const uint8_t *input;
	uint8_t *output;
	uint32_t length;
};
uint32_t sec_deu_run(struct sec_cipher_job *job, bool check_parity);
uint32_t sec_aesu_run(struct sec_cipher_job *job);

struct sec_hash {
	const struct sec_hash_kind *kind;
	uint8_t mode;
	uint64_t words[8];		/* the chaining value */
	uint64_t count;			/* bits hashed before the partial block */
	uint8_t block[BLOCK_MAX];	/* the partial block */
	uint32_t filled;
	uint8_t key[BLOCK_MAX];
};
uint32_t sec_mdeu_begin(struct sec_hash *hash, const struct sec_version *version, uint32_t unit, uint8_t mode,
			const uint8_t *key, uint32_t key_length, const uint8_t *image, uint32_t image_length);
void sec_mdeu_update(struct sec_hash *hash, const uint8_t *data, uint32_t length);
uint32_t sec_mdeu_finish(struct sec_hash *hash, uint8_t image[IMAGE_MAX]);
enum sec_algorithm sec_mdeu_algorithm(uint32_t unit, uint8_t mode);

struct sec_pk_job {
	uint8_t mode;
	const uint8_t *n, *a, *b, *e;
	uint32_t n_length, a_length, b_length, e_length;
	uint8_t result[PK_MAX];		/* big-endian, n_length bytes */
};
uint32_t sec_pkeu_run(struct sec_pk_job *job);
uint64_t sec_pkeu_cycles(uint8_t mode, const uint8_t *n, uint32_t n_length, const uint8_t *e, uint32_t e_length);

void sec_rngu_fill(struct sec *sec, uint8_t *buffer, uint32_t length);

#endif
