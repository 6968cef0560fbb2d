// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The model of the SEC on a text console, for its tests: with a memory and a clock that only advances by commands, one
 * per line. Numbers are hexadecimal, times decimal nanoseconds.
 *
 *	W offset value		write a register		R offset -> value
 *	P address bytes		put bytes into memory		G address length -> bytes
 *	T time			let time pass, waking the model when it asks to be woken
 *	L time			let time pass without waking it, then wake it: a timer that is late, or early
 *	B from ns_per_byte	model a bus that is busy until `from` and takes ns_per_byte for each byte (default: no bus)
 *	S			-> time, interrupt line, number of its rising edges, time of the next wake-up (or "never")
 *	C			-> descriptors errors bytes_in bytes_out busy_ns
 *	X			save the state, initialise the model again, restore the state: a snapshot
 *
 * Arguments: version clock_hz costs done_queue seed flip_icv [at_once].
 */
#include "../sec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW	0x200000

/* There is memory at 0 and at 0x8_0000_0000, so that the upper four of 36 address bits matter. Accesses to any other
 * address are bus errors. */
static uint8_t low[WINDOW], high[WINDOW];
static uint64_t now, wake = SEC_NEVER, edges, bus_free, bus_ns_per_byte;
static bool line;
static struct sec sec;

static uint8_t *memory(uint64_t address, size_t length)
{
	uint8_t *window = address >> 32 == 8 ? high : address >> 32 ? NULL : low;
	uint64_t offset = address & 0xffffffff;

	return window && offset <= WINDOW && length <= WINDOW - offset ? window + offset : NULL;
}

static bool world_read(void *opaque, uint64_t address, void *buffer, size_t length)
{
	const uint8_t *from = memory(address, length);

	(void)opaque;
	if (from)
		memcpy(buffer, from, length);
	return from;
}

static bool world_write(void *opaque, uint64_t address, const void *buffer, size_t length)
{
	uint8_t *to = memory(address, length);

	(void)opaque;
	if (to)
		memcpy(to, buffer, length);
	return to;
}

static void world_interrupt(void *opaque, bool level)
{
	(void)opaque;
	edges += level && !line;
	line = level;
}

static uint64_t world_now(void *opaque)
{
	(void)opaque;
	return now;
}

static void world_wake_at(void *opaque, uint64_t when)
{
	(void)opaque;
	wake = when;
}

static struct sec_transfer world_transfer(void *opaque, uint64_t from, uint64_t bytes)
{
	uint64_t begins = from > bus_free ? from : bus_free;

	(void)opaque;
	bus_free = begins + bytes * bus_ns_per_byte;
	return (struct sec_transfer){ begins, bus_free };
}

static void pass_time(uint64_t until)
{
	while (wake <= until) {
		now = wake > now ? wake : now;
		wake = SEC_NEVER;
		sec_wake(&sec);
	}
	now = until;
}

static void put_bytes(uint64_t address, const char *text)
{
	unsigned int byte;

	for (; sscanf(text, "%2x", &byte) == 1; text += 2) {
		uint8_t *to = memory(address++, 1);

		if (!to)
			exit(2);
		*to = (uint8_t)byte;
	}
}

static void get_bytes(uint64_t address, size_t length)
{
	const uint8_t *from = memory(address, length);

	if (!from)
		exit(2);
	for (size_t i = 0; i < length; i++)
		printf("%02x", from[i]);
	puts("");
}

static void snapshot(const struct sec_config *config, const struct sec_world *world)
{
	struct sec_state state = sec.state;

	sec_init(&sec, config, world);
	sec.state = state;
	if (!sec_restored(&sec))
		exit(3);
}

static void command(const char *text, const struct sec_config *config, const struct sec_world *world)
{
	uint64_t a = 0, b = 0;
	int after = 0;

	if (sscanf(text, "W %" SCNx64 " %" SCNx64, &a, &b) == 2) {
		sec_write(&sec, (uint32_t)a, (uint32_t)b);
	} else if (sscanf(text, "R %" SCNx64, &a) == 1) {
		printf("%" PRIx32 "\n", sec_read(&sec, (uint32_t)a));
	} else if (sscanf(text, "P %" SCNx64 " %n", &a, &after) == 1) {
		put_bytes(a, text + after);
	} else if (sscanf(text, "G %" SCNx64 " %" SCNx64, &a, &b) == 2) {
		get_bytes(a, b);
	} else if (sscanf(text, "T %" SCNu64, &a) == 1) {
		pass_time(a);
	} else if (sscanf(text, "L %" SCNu64, &a) == 1) {
		now = a;
		wake = SEC_NEVER;
		sec_wake(&sec);
	} else if (sscanf(text, "B %" SCNu64 " %" SCNu64, &a, &b) == 2) {
		bus_free = a;
		bus_ns_per_byte = b;
		sec.world.transfer = world_transfer;
	} else if (*text == 'S') {
		printf("%" PRIu64 " %d %" PRIu64 " ", now, line, edges);
		if (wake == SEC_NEVER)
			puts("never");
		else
			printf("%" PRIu64 "\n", wake);
	} else if (*text == 'C') {
		const struct sec_statistics *s = &sec.state.statistics;

		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->descriptors, s->errors,
		       s->bytes_in, s->bytes_out, s->busy_ns);
	} else if (*text == 'X') {
		snapshot(config, world);
	} else {
		exit(2);
	}
}

int main(int argc, char **argv)
{
	const struct sec_world world = {
		.read = world_read, .write = world_write, .interrupt = world_interrupt,
		.now = world_now, .wake_at = world_wake_at,
	};
	struct sec_config config = { 0 };
	char message[200];
	static char text[4 * SEC_PARCEL_MAX];

	if (argc != 7 && argc != 8)
		return 2;
	config.version = sec_version_by_name(argv[1]);
	if (!config.version) {
		fprintf(stderr, "SEC version '%s': there are %s\n", argv[1], sec_version_names);
		return 1;
	}
	config.clock_hz = strtoull(argv[2], NULL, 10);
	config.done_queue = (uint32_t)strtoul(argv[4], NULL, 10);
	config.seed = strtoull(argv[5], NULL, 10);
	config.flip_icv = *argv[6] == '1';
	config.at_once = argc == 8 ? (uint32_t)strtoul(argv[7], NULL, 10) : 1;
	if (!sec_costs_parse(argv[3], &config.costs, message, sizeof(message))) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	sec_init(&sec, &config, &world);
	while (fgets(text, sizeof(text), stdin)) {
		command(text, &config, &world);
		fflush(stdout);
	}
	return 0;
}
