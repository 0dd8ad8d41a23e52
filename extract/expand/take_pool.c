/* Pools of what a mask leaves. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <float.h>

/* What is left out is below all else. */
void take_masked_pool(expansion *x) {
    enum { INPUT, MASK };
    tensor *const in = part_in(x, INPUT), *const mask = part_in(x, MASK);
    step pool = {.op_type = "MaxPool"};
    x->failed = x->failed || !mask;
    part_like_node(x, &pool);
    if (x->failed || !mask) return;
    tensor *const out = part_do(x, "Equal", mask, part_scalar(x, "out", mask->info->type, 0));
    tensor *const least = part_real(x, in, "least", -FLT_MAX);
    pool.in[0] = *part_make(x, &(step){.op_type = "Where", .in = {out, least, in}});
    if (!x->failed && !info_same_shape(pool.in[0]->info, in->info)) x->failed = true;
    part_end(x, &pool);
}
