/* The reference of determinants and inverses in fp64: a block for each matrix, a thread for each of its rows, by
 * elimination in place with columns swapped, where candidates swap rows. */
#include "kernels/reference/whole_matrix.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

constexpr int most = 64;

/* a becomes its inverse; returns the determinant. `from`: the column that came to each place. */
__device__ double invert(double *a, int *from, int n) {
    const int t = (int)threadIdx.x;
    double determinant = 1;
    for (int k = 0; k < n; k++) {
        if (t == 0) {
            from[k] = k;
            for (int c = k + 1; c < n; c++)
                if (fabs(a[k * n + c]) > fabs(a[k * n + from[k]])) from[k] = c;
        }
        __syncthreads();
        if (from[k] != k && t < n) {
            const double x = a[t * n + k];
            a[t * n + k] = a[t * n + from[k]], a[t * n + from[k]] = x;
        }
        __syncthreads();
        const double pivot = a[k * n + k];
        determinant *= from[k] == k ? pivot : -pivot;
        __syncthreads();
        if (t < n) a[k * n + t] = t == k ? 1 / pivot : a[k * n + t] / pivot;
        __syncthreads();
        const double factor = t < n && t != k ? a[t * n + k] : 0;
        for (int c = 0; t < n && t != k && c < n; c++)
            a[t * n + c] = (c == k ? 0 : a[t * n + c]) - factor * a[k * n + c];
        __syncthreads();
    }
    for (int k = n - 1; k >= 0 && t < n; k--) { /* a swapped column is a swapped row of the inverse */
        const double x = a[k * n + t];
        a[k * n + t] = a[from[k] * n + t], a[from[k] * n + t] = x;
    }
    __syncthreads();
    return determinant;
}

__global__ void __launch_bounds__(most) matrices(const whole_matrix_problem p, double *want, float *spread) {
    __shared__ double a[most * most], terms[most];
    __shared__ int from[most];
    const int n = (int)p.n, each = n * n, t = (int)threadIdx.x;
    for (int64_t k = blockIdx.x; k < p.count; k += gridDim.x) {
        for (int i = t; i < each; i += most) a[i] = values_at(p.x, p.type, k * each + i);
        __syncthreads();
        const double determinant = invert(a, from, n);
        double row[most], sum = 0;
        for (int c = 0; t < n && c < n; c++) { /* magnitudes of y x, and of its diagonal's terms */
            row[c] = 0;
            for (int m = 0; m < n; m++) row[c] += fabs(a[t * n + m] * values_at(p.x, p.type, k * each + m * n + c));
            if (c == t) sum = row[c];
        }
        terms[t] = sum;
        __syncthreads();
        double largest = 0; /* of y x y in this row: the matrix's own is the spread of all its numbers */
        for (int j = 0; p.inverts && t < n && j < n; j++) {
            double all = 0;
            for (int c = 0; c < n; c++) all += row[c] * fabs(a[c * n + j]);
            want[k * each + t * n + j] = a[t * n + j], largest = fmax(largest, all);
        }
        if (!p.inverts && t == 0) {
            for (int r = 1; r < n; r++) sum += terms[r];
            want[k] = determinant, spread[k] = (float)(sum * fabs(determinant));
        }
        __syncthreads();
        terms[t] = largest;
        __syncthreads();
        for (int r = 0; r < n; r++) largest = fmax(largest, terms[r]);
        for (int j = 0; p.inverts && t < n && j < n; j++) spread[k * each + t * n + j] = (float)largest;
        __syncthreads();
    }
}

} // namespace

cudaError_t whole_matrix(const whole_matrix_problem *p, double *want, float *spread, cudaStream_t stream) {
    matrices<<<(unsigned)(p->count < 65535 ? p->count : 65535), most, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
