/* Integers of 64 bits that wrap around instead of overflowing, and how a type keeps them: for references of exact
 * results. */
#pragma once

#include "common/dtype.h"

__host__ __device__ inline int64_t whole_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
__host__ __device__ inline int64_t whole_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
__host__ __device__ inline int64_t whole_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* An element of a type of integers as it is: a double would not hold all of them. */
__host__ __device__ inline int64_t whole_integer_at(const void *data, uint32_t type, int64_t at) {
    switch (type) {
    case DTYPE_INT64: return ((const int64_t *)data)[at];
    case DTYPE_INT32: return ((const int32_t *)data)[at];
    case DTYPE_INT16: return ((const int16_t *)data)[at];
    case DTYPE_INT8: return ((const int8_t *)data)[at];
    case DTYPE_UINT64: return (int64_t)((const uint64_t *)data)[at]; /* below 2^63, or as bits */
    case DTYPE_UINT32: return ((const uint32_t *)data)[at];
    case DTYPE_UINT16: return ((const uint16_t *)data)[at];
    default: return ((const uint8_t *)data)[at];
    }
}

/* A type of integers: those that 64 bits with a sign hold, and uint64. */
__host__ __device__ inline bool whole_is(uint32_t type) {
    return type == DTYPE_INT64 || type == DTYPE_INT32 || type == DTYPE_INT16 || type == DTYPE_INT8 ||
           type == DTYPE_UINT64 || type == DTYPE_UINT32 || type == DTYPE_UINT16 || type == DTYPE_UINT8;
}

/* As the type keeps it: modulo its range. Outputs are compared as doubles, so beyond 2^53 both sides are rounded alike:
 * what is equal stays equal. */
__host__ __device__ inline double whole_wrapped(uint32_t type, int64_t value) {
    switch (type) {
    case DTYPE_INT32: return (double)(int32_t)(uint32_t)(uint64_t)value;
    case DTYPE_INT16: return (double)(int16_t)(uint16_t)(uint64_t)value;
    case DTYPE_INT8: return (double)(int8_t)(uint8_t)(uint64_t)value;
    case DTYPE_UINT64: return (double)(uint64_t)value;
    case DTYPE_UINT32: return (double)(uint32_t)(uint64_t)value;
    case DTYPE_UINT16: return (double)(uint16_t)(uint64_t)value;
    case DTYPE_UINT8: return (double)(uint8_t)(uint64_t)value;
    default: return (double)value;
    }
}
