/* Attention of few queries. Keys and values are read once: one block computes all heads that share them, on tensor
 * cores (attention_decode.cuh) or, for very few queries, without (attention_vector.cuh). A third kernel computes one
 * query that sees all keys and nothing else (attention_dense.cuh). Blocks that share the keys of a head merge their
 * partial results (attention_exchange.cuh). */
#include "kernels/attention/attention_decode.cuh"
#include "kernels/attention/attention_dense.cuh"
#include "kernels/attention/attention_vector.cuh"

namespace {

using namespace attention;

enum { TENSOR_WARPS = 8, MAX_SPLITS = 256, MAX_GRID = 65535 };

/* Where a block leaves its partial result of a row. */
__device__ __forceinline__ unsigned long long *words_of(const decode_job &job, int split, int row) {
    const int64_t unit = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    return job.words + ((unit * job.splits + split) * job.rows + row) * (job.v_dim + 1);
}

template <typename T> __device__ __forceinline__ T *out_of(const decode_job &job, const decode_place &at, int row) {
    return (T *)job.t.out + at.b * job.s.out[0] + head_of(job, at, row) * job.s.out[1] +
           query_of(job, at, row) * job.s.out[2];
}

/* Merges the partial results of a block's warps; the result goes to the output or to the merging block. In shared
 * memory every warp has its sums at the beginning of its `room` bytes. `mine` is the first thread's. A thread has A
 * outputs at a time: a merging thread waits as long for one as for all of them. */
template <typename T, int DIM, int A>
__device__ __forceinline__ void hand_over(const decode_job &job, const decode_place &at, const char *shared, int room,
                                          const float2 *stats, const decode_turn &mine) {
    __shared__ decode_turn taken;
    const int v_dim = job.v_dim, warps = blockDim.x >> 5;
    if (job.splits > 1 && threadIdx.x == 0) taken = mine;
    __syncthreads();
    const bool merges = merges_by(taken, job.splits);
    const unsigned launch = job.splits > 1 ? launch_of(taken) : 0;
    for (int first = threadIdx.x; first < at.rows * DIM; first += blockDim.x * A) {
        part all[A];
        decode_words from[A];
        int row[A], d[A];
#pragma unroll
        for (int a = 0; a < A; a++) {
            const int i = first + a * blockDim.x;
            row[a] = i / DIM, d[a] = i % DIM, all[a] = nothing(), from[a] = {nullptr, nullptr};
            if (row[a] >= at.rows || d[a] >= v_dim) row[a] = -1;
            if (row[a] < 0) continue;
            if (merges) from[a] = {words_of(job, 0, row[a]) + d[a], words_of(job, 0, row[a]) + v_dim};
            all[a] = of_warps(stats + row[a], (const float *)shared + i, room / 4, warps);
            if (job.splits > 1) all[a] = whole(all[a]);
            if (job.splits == 1 || merges) continue;
            unsigned long long *const to = words_of(job, blockIdx.x, row[a]);
            put(to + d[a], all[a].sum, launch);
            if (d[a] > 0) continue;
            put(to + v_dim, all[a].seen.x, launch);
        }
        if (job.splits > 1 && !merges) continue;
        if (merges) of_blocks<A, 8 / A>(job.splits, (int64_t)job.rows * (v_dim + 1), launch, from, all);
#pragma unroll
        for (int a = 0; a < A; a++)
            if (row[a] >= 0)
                out_of<T>(job, at, row[a])[d[a]] = gemm::from_float<T>(all[a].sum * inverse(all[a].seen.y));
    }
    if (merges && threadIdx.x == 0) turn_of(job)->y = launch; /* the data handed over proves that all have read it */
}

template <typename T, int DIM, int DEPTH>
__global__ void __launch_bounds__(TENSOR_WARPS * 32) decode_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float2 stats[MAX_WARPS][ROWS];
    constexpr int room = DEPTH * ring<T, DIM>::bytes; /* of a warp; sums take the place of its first step */
    static_assert(ring<T, DIM>::bytes == ROWS * DIM * 4, "a step is as large as sums");
    const int warp = threadIdx.x >> 5;
    const decode_place at = place_of(job);
    decode_turn mine = {0, 0};
    decode_row rows[2];
    float o[DIM / 8][4] = {};
    const ring<T, DIM> keys = ring_of<T, DIM>(job, at, gemm::shared_address(shared + warp * room));
    walk<T, DIM, DEPTH>(job, at, keys, rows, o, mine);
    __syncwarp();
    leave<DIM>((float *)(shared + warp * room), stats[warp], rows, o);
    hand_over<T, DIM, 4>(job, at, shared, room, &stats[0][0], mine);
}

