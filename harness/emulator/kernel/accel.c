// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver-level accelerator test (espbench): COUNT operations, each dispatched when the one before has completed,
 * against all dispatched as fast as the driver takes them. The driver is the one that ESP gets, so espbench.crypto
 * (crypto.c) holds here as well. By itself every block has the same key, is filled as it is dispatched, and the last
 * output alone is proved. What words change that: accel_parse().
 *
 * /proc/espbench_accel: write "SUITE SIZE COUNT [WORDS]", then read the figures of that run.
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
/* Those that are prepared together before the clock goes on: filling and emptying the queue is a small part of it. */
#define BATCH 2048
#define LONGEST 4096

/* One of the two ways to do them all. */
struct timing {
	u64 ns, idle_ns;
};

struct accel_run {
	struct accel_asked asked;
	struct accel_batch batch;
	struct crypto_aead *tfms[ACCEL_KEYS];
	unsigned int room, full;
	struct timing after, at_once;
	struct accel_operation *operations, *last;
	u8 *block;		      /* that all read; NULL: each has its own */
	struct accel_example example; /* the last operation's */

	spinlock_t lock; /* of what follows: completions come from softirqs */
	struct accel_operation *free;
	unsigned int in_flight, completed;
	int error;
	wait_queue_head_t progress;
};

static DEFINE_MUTEX(one_at_a_time);
static char figures[256];

static void give_back(struct accel_operation *operation, int error)
{
	struct accel_run *run = operation->run;
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

static void on_checked_complete(struct crypto_async_request *request, int error)
{
	struct accel_operation *operation = request->data;

	if (error != -EINPROGRESS)
		give_back(operation, error ?: accel_compare(&operation->run->asked, operation));
}

/* A free operation, waited for; NULL once one has failed. */
static struct accel_operation *take(struct accel_run *run)
{
	struct accel_operation *operation;

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

static void keep(struct accel_run *run, struct accel_operation *operation, unsigned int number)
{
	const u8 *input = run->asked.decrypt ? operation->expected : operation->source;

	run->last = operation;
	memcpy(run->example.input, input, ACCEL_HEADER + run->asked.size);
	memcpy(run->example.iv, operation->iv, sizeof(operation->iv));
	run->example.key = number % run->asked.keys;
	if (run->asked.decrypt)
		memcpy(run->example.output, operation->data, ACCEL_HEADER + run->asked.size + run->asked.suite->icv);
}

enum way { ENCRYPT, DECRYPT, BUILT };

static __always_inline int request(struct accel_operation *operation, enum way way)
{
	if (way == BUILT)
		return espbench_dispatch(&operation->descriptor);
	if (way == DECRYPT)
		return crypto_aead_decrypt(operation->request);
	return crypto_aead_encrypt(operation->request);
}

/*
 * Dispatch; a full queue is waited for. 0 once the driver has it, or it is done. Inlined for each way, so that none
 * calls through a pointer. What all ways share still asks for variants: the test without one takes 7 ns longer for an
 * operation than it did before there were any.
 */
static __always_inline int dispatch(struct accel_operation *operation, enum way way)
{
	struct accel_run *run = operation->run;
	unsigned int completed;
	int error;

	for (;;) {
		completed = READ_ONCE(run->completed);
		error = request(operation, way);
		if (error == -EINPROGRESS)
			return 0;
		if (error != -EAGAIN && error != -ENOSPC && error != -EBUSY)
			break;
		run->full++;
		if (READ_ONCE(run->in_flight) == 1) /* nobody's completion will make room */
			break;
		wait_event(run->progress, READ_ONCE(run->completed) != completed);
	}
	if (!error && run->asked.checking == ACCEL_DURING) /* it is done, and no callback was called */
		error = accel_compare(&run->asked, operation);
	give_back(operation, error);
	return error;
}

static __always_inline int dispatch_all(struct accel_run *run, bool one_after_the_other, bool is_varied)
{
	struct accel_operation *operation;
	unsigned int number;

	run->completed = 0;
	for (number = 0; number < run->asked.count; number++) {
		operation = take(run);
		if (!operation)
			break;
		accel_fill(operation, is_varied && run->asked.cached ? 0 : number);
		if (is_varied)
			aead_request_set_tfm(operation->request, run->tfms[number % run->asked.keys]);
		if (number == run->asked.count - 1)
			keep(run, operation, number);
		if (dispatch(operation, ENCRYPT))
			break;
		if (one_after_the_other)
			wait_event(run->progress, !READ_ONCE(run->in_flight));
	}
	wait_event(run->progress, !READ_ONCE(run->in_flight));
	return run->error;
}

/* As dispatch_all, of operations that were prepared. */
static int dispatch_batch(struct accel_run *run, unsigned int count, bool one_after_the_other)
{
	enum way way = run->asked.prebuilt && !one_after_the_other ? BUILT : run->asked.decrypt ? DECRYPT : ENCRYPT;
	unsigned int i;
	int error;

	run->completed = 0;
	for (i = 0; i < count; i++) {
		spin_lock_irq(&run->lock);
		run->in_flight++;
		spin_unlock_irq(&run->lock);
		if (way == BUILT)
			error = dispatch(&run->operations[i], BUILT);
		else if (way == DECRYPT)
			error = dispatch(&run->operations[i], DECRYPT);
		else
			error = dispatch(&run->operations[i], ENCRYPT);
		if (error || READ_ONCE(run->error))
			break;
		if (one_after_the_other)
			wait_event(run->progress, !READ_ONCE(run->in_flight));
	}
	wait_event(run->progress, !READ_ONCE(run->in_flight));
	return run->error;
}

static int prepare_batch(struct accel_run *run, unsigned int first, unsigned int count, bool build)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < count && !error; i++)
		error = accel_prepare(&run->batch, &run->operations[i], first + i, build);
	if (!error)
		keep(run, &run->operations[count - 1], first + count - 1);
	return error;
}

