/* One word of bits to another, all of whose bits depend on each of the former's (splitmix64). */
#pragma once

#include <stdint.h>

static inline uint64_t mix_bits(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
