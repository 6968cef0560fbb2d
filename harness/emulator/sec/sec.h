/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Freescale SEC 2.x/3.0 security engine as a model: what its surroundings see of it.
 *
 * The core knows no emulator. It reaches memory, the interrupt line and time through the callbacks of struct
 * sec_world; registers are reached through sec_read() and sec_write(). Nothing in it depends on the host: the same
 * calls at the same times give the same memory, interrupts and times.
 */
#ifndef ESPBENCH_SEC_H
#define ESPBENCH_SEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEC_REGISTER_SPACE	0x10000		/* bytes at CCSR + 0x30000 */
#define SEC_CHANNELS_MAX	4
#define SEC_FIFO_MAX		24
#define SEC_PARCEL_MAX		65536		/* a descriptor's 16-bit length and one more */
#define SEC_NEVER		UINT64_MAX

/* When the bus is the engine's, and when all has crossed it. */
struct sec_transfer {
	uint64_t begins, ends;
};

/* What the engine needs of its surroundings. All times are nanoseconds of one clock that never runs backwards. */
struct sec_world {
	void *opaque;
	bool (*read)(void *opaque, uint64_t address, void *buffer, size_t length);	/* false: bus error */
	bool (*write)(void *opaque, uint64_t address, const void *buffer, size_t length);
	void (*interrupt)(void *opaque, bool level);
	uint64_t (*now)(void *opaque);
	void (*wake_at)(void *opaque, uint64_t when);	/* then call sec_wake(); SEC_NEVER: no call wanted */
	/* Occupies a bus that others use too, for so many bytes from that time on; NULL: there is no such bus. */
	struct sec_transfer (*transfer)(void *opaque, uint64_t from, uint64_t bytes);
};

/* One version of the engine, as the device tree describes it and as its registers answer. */
struct sec_version {
	const char *name;
	const char *compatible;		/* the device tree's list: strings, each with its NUL */
	size_t compatible_length;
	uint64_t id;			/* ID register */
	uint64_t block_revision;	/* IP block revision register */
	uint32_t channels;
	uint32_t fifo_length;		/* descriptors a channel's fetch FIFO holds */
	uint32_t units;			/* bit n: the unit that EU_SEL n selects is there */
	uint32_t types;			/* bit n: descriptor type n is there */
	bool sha224_and_icv_check;	/* MDEU: since SEC 2.1 */
	bool level_in_low_word;		/* where CPSR has the fetch FIFO's level: SEC 3.x */
};

const struct sec_version *sec_version_by_name(const char *name);	/* "2.1"; NULL: no such version */
extern const char sec_version_names[];					/* "2.0, 2.1, ..." for messages */

enum sec_algorithm {
	SEC_DES, SEC_3DES, SEC_AES128, SEC_AES192, SEC_AES256,
	SEC_MD5, SEC_SHA1, SEC_SHA224, SEC_SHA256, SEC_SHA384, SEC_SHA512,
	SEC_RNG, SEC_ALGORITHMS
};

/* What work costs, in thousandths of a cycle of the engine's clock. */
struct sec_costs {
	uint32_t descriptor;			/* each: fetch, arbitration, unit set-up, write back */
	uint32_t bus;				/* each byte read from or written to memory */
	uint32_t per_byte[SEC_ALGORITHMS];	/* each byte that passes the unit */
};

/*
 * Parse "descriptor=500:bus=0.25:des=1:3des=3:aes128=...", decimals to the thousandth. Every name must be there, so
 * that nothing is free by omission. Returns false and a sentence in message.
 */
bool sec_costs_parse(const char *text, struct sec_costs *costs, char *message, size_t size);

struct sec_config {
	const struct sec_version *version;
	uint64_t clock_hz;
	struct sec_costs costs;
	uint32_t done_queue;	/* done interrupts a channel queues: 15 as the manual says; 1: one latch */
	uint32_t at_once;	/* descriptors served at once, of different channels, with all units for each; chips: 1 */
	uint64_t seed;		/* of the RNGU's reproducible sequence */
	bool flip_icv;		/* one bit of each ICV computed in a single pass is wrong: for tests of tests */
};

/* All that a snapshot must keep: plain data of fixed layout, no pointers. */
struct sec_channel_state {
	uint64_t current;		/* CDPR */
	uint64_t fifo[SEC_FIFO_MAX];
	uint32_t head;			/* oldest entry of the FIFO */
	uint32_t level;			/* entries in it */
	uint32_t fetch_high;		/* FF's high word, waiting for its low word */
	uint32_t config;		/* CCR, low word */
	uint32_t error;			/* CPSR, error bits */
	uint32_t descriptor[16];	/* descriptor buffer, as in memory but in host byte order */
	uint32_t done_interrupts;	/* queued, not yet cleared */
	uint32_t done_overflow;
	uint32_t error_interrupt;
	uint32_t halted;		/* after an error, until CCR[CON] or CCR[R] */
	uint32_t serving;		/* its current descriptor is in service */
	uint32_t failed;		/* it was found wrong before its work began: CPSR error bits */
	uint64_t due;			/* when it is done */
	uint64_t began;
};

struct sec_statistics {
	uint64_t descriptors;		/* completed without an error */
	uint64_t errors;		/* channel errors */
	uint64_t bytes_in;		/* main data of completed descriptors */
	uint64_t bytes_out;
	uint64_t busy_ns;		/* time in which descriptors were in service, added up */
};

struct sec_state {
	uint32_t size;			/* of this struct: a snapshot of another layout is refused */
	uint32_t in_service;		/* channels whose descriptor is in service */
	uint32_t channel;		/* of them, that which was looked at last */
	uint64_t carry;			/* fraction of a nanosecond that earlier services took, x clock_hz */
	uint64_t interrupt_mask;	/* IMR */
	uint64_t master_control;	/* MCR */
	uint32_t unit_status[16];	/* EU interrupt status, by page of the register space */
	uint32_t unit_mask[16];		/* EU interrupt control */
	uint64_t random;
	struct sec_channel_state channels[SEC_CHANNELS_MAX];
	struct sec_statistics statistics;
};

struct sec {
	struct sec_config config;
	struct sec_world world;
	struct sec_state state;
	/* Scratch of one descriptor's execution; not part of the state. */
	uint8_t input[SEC_PARCEL_MAX];
	uint8_t output[SEC_PARCEL_MAX];
	uint8_t header[SEC_PARCEL_MAX];
};

void sec_init(struct sec *sec, const struct sec_config *config, const struct sec_world *world);
void sec_reset(struct sec *sec);		/* hardware reset: as after sec_init() */
void sec_wake(struct sec *sec);			/* the time asked for by wake_at() has come */
bool sec_restored(struct sec *sec);		/* state was overwritten by a snapshot; false: not of this layout */

/* One 32-bit word, offset from the engine's base, a multiple of 4; value in host byte order of a big-endian bus. */
uint32_t sec_read(struct sec *sec, uint32_t offset);
void sec_write(struct sec *sec, uint32_t offset, uint32_t value);

#endif
