/* Training: gradients look like what they are taken of, optimisers give back what they update; losses are a number, or
 * one per target where nothing is summed. */
#include "extract/infer/shape_need.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

void shape_training_gradient(infer *c) {
    const attr *xs = infer_attr(c, "xs");
    int n = infer_in_count(c);
    if (!xs || xs->kind != ATTR_STRINGS) infer_fail(c, "attribute 'xs' is missing");
    if (infer_out_count(c) > n || infer_out_count(c) > xs->n)
        infer_fail(c, "it has %d outputs for %d inputs", infer_out_count(c), n);
    for (int k = 0; k < infer_out_count(c); k++) shape_need_like(c, k, k);
}

/* Inputs: rate, step, then groups of as many tensors each: the values, their gradients, and one or two kinds of state.
 * All but the gradients come back, in that order. */
void shape_training_optimizer(infer *c) {
    int groups = !strcmp(c->node->op_type, "Adam") ? 4 : 3, count = infer_in_count(c) - 2;
    if (count % groups != 0)
        infer_fail(c, "it has %d tensors to work on, which is not a multiple of %d", count, groups);
    count /= groups;
    if (infer_out_count(c) > count * (groups - 1))
        infer_fail(c, "it has %d outputs for %d tensors", infer_out_count(c), count);
    for (int k = 0; k < infer_out_count(c); k++) {
        int group = k / count;
        shape_need_like(c, k, 2 + (group == 0 ? 0 : group + 1) * count + k % count);
    }
}

/* Scores are [batch, classes, …], targets the same without classes. False where a shape is not known. */
static bool loss(infer *c) {
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return false;
    const info *x = infer_in(c, 0), *target = infer_in(c, 1);
    bool fits = x->rank >= 2 && target->rank == x->rank - 1;
    for (int d = 0; fits && d < target->rank; d++) fits = target->dims[d] == x->dims[d == 0 ? 0 : d + 1];
    if (!fits) infer_fail(c, "targets %s do not fit scores %s", info_text(c->arena, target), info_text(c->arena, x));
    bool each = !strcmp(infer_attr_string(c, "reduction", "mean"), "none");
    infer_set(c, 0, x->type, each ? target->rank : 0, target->dims);
    return true;
}

void shape_loss_nll(infer *c) { loss(c); }

void shape_loss_softmax(infer *c) {
    if (loss(c)) infer_set(c, 1, infer_type(c, 0), infer_rank(c, 0), infer_in(c, 0)->dims);
}
