/* gemm_stream's host side: which kernel, how the outputs are divided, what fits. gemm_stream.cuh has the kernel and its
 * reasons. */
#include "kernels/product/gemm_kernels.h"
#include "kernels/product/gemm_stream.cuh"

#include <cuda_runtime.h>

using namespace gemm_stream;

namespace {

/* A [k,n] weight becomes [n,pitch], zero behind k: through 32x32 tiles in shared memory. */
template <typename T> __global__ void pack_kernel(const T *w, T *packed, int n, int k, int64_t pitch, int64_t ldw) {
    __shared__ T tile[32][33];
    const int n0 = blockIdx.x * 32;
    for (int64_t k0 = (int64_t)blockIdx.y * 32; k0 < pitch; k0 += (int64_t)gridDim.y * 32) {
        for (int r = threadIdx.y; r < 32; r += blockDim.y) {
            const bool there = k0 + r < k && n0 + (int)threadIdx.x < n;
            tile[r][threadIdx.x] = there ? w[(k0 + r) * ldw + n0 + threadIdx.x] : (T)0;
        }
        __syncthreads();
        for (int r = threadIdx.y; r < 32; r += blockDim.y)
            if (n0 + r < n && k0 + threadIdx.x < pitch)
                packed[(n0 + r) * pitch + k0 + threadIdx.x] = tile[threadIdx.x][r];
        __syncthreads();
    }
}

/* Scales, and zero points, [n][blocks] become a table [blocks][pitch] each: pitch is n, or one more. */
template <typename T>
__global__ void pack_sides(const T *scales, const void *zeros, int with_sign, T *table, int n, int pitch, int blocks) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, all = (int64_t)blocks * pitch;
    if (i >= all) return;
    const int block = (int)(i / pitch), at = (int)(i % pitch);
    const int64_t from = (int64_t)at * blocks + block;
    table[i] = at < n ? scales[from] : gemm::from_float<T>(0);
    if (!zeros) return;
    const int zero = at >= n ? 0 : with_sign ? ((const int8_t *)zeros)[from] : ((const uint8_t *)zeros)[from];
    table[all + i] = gemm::from_float<T>((float)zero);
}

using kernel_fn = void (*)(const stream_job);
/* Bytes are not faster by these. */
template <typename T, int MT, int FORM, int SIZE, int DEPTH> constexpr kernel_fn of_16_bits() {
    if constexpr (element_of(FORM) == 2) return stream_kernel<T, MT, FORM, SIZE, DEPTH>;
    return nullptr;
}
template <typename T, int MT, int FORM> kernel_fn by_size(const gemm_stream_config *config) {
    static const struct {
        int tile, depth;
        kernel_fn kernel;
    } sizes[] = {
        {1, 4, stream_kernel<T, MT, FORM, 1, 4>}, {1, 5, of_16_bits<T, MT, FORM, 1, 5>()},
        {1, 6, stream_kernel<T, MT, FORM, 1, 6>}, {2, 3, stream_kernel<T, MT, FORM, 2, 3>},
        {2, 4, stream_kernel<T, MT, FORM, 2, 4>}, {3, 2, stream_kernel<T, MT, FORM, 3, 2>},
        {3, 3, of_16_bits<T, MT, FORM, 3, 3>()},
    };
    for (const auto &s : sizes)
        if (s.tile == config->tile && s.depth == config->depth) return s.kernel;
    return nullptr;
}
template <typename T, int MT> kernel_fn by_form(int form, const gemm_stream_config *c) {
    static kernel_fn (*const sizes[])(const gemm_stream_config *) = {
        by_size<T, MT, ROWS>,  by_size<T, MT, COLUMNS>,     by_size<T, MT, BYTES>,     by_size<T, MT, SCALES>,
        by_size<T, MT, ZEROS>, by_size<T, MT, FINE_SCALES>, by_size<T, MT, FINE_ZEROS>};
    return sizes[form](c);
}
template <typename T> kernel_fn by_rows(int64_t m, int form, const gemm_stream_config *c) {
    return m <= 8 ? by_form<T, 1>(form, c) : by_form<T, 2>(form, c);
}
kernel_fn kernel_of(const gemm_shape *s, const gemm_stream_config *c, int form) {
    return s->type_a == GEMM_FP16 ? by_rows<__half>(s->m, form, c) : by_rows<__nv_bfloat16>(s->m, form, c);
}

