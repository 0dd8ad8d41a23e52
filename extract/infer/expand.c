/* Each row of the table is an operator and the function that says what it is made of. It asks for its parts one after
 * the other, and the shape functions say whether they fit: the graph is changed only where all do. */
#include "extract/infer/expand.h"

#include "common/checked.h"
#include "common/plain.h"
#include "extract/infer/infer.h"

#include <string.h>

enum {
    STEP_INPUTS = 7,
    STEP_OUTPUTS = 3,
    MAX_STEPS = 48,                               /* parts of one node */
    MAX_TENSORS = MAX_STEPS * (STEP_OUTPUTS + 2), /* and what they make, and their constants */
    OPSET = 18 /* of ai.onnx, which the parts are written in: sizes and axes are inputs */
};

/* What is common to all nodes of a model. */
typedef struct expander {
    model *m;
    node **nodes; /* the model's new order */
    size_t node_cap, tensor_cap;
    int64_t node_count;
    map names; /* of all nodes and tensors; filled for the first node that is taken apart */
} expander;

typedef struct expansion { /* of one node */
    expander *e;
    const node *n;
    node last; /* what the node becomes */
    node *made[MAX_STEPS];
    tensor *tensors[MAX_TENSORS];
    int made_count, tensor_count;
    bool failed;
} expansion;

typedef struct step { /* one part */
    const char *domain, *op_type;
    tensor *in[STEP_INPUTS]; /* NULL: left out */
    attr attrs[4];           /* up to the first without a name */
    int outputs;             /* 0: one */
} step;

static const char *name_in(expander *e, const char *name) {
    const model *m = e->m;
    if (!e->names.count) {
        for (int64_t k = 0; k < m->node_count; k++) map_unique(&e->names, m->nodes[k]->name);
        for (int64_t k = 0; k < m->tensor_count; k++) map_unique(&e->names, m->tensors[k]->name);
    }
    return map_unique(&e->names, plain_name(m->arena, name));
}

static tensor *new_tensor(expansion *x, const char *name, tensor_source source, const info *is) {
    tensor *t = arena_zalloc(x->e->m->arena, sizeof *t);
    t->name = name_in(x->e, name);
    t->source = source;
    t->info = is;
    t->home = x->n->home;
    if (x->tensor_count < MAX_TENSORS)
        x->tensors[x->tensor_count++] = t;
    else
        x->failed = true;
    return t;
}

/* Made by no node, and in no file. */
static tensor *constant(expansion *x, const char *what, const info *is) {
    tensor *t = new_tensor(x, arena_printf(x->e->m->arena, "%s/%s", x->n->name, what), TENSOR_NODE, is);
    t->is_constant = true;
    return t;
}

static tensor *numbers(expansion *x, const char *what, int64_t n, const int64_t *values) {
    return constant(x, what, info_of_ints(x->e->m->arena, DTYPE_INT64, 1, &n, values, n));
}

static tensor *number(expansion *x, const char *what, int64_t n) { return numbers(x, what, 1, &n); }

static attr int_attr(const char *name, int64_t i) { return (attr){.name = name, .kind = ATTR_INT, .i = i}; }
static attr real_attr(const char *name, double f) { return (attr){.name = name, .kind = ATTR_FLOAT, .f = f}; }

static void set_attrs(arena *a, node *n, const attr *attrs, int most) {
    for (n->attr_count = 0; n->attr_count < most && attrs[n->attr_count].name;) n->attr_count++;
    n->attrs = arena_array(a, attr, n->attr_count);
    for (int k = 0; k < n->attr_count; k++) n->attrs[k] = attrs[k];
}

static void become(node *n, const char *domain, const char *op_type) {
    n->domain = domain;
    n->op_type = op_type;
    n->opset = *domain ? 1 : OPSET;
    n->def = operators_find(domain, op_type);
}