constexpr int vector_warps(int rows) { return rows == 1 ? MAX_WARPS : MAX_WARPS / 2; }

/* Registers for 16 warps on a multiprocessor, where there is one row: that many have to be waiting for their keys. */
template <typename T, int DIM, int R, int U>
__global__ void __launch_bounds__(vector_warps(R) * 32) vector_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float2 stats[MAX_WARPS][ROWS];
    constexpr int room = R * DIM * 4; /* of a warp */
    const int warp = threadIdx.x >> 5;
    const decode_place at = place_of(job);
    vector_row rows[R];
    decode_turn mine = {0, 0};
    walk_vectors<T, DIM, R, U>(job, at, rows, mine);
    leave_vectors<DIM, R, U>((float *)(shared + warp * room), stats[warp], rows);
    hand_over<T, DIM, R>(job, at, shared, room, &stats[0][0], mine);
}

#define TENSOR_OF(type, T, dim, depth)                                                                                 \
    { type, ATTENTION_DECODE_TENSOR, dim, depth, ROWS, (const void *)decode_kernel<T, dim, depth> }
#define VECTOR_OF(type, T, dim, depth, rows)                                                                           \
    { type, ATTENTION_DECODE_VECTOR, dim, depth, rows, (const void *)vector_kernel<T, dim, rows, depth> }
#define DENSE_OF(type, T, dim, depth)                                                                                  \
    { type, ATTENTION_DECODE_DENSE, dim, depth, 1, (const void *)dense_kernel<T, dim, depth> }
#define DEPTHS_OF(type, T, dim)                                                                                        \
    TENSOR_OF(type, T, dim, 2), TENSOR_OF(type, T, dim, 3), TENSOR_OF(type, T, dim, 4), VECTOR_OF(type, T, dim, 4, 1), \
        VECTOR_OF(type, T, dim, 8, 1), VECTOR_OF(type, T, dim, 4, VECTOR_ROWS), DENSE_OF(type, T, dim, 4),             \
        DENSE_OF(type, T, dim, 8)
#define DIMS_OF(type, T) DEPTHS_OF(type, T, 64), DEPTHS_OF(type, T, 128), DEPTHS_OF(type, T, 256)
const struct kernel_row {
    int type, walk, dim, depth;
    int rows; /* of a block, at most */
    const void *kernel;
} kernels[] = {DIMS_OF(ATTENTION_FP16, __half), DIMS_OF(ATTENTION_BF16, __nv_bfloat16)};

/* The smallest that holds such heads and, without tensor cores, all rows that share keys. */
const kernel_row *kernel_of(const attention_shape *s, const attention_decode_config *c) {
    const int64_t rows = s->heads / s->kv_heads * s->queries;
    for (const kernel_row &k : kernels)
        if (k.type == s->type && k.walk == c->walk && k.depth == c->depth && s->dim <= k.dim && s->v_dim <= k.dim &&
            (k.walk == ATTENTION_DECODE_TENSOR || rows <= k.rows))
            return &k;
    return nullptr;
}

int warps_of(const kernel_row *k) {
    return k->walk == ATTENTION_DECODE_TENSOR ? (int)TENSOR_WARPS : vector_warps(k->rows);
}

/* Keys that a warp has at a time. */
int64_t step_of(const kernel_row *k) {
    return k->walk == ATTENTION_DECODE_TENSOR ? (int64_t)KEYS : k->depth * (256 / k->dim);
}

/* Whether every query sees all keys of dense rows as wide as the kernel is, in whole steps of all warps. */
bool is_dense(const attention_shape *s, const kernel_row *k, int64_t warps) {
    if (s->masked || s->ragged || s->softcap > 0 || (s->causal && (s->past + 1 < s->keys || s->window > 0)))
        return false;
    return s->dim == k->dim && s->v_dim == k->dim && s->k[2] == s->dim && s->v[2] == s->dim &&
           s->keys % (step_of(k) * warps) == 0;
}

