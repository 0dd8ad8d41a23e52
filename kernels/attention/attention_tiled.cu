/* Attention of many queries (attention_tiled.cuh): a block has a tile of queries and walks over the keys that any of
 * them sees, with the next tile of keys and values on its way while the current one is computed with. Kernels for block
 * masks are compiled apart, so that all others know nothing of them. */
#include "kernels/attention/attention_tiled.cuh"

namespace {

using namespace attention;

/* Tiles of one head follow each other, which keeps its keys and values in the cache; those with most keys come first,
 * so that short ones are left for the end. */
template <typename F> __device__ __forceinline__ tiled_place place_of(const tiled_job &job) {
    const attention_shape &s = job.s;
    const int64_t block = blockIdx.x, unit = block / job.tiles;
    tiled_place at;
    at.query = (job.tiles - 1 - block % job.tiles) * F::ROWS;
    at.head = unit % s.heads, at.b = unit / s.heads;
    const int64_t last = at.query + F::ROWS < s.queries ? at.query + F::ROWS - 1 : s.queries - 1;
    const int64_t all = sequence_end(s, job.t.lengths, at.b);
    at.begin = first_key(s, at.query), at.stop = end_key(s, last, all);
    at.inner = first_key(s, last), at.outer = end_key(s, at.query, all);
    return at;
}

template <typename F>
__device__ __forceinline__ void copy_tile(const tiled_job &job, const tiled_place &at, uint32_t to, int64_t key) {
    typedef typename F::T T;
    const attention_shape &s = job.s;
    const int64_t kv = at.head / job.group;
    const T *k = (const T *)job.t.k + at.b * s.k[0] + kv * s.k[1] + key * s.k[2];
    const T *v = (const T *)job.t.v + at.b * s.v[0] + kv * s.v[1] + key * s.v[2];
    copy_rows<F, F::KEYS>(to, k, s.k[2], at.stop - key, s.dim);
    copy_rows<F, F::KEYS>(to + F::tile, v, s.v[2], at.stop - key, s.v_dim);
}

template <typename F, bool BLOCKS> __global__ void __launch_bounds__(F::THREADS) tiled_kernel(const tiled_job job) {
    typedef typename F::T T;
    extern __shared__ __align__(128) char shared[];
    const attention_shape &s = job.s;
    const tiled_place at = place_of<F>(job);
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const uint32_t queries = gemm::shared_address(shared), keys = queries + F::ROWS * F::pitch;
    const uint32_t mine = queries + warp * F::MT * 16 * F::pitch;
    const int64_t row = at.query + warp * F::MT * 16 + (lane >> 2);
    const bool natural = s.softcap > 0 || job.t.mask;
    const float unit = natural ? log2e : s.scale * log2e;
    tiled_state<F> state = {};
#pragma unroll
    for (int m = 0; m < F::MT; m++) state.most[m][0] = state.most[m][1] = -INFINITY;
    const T *q = (const T *)job.t.q + at.b * s.q[0] + at.head * s.q[1] + at.query * s.q[2];
    copy_rows<F, F::ROWS>(queries, q, s.q[2], s.queries - at.query, s.dim);
    tiled_blocks rows = {};
    if (BLOCKS) rows = {blocks_of(job, at.query), blocks_of(job, at.query + F::ROWS - 1)};
    int64_t key = at.begin / F::KEYS * F::KEYS;
    if (BLOCKS) key = next_tile<F>(job, at, rows, key);
    if (key < at.stop) copy_tile<F>(job, at, keys, key);
    gemm::copy_commit();
    for (int now = 0; key < at.stop; now ^= 1) {
        const int64_t next = BLOCKS ? next_tile<F>(job, at, rows, key + F::KEYS) : key + F::KEYS;
        const uint32_t from = keys + now * 2 * F::tile;
        float x[F::MT][F::KEYS / 8][4] = {};
        gemm::copy_wait<0>();
        __syncthreads(); /* all copies have arrived, and all threads have finished with the other tile */
        if (next < at.stop) copy_tile<F>(job, at, keys + (now ^ 1) * 2 * F::tile, next);
        gemm::copy_commit();
        multiply_keys<F>(mine, from, x);
        if (natural) adjust<F>(job, at, row, key + (lane & 3) * 2, x);
        if (key < at.inner || key + F::KEYS > at.outer) hide<F>(job, at, row, key + (lane & 3) * 2, x);
        if (BLOCKS && !sees_tile<F>(job, at, rows, key)) hide_blocks<F>(job, row, key, x);
        soften<F>(unit, x, state);
        add_values<F>(from + F::tile, x, state.o);
        key = next;
    }
    gemm::copy_wait<0>();
    store<F>(job, at, row, state);
}

#define TILE_OF(type, T, dim, rows, keys, warps, mt)                                                                   \
    {type,                                                                                                             \
     dim,                                                                                                              \
     {rows, keys, warps},                                                                                              \
     tiled_form<T, dim, warps, mt, keys>::bytes,                                                                       \
     {tiled_kernel<tiled_form<T, dim, warps, mt, keys>, false>, tiled_kernel<tiled_form<T, dim, warps, mt, keys>, true>}}
#define TILES_OF(type, T, dim)                                                                                         \
    TILE_OF(type, T, dim, 128, 64, 4, 2), TILE_OF(type, T, dim, 128, 64, 8, 1), TILE_OF(type, T, dim, 64, 64, 4, 1),   \
        TILE_OF(type, T, dim, 128, 128, 8, 1)
const struct tiled_row {
    int type, dim;
    attention_tiled_config config;
    size_t bytes;
    void (*kernels[2])(const tiled_job); /* without, and with a block mask */
} kernels[] = {TILES_OF(ATTENTION_FP16, __half, 64), TILES_OF(ATTENTION_FP16, __half, 128),
               TILES_OF(ATTENTION_BF16, __nv_bfloat16, 64), TILES_OF(ATTENTION_BF16, __nv_bfloat16, 128)};

const tiled_row *kernel_of(const attention_shape *s, const attention_tiled_config *c) {
    for (const tiled_row &k : kernels)
        if (k.type == s->type && s->dim <= k.dim && s->v_dim <= k.dim && k.config.rows == c->rows &&
            k.config.keys == c->keys && k.config.warps == c->warps)
            return &k;
    return nullptr;
}

int64_t tiles_of(const attention_shape *s, int rows) { return (s->queries + rows - 1) / rows; }

/* Copies of 16 bytes, and results of four. */
bool aligned(const int64_t (&strides)[3]) { return (strides[0] | strides[1] | strides[2]) % 8 == 0; }

} // namespace