static int compare_batch(const struct accel_run *run, unsigned int count)
{
	unsigned int i = run->asked.checking == ACCEL_AFTER ? 0 : count - 1; /* while the clock ran, or the last */
	int error = 0;

	for (; run->operations[0].expected && i < count && !error; i++)
		error = accel_compare(&run->asked, &run->operations[i]);
	return error;
}

static int dispatch_batches(struct accel_run *run, bool one_after_the_other, struct timing *timing)
{
	unsigned int first, count;
	int error = 0;

	for (first = 0; first < run->asked.count && !error; first += count) {
		u64 idle;
		ktime_t start;

		count = min(run->asked.count - first, run->room);
		/* A failure leaves descriptors behind that were built in vain; its figures are an error. */
		error = prepare_batch(run, first, count, run->asked.prebuilt && !one_after_the_other);
		if (error)
			break;
		idle = espbench_idle_ns();
		start = ktime_get();
		error = dispatch_batch(run, count, one_after_the_other);
		timing->ns += ktime_to_ns(ktime_sub(ktime_get(), start));
		timing->idle_ns += espbench_idle_ns() - idle;
		if (!error)
			error = compare_batch(run, count);
	}
	return error;
}

static int timed(struct accel_run *run, bool one_after_the_other, struct timing *timing)
{
	const struct accel_asked *asked = &run->asked;
	int error;

	if (accel_is_prepared(asked)) {
		error = dispatch_batches(run, one_after_the_other, timing);
	} else {
		u64 idle = espbench_idle_ns();
		ktime_t start = ktime_get();

		if (asked->cached || asked->keys > 1)
			error = dispatch_all(run, one_after_the_other, true);
		else
			error = dispatch_all(run, one_after_the_other, false);
		timing->ns = ktime_to_ns(ktime_sub(ktime_get(), start));
		timing->idle_ns = espbench_idle_ns() - idle;
	}
	if (error)
		return error;
	if (!asked->decrypt)
		memcpy(run->example.output, run->last->data, ACCEL_HEADER + asked->size + asked->suite->icv);
	return accel_check(run->tfms[run->example.key], asked->suite, &run->example);
}

