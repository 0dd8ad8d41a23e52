/* Attention of few queries: keys and values come once, and all heads that share them are served by one block, on tensor
 * cores (attention_decode.cuh) or, where they are very few, without (attention_vector.cuh). Blocks that share the keys
 * of a head leave their parts in the workspace, for a second kernel to merge, or for the last of them to be done; or
 * they are a cluster, and merge what is in their shared memory. */
#include "kernels/attention_decode.cuh"
#include "kernels/attention_vector.cuh"

namespace {

using namespace attention;

enum { MERGE_THREADS = 128, MAX_WARPS = 16, TENSOR_WARPS = 8, MAX_SPLITS = 256, MAX_CLUSTER = 8, MERGE_LOADS = 8 };

/* One row of a block, of what its warps found: the largest score and the total; a sum, `pitch` floats from warp to
 * warp. */
__device__ __forceinline__ float2 merged(const float *stats, int warps) {
    float most = -INFINITY, total = 0;
    for (int k = 0; k < warps; k++) most = fmaxf(most, stats[k * ROWS * 2]);
    const float base = base_of(most);
    for (int k = 0; k < warps; k++) total += stats[k * ROWS * 2 + 1] * power(stats[k * ROWS * 2] - base);
    return make_float2(most, total);
}
__device__ __forceinline__ float weighed(const float *sums, int pitch, const float *stats, int warps, float most) {
    const float base = base_of(most);
    float sum = 0;
    for (int k = 0; k < warps; k++) sum += sums[k * pitch] * power(stats[k * ROWS * 2] - base);
    return sum;
}

template <typename T> __device__ __forceinline__ T *out_of(const decode_job &job, const decode_place &at, int row) {
    return (T *)job.t.out + at.b * job.s.out[0] + head_of(job, at, row) * job.s.out[1] +
           query_of(job, at, row) * job.s.out[2];
}

/* The blocks of a cluster have all keys of these rows: each merges a share of the outputs, out of everybody's shared
 * memory. `sums` and `stats` lie at the same place in all of them. */
template <typename T, int DIM>
__device__ __forceinline__ void gather(const decode_job &job, const decode_place &at, const float *sums,
                                       const float *stats) {
    const int v_dim = (int)job.s.v_dim, step = job.splits * blockDim.x;
    cluster_barrier();
    for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < at.rows * v_dim; i += step) {
        const int row = i / v_dim, d = i % v_dim;
        float most = -INFINITY, total = 0, sum = 0, x[MAX_CLUSTER], largest[MAX_CLUSTER], totals[MAX_CLUSTER];
#pragma unroll
        for (int k = 0; k < MAX_CLUSTER; k++) {
            const bool there = k < job.splits;
            largest[k] = there ? remote(stats + row * 2, k) : -INFINITY;
            totals[k] = there ? remote(stats + row * 2 + 1, k) : 0.0f;
            x[k] = there ? remote(sums + row * DIM + d, k) : 0.0f;
            most = fmaxf(most, largest[k]);
        }
#pragma unroll
        for (int k = 0; k < MAX_CLUSTER; k++) {
            const float weight = power(largest[k] - base_of(most));
            total += totals[k] * weight, sum += x[k] * weight;
        }
        out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * inverse(total));
    }
    cluster_barrier(); /* nobody may leave while others read its memory */
}

/* Counts the blocks of these rows that are done; the last one learns it, and is sure to see what the others wrote. The
 * counter is zero again then, for the next launch. */
__device__ __forceinline__ bool last_of(const decode_job &job) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(job.counts + blockIdx.x, 1u) == (unsigned)job.splits - 1;
        if (last) job.counts[blockIdx.x] = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* What all blocks left of these rows becomes the output; several parts are on their way at a time. */
