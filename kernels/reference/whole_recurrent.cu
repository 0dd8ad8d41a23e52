/* The reference of recurrent layers, step by step, a warp for each hidden unit of each row. Beside each number its
 * spread is carried along: the root of the sum of the squares of all that may have been rounded on the way to it, so
 * that the error of a step is propagated to the next. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

#include <math.h>

namespace {

constexpr int lanes = 32, most_gates = 4;

struct uncertain {
    double value, square; /* of its spread */
};

struct walk {
    recurrent_layer p;
    recurrent_layer_tensors t;
    uncertain *h, *next_h, *c, *reset, *update; /* [directions][batch][hidden] */
    double *want;
    float *spread;
    int output;
    int *unbounded; /* set where a number's spread is more than `most` times its size, or 1 */
    double most;
};

__device__ uncertain plus(uncertain a, uncertain b) { return {a.value + b.value, a.square + b.square}; }

__device__ uncertain times(uncertain a, uncertain b) {
    return {a.value * b.value, a.value * a.value * b.square + b.value * b.value * a.square};
}

/* A number that is rounded itself, by being stored or added to something. */
__device__ uncertain rounded(uncertain a) { return {a.value, a.square + a.value * a.value}; }

__device__ double function(const recurrent_layer_function &f, double x) {
    switch (f.function) {
    case RECURRENT_LAYER_SIGMOID: return 1 / (1 + exp(-x));
    case RECURRENT_LAYER_TANH: return tanh(x);
    case RECURRENT_LAYER_RELU: return fmax(x, 0.0);
    case RECURRENT_LAYER_AFFINE: return f.alpha * x + f.beta;
    case RECURRENT_LAYER_LEAKYRELU: return x < 0 ? f.alpha * x : x;
    case RECURRENT_LAYER_SCALEDTANH: return f.alpha * tanh(f.beta * x);
    case RECURRENT_LAYER_HARDSIGMOID: return fmin(fmax(f.alpha * x + f.beta, 0.0), 1.0);
    case RECURRENT_LAYER_ELU: return x < 0 ? f.alpha * expm1(x) : x;
    case RECURRENT_LAYER_SOFTSIGN: return x / (1 + fabs(x));
    default: return fmax(x, 0.0) + log1p(exp(-fabs(x)));
    }
}

/* How steep it is at x, or up to `near` beside it where it bends: what is off by a little may lie there. */
__device__ double slope(const recurrent_layer_function &f, double x, double near) {
    const double alpha = fabs(f.alpha), y = function(f, x), inside = tanh(f.beta * x);
    switch (f.function) {
    case RECURRENT_LAYER_SIGMOID: return y * (1 - y);
    case RECURRENT_LAYER_TANH: return 1 - y * y;
    case RECURRENT_LAYER_RELU: return x > -near;
    case RECURRENT_LAYER_AFFINE: return alpha;
    case RECURRENT_LAYER_LEAKYRELU: return x < -near ? alpha : fmax(alpha, 1.0);
    case RECURRENT_LAYER_SCALEDTANH: return alpha * fabs(f.beta) * (1 - inside * inside);
    case RECURRENT_LAYER_HARDSIGMOID: return fabs(f.alpha * x + f.beta - 0.5) < 0.5 + alpha * near ? alpha : 0;
    case RECURRENT_LAYER_ELU: return x < -near ? alpha * exp(x) : fmax(alpha, 1.0);
    case RECURRENT_LAYER_SOFTSIGN: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
    default: return 1 / (1 + exp(-x)); /* softplus */
    }
}

__device__ uncertain activate(const walk &w, int direction, int which, uncertain x) {
    const recurrent_layer_function &f = w.p.functions[direction][which];
    const double clip = w.p.clip, near = sqrt(x.square) / 32;
    const double at = clip > 0 ? fmin(fmax(x.value, -clip), clip) : x.value, y = function(f, at);
    const double steep = clip > 0 && fabs(x.value) > clip + near ? 0 : slope(f, at, near);
    const bool adds = f.function == RECURRENT_LAYER_AFFINE || f.function == RECURRENT_LAYER_HARDSIGMOID;
    return {y, steep * steep * x.square + (adds ? f.beta * f.beta : 0) + y * y};
}

/* ---- one unit ---- */

struct place {
    int direction;
    int64_t row, unit, state; /* state: in h, c and the like */
};

/* A gate's input: what x and what the state before bring, with their biases. */
struct entry {
    uncertain input, state;
};

__device__ uncertain sum_lanes(uncertain mine) {
    for (int half = lanes / 2; half > 0; half /= 2) {
        mine.value += __shfl_xor_sync(~0u, mine.value, half);
        mine.square += __shfl_xor_sync(~0u, mine.square, half);
    }
    return mine;
}

__device__ uncertain bias_of(const walk &w, const place &at, int gate, int of_state) {
    const int64_t wide = w.p.gates * w.p.hidden;
    if (!w.t.bias) return {0, 0};
    return rounded(
        {values_at(w.t.bias, (uint32_t)w.p.type, (at.direction * 2 + of_state) * wide + gate * w.p.hidden + at.unit),
         0});
}

