/* Passes over memory that no library offers, as plain C functions: what a dispatch table names can be linked from here.
 * No header of CUDA is needed to include this; link the objects of kernels/<name>.cu and the CUDA runtime. A pass is a
 * plain struct that its user fills and keeps; a launch only enqueues, allocates nothing, and can be captured in a
 * graph. `stream` is a cudaStream_t. Everything works on the current device and returns 0 or a cudaError_t; what cannot
 * be is cudaErrorInvalidValue, before anything runs. Pointers may have any alignment that their elements allow: what
 * lies at multiples of 16 bytes is faster. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum {
    PASS_FP32 = 1,
    PASS_UINT8 = 2,
    PASS_INT8 = 3,
    PASS_UINT16 = 4,
    PASS_INT16 = 5,
    PASS_INT32 = 6,
    PASS_INT64 = 7,
    PASS_BOOL = 9, /* a byte, 0 or 1 */
    PASS_FP16 = 10,
    PASS_FP64 = 11,
    PASS_UINT32 = 12,
    PASS_UINT64 = 13,
    PASS_BF16 = 16,
    PASS_FP8E4M3 = 17, /* from here on: of casts and quantising alone */
    PASS_FP8E4M3FNUZ = 18,
    PASS_FP8E5M2 = 19,
    PASS_FP8E5M2FNUZ = 20,
    PASS_UINT4 = 21, /* of 4 and 2 bits: the lowest bits of a byte first */
    PASS_INT4 = 22,
    PASS_FP4E2M1 = 23,
    PASS_FP8E8M0 = 24, /* a power of two */
    PASS_UINT2 = 25,
    PASS_INT2 = 26
};

enum { PASS_RANK = 8, PASS_PLACES = 16 };

/* How a pass is launched; 0: as the kernel likes it. */
typedef struct pass_config {
    int threads;  /* of a block: 128, 256, 512 */
    int resident; /* blocks of a multiprocessor, which go on until all is done; 0: one block for every tile */
} pass_config;

/* --- elementwise_pass: floats in fp32 and fp64, integers in their own arithmetic, bool as bytes, quantised bytes in
 * int
 * --- */

#define ELEMENTWISE_PASS_OPERATORS(X)                                                                                  \
    X(abs)                                                                                                             \
    X(neg)                                                                                                             \
    X(relu)                                                                                                            \
    X(sign)                                                                                                            \
    X(clip)                                                                                                            \
    X(ceil)                                                                                                            \
    X(floor)                                                                                                           \
    X(round)                                                                                                           \
    X(sqrt)                                                                                                            \
    X(reciprocal)                                                                                                      \
    X(exp)                                                                                                             \
    X(log)                                                                                                             \
    X(sin)                                                                                                             \
    X(cos)                                                                                                             \
    X(tanh)                                                                                                            \
    X(erf)                                                                                                             \
    X(sigmoid)                                                                                                         \
    X(silu)                                                                                                            \
    X(quickgelu)                                                                                                       \
    X(swish)                                                                                                           \
    X(gelu)                                                                                                            \
    X(gelu_tanh)                                                                                                       \
    X(mish)                                                                                                            \
    X(softplus)                                                                                                        \
    X(softsign)                                                                                                        \
    X(elu)                                                                                                             \
    X(celu)                                                                                                            \
    X(selu)                                                                                                            \
    X(leakyrelu)                                                                                                       \
    X(thresholdedrelu)                                                                                                 \
    X(hardsigmoid)                                                                                                     \
    X(hardswish)                                                                                                       \
    X(isnan)                                                                                                           \
    X(isinf)                                                                                                           \
    X(not )                                                                                                            \
    X(add)                                                                                                             \
    X(sub)                                                                                                             \
    X(mul)                                                                                                             \
    X(div)                                                                                                             \
    X(pow)                                                                                                             \
    X(prelu)                                                                                                           \
    X(min)                                                                                                             \
    X(max)                                                                                                             \
    X(sum)                                                                                                             \
    X(mean)                                                                                                            \
    X(equal)                                                                                                           \
    X(less)                                                                                                            \
    X(lessorequal)                                                                                                     \
    X(greater)                                                                                                         \
    X(greaterorequal)                                                                                                  \
    X(and)                                                                                                             \
    X(or)                                                                                                              \
    X(xor) X(swiglu) X(geglu) X(geglu_tanh) X(quick_geglu) X(reglu) X(biasgelu) X(fastgelu) X(biasadd) X(where)        \
        X(relu6) X(squared_relu) X(tan) X(acos) X(asin) X(atan) X(sinh) X(cosh) X(acosh) X(asinh) X(atanh) X(shrink)   \
            X(mod) X(bitwisenot) X(bitwiseand) X(bitwiseor) X(bitwisexor) X(bitshift)

enum {
#define ELEMENTWISE_PASS_ID(name) ELEMENTWISE_PASS_##name,
    ELEMENTWISE_PASS_OPERATORS(ELEMENTWISE_PASS_ID)
#undef ELEMENTWISE_PASS_ID
        ELEMENTWISE_PASS_COUNT,
    ELEMENTWISE_PASS_INPUTS = 8
};

