/* Determinants and inverses of small matrices by elimination with pivots: a warp for each matrix, which lies in shared
 * memory. A lane has every 32nd column. */
#include "kernels/rows/matrix_kernels.h"

#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_warps = 8;
constexpr size_t shared_bytes = 48 * 1024;

/* The row of the largest number in column k, from row k on; of equal ones the first. */
template <typename T> __device__ int pivot_of(const T *a, int n, int k, int lane) {
    T best = -1;
    int row = k;
    for (int r = k + lane; r < n; r += 32) {
        const T size = fabs(a[r * n + k]);
        if (size > best) best = size, row = r;
    }
    for (int step = 16; step > 0; step /= 2) {
        const T other = __shfl_xor_sync(0xffffffffu, best, step);
        const int at = __shfl_xor_sync(0xffffffffu, row, step);
        if (other > best || (other == best && at < row)) best = other, row = at;
    }
    return row;
}

template <typename T> __device__ void swap_rows(T *a, int n, int k, int with, int lane) {
    for (int c = lane; c < n && k != with; c += 32) {
        const T x = a[k * n + c];
        a[k * n + c] = a[with * n + c], a[with * n + c] = x;
    }
    __syncwarp();
}

template <typename T> __device__ T determinant(T *a, int n, int lane) {
    T product = 1;
    for (int k = 0; k < n; k++) {
        const int from = pivot_of(a, n, k, lane);
        swap_rows(a, n, k, from, lane);
        const T pivot = a[k * n + k];
        product *= from == k ? pivot : -pivot;
        for (int r = k + 1; r < n && pivot != 0; r++) {
            const T factor = a[r * n + k] / pivot;
            for (int c = k + 1 + lane; c < n; c += 32) a[r * n + c] -= factor * a[k * n + c];
        }
        __syncwarp();
    }
    return product;
}

/* In place: column k of the unit matrix stands where column k has become one. A row's factor is read by all lanes before
 * the one that has its column writes there. */
template <typename T> __device__ void invert(T *a, int *from, int n, int lane) {
    for (int k = 0; k < n; k++) {
        const int row = pivot_of(a, n, k, lane);
        if (lane == 0) from[k] = row;
        swap_rows(a, n, k, row, lane);
        const T scale = 1 / a[k * n + k];
        __syncwarp();
        for (int c = lane; c < n; c += 32) a[k * n + c] = c == k ? scale : a[k * n + c] * scale;
        __syncwarp();
        for (int r = 0; r < n; r++) {
            const T factor = a[r * n + k];
            __syncwarp();
            for (int c = lane; c < n && r != k; c += 32)
                a[r * n + c] = (c == k ? (T)0 : a[r * n + c]) - factor * a[k * n + c];
        }
        __syncwarp();
    }
    for (int k = n - 1; k >= 0; k--)
        for (int r = lane; r < n && from[k] != k; r += 32) {
            const T x = a[r * n + k];
            a[r * n + k] = a[r * n + from[k]], a[r * n + from[k]] = x;
        }
    __syncwarp();
}

template <typename T> __global__ void __launch_bounds__(32 * most_warps) matrices(const matrix_pass p, const T *x, T *y) {
    extern __shared__ double room[]; /* of the widest type */
    __shared__ int from[most_warps][MATRIX_PASS_MOST];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, each = p.n * p.n;
    T *const a = (T *)room + warp * each;
    for (int64_t k = (int64_t)blockIdx.x * warps + warp; k < p.count; k += (int64_t)gridDim.x * warps) {
        for (int i = lane; i < each; i += 32) a[i] = x[k * each + i];
        __syncwarp();
        if (!p.inverts) {
            const T found = determinant(a, p.n, lane);
            if (lane == 0) y[k] = found;
        } else {
            invert(a, from[warp], p.n, lane);
            for (int i = lane; i < each; i += 32) y[k * each + i] = a[i];
        }
        __syncwarp();
    }
}

} // namespace

int matrix_pass_fits(const matrix_pass *p) {
    return (p->type == PASS_FP32 || p->type == PASS_FP64) && p->n > 0 && p->n <= MATRIX_PASS_MOST && p->count > 0;
}

int matrix_pass_launch(const matrix_pass *p, const void *x, void *y, void *stream) {
    if (!matrix_pass_fits(p)) return cudaErrorInvalidValue;
    matrix_pass pass_ = *p;
    const size_t bytes = (size_t)(p->n * p->n * pass::size_of(p->type));
    const size_t room = (shared_bytes - sizeof(int) * most_warps * MATRIX_PASS_MOST) / bytes;
    const int warps = room < most_warps ? (int)room : most_warps;
    const pass_config plain = {};
    void *args[] = {&pass_, &x, &y};
    return cudaLaunchKernel(p->type == PASS_FP32 ? (const void *)matrices<float> : (const void *)matrices<double>,
                            dim3(pass::blocks_of(plain, (p->count + warps - 1) / warps)), dim3((unsigned)(32 * warps)),
                            args, (size_t)warps * bytes, (cudaStream_t)stream);
}