/* Without outputs once a part did not fit: those that follow do not either. */
static tensor *const *make(expansion *x, const step *s) {
    static tensor *const none[STEP_OUTPUTS];
    arena *a = x->e->m->arena;
    if (x->failed || x->made_count == MAX_STEPS) {
        x->failed = true;
        return none;
    }
    node *n = arena_zalloc(a, sizeof *n);
    become(n, s->domain ? s->domain : "", s->op_type);
    n->name = name_in(x->e, arena_printf(a, "%s/%s", x->n->name, s->op_type));
    n->home = x->n->home;
    for (n->in_count = STEP_INPUTS; n->in_count > 0 && !s->in[n->in_count - 1];) n->in_count--;
    n->out_count = s->outputs ? s->outputs : 1;
    n->in = arena_array(a, tensor *, n->in_count + n->out_count);
    n->out = n->in + n->in_count;
    memcpy(n->in, s->in, (size_t)n->in_count * sizeof *n->in);
    set_attrs(a, n, s->attrs, (int)(sizeof s->attrs / sizeof *s->attrs));
    for (int k = 0; k < n->out_count; k++) {
        n->out[k] = new_tensor(x, arena_printf(a, "%s_output_%d", n->name, k), TENSOR_NODE, &info_unknown);
        n->out[k]->producer = n;
        n->out[k]->producer_slot = k;
    }
    x->made[x->made_count++] = n;
    if (!x->failed) x->failed = !infer_made(x->e->m, n);
    return x->failed ? none : n->out;
}

/* What the node becomes. */
static void end(expansion *x, const step *s) {
    node *n = &x->last;
    arena *a = x->e->m->arena;
    become(n, s->domain ? s->domain : "", s->op_type);
    n->in = arena_array(a, tensor *, STEP_INPUTS);
    memcpy(n->in, s->in, sizeof s->in);
    for (n->in_count = STEP_INPUTS; n->in_count > 0 && !n->in[n->in_count - 1];) n->in_count--;
    n->out_count = s->outputs ? s->outputs : 1;
    set_attrs(a, n, s->attrs, (int)(sizeof s->attrs / sizeof *s->attrs));
}

static tensor *in(const expansion *x, int i) { return i >= 0 && i < x->n->in_count ? x->n->in[i] : NULL; }
static tensor *out(const expansion *x, int i) { return i < x->n->out_count ? x->n->out[i] : NULL; }
static int rank_of(const tensor *t) { return t && info_shaped(t->info) ? t->info->rank : -1; }

static int64_t dim_of(const tensor *t, int axis) { /* counted from the end where negative; 0: there is none */
    const int rank = rank_of(t), at = axis < 0 ? axis + rank : axis;
    return rank >= 0 && at >= 0 && at < rank ? t->info->dims[at] : 0;
}

/* As large as a, to which b is added. */
static tensor *add(expansion *x, tensor *a, tensor *b) {
    tensor *sum = *make(x, &(step){.op_type = "Add", .in = {a, b}});
    if (sum && !info_same_shape(sum->info, a->info)) x->failed = true;
    return sum;
}

static tensor *first(expansion *x, tensor *t, int64_t count) {
    return *make(x, &(step){.op_type = "Slice",
                            .in = {t, number(x, "starts", 0), number(x, "ends", count), number(x, "axes", 0)}});
}

static void leave_out(expansion *x, int i) {
    if (i < x->last.in_count) x->last.in[i] = NULL;
}

static tensor *const *split(expansion *x, tensor *t, int axis, int parts, const int64_t *sizes) {
    for (int k = 0; k < parts; k++) x->failed = x->failed || sizes[k] <= 0;
    return make(x, &(step){.op_type = "Split",
                           .in = {t, numbers(x, "sizes", parts, sizes)},
                           .attrs = {int_attr("axis", axis)},
                           .outputs = parts});
}

/* ---- attention ---- */

enum { QUERY, KEY, VALUE, QKV };

/* Queries, keys and values side by side; the outputs are as wide as values, or as queries where values are as keys. */
static void take_columns(expansion *x, tensor *packed, bool as_queries) {
    const int64_t all = dim_of(packed, -1), told = dim_of(out(x, 0), -1), other = checked_sub(all, told) / 2;
    const int64_t usual[QKV] = {as_queries ? told : other, other, as_queries ? other : told};
    const attr *sizes = graph_attr(x->n, "qkv_hidden_sizes", ATTR_INTS);
    const bool named = sizes && sizes->n == QKV && sizes->ints;
    if (named && sizes->ints[QUERY] != sizes->ints[KEY]) x->failed = true;
    tensor *const *parts = split(x, packed, -1, QKV, named ? sizes->ints : usual);
    for (int k = 0; k < QKV; k++) x->last.in[k] = parts[k];
}

/* [batch, length, heads, parts, size] as [batch, heads, length, size] each, which lie where they lay. */
static void take_heads(expansion *x, tensor *packed, int first) {
    static const int64_t ones[QKV] = {1, 1, 1}, perm[] = {0, 2, 1, 3};
    enum { AXIS = 3 };
    const int parts = QKV - first;
    tensor *const *each = split(x, packed, AXIS, parts, ones);
    for (int k = 0; k < parts && !x->failed; k++) {
        tensor *flat = *make(x, &(step){.op_type = "Squeeze", .in = {each[k], number(x, "axes", AXIS)}});
        x->last.in[first + k] = *make(
            x, &(step){.op_type = "Transpose",
                       .in = {flat},
                       .attrs = {{.name = "perm", .kind = ATTR_INTS, .n = sizeof perm / sizeof *perm, .ints = perm}}});
    }
}

