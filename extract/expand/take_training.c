/* Steps of training: each tensor is moved along its gradient, by a rate that all share. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <string.h>

enum { RATE, COUNT, FIRST };

/* What stands for one tensor; new ones where the node gives them back. */
typedef struct moved {
    tensor *value, *gradient, *first, *second; /* first, second: what is remembered of gradients */
} moved;

typedef moved step_fn(expansion *x, const moved *from, tensor *rate);
typedef tensor *rate_fn(expansion *x);

static tensor *times(expansion *x, tensor *t, const char *what, double factor) {
    return factor == 1 ? t : part_do(x, "Mul", t, part_real(x, t, what, factor));
}

static double told(const expansion *x, const char *name, double usual) { return graph_attr_float(x->n, name, usual); }

static tensor *regularised(expansion *x, const moved *from) {
    const double norm = told(x, "norm_coefficient", 0);
    if (norm == 0) return from->gradient;
    return part_do(x, "Add", times(x, from->value, "norm", norm), from->gradient);
}

/* Of the first step or of a later one. */
static tensor *later(expansion *x, tensor *then, tensor *at_first) {
    tensor *const count = part_in(x, COUNT);
    tensor *const begun = part_do(x, "Greater", count, part_scalar(x, "begin", DTYPE_INT64, 0));
    return *part_make(x, &(step){.op_type = "Where", .in = {begun, then, at_first}});
}

static tensor *count_as(expansion *x, const tensor *like) {
    return like ? part_cast(x, part_in(x, COUNT), like->info->type) : NULL;
}

/* ---- their rates ---- */

static tensor *plain_rate(expansion *x) { return part_in(x, RATE); }

static tensor *falling_rate(expansion *x) {
    tensor *const rate = part_in(x, RATE);
    const double falls = told(x, "decay_factor", 0);
    if (falls == 0) return rate;
    tensor *const slower = part_do(x, "Add", times(x, count_as(x, rate), "decay", falls), part_real(x, rate, "one", 1));
    return part_do(x, "Div", rate, slower);
}

/* What averages of gradients lack at first, for they begin with zeros. */
static tensor *rest(expansion *x, tensor *count, const char *what, double kept) {
    tensor *const left = part_do(x, "Pow", part_real(x, count, what, kept), count);
    return part_do(x, "Sub", part_real(x, count, "one", 1), left);
}

static tensor *adjusted_rate(expansion *x) {
    tensor *const rate = part_in(x, RATE), *const count = count_as(x, rate);
    tensor *const second = part_do(x, "Sqrt", rest(x, count, "beta", told(x, "beta", 0.999)), NULL);
    tensor *const first = rest(x, count, "alpha", told(x, "alpha", 0.9));
    return later(x, part_do(x, "Div", part_do(x, "Mul", rate, second), first), rate);
}

/* ---- and what they do with one tensor ---- */

static tensor *divided(expansion *x, tensor *move, tensor *squares) {
    tensor *const root = part_do(x, "Sqrt", squares, NULL);
    return part_do(x, "Div", move, part_do(x, "Add", root, part_real(x, root, "epsilon", told(x, "epsilon", 1e-6))));
}

static moved adagrad(expansion *x, const moved *from, tensor *rate) {
    tensor *const gradient = regularised(x, from);
    tensor *const squares = part_do(x, "Add", from->first, part_do(x, "Mul", gradient, gradient));
    tensor *const move = divided(x, part_do(x, "Mul", rate, gradient), squares);
    return (moved){.value = part_do(x, "Sub", from->value, move), .first = squares};
}

static tensor *average(expansion *x, tensor *old, tensor *now, const char *what, double kept) {
    tensor *const before = times(x, old, what, kept);
    return part_do(x, "Add", before, times(x, now, "share", 1 - kept));
}

static moved adam(expansion *x, const moved *from, tensor *rate) {
    tensor *const gradient = regularised(x, from);
    tensor *const mean = average(x, from->first, gradient, "alpha", told(x, "alpha", 0.9));
    tensor *const squares =
        average(x, from->second, part_do(x, "Mul", gradient, gradient), "beta", told(x, "beta", 0.999));
    tensor *const move = divided(x, part_do(x, "Mul", rate, mean), squares);
    tensor *const now = part_do(x, "Sub", from->value, move);
    return (moved){
        .value = times(x, now, "after", 1 - told(x, "norm_coefficient_post", 0)), .first = mean, .second = squares};
}

/* The first step has no momentum yet, and takes the whole gradient. */
static moved momentum(expansion *x, const moved *from, tensor *rate) {
    const double alpha = told(x, "alpha", 0), beta = told(x, "beta", 0);
    const char *const mode = graph_attr_string(x->n, "mode", "");
    const bool ahead = strcmp(mode, "nesterov") == 0;
    if (!ahead && strcmp(mode, "standard") != 0) x->failed = true;
    tensor *const gradient = regularised(x, from);
    tensor *const share = later(x, part_real(x, rate, "beta", beta), part_real(x, rate, "whole", 1));
    tensor *const own = part_do(x, "Mul", share, gradient);
    tensor *const along = part_do(x, "Add", times(x, from->first, "alpha", alpha), own);
    tensor *const way = ahead ? part_do(x, "Add", gradient, times(x, along, "alpha", alpha)) : along;
    return (moved){.value = part_do(x, "Sub", from->value, part_do(x, "Mul", rate, way)), .first = along};
}

static const struct trainer {
    const char *op_type;
    rate_fn *rate;
    step_fn *step;
    int groups; /* of inputs: values, gradients, and what is remembered of them */
} trainers[] = {
    /* sorted by names */
    {"Adagrad", falling_rate, adagrad, 3},
    {"Adam", adjusted_rate, adam, 4},
    {"Momentum", plain_rate, momentum, 3},
};

/* The first tensor's value is made last. */
void take_training_step(expansion *x) {
    const struct trainer *by = graph_row(trainers, sizeof trainers / sizeof *trainers, sizeof *trainers, x->n->op_type);
    const int count = (x->n->in_count - FIRST) / by->groups;
    if (count < 1 || count > MAX_STEPS) x->failed = true;
    tensor *const rate = x->failed ? NULL : by->rate(x);
    for (int k = count - 1; k >= 0 && !x->failed; k--) {
        const moved from = {part_in(x, FIRST + k), part_in(x, FIRST + count + k), part_in(x, FIRST + 2 * count + k),
                            part_in(x, FIRST + 3 * count + k)};
        const moved made = by->step(x, &from, rate);
        if (k == 0) part_end_made(x);
        if (k > 0) part_give(x, k, made.value);
        part_give(x, count + k, made.first);
        part_give(x, 2 * count + k, made.second);
    }
}
