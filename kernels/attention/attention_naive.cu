/* Attention with one warp for each query: no tiles, every type, stride and option. It checks a build, is read first,
 * and is the baseline where no library computes an operation. */
#include "kernels/attention/attention_device.cuh"

namespace {

using namespace attention;

enum { WARPS = 8, TOGETHER = 4 }; /* queries of a block; keys at a time, so that their sums overlap */

struct naive_job {
    attention_shape s;
    attention_tensors t;
    int64_t rows;
};

/* Sums over a warp, for all its lanes. */
__device__ __forceinline__ void add_lanes(float (&x)[TOGETHER]) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) x[i] += __shfl_xor_sync(0xffffffffu, x[i], step);
}

/* What a lane has of a row: elements lane, lane + 32, … */
template <typename T, int STEPS>
__device__ __forceinline__ void load_row(const T *from, int64_t count, int lane, float (&x)[STEPS]) {
#pragma unroll
    for (int i = 0; i < STEPS; i++) x[i] = lane + i * 32 < count ? gemm::to_float(from[lane + i * 32]) : 0.0f;
}

/* Whether the query of that row of the block mask sees a key; NULL: there is no such mask. */
__device__ __forceinline__ bool sees(const attention_shape &s, const uint32_t *blocks, int64_t key) {
    return !blocks || block_seen(blocks, (int)(key / s.block));
}

/* Scores of the keys from `key` on; minus infinity where they are not before `end`, or not seen. */
template <typename T, int STEPS>
__device__ __forceinline__ void score(const attention_shape &s, const T *k, const T *mask, const uint32_t *blocks,
                                      int64_t key, int64_t end, int lane, const float (&q)[STEPS],
                                      float (&x)[TOGETHER]) {
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        float row[STEPS];
        x[i] = 0;
        load_row<T, STEPS>(k + (key + i) * s.k[2], key + i < end ? s.dim : 0, lane, row);
#pragma unroll
        for (int d = 0; d < STEPS; d++) x[i] = fmaf(q[d], row[d], x[i]);
    }
    add_lanes(x);
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        x[i] = capped(s, x[i]);
        if (mask && key + i < end) x[i] += gemm::to_float(mask[(key + i) * s.mask[3]]);
        if (key + i >= end || !sees(s, blocks, key + i)) x[i] = -INFINITY;
    }
}

/* STEPS: the elements of a row that a lane has. */
template <typename T, int STEPS> __global__ void __launch_bounds__(WARPS * 32) naive_kernel(const naive_job job) {
    const attention_shape &s = job.s;
    const int lane = threadIdx.x & 31;
    const int64_t row = blockIdx.x * (int64_t)WARPS + (threadIdx.x >> 5);
    if (row >= job.rows) return;
    const int64_t query = row % s.queries, head = row / s.queries % s.heads, b = row / s.queries / s.heads;
    const int64_t kv = head / (s.heads / s.kv_heads);
    const T *k = (const T *)job.t.k + b * s.k[0] + kv * s.k[1], *v = (const T *)job.t.v + b * s.v[0] + kv * s.v[1];
    const T *mask = nullptr;
    if (job.t.mask) mask = (const T *)job.t.mask + b * s.mask[0] + head * s.mask[1] + query * s.mask[2];
    const uint32_t *blocks = job.t.blocks ? job.t.blocks + query / s.block * s.block_words : nullptr;
    const int64_t end = end_key(s, query, sequence_end(s, job.t.lengths, b));
    float q[STEPS], sum[STEPS] = {}, most = -INFINITY, total = 0;
    load_row<T, STEPS>((const T *)job.t.q + b * s.q[0] + head * s.q[1] + query * s.q[2], s.dim, lane, q);
    for (int64_t key = first_key(s, query); key < end; key += TOGETHER) {
        float x[TOGETHER], now = most;
        const int64_t last = key + TOGETHER <= end ? key + TOGETHER - 1 : end - 1;
        if (!sees(s, blocks, key) && !sees(s, blocks, last)) continue; /* so few keys are of two blocks at most */
        score<T, STEPS>(s, k, mask, blocks, key, end, lane, q, x);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) now = fmaxf(now, x[i]);
        const float base = base_of(now), change = expf(most - base);
        most = now, total *= change;
#pragma unroll
        for (int d = 0; d < STEPS; d++) sum[d] *= change;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            float line[STEPS];
            const float p = expf(x[i] - base);
            load_row<T, STEPS>(v + (key + i) * s.v[2], key + i < end ? s.v_dim : 0, lane, line);
            total += p;
#pragma unroll
            for (int d = 0; d < STEPS; d++) sum[d] = fmaf(p, line[d], sum[d]);
        }
    }
    T *out = (T *)job.t.out + b * s.out[0] + head * s.out[1] + query * s.out[2];
#pragma unroll
    for (int d = 0; d < STEPS; d++)
        if (lane + d * 32 < s.v_dim) out[lane + d * 32] = gemm::from_float<T>(sum[d] * inverse(total));
}

#define STEPS_OF(type, T)                                                                                              \
    {type, 64, naive_kernel<T, 2>}, {type, 128, naive_kernel<T, 4>}, {type, 256, naive_kernel<T, 8>}, {                \
        type, ATTENTION_NAIVE_DIM, naive_kernel<T, ATTENTION_NAIVE_DIM / 32>                                           \
    }
const struct {
    int type, dim;
    void (*kernel)(const naive_job);
} kernels[] = {STEPS_OF(ATTENTION_FP32, float), STEPS_OF(ATTENTION_FP16, __half),
               STEPS_OF(ATTENTION_BF16, __nv_bfloat16)};

} // namespace

extern "C" int attention_naive_launch(const attention_shape *s, const attention_tensors *tensors, void *stream) {
    if (s->batch < 1 || s->heads < 1 || s->kv_heads < 1 || s->queries < 1 || s->keys < 1 || s->heads % s->kv_heads)
        return cudaErrorInvalidValue;
    const double rows = (double)s->batch * (double)s->heads * (double)s->queries;
    if (rows > 8.0 * INT32_MAX || !s->masked != !tensors->mask || !s->block != !tensors->blocks)
        return cudaErrorInvalidValue;
    for (const auto &k : kernels) {
        if (k.type != s->type || s->dim > k.dim || s->v_dim > k.dim) continue;
        const naive_job job = {*s, *tensors, s->batch * s->heads * s->queries};
        k.kernel<<<(unsigned)((job.rows + WARPS - 1) / WARPS), WARPS * 32, 0, (cudaStream_t)stream>>>(job);
        return cudaGetLastError();
    }
    return cudaErrorInvalidValue;
}
