/* Attention of few queries: keys and values come once, and all heads that share them are served by one block, on tensor
 * cores (attention_decode.cuh) or, where they are very few, without (attention_vector.cuh). Where blocks share the keys
 * of a head, all but one hand over what they found, and the last one of the grid merges. It may have more keys than the
 * others, so that what these hand over travels while it still reads. Who merges waits for none that has yet to begin.
 * What is handed over carries the number of the launch, so that there is no barrier between the two, no second kernel,
 * and nothing to clear: data and the word that it is there arrive together. */
#include "kernels/attention_decode.cuh"
#include "kernels/attention_vector.cuh"

namespace {

using namespace attention;

enum { MAX_WARPS = 16, TENSOR_WARPS = 8, MAX_SPLITS = 256, MAX_GRID = 65535, MAX_LEAD = 1024 };

/* What is known of one output: a sum of values, and what it is over. */
struct part {
    float2 seen; /* the largest score, and the total */
    float sum;
};

/* N parts more. */
template <int N> __device__ __forceinline__ void combine(part &all, const part (&parts)[N]) {
    float most = all.seen.x;
#pragma unroll
    for (int k = 0; k < N; k++) most = fmaxf(most, parts[k].seen.x);
    const float base = base_of(most), change = power(all.seen.x - base);
    all.seen.x = most, all.seen.y *= change, all.sum *= change;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float weight = power(parts[k].seen.x - base);
        all.seen.y += parts[k].seen.y * weight, all.sum += parts[k].sum * weight;
    }
}
__device__ __forceinline__ part nothing() { return {make_float2(-INFINITY, 0), 0}; }

/* The same with a total of 1: a mean, and what it counts. */
__device__ __forceinline__ part whole(const part &p) {
    return {make_float2(p.seen.x + __log2f(p.seen.y), 1), p.sum * inverse(p.seen.y)};
}

/* What the warps of a block found: sums `pitch` floats from warp to warp. */
__device__ __forceinline__ part of_warps(const float2 *stats, const float *sums, int pitch, int warps) {
    constexpr int N = 8;
    part all = nothing();
    for (int first = 0; first < warps; first += N) {
        part found[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            found[k] = nothing();
            if (first + k < warps) found[k] = {stats[(first + k) * ROWS], sums[(first + k) * pitch]};
        }
        combine(all, found);
    }
    return all;
}