/* The operator makes the tables of its rotary embedding by itself. */
static void refuse_rotary(expansion *x) {
    if (graph_attr_int(x->n, "do_rotary", 0) != 0) x->failed = true;
}

/* Its input times a weight [input, queries + keys + values]. Behind that, queries, keys and values are its first
 * inputs.
 */
static void take_projection(expansion *x) {
    tensor *made = *make(x, &(step){.op_type = "MatMul", .in = {in(x, 0), in(x, 1)}});
    take_columns(x, in(x, 2) ? add(x, made, in(x, 2)) : made, false);
    refuse_rotary(x);
}

static void take_quantized_projection(expansion *x) {
    enum { INPUT, WEIGHT, BIAS, INPUT_SCALE, WEIGHT_SCALE, MASK, INPUT_ZERO, WEIGHT_ZERO };
    tensor *const used[STEP_INPUTS] = {in(x, INPUT),      in(x, WEIGHT),      in(x, INPUT_SCALE), in(x, WEIGHT_SCALE),
                                       in(x, INPUT_ZERO), in(x, WEIGHT_ZERO), in(x, BIAS)};
    step s = {.domain = "com.microsoft", .op_type = "MatMulIntegerToFloat"};
    memcpy(s.in, used, sizeof used);
    take_columns(x, *make(x, &s), false);
    refuse_rotary(x);
    leave_out(x, INPUT_SCALE);
    leave_out(x, WEIGHT_SCALE);
    leave_out(x, INPUT_ZERO);
    leave_out(x, WEIGHT_ZERO);
}

/* Of a packed input with heads before queries, keys and values: [3 * heads * size] as [heads, 3, size]. */
static tensor *bias_by_heads(expansion *x, tensor *bias, const tensor *packed) {
    static const int64_t perm[] = {1, 0, 2};
    const int64_t shape[] = {QKV, dim_of(packed, -3), dim_of(packed, -1)};
    tensor *apart = *make(x, &(step){.op_type = "Reshape", .in = {bias, numbers(x, "shape", QKV, shape)}});
    return *make(x, &(step){.op_type = "Transpose",
                            .in = {apart},
                            .attrs = {{.name = "perm", .kind = ATTR_INTS, .n = QKV, .ints = perm}}});
}

/* Keys and values that come from a cache have theirs already. */
static void take_bias(expansion *x, int slot, int packed_rank) {
    tensor *bias = in(x, slot), *query = in(x, QUERY), *key = in(x, KEY);
    if (!bias || rank_of(key) == packed_rank) return;
    if (!key) {
        x->last.in[QUERY] = add(x, query, rank_of(query) == packed_rank ? bias_by_heads(x, bias, query) : bias);
    } else {
        const int added = rank_of(key) == rank_of(query) ? QKV : KEY;
        const int64_t all = dim_of(bias, 0), first = dim_of(query, -1), last = dim_of(out(x, 0), -1);
        const int64_t sizes[QKV] = {first, checked_sub(checked_sub(all, first), last), last};
        tensor *const *parts = split(x, bias, 0, QKV, sizes);
        for (int k = 0; k < added; k++) x->last.in[k] = add(x, in(x, k), parts[k]);
    }
    leave_out(x, slot);
}

static void take_multi_head(expansion *x) {
    enum { PACKED_RANK = 5 };
    take_bias(x, graph_is_ms(x->n, "DecoderMaskedMultiHeadAttention") ? 10 : 3, PACKED_RANK);
    if (rank_of(in(x, KEY)) == PACKED_RANK)
        take_heads(x, in(x, KEY), KEY);
    else if (!in(x, KEY) && rank_of(in(x, QUERY)) == PACKED_RANK)
        take_heads(x, x->last.in[QUERY], QUERY);
    else if (!in(x, KEY))
        take_columns(x, x->last.in[QUERY], false);
}

static void take_packed_multi_head(expansion *x) { take_bias(x, 3, 4); }

