/* Mixtures of experts. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

/* Inputs of the first product, the second one, and the one beside the first. */
enum { FIRST, SECOND, BESIDE, PRODUCTS };

static const struct expert_inputs {
    const char *op_type;
    int weights[PRODUCTS], bias[PRODUCTS], scales[PRODUCTS], zeros[PRODUCTS]; /* slots; -1: none */
    int shares, more; /* what the chosen count, where not the router says it; what follows is not known here */
} expert_inputs[] = {
    {"MoE", {2, 4, 6}, {3, 5, 7}, {-1, -1, -1}, {-1, -1, -1}, -1, 8},
    {"QMoE", {2, 5, 8}, {4, 7, 10}, {3, 6, 9}, {11, 12, 13}, 14, 15},
};

/* Which tokens an expert gets, only data decide. Here each gets as many, of no more experts than there are choices, and
 * where they come from and go to is assumed. */
typedef struct experts {
    const struct expert_inputs *of;
    int64_t count, used, rows; /* how many there are, and of those that are used the tokens of each */
    int64_t tokens, top_k, hidden, inner;
    int64_t each; /* numbers of a weight's element: more than 1 in bytes of few bits */
} experts;

static bool is_stack(const tensor *t, int64_t count, int64_t rows, int64_t cols) {
    return tensor_rank(t) == 3 && tensor_dim(t, 0) == count && tensor_dim(t, 1) == rows && tensor_dim(t, 2) == cols;
}

/* Its form of choosing and of numbers is one that parts can have. */
static bool is_plain(const expansion *x, const struct expert_inputs *of) {
    static const char *const others[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
    const int64_t bits = graph_attr_int(x->n, "expert_weight_bits", 4);
    bool plain = (bits == 4 || bits == 8) && strcmp(graph_attr_string(x->n, "quant_type", "int"), "int") == 0;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        plain = plain && graph_attr_int(x->n, others[k], bits) == bits;
    for (int k = 0; k < x->n->in_count; k++)
        plain =
            plain && (!part_in(x, k) || (k < of->more && !part_in(x, k)->info->inexact && !part_in(x, k)->info->least));
    return plain;
}

static experts find_experts(expansion *x) {
    tensor *const tokens = part_in(x, 0), *const router = part_in(x, 1);
    const struct expert_inputs *of =
        graph_row(expert_inputs, sizeof expert_inputs / sizeof *expert_inputs, sizeof *expert_inputs, x->n->op_type);
    const bool packed = of->scales[FIRST] >= 0;
    experts e = {.of = of,
                 .count = tensor_dim(part_in(x, of->weights[FIRST]), 0),
                 .hidden = tensor_dim(tokens, -1),
                 .top_k = graph_attr_int(x->n, "k", 1),
                 .each = packed ? 8 / (graph_attr_int(x->n, "expert_weight_bits", 4) == 4 ? 4 : 8) : 1};
    if (x->failed || e.count < 1 || e.hidden < 1 || e.top_k < 1 || e.top_k > e.count || tensor_rank(tokens) < 2 ||
        tensor_count(tokens) < 1 || !is_plain(x, of)) {
        x->failed = true;
        return e;
    }
    e.tokens = tensor_count(tokens) / e.hidden;
    e.inner = checked_mul(tensor_count(part_in(x, of->weights[SECOND])) / e.count, e.each) / e.hidden;
    const int64_t choices = checked_mul(e.tokens, e.top_k);
    e.used = choices < e.count ? choices : e.count;
    e.rows = choices / e.used + (choices % e.used != 0);
    if (tensor_dim(router, -1) != e.count || tensor_count(router) != checked_mul(e.tokens, e.count)) x->failed = true;
    return e;
}

static tensor *assumed(expansion *x, const char *what, int rank, const int64_t *dims) {
    arena *a = x->e->m->arena;
    return part_tensor(x, arena_printf(a, "%s/%s", x->n->name, what), TENSOR_ASSUMED,
                       info_tensor(a, DTYPE_INT32, rank, dims));
}

/* Of a constant they lie where it begins; of others no program would make a copy. */
static tensor *of_used(expansion *x, const experts *e, tensor *t) {
    if (!t || e->used == e->count) return t;
    if (!t->is_constant && t->source != TENSOR_INITIALIZER) x->failed = true;
    return part_slice(x, t, 0, 0, e->used);
}

/* Of scales or zero points: as many numbers for each column of each expert. */
static tensor *by_column(expansion *x, const experts *e, tensor *t, int64_t width) {
    const int64_t rest = tensor_count(t) / e->count / (width > 0 ? width : 1);
    const bool by_columns =
        tensor_rank(t) > 1 && rest > 0 && tensor_count(t) == checked_mul(checked_mul(e->count, width), rest);
    const int64_t dims[] = {e->count, by_columns ? width : 1, by_columns ? rest : tensor_count(t) / e->count};
    if (!t) return NULL;
    if (tensor_dim(t, 0) != e->count) x->failed = true;
    return of_used(x, e, part_reshaped(x, t, sizeof dims / sizeof *dims, dims));
}

static bool holds_bytes(const tensor *t) {
    const dtype_info *is = dtype_get(t ? t->info->type : DTYPE_NONE);
    return is->cls == DTYPE_CLASS_INT && is->bits == 8;
}

/* A matrix of few bits is [width, depth], with scales for a column or for blocks of it. */
static tensor *packed_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const stack = part_in(x, e->of->weights[which]);
    const int64_t depth = tensor_dim(rows, -1);
    tensor *const scales = by_column(x, e, part_in(x, e->of->scales[which]), width);
    const int64_t blocks = tensor_dim(scales, 2), block = blocks > 0 ? depth / blocks : 0, bytes = block / e->each;
    const int64_t said = graph_attr_int(x->n, "block_size", 0);
    const bool whole = block > 0 && block * blocks == depth && bytes * e->each == block && (said == 0 || said == block);
    if (!whole || tensor_dim(scales, 1) != width || !holds_bytes(stack) ||
        !is_stack(stack, e->count, width, bytes * blocks))
        x->failed = true;
    if (x->failed) return NULL;
    const int64_t dims[] = {e->used, width, blocks, bytes};
    return *part_make(x, &(step){.domain = "com.microsoft",
                                 .op_type = "MatMulNBits",
                                 .in = {rows, part_reshaped(x, of_used(x, e, stack), sizeof dims / sizeof *dims, dims),
                                        scales, by_column(x, e, part_in(x, e->of->zeros[which]), width)},
                                 .attrs = {int_attr("K", depth), int_attr("N", width), int_attr("bits", 8 / e->each),
                                           int_attr("block_size", blocks > 1 ? block : 0)}});
}

