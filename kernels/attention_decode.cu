/* Attention of few queries: keys and values come once, and all heads that share them are served by one block
 * (attention_decode.cuh). Blocks that share the keys of a head leave their parts in the workspace, for a second kernel
 * to merge. */
#include "kernels/attention_decode.cuh"

namespace {

using namespace attention;

enum { MERGE_THREADS = 128, MAX_WARPS = 8 };

/* What `parts` parts have of one row, `pitch` floats from part to part: the largest score and the total. */
__device__ __forceinline__ float2 merged(const float *stats, int64_t pitch, int parts) {
    float most = -INFINITY, total = 0;
    for (int k = 0; k < parts; k++) most = fmaxf(most, stats[k * pitch]);
    const float base = base_of(most);
    for (int k = 0; k < parts; k++) total += stats[k * pitch + 1] * power(stats[k * pitch] - base);
    return make_float2(most, total);
}

/* One sum of a row over its parts; a part that saw nothing left no sums. */
__device__ __forceinline__ float weighed(const float *sums, int64_t pitch, const float *stats, int64_t stats_pitch,
                                         int parts, float most) {
    const float base = base_of(most);
    float sum = 0;
    for (int k = 0; k < parts; k++)
        if (stats[k * stats_pitch] != -INFINITY) sum += sums[k * pitch] * power(stats[k * stats_pitch] - base);
    return sum;
}

template <typename T> __device__ __forceinline__ T *out_of(const decode_job &job, const decode_place &at, int64_t row) {
    return (T *)job.t.out + at.b * job.s.out[0] + head_of(job, at, row) * job.s.out[1] +
           query_of(job, at, row) * job.s.out[2];
}

template <typename T, int DIM, int DEPTH>
__global__ void __launch_bounds__(MAX_WARPS * 32) decode_kernel(const decode_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float stats[MAX_WARPS][ROWS * 2];
    constexpr int room = DEPTH * ring<T, DIM>::bytes; /* of a warp; a step is as large as its sums */
    static_assert(ring<T, DIM>::bytes == ROWS * DIM * 4, "sums take the place of a step");
    const int warp = threadIdx.x >> 5, g = (threadIdx.x & 31) >> 2, warps = blockDim.x >> 5;
    decode_place at = place_of(job, blockIdx.x);
    share_keys(job, blockIdx.y, at);
    decode_row rows[2] = {row_of<T>(job, at, g), row_of<T>(job, at, g + 8)};
    float o[DIM / 8][4] = {};
    const ring<T, DIM> keys = ring_of<T, DIM>(job, at, gemm::shared_address(shared + warp * room));
    walk<T, DIM, DEPTH>(job, at, keys, rows, o);
    __syncwarp();
    leave<DIM>((float *)(shared + warp * room), stats[warp], rows, o);
    __syncthreads();
    const int64_t part = ((int64_t)blockIdx.x * job.splits + blockIdx.y) * job.rows;
    for (int row = 0; row < at.rows; row++) {
        const float2 all = merged(&stats[0][row * 2], ROWS * 2, warps);
        if (job.splits > 1 && threadIdx.x == 0) *(float2 *)(job.stats + (part + row) * 2) = all;
        for (int d = threadIdx.x; d < job.s.v_dim; d += blockDim.x) {
            const float sum =
                weighed((const float *)shared + row * DIM + d, room / 4, &stats[0][row * 2], ROWS * 2, warps, all.x);
            if (job.splits > 1)
                job.sums[(part + row) * job.s.v_dim + d] = sum;
            else
                out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * inverse(all.y));
        }
    }
}

/* One block for each row of each of the first kernel's ranges. Launched early, it waits for all that kernel wrote. */
template <typename T> __global__ void __launch_bounds__(MERGE_THREADS) merge_kernel(const decode_job job) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    const int64_t unit = blockIdx.x / job.rows, row = blockIdx.x % job.rows, v_dim = job.s.v_dim;
    const decode_place at = place_of(job, unit);
    if (row >= at.rows) return;
    const int64_t part = unit * job.splits * job.rows + row;
    const float *stats = job.stats + part * 2;
    const float2 all = merged(stats, job.rows * 2, job.splits);
    for (int64_t d = threadIdx.x; d < v_dim; d += MERGE_THREADS) {
        const float sum =
            weighed(job.sums + part * v_dim + d, job.rows * v_dim, stats, job.rows * 2, job.splits, all.x);
        out_of<T>(job, at, row)[d] = gemm::from_float<T>(sum * inverse(all.y));
    }
}

typedef void kernel_function(const decode_job);

