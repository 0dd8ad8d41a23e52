/* Checks and times the project's own matrix products, alone, without the harness: random inputs, an fp64 reference on
 * the device, poisoned outputs between canaries, inputs that must stay as they are; times from CUDA graphs whose
 * launches rotate over more weights than the cache holds, beside a plain read of the same bytes in the same graph, and
 * beside cuBLASLt's default where that library can be opened.
 *
 *     gemm_bench check [small|tiny] every kernel, many shapes; ends with "N passed, N failed"
 *     gemm_bench time [all]         tables of gemm_stream and gemm_int4; `all` prints every variant
 */
#include "kernels/product/gemm_kernels.h"

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

#define NEED(call)                                                                                                     \
    do {                                                                                                               \
        const cudaError_t need_error = (cudaError_t)(call);                                                            \
        if (need_error != cudaSuccess) {                                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(need_error));             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

namespace {

/* --- inputs, reference, comparison --- */

__device__ uint64_t mix(uint64_t x) {
    x ^= x >> 31, x *= 0x7fb5d329728ea185ull, x ^= x >> 27, x *= 0x81dadef4bc2dd44dull;
    return x ^ x >> 33;
}
__device__ float normal(uint64_t seed, uint64_t i) {
    const uint64_t r = mix(mix(seed * 0x9e3779b97f4a7c15ull + 1) + i * 0xd1342543de82ef95ull);
    const float u = ((uint32_t)(r >> 32) + 0.5f) * 0x1p-32f, v = (uint32_t)r * 0x1p-32f;
    return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

__device__ void put(void *p, int type, int64_t i, float v) {
    if (type == GEMM_FP32) ((float *)p)[i] = v;
    if (type == GEMM_FP16) ((__half *)p)[i] = __float2half_rn(v);
    if (type == GEMM_BF16) ((__nv_bfloat16 *)p)[i] = __float2bfloat16_rn(v);
    if (type == GEMM_FP8E4M3) ((__nv_fp8_e4m3 *)p)[i] = __nv_fp8_e4m3(v);
    if (type == GEMM_INT8) ((int8_t *)p)[i] = (int8_t)fminf(fmaxf(rintf(32 * v), -128), 127);
}
__device__ double get(const void *p, int type, int64_t i) {
    if (type == GEMM_FP32) return ((const float *)p)[i];
    if (type == GEMM_FP16) return __half2float(((const __half *)p)[i]);
    if (type == GEMM_BF16) return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
    if (type == GEMM_FP8E4M3) return (float)((const __nv_fp8_e4m3 *)p)[i];
    if (type == GEMM_INT8) return ((const int8_t *)p)[i];
    if (type == GEMM_INT32) return ((const int32_t *)p)[i];
    const int nibble = ((const uint8_t *)p)[i / 2] >> (i & 1) * 4 & 15;
    return nibble >= 8 ? nibble - 16 : nibble;
}

__global__ void fill_kernel(void *p, int type, int64_t count, uint64_t seed, bool scales) {
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
        if (type == GEMM_INT4)
            ((uint8_t *)p)[i] = (uint8_t)mix(seed + 77 * i);
        else
            put(p, type, i, scales ? fabsf(normal(seed, i)) / 64 + 1.0f / 64 : normal(seed, i));
    }
}

__global__ void reference_kernel(gemm_shape s, const void *a, const void *b, const void *scales, const void *c,
                                 double *worst) {
    const int64_t count = s.batch * s.m * s.n;
    double mine = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t n = i % s.n, m = i / s.n % s.m, z = i / s.n / s.m;
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < s.k; k++) {
            const double x = get(a, s.type_a, z * s.stride_a + (s.trans_a ? k * s.lda + m : m * s.lda + k));
            double y = get(b, s.type_b, z * s.stride_b + (s.trans_b ? n * s.ldb + k : k * s.ldb + n));
            if (scales) y *= get(scales, GEMM_FP16, n * (s.k / s.block_size) + k / s.block_size);
            sum += x * y, squares += x * y * x * y;
        }
        const double got = get(c, s.type_c, z * s.stride_c + m * s.ldc + n);
        double error = fabs(got - sum) / (fabs(sum) + sqrt(squares) + 1e-300);
        if (!isfinite(error)) error = 1e30;
        mine = fmax(mine, error);
    }
    atomicMax((unsigned long long *)worst, __double_as_longlong(mine)); /* not negative: bits are in order */
}

