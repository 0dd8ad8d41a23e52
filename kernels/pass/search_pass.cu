/* The best of each line: its elements become keys, of which a smaller one is better and no two are alike, as each has
 * its place inside. A block keeps the best so far in shared memory, collects what is better than the last of them, and
 * sorts whenever there is no more room. Where a line keeps more than fit there, all its keys are sorted in the
 * workspace. */
#include "kernels/pass/line_kernels.h"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, shared_bytes = 32 << 10;

/* 32 bits of value before 32 of place; what has more bits keeps both apart. */
typedef unsigned long long narrow_key;
struct wide_key {
    unsigned long long value;
    unsigned at;
};

__device__ __forceinline__ bool better(narrow_key a, narrow_key b) { return a < b; }
__device__ __forceinline__ bool better(const wide_key &a, const wide_key &b) {
    return a.value != b.value ? a.value < b.value : a.at < b.at;
}
__device__ __forceinline__ unsigned place_of(narrow_key k) { return (unsigned)k; }
__device__ __forceinline__ unsigned place_of(const wide_key &k) { return k.at; }

struct job {
    search_pass s;
    const void *x;
    void *y;
    long long *places;
    void *keys; /* in the workspace */
    int64_t lines;
    int64_t room; /* keys of a line; a power of two */
};

/* --- keys --- */

/* -0 is 0. */
__device__ __forceinline__ unsigned ordered(float x) {
    const unsigned bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ unsigned value32(int type, const void *x, int64_t at) {
    switch (type) {
    case PASS_FP32: return ordered(((const float *)x)[at]);
    case PASS_FP16: return ordered(__half2float(((const __half *)x)[at]));
    case PASS_BF16: return ordered(__uint_as_float((unsigned)((const unsigned short *)x)[at] << 16));
    case PASS_INT32: return ((const unsigned *)x)[at] ^ 0x80000000u;
    default: return ((const unsigned *)x)[at]; /* uint32 */
    }
}

__device__ __forceinline__ unsigned long long value64(int type, const void *x, int64_t at) {
    const unsigned long long sign = 1ull << 63;
    if (type == PASS_FP64) {
        const unsigned long long bits = (unsigned long long)__double_as_longlong(((const double *)x)[at] + 0.0);
        return bits & sign ? ~bits : bits | sign;
    }
    const unsigned long long bits = ((const unsigned long long *)x)[at];
    return type == PASS_INT64 ? bits ^ sign : bits;
}

__device__ __forceinline__ void key_of(const job &p, int64_t base, int64_t k, narrow_key *to) {
    const unsigned value = value32(p.s.type, p.x, base + k * p.s.inner);
    *to = (narrow_key)(p.s.largest ? ~value : value) << 32 | (unsigned)k;
}
__device__ __forceinline__ void key_of(const job &p, int64_t base, int64_t k, wide_key *to) {
    const unsigned long long value = value64(p.s.type, p.x, base + k * p.s.inner);
    to->value = p.s.largest ? ~value : value, to->at = (unsigned)k;
}

/* Behind all others. */
__device__ __forceinline__ void key_of_none(narrow_key *to) { *to = ~0ull; }
__device__ __forceinline__ void key_of_none(wide_key *to) { to->value = ~0ull, to->at = ~0u; }

__device__ __forceinline__ int64_t base_of(const job &p, int64_t line) {
    return line / p.s.inner * p.s.length * p.s.inner + line % p.s.inner;
}

template <class K> __device__ void put(const job &p, int64_t line, int64_t k, const K &key) {
    const int64_t from = base_of(p, line) + (int64_t)place_of(key) * p.s.inner;
    const int64_t to = (line / p.s.inner * p.s.kept + k) * p.s.inner + line % p.s.inner;
    switch (p.s.type) {
    case PASS_FP16:
    case PASS_BF16: ((unsigned short *)p.y)[to] = ((const unsigned short *)p.x)[from]; break;
    case PASS_FP32:
    case PASS_INT32:
    case PASS_UINT32: ((unsigned *)p.y)[to] = ((const unsigned *)p.x)[from]; break;
    default: ((unsigned long long *)p.y)[to] = ((const unsigned long long *)p.x)[from]; break;
    }
    p.places[to] = (long long)place_of(key);
}

/* --- in shared memory --- */

/* Bitonic; the number of keys is a power of two. All threads of the block call it, and meet at its end. */
template <class K> __device__ void sort(K *keys, int count) {
    for (int run = 2; run <= count; run *= 2)
        for (int reach = run / 2; reach > 0; reach /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const int low = 2 * i - (i & (reach - 1)), high = low + reach;
                const bool up = (low & run) == 0;
                const K a = keys[low], b = keys[high];
                if (better(b, a) == up) keys[low] = b, keys[high] = a;
            }
        }
    __syncthreads();
}

template <class K> __global__ void __launch_bounds__(most_threads) in_block(const job p) {
    extern __shared__ unsigned long long memory[];
    __shared__ int found;
    K *const keys = (K *)memory;
    const int room = (int)p.room, kept = (int)p.s.kept, threads = (int)blockDim.x, own = (int)threadIdx.x;
    for (int64_t line = blockIdx.x; line < p.lines; line += gridDim.x) {
        const int64_t base = base_of(p, line);
        if (p.s.length <= room) {
            for (int k = own; k < room; k += threads) {
                if (k < p.s.length)
                    key_of(p, base, k, &keys[k]);
                else
                    key_of_none(&keys[k]);
            }
            sort(keys, room);
        } else {
            for (int k = own; k < kept; k += threads) key_of_none(&keys[k]);
            int held = 0; /* behind the best so far; the same in all threads */
            if (own == 0) found = 0;
            __syncthreads();
            for (int64_t first = 0; first < p.s.length; first += threads) {
                const K worst = keys[kept - 1];
                if (first + own < p.s.length) {
                    K key;
                    key_of(p, base, first + own, &key);
                    if (better(key, worst)) keys[kept + atomicAdd(&found, 1)] = key;
                }
                __syncthreads();
                held = found;
                __syncthreads(); /* all have read it before the next one adds to it */
                const bool last = first + threads >= p.s.length;
                if (!last && kept + held + threads <= room) continue; /* the next ones still go in */
                for (int k = kept + held + own; k < room; k += threads) key_of_none(&keys[k]);
                if (held > 0) sort(keys, room);
                if (own == 0) found = 0;
                __syncthreads();
            }
        }
        for (int k = own; k < kept; k += threads) put(p, line, k, keys[k]);
        __syncthreads();
    }
}

