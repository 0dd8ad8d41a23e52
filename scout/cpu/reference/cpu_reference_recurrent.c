/* Recurrent layers in fp64: every step of every sequence, one after the other. Beside each number its spread is carried
 * along: the root of the sum of the squares of all that may have been rounded on the way to it, so that the error of a
 * step is propagated to the next (docs/tolerances.md). */
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/recurrent.h"

#include <math.h>

static const double most_products = 1e11; /* minutes */

typedef struct number {
    double value, square; /* of its spread */
} number;

/* Of the direction that is at work; [batch][hidden] each. Threads share out the hidden units. */
typedef struct walk {
    const recurrent_problem *p;
    void *const *tensors;
    int direction;
    int64_t step;
    const int32_t *lengths;   /* NULL: all steps */
    number *h, *c, *next_h;   /* next_h: what a step makes, while all still read h */
    number *reset_h, *update; /* of a GRU that resets before its product */
    double *x;                /* [batch][input] of this step */
    double *weights;          /* room for a row of w and one of r, for each thread */
    number *y, *y_h, *y_c;    /* the outputs as they lie; NULL: not wanted */
} walk;

static double value_at(const walk *s, int tensor, int64_t at) {
    double x = 0;
    if (tensor >= 0) cpu_number_load(s->p->type, s->tensors[tensor], at, 1, 1, &x);
    return x;
}

static int64_t length_of(const walk *s, int64_t row) { return recurrent_length(s->p, s->lengths, row); }

/* ---- arithmetic ---- */

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static double function(const recurrent_activation *a, double x) {
    switch (a->function) {
    case RECURRENT_SIGMOID: return 1 / (1 + exp(-x));
    case RECURRENT_TANH: return tanh(x);
    case RECURRENT_RELU: return x > 0 ? x : 0;
    case RECURRENT_AFFINE: return a->alpha * x + a->beta;
    case RECURRENT_LEAKYRELU: return x < 0 ? a->alpha * x : x;
    case RECURRENT_SCALEDTANH: return a->alpha * tanh(a->beta * x);
    case RECURRENT_HARDSIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
    case RECURRENT_ELU: return x < 0 ? a->alpha * expm1(x) : x;
    case RECURRENT_SOFTSIGN: return x / (1 + fabs(x));
    default: return softplus(x);
    }
}

/* How steep it is at x, or up to `near` beside it where it bends: what is off by a little may lie there. */
static double slope(const recurrent_activation *a, double x, double near) {
    const double alpha = fabs(a->alpha), y = function(a, x);
    switch (a->function) {
    case RECURRENT_SIGMOID: return y * (1 - y);
    case RECURRENT_TANH: return 1 - y * y;
    case RECURRENT_RELU: return x > -near;
    case RECURRENT_AFFINE: return alpha;
    case RECURRENT_LEAKYRELU: return x < -near ? alpha : fmax(alpha, 1);
    case RECURRENT_SCALEDTANH: return alpha * fabs(a->beta) * (1 - pow(tanh(a->beta * x), 2));
    case RECURRENT_HARDSIGMOID: return fabs(a->alpha * x + a->beta - 0.5) < 0.5 + alpha * near ? alpha : 0;
    case RECURRENT_ELU: return x < -near ? alpha * exp(x) : fmax(alpha, 1);
    case RECURRENT_SOFTSIGN: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
    default: return 1 / (1 + exp(-x)); /* softplus */
    }
}

static number activate(const walk *s, int which, number x) {
    const recurrent_activation *a = &s->p->activations[s->direction][which];
    const double clip = s->p->clip, near = sqrt(x.square) / 32, beta = a->beta;
    const double at = clip > 0 ? fmin(fmax(x.value, -clip), clip) : x.value, y = function(a, at);
    const double steep = clip > 0 && fabs(x.value) > clip + near ? 0 : slope(a, at, near);
    const double inside = a->function == RECURRENT_AFFINE || a->function == RECURRENT_HARDSIGMOID ? beta * beta : 0;
    return (number){y, steep * steep * x.square + inside + y * y};
}

static number plus(number a, number b) { return (number){a.value + b.value, a.square + b.square}; }

static number times(number a, number b) {
    return (number){a.value * b.value, a.value * a.value * b.square + b.value * b.value * a.square};
}