static tensor *rotated(expansion *x, tensor *t, tensor *positions, const char *heads, tensor *cosine, tensor *sine) {
    const int64_t count = graph_attr_int(x->n, heads, 0), size = count > 0 ? dim_of(t, -1) / count : 0,
                  turned = checked_mul(2, dim_of(cosine, -1));
    return *make(x, &(step){.domain = "com.microsoft",
                            .op_type = "RotaryEmbedding",
                            .in = {t, positions, cosine, sine},
                            .attrs = {int_attr("num_heads", count),
                                      int_attr("interleaved", graph_attr_int(x->n, "rotary_interleaved", 0)),
                                      int_attr("rotary_embedding_dim", turned < size ? turned : 0)}});
}

static void take_grouped(expansion *x) {
    enum { COSINE = 7, SINE = 8, POSITIONS = 9 };
    const bool turns = graph_attr_int(x->n, "do_rotary", 0) != 0;
    if (!in(x, KEY)) take_columns(x, in(x, QUERY), true);
    if (!turns || x->failed) return;
    /* without positions of its own the lengths say where it stands, which changes nothing of the work */
    tensor *at = in(x, POSITIONS) ? in(x, POSITIONS) : number(x, "position", 0);
    x->last.in[QUERY] = rotated(x, x->last.in[QUERY], at, "num_heads", in(x, COSINE), in(x, SINE));
    x->last.in[KEY] = rotated(x, x->last.in[KEY], at, "kv_num_heads", in(x, COSINE), in(x, SINE));
    for (int k = COSINE; k <= POSITIONS; k++) leave_out(x, k);
}

/* ---- others ---- */

static void take_dynamic_product(expansion *x) {
    tensor *const *found = make(x, &(step){.op_type = "DynamicQuantizeLinear", .in = {in(x, 0)}, .outputs = 3});
    end(x, &(step){.domain = "com.microsoft",
                   .op_type = "MatMulIntegerToFloat",
                   .in = {found[0], in(x, 1), found[1], in(x, 2), found[2], in(x, 3), in(x, 4)}});
}

/* The tables of an embedding, and behind them scale and bias of its norm, from input 2 on. */
static tensor *table(expansion *x, int k) {
    enum { TABLES = 2, SCALES = 8, ZERO_POINTS = 13 };
    tensor *t = in(x, TABLES + k);
    if (!t || !graph_is_ms(x->n, "QEmbedLayerNormalization")) return t;
    return *make(x, &(step){.op_type = "DequantizeLinear", .in = {t, in(x, SCALES + k), in(x, ZERO_POINTS + k)}});
}

static tensor *rows(expansion *x, int k, tensor *ids) {
    return *make(x, &(step){.op_type = "Gather", .in = {table(x, k), ids}});
}

/* How long each sequence is; nothing is counted without a mask. */
static tensor *lengths(expansion *x, tensor *mask) {
    if (mask)
        return *make(
            x, &(step){.op_type = "ReduceSum", .in = {mask, number(x, "axes", 1)}, .attrs = {int_attr("keepdims", 0)}});
    tensor *zeros = *make(x, &(step){.op_type = "ConstantOfShape", .in = {number(x, "shape", dim_of(in(x, 0), 0))}});
    return *make(x, &(step){.op_type = "Cast", .in = {zeros}, .attrs = {int_attr("to", DTYPE_INT32)}});
}

/* The output of the node is what that part makes. */
static void give(expansion *x, int slot, tensor *made) {
    tensor *given = out(x, slot);
    if (x->failed || !given || !made) return;
    x->failed = !info_same_shape(given->info, made->info) || given->info->type != made->info->type;
    for (int k = 0; k < x->made_count; k++) {
        node *n = x->made[k];
        for (int j = 0; j < n->in_count; j++)
            if (n->in[j] == made) n->in[j] = given;
        for (int j = 0; j < n->out_count; j++)
            if (n->out[j] == made) n->out[j] = given;
    }
    for (int k = 0; k < x->last.in_count; k++)
        if (x->last.in[k] == made) x->last.in[k] = given;
    for (int k = 0, kept = 0; k < x->tensor_count; k++)
        if (x->tensors[k] != made) x->tensors[kept++] = x->tensors[k];
    x->tensor_count--;
}

static void take_embedding(expansion *x) {
    enum { IDS, SEGMENT_IDS, MASK = 7, POSITION_IDS };
    enum { WORDS, POSITIONS, SEGMENTS, SCALE, BIAS };
    static const int outputs[] = {1, 2};
    tensor *own = graph_is_ms(x->n, "EmbedLayerNormalization") ? in(x, POSITION_IDS) : NULL, *const ids = in(x, IDS);
    /* without ids of their own, positions are those of one sequence */
    tensor *words = rows(x, WORDS, ids),
           *places = own ? rows(x, POSITIONS, own) : first(x, table(x, POSITIONS), dim_of(ids, 1));
    tensor *sum = add(x, words, places);
    if (in(x, SEGMENT_IDS)) sum = add(x, sum, rows(x, SEGMENTS, in(x, SEGMENT_IDS)));
    const step norm = {.op_type = "LayerNormalization",
                       .in = {sum, table(x, SCALE), table(x, BIAS)},
                       .attrs = {real_attr("epsilon", graph_attr_float(x->n, "epsilon", 1e-12))}};
    tensor *counted = out(x, outputs[0]) ? lengths(x, in(x, MASK)) : NULL;
    end(x, &norm);
    give(x, outputs[0], counted);
    give(x, outputs[1], sum);
}

