// SPDX-License-Identifier: Apache-2.0
/*
 * The driver-level accelerator test of a guest whose kernel has no engine: the kernel's crypto API computes, asked through
 * its sockets (AF_ALG), so each request also costs system calls. It is the test of harness/emulator/kernel/accel.c:
 * COUNT operations, each requested when the one before has completed, against many requested before their results are
 * taken together.
 *
 * crypto_api ALGORITHM CIPHER_KEY HASH_KEY IV ICV SIZE COUNT KEYS OPERATION DATA CHECK
 *
 * lengths in bytes. Prints `name=value` words; `input` and `output` are the last operation's, header first, in hex. An
 * output that is wrong ends it with a message.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

enum { HEADER = 8, BATCH = 2048, GROUP = 64, KEYS = 256, IV_ROOM = 16, LONGEST = 4096 };

/* An operation: data is header, block and, if it is to be decrypted, ICV; result is as long as what comes of it. */
struct operation {
	uint8_t *data, *result, *expected;
	uint8_t iv[IV_ROOM];
};

static const char *algorithm;
static unsigned int cipher_key, hash_key, iv_length, icv, size, count, keys;
static bool decrypts, cached, checks_after, checks_during;
static int transforms[KEYS], sockets[KEYS > GROUP ? KEYS : GROUP];
static unsigned int group;
static struct operation operations[BATCH];
static aio_context_t context;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int open_transform(unsigned int number)
{
	struct sockaddr_alg address = { .salg_family = AF_ALG, .salg_type = "aead" };
	uint8_t key[8 + 64] = { 8, 0, 1, 0 }; /* struct rtattr: length 8, CRYPTO_AUTHENC_KEYA_PARAM */
	int made = socket(AF_ALG, SOCK_SEQPACKET, 0);

	if (made < 0)
		fail("AF_ALG");
	snprintf((char *)address.salg_name, sizeof(address.salg_name), "%s", algorithm);
	if (bind(made, (struct sockaddr *)&address, sizeof(address)))
		fail(algorithm);
	key[7] = (uint8_t)cipher_key; /* its length, big-endian */
	for (unsigned int i = 0; i < hash_key + cipher_key; i++)
		key[8 + i] = (uint8_t)(37 * i + 11 + number);
	if (setsockopt(made, SOL_ALG, ALG_SET_KEY, key, 8 + hash_key + cipher_key) ||
	    setsockopt(made, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, icv))
		fail("key");
	return made;
}

static size_t length_in(bool decrypt)
{
	return HEADER + size + (decrypt ? icv : 0);
}

static size_t length_out(bool decrypt)
{
	return HEADER + size + (decrypt ? 0 : icv);
}

static void request(int to, const struct operation *operation, bool decrypt)
{
	char room[CMSG_SPACE(4) + CMSG_SPACE(4 + IV_ROOM) + CMSG_SPACE(4)] = { 0 };
	struct iovec data = { operation->data, length_in(decrypt) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = room };
	struct cmsghdr *part;

	message.msg_controllen = CMSG_SPACE(4) + CMSG_SPACE(4 + iv_length) + CMSG_SPACE(4);
	part = CMSG_FIRSTHDR(&message);
	*part = (struct cmsghdr){ CMSG_LEN(4), SOL_ALG, ALG_SET_OP };
	*(uint32_t *)CMSG_DATA(part) = decrypt ? ALG_OP_DECRYPT : ALG_OP_ENCRYPT;
	part = CMSG_NXTHDR(&message, part);
	*part = (struct cmsghdr){ CMSG_LEN(4 + iv_length), SOL_ALG, ALG_SET_IV };
	*(uint32_t *)CMSG_DATA(part) = iv_length;
	memcpy(CMSG_DATA(part) + 4, operation->iv, iv_length);
	part = CMSG_NXTHDR(&message, part);
	*part = (struct cmsghdr){ CMSG_LEN(4), SOL_ALG, ALG_SET_AEAD_ASSOCLEN };
	*(uint32_t *)CMSG_DATA(part) = HEADER;
	if (sendmsg(to, &message, 0) != (ssize_t)data.iov_len)
		fail("request");
}

static void once(int by, struct operation *operation, bool decrypt)
{
	request(by, operation, decrypt);
	if (read(by, operation->result, length_out(decrypt)) != (ssize_t)length_out(decrypt))
		fail("result");
}

static void compare(const struct operation *operation)
{
	if (memcmp(operation->result, operation->expected, length_out(decrypts)))
		wrong("an output is not what the same operation gave before");
}