bool is_bytes(const gemm_shape *s) { return s->type_b == GEMM_INT8 || s->type_b == GEMM_UINT8; }

int form_of(const gemm_shape *s, const gemm_stream_config *config) {
    const bool fine = s->block_size < s->k && s->block_size < step_of(BYTES);
    if (is_bytes(s) && fine) return config->zeros ? FINE_ZEROS : FINE_SCALES;
    if (is_bytes(s)) return config->zeros ? ZEROS : s->block_size < s->k ? SCALES : BYTES;
    return s->trans_b || config->packed ? ROWS : COLUMNS;
}

/* Elements between rows of a packed weight: whole steps, so that no row ends within one. */
int64_t pitch_of(const gemm_shape *s) { return (s->k + 63) / 64 * 64; }

/* Of the tables of scales and zero points. */
int blocks_of(const gemm_shape *s) { return is_bytes(s) ? (int)(s->k / s->block_size) : 0; }
int side_pitch(const gemm_shape *s) { return (int)((s->n + 1) / 2 * 2); }

size_t packed_weight(const gemm_shape *s, const gemm_stream_config *config) {
    return config->packed ? (size_t)(s->n * pitch_of(s)) * (is_bytes(s) ? 1 : 2) : 0;
}

bool possible(const gemm_shape *s, const gemm_stream_config *config) {
    const bool bytes = is_bytes(s), types = (s->type_a == GEMM_FP16 || s->type_a == GEMM_BF16) &&
                                            (bytes || s->type_b == s->type_a) && s->type_c == s->type_a;
    const int64_t block = s->block_size;
    if (bytes ? block < 1 || s->k % block || (block != s->k && block != 32 && block != 64 && block % 128)
              : config->zeros)
        return false;
    const bool sizes = s->m >= 1 && s->m <= GEMM_STREAM_MAX_M && s->n >= 1 && s->k >= 8 && s->n < (1 << 30) &&
                       s->k < (1 << 30) && s->batch == 1;
    const bool rows = bytes ? s->trans_b && s->ldb % 16 == 0 : s->ldb % 8 == 0 && (s->trans_b || s->n % 8 == 0);
    const bool aligned = s->lda % 8 == 0 && s->k % 8 == 0 && (config->packed || rows);
    const bool settings =
        (config->split == 1 || config->split == 2 || config->split == 4) && !(config->packed && s->trans_b);
    return types && sizes && aligned && settings && !s->trans_a && kernel_of(s, config, form_of(s, config));
}

/* The numbers of a launch that depend on how many clusters there are, and the shared memory that it takes. */
size_t divide(const gemm_shape *s, const gemm_stream_config *config, int clusters, size_t limit, stream_job *job) {
    const int form = form_of(s, config), unit = unit_of(form), tile = tile_of(form, config->tile), step = step_of(form);
    const int units = (int)((s->n + unit - 1) / unit), split = config->split;
    job->units = units / clusters, job->more = units % clusters;
    for (int less = 0; less < 2; less++) {
        const int width = (job->units + !less) * unit, tiles = (width + tile - 1) / tile;
        const int height = tiles > 0 ? (width + tiles - 1) / tiles : 0;
        job->tiles[less] = tiles, job->height[less] = (height + unit - 1) / unit * unit;
    }
    job->split = split, job->steps = (int)((s->k + step - 1) / step);
    job->exchange_tiles = split > 1 ? (job->tiles[0] + split - 1) / split * split : 0;
    const size_t rows = s->m <= 8 ? 8 : 16, a_step = WARPS * (size_t)step * 2 * (size_t)s->m;
    const size_t fixed = (size_t)WARPS * (size_t)config->depth * (size_t)step_bytes(form, config->tile) +
                         WARPS * rows * ((size_t)tile + 4) * 4 + (size_t)job->exchange_tiles * (size_t)tile * rows * 4;
    const int all = ((job->steps + split - 1) / split + WARPS - 1) / WARPS;
    /* What is used again is kept, where there is room. */
    job->keep = all <= config->depth || (job->tiles[0] > 1 && fixed + (size_t)all * a_step <= limit);
    job->a_places = job->keep ? all : config->depth;
    return fixed + (size_t)job->a_places * a_step;
}

