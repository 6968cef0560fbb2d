// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver-level accelerator test (espbench): COUNT operations with one key, each dispatched when the one
 * before has completed, against all dispatched as fast as the driver takes them.
 *
 * /proc/espbench_accel: write "SUITE SIZE COUNT", then read the figures of that run.
 */
#include <crypto/aead.h>
#include <crypto/authenc.h>
#include <linux/crypto.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

/* More than the driver's queues hold, so that it is they that limit what is in flight. */
#define OPERATIONS 256
#define HEADER 8 /* SPI and sequence number: authenticated, not encrypted (RFC 4303) */
#define LONGEST 4096
#define KEY_ROOM 128

struct suite {
	const char *name, *algorithm;
	unsigned int cipher_key, hash_key, icv; /* bytes */
};

static const struct suite suites[] = {
	{ "3des-sha1", "authenc(hmac(sha1),cbc(des3_ede))", 24, 20, 12 },
	{ "3des-md5", "authenc(hmac(md5),cbc(des3_ede))", 24, 16, 12 },
	{ "aes128-sha1", "authenc(hmac(sha1),cbc(aes))", 16, 20, 12 },
	{ "aes256-sha256", "authenc(hmac(sha256),cbc(aes))", 32, 32, 16 },
};

struct run;

struct operation {
	struct run *run;
	struct operation *next; /* in the list of free ones */
	struct aead_request *request;
	struct scatterlist sg;
	u8 *data;
	u8 iv[16];
};

struct run {
	struct crypto_aead *tfm;
	unsigned int size, count, full;
	u64 after_ns, at_once_ns;
	struct operation *operations;

	spinlock_t lock; /* of what follows: completions come from softirqs */
	struct operation *free;
	unsigned int in_flight, completed;
	int error;
	wait_queue_head_t progress;
};

static DEFINE_MUTEX(one_at_a_time);
static char figures[256];

static void give_back(struct operation *operation, int error)
{
	struct run *run = operation->run;
	unsigned long flags;

	spin_lock_irqsave(&run->lock, flags);
	operation->next = run->free;
	run->free = operation;
	run->in_flight--;
	run->completed++;
	if (error && !run->error)
		run->error = error;
	spin_unlock_irqrestore(&run->lock, flags);
	wake_up(&run->progress);
}

static void on_complete(struct crypto_async_request *request, int error)
{
	if (error != -EINPROGRESS)
		give_back(request->data, error);
}

/* A free operation, waited for; NULL once one has failed. */
static struct operation *take(struct run *run)
{
	struct operation *operation;

	wait_event(run->progress, READ_ONCE(run->free));
	spin_lock_irq(&run->lock);
	operation = run->error ? NULL : run->free;
	if (operation) {
		run->free = operation->next;
		run->in_flight++;
	}
	spin_unlock_irq(&run->lock);
	return operation;
}

static void fill(struct operation *operation, unsigned int number)
{
	__be32 mark = cpu_to_be32(number);

	memcpy(operation->data + HEADER - sizeof(mark), &mark, sizeof(mark));
	memcpy(operation->data + HEADER, &mark, sizeof(mark));
	memset(operation->iv, 0, sizeof(operation->iv));
	memcpy(operation->iv, &mark, sizeof(mark));
}

/* Dispatch; a full queue is waited for. 0 once the driver has it, or it is done. */
static int dispatch(struct operation *operation)
{
	struct run *run = operation->run;
	unsigned int completed;
	int error;

	for (;;) {
		completed = READ_ONCE(run->completed);
		error = crypto_aead_encrypt(operation->request);
		if (error == -EINPROGRESS)
			return 0;
		if (error != -EAGAIN && error != -ENOSPC && error != -EBUSY)
			break;
		run->full++;
		if (READ_ONCE(run->in_flight) == 1) /* nobody's completion will make room */
			break;
		wait_event(run->progress, READ_ONCE(run->completed) != completed);
	}
	give_back(operation, error);
	return error;
}

static int dispatch_all(struct run *run, bool one_after_the_other)
{
	struct operation *operation;
	unsigned int number;

	run->completed = 0;
	for (number = 0; number < run->count; number++) {
		operation = take(run);
		if (!operation)
			break;
		fill(operation, number);
		if (dispatch(operation))
			break;
		if (one_after_the_other)
			wait_event(run->progress, !READ_ONCE(run->in_flight));
	}
	wait_event(run->progress, !READ_ONCE(run->in_flight));
	return run->error;
}

/* Whether the last operation's output is what the key makes of its input. */
static int check_last(struct run *run)
{
	struct operation *last = run->free; /* the list's head is the one that completed last */
	u8 *expected = kmemdup(last->data, HEADER, GFP_KERNEL);
	u8 iv[16];
	DECLARE_CRYPTO_WAIT(wait);
	struct aead_request *request = aead_request_alloc(run->tfm, GFP_KERNEL);
	int error = -ENOMEM;

	if (expected && request) {
		memset(iv, 0, sizeof(iv));
		memcpy(iv, last->data + HEADER - 4, 4); /* fill() put the same number there */
		aead_request_set_callback(request, CRYPTO_TFM_REQ_MAY_SLEEP, crypto_req_done, &wait);
		aead_request_set_ad(request, HEADER);
		aead_request_set_crypt(request, &last->sg, &last->sg, run->size + crypto_aead_authsize(run->tfm), iv);
		error = crypto_wait_req(crypto_aead_decrypt(request), &wait);
		if (!error && (memcmp(last->data, expected, HEADER) ||
			       memcmp(last->data + HEADER, last->data + HEADER - 4, 4)))
			error = -EBADMSG;
	}
	aead_request_free(request);
	kfree(expected);
	return error;
}

