// SPDX-License-Identifier: GPL-2.0-or-later
/* What work costs: parsing the profile's text, and the time a number of cycles takes. */
#include "sec_internal.h"

#include <stdio.h>
#include <string.h>

#define NAMES		(2 + SEC_ALGORITHMS)
#define COST_MAX	1000000000u	/* thousandths of a cycle: a million cycles */

static const char *const names[NAMES] = {
	"descriptor", "bus", "des", "3des", "aes128", "aes192", "aes256",
	"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "rng",
};

/* A decimal of at most three places as thousandths; false if it is none, or above COST_MAX. */
static bool parse_thousandths(const char *text, size_t length, uint32_t *value)
{
	uint64_t sum = 0;
	int places = -1;	/* digits after the point; -1: before it */

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '.' && places < 0 && i > 0) {
			places = 0;
			continue;
		}
		if (text[i] < '0' || text[i] > '9' || places == 3 || sum > COST_MAX)
			return false;
		sum = sum * 10 + (uint64_t)(text[i] - '0');
		if (places >= 0)
			places++;
	}
	for (int i = places < 0 ? 0 : places; i < 3; i++)
		sum *= 10;
	*value = (uint32_t)sum;
	return length && places && sum <= COST_MAX;
}

bool sec_costs_parse(const char *text, struct sec_costs *costs, char *message, size_t size)
{
	uint32_t *const values[NAMES] = {
		&costs->descriptor, &costs->bus,
		&costs->per_byte[0], &costs->per_byte[1], &costs->per_byte[2], &costs->per_byte[3],
		&costs->per_byte[4], &costs->per_byte[5], &costs->per_byte[6], &costs->per_byte[7],
		&costs->per_byte[8], &costs->per_byte[9], &costs->per_byte[10], &costs->per_byte[11],
	};
	bool seen[NAMES] = { false };

	while (*text) {
		size_t length = strcspn(text, ":");
		const char *equals = memchr(text, '=', length);
		size_t name = equals ? (size_t)(equals - text) : length;
		size_t i = 0;

		while (i < NAMES && (strlen(names[i]) != name || memcmp(names[i], text, name)))
			i++;
		if (i == NAMES || seen[i]) {
			snprintf(message, size, "'%.*s' is %s", (int)name, text, i == NAMES ? "no cost" : "there twice");
			return false;
		}
		if (!equals || !parse_thousandths(equals + 1, length - name - 1, values[i])) {
			snprintf(message, size, "'%.*s' needs a number of cycles with at most three decimals, "
				 "at most 1000000", (int)length, text);
			return false;
		}
		seen[i] = true;
		text += length;
		text += *text == ':';
	}
	for (size_t i = 0; i < NAMES; i++) {
		if (!seen[i]) {
			snprintf(message, size, "the cost of '%s' is missing", names[i]);
			return false;
		}
	}
	return true;
}

/*
 * Whole nanoseconds that so many thousandths of a cycle take. What is below a nanosecond is carried to the next
 * service, so that n equal services take n times the exact time, rounded down once.
 */
uint64_t sec_duration(struct sec *sec, uint64_t thousandths)
{
	unsigned __int128 exact = (unsigned __int128)thousandths * 1000000 + sec->state.carry;

	sec->state.carry = (uint64_t)(exact % sec->config.clock_hz);
	return (uint64_t)(exact / sec->config.clock_hz);
}