/* --- in the workspace --- */

template <class K> __global__ void __launch_bounds__(most_threads) make_keys(const job p) {
    const int64_t all = p.lines * p.room, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < all; n += step) {
        const int64_t line = n / p.room, k = n % p.room;
        if (k < p.s.length)
            key_of(p, base_of(p, line), k, &((K *)p.keys)[n]);
        else
            key_of_none(&((K *)p.keys)[n]);
    }
}

/* Lines are powers of two long, so that no pair is of two of them. */
template <class K> __global__ void __launch_bounds__(most_threads) sort_step(const job p, int64_t run, int64_t reach) {
    K *const keys = (K *)p.keys;
    const int64_t pairs = p.lines * p.room / 2, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += step) {
        const int64_t low = 2 * i - (i & (reach - 1)), high = low + reach;
        const bool up = ((low & (p.room - 1)) & run) == 0;
        const K a = keys[low], b = keys[high];
        if (better(b, a) == up) keys[low] = b, keys[high] = a;
    }
}

template <class K> __global__ void __launch_bounds__(most_threads) put_all(const job p) {
    const int64_t all = p.lines * p.s.kept, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < all; n += step)
        put(p, n / p.s.kept, n % p.s.kept, ((const K *)p.keys)[n / p.s.kept * p.room + n % p.s.kept]);
}

template <class K> int launch_sort(job *j, cudaStream_t stream) {
    const pass_config plain = {};
    const auto blocks = [&plain](int64_t count) { return dim3(pass::blocks_of(plain, (count + 255) / 256)); };
    int64_t run = 2, reach;
    void *args[] = {j, &run, &reach};
    int error = cudaLaunchKernel((const void *)make_keys<K>, blocks(j->lines * j->room), dim3(256), args, 0, stream);
    for (; run <= j->room && !error; run *= 2)
        for (reach = run / 2; reach > 0 && !error; reach /= 2)
            error = cudaLaunchKernel((const void *)sort_step<K>, blocks(j->lines * j->room / 2), dim3(256), args, 0,
                                     stream);
    if (error) return error;
    return cudaLaunchKernel((const void *)put_all<K>, blocks(j->lines * j->s.kept), dim3(256), args, 0, stream);
}

/* --- which of both --- */

bool is_wide(int type) { return type == PASS_FP64 || type == PASS_INT64 || type == PASS_UINT64; }
int key_bytes(int type) { return is_wide(type) ? (int)sizeof(wide_key) : (int)sizeof(narrow_key); }

int64_t power_of_two(int64_t least) {
    int64_t power = 2;
    while (power < least) power *= 2;
    return power;
}

/* Keys that a block has room for: a line, or as many as fit. */
int64_t room_of(const search_pass *s) {
    const int64_t most = shared_bytes / key_bytes(s->type);
    return s->length < most ? power_of_two(s->length) : most;
}

bool fits_block(const search_pass *s) { return s->length <= room_of(s) || 2 * s->kept <= room_of(s); }

} // namespace

int search_pass_fits(const search_pass *s) {
    static const int types[] = {PASS_FP32,  PASS_FP16,   PASS_BF16,  PASS_FP64,
                                PASS_INT32, PASS_UINT32, PASS_INT64, PASS_UINT64};
    for (int type : types)
        if (type == s->type)
            return s->outer > 0 && s->inner > 0 && s->kept > 0 && s->kept <= s->length && s->length <= 1 << 30;
    return 0;
}

size_t search_pass_workspace(const search_pass *s) {
    if (fits_block(s)) return 0;
    return (size_t)(s->outer * s->inner) * (size_t)power_of_two(s->length) * (size_t)key_bytes(s->type);
}

const char *search_pass_mode(const search_pass *s) { return fits_block(s) ? "block" : "sort"; }

int search_pass_launch(const search_pass *s, const void *x, void *y, void *places, void *workspace, void *stream) {
    if (!search_pass_fits(s)) return cudaErrorInvalidValue;
    cudaStream_t const on = (cudaStream_t)stream;
    job j = {};
    j.s = *s, j.x = x, j.y = y, j.places = (long long *)places, j.keys = workspace;
    j.lines = s->outer * s->inner;
    if (!fits_block(s)) {
        j.room = power_of_two(s->length);
        return is_wide(s->type) ? launch_sort<wide_key>(&j, on) : launch_sort<narrow_key>(&j, on);
    }
    j.room = room_of(s);
    int64_t threads = j.room / 2 < most_threads ? j.room / 2 : most_threads;
    if (threads < 32) threads = 32;
    const unsigned blocks = (unsigned)(j.lines < 0x7fffffff ? j.lines : 0x7fffffff);
    void *args[] = {&j};
    return cudaLaunchKernel(is_wide(s->type) ? (const void *)in_block<wide_key> : (const void *)in_block<narrow_key>,
                            dim3(blocks), dim3((unsigned)threads), args, (size_t)j.room * (size_t)key_bytes(s->type),
                            on);
}
