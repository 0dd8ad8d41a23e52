/* The table of data types. */
#include "common/dtype.h"

#include "common/checked.h"

#include <string.h>

#define INT_ROW(name, onnx, bits, is_signed)                                                                           \
    { name, onnx, bits, DTYPE_CLASS_INT, is_signed }
#define FLOAT_ROW(name, onnx, bits)                                                                                    \
    { name, onnx, bits, DTYPE_CLASS_FLOAT, true }

static const dtype_info table[DTYPE_COUNT] = {
    [DTYPE_NONE] = {"none", "UNDEFINED", 0, DTYPE_CLASS_NONE, false},
    [DTYPE_FP32] = FLOAT_ROW("fp32", "FLOAT", 32),
    [DTYPE_UINT8] = INT_ROW("uint8", "UINT8", 8, false),
    [DTYPE_INT8] = INT_ROW("int8", "INT8", 8, true),
    [DTYPE_UINT16] = INT_ROW("uint16", "UINT16", 16, false),
    [DTYPE_INT16] = INT_ROW("int16", "INT16", 16, true),
    [DTYPE_INT32] = INT_ROW("int32", "INT32", 32, true),
    [DTYPE_INT64] = INT_ROW("int64", "INT64", 64, true),
    [DTYPE_STRING] = {"string", "STRING", 0, DTYPE_CLASS_STRING, false},
    [DTYPE_BOOL] = INT_ROW("bool", "BOOL", 8, false),
    [DTYPE_FP16] = FLOAT_ROW("fp16", "FLOAT16", 16),
    [DTYPE_FP64] = FLOAT_ROW("fp64", "DOUBLE", 64),
    [DTYPE_UINT32] = INT_ROW("uint32", "UINT32", 32, false),
    [DTYPE_UINT64] = INT_ROW("uint64", "UINT64", 64, false),
    [DTYPE_COMPLEX64] = {"complex64", "COMPLEX64", 64, DTYPE_CLASS_COMPLEX, true},
    [DTYPE_COMPLEX128] = {"complex128", "COMPLEX128", 128, DTYPE_CLASS_COMPLEX, true},
    [DTYPE_BF16] = FLOAT_ROW("bf16", "BFLOAT16", 16),
    [DTYPE_FP8E4M3FN] = FLOAT_ROW("fp8e4m3fn", "FLOAT8E4M3FN", 8),
    [DTYPE_FP8E4M3FNUZ] = FLOAT_ROW("fp8e4m3fnuz", "FLOAT8E4M3FNUZ", 8),
    [DTYPE_FP8E5M2] = FLOAT_ROW("fp8e5m2", "FLOAT8E5M2", 8),
    [DTYPE_FP8E5M2FNUZ] = FLOAT_ROW("fp8e5m2fnuz", "FLOAT8E5M2FNUZ", 8),
    [DTYPE_UINT4] = INT_ROW("uint4", "UINT4", 4, false),
    [DTYPE_INT4] = INT_ROW("int4", "INT4", 4, true),
    [DTYPE_FP4E2M1] = FLOAT_ROW("fp4e2m1", "FLOAT4E2M1", 4),
    [DTYPE_FP8E8M0] = {"fp8e8m0", "FLOAT8E8M0", 8, DTYPE_CLASS_FLOAT, false},
    [DTYPE_UINT2] = INT_ROW("uint2", "UINT2", 2, false),
    [DTYPE_INT2] = INT_ROW("int2", "INT2", 2, true),
};

const dtype_info *dtype_get(dtype t) {
    int64_t number = (int64_t)t;
    return &table[dtype_known(number) ? number : DTYPE_NONE];
}

bool dtype_known(int64_t number) { return number > DTYPE_NONE && number < DTYPE_COUNT; }

dtype dtype_from_name(const char *name) {
    for (int k = 1; k < DTYPE_COUNT; k++)
        if (strcmp(table[k].name, name) == 0 || strcmp(table[k].onnx, name) == 0) return (dtype)k;
    return DTYPE_NONE;
}

int64_t dtype_bytes(dtype t, int64_t elements) {
    int bits = dtype_get(t)->bits;
    if (bits == 0 || elements <= 0) return 0;
    if (bits >= 8) return checked_mul(elements, bits / 8);
    int64_t per_byte = 8 / bits;
    return checked_ceil_div(elements, per_byte);
}
