/* Elementwise operations that follow one another as one pass. */
#include "scout/fusion/elementwise_join.h"
#include "scout/fusion/fusion_internal.h"

/* Tensors of one pass are told by their places: several may have the same name. */
bool fusion_chain(fusion_maker *m) {
    fusion *f = m->f;
    elementwise_join_part *where = arena_array(m->a, elementwise_join_part, f->op_count);
    const operation *parts[FUSION_PARTS];
    for (int k = 0; k < f->op_count; k++) parts[k] = f->parts[k].operation;
    if (!elementwise_join(parts, f->op_count, m->a, &f->fused, where, &m->why)) return false;
    scout_op *whole = arena_array(m->a, scout_op, 1);
    if (!fusion_build(m, &f->fused, whole)) return false;
    for (int k = 0; k < f->op_count; k++) {
        const int last = (int)m->ops[k].tensor_count - 1;
        if (where[k].tensor_count != last)
            return fusion_refuse(m, "feature", "%.80s has other operands than its place in the chain", parts[k]->id);
        for (int t = 0; t < last; t++) {
            const int at = where[k].tensors[t];
            fusion_put(m, k, t, at < 0 ? fusion_between(m, k - 1) : arena_printf(m->a, "#%d", at), 0, 0);
        }
        const bool ends = k == f->op_count - 1;
        fusion_put(m, k, last, ends ? arena_printf(m->a, "#%d", (int)whole->tensor_count - 1) : fusion_between(m, k), 0,
                   0);
    }
    return true;
}
