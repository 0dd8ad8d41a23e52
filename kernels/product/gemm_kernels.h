/* The project's own matrix products for CUDA, as plain C functions: what a dispatch table names can be linked from
 * here. No header of CUDA is needed to include this; link the objects of kernels/product/gemm_*.cu and the CUDA
 * runtime.
 *
 *     gemm_stream_plan plan;
 *     gemm_stream_config config = {.packed = 0, .split = 1, .tile = 2, .depth = 3};
 *     if (gemm_stream_prepare(&shape, &config, &plan) != 0) …                 once; sets up the kernel on this device
 *     if (plan.pack_bytes) gemm_stream_pack(&plan, weight, NULL, NULL, packed, stream);   once per weight
 *     gemm_stream_launch(&plan, a, weight, NULL, packed, c, stream);
 *
 * A launch only enqueues, allocates nothing, needs no workspace, and can be captured in a graph. `stream` is a
 * cudaStream_t. Everything works on the current device and returns 0 or a cudaError_t (gemm_kernel_error tells it in
 * words); what the shape rules out is cudaErrorInvalidValue, before anything runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum {
    GEMM_FP32 = 1,
    GEMM_UINT8 = 2,
    GEMM_INT8 = 3,
    GEMM_INT32 = 6,
    GEMM_FP16 = 10,
    GEMM_BF16 = 16,
    GEMM_FP8E4M3 = 17,
    GEMM_UINT4 = 21,
    GEMM_INT4 = 22
};

/* C[m,n] = A[m,k] * B[k,n], row-major, `batch` times. trans_a: A is stored [k,m]; trans_b: B is stored [n,k]. Leading
 * dimensions (elements between stored rows) and strides (between products, 0: shared) are in elements. A weight
 * of 4 bits has two numbers a byte, the low one first. One of 4 or 8 bits beside floats has scales [n][k / block_size]
 * of A's type, and may have as many zero points. */
typedef struct gemm_shape {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    int trans_a, trans_b;
    int type_a, type_b, type_c;
    int64_t block_size;
} gemm_shape;

const char *gemm_kernel_error(int error); /* borrowed */

/* --- gemm_naive: one thread per output; fp32, fp16, bf16, fp8 → bf16, int8 → int32; fp32, fp16 and bf16 with a weight
 * of 4 or 8 bits (scales, and zero points of the weight's type or NULL) --- */
int gemm_naive_launch(const gemm_shape *shape, const void *a, const void *b, const void *scales, const void *zeros,
                      void *c, void *stream);

/* --- gemm_tiled: tiles in shared memory; fp32 by FFMA, fp16 and bf16 by mma.sync; every layout, any alignment --- */
int gemm_tiled_launch(const gemm_shape *shape, const void *a, const void *b, void *c, void *stream);

/* --- gemm_stream: m <= 16, fp16 or bf16, with a weight of that type or of 8 bits, which it reads once at memory speed;
 * blocks of 8 bits: 32, 64, multiples of 128, or all of k --- */
typedef struct gemm_stream_config {
    int packed; /* 1: a weight stored [k,n], turned into [n,k] by gemm_stream_pack */
    int zeros;  /* 1: a weight of 8 bits with zero points */
    int split; /* 1, 2, 4: thread blocks of a cluster that share one range of outputs along k (above 1: sm_90 and up) */
    int tile;  /* 1, 2, 3: outputs at once, times 16 (times 32 where the weight is read as [k,n]) */
    int depth; /* steps in flight for each warp, each `tile` times 2 KiB of weight; with tile 1: 4, 6; 2: 3, 4; 3: 2, 3
                */
} gemm_stream_config;

typedef struct gemm_stream_plan {
    gemm_shape shape;
    gemm_stream_config config;
    const void *kernel; /* of the runtime's own; for launch alone */
    int blocks, clusters;
    size_t shared_bytes, shared_limit;
    size_t side_at, side_bytes,
        pack_bytes; /* packed: the weight, if it is; behind it scales and zero points, if they are */
} gemm_stream_plan;

enum { GEMM_STREAM_MAX_M = 16, GEMM_STREAM_THREADS = 256 };

