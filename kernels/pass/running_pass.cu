/* Running sums and products: a thread goes along a line where many lie beside each other; else a block takes a line,
 * four neighbours a thread, and adds up across its threads. */
#include "kernels/pass/line_kernels.h"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int each = 4, most_threads = 512, column_threads = 128;

struct job {
    running_pass r;
    const void *x;
    void *y;
    int64_t lines;
};

/* How a type is computed in. */
struct of_fp32 {
    typedef float value;
    static __device__ float load(const void *x, int64_t at) { return ((const float *)x)[at]; }
    static __device__ void store(void *y, int64_t at, float v) { ((float *)y)[at] = v; }
};
struct of_fp64 {
    typedef double value;
    static __device__ double load(const void *x, int64_t at) { return ((const double *)x)[at]; }
    static __device__ void store(void *y, int64_t at, double v) { ((double *)y)[at] = v; }
};
struct of_fp16 {
    typedef float value;
    static __device__ float load(const void *x, int64_t at) { return __half2float(((const __half *)x)[at]); }
    static __device__ void store(void *y, int64_t at, float v) { ((__half *)y)[at] = __float2half_rn(v); }
};
struct of_bf16 {
    typedef float value;
    static __device__ float load(const void *x, int64_t at) {
        return __uint_as_float((unsigned)((const unsigned short *)x)[at] << 16);
    }
    static __device__ void store(void *y, int64_t at, float v) { ((__nv_bfloat16 *)y)[at] = __float2bfloat16_rn(v); }
};
struct of_int32 {
    typedef unsigned value;
    static __device__ unsigned load(const void *x, int64_t at) { return ((const unsigned *)x)[at]; }
    static __device__ void store(void *y, int64_t at, unsigned v) { ((unsigned *)y)[at] = v; }
};
struct of_int64 {
    typedef unsigned long long value;
    static __device__ value load(const void *x, int64_t at) { return ((const value *)x)[at]; }
    static __device__ void store(void *y, int64_t at, value v) { ((value *)y)[at] = v; }
};

template <bool PRODUCTS, class V> __device__ __forceinline__ V join(V a, V b) { return PRODUCTS ? a * b : a + b; }

/* Place k along a line, from where it begins. */
__device__ __forceinline__ int64_t along(const running_pass &r, int64_t k) {
    return (r.backward ? r.length - 1 - k : k) * r.inner;
}

template <class T, bool PRODUCTS> __global__ void __launch_bounds__(column_threads) columns(const job p) {
    const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= p.lines) return;
    const int64_t base = line / p.r.inner * p.r.length * p.r.inner + line % p.r.inner;
    typename T::value all = PRODUCTS ? 1 : 0;
#pragma unroll 4
    for (int64_t k = 0; k < p.r.length; k++) {
        const int64_t at = base + along(p.r, k);
        const typename T::value before = all;
        all = join<PRODUCTS>(all, T::load(p.x, at));
        T::store(p.y, at, p.r.exclusive ? before : all);
    }
}

/* What the threads before this one have together; *all: what all of them have. */
template <bool PRODUCTS, class V> __device__ V ahead_of(V own, V *shared, V *all) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    const V none = PRODUCTS ? 1 : 0;
    V sum = own;
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) {
        const V left = __shfl_up_sync(~0u, sum, reach);
        if (lane >= reach) sum = join<PRODUCTS>(left, sum);
    }
    if (lane == 31) shared[warp] = sum;
    V before = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0) before = none;
    __syncthreads();
    V warps_before = none, total = none;
    for (int w = 0; w < warps; w++) {
        if (w == warp) warps_before = total;
        total = join<PRODUCTS>(total, shared[w]);
    }
    __syncthreads();
    *all = total;
    return join<PRODUCTS>(warps_before, before);
}

template <class T, bool PRODUCTS> __global__ void __launch_bounds__(most_threads) rows(const job p) {
    typedef typename T::value value;
    __shared__ value shared[most_threads / 32];
    const value none = PRODUCTS ? 1 : 0;
    for (int64_t line = blockIdx.x; line < p.lines; line += gridDim.x) {
        const int64_t base = line / p.r.inner * p.r.length * p.r.inner + line % p.r.inner;
        value carried = none;
        for (int64_t first = 0; first < p.r.length; first += (int64_t)each * blockDim.x) {
            const int64_t from = first + (int64_t)threadIdx.x * each;
            value x[each], own = none, all;
#pragma unroll
            for (int k = 0; k < each; k++) {
                x[k] = from + k < p.r.length ? T::load(p.x, base + along(p.r, from + k)) : none;
                own = join<PRODUCTS>(own, x[k]);
            }
            value sum = join<PRODUCTS>(carried, ahead_of<PRODUCTS>(own, shared, &all));
            carried = join<PRODUCTS>(carried, all);
#pragma unroll
            for (int k = 0; k < each; k++) {
                const value before = sum;
                sum = join<PRODUCTS>(sum, x[k]);
                if (from + k < p.r.length) T::store(p.y, base + along(p.r, from + k), p.r.exclusive ? before : sum);
            }
        }
    }
}

#define KERNELS(type, of)                                                                                              \
    {                                                                                                                  \
        type, {(const void *)columns<of, false>, (const void *)columns<of, true>},                                     \
            {(const void *)rows<of, false>, (const void *)rows<of, true>}                                              \
    }
const struct {
    int type;
    const void *columns[2], *rows[2];
} kernels[] = {
    KERNELS(PASS_FP32, of_fp32),   KERNELS(PASS_FP64, of_fp64),    KERNELS(PASS_FP16, of_fp16),
    KERNELS(PASS_BF16, of_bf16),   KERNELS(PASS_INT32, of_int32),  KERNELS(PASS_UINT32, of_int32),
    KERNELS(PASS_INT64, of_int64), KERNELS(PASS_UINT64, of_int64),
};
#undef KERNELS
constexpr int kernel_count = sizeof kernels / sizeof kernels[0];

int row_of(int type) {
    int row = 0;
    while (row < kernel_count && kernels[row].type != type) row++;
    return row;
}

/* Neighbouring lines are read together where there are enough of them. */
bool by_columns(const running_pass *r) { return r->length == 1 || (r->inner >= 32 && r->outer * r->inner >= 4096); }

} // namespace

int running_pass_fits(const running_pass *r) {
    return row_of(r->type) < kernel_count && r->outer > 0 && r->length > 0 && r->inner > 0;
}

const char *running_pass_mode(const running_pass *r) { return by_columns(r) ? "columns" : "rows"; }

int running_pass_launch(const running_pass *r, const void *x, void *y, void *stream) {
    if (!running_pass_fits(r)) return cudaErrorInvalidValue;
    const int products = r->products != 0, row = row_of(r->type);
    job j = {*r, x, y, r->outer * r->inner};
    void *args[] = {&j};
    if (by_columns(r)) {
        const int64_t blocks = (j.lines + column_threads - 1) / column_threads;
        if (blocks > 0x7fffffff) return cudaErrorInvalidValue;
        return cudaLaunchKernel(kernels[row].columns[products], dim3((unsigned)blocks), dim3(column_threads), args, 0,
                                (cudaStream_t)stream);
    }
    int threads = 32;
    while (threads < most_threads && (int64_t)threads * each < r->length) threads *= 2;
    const unsigned blocks = (unsigned)(j.lines < 0x7fffffff ? j.lines : 0x7fffffff);
    return cudaLaunchKernel(kernels[row].rows[products], dim3(blocks), dim3((unsigned)threads), args, 0,
                            (cudaStream_t)stream);
}