/* A sum that is stored: its own rounding counts as well. */
static number stored(number a) { return (number){a.value, a.square + a.value * a.value}; }

static number known(double x) { return (number){x, x * x}; } /* a term that is exact but for where it is added */

static number dot(const double *w, const double *x, int64_t count) {
    number all = {0, 0};
    for (int64_t k = 0; k < count; k++) {
        const double term = w[k] * x[k];
        all.value += term, all.square += term * term;
    }
    return all;
}

static number dot_state(const double *w, const number *x, int64_t count) {
    number all = {0, 0};
    for (int64_t k = 0; k < count; k++) {
        const double term = w[k] * x[k].value;
        all.value += term, all.square += term * term + w[k] * w[k] * x[k].square;
    }
    return all;
}

/* ---- one step of one unit ---- */

/* A gate's input: what x and what the state before bring, with their biases. */
typedef struct entry {
    number input, state;
} entry;

static number whole(const entry *e) { return plus(e->input, e->state); }

static number peep(const walk *s, number before, int which, int64_t unit, number state) {
    const recurrent_problem *p = s->p;
    if (p->peephole < 0) return before;
    const double weight = value_at(s, p->peephole, (s->direction * 3 + which) * p->hidden + unit);
    const number term = times((number){weight, 0}, state);
    return plus(before, (number){term.value, term.square + term.value * term.value});
}

static void step_lstm(const walk *s, const entry *e, int64_t at, int64_t unit) {
    enum { I, O, F, C };
    const number before = s->c[at], in = activate(s, 0, peep(s, whole(&e[I]), 0, unit, before));
    const number forget = s->p->input_forget ? (number){1 - in.value, in.square + 1}
                                             : activate(s, 0, peep(s, whole(&e[F]), 2, unit, before));
    const number c = stored(plus(times(forget, before), times(in, activate(s, 1, whole(&e[C])))));
    const number out = activate(s, 0, peep(s, whole(&e[O]), 1, unit, c));
    s->c[at] = c;
    s->next_h[at] = stored(times(out, activate(s, 2, c)));
}

static void finish_gru(const walk *s, number update, number fresh, int64_t at) {
    const number rest = {1 - update.value, update.square}, before = s->h[at];
    const number sum = plus(times(rest, fresh), times(update, before));
    const double apart = before.value - fresh.value; /* both products move with the update gate, against each other */
    const double alike = (fresh.value * fresh.value + before.value * before.value - apart * apart) * update.square;
    s->next_h[at] = stored((number){sum.value, sum.square - alike});
}

static void step_gru(const walk *s, const entry *e, int64_t at) {
    enum { Z, R, H };
    const number update = activate(s, 0, whole(&e[Z])), reset = activate(s, 0, whole(&e[R]));
    if (s->p->linear_before_reset) {
        finish_gru(s, update, activate(s, 1, plus(e[H].input, times(reset, e[H].state))), at);
    } else {
        s->update[at] = update;
        s->reset_h[at] = stored(times(reset, s->h[at]));
    }
}

static entry entry_of(const walk *s, int gate, int64_t row, int64_t unit, const double *w, const double *r,
                      const number *state) {
    const recurrent_problem *p = s->p;
    entry e = {dot(w, s->x + row * p->input, p->input), dot_state(r, state + row * p->hidden, p->hidden)};
    if (p->bias >= 0) {
        const int64_t at = s->direction * 2 * p->gates * p->hidden + gate * p->hidden + unit;
        e.input = plus(e.input, known(value_at(s, p->bias, at)));
        e.state = plus(e.state, known(value_at(s, p->bias, at + p->gates * p->hidden)));
    }
    return e;
}

/* Rows of both weights for a gate's unit, as doubles. */
static const double *load_rows(const walk *s, int thread, int gate, int64_t unit) {
    const recurrent_problem *p = s->p;
    double *room = s->weights + (thread * RECURRENT_MOST_GATES + gate) * (p->input + p->hidden);
    const int64_t line = (s->direction * p->gates + gate) * p->hidden + unit;
    cpu_number_load(p->type, s->tensors[RECURRENT_W], line * p->input, 1, p->input, room);
    cpu_number_load(p->type, s->tensors[RECURRENT_R], line * p->hidden, 1, p->hidden, room + p->input);
    return room;
}