__global__ void sum_kernel(const uint8_t *p, int64_t bytes, unsigned long long *sum) {
    unsigned long long mine = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < bytes; i += (int64_t)gridDim.x * blockDim.x)
        mine += mix(p[i] + 256 * (uint64_t)i);
    atomicAdd(sum, mine);
}

size_t bytes_of(int type, int64_t elements) {
    switch (type) {
    case GEMM_FP32:
    case GEMM_INT32: return (size_t)elements * 4;
    case GEMM_FP16:
    case GEMM_BF16: return (size_t)elements * 2;
    case GEMM_INT4: return (size_t)elements / 2;
    default: return (size_t)elements;
    }
}

enum { CANARY = 256 };
struct buffer {
    uint8_t *base = nullptr;
    size_t bytes = 0;
    void *data() const { return base + CANARY; }
    void make(size_t n) {
        bytes = n;
        NEED(cudaMalloc(&base, n + 2 * CANARY));
        NEED(cudaMemset(base, 0xA5, n + 2 * CANARY));
    }
    bool canaries() const {
        uint8_t seen[2 * CANARY];
        NEED(cudaMemcpy(seen, base, CANARY, cudaMemcpyDeviceToHost));
        NEED(cudaMemcpy(seen + CANARY, base + CANARY + bytes, CANARY, cudaMemcpyDeviceToHost));
        return std::all_of(seen, seen + 2 * CANARY, [](uint8_t v) { return v == 0xA5; });
    }
    unsigned long long sum() const {
        unsigned long long *sum, value;
        NEED(cudaMalloc(&sum, 8));
        NEED(cudaMemset(sum, 0, 8));
        sum_kernel<<<264, 256>>>(base, (int64_t)(bytes + 2 * CANARY), sum);
        NEED(cudaMemcpy(&value, sum, 8, cudaMemcpyDeviceToHost));
        NEED(cudaFree(sum));
        return value;
    }
    void drop() { NEED(cudaFree(base)); }
};

void fill(void *p, int type, int64_t elements, uint64_t seed, bool scales = false) {
    const int64_t count = type == GEMM_INT4 ? elements / 2 : elements;
    fill_kernel<<<1024, 256>>>(p, type, count, seed, scales);
    NEED(cudaGetLastError());
}

gemm_shape shape_of(int type, int64_t m, int64_t n, int64_t k, const char *layout, int64_t batch = 1) {
    gemm_shape s = {};
    s.m = m, s.n = n, s.k = k, s.batch = batch;
    s.trans_a = layout[0] == 't', s.trans_b = layout[1] == 't';
    s.lda = s.trans_a ? m : k, s.ldb = s.trans_b ? k : n, s.ldc = n;
    s.stride_a = m * k, s.stride_b = n * k, s.stride_c = m * n;
    s.type_a = type == GEMM_INT4 ? GEMM_FP16 : type, s.type_b = type;
    s.type_c = type == GEMM_INT4 ? GEMM_FP16 : type == GEMM_FP8E4M3 ? GEMM_BF16 : type == GEMM_INT8 ? GEMM_INT32 : type;
    return s;
}

double tolerance_of(const gemm_shape &s) {
    if (s.type_c == GEMM_INT32) return 0;
    if (s.type_c == GEMM_FP32) return 2e-6 * std::sqrt((double)s.k) + 1e-6;
    if (s.type_c == GEMM_BF16) return 4.5e-3;
    return s.type_b == GEMM_INT4 ? 1.2e-3 : 7e-4;
}

