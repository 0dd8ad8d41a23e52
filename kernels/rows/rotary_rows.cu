/* Rotary embeddings: a thread turns the same pairs of some heads, so that their angles are read once for all of these.
 * 16 bytes at a time where rows allow it, else pair by pair. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512;

struct job {
    int type, interleaved;
    int64_t tables, planes, steps, dim, half, angles, turns, items,
        groups; /* planes: of a table; angles: of a step; turns: items of a row that are pairs; groups: of planes */
    const void *x, *cosine, *sine;
    void *y;
    pass::radix places; /* item of a row, step, group, table */
};

/* Of V pairs: of the numbers that come first in them, and of those that come second. EACH: these have their own. */
template <int V, bool EACH> struct angles {
    float first[V], second[EACH ? V : 1];
    __device__ __forceinline__ float of_second(int i) const { return EACH ? second[EACH ? i : 0] : first[i]; }
};

/* At `at`, and the second ones `apart` from there. */
template <int SIZE, int V, bool EACH>
__device__ __forceinline__ angles<V, EACH> read_halves(int type, const void *table, int64_t at, int64_t apart) {
    angles<V, EACH> a;
    pass::widen(type, pass::load<SIZE, V>(table, at), a.first);
    if constexpr (EACH) pass::widen(type, pass::load<SIZE, V>(table, at + apart), a.second);
    return a;
}

template <int SIZE, int V, bool EACH>
__device__ __forceinline__ angles<V, EACH> read_neighbours(int type, const void *table, int64_t at) {
    angles<V, EACH> a;
    if constexpr (EACH) {
        float all[2 * V];
        pass::widen(type, pass::load<SIZE, 2 * V>(table, at), all);
#pragma unroll
        for (int i = 0; i < V; i++) a.first[i] = all[2 * i], a.second[i] = all[2 * i + 1];
    } else
        pass::widen(type, pass::load<SIZE, V>(table, at), a.first);
    return a;
}

/* first and second become the rotated pair. */
template <int V, bool EACH>
__device__ __forceinline__ void turn(const angles<V, EACH> &c, const angles<V, EACH> &s, float *first, float *second) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        const float a = first[i], b = second[i];
        first[i] = a * c.first[i] - b * s.first[i];
        second[i] = b * c.of_second(i) + a * s.of_second(i);
    }
}

/* Halves: V elements at `at`, and those that belong to them. */
template <int SIZE, int V, bool EACH>
__device__ __forceinline__ void turn_halves(int type, const angles<V, EACH> &c, const angles<V, EACH> &s,
                                            pass::bits<SIZE, V> &low, pass::bits<SIZE, V> &high) {
    float first[V], second[V];
    pass::widen(type, low, first);
    pass::widen(type, high, second);
    turn(c, s, first, second);
    pass::narrow(type, first, low);
    pass::narrow(type, second, high);
}

/* Neighbours: 2 V elements. */
template <int SIZE, int V, bool EACH>
__device__ __forceinline__ void turn_neighbours(int type, const angles<V, EACH> &c, const angles<V, EACH> &s,
                                                pass::bits<SIZE, 2 * V> &x) {
    float all[2 * V], first[V], second[V];
    pass::widen(type, x, all);
#pragma unroll
    for (int i = 0; i < V; i++) first[i] = all[2 * i], second[i] = all[2 * i + 1];
    turn(c, s, first, second);
#pragma unroll
    for (int i = 0; i < V; i++) all[2 * i] = first[i], all[2 * i + 1] = second[i];
    pass::narrow(type, all, x);
}

struct item {
    int64_t column, step, plane, end, angles; /* planes of the group, as far as there are; where its angles begin */
};

__device__ __forceinline__ item find(const job &p, int64_t n, int planes) {
    item i;
    i.column = pass::radix_next(p.places, 0, n);
    i.step = pass::radix_next(p.places, 1, n);
    const int64_t group = pass::radix_next(p.places, 2, n);
    i.plane = n * p.planes + group * planes;
    i.end = (n + 1) * p.planes;
    i.angles = (n * p.steps + i.step) * p.angles;
    return i;
}

/* What is not turned, W elements an item. */
template <int SIZE, int W, int G> __device__ __forceinline__ void copy(const job &p, const item &i) {
    const int64_t from = 2 * p.half + (i.column - p.turns) * W;
#pragma unroll
    for (int g = 0; g < G; g++)
        if (i.plane + g < i.end) {
            const int64_t at = ((i.plane + g) * p.steps + i.step) * p.dim + from;
            pass::store<SIZE, W>(p.y, at, pass::load<SIZE, W>(p.x, at));
        }
}

/* V pairs as halves lie: pieces of V elements, `apart` elements from each other. */
template <int SIZE, int V, int G, bool EACH>
__device__ __forceinline__ void halves(const job &p, const item &i, bool single) {
    const int64_t column = single && p.interleaved ? 2 * i.column : i.column * V;
    const int64_t apart = single && p.interleaved ? 1 : p.half;
    const int64_t angle = i.angles + (EACH ? column : i.column * V);
    pass::bits<SIZE, V> low[G], high[G];
#pragma unroll
    for (int g = 0; g < G; g++)
        if (i.plane + g < i.end) {
            const int64_t at = ((i.plane + g) * p.steps + i.step) * p.dim + column;
            low[g] = pass::load<SIZE, V>(p.x, at);
            high[g] = pass::load<SIZE, V>(p.x, at + apart);
        }
    const angles<V, EACH> c = read_halves<SIZE, V, EACH>(p.type, p.cosine, angle, apart);
    const angles<V, EACH> s = read_halves<SIZE, V, EACH>(p.type, p.sine, angle, apart);
#pragma unroll
    for (int g = 0; g < G; g++)
        if (i.plane + g < i.end) {
            const int64_t at = ((i.plane + g) * p.steps + i.step) * p.dim + column;
            turn_halves<SIZE, V, EACH>(p.type, c, s, low[g], high[g]);
            pass::store<SIZE, V>(p.y, at, low[g]);
            pass::store<SIZE, V>(p.y, at + apart, high[g]);
        }
}

