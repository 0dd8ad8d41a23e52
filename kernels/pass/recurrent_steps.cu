/* Recurrent layers step by step in fp32 arithmetic: the input's products of as many steps as the workspace holds, then
 * a kernel for each step, in which a warp multiplies the state with all gates of one hidden unit and finishes them. */
#include "kernels/pass/recurrent_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int warp = 32, step_threads = 128, most_gates = 4;
constexpr int tile = 64, depth = 16, tile_threads = 256, each = 4; /* of the input's product: each thread 4 x 4 */
constexpr int64_t few_rows = 16;                                   /* up to which tiles would be mostly empty */
constexpr int64_t most_blocks = 65535;

__device__ float number(float x) { return x; }
__device__ float number(__half x) { return __half2float(x); }
__device__ float number(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float *to, float x) { *to = x; }
__device__ void store(__half *to, float x) { *to = __float2half_rn(x); }
__device__ void store(__nv_bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }

/* What kernels get: pointers of the right type, and the workspace by its parts. */
template <typename T> struct job {
    recurrent_layer p;
    const T *x, *w, *r, *bias, *h0, *c0, *peephole;
    const int32_t *lengths;
    T *y, *y_h, *y_c;
    int64_t wide;        /* gates * hidden */
    int64_t from, steps; /* of the chunk */
    float *gates;        /* [directions][steps of the chunk][batch][wide] */
    float *h, *next_h;   /* [directions][batch][hidden], as all below */
    float *c, *reset, *update;
};

template <typename T> __device__ int64_t length_of(const job<T> &j, int64_t row) {
    const int64_t n = j.lengths ? j.lengths[row] : j.p.steps;
    return n < 0 ? 0 : n < j.p.steps ? n : j.p.steps;
}

template <typename T> __device__ int64_t time_of(const job<T> &j, int direction, int64_t step, int64_t length) {
    return direction == 1 || j.p.reverse ? length - 1 - step : step;
}

/* Where the input of a row of the chunk's product begins; -1: its sequence has ended. */
template <typename T> __device__ int64_t input_at(const job<T> &j, int direction, int64_t line) {
    const int64_t row = line % j.p.batch, step = j.from + line / j.p.batch, length = length_of(j, row);
    return step < length ? time_of(j, direction, step, length) * j.p.x_step + row * j.p.x_row : -1;
}

/* ---- the input's products ---- */

/* Few rows: a warp for each of `wide` columns and each row. */
template <typename T> __global__ void __launch_bounds__(step_threads) input_rows(const job<T> j) {
    const int64_t lines = j.steps * j.p.batch, all = j.p.directions * lines * j.wide;
    const int64_t item = (blockIdx.x * (int64_t)step_threads + threadIdx.x) / warp;
    const int lane = threadIdx.x % warp;
    if (item >= all) return;
    const int64_t column = item % j.wide, line = item / j.wide % lines;
    const int direction = (int)(item / j.wide / lines);
    const int64_t at = input_at(j, direction, line);
    const T *w = j.w + (direction * j.wide + column) * j.p.input;
    float sum = 0;
    for (int64_t k = lane; at >= 0 && k < j.p.input; k += warp) sum += number(w[k]) * number(j.x[at + k]);
    for (int half = warp / 2; half > 0; half /= 2) sum += __shfl_xor_sync(~0u, sum, half);
    if (lane == 0) j.gates[(direction * lines + line) * j.wide + column] = sum;
}

