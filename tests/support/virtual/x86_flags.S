/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel for QEMU (PVH) that prints the flags which cmpxchg8b and cmpxchg16b leave, two hexadecimal numbers of
 * eight digits on the first serial port, and has the machine reset. Each instruction stands in one block with an
 * addition, behind a popf that clears all flags: what it leaves must be the addition's flags, with ZF of its own.
 */
    .section .note, "a", @note
    .long 4, 4, 18                      /* XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .long start32

    .text
    .code32
    .globl start32
start32:
    mov $stack_top, %esp
    movl $(level3 + 3), level4
    movl $(level2 + 3), level3
    movl $0x83, level2                  /* the first 2 MiB, where all of this is */
    mov $level4, %eax
    mov %eax, %cr3
    mov $0x20, %eax                     /* CR4.PAE */
    mov %eax, %cr4
    mov $0xc0000080, %ecx               /* EFER.LME */
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    lgdt table
    ljmp $8, $start64

    .code64
start64:
    mov $stack_top, %rsp
    mov $0x06543702, %rbx               /* as flags: TF, DF, IOPL 3, and such as no flag is */
    .macro flags_after instruction
    xor %eax, %eax
    xor %edx, %edx
    xor %ecx, %ecx
    mov $1, %esi
    push $2
    popf                                /* ends a block */
    add %rbx, %rsi                      /* 0x06543703: PF and no other */
    \instruction operand
    pushf
    pop %rsi
    call print
    .endm
    flags_after cmpxchg8b               /* equal: ZF, and something else is there from now on */
    flags_after cmpxchg16b
    mov $0xfe, %al
    out %al, $0x64                      /* the keyboard's controller resets the machine */
    ljmp *nowhere

print:
    mov $28, %cl
2:  mov %esi, %eax
    shr %cl, %eax
    and $15, %eax
    mov digits(%rax), %al
    mov $0x3f8, %dx
    out %al, %dx
    sub $4, %cl
    jns 2b
    mov $10, %al
    out %al, %dx
    ret

    .data
digits: .ascii "0123456789abcdef"
    .align 16
operand: .quad 0, 0
gdt: .quad 0, 0x00209a0000000000
table: .word 15
    .quad gdt
nowhere: .long 0
    .word 0
    .align 4096
level4: .fill 4096
level3: .fill 4096
level2: .fill 4096
    .fill 512
stack_top:
