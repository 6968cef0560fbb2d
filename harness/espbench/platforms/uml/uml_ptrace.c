/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a User-Mode Linux kernel older than 6.13 run on a processor with AMX.
 *
 * Such a kernel saves 2696 bytes of a process's vector state and later sets as many. Where AMX makes
 * the state larger, the host refuses a shorter PTRACE_SETREGSET with EFAULT and the guest's init dies.
 * Preloaded into the kernel's process, this completes the state from the traced process itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

static long (*real_ptrace)(int, pid_t, void *, void *);

__attribute__((constructor)) static void find_ptrace(void) {
    real_ptrace = (long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
}

long ptrace(enum __ptrace_request request, ...) {
    static char state[65536] __attribute__((aligned(64)));
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);

    if (request == PTRACE_SETREGSET && (unsigned long)address == NT_X86_XSTATE) {
        const struct iovec *given = data;
        struct iovec whole = {state, sizeof state};
        if (real_ptrace(PTRACE_GETREGSET, pid, address, &whole) < 0)
            return -1;
        if (given->iov_len < whole.iov_len) {
            memcpy(state, given->iov_base, given->iov_len);
            return real_ptrace(PTRACE_SETREGSET, pid, address, &whole);
        }
    }
    return real_ptrace(request, pid, address, data);
}