template <typename T> __global__ void __launch_bounds__(tile_threads) input_tiles(const job<T> j) {
    __shared__ float a[depth][tile + 1], b[depth][tile + 1];
    __shared__ int64_t begins[tile];
    const int64_t lines = j.steps * j.p.batch, line0 = blockIdx.x * (int64_t)tile, column0 = blockIdx.y * (int64_t)tile;
    const int direction = (int)blockIdx.z, tid = (int)threadIdx.x;
    const int over = tid / depth, across = tid % depth;
    float sums[each][each] = {};
    if (tid < tile) begins[tid] = line0 + tid < lines ? input_at(j, direction, line0 + tid) : -1;
    __syncthreads();
    for (int64_t k0 = 0; k0 < j.p.input; k0 += depth) {
        const int64_t k = k0 + across;
        for (int i = over; i < tile; i += tile_threads / depth) {
            const bool inside = k < j.p.input;
            a[across][i] = inside && begins[i] >= 0 ? number(j.x[begins[i] + k]) : 0;
            b[across][i] =
                inside && column0 + i < j.wide ? number(j.w[(direction * j.wide + column0 + i) * j.p.input + k]) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < depth; d++)
#pragma unroll
            for (int m = 0; m < each; m++)
#pragma unroll
                for (int n = 0; n < each; n++)
                    sums[m][n] += a[d][over + m * (tile / each)] * b[d][across + n * (tile / each)];
        __syncthreads();
    }
    for (int m = 0; m < each; m++)
        for (int n = 0; n < each; n++) {
            const int64_t line = line0 + over + m * (tile / each), column = column0 + across + n * (tile / each);
            if (line < lines && column < j.wide) j.gates[(direction * lines + line) * j.wide + column] = sums[m][n];
        }
}

/* ---- gates ---- */

__device__ float function(const recurrent_layer_function &f, float x) {
    const float alpha = (float)f.alpha, beta = (float)f.beta;
    switch (f.function) {
    case RECURRENT_LAYER_SIGMOID: return 1 / (1 + expf(-x));
    case RECURRENT_LAYER_TANH: return tanhf(x);
    case RECURRENT_LAYER_RELU: return fmaxf(x, 0);
    case RECURRENT_LAYER_AFFINE: return alpha * x + beta;
    case RECURRENT_LAYER_LEAKYRELU: return x < 0 ? alpha * x : x;
    case RECURRENT_LAYER_SCALEDTANH: return alpha * tanhf(beta * x);
    case RECURRENT_LAYER_HARDSIGMOID: return fminf(fmaxf(alpha * x + beta, 0), 1);
    case RECURRENT_LAYER_ELU: return x < 0 ? alpha * expm1f(x) : x;
    case RECURRENT_LAYER_SOFTSIGN: return x / (1 + fabsf(x));
    default: return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    }
}

template <typename T> __device__ float activate(const job<T> &j, int direction, int which, float x) {
    const float clip = (float)j.p.clip;
    return function(j.p.functions[direction][which], clip > 0 ? fminf(fmaxf(x, -clip), clip) : x);
}

/* One hidden unit of one row at one step. */
struct unit_place {
    int direction;
    int64_t row, unit, state; /* state: in h, c and the like */
};

template <typename T> __device__ float bias_of(const job<T> &j, const unit_place &at, int gate, int of_state) {
    if (!j.bias) return 0;
    return number(j.bias[(at.direction * 2 + of_state) * j.wide + gate * j.p.hidden + at.unit]);
}

template <typename T> __device__ float peep(const job<T> &j, const unit_place &at, int which, float state) {
    return j.peephole ? number(j.peephole[(at.direction * 3 + which) * j.p.hidden + at.unit]) * state : 0;
}

/* The sum of everything that goes into a gate. */
template <typename T>
__device__ float whole(const job<T> &j, const unit_place &at, const float *input, int gate, float back) {
    return input[gate * j.p.hidden] + bias_of(j, at, gate, 0) + (back + bias_of(j, at, gate, 1));
}

template <typename T>
__device__ float do_lstm(const job<T> &j, const unit_place &at, const float *input, const float *back) {
    enum { I, O, F, C };
    const float before = j.c[at.state];
    const float in = activate(j, at.direction, 0, whole(j, at, input, I, back[I]) + peep(j, at, 0, before));
    const float forget = j.p.input_forget
                             ? 1 - in
                             : activate(j, at.direction, 0, whole(j, at, input, F, back[F]) + peep(j, at, 2, before));
    const float c = forget * before + in * activate(j, at.direction, 1, whole(j, at, input, C, back[C]));
    const float out = activate(j, at.direction, 0, whole(j, at, input, O, back[O]) + peep(j, at, 1, c));
    j.c[at.state] = c;
    return out * activate(j, at.direction, 2, c);
}

