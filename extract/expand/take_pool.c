/* Pools of what a mask leaves. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <float.h>

/* What is left out is below all else. */
void take_masked_pool(expansion *x) {
    enum { INPUT, MASK };
    tensor *const in = part_in(x, INPUT), *const mask = part_in(x, MASK);
    step pool = {.op_type = "MaxPool"};
    if (!mask) x->failed = true;
    part_like_node(x, &pool);
    const int64_t left = 0;
    const info *const none = mask ? info_of_ints(x->e->m->arena, mask->info->type, 0, info_no_dims, &left, 1) : NULL;
    tensor *const out = *part_make(x, &(step){.op_type = "Equal", .in = {mask, part_constant(x, "out", none)}});
    tensor *const least = part_real(x, in, "least", -FLT_MAX);
    pool.in[0] = *part_make(x, &(step){.op_type = "Where", .in = {out, least, in}});
    if (!x->failed && !info_same_shape(pool.in[0]->info, in->info)) x->failed = true;
    part_end(x, &pool);
}