/* Rows that begin on 16 bytes, as copies need it. */
bool aligned(const int64_t (&strides)[3]) { return (strides[0] | strides[1] | strides[2]) % 8 == 0; }

bool fits_shape(const attention_shape *s) {
    if (s->batch < 1 || s->kv_heads < 1 || s->heads < 1 || s->heads % s->kv_heads || s->keys < 1) return false;
    if (s->keys > INT32_MAX - 1024 || s->block) return false;
    if (s->queries < 1 || s->queries > ATTENTION_DECODE_QUERIES) return false;
    if (s->batch > MAX_GRID || s->heads * s->queries > INT32_MAX) return false;
    if (s->dim < 1 || s->v_dim < 1) return false;
    return s->dim % 8 == 0 && s->v_dim % 8 == 0 && aligned(s->q) && aligned(s->k) && aligned(s->v);
}

/* Rings of keys and values; without them what each warp leaves. */
size_t shared_of(const kernel_row *k, int warps) {
    return (size_t)warps * (k->walk == ATTENTION_DECODE_TENSOR ? k->depth : 1) * k->rows * k->dim * 4;
}

/* As many blocks as the device holds at once, where a warp has two steps at least; dense ones have as many steps. */
int splits_of(const attention_shape *s, const kernel_row *k, int64_t blocks, int warps, int held) {
    const int64_t each = 2 * step_of(k) * warps, most = (s->keys + each - 1) / each;
    int64_t splits = held / blocks < most ? held / blocks : most;
    splits = splits < 1 ? 1 : splits < MAX_SPLITS ? splits : (int64_t)MAX_SPLITS;
    while (k->walk == ATTENTION_DECODE_DENSE && s->keys % (splits * step_of(k) * warps) != 0) splits--;
    return (int)splits;
}

/* The rows of a block, and the blocks that rows sharing keys need. */
void rows_of(const attention_shape *s, const kernel_row *k, attention_decode_plan *plan) {
    const int64_t all = s->heads / s->kv_heads * s->queries;
    plan->rows = all < k->rows ? (int)all : k->rows, plan->tiles = (int)((all + k->rows - 1) / k->rows);
}

/* Where blocks hand over partial results. It is zeroed before the first launch on any stream, since no launch has
 * number 0. Turns come first. */
cudaError_t open_parts(const attention_shape *s, attention_decode_plan *plan) {
    const size_t blocks = (size_t)(s->batch * s->kv_heads * plan->tiles);
    const size_t words = blocks * (size_t)plan->splits * (size_t)plan->rows * (size_t)(s->v_dim + 1);
    plan->parts_bytes = blocks * sizeof(uint2) + words * sizeof(unsigned long long);
    cudaError_t e = cudaMalloc(&plan->parts, plan->parts_bytes);
    if (e == cudaSuccess) e = cudaMemset(plan->parts, 0, plan->parts_bytes);
    if (e == cudaSuccess) e = cudaStreamSynchronize(nullptr);
    if (e != cudaSuccess) attention_decode_close(plan);
    return e;
}

/* The keys that queries see where all sequences are whole, and how blocks share them. */
void share_keys(const attention_shape *s, int splits, decode_job *job) {
    const int64_t end = s->causal && s->past + s->queries < s->keys ? s->past + s->queries : s->keys;
    const int64_t first = s->causal && s->window > 0 ? s->past + 1 - s->window : 0;
    job->low = first > 0 ? (int)first : 0, job->high = (int)end;
    const int steps = job->high > job->low ? (job->high - job->low + KEYS - 1) / KEYS : 0;
    job->each = steps / splits, job->more = steps % splits;
}

unsigned long long *words_of(const attention_decode_plan *plan) { /* turns come first */
    return (unsigned long long *)plan->parts + plan->shape.batch * plan->shape.kv_heads * plan->tiles;
}

