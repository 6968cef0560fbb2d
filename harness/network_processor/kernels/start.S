/* SPDX-License-Identifier: Apache-2.0 */
/* A thread begins here: a0 to a3 and sp are set. It ends by ecall. */
    .section .start, "ax"
    .globl _start
_start:
    call kernel
    ecall