template <typename T> __device__ __forceinline__ void merge(const decode_job &job, const decode_place &at) {
    const int v_dim = (int)job.s.v_dim;
    const int64_t part = (int64_t)blockIdx.x * job.splits * job.rows;
    for (int i = threadIdx.x; i < at.rows * v_dim; i += blockDim.x) {
        const int row = i / v_dim, d = i % v_dim;
        const float2 *const stats = (const float2 *)job.stats + part + row;
        const float *const sums = job.sums + (part + row) * v_dim + d;
        float most = -INFINITY, total = 0, sum = 0;
        for (int first = 0; first < job.splits; first += MERGE_LOADS) {
            float2 one[MERGE_LOADS];
            float x[MERGE_LOADS], now = most;
#pragma unroll
            for (int k = 0; k < MERGE_LOADS; k++) {
                const int64_t from = (int64_t)(first + k) * job.rows;
                const bool there = first + k < job.splits;
                one[k] = there ? __ldcg(stats + from) : make_float2(-INFINITY, 0);
                x[k] = there ? __ldcg(sums + from * v_dim) : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < MERGE_LOADS; k++) now = fmaxf(now, one[k].x);
            const float base = base_of(now), change = power(most - base);
            most = now, total *= change, sum *= change;
#pragma unroll
            for (int k = 0; k < MERGE_LOADS; k++) {
                const float weight = power(one[k].x - base);
                total += one[k].y * weight, sum += x[k] * weight;
            }
        }
        out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * inverse(total));
    }
}

/* What the warps of a block found becomes one, and goes to the output or to those who merge blocks. In shared memory
 * every warp has its sums at the beginning of its `room` bytes; a cluster's blocks put theirs behind `free`. */
template <typename T, int DIM>
__device__ __forceinline__ void hand_over(const decode_job &job, const decode_place &at, const char *shared, int room,
                                          char *free, const float *stats, float *found) {
    const int warps = blockDim.x >> 5;
    const int64_t part = ((int64_t)blockIdx.x * job.splits + blockIdx.y) * job.rows;
    float *const sums = job.cluster ? (float *)free : job.sums + part * job.s.v_dim;
    float *const most = job.cluster ? found : job.stats + part * 2;
    const int pitch = job.cluster ? DIM : (int)job.s.v_dim;
    for (int row = 0; row < at.rows; row++) {
        const float2 all = merged(stats + row * 2, warps);
        if (job.splits > 1 && threadIdx.x == 0) *(float2 *)(most + row * 2) = all;
        for (int d = threadIdx.x; d < job.s.v_dim; d += blockDim.x) {
            const float sum = weighed((const float *)shared + row * DIM + d, room / 4, stats + row * 2, warps, all.x);
            if (job.splits > 1)
                sums[row * pitch + d] = sum;
            else
                out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * inverse(all.y));
        }
    }
    if (job.cluster) gather<T, DIM>(job, at, sums, found);
    if (job.counts && last_of(job)) merge<T>(job, at);
}

template <typename T, int DIM, int DEPTH>
__global__ void __launch_bounds__(TENSOR_WARPS * 32) decode_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float stats[MAX_WARPS][ROWS * 2], found[ROWS * 2];
    constexpr int room = DEPTH * ring<T, DIM>::bytes; /* of a warp; sums take the place of its first step */
    static_assert(ring<T, DIM>::bytes == ROWS * DIM * 4 && DEPTH > 1, "a step is as large as sums, and there are two");
    const int warp = threadIdx.x >> 5;
    decode_place at = place_of(job, blockIdx.x);
    share_keys(job, blockIdx.y, at);
    decode_row rows[2];
    float o[DIM / 8][4] = {};
    const ring<T, DIM> keys = ring_of<T, DIM>(job, at, gemm::shared_address(shared + warp * room));
    walk<T, DIM, DEPTH>(job, at, keys, rows, o);
    __syncwarp();
    leave<DIM>((float *)(shared + warp * room), stats[warp], rows, o);
    __syncthreads();
    hand_over<T, DIM>(job, at, shared, room, shared + ring<T, DIM>::bytes, &stats[0][0], found);
}

constexpr int vector_warps(int rows) { return rows == 1 ? MAX_WARPS : MAX_WARPS / 2; }

/* Registers for 16 warps on a multiprocessor, where there is one row: that many have to be waiting for their keys. */
template <typename T, int DIM, int R, int U>
__global__ void __launch_bounds__(vector_warps(R) * 32) vector_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float stats[MAX_WARPS][ROWS * 2], found[ROWS * 2];
    constexpr int room = R * DIM * 4; /* of a warp */
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    decode_place at = place_of(job, blockIdx.x);
    share_keys(job, blockIdx.y, at);
    vector_row rows[R];
    walk_vectors<T, DIM, R, U>(job, at, rows);
    leave_vectors<DIM, R, U>((float *)(shared + warp * room), stats[warp], rows);
    __syncthreads();
    hand_over<T, DIM>(job, at, shared, room, shared + warps * room, &stats[0][0], found);
}