static void step_units(void *context, int thread, int threads) {
    const walk *s = context;
    const recurrent_problem *p = s->p;
    int64_t from, to;
    cpu_team_share(p->hidden, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const double *rows[RECURRENT_MOST_GATES];
        for (int g = 0; g < p->gates; g++) rows[g] = load_rows(s, thread, g, unit);
        for (int64_t row = 0; row < p->batch; row++) {
            entry e[RECURRENT_MOST_GATES] = {{{0, 0}, {0, 0}}};
            const int64_t at = row * p->hidden + unit;
            if (s->step >= length_of(s, row)) continue;
            for (int g = 0; g < p->gates; g++) e[g] = entry_of(s, g, row, unit, rows[g], rows[g] + p->input, s->h);
            if (p->cell == RECURRENT_LSTM)
                step_lstm(s, e, at, unit);
            else if (p->cell == RECURRENT_GRU)
                step_gru(s, e, at);
            else
                s->next_h[at] = activate(s, 0, whole(&e[0]));
        }
    }
}

/* The third gate of a GRU that resets the state before the product: all of it has to be there first. */
static void step_reset(void *context, int thread, int threads) {
    enum { H = 2 };
    const walk *s = context;
    const recurrent_problem *p = s->p;
    int64_t from, to;
    cpu_team_share(p->hidden, thread, threads, &from, &to);
    for (int64_t unit = from; unit < to; unit++) {
        const double *w = load_rows(s, thread, H, unit);
        for (int64_t row = 0; row < p->batch; row++) {
            const int64_t at = row * p->hidden + unit;
            if (s->step >= length_of(s, row)) continue;
            const entry e = entry_of(s, H, row, unit, w, w + p->input, s->reset_h);
            finish_gru(s, s->update[at], activate(s, 1, whole(&e)), at);
        }
    }
}

/* ---- all steps ---- */

static void load_step(const walk *s) {
    const recurrent_problem *p = s->p;
    for (int64_t row = 0; row < p->batch; row++) {
        if (s->step >= length_of(s, row)) continue;
        const int64_t time = recurrent_time(p, s->direction, s->step, length_of(s, row));
        cpu_number_load(p->type, s->tensors[RECURRENT_X], time * p->x_step + row * p->x_row, 1, p->input,
                        s->x + row * p->input);
    }
}

static void keep_step(const walk *s) {
    const recurrent_problem *p = s->p;
    for (int64_t row = 0; row < p->batch; row++) {
        if (s->step >= length_of(s, row)) continue;
        const int64_t time = recurrent_time(p, s->direction, s->step, length_of(s, row));
        memcpy(s->h + row * p->hidden, s->next_h + row * p->hidden, (size_t)p->hidden * sizeof *s->h);
        if (s->y)
            memcpy(s->y + time * p->y_step + s->direction * p->y_direction + row * p->y_row, s->h + row * p->hidden,
                   (size_t)p->hidden * sizeof *s->h);
    }
}

static void keep_state(const walk *s, const number *state, number *to) {
    const recurrent_problem *p = s->p;
    for (int64_t row = 0; to && row < p->batch; row++)
        memcpy(to + s->direction * p->state_direction + row * p->state_row, state + row * p->hidden,
               (size_t)p->hidden * sizeof *to);
}

static void load_state(const walk *s, int tensor, number *to) {
    const recurrent_problem *p = s->p;
    for (int64_t row = 0; row < p->batch; row++)
        for (int64_t k = 0; k < p->hidden; k++) {
            const int64_t at = s->direction * p->state_direction + row * p->state_row + k;
            to[row * p->hidden + k] = (number){value_at(s, tensor, at), 0};
        }
}

static void walk_direction(walk *s) {
    const recurrent_problem *p = s->p;
    load_state(s, p->h0, s->h);
    load_state(s, p->c0, s->c);
    for (s->step = 0; s->step < p->steps; s->step++) {
        load_step(s);
        cpu_team_run(step_units, s);
        if (p->cell == RECURRENT_GRU && !p->linear_before_reset) cpu_team_run(step_reset, s);
        keep_step(s);
    }
    keep_state(s, s->h, s->y_h);
    keep_state(s, s->c, s->y_c);
}