extern "C" int attention_tiled_fits(const attention_shape *s, const attention_tiled_config *c, size_t shared_limit) {
    const tiled_row *k = kernel_of(s, c);
    if (!k || k->bytes > shared_limit || !(s->scale > 0)) return 0;
    if (s->batch < 1 || s->kv_heads < 1 || s->heads < 1 || s->heads % s->kv_heads) return 0;
    if (s->queries < 1 || s->keys < 1 || s->dim < 1 || s->v_dim < 1) return 0;
    if (s->block && s->block != 64 && s->block != 128) return 0;
    if ((double)s->batch * (double)s->heads * (double)tiles_of(s, c->rows) > INT32_MAX) return 0;
    return (s->dim | s->v_dim) % 8 == 0 && aligned(s->q) && aligned(s->k) && aligned(s->v) && aligned(s->out);
}

extern "C" int attention_tiled_prepare(const attention_shape *s, const attention_tiled_config *c, size_t shared_limit,
                                       attention_tiled_plan *plan) {
    if (!attention_tiled_fits(s, c, shared_limit)) return cudaErrorInvalidValue;
    const tiled_row *k = kernel_of(s, c);
    *plan = attention_tiled_plan{};
    plan->shape = *s, plan->config = *c, plan->shared_bytes = k->bytes;
    plan->kernel = (const void *)k->kernels[s->block > 0];
    return gemm::allow_shared(plan->kernel, k->bytes);
}

extern "C" int attention_tiled_launch(const attention_tiled_plan *plan, const attention_tensors *tensors,
                                      void *stream) {
    const attention_shape *s = &plan->shape;
    const int64_t tiles = tiles_of(s, plan->config.rows);
    tiled_job job = {*s, *tensors, tiles, s->heads / s->kv_heads};
    void *arguments[] = {&job};
    if (!s->masked != !tensors->mask || !s->block != !tensors->blocks) return cudaErrorInvalidValue;
    return cudaLaunchKernel(plan->kernel, dim3((unsigned)(s->batch * s->heads * tiles)),
                            dim3((unsigned)plan->config.warps * 32), arguments, plan->shared_bytes,
                            (cudaStream_t)stream);
}