/* The block and IV of an operation, unlike all others, unless all read one block. */
static void fill(struct operation *operation, unsigned int number)
{
	uint8_t mark[4] = { (uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };

	if (cached)
		memset(mark, 0, sizeof(mark));
	memcpy(operation->data + HEADER - sizeof(mark), mark, sizeof(mark));
	memcpy(operation->data + HEADER, mark, sizeof(mark));
	memset(operation->iv, 0, sizeof(operation->iv));
	memcpy(operation->iv, mark, sizeof(mark));
}

/* What is ready before the clock starts. */
static void prepare(unsigned int first, unsigned int number)
{
	for (unsigned int i = 0; i < number; i++) {
		struct operation *operation = &operations[i];
		int by = sockets[(first + i) % group];

		memset(operation->data + HEADER, 0, size);
		fill(operation, first + i);
		if (decrypts) {
			memcpy(operation->expected, operation->data, HEADER + size);
			once(by, operation, false);
			memcpy(operation->data, operation->result, HEADER + size + icv);
		} else if (checks_after || checks_during) {
			once(by, operation, false);
			memcpy(operation->expected, operation->result, HEADER + size + icv);
		}
	}
}

static void one_after_the_other(unsigned int first, unsigned int number, bool is_ready)
{
	for (unsigned int i = 0; i < number; i++) {
		if (!is_ready)
			fill(&operations[i], first + i);
		once(sockets[(first + i) % group], &operations[i], decrypts);
		if (checks_during)
			compare(&operations[i]);
	}
}

static void all_at_once(unsigned int first, unsigned int number, bool is_ready)
{
	struct iocb wishes[KEYS > GROUP ? KEYS : GROUP], *list[KEYS > GROUP ? KEYS : GROUP];
	struct io_event events[KEYS > GROUP ? KEYS : GROUP];
	unsigned int together;

	for (unsigned int begin = 0; begin < number; begin += together) {
		together = number - begin < group ? number - begin : group;
		for (unsigned int i = 0; i < together; i++) {
			struct operation *operation = &operations[begin + i];
			int by = sockets[(first + begin + i) % group];

			if (!is_ready)
				fill(operation, first + begin + i);
			request(by, operation, decrypts);
			wishes[i] = (struct iocb){ .aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (uint32_t)by,
				.aio_buf = (uint64_t)(uintptr_t)operation->result, .aio_nbytes = length_out(decrypts),
				.aio_data = begin + i };
			list[i] = &wishes[i];
		}
		if (syscall(SYS_io_submit, context, together, list) != (long)together)
			fail("io_submit");
		if (syscall(SYS_io_getevents, context, together, together, events, NULL) != (long)together)
			fail("io_getevents");
		for (unsigned int i = 0; i < together; i++) {
			if (events[i].res != (int64_t)length_out(decrypts))
				wrong("an operation failed");
			if (checks_during)
				compare(&operations[events[i].data]);
		}
	}
}

static uint64_t timed(void (*way)(unsigned int, unsigned int, bool))
{
	bool is_ready = decrypts || checks_after || checks_during;
	uint64_t ns = 0;
	unsigned int number;

	for (unsigned int first = 0; first < count; first += number) {
		uint64_t start;

		number = count - first < BATCH ? count - first : BATCH;
		if (is_ready)
			prepare(first, number);
		start = now_ns();
		way(first, number, is_ready);
		ns += now_ns() - start;
		for (unsigned int i = checks_after ? 0 : number - 1; is_ready && i < number; i++)
			compare(&operations[i]);
	}
	return ns;
}

static void print_hex(const char *name, const uint8_t *bytes, size_t length)
{
	printf(" %s=", name);
	for (size_t i = 0; i < length; i++)
		printf("%02x", bytes[i]);
}

/* Decrypting what was encrypted last gives its input; with one bit of the ICV changed it is refused. */
static void prove(unsigned int number)
{
	struct operation *last = &operations[(count - 1) % BATCH];
	struct operation proof = *last;
	uint8_t plain[HEADER + LONGEST], sealed[HEADER + LONGEST + 64];
	int by = sockets[number % group];

	memcpy(plain, decrypts ? last->result : last->data, HEADER + size);
	memcpy(sealed, decrypts ? last->data : last->result, HEADER + size + icv);
	proof.data = sealed;
	once(by, &proof, true);
	if (memcmp(proof.result, plain, HEADER + size))
		wrong("decryption does not give the input back");
	sealed[HEADER + size + icv - 1] ^= 1;
	request(by, &proof, true);
	if (read(by, proof.result, length_out(true)) >= 0 || errno != EBADMSG)
		wrong("a wrong ICV is not refused");
	sealed[HEADER + size + icv - 1] ^= 1;
	printf("key=%u", number % keys);
	print_hex("iv", last->iv, iv_length);
	print_hex("input", plain, HEADER + size);
	print_hex("output", sealed, HEADER + size + icv);
}

int main(int argc, char **argv)
{
	uint64_t after_ns, at_once_ns;
	uint8_t *block;

	if (argc != 12)
		return 64;
	algorithm = argv[1];
	cipher_key = (unsigned int)atoi(argv[2]);
	hash_key = (unsigned int)atoi(argv[3]);
	iv_length = (unsigned int)atoi(argv[4]);
	icv = (unsigned int)atoi(argv[5]);
	size = (unsigned int)atoi(argv[6]);
	count = (unsigned int)atoi(argv[7]);
	keys = (unsigned int)atoi(argv[8]);
	decrypts = !strcmp(argv[9], "decrypt");
	cached = !strcmp(argv[10], "cached");
	checks_after = !strcmp(argv[11], "after");
	checks_during = !strcmp(argv[11], "during");
	if (iv_length > IV_ROOM || size > LONGEST || icv > 64 || !keys || keys > KEYS || !count)
		return 64;
	group = keys >= GROUP ? keys : GROUP / keys * keys; /* so that a socket keeps its key */
	for (unsigned int i = 0; i < keys; i++)
		transforms[i] = open_transform(i);
	for (unsigned int i = 0; i < group; i++)
		if ((sockets[i] = accept(transforms[i % keys], NULL, 0)) < 0)
			fail("accept");
	if (syscall(SYS_io_setup, group, &context))
		fail("io_setup");
	block = calloc(1, HEADER + LONGEST + 64);
	for (unsigned int i = 0; i < BATCH; i++) {
		operations[i].data = cached ? block : calloc(1, HEADER + size + icv);
		operations[i].result = calloc(1, HEADER + size + icv);
		operations[i].expected = calloc(1, HEADER + size + icv);
		if (!operations[i].data || !operations[i].result || !operations[i].expected)
			fail("memory");
	}
	after_ns = timed(one_after_the_other);
	at_once_ns = timed(all_at_once);
	prove(count - 1);
	printf(" after_ns=%llu at_once_ns=%llu full=0\n", (unsigned long long)after_ns, (unsigned long long)at_once_ns);
	return 0;
}