template <int SIZE, int V, int G, bool EACH> __device__ __forceinline__ void neighbours(const job &p, const item &i) {
    const int64_t angle = i.angles + i.column * (EACH ? 2 * V : V);
    pass::bits<SIZE, 2 * V> x[G];
#pragma unroll
    for (int g = 0; g < G; g++)
        if (i.plane + g < i.end)
            x[g] = pass::load<SIZE, 2 * V>(p.x, ((i.plane + g) * p.steps + i.step) * p.dim + i.column * 2 * V);
    const angles<V, EACH> c = read_neighbours<SIZE, V, EACH>(p.type, p.cosine, angle);
    const angles<V, EACH> s = read_neighbours<SIZE, V, EACH>(p.type, p.sine, angle);
#pragma unroll
    for (int g = 0; g < G; g++)
        if (i.plane + g < i.end) {
            turn_neighbours<SIZE, V, EACH>(p.type, c, s, x[g]);
            pass::store<SIZE, 2 * V>(p.y, ((i.plane + g) * p.steps + i.step) * p.dim + i.column * 2 * V, x[g]);
        }
}

enum { by_halves, by_neighbours, by_pairs };

template <int SIZE, int G, int MODE, bool EACH> __global__ void __launch_bounds__(most_threads) rotate(const job p) {
    constexpr int vec = MODE == by_pairs ? 1 : 16 / SIZE;
    const int64_t all = p.items * p.steps * p.groups * p.tables;
    for (int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; n < all; n += (int64_t)gridDim.x * blockDim.x) {
        const item i = find(p, n, G);
        if (i.column >= p.turns)
            copy<SIZE, vec, G>(p, i);
        else if constexpr (MODE == by_neighbours)
            neighbours<SIZE, vec / 2, G, EACH>(p, i);
        else
            halves<SIZE, vec, G, EACH>(p, i, MODE == by_pairs);
    }
}

#define MODE(size, planes, mode)                                                                                       \
    { (const void *)rotate<size, planes, mode, false>, (const void *)rotate<size, planes, mode, true> }
#define MODES(size, planes)                                                                                            \
    { MODE(size, planes, by_halves), MODE(size, planes, by_neighbours), MODE(size, planes, by_pairs) }
const void *const kernels[2][3][3][2] = {{MODES(2, 1), MODES(2, 2), MODES(2, 4)},
                                         {MODES(4, 1), MODES(4, 2), MODES(4, 4)}};

int mode_of(const rotary_rows *r, const void *x, const void *cosine, const void *sine, const void *y) {
    const int vec = 16 / pass::size_of(r->type);
    const int whole = r->dim % vec == 0 && (r->interleaved ? r->rotated % vec == 0 : r->rotated / 2 % vec == 0);
    if (!whole || !pass::aligned(x, 16) || !pass::aligned(y, 16) || !pass::aligned(cosine, 16) ||
        !pass::aligned(sine, 16))
        return by_pairs;
    return r->interleaved ? by_neighbours : by_halves;
}

} // namespace

int rotary_rows_fits(const rotary_rows *r) {
    const int threads = r->config.threads, planes = r->planes_each;
    if (r->type != PASS_FP32 && r->type != PASS_FP16 && r->type != PASS_BF16) return 0;
    if (r->tables < 1 || r->planes < 1 || r->steps < 1 || r->dim < 1 || r->rotated < 2 || r->rotated % 2 ||
        r->rotated > r->dim)
        return 0;
    if (r->angles != r->rotated && r->angles != r->rotated / 2) return 0;
    return threads >= 0 && threads <= most_threads && threads % 32 == 0 && r->config.resident >= 0 &&
           (planes == 1 || planes == 2 || planes == 4);
}

const char *rotary_rows_mode(const rotary_rows *r) {
    static const char *const names[] = {"halves", "neighbours", "pairs"};
    return names[mode_of(r, NULL, NULL, NULL, NULL)];
}

int rotary_rows_launch(const rotary_rows *r, const void *x, const void *cosine, const void *sine, void *y,
                       void *stream) {
    if (!rotary_rows_fits(r)) return cudaErrorInvalidValue;
    const int mode = mode_of(r, x, cosine, sine, y), size = pass::size_of(r->type);
    const int threads = pass::threads_of(r->config, 256);
    const int64_t vec = mode == by_pairs ? 1 : 16 / size, pairs = mode == by_neighbours ? vec / 2 : vec;
    job j = {};
    j.type = r->type, j.interleaved = r->interleaved;
    j.tables = r->tables, j.planes = r->planes, j.steps = r->steps, j.dim = r->dim, j.half = r->rotated / 2,
    j.angles = r->angles;
    j.turns = j.half / pairs, j.items = j.turns + (r->dim - r->rotated) / vec;
    j.groups = (r->planes + r->planes_each - 1) / r->planes_each;
    j.x = x, j.cosine = cosine, j.sine = sine, j.y = y;
    const int64_t dims[] = {j.items, j.steps, j.groups, j.tables};
    j.places = pass::radix_of(4, dims);
    void *args[] = {&j};
    const int64_t tiles = (j.items * j.steps * j.groups * j.tables + threads - 1) / threads;
    return cudaLaunchKernel(kernels[size == 4][r->planes_each / 2][mode][r->angles > j.half],
                            dim3(pass::blocks_of(r->config, tiles)), dim3((unsigned)threads), args, 0,
                            (cudaStream_t)stream);
}