__device__ uncertain peep(const walk &w, const place &at, int which, uncertain state) {
    if (!w.t.peephole) return {0, 0};
    const int64_t from = (at.direction * 3 + which) * w.p.hidden + at.unit;
    return rounded(times({values_at(w.t.peephole, (uint32_t)w.p.type, from), 0}, state));
}

__device__ int64_t length_of(const walk &w, int64_t row) {
    const int64_t n = w.t.lengths ? w.t.lengths[row] : w.p.steps;
    return n < 0 ? 0 : n < w.p.steps ? n : w.p.steps;
}

__device__ int64_t time_of(const walk &w, int direction, int64_t step, int64_t length) {
    return direction == 1 || w.p.reverse ? length - 1 - step : step;
}

/* All lanes come here; the sums are the same for each. */
__device__ entry enter(const walk &w, const place &at, int gate, int64_t x, const uncertain *state) {
    const int64_t line = (at.direction * w.p.gates + gate) * w.p.hidden + at.unit;
    const uint32_t type = (uint32_t)w.p.type;
    entry e = {{0, 0}, {0, 0}};
    for (int64_t k = threadIdx.x % lanes; k < w.p.input; k += lanes) {
        const double term = values_at(w.t.w, type, line * w.p.input + k) * values_at(w.t.x, type, x + k);
        e.input = plus(e.input, {term, term * term});
    }
    for (int64_t k = threadIdx.x % lanes; k < w.p.hidden; k += lanes) {
        const double weight = values_at(w.t.r, type, line * w.p.hidden + k), term = weight * state[k].value;
        e.state = plus(e.state, {term, term * term + weight * weight * state[k].square});
    }
    e.input = plus(sum_lanes(e.input), bias_of(w, at, gate, 0));
    e.state = plus(sum_lanes(e.state), bias_of(w, at, gate, 1));
    return e;
}

__device__ uncertain whole(const entry &e) { return plus(e.input, e.state); }

__device__ uncertain do_lstm(const walk &w, const place &at, const entry *e) {
    enum { I, O, F, C };
    const uncertain before = w.c[at.state];
    const uncertain in = activate(w, at.direction, 0, plus(whole(e[I]), peep(w, at, 0, before)));
    uncertain forget = {1 - in.value, in.square + 1};
    if (!w.p.input_forget) forget = activate(w, at.direction, 0, plus(whole(e[F]), peep(w, at, 2, before)));
    const uncertain fresh = activate(w, at.direction, 1, whole(e[C]));
    const uncertain c = rounded(plus(times(forget, before), times(in, fresh)));
    const uncertain out = activate(w, at.direction, 0, plus(whole(e[O]), peep(w, at, 1, c)));
    w.c[at.state] = c;
    return rounded(times(out, activate(w, at.direction, 2, c)));
}

/* Both products of the sum move with the update gate, against each other. */
__device__ uncertain mix(uncertain update, uncertain fresh, uncertain before) {
    const double rest = 1 - update.value, apart = before.value - fresh.value;
    return rounded(
        {rest * fresh.value + update.value * before.value,
         rest * rest * fresh.square + update.value * update.value * before.square + apart * apart * update.square});
}

/* Below it types are coarse, and gates become 0. What is behind the end of a sequence is 0 and nothing else. */
__device__ double least_spread(const walk &w, uncertain x) {
    return !(x.square > 0) ? 0 : w.p.type == DTYPE_FP16 ? 0x1p-14 : 0x1p-100;
}

__device__ void keep(const walk &w, const place &at, int64_t time, uncertain h) {
    const double most = w.most * (1 + fabs(h.value));
    if (!(h.square <= most * most)) *w.unbounded = 1;
    w.next_h[at.state] = h;
    if (w.output != WHOLE_RECURRENT_Y) return;
    const int64_t to = time * w.p.y_step + at.direction * w.p.y_direction + at.row * w.p.y_row + at.unit;
    const double least = least_spread(w, h);
    w.want[to] = h.value, w.spread[to] = (float)fmax(sqrt(h.square), least);
}

/* Past the end of its sequence a row keeps its state, and its y is 0. */
__device__ void stay(const walk &w, const place &at, int64_t step) {
    const uncertain before = w.h[at.state];
    keep(w, at, step, {0, 0});
    w.next_h[at.state] = before;
}

