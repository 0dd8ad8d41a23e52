/* gemm_stream's host side: which kernel, how the outputs are divided, what fits. gemm_stream.cuh has the kernel and its
 * reasons. */
#include "kernels/product/gemm_kernels.h"
#include "kernels/product/gemm_stream.cuh"

#include <cuda_runtime.h>

using namespace gemm_stream;

namespace {

/* A [k,n] weight becomes [n,pitch], zero behind k: through 32x32 tiles in shared memory. */
__global__ void pack_kernel(const uint16_t *w, uint16_t *packed, int n, int k, int64_t pitch, int64_t ldw) {
    __shared__ uint16_t tile[32][33];
    const int n0 = blockIdx.x * 32;
    for (int64_t k0 = (int64_t)blockIdx.y * 32; k0 < pitch; k0 += (int64_t)gridDim.y * 32) {
        for (int r = threadIdx.y; r < 32; r += blockDim.y) {
            const bool there = k0 + r < k && n0 + (int)threadIdx.x < n;
            tile[r][threadIdx.x] = there ? w[(k0 + r) * ldw + n0 + threadIdx.x] : (uint16_t)0;
        }
        __syncthreads();
        for (int r = threadIdx.y; r < 32; r += blockDim.y)
            if (n0 + r < n && k0 + threadIdx.x < pitch)
                packed[(n0 + r) * pitch + k0 + threadIdx.x] = tile[threadIdx.x][r];
        __syncthreads();
    }
}

using kernel_fn = void (*)(const stream_job);
template <typename T, int MT, int FORM> kernel_fn by_size(const gemm_stream_config *config) {
    static const struct {
        int tile, depth;
        kernel_fn kernel;
    } sizes[] = {
        {1, 4, stream_kernel<T, MT, FORM, 1, 4>}, {1, 5, stream_kernel<T, MT, FORM, 1, 5>},
        {1, 6, stream_kernel<T, MT, FORM, 1, 6>}, {2, 3, stream_kernel<T, MT, FORM, 2, 3>},
        {2, 4, stream_kernel<T, MT, FORM, 2, 4>}, {3, 2, stream_kernel<T, MT, FORM, 3, 2>},
        {3, 3, stream_kernel<T, MT, FORM, 3, 3>},
    };
    for (const auto &s : sizes)
        if (s.tile == config->tile && s.depth == config->depth) return s.kernel;
    return nullptr;
}
template <typename T, int MT> kernel_fn by_form(int form, const gemm_stream_config *c) {
    return form == ROWS ? by_size<T, MT, ROWS>(c) : by_size<T, MT, COLUMNS>(c);
}
template <typename T> kernel_fn by_rows(int64_t m, int form, const gemm_stream_config *c) {
    return m <= 8 ? by_form<T, 1>(form, c) : by_form<T, 2>(form, c);
}
kernel_fn kernel_of(const gemm_shape *s, const gemm_stream_config *c, int form) {
    return s->type_a == GEMM_FP16 ? by_rows<__half>(s->m, form, c) : by_rows<__nv_bfloat16>(s->m, form, c);
}

int form_of(const gemm_shape *s, const gemm_stream_config *config) {
    return s->trans_b || config->packed ? ROWS : COLUMNS;
}

/* Elements between rows of a packed weight: whole steps, so that no row ends within one. */
int64_t pitch_of(const gemm_shape *s) { return (s->k + 63) / 64 * 64; }

bool possible(const gemm_shape *s, const gemm_stream_config *config) {
    const bool types =
        (s->type_a == GEMM_FP16 || s->type_a == GEMM_BF16) && s->type_b == s->type_a && s->type_c == s->type_a;
    const bool sizes = s->m >= 1 && s->m <= GEMM_STREAM_MAX_M && s->n >= 1 && s->k >= 8 && s->n < (1 << 30) &&
                       s->k < (1 << 30) && s->batch == 1;
    const bool aligned =
        s->lda % 8 == 0 && s->k % 8 == 0 && (config->packed || (s->ldb % 8 == 0 && (s->trans_b || s->n % 8 == 0)));
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
    const size_t fixed = (size_t)WARPS * (size_t)config->depth * (size_t)(tile * step * 2) +
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
    if (config->packed) plan->pack_bytes = (size_t)(shape->n * pitch_of(shape)) * 2;
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

extern "C" int gemm_stream_pack(const gemm_stream_plan *plan, const void *weight, void *packed, void *stream) {
    const gemm_shape *s = &plan->shape;
    if (!plan->pack_bytes) return cudaErrorInvalidValue;
    const int64_t pitch = pitch_of(s), down = (pitch + 31) / 32;
    const dim3 grid((unsigned)((s->n + 31) / 32), (unsigned)(down < 65535 ? down : 65535));
    pack_kernel<<<grid, dim3(32, 8), 0, (cudaStream_t)stream>>>((const uint16_t *)weight, (uint16_t *)packed, (int)s->n,
                                                                (int)s->k, pitch, s->ldb);
    return cudaGetLastError();
}

extern "C" int gemm_stream_launch(const gemm_stream_plan *plan, const void *a, const void *weight, void *c,
                                  void *stream) {
    const gemm_shape *s = &plan->shape;
    cudaLaunchConfig_t config;
    cudaLaunchAttribute cluster;
    stream_job job = {};
    job.a = a, job.w = weight, job.c = c;
    job.m = (int)s->m, job.n = (int)s->n, job.k = (int)s->k;
    divide(s, &plan->config, plan->clusters, plan->shared_limit, &job);
    job.lda = s->lda, job.ldw = plan->config.packed ? pitch_of(s) : s->ldb, job.ldc = s->ldc;
    launch_config(plan, &config, &cluster);
    config.stream = (cudaStream_t)stream;
    void *arguments[] = {&job};
    return cudaLaunchKernelExC(&config, plan->kernel, arguments);
}
