// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A driver of the SEC's public-key unit (PKEU): builds descriptors of the type pkeu_mm and submits them through a channel
 * of the SEC's own driver. Pointers are, in order: modulus, B, A, exponent, result.
 */
#include <crypto/internal/rsa.h>
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/hw_random.h>
#include <linux/interrupt.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../../crypto/talitos.h"
#include "public_key.h"

int talitos_submit(struct device *dev, int ch, struct talitos_desc *desc,
		   void (*callback)(struct device *dev, struct talitos_desc *desc, void *context, int error),
		   void *context);

#define PKEU_MM cpu_to_be32(16 << 3)
#define PKEU_RSA cpu_to_be32(0x80 << 20)      /* A^E mod N, in a single step */
#define PKEU_MULTIPLY cpu_to_be32(0x30 << 20) /* A B / R mod N */

enum { MODULUS, FACTOR, BASE, EXPONENT, RESULT, POINTERS };

struct job {
	struct talitos_desc descriptor;
	struct completion done;
	int error;
};

static struct device *sec(void)
{
	static struct device *found;
	struct device_node *node;
	struct platform_device *device;

	if (found)
		return found;
	node = of_find_compatible_node(NULL, NULL, "fsl,sec2.0");
	device = node ? of_find_device_by_node(node) : NULL;
	of_node_put(node);
	if (device && dev_get_drvdata(&device->dev)) /* its driver has it; with espbench.crypto=software none does */
		found = &device->dev;
	return found;
}

static void on_done(struct device *dev, struct talitos_desc *descriptor, void *context, int error)
{
	struct job *job = context;

	job->error = error;
	complete(&job->done);
}

static int point(struct device *dev, struct talitos_ptr *pointer, void *data, unsigned int length,
		 enum dma_data_direction direction)
{
	dma_addr_t address = dma_map_single(dev, data, length, direction);

	if (dma_mapping_error(dev, address))
		return -ENOMEM;
	pointer->ptr = cpu_to_be32(lower_32_bits(address));
	pointer->eptr = upper_32_bits(address);
	pointer->len = cpu_to_be16(length);
	return 0;
}

static void withdraw(struct device *dev, const struct talitos_ptr *pointer, enum dma_data_direction direction)
{
	dma_addr_t address = (dma_addr_t)pointer->eptr << 32 | be32_to_cpu(pointer->ptr);

	if (pointer->len)
		dma_unmap_single(dev, address, be16_to_cpu(pointer->len), direction);
}

static int execute(struct pk_power *power, __be32 mode)
{
	struct device *dev = sec();
	struct job *job;
	struct talitos_ptr *pointers;
	int error, i;

	if (!dev)
		return -ENODEV;
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return -ENOMEM;
	init_completion(&job->done);
	pointers = job->descriptor.ptr;
	job->descriptor.hdr = DESC_HDR_SEL0_PKEU | mode | PKEU_MM | DESC_HDR_DONE_NOTIFY;
	error = point(dev, &pointers[MODULUS], power->modulus, power->length, DMA_TO_DEVICE) ?:
		point(dev, &pointers[BASE], power->base, power->length, DMA_TO_DEVICE) ?:
		point(dev, &pointers[EXPONENT], power->exponent, power->exponent_length, DMA_TO_DEVICE) ?:
		point(dev, &pointers[RESULT], power->result, power->length, DMA_FROM_DEVICE);
	if (!error) {
		error = talitos_submit(dev, 0, &job->descriptor, on_done, job);
		if (error == -EINPROGRESS) {
			wait_for_completion(&job->done);
			error = job->error;
		}
	}
	for (i = 0; i < POINTERS; i++)
		withdraw(dev, &pointers[i], i == RESULT ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
	kfree(job);
	return error;
}

int pk_unit_power(struct pk_power *power)
{
	return execute(power, PKEU_RSA);
}

int pk_unit_nothing(struct pk_power *power)
{
	return execute(power, PKEU_MULTIPLY);
}

/* c^exponent mod prime by the unit. c is reduced first: the unit takes no base that is longer than the modulus. */
static MPI half(struct pk_power *power, MPI c, const u8 *prime, size_t prime_size, const u8 *exponent, size_t size)
{
	MPI reduced, modulus;
	int error;

	memset(power, 0, sizeof(*power));
	while (prime_size && !*prime) /* the encoding's sign */
		prime++, prime_size--;
	while (size && !*exponent)
		exponent++, size--;
	if (prime_size > PK_LONGEST || size > PK_LONGEST)
		return NULL;
	power->length = prime_size;
	power->exponent_length = size;
	memcpy(power->modulus, prime, prime_size);
	memcpy(power->exponent, exponent, size);
	modulus = mpi_read_raw_data(prime, prime_size);
	reduced = mpi_alloc(0);
	error = -ENOMEM;
	if (modulus && reduced) {
		mpi_fdiv_r(reduced, c, modulus);
		error = pk_write(reduced, power->base, power->length) ?: pk_unit_power(power);
	}
	mpi_free(modulus);
	mpi_free(reduced);
	return error ? NULL : mpi_read_raw_data(power->result, power->length);
}

/* m = m2 + q ((m1 - m2) qInv mod p) */
static int combine(const struct rsa_key *key, MPI m1, MPI m2, u8 *result)
{
	MPI p = mpi_read_raw_data(key->p, key->p_sz), q = mpi_read_raw_data(key->q, key->q_sz);
	MPI inverse = mpi_read_raw_data(key->qinv, key->qinv_sz), h = mpi_alloc(0);
	int error = -ENOMEM;

	if (m1 && m2 && p && q && inverse && h) {
		mpi_subm(h, m1, m2, p);
		mpi_mulm(h, h, inverse, p);
		mpi_mul(h, h, q);
		mpi_add(h, h, m2);
		error = pk_write(h, result, key->n_sz);
	}
	mpi_free(p);
	mpi_free(q);
	mpi_free(inverse);
	mpi_free(h);
	return error;
}

int pk_unit_crt(const struct rsa_key *key, const u8 *message, u8 *result)
{
	struct pk_power *power = kmalloc(sizeof(*power), GFP_KERNEL);
	MPI c = mpi_read_raw_data(message, key->n_sz), m1 = NULL, m2 = NULL;
	int error = -ENOMEM;

	if (power && c) {
		m1 = half(power, c, key->p, key->p_sz, key->dp, key->dp_sz);
		m2 = half(power, c, key->q, key->q_sz, key->dq, key->dq_sz);
		error = m1 && m2 ? combine(key, m1, m2, result) : -EIO;
	}
	mpi_free(c);
	mpi_free(m1);
	mpi_free(m2);
	kfree(power);
	return error;
}