/* Quantised bytes (`is` 1; int8 and uint8, one or two operands): what the operator makes of x - zero_in is multiplied
 * by the factor, kept within least and most, rounded, and zero_out added. The output is bytes, of either sign. */
typedef struct elementwise_pass_quant {
    int is, zero_in, zero_out;
    float factor, least, most;
} elementwise_pass_quant;

/* Dimensions innermost first; the output lies densely, operand k of output element [.., j, i] at
 * i * strides[k][0] + j * strides[k][1] + … (0: the same for all of that dimension). */
typedef struct elementwise_pass {
    int what, inputs, rank;
    int type;  /* of the operands; the first one of where is bool */
    int truth; /* 1: the output is bool, else it has the operands' type */
    int64_t count;
    int64_t dims[PASS_RANK];
    int64_t strides[ELEMENTWISE_PASS_INPUTS][PASS_RANK];
    double alpha, beta; /* the operator's numbers; of a clip its bounds, of isinf whether it looks for -inf and +inf */
    int64_t low, high;  /* bounds of a clip of integers */
    elementwise_pass_quant quant;
    pass_config config;
} elementwise_pass;

int elementwise_pass_fits(const elementwise_pass *pass);
/* What a launch will do, with tensors that begin at multiples of 16 bytes: "lean", "flat", "rows", "single", "plain".
 * Borrowed. */
const char *elementwise_pass_mode(const elementwise_pass *pass);
int elementwise_pass_launch(const elementwise_pass *pass, const void *const *in, void *out, void *stream);

/* --- rotary_rows: fp32, fp16, bf16 --- */

/* x and y are [tables][planes][steps][dim], cosine and sine [tables][steps][angles]; what is beyond `rotated` is
 * copied. */
typedef struct rotary_rows {
    int type, interleaved; /* interleaved: pairs are neighbours, else the halves belong together */
    int64_t tables, planes, steps, dim, rotated; /* planes: heads of all sequences that share a table of angles */
    int64_t angles;                              /* rotated / 2: one for each pair; rotated: one for each number */
    int planes_each;                             /* 1, 2, 4: that a thread turns, whose angles it reads once */
    pass_config config;
} rotary_rows;

int rotary_rows_fits(const rotary_rows *rows);
const char *rotary_rows_mode(const rotary_rows *rows); /* "halves", "neighbours", "pairs"; as elementwise_pass_mode */
int rotary_rows_launch(const rotary_rows *rows, const void *x, const void *cosine, const void *sine, void *y,
                       void *stream);

/* --- gather_rows: out[o][k] = table[o][indices[k]], rows of any bytes --- */

typedef struct gather_rows {
    int64_t outer, length, count, row_bytes; /* length: rows of the table (each outer one); count: indices */
    int parts;                               /* numbers in an index, 1 but for gathernd */
    int64_t lengths[PASS_RANK];              /* of the dimensions that these are places in */
    int index_type;                          /* int32, int64 */
    pass_config config;
} gather_rows;

int gather_rows_fits(const gather_rows *rows);
int gather_rows_width(const gather_rows *rows); /* bytes of a piece */
int gather_rows_launch(const gather_rows *rows, const void *table, const void *indices, void *out, void *stream);

/* --- gather_blocks: rows of 4 or 8 bits, (code - zero point) * scale, which blocks of columns share --- */

typedef struct gather_blocks {
    int64_t rows, cols, block; /* rows looked up; nibbles lie two in a byte: cols is even then */
    int from, to, index_type;  /* uint4, int4, uint8, int8 (zero points, too); fp32, fp16, bf16 (scales, too) */
    pass_config config;
} gather_blocks;

int gather_blocks_fits(const gather_blocks *blocks);
/* zeros: NULL where there are none; scales and zeros are [rows of the table, blocks of a row] */
int gather_blocks_launch(const gather_blocks *blocks, const void *table, const void *indices, const void *scales,
                         const void *zeros, void *out, void *stream);

/* --- move_copy: elements of any size along any steps --- */

/* Dimensions innermost first; element [.., j, i] goes from from_at + i * from_strides[0] + j * from_strides[1] + … to
 * to_at + i * to_strides[0] + …. Where more than one dimension is told, neighbours that could be one should be. */
typedef struct move_copy {
    int size, rank; /* bytes of an element: 1, 2, 4, 8 */
    int64_t from_at, to_at;
    int64_t dims[PASS_PLACES], from_strides[PASS_PLACES], to_strides[PASS_PLACES];
    pass_config config; /* tiles have threads of their own */
} move_copy;

int move_copy_fits(const move_copy *copy);
const char *move_copy_mode(const move_copy *copy); /* "rows", "tiles", "single" */
int move_copy_launch(const move_copy *copy, const void *from, void *to, void *stream);
int move_zero_launch(void *to, size_t bytes, void *stream);

/* --- move_elements: out[.., k, ..] = from[.., indices[same place], ..] --- */

