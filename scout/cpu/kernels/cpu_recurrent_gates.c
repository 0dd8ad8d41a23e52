/* The gates of a step, in fp32. */
#include "scout/cpu/kernels/cpu_recurrent_gates.h"

#include <string.h>

static float *gate_of(const cpu_recurrent_gates *g, int gate) { return g->input + gate * g->p->hidden; }

/* Sums up a gate's input where the input's product stands. */
static float *sum_gate(const cpu_recurrent_gates *g, int gate) {
    const int64_t at = gate * g->p->hidden;
    float *to = g->input + at;
    const float *back = g->back + at;
    for (int64_t k = 0; k < g->count; k++) to[k] += back[k];
    if (!g->bias) return to;
    const float *bias = g->bias + at, *state_bias = bias + g->wide;
    for (int64_t k = 0; k < g->count; k++) to[k] += bias[k] + state_bias[k];
    return to;
}

static void peep(const cpu_recurrent_gates *g, int which, const float *c, float *gate) {
    if (!g->peephole) return;
    const float *weight = g->peephole + which * g->p->hidden;
    for (int64_t k = 0; k < g->count; k++) gate[k] += weight[k] * c[k];
}

static void activate(const cpu_recurrent_gates *g, int which, float *x) {
    cpu_recurrent_activate(g->kernels, &g->functions[which], (float)g->p->clip, x, g->count);
}

static void do_lstm(const cpu_recurrent_gates *g, float *h, float *c) {
    enum { I, O, F, C };
    float *in = sum_gate(g, I), *out = sum_gate(g, O), *forget = sum_gate(g, F), *fresh = sum_gate(g, C);
    peep(g, 0, c, in);
    activate(g, 0, in);
    activate(g, 1, fresh);
    if (g->p->input_forget) {
        for (int64_t k = 0; k < g->count; k++) forget[k] = 1 - in[k];
    } else {
        peep(g, 2, c, forget);
        activate(g, 0, forget);
    }
    for (int64_t k = 0; k < g->count; k++) h[k] = c[k] = forget[k] * c[k] + in[k] * fresh[k];
    peep(g, 1, c, out);
    activate(g, 0, out);
    activate(g, 2, h);
    for (int64_t k = 0; k < g->count; k++) h[k] *= out[k];
}

static void mix(const cpu_recurrent_gates *g) {
    const float *update = gate_of(g, 0), *fresh = gate_of(g, 2);
    for (int64_t k = 0; k < g->count; k++) g->h[k] = fresh[k] + update[k] * (g->before[k] - fresh[k]);
}

static void do_gru(const cpu_recurrent_gates *g) {
    enum { Z, R, H };
    float *update = sum_gate(g, Z), *keep = sum_gate(g, R), *fresh = gate_of(g, H);
    activate(g, 0, update);
    activate(g, 0, keep);
    if (!g->p->linear_before_reset) {
        for (int64_t k = 0; k < g->count; k++) g->reset[k] = keep[k] * g->before[k];
        return;
    }
    const int64_t at = H * g->p->hidden;
    const float *back = g->back + at, *bias = g->bias ? g->bias + at : NULL;
    for (int64_t k = 0; k < g->count; k++)
        fresh[k] += bias ? bias[k] + keep[k] * (back[k] + bias[g->wide + k]) : keep[k] * back[k];
    activate(g, 1, fresh);
    mix(g);
}

static void do_reset_gru(const cpu_recurrent_gates *g) {
    activate(g, 1, sum_gate(g, 2));
    mix(g);
}

void cpu_recurrent_gates_run(const cpu_recurrent_gates *g, bool second) {
    if (second) {
        do_reset_gru(g);
    } else if (g->p->cell == RECURRENT_LSTM) {
        do_lstm(g, g->h, g->c);
    } else if (g->p->cell == RECURRENT_GRU) {
        do_gru(g);
    } else {
        memcpy(g->h, sum_gate(g, 0), (size_t)g->count * sizeof *g->h);
        activate(g, 0, g->h);
    }
}