/* Where the state is reset before the product nothing is finished yet: *done is false. */
template <typename T>
__device__ float do_gru(const job<T> &j, const unit_place &at, const float *input, const float *back, bool second,
                        bool *done) {
    enum { Z, R, H };
    const float before = j.h[at.state];
    if (second) {
        const float fresh = activate(j, at.direction, 1, whole(j, at, input, H, back[0])), update = j.update[at.state];
        return fresh + update * (before - fresh);
    }
    const float update = activate(j, at.direction, 0, whole(j, at, input, Z, back[Z]));
    const float reset = activate(j, at.direction, 0, whole(j, at, input, R, back[R]));
    if (!j.p.linear_before_reset) {
        j.update[at.state] = update, j.reset[at.state] = reset * before;
        *done = false;
        return 0;
    }
    const float fresh = activate(
        j, at.direction, 1, input[H * j.p.hidden] + bias_of(j, at, H, 0) + reset * (back[H] + bias_of(j, at, H, 1)));
    return fresh + update * (before - fresh);
}

/* Past the end of its sequence a row keeps its state, and its y is 0. */
template <typename T>
__device__ void finish(const job<T> &j, const unit_place &at, int64_t step, const float *back, bool second) {
    const int64_t length = length_of(j, at.row);
    const bool over = step >= length;
    bool done = true;
    float h = j.h[at.state];
    if (!over) {
        const int64_t line = (at.direction * j.steps + step - j.from) * j.p.batch + at.row;
        const float *input = j.gates + line * j.wide + at.unit;
        h = j.p.cell == RECURRENT_LAYER_LSTM  ? do_lstm(j, at, input, back)
            : j.p.cell == RECURRENT_LAYER_GRU ? do_gru(j, at, input, back, second, &done)
                                              : activate(j, at.direction, 0, whole(j, at, input, 0, back[0]));
    }
    if (!done) return;
    j.next_h[at.state] = h;
    if (!j.y) return;
    const int64_t time = over ? step : time_of(j, at.direction, step, length);
    store(j.y + time * j.p.y_step + at.direction * j.p.y_direction + at.row * j.p.y_row + at.unit, over ? 0 : h);
}

/* ---- a step ---- */

/* A warp: gates [first, first + gates) of one unit, for `rows` rows of the batch. second: the gate of a GRU that its
 * reset state is multiplied for. */
template <typename T, int rows, int gates>
__global__ void __launch_bounds__(step_threads) one_step(const job<T> j, int64_t step, int first, bool second) {
    const int64_t hidden = j.p.hidden, tiles = (j.p.batch + rows - 1) / rows;
    const int64_t item = (blockIdx.x * (int64_t)step_threads + threadIdx.x) / warp;
    const int lane = threadIdx.x % warp;
    if (item >= j.p.directions * tiles * hidden) return;
    const int64_t unit = item % hidden, row0 = item / hidden % tiles * rows;
    const int direction = (int)(item / hidden / tiles);
    const float *state = (second ? j.reset : j.h) + (direction * j.p.batch + row0) * hidden;
    const T *r = j.r + ((direction * j.p.gates + first) * hidden + unit) * hidden;
    const int64_t left = j.p.batch - row0;
    float sums[gates][rows] = {};
    for (int64_t k = lane; k < hidden; k += warp) {
        float h[rows];
#pragma unroll
        for (int b = 0; b < rows; b++) h[b] = b < left ? state[b * hidden + k] : 0;
#pragma unroll
        for (int g = 0; g < gates; g++) {
            const float weight = number(r[g * hidden * hidden + k]);
#pragma unroll
            for (int b = 0; b < rows; b++) sums[g][b] += weight * h[b];
        }
    }
    float back[most_gates] = {};
#pragma unroll
    for (int g = 0; g < gates; g++)
#pragma unroll
        for (int b = 0; b < rows; b++) {
            for (int half = warp / 2; half > 0; half /= 2) sums[g][b] += __shfl_xor_sync(~0u, sums[g][b], half);
            if (lane == b) back[g] = sums[g][b];
        }
    if (lane >= rows || lane >= left) return;
    const unit_place at = {direction, row0 + lane, unit, (direction * j.p.batch + row0 + lane) * hidden + unit};
    finish(j, at, step, back, second);
}