/* ---- mixtures of experts ---- */

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

static int64_t count_of(const tensor *t) { return rank_of(t) >= 0 ? info_count(t->info) : 0; }

static bool is_stack(const tensor *t, int64_t count, int64_t rows, int64_t cols) {
    return rank_of(t) == 3 && dim_of(t, 0) == count && dim_of(t, 1) == rows && dim_of(t, 2) == cols;
}

/* Its form of choosing and of numbers is one that parts can have. */
static bool is_plain(const expansion *x, const struct expert_inputs *of) {
    static const char *const others[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
    const int64_t bits = graph_attr_int(x->n, "expert_weight_bits", 4);
    bool plain = graph_attr_int(x->n, "use_sparse_mixer", 0) == 0 && (bits == 4 || bits == 8) &&
                 strcmp(graph_attr_string(x->n, "quant_type", "int"), "int") == 0;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        plain = plain && graph_attr_int(x->n, others[k], bits) == bits;
    for (int k = 0; k < x->n->in_count; k++)
        plain = plain && (!in(x, k) || (k < of->more && !in(x, k)->info->inexact && !in(x, k)->info->least));
    return plain;
}

static experts find_experts(expansion *x) {
    tensor *const tokens = in(x, 0), *const router = in(x, 1);
    const struct expert_inputs *of =
        graph_row(expert_inputs, sizeof expert_inputs / sizeof *expert_inputs, sizeof *expert_inputs, x->n->op_type);
    const bool packed = of->scales[FIRST] >= 0;
    experts e = {.of = of,
                 .count = dim_of(in(x, of->weights[FIRST]), 0),
                 .hidden = dim_of(tokens, -1),
                 .top_k = graph_attr_int(x->n, "k", 1),
                 .each = packed ? 8 / (graph_attr_int(x->n, "expert_weight_bits", 4) == 4 ? 4 : 8) : 1};
    if (x->failed || e.count < 1 || e.hidden < 1 || e.top_k < 1 || e.top_k > e.count || rank_of(tokens) < 2 ||
        count_of(tokens) < 1 || !is_plain(x, of)) {
        x->failed = true;
        return e;
    }
    e.tokens = count_of(tokens) / e.hidden;
    e.inner = checked_mul(count_of(in(x, of->weights[SECOND])) / e.count, e.each) / e.hidden;
    const int64_t choices = checked_mul(e.tokens, e.top_k);
    e.used = choices < e.count ? choices : e.count;
    e.rows = choices / e.used + (choices % e.used != 0);
    if (dim_of(router, -1) != e.count || count_of(router) != checked_mul(e.tokens, e.count)) x->failed = true;
    return e;
}

static tensor *assumed(expansion *x, const char *what, int rank, const int64_t *dims) {
    arena *a = x->e->m->arena;
    return new_tensor(x, arena_printf(a, "%s/%s", x->n->name, what), TENSOR_ASSUMED,
                      info_tensor(a, DTYPE_INT32, rank, dims));
}

static tensor *reshaped(expansion *x, tensor *t, int rank, const int64_t *dims) {
    return *make(x, &(step){.op_type = "Reshape", .in = {t, numbers(x, "shape", rank, dims)}});
}

/* Of a constant they lie where it begins; of others no program would make a copy. */
static tensor *of_used(expansion *x, const experts *e, tensor *t) {
    if (!t || e->used == e->count) return t;
    if (!t->is_constant && t->source != TENSOR_INITIALIZER) x->failed = true;
    return first(x, t, e->used);
}

/* Of scales or zero points: as many numbers for each column of each expert. */
static tensor *by_column(expansion *x, const experts *e, tensor *t, int64_t width) {
    const int64_t rest = count_of(t) / e->count / (width > 0 ? width : 1);
    const bool by_columns =
        rank_of(t) > 1 && rest > 0 && count_of(t) == checked_mul(checked_mul(e->count, width), rest);
    const int64_t dims[] = {e->count, by_columns ? width : 1, by_columns ? rest : count_of(t) / e->count};
    if (!t) return NULL;
    if (dim_of(t, 0) != e->count) x->failed = true;
    return of_used(x, e, reshaped(x, t, sizeof dims / sizeof *dims, dims));
}

static bool holds_bytes(const tensor *t) {
    const dtype_info *is = dtype_get(t ? t->info->type : DTYPE_NONE);
    return is->cls == DTYPE_CLASS_INT && is->bits == 8;
}

/* A matrix of few bits is [width, depth], with scales for a column or for blocks of it. */
static tensor *packed_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const stack = in(x, e->of->weights[which]);
    const int64_t depth = dim_of(rows, -1);
    tensor *const scales = by_column(x, e, in(x, e->of->scales[which]), width);
    const int64_t blocks = dim_of(scales, 2), block = blocks > 0 ? depth / blocks : 0, bytes = block / e->each;
    const int64_t said = graph_attr_int(x->n, "block_size", 0);
    const bool whole = block > 0 && block * blocks == depth && bytes * e->each == block && (said == 0 || said == block);
    if (!whole || dim_of(scales, 1) != width || !holds_bytes(stack) ||
        !is_stack(stack, e->count, width, bytes * blocks))
        x->failed = true;
    if (x->failed) return NULL;
    const int64_t dims[] = {e->used, width, blocks, bytes};
    return *make(x, &(step){.domain = "com.microsoft",
                            .op_type = "MatMulNBits",
                            .in = {rows, reshaped(x, of_used(x, e, stack), sizeof dims / sizeof *dims, dims), scales,
                                   by_column(x, e, in(x, e->of->zeros[which]), width)},
                            .attrs = {int_attr("K", depth), int_attr("N", width), int_attr("bits", 8 / e->each),
                                      int_attr("block_size", blocks > 1 ? block : 0)}});
}