/* A number with the launch that it is of: 64 bits that are never seen half written. */
__device__ __forceinline__ void put(unsigned long long *to, float x, unsigned launch) {
    const unsigned long long word = (unsigned long long)launch << 32 | __float_as_uint(x);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ __forceinline__ unsigned long long look(const unsigned long long *from) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ bool is_of(unsigned long long word, unsigned launch) { return word >> 32 == launch; }
__device__ __forceinline__ float number(unsigned long long word) { return __uint_as_float((unsigned)word); }

/* Where a block leaves what it found of a row. */
__device__ __forceinline__ unsigned long long *words_of(const decode_job &job, int split, int row) {
    const int64_t unit = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    return job.words + ((unit * job.splits + split) * job.rows + row) * (job.v_dim + 1);
}

/* What N blocks have handed over of A outputs of a thread, there or not. row < 0: no output. */
template <int A, int N> struct handed {
    unsigned long long sum[A][N], most[A][N];

    __device__ __forceinline__ void fetch(const decode_job &job, int first, const int (&row)[A], const int (&d)[A]) {
        const int64_t step = (int64_t)job.rows * (job.v_dim + 1);
#pragma unroll
        for (int a = 0; a < A; a++)
#pragma unroll
            for (int k = 0; k < N; k++) {
                if (!there(job, first + k, row[a])) continue;
                const unsigned long long *const from = words_of(job, 0, row[a]) + (first + k) * step;
                sum[a][k] = look(from + d[a]), most[a][k] = look(from + job.v_dim);
            }
    }
    __device__ __forceinline__ static bool there(const decode_job &job, int split, int row) {
        return split < job.splits && split != (int)blockIdx.x && row >= 0;
    }
    __device__ __forceinline__ bool complete(const decode_job &job, int first, const int (&row)[A], unsigned launch) {
        bool all = true;
#pragma unroll
        for (int a = 0; a < A; a++)
#pragma unroll
            for (int k = 0; k < N; k++)
                if (there(job, first + k, row[a])) all = all && is_of(sum[a][k], launch) && is_of(most[a][k], launch);
        return all;
    }
};

/* What all blocks found of A outputs of this thread, of which this block has `own`, always added up in the same order.
 * N parts of each are on their way at a time, and looked at again until they are of this launch; `early` is what was
 * there of the first ones a while ago. */
template <int A, int N>
__device__ __forceinline__ void of_blocks(const decode_job &job, unsigned launch, const int (&row)[A],
                                          const int (&d)[A], handed<A, N> &early, part (&own)[A]) {
    part all[A];
#pragma unroll
    for (int a = 0; a < A; a++) all[a] = nothing();
    for (int first = 0; first < job.splits; first += N) {
        if (first > 0) early.fetch(job, first, row, d);
        while (!early.complete(job, first, row, launch)) early.fetch(job, first, row, d);
#pragma unroll
        for (int a = 0; a < A; a++) {
            part found[N];
#pragma unroll
            for (int k = 0; k < N; k++) {
                found[k] = first + k == (int)blockIdx.x ? own[a] : nothing();
                found[k].seen.y = 1; /* and counts nothing where no key was seen */
                if (!early.there(job, first + k, row[a])) continue;
                found[k].sum = number(early.sum[a][k]), found[k].seen.x = number(early.most[a][k]);
            }
            combine(all[a], found);
        }
    }
#pragma unroll
    for (int a = 0; a < A; a++) own[a] = all[a];
}

template <typename T> __device__ __forceinline__ T *out_of(const decode_job &job, const decode_place &at, int row) {
    return (T *)job.t.out + at.b * job.s.out[0] + head_of(job, at, row) * job.s.out[1] +
           query_of(job, at, row) * job.s.out[2];
}

/* The outputs of a thread, A at a time. */
template <int DIM, int A>
__device__ __forceinline__ void outputs_of(const decode_job &job, const decode_place &at, int first, int (&row)[A],
                                           int (&d)[A]) {
#pragma unroll
    for (int a = 0; a < A; a++) {
        const int i = first + a * blockDim.x;
        row[a] = i / DIM, d[a] = i % DIM;
        if (row[a] >= at.rows || d[a] >= job.v_dim) row[a] = -1;
    }
}

/* What the warps of a block found becomes one, and goes to the output or to the block that merges. In shared memory
 * every warp has its sums at the beginning of its `room` bytes. `mine` is the first thread's. A thread has A outputs at
 * a time: who merges waits as long for one as for all of them; it costs registers, where the walk leaves any. */
template <typename T, int DIM, int A>
__device__ __forceinline__ void hand_over(const decode_job &job, const decode_place &at, const char *shared, int room,
                                          const float2 *stats, const decode_turn &mine) {
    __shared__ unsigned launch_here, merges_here;
    const int warps = blockDim.x >> 5;
    handed<A, 8> early = {};
    int row[A], d[A];
    outputs_of<DIM, A>(job, at, threadIdx.x, row, d);
    if (job.splits > 1 && is_last(job)) early.fetch(job, 0, row, d);
    if (job.splits > 1 && threadIdx.x == 0) {
        launch_here = mine.before + 1;
        if (launch_here == 0) launch_here = 1; /* nobody's number: memory that nobody wrote yet has it */
        merges_here = merges_after(job, mine);
    }
    __syncthreads();
    const bool merges = job.splits > 1 && merges_here;
    const unsigned launch = job.splits > 1 ? launch_here : 0;
    for (int first = threadIdx.x; first < at.rows * DIM; first += blockDim.x * A) {
        part all[A];
        if (first > (int)threadIdx.x) {
            outputs_of<DIM, A>(job, at, first, row, d);
            if (merges) early.fetch(job, 0, row, d);
        }
#pragma unroll
        for (int a = 0; a < A; a++) {
            all[a] = nothing();
            if (row[a] < 0) continue;
            all[a] = of_warps(stats + row[a], (const float *)shared + first + a * blockDim.x, room / 4, warps);
            if (job.splits > 1) all[a] = whole(all[a]);
            if (job.splits == 1 || merges) continue;
            unsigned long long *const to = words_of(job, blockIdx.x, row[a]);
            put(to + d[a], all[a].sum, launch);
            if (d[a] == 0) put(to + job.v_dim, all[a].seen.x, launch);
        }
        if (job.splits > 1 && !merges) continue;
        if (merges) of_blocks<A, 8>(job, launch, row, d, early, all);
#pragma unroll
        for (int a = 0; a < A; a++)
            if (row[a] >= 0)
                out_of<T>(job, at, row[a])[d[a]] = gemm::from_float<T>(all[a].sum * inverse(all[a].seen.y));
    }
    /* All others have begun, and nobody looks again: what they handed over has told that they know the launch. */
    if (merges && threadIdx.x == 0) *turn_of(job) = make_uint2(0, launch);
}

template <typename T, int DIM, int DEPTH>
__global__ void __launch_bounds__(TENSOR_WARPS * 32) decode_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float2 stats[MAX_WARPS][ROWS];
    constexpr int room = DEPTH * ring<T, DIM>::bytes; /* of a warp; sums take the place of its first step */
    static_assert(ring<T, DIM>::bytes == ROWS * DIM * 4, "a step is as large as sums");
    const int warp = threadIdx.x >> 5;
    const decode_place at = place_of(job);
    decode_turn mine = {0, 0, 0};
    decode_row rows[2];
    float o[DIM / 8][4] = {};
    const ring<T, DIM> keys = ring_of<T, DIM>(job, at, gemm::shared_address(shared + warp * room));
    walk<T, DIM, DEPTH>(job, at, keys, rows, o, mine);
    __syncwarp();
    leave<DIM>((float *)(shared + warp * room), stats[warp], rows, o);
    hand_over<T, DIM, DIM == 64 ? 1 : 2>(job, at, shared, room, &stats[0][0], mine);
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
    decode_turn mine = {0, 0, 0};
    walk_vectors<T, DIM, R, U>(job, at, rows, mine);
    leave_vectors<DIM, R, U>((float *)(shared + warp * room), stats[warp], rows);
    hand_over<T, DIM, R == 1 ? 1 : 2>(job, at, shared, room, &stats[0][0], mine);
}

