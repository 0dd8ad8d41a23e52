/* The reference of determinants and inverses in fp64: a thread for each matrix, by elimination beside the unit matrix with
 * the largest number of a row's rest as pivot, so with columns swapped, where candidates swap rows. */
#include "kernels/reference/whole_matrix.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

constexpr int most = 64;

/* a: the matrix; y: becomes its inverse. Returns the determinant. */
__device__ double invert(double *a, double *y, int n) {
    double determinant = 1;
    int column[most]; /* that row k's pivot stands in */
    for (int k = 0; k < n; k++) {
        column[k] = -1;
        for (int c = 0; c < n; c++) {
            bool taken = false;
            for (int i = 0; i < k; i++) taken = taken || column[i] == c;
            if (!taken && (column[k] < 0 || fabs(a[k * n + c]) > fabs(a[k * n + column[k]]))) column[k] = c;
        }
        bool odd = false;
        for (int i = 0; i < k; i++) odd = odd != (column[i] > column[k]);
        const double pivot = a[k * n + column[k]];
        determinant *= odd ? -pivot : pivot;
        for (int c = 0; c < n; c++) a[k * n + c] /= pivot, y[k * n + c] /= pivot;
        for (int r = 0; r < n; r++) {
            const double factor = a[r * n + column[k]];
            for (int c = 0; r != k && c < n; c++)
                a[r * n + c] -= factor * a[k * n + c], y[r * n + c] -= factor * y[k * n + c];
        }
    }
    for (int k = 0; k < n; k++) { /* row k is that of unknown column[k] */
        while (column[k] != k) {
            const int to = column[k];
            for (int c = 0; c < n; c++) {
                const double x = y[k * n + c];
                y[k * n + c] = y[to * n + c], y[to * n + c] = x;
            }
            column[k] = column[to], column[to] = to;
        }
    }
    return determinant;
}

__global__ void matrices(const whole_matrix_problem p, double *want, float *spread) {
    const int n = (int)p.n, each = n * n;
    double a[most * most], y[most * most];
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < p.count; k += (int64_t)gridDim.x * blockDim.x) {
        for (int i = 0; i < each; i++) a[i] = values_at(p.x, p.type, k * each + i), y[i] = i / n == i % n;
        const double determinant = invert(a, y, n);
        double terms = 0;
        for (int i = 0; i < each; i++) a[i] = fabs(values_at(p.x, p.type, k * each + i));
        for (int i = 0; i < each; i++) terms += a[i] * fabs(y[i % n * n + i / n]);
        if (!p.inverts) {
            want[k] = determinant, spread[k] = (float)(terms * fabs(determinant));
            continue;
        }
        for (int i = 0; i < n; i++) {
            double row[most];
            for (int c = 0; c < n; c++) {
                row[c] = 0;
                for (int m = 0; m < n; m++) row[c] += fabs(y[i * n + m]) * a[m * n + c];
            }
            for (int j = 0; j < n; j++) {
                double all = 0;
                for (int c = 0; c < n; c++) all += row[c] * fabs(y[c * n + j]);
                want[k * each + i * n + j] = y[i * n + j], spread[k * each + i * n + j] = (float)all;
            }
        }
    }
}

} // namespace

cudaError_t whole_matrix(const whole_matrix_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t needed = (p->count + 31) / 32;
    matrices<<<(unsigned)(needed < 1024 ? needed : 1024), 32, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