#define DEPTHS_OF(type, T, dim)                                                                                        \
    {type, dim, 2, decode_kernel<T, dim, 2>, merge_kernel<T>},                                                         \
        {type, dim, 3, decode_kernel<T, dim, 3>, merge_kernel<T>}, {                                                   \
        type, dim, 4, decode_kernel<T, dim, 4>, merge_kernel<T>                                                        \
    }
#define DIMS_OF(type, T) DEPTHS_OF(type, T, 64), DEPTHS_OF(type, T, 128), DEPTHS_OF(type, T, 256)
const struct kernel_row {
    int type, dim, depth;
    kernel_function *kernel, *merge;
} kernels[] = {DIMS_OF(ATTENTION_FP16, __half), DIMS_OF(ATTENTION_BF16, __nv_bfloat16)};

const kernel_row *kernel_of(const attention_shape *s, const attention_decode_config *c) {
    for (const kernel_row &k : kernels)
        if (k.type == s->type && k.depth == c->depth && s->dim <= k.dim && s->v_dim <= k.dim) return &k;
    return nullptr;
}

/* Rows that begin on 16 bytes, as copies need it. */
bool aligned(const int64_t (&strides)[3]) { return (strides[0] | strides[1] | strides[2]) % 8 == 0; }

bool fits_shape(const attention_shape *s) {
    if (s->batch < 1 || s->kv_heads < 1 || s->heads < 1 || s->heads % s->kv_heads || s->keys < 1) return false;
    if (s->queries < 1 || s->queries > ATTENTION_DECODE_QUERIES) return false;
    return s->dim % 8 == 0 && s->v_dim % 8 == 0 && aligned(s->q) && aligned(s->k) && aligned(s->v);
}

size_t shared_of(const kernel_row *k, int warps) { return (size_t)warps * k->depth * ROWS * k->dim * 4; }

/* As many blocks as the device holds at once, where a warp has two steps at least. */
int splits_of(const attention_shape *s, int64_t blocks, int warps, int held) {
    const int64_t most = (s->keys + (int64_t)2 * KEYS * warps - 1) / ((int64_t)2 * KEYS * warps);
    const int64_t splits = held / blocks < most ? held / blocks : most;
    return splits < 1 ? 1 : (int)splits;
}

} // namespace

extern "C" int attention_decode_fits(const attention_shape *s, const attention_decode_config *c, size_t shared_limit) {
    const kernel_row *k = fits_shape(s) ? kernel_of(s, c) : nullptr;
    if (!k || c->warps < 1 || c->warps > MAX_WARPS || c->splits < 0 || c->splits > 65535) return 0;
    if (c->splits > 1 && (int64_t)c->splits * KEYS > s->keys) return 0;
    return shared_of(k, c->warps) + MAX_WARPS * ROWS * 2 * sizeof(float) <= shared_limit;
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
    plan->rows = all < ROWS ? (int)all : (int)ROWS, plan->tiles = (int)((all + ROWS - 1) / ROWS);
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
    plan->early = capability >= 9;
    plan->splits = c->splits ? c->splits : splits_of(s, blocks, c->warps, held * units);
    if (plan->splits > 1)
        plan->workspace_bytes = (size_t)(blocks * plan->splits * plan->rows) * (size_t)(s->v_dim + 2) * sizeof(float);
    return cudaSuccess;
}

extern "C" int attention_decode_launch(const attention_decode_plan *plan, const attention_tensors *tensors,
                                       void *workspace, void *stream) {
    const attention_shape *s = &plan->shape;
    const int64_t blocks = s->batch * s->kv_heads * plan->tiles;
    float *stats = (float *)workspace;
    float *sums = stats ? stats + blocks * plan->splits * plan->rows * 2 : nullptr;
    decode_job job = {*s, *tensors, sums, stats, s->heads / s->kv_heads, plan->rows, plan->tiles, plan->splits};
    void *arguments[] = {&job};
    if (!s->masked != !tensors->mask || (plan->splits > 1 && !workspace)) return cudaErrorInvalidValue;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks, (unsigned)plan->splits);
    config.blockDim = dim3((unsigned)plan->config.warps * 32);
    config.dynamicSmemBytes = plan->shared_bytes;
    config.stream = (cudaStream_t)stream;
    const cudaError_t e = cudaLaunchKernelExC(&config, plan->kernel, arguments);
    if (e != cudaSuccess || plan->splits == 1) return e;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3((unsigned)(blocks * plan->rows)), config.blockDim = dim3(MERGE_THREADS);
    config.dynamicSmemBytes = 0;
    config.attrs = &early, config.numAttrs = plan->early ? 1 : 0;
    return cudaLaunchKernelExC(&config, plan->merge, arguments);
}
