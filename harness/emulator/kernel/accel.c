// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver-level accelerator test (espbench): COUNT operations with one key, each dispatched when the one
 * before has completed, against all dispatched as fast as the driver takes them. The driver is the one that ESP gets,
 * so espbench.crypto (crypto.c) holds here as well.
 *
 * /proc/espbench_accel: write "SUITE SIZE COUNT", then read the figures of that run.
 */
#include <crypto/aead.h>
#include <linux/crypto.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "accel.h"
#include "idle.h"

/* More than the driver's queues hold, so that it is they that limit what is in flight. */
#define OPERATIONS 256
#define LONGEST 4096

struct run;

struct operation {
	struct run *run;
	struct operation *next; /* in the list of free ones */
	struct aead_request *request;
	struct scatterlist sg;
	u8 *data;
	u8 iv[ACCEL_IV];
};

/* One of the two ways to do them all. */
struct timing {
	u64 ns, idle_ns;
};

struct run {
	const struct accel_suite *suite;
	struct crypto_aead *tfm;
	unsigned int size, count, full;
	struct timing after, at_once;
	struct operation *operations, *last;
	struct accel_example example; /* the last operation's */

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

	memcpy(operation->data + ACCEL_HEADER - sizeof(mark), &mark, sizeof(mark));
	memcpy(operation->data + ACCEL_HEADER, &mark, sizeof(mark));
	memset(operation->iv, 0, sizeof(operation->iv));
	memcpy(operation->iv, &mark, sizeof(mark));
}

static void keep(struct run *run, struct operation *operation)
{
	run->last = operation;
	memcpy(run->example.input, operation->data, ACCEL_HEADER + run->size);
	memcpy(run->example.iv, operation->iv, sizeof(operation->iv));
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
		if (number == run->count - 1)
			keep(run, operation);
		if (dispatch(operation))
			break;
		if (one_after_the_other)
			wait_event(run->progress, !READ_ONCE(run->in_flight));
	}
	wait_event(run->progress, !READ_ONCE(run->in_flight));
	return run->error;
}

static int timed(struct run *run, bool one_after_the_other, struct timing *timing)
{
	u64 idle = espbench_idle_ns();
	ktime_t start = ktime_get();
	int error = dispatch_all(run, one_after_the_other);

	timing->ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	timing->idle_ns = espbench_idle_ns() - idle;
	if (error)
		return error;
	memcpy(run->example.output, run->last->data, ACCEL_HEADER + run->size + run->suite->icv);
	return accel_check(run->tfm, run->suite, &run->example);
}

static int prepare(struct run *run)
{
	unsigned int room = ACCEL_HEADER + run->size + run->suite->icv, i;

	run->operations = kcalloc(OPERATIONS, sizeof(*run->operations), GFP_KERNEL);
	run->example.size = run->size;
	run->example.input = kzalloc(room, GFP_KERNEL);
	run->example.output = kzalloc(room, GFP_KERNEL);
	if (!run->operations || !run->example.input || !run->example.output)
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
		aead_request_set_ad(operation->request, ACCEL_HEADER);
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
	kfree(run->example.input);
	kfree(run->example.output);
}

static void report(const struct run *run)
{
	int length = snprintf(figures, sizeof(figures), "driver=%s after_ns=%llu at_once_ns=%llu full=%u",
			      crypto_tfm_alg_driver_name(crypto_aead_tfm(run->tfm)), run->after.ns, run->at_once.ns,
			      run->full);

	if (espbench_idle_ns()) /* a board that can tell */
		length += snprintf(figures + length, sizeof(figures) - length,
				   " after_idle_ns=%llu at_once_idle_ns=%llu", run->after.idle_ns,
				   run->at_once.idle_ns);
	snprintf(figures + length, sizeof(figures) - length, "\n");
}

static int measure(const struct accel_suite *suite, unsigned int size, unsigned int count)
{
	struct run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int error;

	if (!run)
		return -ENOMEM;
	run->suite = suite;
	run->size = size;
	run->count = count;
	spin_lock_init(&run->lock);
	init_waitqueue_head(&run->progress);
	run->tfm = accel_open(suite, suite->algorithm);
	if (IS_ERR(run->tfm)) {
		error = PTR_ERR(run->tfm);
		kfree(run);
		return error;
	}
	error = prepare(run);
	if (!error)
		error = timed(run, true, &run->after);
	if (!error)
		error = timed(run, false, &run->at_once);
	if (!error)
		report(run);
	clear(run);
	crypto_free_aead(run->tfm);
	kfree(run);
	return error;
}

static ssize_t accel_write(struct file *file, const char __user *from, size_t length, loff_t *offset)
{
	const struct accel_suite *suite;
	char text[64], name[32];
	unsigned int size, count;
	int error;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	if (sscanf(text, "%31s %u %u", name, &size, &count) != 3)
		return -EINVAL;
	suite = accel_suite(name);
	if (!suite || size < 16 || size > LONGEST || size % 16 || !count || count > 10000000)
		return -EINVAL;
	mutex_lock(&one_at_a_time);
	figures[0] = '\0';
	error = measure(suite, size, count);
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
