/* Moves that compute a source for each element: gathers with an index of each element's own along a dimension, and
 * triangles, of which the other half becomes 0. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512;

struct job {
    move_elements_pass e;
    const void *from, *indices;
    void *to;
    pass::radix places;
};

struct triangle_job {
    move_triangle_pass t;
    const void *from;
    void *to;
    pass::radix places; /* column, row, matrix */
};

__device__ __forceinline__ int64_t index_of(const job &p, int64_t at) {
    return p.e.index_type == PASS_INT64 ? (int64_t)((const long long *)p.indices)[at]
                                        : (int64_t)((const int *)p.indices)[at];
}

template <int SIZE> __global__ void __launch_bounds__(most_threads) elements(const job p) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.e.count; at += step) {
        int64_t rest = at, from = index_of(p, at) * p.e.strides[p.e.axis];
        for (int d = 0; d < p.e.rank; d++) {
            const int64_t place = pass::radix_next(p.places, d, rest);
            if (d != p.e.axis) from += place * p.e.strides[d];
        }
        ((word *)p.to)[at] = ((const word *)p.from)[from];
    }
}

template <int SIZE> __global__ void __launch_bounds__(most_threads) triangle(const triangle_job p) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.t.count; at += step) {
        int64_t rest = at;
        const int64_t col = pass::radix_next(p.places, 0, rest), row = pass::radix_next(p.places, 1, rest);
        const bool keeps = p.t.upper ? col - row >= p.t.diagonal : col - row <= p.t.diagonal;
        ((word *)p.to)[at] = keeps ? ((const word *)p.from)[at] : (word)0;
    }
}

const struct {
    int size;
    const void *elements, *triangle;
} kernels[] = {{1, (const void *)elements<1>, (const void *)triangle<1>},
               {2, (const void *)elements<2>, (const void *)triangle<2>},
               {4, (const void *)elements<4>, (const void *)triangle<4>},
               {8, (const void *)elements<8>, (const void *)triangle<8>}};

/* -1: there is none. */
int kernel_of(int size) {
    for (int k = 0; k < 4; k++)
        if (kernels[k].size == size) return k;
    return -1;
}

bool config_fits(const pass_config &c) {
    return c.threads >= 0 && c.threads <= most_threads && c.threads % 32 == 0 && c.resident >= 0;
}

int launch(const void *kernel, const pass_config &c, int64_t count, void *args[], void *stream) {
    const int threads = pass::threads_of(c, 256);
    return cudaLaunchKernel(kernel, dim3(pass::blocks_of(c, (count + threads - 1) / threads)), dim3((unsigned)threads),
                            args, 0, (cudaStream_t)stream);
}

} // namespace

int move_elements_fits(const move_elements_pass *e) {
    if (kernel_of(e->size) < 0 || e->rank < 1 || e->rank > PASS_RANK || e->axis < 0 || e->axis >= e->rank) return 0;
    return e->count > 0 && (e->index_type == PASS_INT64 || e->index_type == PASS_INT32) && config_fits(e->config);
}

int move_elements_launch(const move_elements_pass *e, const void *from, const void *indices, void *to, void *stream) {
    if (!move_elements_fits(e)) return cudaErrorInvalidValue;
    job j = {};
    j.e = *e, j.from = from, j.indices = indices, j.to = to;
    j.places = pass::radix_of(e->rank, e->dims);
    void *args[] = {&j};
    return launch(kernels[kernel_of(e->size)].elements, e->config, e->count, args, stream);
}

int move_triangle_fits(const move_triangle_pass *t) {
    return kernel_of(t->size) >= 0 && t->rows > 0 && t->cols > 0 && t->count > 0 &&
           t->count % (t->rows * t->cols) == 0 && config_fits(t->config);
}

int move_triangle_launch(const move_triangle_pass *t, const void *from, void *to, void *stream) {
    if (!move_triangle_fits(t)) return cudaErrorInvalidValue;
    triangle_job j = {};
    const int64_t dims[] = {t->cols, t->rows, t->count / t->rows / t->cols};
    j.t = *t, j.from = from, j.to = to;
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return launch(kernels[kernel_of(t->size)].triangle, t->config, t->count, args, stream);
}
