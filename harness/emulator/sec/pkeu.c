// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The unit PKEU: modular arithmetic, and how many cycles it takes.
 *
 * The cycles are those of Freescale's "Understanding Public-Key Performance" (2005), table 1. Its 48 times, on eight
 * clocks, are met to the last digit printed by: with d = 32-bit digits of the modulus and e = bits of the exponent,
 *
 *	multiplication		d^2 + 3 d + 27
 *	preparation		35 d^2 + 240 d
 *	exponentiation		preparation + 3/2 e multiplications
 *
 * so an exponent's bits are worth one and a half multiplications each, whatever their values.
 */
#include "sec_internal.h"

#include <gmp.h>

static void load(mpz_t number, const uint8_t *bytes, uint32_t length)
{
	mpz_init(number);
	mpz_import(number, length, 1, 1, 1, 0, bytes);
}

static uint32_t bits_of(const uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i])
			return 8 * (length - i) - (uint32_t)(__builtin_clz(bytes[i]) - 24);
	return 0;
}

uint64_t sec_pkeu_cycles(uint8_t mode, const uint8_t *n, uint32_t n_length, const uint8_t *e, uint32_t e_length)
{
	uint64_t digits = (bits_of(n, n_length) + 31) / 32;
	uint64_t multiplication = digits * digits + 3 * digits + 27;
	uint64_t preparation = 35 * digits * digits + 240 * digits;
	uint64_t exponentiation = 3 * bits_of(e, e_length) * multiplication / 2;

	switch (mode) {
	case PKEU_RSA:
		return preparation + exponentiation;
	case PKEU_MOD_EXP:
		return exponentiation;
	case PKEU_R2_MOD_N:
		return preparation;
	default:
		return multiplication;
	}
}

uint32_t sec_pkeu_run(struct sec_pk_job *job)
{
	size_t length;
	mpz_t n, a, b, e, r;

	if (job->mode != PKEU_RSA && job->mode != PKEU_MOD_EXP && job->mode != PKEU_R2_MOD_N &&
	    job->mode != PKEU_MULTIPLY)
		return EU_ME;
	if (!job->n_length || job->n_length > PK_MAX || job->a_length > job->n_length ||
	    job->b_length > job->n_length)
		return EU_DSE;
	if ((job->mode == PKEU_RSA || job->mode == PKEU_MOD_EXP) && !job->e_length)
		return EU_KSE;
	if (!(job->n[job->n_length - 1] & 1))
		return EU_INV;

	load(n, job->n, job->n_length);
	load(a, job->a, job->a_length);
	load(b, job->b, job->b_length);
	load(e, job->e, job->e_length);
	mpz_init(r);	/* R: a power of two with as many doublewords as the modulus has */
	mpz_ui_pow_ui(r, 2, 64 * ((job->n_length + 7ul) / 8));

	if (job->mode == PKEU_R2_MOD_N) {
		mpz_mul(r, r, r);
		mpz_mod(a, r, n);
	} else if (job->mode == PKEU_RSA) {
		mpz_powm(a, a, e, n);
	} else {
		if (!mpz_invert(r, r, n))	/* only for a modulus of 1: everything is 0 */
			mpz_set_ui(r, 0);
		mpz_mul(a, a, r);
		if (job->mode == PKEU_MULTIPLY) {
			mpz_mul(a, a, b);
			mpz_mod(a, a, n);
		} else {
			mpz_powm(a, a, e, n);
		}
	}
	for (uint32_t i = 0; i < job->n_length; i++)
		job->result[i] = 0;
	length = (mpz_sizeinbase(a, 2) + 7) / 8;
	if (mpz_sgn(a))
		mpz_export(job->result + job->n_length - length, NULL, 1, 1, 1, 0, a);
	mpz_clears(n, a, b, e, r, NULL);
	return 0;
}
