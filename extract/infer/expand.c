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
    MAX_STEPS = 24,                               /* parts of one node */
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
    attr attrs[3];           /* up to the first without a name */
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

static tensor *numbers(expansion *x, const char *what, int64_t n, const int64_t *values) {
    arena *a = x->e->m->arena;
    return new_tensor(x, arena_printf(a, "%s/%s", x->n->name, what), TENSOR_INITIALIZER,
                      info_of_ints(a, DTYPE_INT64, 1, &n, values, n));
}

static tensor *number(expansion *x, const char *what, int64_t n) { return numbers(x, what, 1, &n); }

static attr int_attr(const char *name, int64_t i) { return (attr){.name = name, .kind = ATTR_INT, .i = i}; }

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

static tensor *in(const expansion *x, int i) { return i < x->n->in_count ? x->n->in[i] : NULL; }
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
    tensor *const used[STEP_INPUTS] = {found[0], in(x, 1), found[1], in(x, 2), found[2], in(x, 3), in(x, 4)};
    become(&x->last, "com.microsoft", "MatMulIntegerToFloat");
    x->last.in = arena_array(x->e->m->arena, tensor *, STEP_INPUTS);
    memcpy(x->last.in, used, sizeof used);
    x->last.in_count = STEP_INPUTS;
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

/* Without ids of their own, positions are those of one sequence. */
static tensor *first_rows(expansion *x, int k, int64_t count) {
    return *make(x,
                 &(step){.op_type = "Slice",
                         .in = {table(x, k), number(x, "starts", 0), number(x, "ends", count), number(x, "axes", 0)}});
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
    tensor *words = rows(x, WORDS, ids),
           *places = own ? rows(x, POSITIONS, own) : first_rows(x, POSITIONS, dim_of(ids, 1));
    tensor *sum = add(x, words, places);
    if (in(x, SEGMENT_IDS)) sum = add(x, sum, rows(x, SEGMENTS, in(x, SEGMENT_IDS)));
    tensor *const used[] = {sum, table(x, SCALE), table(x, BIAS)};
    const attr epsilon = {.name = "epsilon", .kind = ATTR_FLOAT, .f = graph_attr_float(x->n, "epsilon", 1e-12)};
    tensor *counted = out(x, outputs[0]) ? lengths(x, in(x, MASK)) : NULL;
    become(&x->last, "", "LayerNormalization");
    x->last.in_count = sizeof used / sizeof *used;
    x->last.in = arena_array(x->e->m->arena, tensor *, x->last.in_count);
    memcpy(x->last.in, used, sizeof used);
    x->last.out_count = 1;
    set_attrs(x->e->m->arena, &x->last, &epsilon, 1);
    give(x, outputs[0], counted);
    give(x, outputs[1], sum);
}

/* ---- the stage ---- */

typedef void take_fn(expansion *x);

typedef struct operator_row {
    const char *op_type;
    take_fn *take;
    bool projects; /* its inputs are those of no attention as long as it is not taken apart */
} operator_row;

static const operator_row operators[] = {
    /* sorted by names */
    {"Attention", take_projection, true},
    {"DecoderMaskedMultiHeadAttention", take_multi_head, false},
    {"DecoderMaskedSelfAttention", take_projection, true},
    {"DynamicQuantizeMatMul", take_dynamic_product, false},
    {"EmbedLayerNormalization", take_embedding, false},
    {"GroupQueryAttention", take_grouped, false},
    {"MultiHeadAttention", take_multi_head, false},
    {"PackedAttention", take_projection, true},
    {"PackedMultiHeadAttention", take_packed_multi_head, false},
    {"QAttention", take_quantized_projection, true},
    {"QEmbedLayerNormalization", take_embedding, false},
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
    if (x.failed && (row->projects || !blank)) {
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
