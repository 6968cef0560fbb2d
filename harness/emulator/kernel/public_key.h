/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the public-key test share: public_key.c asks the SEC's unit and the kernel's software for times. */
#ifndef ESPBENCH_PUBLIC_KEY_H
#define ESPBENCH_PUBLIC_KEY_H

#include <linux/mpi.h>
#include <linux/types.h>

struct rsa_key;

#define PK_LONGEST 256 /* bytes of the longest operand: 2048 bits */

/* result = base^exponent mod modulus. All are big-endian; base and result are as long as the modulus. */
struct pk_power {
	u8 modulus[PK_LONGEST], base[PK_LONGEST], exponent[PK_LONGEST], result[PK_LONGEST];
	unsigned int length, exponent_length;
};

/* Times of so many operations, ns; those of the whole contain those of the overhead. */
struct pk_times {
	u64 whole, idle, overhead;
};

/* The SEC's unit (public_key_unit.c). 0, or an error; -ENODEV without a SEC. */
int pk_unit_power(struct pk_power *power);
/* The same descriptor with the least work for the unit: a product modulo 1, in operands of the same length. */
int pk_unit_nothing(struct pk_power *power);
/* RSA's private operation from two powers of half the length (RFC 8017 5.1.2, 2b). */
int pk_unit_crt(const struct rsa_key *key, const u8 *message, u8 *result);

/* The kernel's own arithmetic (public_key_software.c). */
int pk_software_power(struct pk_power *power);
/* Each makes an operation as often as asked, and compares the last result with the known answer. */
int pk_software_rsa(unsigned int bits, unsigned int count, struct pk_times *times);
int pk_software_ecdh(unsigned int bits, unsigned int count, struct pk_times *times);
int pk_software_ecdsa(unsigned int bits, unsigned int count, struct pk_times *times);

/* Big-endian, of exactly so many bytes; -EOVERFLOW for a larger number. */
int pk_write(MPI number, u8 *to, unsigned int length);
const u8 *pk_rsa_key(unsigned int bits, unsigned int *length); /* DER; NULL: no key of this length */

/* What a time is made of: the clock and the CPU's idle time, taken together before and after. */
void pk_begin(struct pk_times *times);
void pk_end(struct pk_times *times);

#endif
