/* The data types of ONNX: one table, numbered as in the format. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum dtype {
    DTYPE_NONE = 0,
    DTYPE_FP32 = 1,
    DTYPE_UINT8 = 2,
    DTYPE_INT8 = 3,
    DTYPE_UINT16 = 4,
    DTYPE_INT16 = 5,
    DTYPE_INT32 = 6,
    DTYPE_INT64 = 7,
    DTYPE_STRING = 8,
    DTYPE_BOOL = 9,
    DTYPE_FP16 = 10,
    DTYPE_FP64 = 11,
    DTYPE_UINT32 = 12,
    DTYPE_UINT64 = 13,
    DTYPE_COMPLEX64 = 14,
    DTYPE_COMPLEX128 = 15,
    DTYPE_BF16 = 16,
    DTYPE_FP8E4M3FN = 17,
    DTYPE_FP8E4M3FNUZ = 18,
    DTYPE_FP8E5M2 = 19,
    DTYPE_FP8E5M2FNUZ = 20,
    DTYPE_UINT4 = 21,
    DTYPE_INT4 = 22,
    DTYPE_FP4E2M1 = 23,
    DTYPE_FP8E8M0 = 24,
    DTYPE_UINT2 = 25,
    DTYPE_INT2 = 26,
    DTYPE_COUNT
} dtype;

typedef enum dtype_class {
    DTYPE_CLASS_NONE,
    DTYPE_CLASS_INT,
    DTYPE_CLASS_FLOAT,
    DTYPE_CLASS_COMPLEX,
    DTYPE_CLASS_STRING
} dtype_class;

typedef struct dtype_info {
    const char *name; /* ours: fp32, fp16, bf16, int8, uint4, fp8e4m3fn, bool, string, … */
    const char *onnx; /* the format's: FLOAT, FLOAT16, … */
    int bits;         /* 0 where there is no fixed size */
    dtype_class cls;  /* bool counts as INT */
    bool is_signed;
} dtype_info;

const dtype_info *dtype_get(
    dtype t); /* any number is fine: unknown ones give the row of DTYPE_NONE, whose name is "none" */
bool dtype_known(int64_t number);               /* 1..26 */
dtype dtype_from_name(const char *name);        /* DTYPE_NONE where unknown */
int64_t dtype_bytes(dtype t, int64_t elements); /* packed size, rounded up to a byte; saturates */