/* Zeros stay behind the end of a sequence: there y is 0. */
static scout_answer walk_all(const scout_op *op, const recurrent_problem *p, void *const *tensors, number **outputs,
                             scout_why *why) {
    const size_t cells = (size_t)(p->batch * p->hidden), row = (size_t)(p->input + p->hidden);
    walk s = {.p = p, .tensors = tensors, .lengths = p->lengths >= 0 ? tensors[p->lengths] : NULL};
    number *states = calloc(5 * cells, sizeof *states);
    s.x = calloc((size_t)(p->batch * p->input), sizeof *s.x);
    s.weights = calloc(row * RECURRENT_MOST_GATES * (size_t)cpu_team_size(), sizeof *s.weights);
    bool room = states && s.x && s.weights;
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        if (op->tensors[k].role != SCOUT_OUTPUT) continue;
        outputs[k] = calloc((size_t)op_elements(&op->tensors[k]), sizeof(number));
        room = room && outputs[k];
    }
    if (room) {
        s.h = states, s.c = states + cells, s.next_h = s.c + cells, s.reset_h = s.next_h + cells;
        s.update = s.reset_h + cells;
        s.y = p->y >= 0 ? outputs[p->y] : NULL, s.y_h = p->y_h >= 0 ? outputs[p->y_h] : NULL;
        s.y_c = p->y_c >= 0 ? outputs[p->y_c] : NULL;
        for (s.direction = 0; s.direction < p->directions; s.direction++) walk_direction(&s);
    }
    free(states), free(s.x), free(s.weights);
    return room ? SCOUT_OK : scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
}

/* ---- the reference ---- */

/* Where errors grow from step to step, as with unbounded activations, outputs cannot be told from rounding errors. */
static bool bounded(const scout_op *op, number *const *outputs) {
    for (uint32_t k = 0; k < op->tensor_count; k++)
        for (int64_t at = 0; outputs[k] && at < op_elements(&op->tensors[k]); at++) {
            const double most = recurrent_most_spread * (1 + fabs(outputs[k][at].value));
            if (!(outputs[k][at].square <= most * most)) return false;
        }
    return true;
}

static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state, (void)op, (void)output;
    return 1;
}

/* Here a tensor that is an output is what the walk found (begin puts it there). */
static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const number *found = tensors[output];
    const double least =
        op->tensors[output].type == SCOUT_FP16 ? 0x1p-14 : 0x1p-100; /* below, types are coarse, and gates become 0 */
    (void)state, (void)scratch;
    for (int64_t k = 0; k < count; k++) {
        want[k] = found[from + k].value;
        spread[k] = want[k] == 0 && found[from + k].square == 0 ? 0 : fmax(sqrt(found[from + k].square), least);
    }
    return SCOUT_OK;
}

static const cpu_whole kind = {NULL, grain, compute, NULL};

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    number *outputs[SCOUT_MAX_TENSORS] = {NULL};
    void *with[SCOUT_MAX_TENSORS];
    const double products =
        (double)(p.steps * p.batch) * (double)(p.directions * p.gates * p.hidden) * (double)(p.input + p.hidden);
    (void)device, (void)seed;
    *check = NULL;
    if (products > most_products)
        return scout_say(why, SCOUT_NO, "shape", "its reference would take minutes: %.3g products in fp64", products);
    scout_answer answer = walk_all(op, &p, tensors, outputs, why);
    if (answer == SCOUT_OK && !bounded(op, outputs)) answer = recurrent_say_unbounded(why);
    for (uint32_t k = 0; k < op->tensor_count; k++) with[k] = outputs[k] ? (void *)outputs[k] : tensors[k];
    if (answer == SCOUT_OK) answer = cpu_whole_begin(&kind, op, with, check, why);
    for (uint32_t k = 0; k < op->tensor_count; k++) free(outputs[k]);
    return answer;
}

const scout_reference cpu_reference_recurrent = {.size = sizeof(scout_reference),
                                                 .kind = SCOUT_RECURRENT,
                                                 .begin = begin,
                                                 .compare = cpu_whole_compare,
                                                 .end = cpu_whole_end,
                                                 .compare_at = cpu_whole_compare_at};