decode_job job_of(const attention_decode_plan *plan, const attention_tensors *tensors) {
    const attention_shape *s = &plan->shape;
    decode_job job = {};
    job.t = *tensors, job.s = *s;
    job.group = (int)(s->heads / s->kv_heads), job.queries = (int)s->queries;
    job.rows = plan->rows, job.tiles = plan->tiles, job.splits = plan->splits;
    job.turns = (uint2 *)plan->parts, job.words = words_of(plan);
    share_keys(s, plan->splits, &job);
    job.dim = (int)s->dim, job.v_dim = (int)s->v_dim;
    for (int k = 0; k < 3; k++) job.k[k] = s->k[k], job.v[k] = s->v[k];
    return job;
}

dense_job dense_of(const attention_decode_plan *plan, const attention_tensors *tensors) {
    const attention_shape *s = &plan->shape;
    const int64_t step = plan->config.depth * (256 / s->dim) * plan->config.warps;
    dense_job job = {};
    job.q = tensors->q, job.k = tensors->k, job.v = tensors->v, job.out = tensors->out;
    for (int d = 0; d < 2; d++)
        job.q_step[d] = s->q[d], job.k_step[d] = s->k[d], job.v_step[d] = s->v[d], job.out_step[d] = s->out[d];
    job.splits = plan->splits, job.steps = (int)(s->keys / (step * plan->splits));
    job.scale = s->scale * log2e;
    job.turns = (uint2 *)plan->parts, job.words = words_of(plan);
    return job;
}

} // namespace

extern "C" int attention_decode_fits(const attention_shape *s, const attention_decode_config *c, size_t shared_limit) {
    const kernel_row *k = fits_shape(s) ? kernel_of(s, c) : nullptr;
    attention_decode_plan plan;
    if (!k || c->warps < 1 || c->warps > warps_of(k)) return 0;
    if (c->splits < 0 || c->splits > MAX_SPLITS) return 0;
    if (c->splits > 1 && (int64_t)c->splits * KEYS > s->keys) return 0;
    if (k->walk == ATTENTION_DECODE_DENSE && !is_dense(s, k, c->warps * (c->splits ? c->splits : 1))) return 0;
    rows_of(s, k, &plan);
    if (s->kv_heads * plan.tiles > MAX_GRID) return 0;
    return shared_of(k, c->warps) + MAX_WARPS * ROWS * sizeof(float2) + sizeof(decode_turn) <= shared_limit;
}

extern "C" int attention_decode_prepare(const attention_shape *s, const attention_decode_config *c, int units,
                                        size_t shared_limit, attention_decode_plan *plan) {
    int held = 0;
    if (!attention_decode_fits(s, c, shared_limit)) return cudaErrorInvalidValue;
    const kernel_row *k = kernel_of(s, c);
    *plan = attention_decode_plan{};
    plan->shape = *s, plan->config = *c;
    plan->kernel = k->kernel;
    rows_of(s, k, plan);
    plan->shared_bytes = shared_of(k, c->warps);
    cudaError_t e = gemm::allow_shared(plan->kernel, plan->shared_bytes);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, plan->kernel, c->warps * 32, plan->shared_bytes);
    if (e != cudaSuccess) return e;
    if (held < 1) return cudaErrorInvalidConfiguration;
    const int64_t blocks = s->batch * s->kv_heads * plan->tiles;
    plan->splits = c->splits ? c->splits : splits_of(s, k, blocks, c->warps, held * units);
    return plan->splits > 1 ? open_parts(s, plan) : cudaSuccess;
}

extern "C" void attention_decode_close(attention_decode_plan *plan) {
    cudaFree(plan->parts);
    plan->parts = nullptr;
}

extern "C" int attention_decode_launch(const attention_decode_plan *plan, const attention_tensors *tensors,
                                       void *stream) {
    const attention_shape *s = &plan->shape;
    const bool dense = plan->config.walk == ATTENTION_DECODE_DENSE;
    decode_job job;
    dense_job lean;
    if (!s->masked != !tensors->mask || !s->ragged != !tensors->lengths) return cudaErrorInvalidValue;
    if (dense)
        lean = dense_of(plan, tensors);
    else
        job = job_of(plan, tensors);
    void *arguments[] = {dense ? (void *)&lean : (void *)&job};
    const dim3 grid((unsigned)plan->splits, (unsigned)(s->kv_heads * plan->tiles), (unsigned)s->batch);
    return cudaLaunchKernel(plan->kernel, grid, dim3((unsigned)plan->config.warps * 32), arguments, plan->shared_bytes,
                            (cudaStream_t)stream);
}
