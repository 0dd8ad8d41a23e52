/* The reference of attention: sixteen queries of a head a block, keys in chunks with a running maximum, so that the
 * shared memory is the same however many keys there are and however large a head is. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"

#include <math.h>

namespace {

constexpr int threads = 256;
constexpr int rows = 16;     /* queries of a block */
constexpr int chunk = 64;    /* keys at a time */
constexpr int slice = 32;    /* elements of queries and keys at a time */
constexpr int columns = 128; /* of the output; a wider one is shared by blocks that compute the same scores */
constexpr int score_rows = rows * chunk / threads;   /* scores of a thread: of one key, neighbouring queries */
constexpr int value_rows = rows * columns / threads; /* outputs of a thread: of one column, neighbouring queries */
constexpr int row_threads = threads / rows;          /* that share a row of scores */
constexpr double never = -INFINITY;                  /* the score of a key that is not seen */

struct shared_state {
    double q[rows][slice], k[chunk][slice + 1]; /* one more: neighbouring keys in other banks */
    double score[rows][chunk];                  /* then probabilities, less their common divisor */
    double most[rows], total[rows], shrink[rows];
    int64_t first[rows], end[rows]; /* the keys that a query sees */
};

struct place { /* what a block computes */
    int64_t sequence, head, query, column;
};

__device__ int64_t row_of(const whole_attention_steps &s, int64_t sequence, int64_t head, int64_t row) {
    return sequence * s.sequence + head * s.head + row * s.row;
}

__device__ place place_of(const whole_attention_problem &p, int64_t block) {
    const int64_t across = (p.v_dim + columns - 1) / columns, down = (p.queries + rows - 1) / rows;
    place at;
    at.column = block % across * columns, block /= across;
    at.query = block % down * rows, block /= down;
    at.head = block % p.heads, at.sequence = block / p.heads;
    return at;
}

__device__ void see(const whole_attention_problem &p, const place &at, shared_state &s) {
    const int r = (int)threadIdx.x;
    if (r >= rows) return;
    const int64_t query = at.query + r;
    int64_t first = 0, end = p.keys;
    if (p.lengths && p.lengths[at.sequence] + (int64_t)1 < end) end = p.lengths[at.sequence] + (int64_t)1;
    if (end < 0) end = 0;
    if (p.causal) {
        const int64_t behind = p.past + query + 1;
        if (behind < end) end = behind;
        if (p.window > 0 && behind - p.window > 0) first = behind - p.window;
    }
    s.first[r] = first, s.end[r] = query < p.queries ? end : first;
    s.most[r] = never, s.total[r] = 0;
}

__device__ void load(const whole_attention_problem &p, const place &at, int64_t key, int64_t from, shared_state &s) {
    for (int i = (int)threadIdx.x; i < rows * slice; i += threads) {
        const int r = i / slice, d = i % slice;
        const bool inside = at.query + r < p.queries && from + d < p.dim;
        const int64_t from_at = row_of(p.q_at, at.sequence, at.head, at.query + r) + (from + d) * p.q_at.last;
        s.q[r][d] = inside ? values_at(p.q, p.type, from_at) * p.scale : 0;
    }
    for (int i = (int)threadIdx.x; i < chunk * slice; i += threads) {
        const int r = i / slice, d = i % slice;
        const bool inside = key + r < p.keys && from + d < p.dim;
        const int64_t from_at = row_of(p.k_at, at.sequence, at.head / p.group, key + r) + (from + d) * p.k_at.last;
        s.k[r][d] = inside ? values_at(p.k, p.type, from_at) : 0;
    }
}

/* By the block mask alone. */
__device__ bool sees(const whole_attention_problem &p, int64_t query, int64_t key) {
    if (!p.blocks || query >= p.queries || key >= p.keys) return true;
    const int64_t col = key / p.block;
    return p.blocks[query / p.block * p.block_words + col / 32] >> (col % 32) & 1;
}

/* Scores of a chunk from `key` on, capped and masked. */
__device__ void score(const whole_attention_problem &p, const place &at, int64_t key, shared_state &s) {
    const int mine = (int)threadIdx.x % chunk, top = (int)threadIdx.x / chunk * score_rows;
    double sum[score_rows] = {};
    for (int64_t from = 0; from < p.dim; from += slice) {
        __syncthreads(); /* all have read what is overwritten */
        load(p, at, key, from, s);
        __syncthreads();
        for (int d = 0; d < slice; d++)
            for (int j = 0; j < score_rows; j++) sum[j] += s.k[mine][d] * s.q[top + j][d];
    }
    for (int j = 0; j < score_rows; j++) {
        const int r = top + j;
        const bool seen = key + mine >= s.first[r] && key + mine < s.end[r] && sees(p, at.query + r, key + mine);
        double x = p.softcap > 0 ? p.softcap * tanh(sum[j] / p.softcap) : sum[j];
        if (p.mask && seen)
            x += values_at(p.mask, p.mask_type,
                           row_of(p.mask_at, at.sequence, at.head, at.query + r) + (key + mine) * p.mask_at.last);
        s.score[r][mine] = seen ? x : never;
    }
}

