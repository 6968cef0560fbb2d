// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The lean ESP's ports and SAs, by /proc/espbench_lean. What is written is one of
 *
 *   ports LAN WAN
 *   sa in|out SPI SOURCE DESTINATION LOCAL MASK REMOTE MASK WINDOW ICV ALGORITHM CIPHER-KEY AUTH-KEY
 *   flush
 *
 * SPI, addresses, masks and keys in hex, `-` for no key (NULL/NULL has none); the window in packets, the ICV in bytes;
 * the algorithm as the crypto API names it. From `ports` on the two interfaces' packets are taken. Reading says what there is and
 * what it has done; keys are never shown.
 */
#include <crypto/aead.h>
#include <crypto/authenc.h>
#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "lean.h"

#define LINE 1024
#define KEY 128 /* digits of one key */

static DEFINE_MUTEX(changing);
static DEFINE_HASHTABLE(inbound, 8);
LIST_HEAD(lean_sas);
struct lean_ports lean_ports;

static const char *const error_names[LEAN_ERRORS] = {
	[LEAN_QUEUE_FULL] = "LeanQueueFull", [LEAN_NO_MEMORY] = "LeanNoMemory", [LEAN_TOO_LONG] = "LeanTooLong",
	[LEAN_SEQUENCE] = "LeanSequence",    [LEAN_CIPHER] = "LeanCipher",	[LEAN_ICV] = "LeanIcv",
	[LEAN_REPLAY] = "LeanReplay",	     [LEAN_MALFORMED] = "LeanMalformed", [LEAN_SELECTOR] = "LeanSelector",
	[LEAN_TTL] = "LeanTtl",
};

struct lean_sa *lean_sa_of(__be32 spi)
{
	struct lean_sa *sa;

	hash_for_each_possible(inbound, sa, by_spi, (__force u32)spi)
		if (sa->spi == spi)
			return sa;
	return NULL;
}

/* A key's bytes; -1: it is none. */
static int bytes_of(const char *digits, u8 *key)
{
	size_t length = strlen(digits);

	if (!strcmp(digits, "-"))
		return 0;
	return length % 2 || hex2bin(key, digits, length / 2) ? -1 : (int)(length / 2);
}

/*
 * Cipher and HMAC have a key each, packed as the crypto API has it, both empty for NULL/NULL; a combined algorithm has
 * one key.
 */
static int set_keys(struct crypto_aead *tfm, const char *cipher, const char *authentication)
{
	struct {
		struct rtattr attribute;
		struct crypto_authenc_key_param parameter;
		u8 keys[KEY];
	} packed;
	u8 *cipher_key = packed.keys;
	int authentication_bytes = bytes_of(authentication, packed.keys), cipher_bytes, error;

	if (authentication_bytes >= 0)
		cipher_key += authentication_bytes;
	cipher_bytes = bytes_of(cipher, cipher_key);
	if (authentication_bytes < 0 || cipher_bytes < 0)
		return -EINVAL;
	if (!authentication_bytes && cipher_bytes)
		return crypto_aead_setkey(tfm, cipher_key, cipher_bytes);
	packed.attribute.rta_type = CRYPTO_AUTHENC_KEYA_PARAM;
	packed.attribute.rta_len = RTA_LENGTH(sizeof(packed.parameter));
	packed.parameter.enckeylen = cpu_to_be32(cipher_bytes);
	error = crypto_aead_setkey(tfm, (const u8 *)&packed,
				   offsetof(typeof(packed), keys) + authentication_bytes + cipher_bytes);
	memzero_explicit(&packed, sizeof(packed));
	return error;
}

static int open_cipher(struct lean_sa *sa, const char *algorithm, const char *cipher, const char *authentication)
{
	struct crypto_aead *tfm = crypto_alloc_aead(algorithm, 0, 0);
	int error;

	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	error = set_keys(tfm, cipher, authentication);
	if (!error)
		error = crypto_aead_setauthsize(tfm, sa->icv);
	if (error) {
		crypto_free_aead(tfm);
		return error;
	}
	sa->tfm = tfm;
	sa->iv = crypto_aead_ivsize(tfm);
	sa->block = ALIGN(crypto_aead_blocksize(tfm), 4);
	return 0;
}

static int add_sa(const char *text)
{
	char direction[4], algorithm[64], cipher[KEY + 1], authentication[KEY + 1];
	u32 spi, source, destination, local, local_mask, remote, remote_mask;
	struct lean_sa *sa = kzalloc(sizeof(*sa), GFP_KERNEL);
	int error = -EINVAL;

	if (!sa)
		return -ENOMEM;
	if (sscanf(text, "sa %3s %x %x %x %x %x %x %x %u %u %63s %128s %128s", direction, &spi, &source, &destination,
		   &local, &local_mask, &remote, &remote_mask, &sa->window, &sa->icv, algorithm, cipher,
		   authentication) == 13 && sa->window <= LEAN_WINDOW)
		error = open_cipher(sa, algorithm, cipher, authentication);
	memzero_explicit(cipher, sizeof(cipher));
	memzero_explicit(authentication, sizeof(authentication));
	if (!error && sa->iv > LEAN_IV) {
		crypto_free_aead(sa->tfm);
		error = -EINVAL;
	}
	if (error) {
		kfree(sa);
		return error;
	}
	sa->inbound = !strcmp(direction, "in");
	sa->spi = htonl(spi);
	sa->source = htonl(source);
	sa->destination = htonl(destination);
	sa->local = htonl(local);
	sa->local_mask = htonl(local_mask);
	sa->remote = htonl(remote);
	sa->remote_mask = htonl(remote_mask);
	local_bh_disable();
	list_add_tail(&sa->all, &lean_sas);
	if (sa->inbound)
		hash_add(inbound, &sa->by_spi, (__force u32)sa->spi);
	lean_forget_flows();
	local_bh_enable();
	return 0;
}