int passed, failed;

using run_fn = std::function<int(const void *a, const void *b, const void *scales, void *c)>;

void check(const std::string &name, const gemm_shape &s, const run_fn &run) {
    static uint64_t seed = 1;
    buffer a, b, c, scales;
    double *worst, error;
    a.make(bytes_of(s.type_a, s.m * s.k * s.batch));
    b.make(bytes_of(s.type_b, s.n * s.k * s.batch));
    c.make(bytes_of(s.type_c, s.m * s.n * s.batch));
    scales.make(s.block_size ? (size_t)(s.n * (s.k / s.block_size)) * 2 : 16);
    fill(a.data(), s.type_a, s.m * s.k * s.batch, seed++);
    fill(b.data(), s.type_b, s.n * s.k * s.batch, seed++);
    if (s.block_size) fill(scales.data(), GEMM_FP16, s.n * (s.k / s.block_size), seed++, true);
    const auto sum_a = a.sum(), sum_b = b.sum(), sum_s = scales.sum();
    std::string why;
    for (int round = 0; round < 2 && why.empty(); round++) { /* twice: nothing may be left behind */
        NEED(cudaMemset(c.data(), 0xFF, c.bytes));
        const int answer = run(a.data(), b.data(), s.block_size ? scales.data() : nullptr, c.data());
        NEED(cudaMalloc(&worst, 8));
        NEED(cudaMemset(worst, 0, 8));
        if (answer) {
            why = gemm_kernel_error(answer);
        } else {
            NEED(cudaDeviceSynchronize());
            reference_kernel<<<2048, 128>>>(s, a.data(), b.data(), s.block_size ? scales.data() : nullptr, c.data(),
                                            worst);
            NEED(cudaMemcpy(&error, worst, 8, cudaMemcpyDeviceToHost));
            char text[64];
            snprintf(text, sizeof text, "error %.3g, allowed %.3g", error, tolerance_of(s));
            if (!(error <= tolerance_of(s)))
                why = text;
            else if (!c.canaries())
                why = "wrote outside its output";
            else if (a.sum() != sum_a || b.sum() != sum_b || scales.sum() != sum_s)
                why = "changed its inputs";
        }
        NEED(cudaFree(worst));
    }
    if (why.empty()) {
        passed++;
    } else {
        failed++;
        printf("FAILED %s %lldx%lldx%lld batch %lld %c%c types %d %d: %s\n", name.c_str(), (long long)s.m,
               (long long)s.n, (long long)s.k, (long long)s.batch, s.trans_a ? 't' : 'n', s.trans_b ? 't' : 'n',
               s.type_a, s.type_b, why.c_str());
    }
    a.drop(), b.drop(), c.drop(), scales.drop();
}