/* One block for each row of each of the first kernel's ranges. Launched early, it waits for all that kernel wrote. */
template <typename T> __global__ void __launch_bounds__(MERGE_THREADS) merge_kernel(const decode_job job) {
    __shared__ float weights[MAX_SPLITS], part_of_all;
    const int unit = blockIdx.x / job.rows, row = blockIdx.x % job.rows, v_dim = (int)job.s.v_dim;
    const decode_place at = place_of(job, unit);
    const int64_t part = (int64_t)unit * job.splits * job.rows + row;
    const float2 *const stats = (const float2 *)job.stats + part;
    if (row >= at.rows) return;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    if (threadIdx.x < 32) {
        float most = -INFINITY, total = 0;
        for (int k = threadIdx.x; k < job.splits; k += 32) most = fmaxf(most, stats[(int64_t)k * job.rows].x);
        for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
        for (int k = threadIdx.x; k < job.splits; k += 32) {
            const float2 one = stats[(int64_t)k * job.rows];
            weights[k] = power(one.x - base_of(most));
            total += one.y * weights[k];
        }
        for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
        if (threadIdx.x == 0) part_of_all = inverse(total);
    }
    __syncthreads();
    for (int d = threadIdx.x; d < v_dim; d += MERGE_THREADS) {
        const float *const sums = job.sums + part * v_dim + d;
        float sum = 0;
#pragma unroll 8
        for (int k = 0; k < job.splits; k++) sum += weights[k] * sums[(int64_t)k * job.rows * v_dim];
        out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * part_of_all);
    }
}

typedef void kernel_function(const decode_job);

#define TENSOR_OF(type, T, dim, depth)                                                                                 \
    { type, dim, depth, 0, decode_kernel<T, dim, depth>, merge_kernel<T> }
#define VECTOR_OF(type, T, dim, depth, rows)                                                                           \
    { type, dim, depth, rows, vector_kernel<T, dim, rows, depth>, merge_kernel<T> }
#define DEPTHS_OF(type, T, dim)                                                                                        \
    TENSOR_OF(type, T, dim, 2), TENSOR_OF(type, T, dim, 3), TENSOR_OF(type, T, dim, 4), VECTOR_OF(type, T, dim, 4, 1), \
        VECTOR_OF(type, T, dim, 8, 1), VECTOR_OF(type, T, dim, 4, VECTOR_ROWS)
#define DIMS_OF(type, T) DEPTHS_OF(type, T, 64), DEPTHS_OF(type, T, 128), DEPTHS_OF(type, T, 256)
const struct kernel_row {
    int type, dim, depth;
    int rows; /* of a block without tensor cores; 0: with */
    kernel_function *kernel, *merge;
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
    return s->dim % 8 == 0 && s->v_dim % 8 == 0 && aligned(s->q) && aligned(s->k) && aligned(s->v);
}

/* Rings of keys and values; without them what each warp leaves, and the block. */
size_t shared_of(const kernel_row *k, int warps) {
    if (k->rows) return (size_t)(warps + 1) * k->rows * k->dim * 4;
    return (size_t)warps * k->depth * ROWS * k->dim * 4;
}

/* As many blocks as the device holds at once, where a warp has two steps at least. */
int splits_of(const attention_shape *s, const kernel_row *k, int64_t blocks, int warps, int held) {
    const int64_t step = k->rows ? k->depth * (256 / k->dim) : KEYS, each = 2 * step * warps;
    const int64_t most = (s->keys + each - 1) / each;
    const int64_t splits = held / blocks < most ? held / blocks : most;
    return splits < 1 ? 1 : splits > MAX_SPLITS ? MAX_SPLITS : (int)splits;
}

/* Zeros, which are there before the first launch on any stream. */
cudaError_t open_counts(attention_decode_plan *plan, size_t bytes) {
    cudaError_t e = cudaMalloc(&plan->counts, bytes);
    if (e == cudaSuccess) e = cudaMemset(plan->counts, 0, bytes);
    if (e == cudaSuccess) e = cudaStreamSynchronize(nullptr);
    if (e != cudaSuccess) attention_decode_close(plan);
    return e;
}

} // namespace