/* Dimensions of the output and of the indices, which are alike, innermost first. */
typedef struct move_elements_pass {
    int size, rank, axis; /* size: bytes of an element: 1, 2, 4, 8 */
    int index_type;       /* int32, int64 */
    int64_t count;
    int64_t dims[PASS_RANK], strides[PASS_RANK]; /* strides: of what is gathered from */
    pass_config config;
} move_elements_pass;

int move_elements_fits(const move_elements_pass *elements);
int move_elements_launch(const move_elements_pass *elements, const void *from, const void *indices, void *to,
                         void *stream);

/* --- move_triangle: of dense matrices what lies on one side of a diagonal, zeros on the other --- */

typedef struct move_triangle_pass {
    int size, upper; /* upper: kept are columns from row + diagonal on, else those up to it */
    int64_t rows, cols, diagonal;
    int64_t count; /* elements of all matrices */
    pass_config config;
} move_triangle_pass;

int move_triangle_fits(const move_triangle_pass *triangle);
int move_triangle_launch(const move_triangle_pass *triangle, const void *from, void *to, void *stream);

/* --- move_cast: dense, every type to every other --- */

typedef struct move_cast {
    int from_type, to_type;
    int64_t count;
    pass_config config;
} move_cast;

int move_cast_fits(const move_cast *cast);
int move_cast_launch(const move_cast *cast, const void *from, void *to, void *stream);

/* --- move_narrow: casts between types of 2 and 4 bits and short floats without a library, and fp32, fp16, bf16, int8
 * and uint8 --- */

/* To fp8e8m0: `up` is added to a float's bits before its fraction is cut off. */
typedef struct move_narrow {
    int from_type, to_type;
    uint32_t up;
    int64_t count;
    pass_config config;
} move_narrow;

int move_narrow_fits(const move_narrow *narrow);
int move_narrow_launch(const move_narrow *narrow, const void *from, void *to, void *stream);

/* --- reduce_pass: floats in fp32 or fp64, integers in 64 bits that wrap around, least and greatest of bool --- */

#define REDUCE_PASS_OPERATORS(X)                                                                                       \
    X(sum) X(mean) X(max) X(min) X(prod) X(l1) X(l2) X(sumsquare) X(logsum) X(argmax) X(argmin) X(logsumexp)

enum {
#define REDUCE_PASS_ID(name) REDUCE_PASS_##name,
    REDUCE_PASS_OPERATORS(REDUCE_PASS_ID)
#undef REDUCE_PASS_ID
        REDUCE_PASS_COUNT
};

/* Dimensions of the input, innermost first; at least one, of 1 where there is none. */
typedef struct reduce_pass_side {
    int rank;
    int64_t count;
    int64_t dims[PASS_RANK], strides[PASS_RANK];
} reduce_pass_side;

typedef struct reduce_pass {
    int what, type; /* the output has the input's type; of argmax and argmin it is int64 */
    int last;       /* of equal places the last one, else the first */
    reduce_pass_side kept, reduced;
    pass_config config;
} reduce_pass;

int reduce_pass_fits(const reduce_pass *pass);
size_t reduce_pass_workspace(const reduce_pass *pass); /* bytes, at a multiple of 16 */
const char *reduce_pass_mode(const reduce_pass *pass); /* "rows", "columns", "cut rows", "cut columns", "plain" */
int reduce_pass_launch(const reduce_pass *pass, const void *x, void *y, void *workspace, void *stream);

/* --- quantize_rows: fp32, fp16, bf16 to int8, uint8 and back --- */

/* y = round(x / scale) + zero point within the type's range, or y = (x - zero point) * scale, densely as
 * [outer][channels][inner], with a scale (and a zero point, of the 8-bit type) for each channel. */
typedef struct quantize_rows {
    int from, to, scale_type;
    int64_t outer, channels, inner;
    pass_config config;
} quantize_rows;

int quantize_rows_fits(const quantize_rows *rows);
/* zero_points: NULL where there are none. */
int quantize_rows_launch(const quantize_rows *rows, const void *x, const void *scales, const void *zero_points, void *y,
                         void *stream);

/* --- quantize_any: the same for integers of 2, 4 and 16 bits, short floats, and blocks, element by element --- */

/* Densely [outer][length][inner]. A scale is of `block` elements along `length`, of all outer and inner ones or
 * (`each`) of one. */
typedef struct quantize_any {
    int from, to, scale_type, each;
    int64_t outer, length, inner, block;
} quantize_any;

int quantize_any_fits(const quantize_any *any);
int quantize_any_launch(const quantize_any *any, const void *x, const void *scales, const void *zero_points, void *y,
                        void *stream);

/* --- quantize_range: the scale and the zero point by which uint8 hold all that there is --- */

/* scale: one fp32, zero: one uint8; type: fp32, fp16, bf16. With x from least to greatest, and 0 among them, scale is
 * (greatest - least) / 255 (1 where all is 0) and zero is -least / scale, rounded. */
size_t quantize_range_workspace(void); /* bytes, at a multiple of 16 */
int quantize_range_launch(int type, int64_t count, const void *x, void *workspace, void *scale, void *zero,
                          void *stream);

#ifdef __cplusplus
}
#endif
