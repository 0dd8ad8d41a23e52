/* Training: gradients look like what they are taken of, optimisers give back what they update. */
#include "extract/infer/shape_need.h"
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