/* No more clusters than there are outputs to share among them. */
int clusters_for(const gemm_shape *s, const gemm_stream_config *config, int64_t slots) {
    const int64_t unit = unit_of(form_of(s, config)), units = (s->n + unit - 1) / unit;
    const int64_t clusters = slots / config->split;
    return (int)(clusters < 1 ? 1 : clusters > units ? units : clusters);
}

cudaError_t attribute(int *value, cudaDeviceAttr which) {
    int device = 0;
    const cudaError_t e = cudaGetDevice(&device);
    return e != cudaSuccess ? e : cudaDeviceGetAttribute(value, which, device);
}

void launch_config(const gemm_stream_plan *plan, cudaLaunchConfig_t *config, cudaLaunchAttribute *cluster) {
    *config = {};
    config->gridDim = dim3((unsigned)(plan->clusters * plan->config.split));
    config->blockDim = dim3(THREADS);
    config->dynamicSmemBytes = plan->shared_bytes;
    if (plan->config.split == 1) return;
    cluster->id = cudaLaunchAttributeClusterDimension;
    cluster->val.clusterDim.x = (unsigned)plan->config.split, cluster->val.clusterDim.y = 1,
    cluster->val.clusterDim.z = 1;
    config->attrs = cluster, config->numAttrs = 1;
}

/* How many blocks the device holds at once; of clusters a whole number. One on each multiprocessor: two were no faster.
 */
cudaError_t slots_of(const gemm_stream_plan *plan, int units, int *slots) {
    cudaLaunchConfig_t config;
    cudaLaunchAttribute cluster;
    int n = 0;
    *slots = units;
    if (plan->config.split == 1) return cudaSuccess;
    launch_config(plan, &config, &cluster);
    const cudaError_t e = cudaOccupancyMaxActiveClusters(&n, plan->kernel, &config);
    if (n * plan->config.split < units) *slots = n * plan->config.split;
    return e;
}
} // namespace

extern "C" int gemm_stream_fits(const gemm_shape *shape, const gemm_stream_config *config, int units,
                                size_t shared_limit) {
    stream_job job = {};
    /* a device may hold fewer clusters than its multiprocessors would make; then each does more */
    const int64_t slots = config->split > 1 ? units - units / 8 : units;
    return possible(shape, config) &&
           divide(shape, config, clusters_for(shape, config, slots), shared_limit, &job) <= shared_limit;
}

extern "C" int gemm_stream_rereads(const gemm_shape *shape, const gemm_stream_config *config, int units,
                                   size_t shared_limit) {
    stream_job job = {};
    divide(shape, config, clusters_for(shape, config, units), shared_limit, &job);
    return job.tiles[0] > 1 && !job.keep;
}

extern "C" int gemm_stream_prepare(const gemm_shape *shape, const gemm_stream_config *config, gemm_stream_plan *plan) {
    int units = 0, limit = 0, capability = 0, slots = 0;
    stream_job job = {};
    *plan = {};
    if (!possible(shape, config)) return cudaErrorInvalidValue;
    cudaError_t e = attribute(&units, cudaDevAttrMultiProcessorCount);
    if (e == cudaSuccess) e = attribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    if (e == cudaSuccess) e = attribute(&capability, cudaDevAttrComputeCapabilityMajor);
    if (e != cudaSuccess) return e;
    if (config->split > 1 && capability < 9) return cudaErrorInvalidValue;
    plan->shape = *shape, plan->config = *config, plan->shared_limit = (size_t)limit;
    plan->kernel = (const void *)kernel_of(shape, config, form_of(shape, config));
    plan->clusters = clusters_for(shape, config, units);
    plan->side_at = packed_weight(shape, config);
    plan->side_bytes =
        (size_t)sides_of(form_of(shape, config)) * (size_t)blocks_of(shape) * (size_t)side_pitch(shape) * 2;
    plan->pack_bytes = plan->side_at + plan->side_bytes;
    e = gemm::allow_shared(plan->kernel, (size_t)limit);
    /* Fewer clusters than asked for may fit; then each has more tiles, and needs a little more to exchange them. */
    for (int round = 0; e == cudaSuccess; round++) {
        plan->shared_bytes = divide(shape, config, plan->clusters, plan->shared_limit, &job);
        if (plan->shared_bytes > (size_t)limit) return cudaErrorInvalidValue;
        e = slots_of(plan, units, &slots);
        if (e != cudaSuccess) return e;
        if (slots < config->split) return cudaErrorInvalidValue;
        const int clusters = clusters_for(shape, config, slots);
        if (clusters >= plan->clusters) break;
        plan->clusters = clusters;
    }
    plan->blocks = plan->clusters * config->split;
    return e;
}