/* Older models keep a matrix as [depth, width]. */
static tensor *plain_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const stack = part_in(x, e->of->weights[which]);
    const int64_t depth = tensor_dim(rows, -1);
    const bool turned = is_stack(stack, e->count, width, depth);
    if (!turned && !is_stack(stack, e->count, depth, width)) x->failed = true;
    return *part_make(x, &(step){.domain = "com.microsoft",
                                 .op_type = "FusedMatMul",
                                 .in = {rows, of_used(x, e, stack)},
                                 .attrs = {int_attr("transB", turned)}});
}

/* Each expert's rows times its matrix. */
static tensor *expert_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const bias = part_in(x, e->of->bias[which]);
    tensor *made =
        e->of->scales[which] >= 0 ? packed_product(x, e, rows, which, width) : plain_product(x, e, rows, which, width);
    if (!bias) return made;
    if (tensor_rank(bias) != 2 || tensor_dim(bias, 0) != e->count || tensor_dim(bias, 1) != width) x->failed = true;
    return part_add(
        x, made,
        *part_make(x, &(step){.op_type = "Unsqueeze", .in = {of_used(x, e, bias), part_number(x, "axes", 1)}}));
}

static const struct activation {
    const char *name, *domain, *op_type; /* NULL: none */
    bool turned;                         /* x sigmoid(alpha x) */
} activations[] = {
    /* sorted by names */
    {"gelu", "com.microsoft", "FastGelu", false}, /* by the hyperbolic tangent, as onnxruntime has it */
    {"identity", NULL, NULL, false},
    {"relu", "", "Relu", false},
    {"silu", "com.microsoft", "QuickGelu", true},
    {"swiglu", "com.microsoft", "QuickGelu", true},
};