/* Whether that exists for a shape on a device of `units` multiprocessors whose blocks may have `shared_limit` bytes. */
int gemm_stream_fits(const gemm_shape *shape, const gemm_stream_config *config, int units, size_t shared_limit);
/* Whether every block would read its part of A again for each of its tiles. */
int gemm_stream_rereads(const gemm_shape *shape, const gemm_stream_config *config, int units, size_t shared_limit);
int gemm_stream_prepare(const gemm_shape *shape, const gemm_stream_config *config, gemm_stream_plan *plan);
/* scales, zeros: of a weight of 8 bits; NULL: there are none. `weight` and `scales` are not read by a launch where
 * `packed` has them. */
int gemm_stream_pack(const gemm_stream_plan *plan, const void *weight, const void *scales, const void *zeros,
                     void *packed, void *stream);
int gemm_stream_launch(const gemm_stream_plan *plan, const void *a, const void *weight, const void *scales,
                       const void *packed, void *c, void *stream);

/* --- gemm_int4: fp16 x int4 or uint4 → fp16, dequantised in registers; b stored [n][k/2] --- */
typedef struct gemm_int4_config {
    int tiled; /* 1: tiles through shared memory, for many rows; 0: streams the weight once for every 16 rows or fewer
                */
    int zeros; /* 1: blocks have zero points, which gemm_int4_zeros turns into halves once */
} gemm_int4_config;

typedef struct gemm_int4_plan {
    gemm_shape shape;
    gemm_int4_config config;
    int blocks, rows; /* rows of A that one pass over the weight serves */
    size_t shared_bytes, shared_limit;
} gemm_int4_plan;

int gemm_int4_fits(const gemm_shape *shape, const gemm_int4_config *config, size_t shared_limit);
int gemm_int4_prepare(const gemm_shape *shape, const gemm_int4_config *config, gemm_int4_plan *plan);
/* halves: [n][k / block_size]. */
int gemm_int4_zeros(const gemm_int4_plan *plan, const void *zeros, void *halves, void *stream);
/* zeros: the halves; NULL: there are none. */
int gemm_int4_launch(const gemm_int4_plan *plan, const void *a, const void *b, const void *scales, const void *zeros,
                     void *c, void *stream);

/* --- gemm_block_sparse: fp16 or bf16 with a weight of square blocks, most of which are zeros --- */
typedef struct gemm_block_sparse_config {
    int side;  /* of the blocks: 16, 32, 64, 128 */
    int rows;  /* of A for each thread block: 64, 128, 256 (above 64: A as [m,k], k and lda in multiples of 8) */
    int depth; /* steps in flight and at work: 2, 3, 4 */
} gemm_block_sparse_config;

typedef struct gemm_block_sparse_plan {
    gemm_shape shape;
    gemm_block_sparse_config config;
    const void *kernel;      /* of the runtime's own; for launch alone */
    int fast, threads;       /* fast: A needs no care for its alignment */
    int64_t columns, blocks; /* of the weight: columns of blocks; blocks that are not all zeros */
    int64_t thread_blocks;
    size_t shared_bytes, place_at, values_at, pack_bytes;
} gemm_block_sparse_plan;

/* `blocks`: how many blocks of the weight are not all zeros; those at its edges count whole. Packing waits for the
 * stream and tells how many there were: more than that is a weight that the plan was not made for. bias: one for each
 * column, of C's type, or NULL. */
int gemm_block_sparse_fits(const gemm_shape *shape, const gemm_block_sparse_config *config, size_t shared_limit);
int gemm_block_sparse_prepare(const gemm_shape *shape, const gemm_block_sparse_config *config, int64_t blocks,
                              gemm_block_sparse_plan *plan);
int gemm_block_sparse_pack(const gemm_block_sparse_plan *plan, const void *weight, void *packed, int32_t *blocks,
                           void *stream);
int gemm_block_sparse_launch(const gemm_block_sparse_plan *plan, const void *a, const void *packed, const void *bias,
                             void *c, void *stream);

#ifdef __cplusplus
}
#endif