extern "C" int attention_decode_fits(const attention_shape *s, const attention_decode_config *c, size_t shared_limit) {
    const kernel_row *k = fits_shape(s) ? kernel_of(s, c) : nullptr;
    if (!k || c->warps < 1 || c->warps > (k->rows ? vector_warps(k->rows) : (int)TENSOR_WARPS)) return 0;
    if (c->splits < 0 || c->splits > MAX_SPLITS) return 0;
    if (c->cluster && (c->last || c->splits < 2 || c->splits > MAX_CLUSTER)) return 0;
    if (c->last && c->splits == 1) return 0; /* there is nothing to merge */
    if (c->splits > 1 && (int64_t)c->splits * KEYS > s->keys) return 0;
    return shared_of(k, c->warps) + (MAX_WARPS + 1) * ROWS * 2 * sizeof(float) <= shared_limit;
}

extern "C" int attention_decode_prepare(const attention_shape *s, const attention_decode_config *c, int units,
                                        size_t shared_limit, attention_decode_plan *plan) {
    int held = 0, device = 0, capability = 0;
    if (!attention_decode_fits(s, c, shared_limit)) return cudaErrorInvalidValue;
    const kernel_row *k = kernel_of(s, c);
    *plan = attention_decode_plan{};
    plan->shape = *s, plan->config = *c;
    plan->kernel = (const void *)k->kernel, plan->merge = (const void *)k->merge;
    const int64_t all = s->heads / s->kv_heads * s->queries;
    const int most = k->rows ? k->rows : (int)ROWS;
    plan->rows = all < most ? (int)all : most, plan->tiles = (int)((all + most - 1) / most);
    if ((double)s->batch * (double)s->kv_heads * plan->tiles * plan->rows > INT32_MAX) return cudaErrorInvalidValue;
    const int64_t blocks = s->batch * s->kv_heads * plan->tiles;
    plan->shared_bytes = shared_of(k, c->warps);
    cudaError_t e =
        cudaFuncSetAttribute(plan->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)plan->shared_bytes);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, plan->kernel, c->warps * 32, plan->shared_bytes);
    if (e == cudaSuccess) e = cudaGetDevice(&device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device);
    if (e != cudaSuccess) return e;
    if (held < 1) return cudaErrorInvalidConfiguration;
    if (c->cluster && capability < 9) return cudaErrorInvalidValue;
    plan->early = capability >= 9;
    plan->splits = c->splits ? c->splits : splits_of(s, k, blocks, c->warps, held * units);
    if (plan->splits > 1 && !c->cluster)
        plan->workspace_bytes = (size_t)(blocks * plan->splits * plan->rows) * (size_t)(s->v_dim + 2) * sizeof(float);
    return c->last && plan->splits > 1 ? open_counts(plan, (size_t)blocks * sizeof(unsigned)) : cudaSuccess;
}

extern "C" void attention_decode_close(attention_decode_plan *plan) {
    cudaFree(plan->counts);
    plan->counts = nullptr;
}

extern "C" int attention_decode_launch(const attention_decode_plan *plan, const attention_tensors *tensors,
                                       void *workspace, void *stream) {
    const attention_shape *s = &plan->shape;
    const int64_t blocks = s->batch * s->kv_heads * plan->tiles;
    const bool cluster = plan->config.cluster;
    float *stats = (float *)workspace, *sums = stats ? stats + blocks * plan->splits * plan->rows * 2 : nullptr;
    decode_job job = {*s,
                      *tensors,
                      sums,
                      stats,
                      (unsigned *)plan->counts,
                      (int)(s->heads / s->kv_heads),
                      (int)s->kv_heads,
                      (int)s->queries,
                      plan->rows,
                      plan->tiles,
                      plan->splits,
                      cluster};
    void *arguments[] = {&job};
    if (!s->masked != !tensors->mask || (plan->workspace_bytes && !workspace)) return cudaErrorInvalidValue;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks, (unsigned)plan->splits);
    config.blockDim = dim3((unsigned)plan->config.warps * 32);
    config.dynamicSmemBytes = plan->shared_bytes;
    config.stream = (cudaStream_t)stream;
    config.attrs = &attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 1, attribute.val.clusterDim.y = (unsigned)plan->splits, attribute.val.clusterDim.z = 1;
    config.numAttrs = cluster ? 1 : 0;
    const cudaError_t e = cudaLaunchKernelExC(&config, plan->kernel, arguments);
    if (e != cudaSuccess || !plan->workspace_bytes || plan->counts) return e;
    attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)(blocks * plan->rows)), config.blockDim = dim3(MERGE_THREADS);
    config.dynamicSmemBytes = 0;
    config.numAttrs = plan->early ? 1 : 0;
    return cudaLaunchKernelExC(&config, plan->merge, arguments);
}