/* Scores become probabilities against the greatest so far; `shrink` is what all before must be multiplied with. */
__device__ void weigh(shared_state &s) {
    const int r = (int)threadIdx.x / row_threads, lane = (int)threadIdx.x % row_threads;
    const double before = s.most[r];
    double most = before, sum = 0;
    for (int k = lane; k < chunk; k += row_threads) most = fmax(most, s.score[r][k]);
    for (int half = row_threads / 2; half > 0; half /= 2) most = fmax(most, __shfl_xor_sync(~0u, most, half));
    for (int k = lane; k < chunk; k += row_threads) {
        const double x = s.score[r][k], weight = x == never ? 0 : exp(x - most);
        s.score[r][k] = weight;
        sum += weight;
    }
    for (int half = row_threads / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
    if (lane > 0) return;
    s.shrink[r] = most == before ? 1 : exp(before - most);
    s.total[r] = s.total[r] * s.shrink[r] + sum;
    s.most[r] = most;
}

/* Adds what the chunk's values bring to the outputs of this thread, and the squares of that. */
__device__ void add(const whole_attention_problem &p, const place &at, int64_t key, const shared_state &s, double *sum,
                    double *squares) {
    const int64_t column = at.column + threadIdx.x % columns;
    const int top = (int)threadIdx.x / columns * value_rows;
    const int count = p.keys - key < chunk ? (int)(p.keys - key) : chunk;
    for (int j = 0; j < value_rows; j++) {
        const double shrink = s.shrink[top + j];
        sum[j] *= shrink, squares[j] *= shrink * shrink;
    }
    if (column >= p.v_dim) return;
    const int64_t from = row_of(p.v_at, at.sequence, at.head / p.group, key) + column * p.v_at.last;
    for (int k = 0; k < count; k++) {
        const double v = values_at(p.v, p.type, from + k * p.v_at.row);
        for (int j = 0; j < value_rows; j++) {
            const double term = s.score[top + j][k] * v;
            sum[j] += term, squares[j] += term * term;
        }
    }
}

__global__ void __launch_bounds__(threads)
    attend(const whole_attention_problem p, double *__restrict__ want, float *__restrict__ spread) {
    __shared__ shared_state s;
    const place at = place_of(p, blockIdx.x);
    const int64_t column = at.column + threadIdx.x % columns;
    const int top = (int)threadIdx.x / columns * value_rows;
    double sum[value_rows] = {}, squares[value_rows] = {};
    int64_t from = p.keys, end = 0;
    see(p, at, s);
    __syncthreads();
    for (int r = 0; r < rows; r++) {
        if (s.first[r] < s.end[r] && s.first[r] < from) from = s.first[r];
        if (s.first[r] < s.end[r] && s.end[r] > end) end = s.end[r];
    }
    for (int64_t key = from; key < end; key += chunk) {
        const int64_t last = key + chunk < end ? key + chunk - 1 : end - 1;
        if (!sees(p, at.query, key) && !sees(p, at.query, last)) continue; /* all rows are of one block of queries */
        score(p, at, key, s);
        __syncthreads();
        weigh(s);
        __syncthreads();
        add(p, at, key, s, sum, squares);
    }
    if (column >= p.v_dim) return;
    for (int j = 0; j < value_rows && at.query + top + j < p.queries; j++) {
        const int64_t to = row_of(p.out_at, at.sequence, at.head, at.query + top + j) + column * p.out_at.last;
        const double total = s.total[top + j];
        want[to] = total == 0 ? 0 : sum[j] / total;
        spread[to] = total == 0 ? 0 : (float)(sqrt(squares[j]) / total);
    }
}

} // namespace

cudaError_t whole_attention(const whole_attention_problem *p, double *want, float *spread, cudaStream_t stream) {
    const int64_t across = (p->v_dim + columns - 1) / columns, down = (p->queries + rows - 1) / rows;
    const double blocks = (double)across * (double)down * (double)p->heads * (double)p->batch;
    if (blocks < 1 || blocks > INT32_MAX) return cudaErrorInvalidValue;
    attend<<<(unsigned)blocks, threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