/* ---- states ---- */

template <typename T> __global__ void __launch_bounds__(step_threads) begin_states(const job<T> j) {
    const int64_t k = blockIdx.x * (int64_t)step_threads + threadIdx.x, plane = j.p.batch * j.p.hidden;
    if (k >= j.p.directions * plane) return;
    const int64_t at = k / plane * j.p.state_direction + k % plane / j.p.hidden * j.p.state_row + k % j.p.hidden;
    j.h[k] = j.h0 ? number(j.h0[at]) : 0;
    j.c[k] = j.c0 ? number(j.c0[at]) : 0;
}

template <typename T> __global__ void __launch_bounds__(step_threads) end_states(const job<T> j) {
    const int64_t k = blockIdx.x * (int64_t)step_threads + threadIdx.x, plane = j.p.batch * j.p.hidden;
    if (k >= j.p.directions * plane) return;
    const int64_t at = k / plane * j.p.state_direction + k % plane / j.p.hidden * j.p.state_row + k % j.p.hidden;
    if (j.y_h) store(j.y_h + at, j.h[k]);
    if (j.y_c) store(j.y_c + at, j.c[k]);
}

/* ---- launching ---- */

unsigned blocks_of(int64_t threads) { return (unsigned)((threads + step_threads - 1) / step_threads); }

template <typename T> void multiply_input(const job<T> &j, cudaStream_t stream) {
    const int64_t lines = j.steps * j.p.batch;
    if (lines <= few_rows) {
        input_rows<T><<<blocks_of(j.p.directions * lines * j.wide * warp), step_threads, 0, stream>>>(j);
        return;
    }
    const dim3 grid((unsigned)((lines + tile - 1) / tile), (unsigned)((j.wide + tile - 1) / tile),
                    (unsigned)j.p.directions);
    input_tiles<T><<<grid, tile_threads, 0, stream>>>(j);
}

template <typename T, int rows> void run_step(const job<T> &j, int64_t step, cudaStream_t stream) {
    const unsigned blocks = blocks_of(j.p.directions * ((j.p.batch + rows - 1) / rows) * j.p.hidden * warp);
    if (j.p.cell == RECURRENT_LAYER_LSTM) {
        one_step<T, rows, 4><<<blocks, step_threads, 0, stream>>>(j, step, 0, false);
    } else if (j.p.cell == RECURRENT_LAYER_RNN) {
        one_step<T, rows, 1><<<blocks, step_threads, 0, stream>>>(j, step, 0, false);
    } else if (j.p.linear_before_reset) {
        one_step<T, rows, 3><<<blocks, step_threads, 0, stream>>>(j, step, 0, false);
    } else {
        one_step<T, rows, 2><<<blocks, step_threads, 0, stream>>>(j, step, 0, false);
        one_step<T, rows, 1><<<blocks, step_threads, 0, stream>>>(j, step, 2, true);
    }
}

template <typename T> void run_steps(const recurrent_steps_plan &plan, job<T> &j, cudaStream_t stream) {
    for (j.from = 0; j.from < j.p.steps; j.from += plan.chunk) {
        j.steps = j.p.steps - j.from < plan.chunk ? j.p.steps - j.from : plan.chunk;
        multiply_input(j, stream);
        for (int64_t step = j.from; step < j.from + j.steps; step++) {
            if (plan.rows == 1) run_step<T, 1>(j, step, stream);
            if (plan.rows == 2) run_step<T, 2>(j, step, stream);
            if (plan.rows == 4) run_step<T, 4>(j, step, stream);
            if (plan.rows == 8) run_step<T, 8>(j, step, stream);
            float *const h = j.h;
            j.h = j.next_h, j.next_h = h;
        }
    }
}