namespace {
template <typename T>
cudaError_t pack_weight(const gemm_shape *s, const void *weight, void *packed, cudaStream_t stream) {
    const int64_t pitch = pitch_of(s), down = (pitch + 31) / 32;
    const dim3 grid((unsigned)((s->n + 31) / 32), (unsigned)(down < 65535 ? down : 65535));
    pack_kernel<T>
        <<<grid, dim3(32, 8), 0, stream>>>((const T *)weight, (T *)packed, (int)s->n, (int)s->k, pitch, s->ldb);
    return cudaGetLastError();
}
template <typename T>
cudaError_t pack_tables(const gemm_shape *s, const void *scales, const void *zeros, void *table, cudaStream_t stream) {
    const int64_t all = (int64_t)blocks_of(s) * side_pitch(s);
    pack_sides<T><<<(unsigned)((all + 255) / 256), 256, 0, stream>>>(
        (const T *)scales, zeros, s->type_b == GEMM_INT8, (T *)table, (int)s->n, side_pitch(s), blocks_of(s));
    return cudaGetLastError();
}
} // namespace

extern "C" int gemm_stream_pack(const gemm_stream_plan *plan, const void *weight, const void *scales, const void *zeros,
                                void *packed, void *stream) {
    const gemm_shape *s = &plan->shape;
    cudaError_t e = cudaSuccess;
    if (!plan->pack_bytes || (zeros != nullptr) != plan->config.zeros) return cudaErrorInvalidValue;
    if (plan->side_at)
        e = (is_bytes(s) ? pack_weight<uint8_t> : pack_weight<uint16_t>)(s, weight, packed, (cudaStream_t)stream);
    if (e == cudaSuccess && plan->side_bytes)
        e = (s->type_a == GEMM_FP16 ? pack_tables<__half> : pack_tables<__nv_bfloat16>)(s, scales, zeros,
                                                                                        (char *)packed + plan->side_at,
                                                                                        (cudaStream_t)stream);
    return e;
}

extern "C" int gemm_stream_launch(const gemm_stream_plan *plan, const void *a, const void *weight, const void *scales,
                                  const void *packed, void *c, void *stream) {
    const gemm_shape *s = &plan->shape;
    cudaLaunchConfig_t config;
    cudaLaunchAttribute cluster;
    stream_job job = {};
    job.a = a, job.w = plan->side_at ? packed : weight, job.c = c;
    job.side = plan->side_bytes ? (const char *)packed + plan->side_at : (const char *)scales;
    job.m = (int)s->m, job.n = (int)s->n, job.k = (int)s->k;
    divide(s, &plan->config, plan->clusters, plan->shared_limit, &job);
    job.lda = s->lda, job.ldw = plan->config.packed ? pitch_of(s) : s->ldb, job.ldc = s->ldc;
    job.sign = s->type_b == GEMM_INT8;
    job.flip = s->type_a == GEMM_BF16 ? job.sign ? 0x40004000u : 0x00800080u : job.sign ? 0x80808080u : 0;
    /* -1, for a highest bit that is 2 or 4; -2^127, for 2^-126 or 0 */
    job.factor = job.sign ? 0xbf80bf80u : 0xff00ff00u;
    job.blocks = blocks_of(s), job.pitch = side_pitch(s);
    job.block_shift = s->block_size == 64;
    job.block_steps = job.blocks == 1 ? job.steps : (int)(s->block_size / step_of(BYTES));
    launch_config(plan, &config, &cluster);
    config.stream = (cudaStream_t)stream;
    void *arguments[] = {&job};
    return cudaLaunchKernelExC(&config, plan->kernel, arguments);
}