struct limits {
    int units = 0, shared = 0, major = 0;
    limits() {
        NEED(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, 0));
        NEED(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
        NEED(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    }
};

const limits &device() {
    static const limits known;
    return known;
}

std::vector<gemm_stream_config> stream_configs(const gemm_shape &s, int most_split = 4) {
    std::vector<gemm_stream_config> out;
    for (int packed = 0; packed < 2; packed++)
        for (int split = 1; split <= (device().major < 9 ? 1 : most_split); split *= 2)
            for (int tile : {1, 2, 3})
                for (int depth : {2, 3, 4, 6}) {
                    const gemm_stream_config config = {packed, 0, split, tile, depth};
                    if (gemm_stream_fits(&s, &config, device().units, (size_t)device().shared)) out.push_back(config);
                }
    return out;
}

std::string words(const gemm_stream_config &c) {
    char text[80];
    snprintf(text, sizeof text, "%s split=%d tile=%d depth=%d", c.packed ? "packed" : "as_is ", c.split, c.tile,
             c.depth);
    return text;
}

void check_stream(const gemm_shape &s, bool few) {
    int k = 0;
    for (const auto &config : stream_configs(s)) {
        if (few && k++ % 5 != 0) continue;
        check("stream " + words(config), s, [&](const void *a, const void *b, const void *, void *c) {
            gemm_stream_plan plan;
            void *packed = nullptr;
            int e = gemm_stream_prepare(&s, &config, &plan);
            if (e) return e;
            if (plan.pack_bytes) {
                NEED(cudaMalloc(&packed, plan.pack_bytes));
                e = gemm_stream_pack(&plan, b, nullptr, nullptr, packed, nullptr);
            }
            if (!e) e = gemm_stream_launch(&plan, a, b, nullptr, packed, c, nullptr);
            NEED(cudaDeviceSynchronize());
            NEED(cudaFree(packed));
            return e;
        });
    }
}

void check_plain(const gemm_shape &s) {
    check("naive", s, [&](const void *a, const void *b, const void *scales, void *c) {
        return gemm_naive_launch(&s, a, b, scales, nullptr, c, nullptr);
    });
    if (s.type_a != s.type_c || s.type_b != s.type_c) return;
    check("tiled", s,
          [&](const void *a, const void *b, const void *, void *c) { return gemm_tiled_launch(&s, a, b, c, nullptr); });
}

void check_int4(const gemm_shape &s) {
    check("naive", s, [&](const void *a, const void *b, const void *scales, void *c) {
        return gemm_naive_launch(&s, a, b, scales, nullptr, c, nullptr);
    });
    for (int tiled = 0; tiled < 2; tiled++) {
        const gemm_int4_config config = {tiled, 0};
        if (!gemm_int4_fits(&s, &config, (size_t)device().shared)) continue;
        check(tiled ? "int4 tiled" : "int4 streaming", s,
              [&](const void *a, const void *b, const void *scales, void *c) {
                  gemm_int4_plan plan;
                  const int e = gemm_int4_prepare(&s, &config, &plan);
                  return e ? e : gemm_int4_launch(&plan, a, b, scales, nullptr, c, nullptr);
              });
    }
}

void check_refusals() {
    const auto refuses = [](const char *what, bool refused) {
        if (refused)
            passed++;
        else
            failed++, printf("FAILED takes %s\n", what);
    };
    const gemm_stream_config config = {0, 0, 1, 2, 3}, odd = {0, 0, 3, 2, 3}, packed = {1, 0, 1, 2, 3};
    const auto takes = [](const gemm_shape &s, const gemm_stream_config &c) {
        gemm_stream_plan plan;
        const bool fits = gemm_stream_fits(&s, &c, device().units, (size_t)device().shared);
        const bool prepares = gemm_stream_prepare(&s, &c, &plan) == 0;
        return fits || prepares;
    };
    refuses("17 rows", !takes(shape_of(GEMM_FP16, 17, 64, 64, "nt"), config));
    refuses("fp32", !takes(shape_of(GEMM_FP32, 1, 64, 64, "nt"), config));
    refuses("k of 60", !takes(shape_of(GEMM_FP16, 1, 64, 60, "nt"), config));
    refuses("n of 60, not packed", !takes(shape_of(GEMM_FP16, 1, 60, 64, "nn"), config));
    refuses("a stored [k,m]", !takes(shape_of(GEMM_FP16, 8, 64, 64, "tn"), config));
    refuses("a batch", !takes(shape_of(GEMM_FP16, 1, 64, 64, "nt", 2), config));
    refuses("a split of 3", !takes(shape_of(GEMM_FP16, 1, 64, 64, "nt"), odd));
    refuses("rows packed again", !takes(shape_of(GEMM_FP16, 1, 64, 64, "nt"), packed));
    gemm_shape mixed = shape_of(GEMM_FP16, 4, 64, 64, "nt");
    mixed.type_c = GEMM_FP32;
    refuses("mixed types (tiled)", gemm_tiled_launch(&mixed, nullptr, nullptr, nullptr, nullptr) != 0);
    refuses("mixed types (naive)", gemm_naive_launch(&mixed, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) != 0);
}

gemm_shape int4_shape(int64_t m, int64_t n, int64_t k, int64_t block) {
    gemm_shape s = shape_of(GEMM_INT4, m, n, k, "nt");
    s.block_size = block;
    return s;
}

/* One of each kernel, for racecheck, which takes a thousand times as long. */
void check_tiny() {
    for (int type : {GEMM_FP32, GEMM_FP16})
        check_plain(shape_of(type, 70, 66, 40, "nt")), check_plain(shape_of(type, 70, 66, 40, "tn"));
    check_int4(int4_shape(2, 300, 512, 128));
    check_int4(int4_shape(7, 300, 512, 32));
    check_int4(int4_shape(16, 300, 512, 64));
    for (const char *layout : {"nt", "nn"})
        for (int m : {2, 16})
            check_stream(shape_of(GEMM_FP16, m, 200, 1000, layout), true),
                check_stream(shape_of(GEMM_BF16, m, 2400, 200, layout), true);
}

/* Many shapes; `small`: few and small ones, for the sanitizers. */
void check_all(bool small) {
    check_refusals();
    for (int type : {GEMM_FP32, GEMM_FP16, GEMM_BF16, GEMM_FP8E4M3, GEMM_INT8})
        for (const char *layout : {"nn", "nt", "tn", "tt"}) {
            check_plain(shape_of(type, 1, 1, 1, layout));
            check_plain(shape_of(type, 37, 45, 51, layout, 3));
            check_plain(shape_of(type, 130, 136, 72, layout));
            gemm_shape s = shape_of(type, 64, 64, 64, layout, 2); /* one B for the whole batch */
            s.stride_b = 0;
            check_plain(s);
            if (!small)
                check_plain(shape_of(type, 513, 511, 300, layout, 2)),
                    check_plain(shape_of(type, 512, 768, 640, layout));
        }
    for (int block : {32, 64, 128})
        for (int m : {1, 4, 8, 9, 16, 17, 40, 150}) {
            check_int4(int4_shape(m, 70, 256, block));
            if (!small) check_int4(int4_shape(m, 1000, 2560, block)), check_int4(int4_shape(m, 4096, 4096, block));
        }
    check_int4(int4_shape(5, 33, 96, 32)); /* k only for tiles */
    if (!small) check_int4(int4_shape(16, 4096, 11008, 128)), check_int4(int4_shape(3, 11008, 4096, 128));
    for (int type : {GEMM_FP16, GEMM_BF16})
        for (const char *layout : {"nt", "nn"})
            for (int m : {1, 3, 8, 9, 16}) {
                check_stream(shape_of(type, m, 64, 64, layout), small);
                check_stream(shape_of(type, m, 200, 1000, layout), small);
                if (!small && layout[1] == 'n')
                    check_stream(shape_of(type, m, 101, 136, layout), false); /* packed alone */
                if (small) continue;
                check_stream(shape_of(type, m, 1000, 520, layout), true);
                check_stream(shape_of(type, m, 4096, 4096, layout), m != 16 && m != 1);
                check_stream(shape_of(type, m, 11008, 4096, layout), true);
                check_stream(shape_of(type, m, 4096, 11008, layout), true);
                check_stream(shape_of(type, m, 8, 8, layout), true);
                check_stream(shape_of(type, m, 32000, 512, layout), true);
            }
}

/* --- time --- */

template <int UNROLL> __global__ void read_kernel(const uint4 *p, int64_t pieces, uint32_t *out) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    uint32_t x = 0;
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    for (; i + (UNROLL - 1) * step < pieces; i += UNROLL * step) {
        uint4 v[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                         : "l"(p + i + k * step));
#pragma unroll
        for (int k = 0; k < UNROLL; k++) x ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    for (; i < pieces; i += step) x ^= p[i].x ^ p[i].y ^ p[i].z ^ p[i].w;
    if (x == 0x12345678) *out = x;
}

struct stopwatch {
    cudaStream_t stream;
    cudaEvent_t before, after;
    stopwatch() {
        NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        NEED(cudaEventCreate(&before));
        NEED(cudaEventCreate(&after));
    }
    /* Median microseconds of a launch, out of a graph of `launches`. */
    double of(int launches, const std::function<int(int, cudaStream_t)> &launch) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        int e = 0;
        for (int k = 0; k < launches && !e; k++) e = launch(k, stream);
        NEED(cudaStreamEndCapture(stream, &graph));
        NEED(e);
        NEED(cudaGraphInstantiate(&exec, graph, 0));
        std::vector<float> times;
        for (int k = 0; k < 14; k++) {
            float ms;
            NEED(cudaEventRecord(before, stream));
            NEED(cudaGraphLaunch(exec, stream));
            NEED(cudaEventRecord(after, stream));
            NEED(cudaEventSynchronize(after));
            NEED(cudaEventElapsedTime(&ms, before, after));
            if (k >= 3) times.push_back(ms);
        }
        NEED(cudaGraphExecDestroy(exec));
        NEED(cudaGraphDestroy(graph));
        std::sort(times.begin(), times.end());
        return times[times.size() / 2] * 1e3 / launches;
    }
};

