/* Moves that compute a source for each element: gathers with an index of each element's own along a dimension,
 * triangles, of which the other half becomes 0, marks at places that indices name, and pads with copies. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/place_kernels.h"

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

struct onehot_job {
    onehot_pass o;
    const void *indices;
    void *y;
    int64_t count;
    unsigned long long one; /* as y's type has it */
    pass::radix places;     /* inner, depth, outer */
};

template <int SIZE> __global__ void __launch_bounds__(most_threads) onehot(const onehot_job p) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.count; at += step) {
        int64_t outer = at;
        const int64_t inner = pass::radix_next(p.places, 0, outer), k = pass::radix_next(p.places, 1, outer);
        const int64_t from = outer * p.o.inner + inner;
        const int64_t index = p.o.index_type == PASS_INT64 ? (int64_t)((const long long *)p.indices)[from]
                                                           : (int64_t)((const int *)p.indices)[from];
        ((word *)p.y)[at] = index == k ? (word)p.one : (word)0;
    }
}

struct pad_job {
    pad_pass s;
    const void *x;
    void *y;
    int64_t count;
    pass::radix places;
};

/* Where along a dimension a place comes from that may lie beyond its length. */
__device__ __forceinline__ int64_t inside(int how, int64_t place, int64_t length) {
    if (place >= 0 && place < length) return place;
    if (how == PAD_EDGE) return place < 0 ? 0 : length - 1;
    const int64_t period = how == PAD_WRAP ? length : length > 1 ? 2 * (length - 1) : 1;
    const int64_t rest = place % period, at = rest < 0 ? rest + period : rest;
    return at < length ? at : period - at;
}

template <int SIZE> __global__ void __launch_bounds__(most_threads) pad(const pad_job p) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.count; at += step) {
        int64_t rest = at, from = 0, stride = 1;
        for (int d = 0; d < p.s.rank; d++) {
            const int64_t place = pass::radix_next(p.places, d, rest) - p.s.before[d];
            from += inside(p.s.how, place, p.s.lengths[d]) * stride;
            stride *= p.s.lengths[d];
        }
        ((word *)p.y)[at] = ((const word *)p.x)[from];
    }
}

#define KERNELS(size)                                                                                                  \
    { size, (const void *)elements<size>, (const void *)triangle<size>, (const void *)onehot<size>, (const void *)pad<size> }
const struct {
    int size;
    const void *elements, *triangle, *onehot, *pad;
} kernels[] = {KERNELS(1), KERNELS(2), KERNELS(4), KERNELS(8)};
#undef KERNELS

/* 1 in the bits of a type. */
const struct {
    int type;
    unsigned long long one;
} ones[] = {{PASS_FP32, 0x3f800000ull}, {PASS_FP16, 0x3c00ull}, {PASS_BF16, 0x3f80ull},
            {PASS_FP64, 0x3ff0000000000000ull}};

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

int onehot_pass_fits(const onehot_pass *o) {
    return pass::size_of(o->type) > 0 && o->outer > 0 && o->depth > 0 && o->inner > 0 &&
           (o->index_type == PASS_INT64 || o->index_type == PASS_INT32) && config_fits(o->config);
}

int onehot_pass_launch(const onehot_pass *o, const void *indices, void *y, void *stream) {
    if (!onehot_pass_fits(o)) return cudaErrorInvalidValue;
    const int64_t dims[] = {o->inner, o->depth, o->outer};
    onehot_job j = {};
    j.o = *o, j.indices = indices, j.y = y, j.one = 1;
    j.count = o->outer * o->depth * o->inner;
    for (size_t k = 0; k < sizeof ones / sizeof ones[0]; k++)
        if (ones[k].type == o->type) j.one = ones[k].one;
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return launch(kernels[kernel_of(pass::size_of(o->type))].onehot, o->config, j.count, args, stream);
}

int pad_pass_fits(const pad_pass *p) {
    if (kernel_of(p->size) < 0 || p->rank < 1 || p->rank > PASS_RANK) return 0;
    for (int d = 0; d < p->rank; d++)
        if (p->dims[d] < 1 || p->lengths[d] < 1) return 0;
    return p->how >= PAD_REFLECT && p->how <= PAD_WRAP && config_fits(p->config);
}

int pad_pass_launch(const pad_pass *p, const void *x, void *y, void *stream) {
    if (!pad_pass_fits(p)) return cudaErrorInvalidValue;
    pad_job j = {};
    j.s = *p, j.x = x, j.y = y, j.count = 1;
    for (int d = 0; d < p->rank; d++) j.count *= p->dims[d];
    j.places = pass::radix_of(p->rank, p->dims);
    void *args[] = {&j};
    return launch(kernels[kernel_of(p->size)].pad, p->config, j.count, args, stream);
}