/* Older models keep a matrix as [depth, width]. */
static tensor *plain_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const stack = in(x, e->of->weights[which]);
    const int64_t depth = dim_of(rows, -1);
    const bool turned = is_stack(stack, e->count, width, depth);
    if (!turned && !is_stack(stack, e->count, depth, width)) x->failed = true;
    return *make(x, &(step){.domain = "com.microsoft",
                            .op_type = "FusedMatMul",
                            .in = {rows, of_used(x, e, stack)},
                            .attrs = {int_attr("transB", turned)}});
}

/* Each expert's rows times its matrix. */
static tensor *expert_product(expansion *x, const experts *e, tensor *rows, int which, int64_t width) {
    tensor *const bias = in(x, e->of->bias[which]);
    tensor *made =
        e->of->scales[which] >= 0 ? packed_product(x, e, rows, which, width) : plain_product(x, e, rows, which, width);
    if (!bias) return made;
    if (rank_of(bias) != 2 || dim_of(bias, 0) != e->count || dim_of(bias, 1) != width) x->failed = true;
    return add(x, made, *make(x, &(step){.op_type = "Unsqueeze", .in = {of_used(x, e, bias), number(x, "axes", 1)}}));
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
    return *make(x, &(step){.domain = by->domain,
                            .op_type = by->op_type,
                            .in = {t},
                            .attrs = {by->turned ? real_attr("alpha", alpha) : (attr){.name = NULL}}});
}

/* Gate and values of one product: one beside the other, or all of one before the other. */
static void take_halves(expansion *x, const experts *e, tensor *both, tensor *halves[2]) {
    enum { IN_BLOCKS = 2, AXIS = 3 };
    const int64_t pairs[] = {e->used, e->rows, e->inner, 2}, ones[] = {1, 1}, sizes[] = {e->inner, e->inner};
    if (graph_attr_int(x->n, "swiglu_fusion", 0) == IN_BLOCKS) {
        tensor *const *parts = split(x, both, -1, 2, sizes);
        for (int k = 0; k < 2; k++) halves[k] = parts[k];
        return;
    }
    tensor *const *parts = split(x, reshaped(x, both, sizeof pairs / sizeof *pairs, pairs), AXIS, 2, ones);
    for (int k = 0; k < 2; k++)
        halves[k] = *make(x, &(step){.op_type = "Squeeze", .in = {parts[k], number(x, "axes", AXIS)}});
}

static tensor *real(expansion *x, const tensor *like, const char *what, double f) {
    const dtype type = like ? like->info->type : DTYPE_NONE;
    return constant(x, what, info_of_floats(x->e->m->arena, type, 0, info_no_dims, &f, 1));
}