static tensor *activated(expansion *x, const struct activation *by, tensor *t, double alpha) {
    if (!by->op_type) return t;
    return *part_make(x, &(step){.domain = by->domain,
                                 .op_type = by->op_type,
                                 .in = {t},
                                 .attrs = {by->turned ? real_attr("alpha", alpha) : (attr){.name = NULL}}});
}

/* Gate and values of one product: one beside the other, or all of one before the other. */
static void take_halves(expansion *x, const experts *e, tensor *both, tensor *halves[2]) {
    enum { IN_BLOCKS = 2, AXIS = 3 };
    const int64_t pairs[] = {e->used, e->rows, e->inner, 2}, ones[] = {1, 1}, sizes[] = {e->inner, e->inner};
    if (graph_attr_int(x->n, "swiglu_fusion", 0) == IN_BLOCKS) {
        tensor *const *parts = part_split(x, both, -1, 2, sizes);
        for (int k = 0; k < 2; k++) halves[k] = parts[k];
        return;
    }
    tensor *const *parts = part_split(x, part_reshaped(x, both, sizeof pairs / sizeof *pairs, pairs), AXIS, 2, ones);
    for (int k = 0; k < 2; k++)
        halves[k] = *part_make(x, &(step){.op_type = "Squeeze", .in = {parts[k], part_number(x, "axes", AXIS)}});
}

/* Both are cut, and what the gate is multiplied with is shifted. */
static void limit(expansion *x, tensor *halves[2]) {
    const attr *most = graph_attr(x->n, "swiglu_limit", ATTR_FLOAT);
    const double beta = graph_attr_float(x->n, "activation_beta", 0);
    for (int k = 0; most && k < 2; k++)
        halves[k] = *part_make(x, &(step){.op_type = "Clip",
                                          .in = {halves[k], k == 1 ? part_real(x, halves[k], "least", -most->f) : NULL,
                                                 part_real(x, halves[k], "most", most->f)}});
    if (beta != 0) halves[1] = part_add(x, halves[1], part_real(x, halves[1], "beta", beta));
}

/* What the second product is given. */
static tensor *expert_inner(expansion *x, const experts *e, tensor *rows) {
    const struct activation *by = graph_row(activations, sizeof activations / sizeof *activations, sizeof *activations,
                                            graph_attr_string(x->n, "activation_type", "relu"));
    const bool gates = by && strcmp(by->name, "swiglu") == 0, beside = part_in(x, e->of->weights[BESIDE]) != NULL;
    tensor *halves[2] = {NULL, NULL};
    if (!by) x->failed = true;
    if (x->failed) return NULL;
    if (gates && !beside) {
        take_halves(x, e, expert_product(x, e, rows, FIRST, checked_mul(2, e->inner)), halves);
    } else {
        halves[0] = expert_product(x, e, rows, FIRST, e->inner);
        if (beside) halves[1] = expert_product(x, e, rows, BESIDE, e->inner);
    }
    if (gates) limit(x, halves);
    halves[0] = activated(x, by, halves[0], gates ? graph_attr_float(x->n, "activation_alpha", 1) : 1);
    return halves[1] ? *part_make(x, &(step){.op_type = "Mul", .in = {halves[0], halves[1]}}) : halves[0];
}

/* Among those that are nearly as good as the best one: its number, and how much it counts. */
static tensor *mixed(expansion *x, tensor *router, tensor *scores, tensor *low, tensor *const **best) {
    static const double near = 2 * 0.01;
    *best = part_make(x, &(step){.op_type = "TopK", .in = {scores, part_number(x, "k", 1)}, .outputs = 2});
    tensor *const size = part_do(x, "Max", part_do(x, "Abs", router, NULL), (*best)[0]);
    tensor *const far = part_do(x, "Div", part_do(x, "Sub", (*best)[0], scores), size);
    tensor *const hidden = part_do(x, "Greater", far, part_real(x, far, "near", near));
    tensor *const left = *part_make(x, &(step){.op_type = "Where", .in = {hidden, low, scores}});
    return *part_make(x, &(step){.op_type = "GatherElements",
                                 .in = {part_do(x, "Softmax", left, NULL), (*best)[1]},
                                 .attrs = {int_attr("axis", tensor_rank(router) - 1)}});
}