typedef void kernel_function(const decode_job);

#define TENSOR_OF(type, T, dim, depth)                                                                                 \
    { type, dim, depth, 0, decode_kernel<T, dim, depth> }
#define VECTOR_OF(type, T, dim, depth, rows)                                                                           \
    { type, dim, depth, rows, vector_kernel<T, dim, rows, depth> }
#define DEPTHS_OF(type, T, dim)                                                                                        \
    TENSOR_OF(type, T, dim, 2), TENSOR_OF(type, T, dim, 3), TENSOR_OF(type, T, dim, 4), VECTOR_OF(type, T, dim, 4, 1), \
        VECTOR_OF(type, T, dim, 8, 1), VECTOR_OF(type, T, dim, 4, VECTOR_ROWS)
#define DIMS_OF(type, T) DEPTHS_OF(type, T, 64), DEPTHS_OF(type, T, 128), DEPTHS_OF(type, T, 256)
const struct kernel_row {
    int type, dim, depth;
    int rows; /* of a block without tensor cores; 0: with */
    kernel_function *kernel;
} kernels[] = {DIMS_OF(ATTENTION_FP16, __half), DIMS_OF(ATTENTION_BF16, __nv_bfloat16)};

/* The smallest that holds such heads and, without tensor cores, all rows that share keys. */
const kernel_row *kernel_of(const attention_shape *s, const attention_decode_config *c) {
    const int64_t rows = s->heads / s->kv_heads * s->queries;
    for (const kernel_row &k : kernels)
        if (k.type == s->type && k.depth == c->depth && s->dim <= k.dim && s->v_dim <= k.dim && !k.rows == !c->vector &&
            (!k.rows || rows <= k.rows))
            return &k;
    return nullptr;
}

/* Rows that begin on 16 bytes, as copies need it. */
bool aligned(const int64_t (&strides)[3]) { return (strides[0] | strides[1] | strides[2]) % 8 == 0; }

bool fits_shape(const attention_shape *s) {
    if (s->batch < 1 || s->kv_heads < 1 || s->heads < 1 || s->heads % s->kv_heads || s->keys < 1) return false;
    if (s->keys > INT32_MAX - 1024) return false;
    if (s->queries < 1 || s->queries > ATTENTION_DECODE_QUERIES) return false;
    if (s->batch > MAX_GRID || s->heads * s->queries > INT32_MAX) return false;
    if (s->dim < 1 || s->v_dim < 1) return false;
    return s->dim % 8 == 0 && s->v_dim % 8 == 0 && aligned(s->q) && aligned(s->k) && aligned(s->v);
}

