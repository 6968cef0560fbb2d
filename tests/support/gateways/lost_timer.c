/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a User-Mode Linux kernel, this loses its timer while the file named by LOST_TIMER is there: what the
 * kernel sets never fires.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int timer_settime(timer_t timer, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
    static int (*set)(timer_t, int, const struct itimerspec *, struct itimerspec *);
    static const struct itimerspec never;
    if (!set)
        set = (int (*)(timer_t, int, const struct itimerspec *, struct itimerspec *))dlsym(RTLD_NEXT, "timer_settime");
    return set(timer, flags, access(LOST_TIMER, F_OK) == 0 ? &never : wanted, before);
}