/* SparseMixer: of two experts, the second one among those without the first. */
static tensor *mixer_shares(expansion *x, const experts *e) {
    tensor *const router = part_in(x, 1);
    const attr last = int_attr("axis", tensor_rank(router) - 1);
    tensor *const *best = NULL;
    if (e->top_k != 2 || part_in(x, e->of->shares) || graph_attr_int(x->n, "normalize_routing_weights", 0) != 0)
        x->failed = true;
    if (x->failed) return NULL;
    tensor *const low = part_real(x, router, "low", router->info->type == DTYPE_FP16 ? -65504 : -0x1.fep127);
    tensor *const first = mixed(x, router, router, low, &best);
    tensor *const others = *part_make(x, &(step){.op_type = "ScatterElements",
                                                 .in = {router, best[1], part_do(x, "Add", best[0], low)},
                                                 .attrs = {last}});
    tensor *const second = mixed(x, router, others, low, &best);
    return *part_make(x, &(step){.op_type = "Concat", .in = {first, second}, .attrs = {last}});
}

/* How much each choice counts: of all experts, or among those that are chosen. */
static tensor *expert_shares(expansion *x, const experts *e) {
    tensor *const given = part_in(x, e->of->shares);
    const bool among = graph_attr_int(x->n, "normalize_routing_weights", 0) != 0;
    if (graph_attr_int(x->n, "use_sparse_mixer", 0) != 0) return mixer_shares(x, e);
    step all = {.op_type = "Softmax", .in = {part_in(x, 1)}}, best = {.op_type = "TopK", .outputs = 2};
    best.in[0] = among || given ? part_in(x, 1) : *part_make(x, &all);
    best.in[1] = part_number(x, "k", e->top_k);
    tensor *const *chosen = part_make(x, &best);
    all.in[0] = chosen[0];
    if (!given) return among ? *part_make(x, &all) : chosen[0];
    if (tensor_count(given) != tensor_count(part_in(x, 1))) x->failed = true;
    tensor *shares = *part_make(x, &(step){.op_type = "GatherElements",
                                           .in = {given, chosen[1]},
                                           .attrs = {int_attr("axis", tensor_rank(given) - 1)}});
    if (!among) return shares;
    tensor *sum = *part_make(x, &(step){.op_type = "ReduceSum", .in = {shares, part_number(x, "axes", -1)}});
    return *part_make(x, &(step){.op_type = "Div", .in = {shares, sum}});
}

/* To the experts, through their matrices, and back: a sum of what the token's experts made. */
void take_experts(expansion *x) {
    const experts e = find_experts(x);
    const int rank = tensor_rank(part_in(x, 0)), last = rank - 1;
    int64_t dims[INFO_MAX_RANK + 1];
    if (x->failed || rank >= INFO_MAX_RANK) {
        x->failed = true;
        return;
    }
    tensor *shares = expert_shares(x, &e);
    tensor *flat = last > 1 ? part_reshaped(x, part_in(x, 0), 2, (int64_t[]){e.tokens, e.hidden}) : part_in(x, 0);
    tensor *taken = assumed(x, "tokens_of_experts", 2, (int64_t[]){e.used, e.rows});
    tensor *rows = *part_make(x, &(step){.op_type = "Gather", .in = {flat, taken}});
    tensor *made = expert_product(x, &e, expert_inner(x, &e, rows), SECOND, e.hidden);
    made = part_reshaped(x, made, 2, (int64_t[]){checked_mul(e.used, e.rows), e.hidden});
    for (int k = 0; k < last; k++) dims[k] = tensor_dim(part_in(x, 0), k);
    const int places = last + (e.top_k > 1);
    dims[last] = e.top_k;
    made = *part_make(x, &(step){.op_type = "Gather", .in = {made, assumed(x, "rows_of_tokens", places, dims)}});
    dims[places] = 1;
    const step weighted = {.op_type = "Mul", .in = {made, part_reshaped(x, shares, places + 1, dims)}};
    if (e.top_k == 1) {
        part_end(x, &weighted);
        return;
    }
    part_end(x, &(step){.op_type = "ReduceSum",
                        .in = {*part_make(x, &weighted), part_number(x, "axes", last)},
                        .attrs = {int_attr("keepdims", 0)}});
}
