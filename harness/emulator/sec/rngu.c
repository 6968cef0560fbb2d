// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unit RNGU: a sequence that looks random (splitmix64) and is the same in every run with the same seed. That is
 * what an emulated gateway needs; it protects nothing.
 */
#include "sec_internal.h"

void sec_rngu_fill(struct sec *sec, uint8_t *buffer, uint32_t length)
{
	uint64_t z = 0;

	for (uint32_t i = 0; i < length; i++, z >>= 8) {
		if (i % 8 == 0) {
			z = sec->state.random += 0x9e3779b97f4a7c15ull;
			z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
			z = (z ^ z >> 27) * 0x94d049bb133111ebull;
			z ^= z >> 31;
		}
		buffer[i] = (uint8_t)z;
	}
}
