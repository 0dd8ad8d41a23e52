/* Numbers of every type that tensors hold, to and from float and double. Loads are exact; stores round to nearest, ties
 * to even, and saturate where the type has no infinity. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

int cpu_number_bits(uint32_t type);   /* 0: a type that is not known here */
bool cpu_number_whole(uint32_t type); /* integers; bool is one */

float cpu_number_from_fp16(uint16_t h);
uint16_t cpu_number_to_fp16(float x);
float cpu_number_from_bf16(uint16_t h);
uint16_t cpu_number_to_bf16(float x);
float cpu_number_from_fp8e4m3(uint8_t b);
uint8_t cpu_number_to_fp8e4m3(float x);
float cpu_number_from_fp8e5m2(uint8_t b);
uint8_t cpu_number_to_fp8e5m2(float x);

/* The power of two of |x|, by what is added to x's bits before its fraction is cut off. */
enum { CPU_NUMBER_UP = 0x7fffff };
uint8_t cpu_number_to_fp8e8m0(float x, uint32_t up);

/* `count` elements from position `at`, `step` apart, as doubles (of int64: exact up to 2^53). Of 2 and 4 bits: the
 * lowest bits of a byte first. */
void cpu_number_load(uint32_t type, const void *data, int64_t at, int64_t step, int64_t count, double *out);
/* Stores one. Of 2 and 4 bits: the rest of the byte stays. */
void cpu_number_store(uint32_t type, void *data, int64_t at, double value);