/* cuBLASLt's default for C = A * B^T, row-major fp16, or nothing. */
struct cublaslt {
    void *library = dlopen("libcublasLt.so.13", RTLD_NOW);
    template <typename F> F find(const char *name) { return (F)dlsym(library, name); }
    double time(stopwatch &watch, const gemm_shape &s, const void *a, const std::function<const void *(int)> &weight,
                void *c, void *workspace, size_t workspace_bytes, int launches) {
        if (!library) return NAN;
#define LT(name) auto name##_ = find<decltype(&name)>(#name)
        LT(cublasLtCreate);
        LT(cublasLtMatmulDescCreate);
        LT(cublasLtMatmulDescSetAttribute);
        LT(cublasLtMatrixLayoutCreate);
        LT(cublasLtMatmulPreferenceCreate);
        LT(cublasLtMatmulPreferenceSetAttribute);
        LT(cublasLtMatmulAlgoGetHeuristic);
        LT(cublasLtMatmul);
        cublasLtHandle_t handle;
        cublasLtMatmulDesc_t desc;
        cublasLtMatrixLayout_t lw, la, lc;
        cublasLtMatmulPreference_t preference;
        cublasLtMatmulHeuristicResult_t found;
        int count = 0;
        const cublasOperation_t op = s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
        cublasLtCreate_(&handle);
        cublasLtMatmulDescCreate_(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute_(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op);
        cublasLtMatrixLayoutCreate_(&lw, CUDA_R_16F, s.trans_b ? s.k : s.n, s.trans_b ? s.n : s.k, s.ldb);
        cublasLtMatrixLayoutCreate_(&la, CUDA_R_16F, s.k, s.m, s.lda);
        cublasLtMatrixLayoutCreate_(&lc, CUDA_R_16F, s.n, s.m, s.ldc);
        cublasLtMatmulPreferenceCreate_(&preference);
        cublasLtMatmulPreferenceSetAttribute_(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                              sizeof workspace_bytes);
        cublasLtMatmulAlgoGetHeuristic_(handle, desc, lw, la, lc, lc, preference, 1, &found, &count);
        if (count < 1) return NAN;
        const float one = 1, zero = 0;
        return watch.of(launches, [&](int k, cudaStream_t stream) {
            return cublasLtMatmul_(handle, desc, &one, weight(k), lw, a, la, &zero, c, lc, c, lc, &found.algo,
                                   workspace, workspace_bytes, stream)
                       ? (int)cudaErrorUnknown
                       : 0;
        });
    }
};

struct pool {
    uint8_t *weights, *small;
    size_t bytes = (size_t)1400 << 20;
    pool() {
        NEED(cudaMalloc(&weights, bytes));
        NEED(cudaMalloc(&small, (size_t)256 << 20));
        fill(weights, GEMM_FP16, (int64_t)bytes / 2, 5);
        fill(small, GEMM_FP16, (int64_t)64 << 20, 6);
        NEED(cudaDeviceSynchronize());
    }
    void *a() const { return small; }
    void *c() const { return small + (64 << 20); }
    void *workspace() const { return small + (128 << 20); }
    void *scales(size_t at) const { return small + (192 << 20) + at; }
    void drop() {
        NEED(cudaFree(weights));
        NEED(cudaFree(small));
    }
};

double time_read(stopwatch &watch, const pool &memory, size_t bytes, int copies, int launches) {
    double best = INFINITY;
    for (int blocks : {1, 2, 3, 4, 8})
        for (int threads : {256, 512, 1024})
            for (int unroll : {4, 8}) {
                if (blocks * threads > 2048) continue;
                const double us = watch.of(launches, [&](int k, cudaStream_t stream) {
                    const uint4 *p = (const uint4 *)(memory.weights + (size_t)(k % copies) * bytes);
                    if (unroll == 4)
                        read_kernel<4><<<132 * blocks, threads, 0, stream>>>(p, bytes / 16, (uint32_t *)memory.c());
                    else
                        read_kernel<8><<<132 * blocks, threads, 0, stream>>>(p, bytes / 16, (uint32_t *)memory.c());
                    return (int)cudaGetLastError();
                });
                best = std::min(best, us);
            }
    return best;
}

std::string stream_line(const gemm_shape &s, const char *layout, size_t bytes, double read, double best,
                        const std::string &variant, double lt) {
    char line[240];
    snprintf(line, sizeof line, "%5d x %-5d  %4d  %s  %7.2f %6.2f | %8.2f %6.2f  %6.3f  %-38s | %6.2f\n", (int)s.n,
             (int)s.k, (int)s.m, layout, read, bytes / read * 1e-6, best, bytes / best * 1e-6, read / best,
             variant.c_str(), lt);
    return line;
}

void time_stream(bool all) {
    stopwatch watch;
    pool memory;
    cublaslt library;
    std::string table;
    const int sizes[][2] = {{4096, 4096}, {11008, 4096}, {4096, 11008}, {512, 8192}};
    watch.of(2000, [&](int, cudaStream_t stream) {
        read_kernel<8><<<264, 512, 0, stream>>>((const uint4 *)memory.weights, 1 << 22, (uint32_t *)memory.c());
        return (int)cudaGetLastError();
    });
    const double empty = watch.of(64, [&](int, cudaStream_t stream) {
        read_kernel<4><<<132, 32, 0, stream>>>((const uint4 *)memory.weights, 0, (uint32_t *)memory.c());
        return (int)cudaGetLastError();
    });
    cudaDeviceProp properties;
    NEED(cudaGetDeviceProperties(&properties, 0));
    table += std::string(properties.name) +
             ", medians of launches in a graph, weights rotating through more than the cache\n";
    table += "empty launch: " + std::to_string(empty) + " us\n";
    table +=
        " n x k           m  w   read us  TB/s | stream us  TB/s  of read  variant                              |  "
        "lt us\n";
    for (const auto &size : sizes) {
        const size_t bytes = (size_t)size[0] * size[1] * 2;
        const int copies = (int)(((size_t)600 << 20) / bytes) + 1, launches = (64 + copies - 1) / copies * copies;
        const double read = time_read(watch, memory, bytes, copies, launches);
        for (int m : {1, 4, 16})
            for (const char *layout : {"nt", "nn"}) {
                const gemm_shape s = shape_of(GEMM_FP16, m, size[0], size[1], layout);
                const auto weight = [&](int k) {
                    return (const void *)(memory.weights + (size_t)(k % copies) * bytes);
                };
                double best[2] = {INFINITY, INFINITY};
                gemm_stream_config which[2] = {};
                for (const auto &config : stream_configs(s, s.n < 16 * device().units ? 4 : 1)) {
                    gemm_stream_plan plan;
                    if (gemm_stream_prepare(&s, &config, &plan)) continue;
                    const double us = watch.of(launches, [&](int k, cudaStream_t stream) {
                        return gemm_stream_launch(&plan, memory.a(), weight(k), nullptr, nullptr, memory.c(), stream);
                    });
                    if (all)
                        printf("%5d x %-5d %2d %s %-38s %4d blocks %6zu B %8.2f us %6.3f\n", size[0], size[1], m,
                               layout, words(config).c_str(), plan.blocks, plan.shared_bytes, us, read / us);
                    if (us < best[config.packed]) best[config.packed] = us, which[config.packed] = config;
                }
                const double lt =
                    library.time(watch, s, memory.a(), weight, memory.c(), memory.workspace(), 32 << 20, launches);
                for (int packed = 0; packed < 2; packed++)
                    if (std::isfinite(best[packed]))
                        table += stream_line(s, layout, bytes, read, best[packed], words(which[packed]), lt);
            }
    }
    printf("%s", table.c_str());
    memory.drop();
}

void time_int4() {
    stopwatch watch;
    pool memory;
    const int sizes[][2] = {{4096, 4096}, {11008, 4096}, {4096, 11008}};
    printf("int4, blocks of 128\n n x k           m   read us  TB/s | streaming us  of read |   tiled us  TFLOP/s\n");
    for (const auto &size : sizes) {
        const size_t bytes = (size_t)size[0] * size[1] / 2, side = (size_t)size[0] * (size[1] / 128) * 2;
        const int copies = (int)(((size_t)600 << 20) / bytes) + 1, launches = copies;
        const double read = time_read(watch, memory, bytes, copies, launches);
        for (int m : {1, 4, 16, 32, 2048}) {
            const gemm_shape s = int4_shape(m, size[0], size[1], 128);
            double us[2] = {NAN, NAN};
            for (int tiled = 0; tiled < 2; tiled++) {
                const gemm_int4_config config = {tiled, 0};
                gemm_int4_plan plan;
                if ((m > 64 && !tiled) || gemm_int4_prepare(&s, &config, &plan)) continue;
                us[tiled] = watch.of(m > 64 ? 4 : launches, [&](int k, cudaStream_t stream) {
                    return gemm_int4_launch(&plan, memory.a(), memory.weights + (size_t)(k % copies) * bytes,
                                            memory.scales((size_t)k % 16 * side), nullptr, memory.c(), stream);
                });
            }
            printf("%5d x %-5d  %4d  %7.2f %6.2f | %9.2f      %6.3f  | %9.2f    %6.1f\n", size[0], size[1], m, read,
                   bytes / read * 1e-6, us[0], read / us[0], us[1], 2e-6 * m * size[0] * size[1] / us[1]);
        }
    }
    for (int type : {GEMM_FP32, GEMM_FP16}) {
        const gemm_shape s = shape_of(type, 4096, 4096, 4096, "nt");
        const double us = watch.of(4, [&](int k, cudaStream_t stream) {
            return gemm_tiled_launch(&s, memory.weights, memory.weights + ((size_t)k << 26),
                                     memory.weights + ((size_t)1 << 30), stream);
        });
        printf("tiled 4096 x 4096 x 4096 %s: %.1f TFLOP/s\n", type == GEMM_FP32 ? "fp32" : "fp16",
               2e-6 * 4096 * 4096 * 4096.0 / us);
    }
    memory.drop();
}
} // namespace

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "", more = argc > 2 ? argv[2] : "";
    if (what == "check") {
        if (more == "tiny")
            check_tiny();
        else
            check_all(more == "small");
        printf("%d passed, %d failed\n", passed, failed);
        return failed != 0;
    }
    if (what == "time") {
        time_stream(more == "all");
        time_int4();
        return 0;
    }
    fprintf(stderr, "usage: gemm_bench check [small|tiny] | time [all]\n");
    return 2;
}
