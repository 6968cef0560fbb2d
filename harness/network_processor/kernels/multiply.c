/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiplication for engines that have none; the compiler calls it. Level 0: one bit of the multiplier after the other, a
 * branch for each. Level 1: four bits a turn, without a branch inside.
 */
#include <stdint.h>

uint32_t __mulsi3(uint32_t a, uint32_t b);

uint32_t __mulsi3(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

#if LEVEL == 0
    for (; a; a >>= 1) {
        if (a & 1)
            product += b;
        b <<= 1;
    }
#else
    for (; a; a >>= 4) {
        product += b & -(a & 1);
        product += b << 1 & -(a >> 1 & 1);
        product += b << 2 & -(a >> 2 & 1);
        product += b << 3 & -(a >> 3 & 1);
        b <<= 4;
    }
#endif
    return product;
}
