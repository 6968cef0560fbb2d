// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The public-key test (espbench): COUNT operations one after the other, by the SEC's unit or by the kernel's software,
 * each result compared with one that was computed otherwise.
 *
 * /proc/espbench_public_key: write "BY OPERATION BITS EXPONENT_BITS COUNT", then read the times of that run.
 */
#include <crypto/internal/rsa.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "idle.h"
#include "public_key.h"

static DEFINE_MUTEX(one_at_a_time);
static char figures[128];

void pk_begin(struct pk_times *times)
{
	times->idle = espbench_idle_ns();
	times->whole = ktime_get_ns();
}

void pk_end(struct pk_times *times)
{
	times->whole = ktime_get_ns() - times->whole;
	times->idle = espbench_idle_ns() - times->idle;
}

/* The modulus of a key, a base below it, and an exponent of exactly so many bits; no two bytes in a row are alike. */
static int fill(struct pk_power *power, unsigned int bits, unsigned int exponent_bits)
{
	struct rsa_key key = { 0 };
	unsigned int length, i, top = (exponent_bits - 1) % 8;
	const u8 *der = pk_rsa_key(bits, &length);
	int error = der ? rsa_parse_priv_key(&key, der, length) : -EINVAL;

	if (error)
		return error;
	memset(power, 0, sizeof(*power));
	power->length = bits / 8;
	power->exponent_length = (exponent_bits + 7) / 8;
	memcpy(power->modulus, key.n + key.n_sz - power->length, power->length);
	for (i = 1; i < power->length; i++)
		power->base[i] = 37 * i + 11;
	for (i = 0; i < power->exponent_length; i++)
		power->exponent[i] = 89 * i + 53;
	power->exponent[0] = (power->exponent[0] & ((1 << top) - 1)) | 1 << top;
	power->exponent[power->exponent_length - 1] |= 1;
	return 0;
}

/* What an operation of the same operands takes that gives the unit next to nothing to do. */
static int measure_overhead(const struct pk_power *power, unsigned int count, struct pk_times *times)
{
	struct pk_power *nothing = kmemdup(power, sizeof(*power), GFP_KERNEL);
	struct pk_times empty = { 0 };
	int error = nothing ? 0 : -ENOMEM;

	if (error)
		return error;
	memset(nothing->modulus, 0, nothing->length);
	nothing->modulus[nothing->length - 1] = 1;
	pk_begin(&empty);
	while (count-- && !error)
		error = pk_unit_nothing(nothing);
	pk_end(&empty);
	times->overhead = empty.whole;
	kfree(nothing);
	return error;
}

static int measure_power(bool by_unit, unsigned int bits, unsigned int exponent_bits, unsigned int count,
			 struct pk_times *times)
{
	struct pk_power *power = kmalloc(sizeof(*power), GFP_KERNEL), *other = NULL;
	unsigned int left = count;
	int error = power ? fill(power, bits, exponent_bits) : -ENOMEM;

	if (!error) {
		other = kmemdup(power, sizeof(*power), GFP_KERNEL);
		error = other ? 0 : -ENOMEM;
	}
	if (!error && by_unit) /* the first use is not measured: it finds the device */
		error = pk_unit_nothing(power) ?: measure_overhead(power, count, times);
	if (!error) {
		pk_begin(times);
		while (left-- && !error)
			error = by_unit ? pk_unit_power(power) : pk_software_power(power);
		pk_end(times);
	}
	/* Software is checked by the unit where there is one, and the unit always by software. */
	if (!error)
		error = by_unit ? pk_software_power(other) : pk_unit_power(other);
	if (!error && memcmp(power->result, other->result, power->length))
		error = -EBADMSG;
	kfree(power);
	kfree(other);
	return error;
}

static int measure_unit_crt(unsigned int bits, unsigned int count, struct pk_times *times)
{
	struct rsa_key key = { 0 };
	unsigned int length, left = count;
	const u8 *der = pk_rsa_key(bits, &length);
	struct pk_power *power = kmalloc(sizeof(*power), GFP_KERNEL), *back;
	int error = !power ? -ENOMEM : !der ? -EINVAL : rsa_parse_priv_key(&key, der, length);

	if (!error && *key.n == 0)
		key.n++, key.n_sz--;
	if (!error)
		error = fill(power, bits, bits);
	if (!error)
		error = pk_unit_crt(&key, power->base, power->result);
	if (!error) {
		pk_begin(times);
		while (left-- && !error)
			error = pk_unit_crt(&key, power->base, power->result);
		pk_end(times);
	}
	/* The public operation, in software, must give back what the private one was given. */
	back = error ? NULL : kmemdup(power, sizeof(*power), GFP_KERNEL);
	if (back) {
		memcpy(back->base, power->result, power->length);
		memcpy(back->exponent, key.e, key.e_sz);
		back->exponent_length = key.e_sz;
		error = pk_software_power(back);
		if (!error && memcmp(back->result, power->base, power->length))
			error = -EBADMSG;
	} else if (!error) {
		error = -ENOMEM;
	}
	kfree(power);
	kfree(back);
	return error;
}

static int measure(const char *by, const char *operation, unsigned int bits, unsigned int exponent_bits,
		   unsigned int count, struct pk_times *times)
{
	bool by_unit = !strcmp(by, "unit");

	if (!by_unit && strcmp(by, "software"))
		return -EINVAL;
	if (!strcmp(operation, "rsa") && exponent_bits && exponent_bits <= bits)
		return measure_power(by_unit, bits, exponent_bits, count, times);
	if (!strcmp(operation, "rsa-crt"))
		return by_unit ? measure_unit_crt(bits, count, times) : pk_software_rsa(bits, count, times);
	if (by_unit || (bits != 256 && bits != 384))
		return -EOPNOTSUPP;
	if (!strcmp(operation, "ecdh"))
		return pk_software_ecdh(bits, count, times);
	if (!strcmp(operation, "ecdsa-verify"))
		return pk_software_ecdsa(bits, count, times);
	return -EINVAL;
}

static ssize_t public_key_write(struct file *file, const char __user *from, size_t length, loff_t *offset)
{
	char text[96], by[16], operation[16];
	unsigned int bits, exponent_bits, count;
	struct pk_times times = { 0 };
	int error;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	if (sscanf(text, "%15s %15s %u %u %u", by, operation, &bits, &exponent_bits, &count) != 5)
		return -EINVAL;
	if (!count || count > 1000)
		return -EINVAL;
	mutex_lock(&one_at_a_time);
	figures[0] = '\0';
	error = measure(by, operation, bits, exponent_bits, count, &times);
	if (!error)
		snprintf(figures, sizeof(figures), "whole_ns=%llu idle_ns=%llu overhead_ns=%llu\n", times.whole,
			 times.idle, times.overhead);
	mutex_unlock(&one_at_a_time);
	return error ?: length;
}

static ssize_t public_key_read(struct file *file, char __user *to, size_t length, loff_t *offset)
{
	ssize_t given;

	mutex_lock(&one_at_a_time);
	given = simple_read_from_buffer(to, length, offset, figures, strlen(figures));
	mutex_unlock(&one_at_a_time);
	return given;
}

static const struct proc_ops public_key_ops = { .proc_write = public_key_write, .proc_read = public_key_read };

static int __init public_key_init(void)
{
	return proc_create("espbench_public_key", 0600, NULL, &public_key_ops) ? 0 : -ENOMEM;
}
device_initcall(public_key_init);