static void leave(struct net_device **port)
{
	if (!*port)
		return;
	rtnl_lock();
	netdev_rx_handler_unregister(*port);
	rtnl_unlock();
	dev_put(*port);
	*port = NULL;
}

static int take(struct net_device **port, const char *name, rx_handler_func_t *handler)
{
	struct net_device *dev = dev_get_by_name(&init_net, name);
	int error;

	if (!dev)
		return -ENODEV;
	*port = dev;
	rtnl_lock();
	error = netdev_rx_handler_register(dev, handler, NULL);
	rtnl_unlock();
	if (error) {
		dev_put(dev);
		*port = NULL;
	}
	return error;
}

static int take_ports(const char *text)
{
	char lan[IFNAMSIZ], wan[IFNAMSIZ];
	int error;

	if (sscanf(text, "ports %15s %15s", lan, wan) != 2)
		return -EINVAL;
	leave(&lean_ports.lan);
	leave(&lean_ports.wan);
	error = take(&lean_ports.lan, lan, lean_from_lan);
	if (!error)
		error = take(&lean_ports.wan, wan, lean_from_wan);
	if (error)
		leave(&lean_ports.lan);
	return error;
}

static void free_sa(struct lean_sa *sa)
{
	struct lean_operation *operation;

	while (READ_ONCE(sa->in_flight)) /* the engine has them; nothing new is coming */
		schedule_timeout_uninterruptible(1);
	while ((operation = sa->free)) {
		sa->free = operation->next;
		kfree_sensitive(operation);
	}
	crypto_free_aead(sa->tfm);
	kfree(sa);
}

static void flush(void)
{
	struct lean_sa *sa, *next;
	LIST_HEAD(old);

	leave(&lean_ports.lan);
	leave(&lean_ports.wan);
	local_bh_disable();
	list_splice_init(&lean_sas, &old);
	hash_init(inbound);
	lean_forget_flows();
	memset(lean_errors, 0, sizeof(lean_errors));
	lean_hits = lean_misses = 0;
	local_bh_enable();
	list_for_each_entry_safe(sa, next, &old, all)
		free_sa(sa);
}

static ssize_t lean_write(struct file *file, const char __user *from, size_t length, loff_t *offset)
{
	char *text;
	int error = 0;

	if (length >= LINE)
		return -EINVAL;
	text = memdup_user_nul(from, length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&changing);
	if (!strcmp(strim(text), "flush"))
		flush();
	else if (str_has_prefix(text, "ports "))
		error = take_ports(text);
	else if (str_has_prefix(text, "sa in ") || str_has_prefix(text, "sa out "))
		error = add_sa(text);
	else
		error = -EINVAL;
	mutex_unlock(&changing);
	kfree_sensitive(text);
	return error ?: length;
}

static int lean_show(struct seq_file *file, void *unused)
{
	const struct lean_sa *sa;
	unsigned int i;

	mutex_lock(&changing);
	seq_printf(file, "ports %s %s\n", lean_ports.lan ? lean_ports.lan->name : "-",
		   lean_ports.wan ? lean_ports.wan->name : "-");
	seq_printf(file, "flows hits=%llu misses=%llu\n", lean_hits, lean_misses);
	for (i = 0; i < LEAN_ERRORS; i++)
		seq_printf(file, "error %s %llu\n", error_names[i], lean_errors[i]);
	list_for_each_entry(sa, &lean_sas, all)
		seq_printf(file, "sa %s %08x %pI4 %pI4 window=%u icv=%u packets=%llu bytes=%llu driver=%s\n",
			   sa->inbound ? "in" : "out", ntohl(sa->spi), &sa->source, &sa->destination, sa->window,
			   sa->icv, sa->packets, sa->bytes, crypto_tfm_alg_driver_name(crypto_aead_tfm(sa->tfm)));
	mutex_unlock(&changing);
	return 0;
}

static int lean_open(struct inode *inode, struct file *file)
{
	return single_open(file, lean_show, NULL);
}

static const struct proc_ops lean_ops = {
	.proc_open = lean_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = lean_write,
};

static int __init lean_init(void)
{
	BUILD_BUG_ON(IS_ENABLED(CONFIG_SMP)); /* nothing is locked */
	return proc_create("espbench_lean", 0600, NULL, &lean_ops) ? 0 : -ENOMEM;
}
device_initcall(lean_init);