/* Both are cut, and what the gate is multiplied with is shifted. */
static void limit(expansion *x, tensor *halves[2]) {
    const attr *most = graph_attr(x->n, "swiglu_limit", ATTR_FLOAT);
    const double beta = graph_attr_float(x->n, "activation_beta", 0);
    for (int k = 0; most && k < 2; k++)
        halves[k] = *make(x, &(step){.op_type = "Clip",
                                     .in = {halves[k], k == 1 ? real(x, halves[k], "least", -most->f) : NULL,
                                            real(x, halves[k], "most", most->f)}});
    if (beta != 0) halves[1] = add(x, halves[1], real(x, halves[1], "beta", beta));
}

/* What the second product is given. */
static tensor *expert_inner(expansion *x, const experts *e, tensor *rows) {
    const struct activation *by = graph_row(activations, sizeof activations / sizeof *activations, sizeof *activations,
                                            graph_attr_string(x->n, "activation_type", "relu"));
    const bool gates = by && strcmp(by->name, "swiglu") == 0, beside = in(x, e->of->weights[BESIDE]) != NULL;
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
    return halves[1] ? *make(x, &(step){.op_type = "Mul", .in = {halves[0], halves[1]}}) : halves[0];
}

/* How much each choice counts: of all experts, or among those that are chosen. */
static tensor *expert_shares(expansion *x, const experts *e) {
    tensor *const given = in(x, e->of->shares);
    const bool among = graph_attr_int(x->n, "normalize_routing_weights", 0) != 0;
    step all = {.op_type = "Softmax", .in = {in(x, 1)}}, best = {.op_type = "TopK", .outputs = 2};
    best.in[0] = among || given ? in(x, 1) : *make(x, &all);
    best.in[1] = number(x, "k", e->top_k);
    tensor *const *chosen = make(x, &best);
    all.in[0] = chosen[0];
    if (!given) return among ? *make(x, &all) : chosen[0];
    if (count_of(given) != count_of(in(x, 1))) x->failed = true;
    tensor *shares = *make(x, &(step){.op_type = "GatherElements",
                                      .in = {given, chosen[1]},
                                      .attrs = {int_attr("axis", rank_of(given) - 1)}});
    if (!among) return shares;
    tensor *sum = *make(x, &(step){.op_type = "ReduceSum", .in = {shares, number(x, "axes", -1)}});
    return *make(x, &(step){.op_type = "Div", .in = {shares, sum}});
}

/* To the experts, through their matrices, and back: a sum of what the token's experts made. */
static void take_experts(expansion *x) {
    const experts e = find_experts(x);
    const int rank = rank_of(in(x, 0)), last = rank - 1;
    int64_t dims[INFO_MAX_RANK + 1];
    if (x->failed || rank >= INFO_MAX_RANK) {
        x->failed = true;
        return;
    }
    tensor *shares = expert_shares(x, &e);
    tensor *flat = last > 1 ? reshaped(x, in(x, 0), 2, (int64_t[]){e.tokens, e.hidden}) : in(x, 0);
    tensor *taken = assumed(x, "tokens_of_experts", 2, (int64_t[]){e.used, e.rows});
    tensor *rows = *make(x, &(step){.op_type = "Gather", .in = {flat, taken}});
    tensor *made = expert_product(x, &e, expert_inner(x, &e, rows), SECOND, e.hidden);
    made = reshaped(x, made, 2, (int64_t[]){checked_mul(e.used, e.rows), e.hidden});
    for (int k = 0; k < last; k++) dims[k] = dim_of(in(x, 0), k);
    const int places = last + (e.top_k > 1);
    dims[last] = e.top_k;
    made = *make(x, &(step){.op_type = "Gather", .in = {made, assumed(x, "rows_of_tokens", places, dims)}});
    dims[places] = 1;
    const step weighted = {.op_type = "Mul", .in = {made, reshaped(x, shares, places + 1, dims)}};
    if (e.top_k == 1) {
        end(x, &weighted);
        return;
    }
    end(x, &(step){.op_type = "ReduceSum",
                   .in = {*make(x, &weighted), number(x, "axes", last)},
                   .attrs = {int_attr("keepdims", 0)}});
}

/* ---- the stage ---- */

typedef void take_fn(expansion *x);

typedef struct operator_row {
    const char *op_type;
    take_fn *take;
    enum {
        WHEN_KNOWN, /* as it stands it is open where its shapes are known: something else of it does not fit */
        PROJECTS,   /* always: its inputs are those of no attention as long as it is not taken apart */
        STAYS       /* never: then it is one work */
    } open;
} operator_row;

