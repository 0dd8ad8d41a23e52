/* Losses: the score of each target, weighed, and their sum or mean. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <string.h>

enum { SCORES, TARGETS, WEIGHTS, CLASSES = 1 /* the axis of the classes */ };

static tensor *one(expansion *x, const step *s) { return *part_make(x, s); }

static tensor *chosen(expansion *x, tensor *which, tensor *there, tensor *elsewhere) {
    return one(x, &(step){.op_type = "Where", .in = {which, there, elsewhere}});
}

/* Which targets do not count; NULL: all do. */
static tensor *ignored(expansion *x) {
    const attr *index = graph_attr(x->n, "ignore_index", ATTR_INT);
    tensor *const targets = part_in(x, TARGETS);
    if (!index || !targets) return NULL;
    return one(x,
               &(step){.op_type = "Equal", .in = {targets, part_scalar(x, "ignored", targets->info->type, index->i)}});
}

/* How much each target counts; NULL: all count the same. */
static tensor *weights_of(expansion *x, tensor *targets, tensor *without) {
    tensor *const like = part_in(x, SCORES), *const told = part_in(x, WEIGHTS);
    tensor *each = told ? one(x, &(step){.op_type = "Gather", .in = {told, targets}}) : NULL;
    if (!without) return each;
    return chosen(x, without, part_real(x, like, "nothing", 0), each ? each : part_real(x, like, "once", 1));
}

static tensor *sum_of(expansion *x, tensor *t) {
    return one(x, &(step){.op_type = "ReduceSum", .in = {t}, .attrs = {int_attr("keepdims", 0)}});
}

/* Ends in the loss of these logarithms. */
static void lose(expansion *x, tensor *logarithms) {
    tensor *const without = ignored(x), *targets = part_in(x, TARGETS);
    const char *const reduction = graph_attr_string(x->n, "reduction", "mean");
    const bool mean = strcmp(reduction, "mean") == 0, each = strcmp(reduction, "none") == 0;
    if (!mean && !each && strcmp(reduction, "sum") != 0) x->failed = true;
    /* what does not count may be no class at all */
    if (without) targets = chosen(x, without, part_scalar(x, "first", targets->info->type, 0), targets);
    tensor *const column = one(x, &(step){.op_type = "Unsqueeze", .in = {targets, part_number(x, "axes", CLASSES)}});
    tensor *const picked =
        one(x, &(step){.op_type = "GatherElements", .in = {logarithms, column}, .attrs = {int_attr("axis", CLASSES)}});
    tensor *const flat = one(x, &(step){.op_type = "Squeeze", .in = {picked, part_number(x, "axes", CLASSES)}});
    tensor *const weights = weights_of(x, targets, without);
    const step negative = {.op_type = "Neg", .in = {flat}};
    if (each && !weights) {
        part_end(x, &negative);
        return;
    }
    tensor *const loss = one(x, &negative);
    const step weighed = {.op_type = "Mul", .in = {loss, weights}};
    if (each) {
        part_end(x, &weighed);
        return;
    }
    tensor *const all = weights ? one(x, &weighed) : loss;
    if (!mean || !weights) {
        part_end(
            x, &(step){.op_type = mean ? "ReduceMean" : "ReduceSum", .in = {all}, .attrs = {int_attr("keepdims", 0)}});
        return;
    }
    tensor *const sum = sum_of(x, all), *const count = sum_of(x, weights);
    part_end(x, &(step){.op_type = "Div", .in = {sum, count}});
}

void take_log_loss(expansion *x) { lose(x, part_in(x, SCORES)); }

void take_softmax_loss(expansion *x) {
    tensor *logarithms =
        one(x, &(step){.op_type = "LogSoftmax", .in = {part_in(x, SCORES)}, .attrs = {int_attr("axis", CLASSES)}});
    lose(x, logarithms);
    part_give(x, 1, logarithms);
}