static int prepare_operation(struct accel_run *run, struct accel_operation *operation)
{
	const struct accel_asked *asked = &run->asked;
	unsigned int room = ACCEL_HEADER + asked->size + asked->suite->icv;

	operation->run = run;
	operation->data = kzalloc(room, GFP_KERNEL);
	operation->request = aead_request_alloc(run->tfms[0], GFP_KERNEL);
	if (asked->decrypt || asked->checking != ACCEL_LAST)
		operation->expected = kzalloc(room, GFP_KERNEL);
	if (!operation->data || !operation->request)
		return -ENOMEM;
	if ((asked->decrypt || asked->checking != ACCEL_LAST) && !operation->expected)
		return -ENOMEM;
	operation->source = run->block ?: operation->data;
	sg_init_one(&operation->from, operation->source, room);
	sg_init_one(&operation->to, operation->data, room);
	aead_request_set_callback(operation->request, 0,
				  asked->checking == ACCEL_DURING ? on_checked_complete : on_complete, operation);
	aead_request_set_ad(operation->request, ACCEL_HEADER);
	aead_request_set_crypt(operation->request, &operation->from, run->block ? &operation->to : &operation->from,
			       asked->size + (asked->decrypt ? asked->suite->icv : 0), operation->iv);
	operation->next = run->free;
	run->free = operation;
	return 0;
}

static int prepare(struct accel_run *run)
{
	unsigned int room = ACCEL_HEADER + run->asked.size + run->asked.suite->icv, i;
	int error = 0;

	for (i = 0; i < run->asked.keys; i++) {
		struct crypto_aead *tfm = accel_open(run->asked.suite, run->asked.suite->algorithm, i);

		if (IS_ERR(tfm))
			return PTR_ERR(tfm);
		run->tfms[i] = tfm;
	}
	run->room = accel_is_prepared(&run->asked) ? min(BATCH, run->asked.count) : OPERATIONS;
	run->operations = kcalloc(run->room, sizeof(*run->operations), GFP_KERNEL);
	run->example.size = run->asked.size;
	run->example.input = kzalloc(room, GFP_KERNEL);
	run->example.output = kzalloc(room, GFP_KERNEL);
	if (run->asked.cached)
		run->block = kzalloc(room, GFP_KERNEL);
	if (!run->operations || !run->example.input || !run->example.output || (run->asked.cached && !run->block))
		return -ENOMEM;
	for (i = 0; i < run->room && !error; i++)
		error = prepare_operation(run, &run->operations[i]);
	return error;
}

static void clear(struct accel_run *run)
{
	unsigned int i;

	for (i = 0; run->operations && i < run->room; i++) {
		aead_request_free(run->operations[i].request);
		kfree(run->operations[i].data);
		kfree(run->operations[i].expected);
	}
	kfree(run->operations);
	kfree(run->block);
	kfree(run->example.input);
	kfree(run->example.output);
	for (i = 0; i < ACCEL_KEYS; i++) {
		if (run->tfms[i])
			crypto_free_aead(run->tfms[i]);
		if (run->batch.software[i])
			crypto_free_aead(run->batch.software[i]);
	}
}

static void report(const struct accel_run *run)
{
	int length = snprintf(figures, sizeof(figures), "driver=%s after_ns=%llu at_once_ns=%llu full=%u",
			      crypto_tfm_alg_driver_name(crypto_aead_tfm(run->tfms[0])), run->after.ns,
			      run->at_once.ns, run->full);

	if (espbench_idle_ns()) /* a board that can tell */
		length += snprintf(figures + length, sizeof(figures) - length,
				   " after_idle_ns=%llu at_once_idle_ns=%llu", run->after.idle_ns,
				   run->at_once.idle_ns);
	snprintf(figures + length, sizeof(figures) - length, "\n");
}

static int measure(const struct accel_asked *asked)
{
	struct accel_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int error;

	if (!run)
		return -ENOMEM;
	run->asked = *asked;
	run->batch.asked = &run->asked;
	run->batch.tfms = run->tfms;
	spin_lock_init(&run->lock);
	init_waitqueue_head(&run->progress);
	error = prepare(run);
	if (!error)
		error = timed(run, true, &run->after);
	if (!error)
		error = timed(run, false, &run->at_once);
	if (!error)
		report(run);
	clear(run);
	kfree(run);
	return error;
}

static ssize_t accel_write(struct file *file, const char __user *from, size_t length, loff_t *offset)
{
	struct accel_asked asked;
	char text[128];
	int error;

	if (length >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, length))
		return -EFAULT;
	text[length] = '\0';
	if (accel_parse(text, &asked) || asked.size < 16 || asked.size > LONGEST || asked.size % 16 || !asked.count ||
	    asked.count > 10000000)
		return -EINVAL;
	mutex_lock(&one_at_a_time);
	figures[0] = '\0';
	error = measure(&asked);
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