static const operator_row operators[] = {
    /* sorted by names */
    {"Attention", take_projection, PROJECTS},
    {"DecoderMaskedMultiHeadAttention", take_multi_head, WHEN_KNOWN},
    {"DecoderMaskedSelfAttention", take_projection, PROJECTS},
    {"DynamicQuantizeMatMul", take_dynamic_product, WHEN_KNOWN},
    {"EmbedLayerNormalization", take_embedding, WHEN_KNOWN},
    {"GroupQueryAttention", take_grouped, WHEN_KNOWN},
    {"MoE", take_experts, STAYS},
    {"MultiHeadAttention", take_multi_head, WHEN_KNOWN},
    {"PackedAttention", take_projection, PROJECTS},
    {"PackedMultiHeadAttention", take_packed_multi_head, WHEN_KNOWN},
    {"QAttention", take_quantized_projection, PROJECTS},
    {"QEmbedLayerNormalization", take_embedding, WHEN_KNOWN},
    {"QMoE", take_experts, STAYS},
};

static void keep(expander *e, node *n) {
    void *items = e->nodes;
    arena_grow(e->m->arena, &items, &e->node_cap, (size_t)e->node_count, sizeof *e->nodes);
    e->nodes = items;
    n->id = e->node_count;
    e->nodes[e->node_count++] = n;
    for (int k = 0; k < n->out_count; k++) {
        if (!n->out[k]) continue;
        n->out[k]->producer = n;
        n->out[k]->producer_slot = k;
    }
}

static void keep_parts(expander *e, const expansion *x) {
    model *m = e->m;
    for (int k = 0; k < x->tensor_count; k++) {
        void *items = m->tensors;
        arena_grow(m->arena, &items, &e->tensor_cap, (size_t)m->tensor_count, sizeof *m->tensors);
        m->tensors = items;
        x->tensors[k]->place = (int)m->tensor_count;
        m->tensors[m->tensor_count++] = x->tensors[k];
    }
    for (int k = 0; k < x->made_count; k++) keep(e, x->made[k]);
}

static void expand(expander *e, node *n, const operator_row *row) {
    expansion x = {.e = e, .n = n, .last = *n};
    if (x.last.in_count < QKV) x.last.in_count = QKV; /* a packed input is alone */
    x.last.in = arena_array(e->m->arena, tensor *, x.last.in_count);
    for (int k = 0; k < n->in_count; k++) x.last.in[k] = n->in[k];
    const bool blank = rank_of(out(&x, 0)) < 0;
    x.failed = blank;
    row->take(&x);
    if (x.failed && row->open != STAYS && (row->open == PROJECTS || !blank)) {
        n->whole = true;
        if (!n->unresolved) n->unresolved = "one of its parts does not fit, or is not known";
    }
    if (x.failed || x.made_count == 0) return;
    for (int k = 0; k < x.made_count && n->unresolved == infer_changing; k++)
        if (!x.made[k]->unresolved) x.made[k]->unresolved = infer_changing;
    keep_parts(e, &x);
    *n = x.last;
}

static const operator_row *row_of(const node *n) {
    if (!n->def || n->misfit || strcmp(n->domain, "com.microsoft") != 0) return NULL;
    return graph_row(operators, sizeof operators / sizeof *operators, sizeof *operators, n->op_type);
}

/* Each graph's own list is the model's without the others. */
static void keep_order(expander *e) {
    model *m = e->m;
    int *counts = arena_array(m->arena, int, m->graph_count);
    for (int64_t k = 0; k < e->node_count; k++) counts[e->nodes[k]->home->place]++;
    for (int k = 0; k < m->graph_count; k++) {
        m->graphs[k]->nodes = arena_array(m->arena, node *, counts[k]);
        m->graphs[k]->node_count = 0;
    }
    for (int64_t k = 0; k < e->node_count; k++) {
        graph *g = e->nodes[k]->home;
        g->nodes[g->node_count++] = e->nodes[k];
    }
    m->nodes = e->nodes;
    m->node_count = e->node_count;
    graph_link_users(m);
}

void expand_model(model *m) {
    expander e = {.m = m, .tensor_cap = (size_t)m->tensor_count};
    int64_t first = 0;
    while (first < m->node_count && !row_of(m->nodes[first])) first++;
    if (first == m->node_count) return;
    map_init(&e.names, m->arena);
    for (int64_t k = 0; k < m->node_count; k++) {
        const operator_row *row = row_of(m->nodes[k]);
        if (row) expand(&e, m->nodes[k], row);
        keep(&e, m->nodes[k]);
    }
    keep_order(&e);
}