static int timed(struct run *run, bool one_after_the_other, u64 *ns)
{
	ktime_t start = ktime_get();
	int error = dispatch_all(run, one_after_the_other);

	*ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	return error ?: check_last(run);
}

static int set_key(struct crypto_aead *tfm, const struct suite *suite)
{
	u8 key[KEY_ROOM];
	struct rtattr *attribute = (void *)key;
	struct crypto_authenc_key_param *parameter = RTA_DATA(attribute);
	unsigned int length = RTA_SPACE(sizeof(*parameter));
	unsigned int i;

	attribute->rta_type = CRYPTO_AUTHENC_KEYA_PARAM;
	attribute->rta_len = RTA_LENGTH(sizeof(*parameter));
	parameter->enckeylen = cpu_to_be32(suite->cipher_key);
	/* Three different DES keys: equal ones are refused. */
	for (i = 0; i < suite->hash_key + suite->cipher_key; i++)
		key[length + i] = 37 * i + 11;
	return crypto_aead_setkey(tfm, key, length + suite->hash_key + suite->cipher_key);
}

static int prepare(struct run *run)
{
	unsigned int room = HEADER + run->size + crypto_aead_authsize(run->tfm), i;

	run->operations = kcalloc(OPERATIONS, sizeof(*run->operations), GFP_KERNEL);
	if (!run->operations)
		return -ENOMEM;
	for (i = 0; i < OPERATIONS; i++) {
		struct operation *operation = &run->operations[i];

		operation->run = run;
		operation->data = kzalloc(room, GFP_KERNEL);
		operation->request = aead_request_alloc(run->tfm, GFP_KERNEL);
		if (!operation->data || !operation->request)
			return -ENOMEM;
		sg_init_one(&operation->sg, operation->data, room);
		aead_request_set_callback(operation->request, 0, on_complete, operation);
		aead_request_set_ad(operation->request, HEADER);
		aead_request_set_crypt(operation->request, &operation->sg, &operation->sg, run->size, operation->iv);
		operation->next = run->free;
		run->free = operation;
	}
	return 0;
}

static void clear(struct run *run)
{
	unsigned int i;

	for (i = 0; run->operations && i < OPERATIONS; i++) {
		aead_request_free(run->operations[i].request);
		kfree(run->operations[i].data);
	}
	kfree(run->operations);
}

static int measure(const struct suite *suite, unsigned int size, unsigned int count)
{
	struct run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int error;

	if (!run)
		return -ENOMEM;
	run->size = size;
	run->count = count;
	spin_lock_init(&run->lock);
	init_waitqueue_head(&run->progress);
	run->tfm = crypto_alloc_aead(suite->algorithm, 0, 0);
	if (IS_ERR(run->tfm)) {
		error = PTR_ERR(run->tfm);
		kfree(run);
		return error;
	}
	error = set_key(run->tfm, suite);
	if (!error)
		error = crypto_aead_setauthsize(run->tfm, suite->icv);
	if (!error)
		error = prepare(run);
	if (!error)
		error = timed(run, true, &run->after_ns);
	if (!error)
		error = timed(run, false, &run->at_once_ns);
	if (!error)
		snprintf(figures, sizeof(figures), "driver=%s after_ns=%llu at_once_ns=%llu full=%u\n",
			 crypto_tfm_alg_driver_name(crypto_aead_tfm(run->tfm)), run->after_ns, run->at_once_ns,
			 run->full);
	clear(run);
	crypto_free_aead(run->tfm);
	kfree(run);
	return error;
}

static ssize_t accel_write(struct file *file, const char __user *from, size_t length, loff_t *offset)
{
	char text[64], name[32];
	unsigned int size, count, i;
	int error = -EINVAL;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	if (sscanf(text, "%31s %u %u", name, &size, &count) != 3)
		return -EINVAL;
	if (size < 16 || size > LONGEST || size % 16 || !count || count > 10000000)
		return -EINVAL;
	mutex_lock(&one_at_a_time);
	figures[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(suites); i++)
		if (!strcmp(suites[i].name, name))
			error = measure(&suites[i], size, count);
	mutex_unlock(&one_at_a_time);
	return error ?: length;
}

static ssize_t accel_read(struct file *file, char __user *to, size_t length, loff_t *offset)
{
	ssize_t given;

	mutex_lock(&one_at_a_time);
	given = simple_read_from_buffer(to, length, offset, figures, strlen(figures));
	mutex_unlock(&one_at_a_time);
	return given;
}

static const struct proc_ops accel_ops = { .proc_write = accel_write, .proc_read = accel_read };

static int __init accel_init(void)
{
	return proc_create("espbench_accel", 0600, NULL, &accel_ops) ? 0 : -ENOMEM;
}
device_initcall(accel_init);