/* `second`: the last gate of a GRU that its reset state is multiplied for. */
__global__ void __launch_bounds__(whole_each_threads) one_step(const walk w, int64_t step, bool second) {
    enum { Z, R, H };
    const int64_t hidden = w.p.hidden, item = whole_each_first() / lanes;
    if (item >= w.p.directions * w.p.batch * hidden) return;
    const place at = {(int)(item / hidden / w.p.batch), item / hidden % w.p.batch, item % hidden, item};
    const int64_t length = length_of(w, at.row), line = item - at.unit;
    const bool first_lane = threadIdx.x % lanes == 0,
               resets = w.p.cell == RECURRENT_LAYER_GRU && !w.p.linear_before_reset;
    if (step >= length) {
        if (first_lane) stay(w, at, step);
        return;
    }
    const int64_t time = time_of(w, at.direction, step, length), x = time * w.p.x_step + at.row * w.p.x_row;
    entry e[most_gates];
    if (second) {
        e[0] = enter(w, at, H, x, w.reset + line);
        if (first_lane)
            keep(w, at, time, mix(w.update[at.state], activate(w, at.direction, 1, whole(e[0])), w.h[at.state]));
        return;
    }
    const int gates = resets ? 2 : w.p.gates;
    for (int g = 0; g < gates; g++) e[g] = enter(w, at, g, x, w.h + line);
    if (!first_lane) return;
    if (w.p.cell == RECURRENT_LAYER_LSTM) {
        keep(w, at, time, do_lstm(w, at, e));
    } else if (w.p.cell == RECURRENT_LAYER_RNN) {
        keep(w, at, time, activate(w, at.direction, 0, whole(e[0])));
    } else {
        const uncertain update = activate(w, at.direction, 0, whole(e[Z]));
        const uncertain reset = activate(w, at.direction, 0, whole(e[R]));
        if (resets)
            w.update[at.state] = update, w.reset[at.state] = rounded(times(reset, w.h[at.state]));
        else
            keep(w, at, time,
                 mix(update, activate(w, at.direction, 1, plus(e[H].input, times(reset, e[H].state))), w.h[at.state]));
    }
}

/* ---- states ---- */

__device__ int64_t state_at(const recurrent_layer &p, int64_t k) {
    const int64_t plane = p.batch * p.hidden;
    return k / plane * p.state_direction + k % plane / p.hidden * p.state_row + k % p.hidden;
}

__global__ void __launch_bounds__(whole_each_threads) begin_states(const walk w) {
    const int64_t k = whole_each_first();
    if (k == 0) *w.unbounded = 0;
    if (k >= w.p.directions * w.p.batch * w.p.hidden) return;
    const int64_t at = state_at(w.p, k);
    w.h[k] = {w.t.h0 ? values_at(w.t.h0, (uint32_t)w.p.type, at) : 0, 0};
    w.c[k] = {w.t.c0 ? values_at(w.t.c0, (uint32_t)w.p.type, at) : 0, 0};
}

__global__ void __launch_bounds__(whole_each_threads) end_states(const walk w) {
    const int64_t k = whole_each_first();
    if (k >= w.p.directions * w.p.batch * w.p.hidden) return;
    const uncertain x = w.output == WHOLE_RECURRENT_Y_H ? w.h[k] : w.c[k];
    const double most = w.most * (1 + fabs(x.value));
    if (!(x.square <= most * most)) *w.unbounded = 1;
    const double least = least_spread(w, x);
    const int64_t at = state_at(w.p, k);
    w.want[at] = x.value, w.spread[at] = (float)fmax(sqrt(x.square), least);
}

} // namespace

uint64_t whole_recurrent_bytes(const recurrent_layer *p) {
    return WHOLE_RECURRENT_STATES + 5 * sizeof(uncertain) * (uint64_t)(p->directions * p->batch * p->hidden);
}

cudaError_t whole_recurrent(const recurrent_layer *p, const recurrent_layer_tensors *t, whole_recurrent_output output,
                            double most, void *room, double *want, float *spread, cudaStream_t stream) {
    const int64_t state = p->directions * p->batch * p->hidden;
    const bool twice = p->cell == RECURRENT_LAYER_GRU && !p->linear_before_reset;
    const unsigned blocks = whole_each_blocks(state), warps = whole_each_blocks(state * lanes);
    uncertain *const states = (uncertain *)((char *)room + WHOLE_RECURRENT_STATES);
    walk w = {};
    if ((state * lanes + whole_each_threads - 1) / whole_each_threads > (int64_t)1 << 24) return cudaErrorInvalidValue;
    w.p = *p, w.t = *t, w.want = want, w.spread = spread, w.output = output;
    w.unbounded = (int *)room, w.most = most;
    w.h = states, w.next_h = states + state, w.c = states + 2 * state;
    w.reset = states + 3 * state, w.update = states + 4 * state;
    begin_states<<<blocks, whole_each_threads, 0, stream>>>(w);
    for (int64_t step = 0; step < p->steps; step++) {
        one_step<<<warps, whole_each_threads, 0, stream>>>(w, step, false);
        if (twice) one_step<<<warps, whole_each_threads, 0, stream>>>(w, step, true);
        uncertain *const h = w.h;
        w.h = w.next_h, w.next_h = h;
    }
    if (output != WHOLE_RECURRENT_Y) end_states<<<blocks, whole_each_threads, 0, stream>>>(w);
    return cudaGetLastError();
}
