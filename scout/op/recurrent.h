/* A recurrent layer (LSTM, GRU, RNN) with the meaning, the order of gates and the layouts of ONNX: gates i, o, f, c of
 * an LSTM, z, r, h of a GRU. Header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_RECURRENT_H
#define SCOUT_OP_RECURRENT_H

#include "scout/op/op.h"

/* Places in op->tensors. bias, lengths, h0, c0, peephole and the outputs y, y_h, y_c follow where the operation has
 * them: op_tensor finds them by name. */
enum { RECURRENT_X = 0, RECURRENT_W = 1, RECURRENT_R = 2 };

enum { RECURRENT_MOST_GATES = 4, RECURRENT_ACTIVATIONS = 3 };

/* So many usual workspaces a layer may have: a library's that keeps its weights in registers stages all of its steps.
 * Gates of so many steps as fit one of these still lie in a cache when they are read. */
enum { RECURRENT_WORKSPACES = 16 };

typedef enum recurrent_cell { RECURRENT_NONE, RECURRENT_RNN, RECURRENT_GRU, RECURRENT_LSTM } recurrent_cell;

typedef enum recurrent_function {
    RECURRENT_SIGMOID,
    RECURRENT_TANH,
    RECURRENT_RELU,
    RECURRENT_AFFINE,      /* alpha x + beta */
    RECURRENT_LEAKYRELU,   /* alpha x below 0 */
    RECURRENT_SCALEDTANH,  /* alpha tanh(beta x) */
    RECURRENT_HARDSIGMOID, /* alpha x + beta, from 0 to 1 */
    RECURRENT_ELU,
    RECURRENT_SOFTSIGN,
    RECURRENT_SOFTPLUS,
    RECURRENT_FUNCTIONS
} recurrent_function;

typedef struct recurrent_activation {
    recurrent_function function;
    double alpha, beta;
} recurrent_activation;

typedef struct recurrent_problem {
    recurrent_cell cell; /* RECURRENT_NONE: it is none, or an activation is not known */
    int gates;
    int64_t steps, batch, input, hidden;
    int directions,
        reverse; /* reverse: the only direction runs from the last step to the first, as a second one does */
    int batch_first, input_forget, linear_before_reset;
    double clip; /* 0: none */
    uint32_t type;
    recurrent_activation activations[2][RECURRENT_ACTIVATIONS]; /* f, g, h of each direction */
    int customary;                                              /* these are the usual ones */
    int bias, lengths, h0, c0, peephole, y, y_h, y_c;           /* tensors; -1: none */
    int64_t x_step, x_row;                                      /* element (t, b, i) of x */
    int64_t y_step, y_direction, y_row;                         /* element (t, d, b, j) of y */
    int64_t state_direction, state_row;                         /* element (d, b, j) of a state */
} recurrent_problem;

static const struct recurrent_function_row {
    const char *name;
    int takes; /* 1: alpha; 2: beta too */
    double alpha, beta;
} recurrent_function_rows[RECURRENT_FUNCTIONS] = {
    [RECURRENT_SIGMOID] = {"sigmoid", 0, 0, 0},
    [RECURRENT_TANH] = {"tanh", 0, 0, 0},
    [RECURRENT_RELU] = {"relu", 0, 0, 0},
    [RECURRENT_AFFINE] = {"affine", 2, 1, 0},
    [RECURRENT_LEAKYRELU] = {"leakyrelu", 1, 0.01, 0},
    [RECURRENT_SCALEDTANH] = {"scaledtanh", 2, 1, 1},
    [RECURRENT_HARDSIGMOID] = {"hardsigmoid", 2, 0.2, 0.5},
    [RECURRENT_ELU] = {"elu", 1, 1, 0},
    [RECURRENT_SOFTSIGN] = {"softsign", 0, 0, 0},
    [RECURRENT_SOFTPLUS] = {"softplus", 0, 0, 0},
};

/* Its largest slope. */
static inline double recurrent_steepest(const recurrent_activation *a) {
    double s = 1;
    if (a->function == RECURRENT_SIGMOID) s = 0.25;
    if (a->function == RECURRENT_AFFINE || a->function == RECURRENT_HARDSIGMOID) s = a->alpha;
    if (a->function == RECURRENT_LEAKYRELU || a->function == RECURRENT_ELU) s = a->alpha > 1 ? a->alpha : 1;
    if (a->function == RECURRENT_LEAKYRELU && a->alpha < -1) s = a->alpha;
    if (a->function == RECURRENT_SCALEDTANH) s = a->alpha * a->beta;
    return s < 0 ? -s : s;
}

/* The next of a list of numbers ("0.2,0.5"); the text behind it. NULL stays NULL: there are no more. */
static inline const char *recurrent_number(const char *list, double *out) {
    char *end = NULL;
    if (!list || !*list) return NULL;
    const double x = strtod(list, &end);
    if (end == list) return NULL;
    *out = x;
    return *end == ',' ? end + 1 : end;
}

/* A field that is such a list; a single whole number comes as a number, and is written into `room`. NULL: none. */
static inline const char *recurrent_list(const scout_op *op, const char *name, char *room, size_t size) {
    const scout_field *f = op_field(op, name);
    if (!f || f->text) return f ? f->text : NULL;
    snprintf(room, size, "%lld", (long long)f->number);
    return room;
}

