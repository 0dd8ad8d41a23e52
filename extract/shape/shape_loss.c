/* Losses: a number, or one per target where nothing is summed. */
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

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