template <typename T>
cudaError_t run(const recurrent_steps_plan &plan, const recurrent_layer_tensors &t, float *room, cudaStream_t stream) {
    const recurrent_layer &p = plan.layer;
    const int64_t state = p.directions * p.batch * p.hidden;
    job<T> j = {};
    j.p = p;
    j.x = (const T *)t.x, j.w = (const T *)t.w, j.r = (const T *)t.r, j.bias = (const T *)t.bias;
    j.h0 = (const T *)t.h0, j.c0 = (const T *)t.c0, j.peephole = (const T *)t.peephole, j.lengths = t.lengths;
    j.y = (T *)t.y, j.y_h = (T *)t.y_h, j.y_c = (T *)t.y_c;
    j.wide = p.gates * p.hidden;
    j.h = room, j.next_h = room + state, j.c = room + 2 * state, j.reset = room + 3 * state;
    j.update = room + 4 * state, j.gates = room + 5 * state;
    begin_states<T><<<blocks_of(state), step_threads, 0, stream>>>(j);
    run_steps(plan, j, stream);
    if (j.y_h || j.y_c) end_states<T><<<blocks_of(state), step_threads, 0, stream>>>(j);
    return cudaGetLastError();
}

/* Bytes for so many steps at once. */
size_t bytes_of(const recurrent_layer *p, int64_t chunk) {
    const double state = (double)p->directions * (double)p->batch * (double)p->hidden;
    const double all = sizeof(float) * state * (5 + (double)p->gates * (double)chunk);
    return all < 1e18 ? (size_t)all : SIZE_MAX;
}

bool counts(const recurrent_layer *p, int64_t chunk) {
    const double lines = (double)chunk * (double)p->batch, wide = (double)p->gates * (double)p->hidden;
    const double most = 2147483647.0 * step_threads / warp;
    return lines < 2147483647.0 && wide < (double)(most_blocks * tile) &&
           p->directions * (double)p->batch * (double)p->hidden < most && p->directions * few_rows * wide < most;
}

} // namespace

int recurrent_steps_prepare(const recurrent_layer *layer, int rows, size_t limit, recurrent_steps_plan *plan) {
    const bool type = layer->type == RECURRENT_LAYER_FP32 || layer->type == RECURRENT_LAYER_FP16 ||
                      layer->type == RECURRENT_LAYER_BF16;
    const bool known = layer->cell >= RECURRENT_LAYER_RNN && layer->cell <= RECURRENT_LAYER_LSTM;
    int64_t chunk = layer->steps;
    if (!type || !known || (rows != 1 && rows != 2 && rows != 4 && rows != 8)) return cudaErrorInvalidValue;
    if (layer->steps < 1 || layer->batch < 1 || layer->input < 1 || layer->hidden < 1) return cudaErrorInvalidValue;
    while (chunk > 1 && (bytes_of(layer, chunk) > limit || !counts(layer, chunk))) chunk = (chunk + 1) / 2;
    if (bytes_of(layer, chunk) > limit || !counts(layer, chunk)) return cudaErrorInvalidValue;
    plan->layer = *layer;
    plan->rows = rows;
    plan->chunk = chunk;
    plan->workspace_bytes = bytes_of(layer, chunk);
    return 0;
}

int recurrent_steps_launch(const recurrent_steps_plan *plan, const recurrent_layer_tensors *tensors, void *workspace,
                           void *stream) {
    float *const room = (float *)workspace;
    cudaStream_t const on = (cudaStream_t)stream;
    if (plan->layer.type == RECURRENT_LAYER_FP16) return run<__half>(*plan, *tensors, room, on);
    if (plan->layer.type == RECURRENT_LAYER_BF16) return run<__nv_bfloat16>(*plan, *tensors, room, on);
    return run<float>(*plan, *tensors, room, on);
}
