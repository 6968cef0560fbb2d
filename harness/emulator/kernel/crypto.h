/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the SEC's driver asks of, and tells, crypto.c; 10-talitos-behaviours.patch has the places where it does. */
#ifndef ESPBENCH_CRYPTO_H
#define ESPBENCH_CRYPTO_H

#include <linux/types.h>

enum espbench_crypto { ESPBENCH_ASYNC, ESPBENCH_POLLING, ESPBENCH_DUAL_PASS, ESPBENCH_SOFTWARE };

/* How IPsec gets at the SEC: set before any driver is there, from the kernel's command line. */
extern enum espbench_crypto espbench_crypto;

/* The SEC that the driver drives, and what it has been given since the boot. */
struct espbench_sec {
	const char *version;		/* of the device tree; NULL: none */
	bool has_hmac;			/* of its own, not only hashes */
	u64 single_pass, cipher, digest; /* descriptors, by what they do */
	u64 polled;			/* of them, those that the CPU waited for */
	u64 waited_ticks;		/* of the timebase */
};
extern struct espbench_sec espbench_sec;

/* Does the CPU wait for each descriptor and do nothing else meanwhile? */
static inline bool espbench_polls(void)
{
	return espbench_crypto == ESPBENCH_POLLING || espbench_crypto == ESPBENCH_DUAL_PASS;
}

/* A descriptor that the driver has built and not dispatched: what its talitos_submit() was called with. */
struct device;
struct talitos_desc;
struct espbench_descriptor {
	struct device *dev;
	int ch;
	struct talitos_desc *desc;
	void (*callback)(struct device *dev, struct talitos_desc *desc, void *context, int error);
	void *context;
};

/* Where the driver puts the next descriptor instead of dispatching it; NULL, as the driver leaves it: it dispatches. */
extern struct espbench_descriptor *espbench_built;

/* -EINPROGRESS; -EAGAIN: the queue is full, the descriptor may be dispatched later. */
int espbench_dispatch(const struct espbench_descriptor *built);

#endif