/* The function named first in the list; the text behind it. NULL: unknown. */
static inline const char *recurrent_name(const char *list, recurrent_function *out) {
    const size_t length = strcspn(list, ",");
    for (int k = 0; k < RECURRENT_FUNCTIONS; k++) {
        const char *name = recurrent_function_rows[k].name;
        if (strlen(name) != length || strncmp(name, list, length) != 0) continue;
        *out = (recurrent_function)k;
        return list[length] == ',' ? list + length + 1 : list + length;
    }
    return NULL;
}

/* Names stand one after the other, f, g, h of one direction and then of the next; alpha and beta have a number for each
 * function that takes one. 0: one is not known, or there are too few or too many. */
static inline int recurrent_read_activations(recurrent_problem *p, const scout_op *op) {
    static const recurrent_function customary[] = {RECURRENT_SIGMOID, RECURRENT_TANH, RECURRENT_TANH};
    const int each = p->cell == RECURRENT_LSTM ? 3 : p->cell == RECURRENT_GRU ? 2 : 1;
    char one[24], other[24];
    const char *names = op_text(op, "activations"), *alphas = recurrent_list(op, "activation_alpha", one, sizeof one),
               *betas = recurrent_list(op, "activation_beta", other, sizeof other);
    p->customary = 1;
    for (int d = 0; d < p->directions; d++)
        for (int k = 0; k < each; k++) {
            recurrent_activation *a = &p->activations[d][k];
            const recurrent_function usual = p->cell == RECURRENT_RNN ? RECURRENT_TANH : customary[k];
            a->function = usual;
            if (names && (!*names || !(names = recurrent_name(names, &a->function)))) return 0;
            const struct recurrent_function_row *row = &recurrent_function_rows[a->function];
            a->alpha = row->alpha, a->beta = row->beta;
            if (row->takes > 0) alphas = recurrent_number(alphas, &a->alpha);
            if (row->takes > 1) betas = recurrent_number(betas, &a->beta);
            p->customary = p->customary && a->function == usual;
        }
    return !names || !*names;
}

static inline recurrent_cell recurrent_cell_of(const char *what) {
    static const char *const names[] = {"", "rnn", "gru", "lstm"};
    for (int k = RECURRENT_RNN; what && k <= RECURRENT_LSTM; k++)
        if (strcmp(names[k], what) == 0) return (recurrent_cell)k;
    return RECURRENT_NONE;
}

static inline void recurrent_set_strides(recurrent_problem *p) {
    const int64_t n = p->batch, h = p->hidden, d = p->directions;
    p->x_step = p->batch_first ? p->input : n * p->input;
    p->x_row = p->batch_first ? p->steps * p->input : p->input;
    p->y_step = p->batch_first ? d * h : d * n * h;
    p->y_direction = p->batch_first ? h : n * h;
    p->y_row = p->batch_first ? p->steps * d * h : h;
    p->state_direction = p->batch_first ? h : n * h;
    p->state_row = p->batch_first ? d * h : h;
}

static inline recurrent_problem recurrent_problem_of(const scout_op *op) {
    static const int gates[] = {0, 1, 3, 4};
    const char *direction = op_text(op, "direction"), *order = op_text(op, "order");
    recurrent_problem p;
    memset(&p, 0, sizeof p);
    p.cell = recurrent_cell_of(op->what);
    p.gates = gates[p.cell];
    p.steps = op->shape[0], p.batch = op->shape[1], p.input = op->shape[2], p.hidden = op->shape[3];
    p.directions = op_number(op, "directions", 1) == 2 ? 2 : 1;
    p.reverse = direction && strcmp(direction, "reverse") == 0;
    p.batch_first = order && strcmp(order, "batch_first") == 0;
    p.input_forget = op_number(op, "input_forget", 0) != 0;
    p.linear_before_reset = op_number(op, "linear_before_reset", 0) != 0;
    p.clip = op_real(op, "clip", 0);
    p.type = op->input;
    p.bias = op_tensor(op, "bias"), p.lengths = op_tensor(op, "lengths");
    p.h0 = op_tensor(op, "h0"), p.c0 = op_tensor(op, "c0"), p.peephole = op_tensor(op, "peephole");
    p.y = op_tensor(op, "y"), p.y_h = op_tensor(op, "y_h"), p.y_c = op_tensor(op, "y_c");
    recurrent_set_strides(&p);
    if (p.cell != RECURRENT_NONE && !recurrent_read_activations(&p, op)) p.cell = RECURRENT_NONE;
    return p;
}

/* A reference refuses a layer with a spread larger than so many times the number, or 1. */
static const double recurrent_most_spread = 1024;

static inline scout_answer recurrent_say_unbounded(scout_why *why) {
    return scout_say(why, SCOUT_NO, "feature", "errors grow from step to step, so that outputs cannot be checked");
}

/* How many steps a sequence has. What is in the tensor is only known as it runs: none or all where it is no such
 * number. */
static inline int64_t recurrent_length(const recurrent_problem *p, const int32_t *lengths, int64_t row) {
    if (!lengths) return p->steps;
    return lengths[row] < 0 ? 0 : lengths[row] < p->steps ? lengths[row] : p->steps;
}

/* Whether that direction goes from the last step to the first. */
static inline int recurrent_backwards(const recurrent_problem *p, int direction) {
    return direction == 1 || p->reverse;
}

/* The place in time of a step of a sequence of that length. */
static inline int64_t recurrent_time(const recurrent_problem *p, int direction, int64_t step, int64_t length) {
    return recurrent_backwards(p, direction) ? length - 1 - step : step;
}

#endif