/* Rings of keys and values; without them what each warp leaves. */
size_t shared_of(const kernel_row *k, int warps) {
    if (k->rows) return (size_t)warps * k->rows * k->dim * 4;
    return (size_t)warps * k->depth * ROWS * k->dim * 4;
}

/* As many blocks as the device holds at once, where a warp has two steps at least. */
int splits_of(const attention_shape *s, const kernel_row *k, int64_t blocks, int warps, int held) {
    const int64_t step = k->rows ? k->depth * (256 / k->dim) : KEYS, each = 2 * step * warps;
    const int64_t most = (s->keys + each - 1) / each;
    const int64_t splits = held / blocks < most ? held / blocks : most;
    return splits < 1 ? 1 : splits > MAX_SPLITS ? MAX_SPLITS : (int)splits;
}

/* How many rows a block has, and how many blocks those that share keys need. */
void rows_of(const attention_shape *s, const kernel_row *k, attention_decode_plan *plan) {
    const int64_t all = s->heads / s->kv_heads * s->queries;
    const int most = k->rows ? k->rows : (int)ROWS;
    plan->rows = all < most ? (int)all : most, plan->tiles = (int)((all + most - 1) / most);
}

/* Where blocks hand over what they found: zeros, as no launch is number 0, which are there before the first launch on
 * any stream. Turns come first. */
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

/* The keys that queries see where all sequences are whole, and how blocks share them; the last one has some more. */
void share_keys(const attention_shape *s, int splits, int lead_kib, decode_job *job) {
    const int64_t end = s->causal && s->past + s->queries < s->keys ? s->past + s->queries : s->keys;
    const int64_t first = s->causal && s->window > 0 ? s->past + 1 - s->window : 0;
    job->low = first > 0 ? (int)first : 0, job->high = (int)end;
    const int steps = job->high > job->low ? (job->high - job->low + KEYS - 1) / KEYS : 0;
    job->lead = lead_kib * 1024 / (int)(KEYS * (s->dim + s->v_dim) * 2);
    const int lead = job->lead < steps / splits ? job->lead : steps / splits;
    job->each = (steps - lead) / splits, job->more = (steps - lead) % splits;
}

} // namespace

extern "C" int attention_decode_fits(const attention_shape *s, const attention_decode_config *c, size_t shared_limit) {
    const kernel_row *k = fits_shape(s) ? kernel_of(s, c) : nullptr;
    attention_decode_plan plan;
    if (!k || c->warps < 1 || c->warps > (k->rows ? vector_warps(k->rows) : (int)TENSOR_WARPS)) return 0;
    if (c->splits < 0 || c->splits > MAX_SPLITS) return 0;
    if (c->splits > 1 && (int64_t)c->splits * KEYS > s->keys) return 0;
    if (c->lead < 0 || c->lead > MAX_LEAD) return 0;
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
    plan->kernel = (const void *)k->kernel;
    rows_of(s, k, plan);
    plan->shared_bytes = shared_of(k, c->warps);
    cudaError_t e =
        cudaFuncSetAttribute(plan->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)plan->shared_bytes);
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
    const size_t units = (size_t)(s->kv_heads * plan->tiles);
    decode_job job = {};
    if (!s->masked != !tensors->mask) return cudaErrorInvalidValue;
    job.t = *tensors, job.s = *s;
    job.group = (int)(s->heads / s->kv_heads), job.queries = (int)s->queries;
    job.rows = plan->rows, job.tiles = plan->tiles, job.splits = plan->splits;
    job.turns = (uint2 *)plan->parts;
    job.words = (unsigned long long *)plan->parts + (size_t)s->batch * units;
    share_keys(s, plan->splits, plan->config.lead, &job);
    job.dim = (int)s->dim, job.v_dim = (int)s->v_dim;
    for (int k = 0; k < 3; k++) job.k[k] = s->k[k], job.v[k] = s->v[k];
    void *arguments[] = {&job};
    const dim3 grid((unsigned)plan->splits, (unsigned)units, (unsigned)s->batch);
    return cudaLaunchKernel(plan->kernel, grid, dim3((unsigned)plan->config.warps * 32), arguments, plan->shared_bytes,
                            (cudaStream_t)stream);
}
