/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5, its 64 steps written out as in RFC 1321, the constants being immediates. Level 1: two of its functions with one
 * operation less.
 */
#include "engine.h"

#define STATE_WORDS 4

#if LEVEL == 0
#define F(x, y, z) (((x) & (y)) | (~(x) & (z)))
#define G(x, y, z) (((x) & (z)) | ((y) & ~(z)))
#else
#define F(x, y, z) ((((y) ^ (z)) & (x)) ^ (z))
#define G(x, y, z) ((((x) ^ (y)) & (z)) ^ (y))
#endif
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

#define STEP(f, a, b, c, d, word, shift, constant) \
    a += f(b, c, d) + GET(word) + constant; \
    a = rotate_left(a, shift) + b

#define STEPS(at) \
    STEP(F, a, b, c, d, at + 0, 7, 0xd76aa478); \
    STEP(F, d, a, b, c, at + 1, 12, 0xe8c7b756); \
    STEP(F, c, d, a, b, at + 2, 17, 0x242070db); \
    STEP(F, b, c, d, a, at + 3, 22, 0xc1bdceee); \
    STEP(F, a, b, c, d, at + 4, 7, 0xf57c0faf); \
    STEP(F, d, a, b, c, at + 5, 12, 0x4787c62a); \
    STEP(F, c, d, a, b, at + 6, 17, 0xa8304613); \
    STEP(F, b, c, d, a, at + 7, 22, 0xfd469501); \
    STEP(F, a, b, c, d, at + 8, 7, 0x698098d8); \
    STEP(F, d, a, b, c, at + 9, 12, 0x8b44f7af); \
    STEP(F, c, d, a, b, at + 10, 17, 0xffff5bb1); \
    STEP(F, b, c, d, a, at + 11, 22, 0x895cd7be); \
    STEP(F, a, b, c, d, at + 12, 7, 0x6b901122); \
    STEP(F, d, a, b, c, at + 13, 12, 0xfd987193); \
    STEP(F, c, d, a, b, at + 14, 17, 0xa679438e); \
    STEP(F, b, c, d, a, at + 15, 22, 0x49b40821); \
    STEP(G, a, b, c, d, at + 1, 5, 0xf61e2562); \
    STEP(G, d, a, b, c, at + 6, 9, 0xc040b340); \
    STEP(G, c, d, a, b, at + 11, 14, 0x265e5a51); \
    STEP(G, b, c, d, a, at + 0, 20, 0xe9b6c7aa); \
    STEP(G, a, b, c, d, at + 5, 5, 0xd62f105d); \
    STEP(G, d, a, b, c, at + 10, 9, 0x02441453); \
    STEP(G, c, d, a, b, at + 15, 14, 0xd8a1e681); \
    STEP(G, b, c, d, a, at + 4, 20, 0xe7d3fbc8); \
    STEP(G, a, b, c, d, at + 9, 5, 0x21e1cde6); \
    STEP(G, d, a, b, c, at + 14, 9, 0xc33707d6); \
    STEP(G, c, d, a, b, at + 3, 14, 0xf4d50d87); \
    STEP(G, b, c, d, a, at + 8, 20, 0x455a14ed); \
    STEP(G, a, b, c, d, at + 13, 5, 0xa9e3e905); \
    STEP(G, d, a, b, c, at + 2, 9, 0xfcefa3f8); \
    STEP(G, c, d, a, b, at + 7, 14, 0x676f02d9); \
    STEP(G, b, c, d, a, at + 12, 20, 0x8d2a4c8a); \
    STEP(H, a, b, c, d, at + 5, 4, 0xfffa3942); \
    STEP(H, d, a, b, c, at + 8, 11, 0x8771f681); \
    STEP(H, c, d, a, b, at + 11, 16, 0x6d9d6122); \
    STEP(H, b, c, d, a, at + 14, 23, 0xfde5380c); \
    STEP(H, a, b, c, d, at + 1, 4, 0xa4beea44); \
    STEP(H, d, a, b, c, at + 4, 11, 0x4bdecfa9); \
    STEP(H, c, d, a, b, at + 7, 16, 0xf6bb4b60); \
    STEP(H, b, c, d, a, at + 10, 23, 0xbebfbc70); \
    STEP(H, a, b, c, d, at + 13, 4, 0x289b7ec6); \
    STEP(H, d, a, b, c, at + 0, 11, 0xeaa127fa); \
    STEP(H, c, d, a, b, at + 3, 16, 0xd4ef3085); \
    STEP(H, b, c, d, a, at + 6, 23, 0x04881d05); \
    STEP(H, a, b, c, d, at + 9, 4, 0xd9d4d039); \
    STEP(H, d, a, b, c, at + 12, 11, 0xe6db99e5); \
    STEP(H, c, d, a, b, at + 15, 16, 0x1fa27cf8); \
    STEP(H, b, c, d, a, at + 2, 23, 0xc4ac5665); \
    STEP(I, a, b, c, d, at + 0, 6, 0xf4292244); \
    STEP(I, d, a, b, c, at + 7, 10, 0x432aff97); \
    STEP(I, c, d, a, b, at + 14, 15, 0xab9423a7); \
    STEP(I, b, c, d, a, at + 5, 21, 0xfc93a039); \
    STEP(I, a, b, c, d, at + 12, 6, 0x655b59c3); \
    STEP(I, d, a, b, c, at + 3, 10, 0x8f0ccc92); \
    STEP(I, c, d, a, b, at + 10, 15, 0xffeff47d); \
    STEP(I, b, c, d, a, at + 1, 21, 0x85845dd1); \
    STEP(I, a, b, c, d, at + 8, 6, 0x6fa87e4f); \
    STEP(I, d, a, b, c, at + 15, 10, 0xfe2ce6e0); \
    STEP(I, c, d, a, b, at + 6, 15, 0xa3014314); \
    STEP(I, b, c, d, a, at + 13, 21, 0x4e0811a1); \
    STEP(I, a, b, c, d, at + 4, 6, 0xf7537e82); \
    STEP(I, d, a, b, c, at + 11, 10, 0xbd3af235); \
    STEP(I, c, d, a, b, at + 2, 15, 0x2ad7d2bb); \
    STEP(I, b, c, d, a, at + 9, 21, 0xeb86d391); \
    (void)0

#define COMPRESS(at, when_free) \
    do { \
        uint32_t a = h[0], b = h[1], c = h[2], d = h[3]; \
        STEPS(at); \
        when_free; \
        h[0] += a; \
        h[1] += b; \
        h[2] += c; \
        h[3] += d; \
    } while (0)

static inline __attribute__((always_inline)) void begin(uint32_t h[STATE_WORDS])
{
    h[0] = 0x67452301;
    h[1] = 0xefcdab89;
    h[2] = 0x98badcfe;
    h[3] = 0x10325476;
}

#include "hashes.h"
