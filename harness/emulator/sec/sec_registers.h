/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers and descriptor fields of the SEC, named as in the reference manuals (MPC8548E and kin, chapter
 * "Security Engine"). The manuals number bits from the left; here they are plain masks of 32-bit words.
 */
#ifndef ESPBENCH_SEC_REGISTERS_H
#define ESPBENCH_SEC_REGISTERS_H

/* Controller; each register is a doubleword, high word first. */
#define REG_IMR			0x1008	/* interrupt mask: 1 lets through */
#define REG_ISR			0x1010	/* interrupt status */
#define REG_ICR			0x1018	/* interrupt clear */
#define REG_ID			0x1020
#define REG_EUASR		0x1028	/* EU assignment status */
#define REG_MCR			0x1030	/* master control */
#define REG_BLOCK_REVISION	0x1bf8
#define MCR_SWR			0x1u	/* high word: software reset */
#define ISR_DONE(channel)	(1ull << (32 + 2 * (channel)))
#define ISR_ERROR(channel)	(1ull << (33 + 2 * (channel)))
#define ISR_OVERFLOW(channel)	(1ull << (40 + (channel)))

/* Channel n at CHANNEL_BASE + n * CHANNEL_STRIDE. */
#define CHANNEL_BASE		0x1100
#define CHANNEL_STRIDE		0x100
#define REG_CCR			0x08	/* channel configuration */
#define REG_CPSR		0x10	/* channel pointer status */
#define REG_CDPR		0x40	/* current descriptor pointer */
#define REG_FF			0x48	/* fetch FIFO */
#define REG_DESCRIPTOR		0x80	/* descriptor buffer, 64 bytes */
#define CCR_CON			0x2u	/* high word: continue */
#define CCR_R			0x1u	/* high word: reset channel */
#define CCR_IWSE		0x80u	/* ICV status write back */
#define CCR_EAE			0x20u	/* 36-bit addresses */
#define CCR_CDWE		0x10u	/* done write back */
#define CCR_AWSE		0x08u	/* status write back, always */
#define CCR_NT			0x04u	/* notify only where the header's DN asks for it */
#define CCR_CDIE		0x02u	/* done interrupt */

/* CPSR, low word: channel errors. */
#define ERROR_DOF		0x8000u	/* fetch FIFO overflow, the second */
#define ERROR_SOF		0x4000u	/* fetch FIFO overflow, the first */
#define ERROR_MDTE		0x2000u	/* master data transfer: the bus said no */
#define ERROR_SGDLZ		0x1000u	/* scatter/gather segment of length zero */
#define ERROR_FPZ		0x0800u	/* fetch pointer zero */
#define ERROR_IDH		0x0400u	/* illegal descriptor header */
#define ERROR_IEU		0x0200u	/* invalid execution unit */
#define ERROR_EU		0x0100u	/* the execution unit reports one */
#define ERROR_GB		0x0080u	/* gather: a segment straddles two parcels */
#define ERROR_GRL		0x0040u	/* gather: the link table ends before the length */
#define ERROR_SB		0x0020u	/* scatter: as GB */
#define ERROR_SRL		0x0010u	/* scatter: as GRL */

/* Execution units: base = page << 12. */
#define PAGE_DEU		0x2
#define PAGE_AESU		0x4
#define PAGE_MDEU		0x6
#define PAGE_RNGU		0xa
#define PAGE_PKEU		0xc
#define REG_EU_RESET		0x18
#define REG_EU_STATUS		0x28
#define REG_EU_ISR		0x30	/* interrupt status */
#define REG_EU_ICR		0x38	/* interrupt control: 1 masks */
#define REG_EU_FIFO		0x800
#define EU_RESET_SR		0x1u	/* software reset */
#define EU_RESET_MI		0x2u	/* module initialisation */
#define EU_RESET_RI		0x4u	/* interrupt status only */
#define EU_STATUS_RD		0x1u	/* reset done */
#define EU_STATUS_OFL(n)	((uint32_t)(n) << 16)	/* doublewords in the output FIFO */
#define EU_ICE			0x4000u	/* integrity check: ICVs differ */
#define EU_KPE			0x2000u	/* DEU: key parity */
#define EU_INV			0x2000u	/* PKEU: even or zero modulus */
#define EU_IE			0x1000u	/* internal */
#define EU_CE			0x0400u	/* context */
#define EU_KSE			0x0200u	/* key size */
#define EU_DSE			0x0100u	/* data size */
#define EU_ME			0x0080u	/* mode */

/* Descriptor header, high word. */
#define HEADER_DONE		0xff000000u
#define HEADER_UNIT0(h)		((h) >> 28 & 0xf)
#define HEADER_MODE0(h)		((h) >> 20 & 0xff)
#define HEADER_UNIT1(h)		((h) >> 16 & 0xf)
#define HEADER_MODE1(h)		((h) >> 8 & 0xff)
#define HEADER_TYPE(h)		((h) >> 3 & 0x1f)
#define HEADER_INBOUND		0x2u
#define HEADER_DN		0x1u
/* Header, low word, written back: result of the integrity check of the primary (0) or secondary (1) unit. */
#define ICCR0_SHIFT		27
#define ICCR1_SHIFT		19
#define ICCR_PASS		1u
#define ICCR_FAIL		2u

#define UNIT_NONE		0x0
#define UNIT_DEU		0x2
#define UNIT_MDEU_A		0x3
#define UNIT_RNGU		0x4
#define UNIT_PKEU		0x5
#define UNIT_AESU		0x6
#define UNIT_MDEU_B		0xb

#define TYPE_AESU_CTR		0	/* aesu_ctr_nonsnoop */
#define TYPE_IPSEC_ESP		1
#define TYPE_COMMON		2	/* common_nonsnoop */
#define TYPE_HMAC_SNOOP		4	/* hmac_snoop_no_afeu */
#define TYPE_PKEU_MM		16
#define TYPE_HMAC_SNOOP_CTR	24	/* hmac_snoop_aesu_ctr */

/* Unit modes. */
#define DEU_ENCRYPT		0x01
#define DEU_TRIPLE		0x02
#define DEU_CHAINING		0x0c
#define DEU_CBC			0x04
#define AESU_ENCRYPT		0x01
#define AESU_CHAINING		0x06
#define AESU_ECB		0x00
#define AESU_CBC		0x02
#define AESU_CTR		0x06
#define MDEU_CONT		0x80	/* more descriptors follow: leave the context unfinished */
#define MDEU_CICV		0x40	/* compare with the ICV received */
#define MDEU_SMAC		0x20
#define MDEU_INIT		0x10
#define MDEU_HMAC		0x08
#define MDEU_PD			0x04	/* pad the last block */
#define MDEU_ALGORITHM		0x03
#define PKEU_MOD_EXP		0x02	/* (A / R)^E mod N */
#define PKEU_R2_MOD_N		0x03	/* R^2 mod N */
#define PKEU_MULTIPLY		0x30	/* A B / R mod N */
#define PKEU_RSA		0x80	/* A^E mod N, in a single step */

/* Pointer and link table entry, third byte. */
#define POINTER_JUMP		0x80	/* to a link table */
#define POINTER_EXTENT		0x7f
#define ENTRY_RETURN		0x02	/* the last entry */
#define ENTRY_NEXT		0x01	/* continues in another table */

#endif
