// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How IPsec gets at the SEC (espbench), by espbench.crypto= of the kernel's command line:
 *
 *   async      cipher and hash in one descriptor; an interrupt says when it is done (what Linux does by itself)
 *   polling    the same descriptor, but the CPU does nothing else until it is done; no done interrupts
 *   dual-pass  a descriptor for the cipher, then one for the hash; the CPU waits for each
 *   software   the SEC's driver keeps away, the CPU computes
 *
 * /proc/espbench_crypto says which it is and what the SEC was given. What cannot be as asked is a panic: figures of
 * another behaviour under this one's name would be worse than none.
 */
#include <asm/time.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "crypto.h"

static const char *const names[] = { "async", "polling", "dual-pass", "software" };

enum espbench_crypto espbench_crypto;
struct espbench_sec espbench_sec;
struct espbench_descriptor *espbench_built;
static char asked[32];
static bool was_asked;

static int __init take_option(char *value)
{
	int found = value ? match_string(names, ARRAY_SIZE(names), value) : -EINVAL;

	was_asked = true;
	strscpy(asked, value ?: "", sizeof(asked));
	espbench_crypto = max(found, 0);
	return 0;
}
early_param("espbench.crypto", take_option);

static int show(struct seq_file *file, void *unused)
{
	seq_printf(file, "behaviour=%s\nsec=%s\n", names[espbench_crypto], espbench_sec.version ?: "none");
	seq_printf(file, "single_pass=%llu\ncipher=%llu\ndigest=%llu\n", espbench_sec.single_pass,
		   espbench_sec.cipher, espbench_sec.digest);
	seq_printf(file, "polled=%llu\nwaited_ns=%llu\n", espbench_sec.polled, tb_to_ns(espbench_sec.waited_ticks));
	return 0;
}

/* Not where the option is read: there is no console yet. */
static int __init crypto_init(void)
{
	if (was_asked && match_string(names, ARRAY_SIZE(names), asked) < 0)
		panic("espbench.crypto=%s: expected async, polling, dual-pass or software", asked);
	return proc_create_single("espbench_crypto", 0444, NULL, show) ? 0 : -ENOMEM;
}
device_initcall(crypto_init);

/* After the drivers, before the algorithms are tested. */
static int __init crypto_with_sec(void)
{
	if (espbench_crypto == ESPBENCH_DUAL_PASS && espbench_sec.version && !espbench_sec.has_hmac)
		panic("espbench.crypto=dual-pass: expected a SEC that computes HMACs, %s does not", espbench_sec.version);
	if (espbench_crypto != ESPBENCH_SOFTWARE && !espbench_sec.version) {
		if (was_asked)
			panic("espbench.crypto=%s: expected a SEC, this board has none", asked);
		espbench_crypto = ESPBENCH_SOFTWARE;
	}
	return 0;
}
device_initcall_sync(crypto_with_sec);
