/* Several products of packed weights that read one input, which may have a norm before them. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include <string.h>

enum { INPUT, SKIP, SCALE, FIRST, EACH = 3 /* inputs of a product: weight, scales, bias */ };

typedef struct normed {
    tensor *out, *sum; /* sum: of the input and what is added to it; NULL where the node does not have it */
} normed;

static const double usual_epsilon = 1e-5;

/* Its input, or the norm of it; slot: of the node's output that is the sum. */
static normed norm(expansion *x, int slot) {
    tensor *const in = part_in(x, INPUT), *const skip = part_in(x, SKIP), *const scale = part_in(x, SCALE);
    const bool told = part_out(x, slot) != NULL;
    const attr epsilon = real_attr("epsilon", graph_attr_float(x->n, "epsilon", usual_epsilon));
    if ((skip && !scale) || (told && !skip)) x->failed = true;
    if (!scale) return (normed){in, NULL};
    step s = {
        .domain = "com.microsoft", .op_type = "SimplifiedLayerNormalization", .in = {in, scale}, .attrs = {epsilon}};
    if (!skip) return (normed){*part_make(x, &s), NULL};
    enum { MEAN = 1, DEVIATION, SUM, OUTPUTS };
    s.op_type = "SkipSimplifiedLayerNormalization";
    s.in[1] = skip, s.in[2] = scale;
    s.outputs = told ? OUTPUTS : 1;
    s.left_out = 1U << MEAN | 1U << DEVIATION;
    tensor *const *made = part_make(x, &s);
    return (normed){made[0], told ? made[SUM] : NULL};
}

/* The product of weight `which`, as a step: the last one becomes the node. */
static step product(const expansion *x, tensor *in, int which, const char *width) {
    static const int bias = 5; /* slot of the part */
    step s = {.domain = "com.microsoft",
              .op_type = "MatMulNBits",
              .in = {in, part_in(x, FIRST + EACH * which), part_in(x, FIRST + EACH * which + 1)},
              .attrs = {int_attr("K", graph_attr_int(x->n, "K", 0)), int_attr("N", graph_attr_int(x->n, width, 0)),
                        int_attr("bits", graph_attr_int(x->n, "bits", 4)),
                        int_attr("block_size", graph_attr_int(x->n, "block_size", 0))}};
    s.in[bias] = part_in(x, FIRST + EACH * which + 2);
    return s;
}

void take_packed_gate(expansion *x) {
    enum { GATE, UP, SUM = 1 };
    if (strcmp(graph_attr_string(x->n, "activation", ""), "silu") != 0) x->failed = true; /* the only one there is */
    const normed in = norm(x, SUM);
    step gate = product(x, in.out, GATE, "N"), up = product(x, in.out, UP, "N");
    tensor *const opened = *part_make(x, &(step){.domain = "com.microsoft",
                                                 .op_type = "QuickGelu",
                                                 .in = {*part_make(x, &gate)},
                                                 .attrs = {real_attr("alpha", 1)}});
    tensor *const values = *part_make(x, &up);
    part_end(x, &(step){.op_type = "Mul", .in = {opened, values}});
    part_give(x, SUM, in.sum);
}

void take_packed_projections(expansion *x) {
    enum { QUERIES, KEYS, VALUES, SUM };
    const normed in = norm(x, SUM);
    const step of_queries = product(x, in.out, QUERIES, "Nq"), of_keys = product(x, in.out, KEYS, "Nkv"),
               of_values = product(x, in.out, VALUES, "Nkv");
    tensor *const keys = *part_make(x, &of_keys), *const values = *part_make(x, &of_values);
    part_end(x, &of_queries);
    part_give(x, KEYS, keys);
    part_give(x, VALUES, values);
    part_give(x, SUM, in.sum);
}
