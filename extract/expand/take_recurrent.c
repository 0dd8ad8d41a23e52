/* LSTM layers that no library has: with products of bytes, and with an attention to a memory. All steps are parts. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

enum { INPUT, WEIGHT, RECURRENCE, BIAS, LENGTHS, STATE, CELL, PEEPHOLE, GATES = 4, WAYS = 2, MOST = 1024 /* steps */ };

typedef struct layer {
    int64_t steps, batch, hidden, ways;
    int64_t at; /* the direction that is taken apart */
    bool back;
} layer;

/* Its gates are a sigmoid, and the others a tanh. */
static bool is_usual(const expansion *x) {
    const attr *const names = graph_attr(x->n, "activations", ATTR_STRINGS), *const clip =
                                                                                 graph_attr(x->n, "clip", ATTR_FLOAT);
    bool usual = !part_in(x, LENGTHS) && !part_in(x, PEEPHOLE) && graph_attr_int(x->n, "input_forget", 0) == 0 &&
                 (!clip || clip->f == 0);
    for (int64_t k = 0; names && names->strings && k < names->n; k++)
        usual = usual && strcmp(names->strings[k], k % 3 == 0 ? "Sigmoid" : "Tanh") == 0;
    return usual;
}

static layer read_layer(expansion *x) {
    const tensor *const in = part_in(x, INPUT);
    const char *const direction = graph_attr_string(x->n, "direction", "forward");
    layer l = {.steps = tensor_dim(in, 0), .batch = tensor_dim(in, 1), .ways = tensor_dim(part_in(x, WEIGHT), 0)};
    l.hidden = tensor_dim(part_out(x, 0), -1);
    l.back = strcmp(direction, "reverse") == 0;
    if (!is_usual(x) || tensor_rank(in) != 3 || l.steps < 1 || l.steps > MOST || l.batch < 1 || l.hidden < 1 ||
        l.ways < 1 || l.ways > WAYS)
        x->failed = true;
    return l;
}

/* What an input has for this direction; a number alone stays a vector. */
static tensor *own(expansion *x, const layer *l, int slot) {
    tensor *t = part_in(x, slot);
    const int rank = tensor_rank(t);
    if (t && (rank < 1 || tensor_dim(t, 0) != l->ways)) x->failed = true;
    if (!t || x->failed) return NULL;
    if (l->ways > 1) t = part_slice(x, t, 0, l->at, l->at + 1);
    return rank > 1 && !x->failed ? part_reshaped(x, t, rank - 1, t->info->dims + 1) : t;
}

/* Those of inputs and of states are added up. */
static tensor *bias_of(expansion *x, const layer *l) {
    const int64_t each = checked_mul(GATES, l->hidden), sizes[] = {each, each};
    tensor *const both = own(x, l, BIAS);
    if (!both) return NULL;
    tensor *const *parts = part_split(x, both, 0, 2, sizes);
    return part_do(x, "Add", parts[0], parts[1]);
}

/* One beside the other, however many. */
static tensor *joined(expansion *x, tensor *const *parts, int64_t count, int axis) {
    tensor *groups[MOST / STEP_INPUTS + 1];
    int64_t many = 0;
    if (count == 1) return parts[0];
    for (int64_t k = 0; k < count && !x->failed; k += STEP_INPUTS) {
        step s = {.op_type = "Concat", .attrs = {int_attr("axis", axis)}};
        for (int64_t j = 0; j < STEP_INPUTS && k + j < count; j++) s.in[j] = parts[k + j];
        groups[many++] = count - k == 1 ? parts[k] : *part_make(x, &s);
    }
    return x->failed ? NULL : many == 1 ? groups[0] : joined(x, groups, many, axis);
}

/* The state behind a step; before the first one a cell that is not given is zero. */
static tensor *next_state(expansion *x, const layer *l, tensor *gates, tensor **cell) {
    const int64_t sizes[] = {checked_mul(3, l->hidden), l->hidden}, each[] = {l->hidden, l->hidden, l->hidden};
    tensor *const *parts = part_split(x, gates, -1, 2, sizes);
    tensor *const open = part_do(x, "Sigmoid", parts[0], NULL), *const fresh = part_do(x, "Tanh", parts[1], NULL);
    enum { IN, OUT, KEPT };
    tensor *const *opened = part_split(x, open, -1, 3, each);
    tensor *const added = part_do(x, "Mul", opened[IN], fresh);
    *cell = *cell ? part_add(x, part_do(x, "Mul", opened[KEPT], *cell), added) : added;
    return part_do(x, "Mul", opened[OUT], part_do(x, "Tanh", *cell, NULL));
}

/* What a layer of one kind does beside that. */
typedef struct kind {
    tensor *(*inputs)(expansion *x, const layer *l, void *own);               /* [steps, batch, gates] */
    tensor *(*recur)(expansion *x, const layer *l, tensor *state, void *own); /* [batch, gates], to be added */
    void *own;
} kind;

typedef struct results {
    tensor *all[WAYS], *state[WAYS], *cell[WAYS];
} results;

static void take_way(expansion *x, const layer *l, const kind *of, results *made) {
    tensor *rows[MOST], *state = own(x, l, STATE), *cell = own(x, l, CELL);
    tensor *const seen = of->inputs(x, l, of->own);
    const int64_t width = checked_mul(GATES, l->hidden), row[] = {l->batch, width},
                  kept[] = {1, 1, l->batch, l->hidden};
    for (int64_t k = 0; k < l->steps && !x->failed; k++) {
        const int64_t at = l->back ? l->steps - 1 - k : k;
        tensor *gates = part_reshaped(x, part_slice(x, seen, 0, at, at + 1), 2, row);
        if (state) gates = part_add(x, gates, of->recur(x, l, state, of->own));
        state = next_state(x, l, gates, &cell);
        rows[at] = part_reshaped(x, state, 4, kept);
    }
    if (x->failed) return;
    made->all[l->at] = joined(x, rows, l->steps, 0);
    made->state[l->at] = part_reshaped(x, state, 3, kept + 1);
    made->cell[l->at] = part_reshaped(x, cell, 3, kept + 1);
}

static void take_ways(expansion *x, layer *l, const kind *of) {
    enum { ALL_STATE = 1, ALL_CELL };
    results made = {0};
    for (l->at = 0; l->at < l->ways && !x->failed; l->at++) {
        if (l->at > 0) l->back = true;
        take_way(x, l, of, &made);
    }
    if (x->failed) return;
    tensor *const state = joined(x, made.state, l->ways, 0), *const cell = joined(x, made.cell, l->ways, 0);
    part_end_reshaped(x, joined(x, made.all, l->ways, 1));
    part_give(x, ALL_STATE, state);
    part_give(x, ALL_CELL, cell);
}

/* ---- products of bytes, which what is multiplied is turned into ---- */

enum { WEIGHT_SCALE = 8, WEIGHT_ZERO, STATE_SCALE, STATE_ZERO };

static tensor *byte_product(expansion *x, tensor *in, tensor *const weight[3], tensor *bias) {
    tensor *const *found = part_make(x, &(step){.op_type = "DynamicQuantizeLinear", .in = {in}, .outputs = 3});
    return *part_make(x, &(step){.domain = "com.microsoft",
                                 .op_type = "MatMulIntegerToFloat",
                                 .in = {found[0], weight[0], found[1], weight[1], found[2], weight[2], bias}});
}

static tensor *byte_inputs(expansion *x, const layer *l, void *of) {
    tensor **const recurrence = of;
    tensor *const weight[] = {own(x, l, WEIGHT), own(x, l, WEIGHT_SCALE), own(x, l, WEIGHT_ZERO)};
    recurrence[0] = own(x, l, RECURRENCE), recurrence[1] = own(x, l, STATE_SCALE),
    recurrence[2] = own(x, l, STATE_ZERO);
    return byte_product(x, part_in(x, INPUT), weight, bias_of(x, l));
}

static tensor *byte_recur(expansion *x, const layer *l, tensor *state, void *of) {
    (void)l;
    return byte_product(x, state, of, NULL);
}

void take_byte_lstm(expansion *x) {
    layer l = read_layer(x);
    tensor *recurrence[3];
    take_ways(x, &l, &(kind){byte_inputs, byte_recur, recurrence});
}

/* ---- an attention to a memory, whose result each step is given beside its input ---- */

enum { QUERY_WEIGHT = 8, MEMORY_WEIGHT, SCORE, MEMORY, MEMORY_LENGTHS, MIXED };

typedef struct memory {
    tensor *keys, *query, *score, *mixed; /* of this direction: what the memory is to queries, and weights */
    tensor *recurrence, *seen;            /* weights of a state, and of what was seen */
    tensor *held;                         /* which places of the memory count; NULL: all */
} memory;

static tensor *by_rows(expansion *x, tensor *a, tensor *b) {
    return *part_make(
        x,
        &(step){.domain = "com.microsoft", .op_type = "FusedMatMul", .in = {a, b}, .attrs = {int_attr("transB", 1)}});
}

static tensor *held_places(expansion *x) {
    tensor *const lengths = part_in(x, MEMORY_LENGTHS), *const of = part_in(x, MEMORY);
    const int64_t batch = tensor_dim(of, 0), places = tensor_dim(of, 1), column[] = {batch, 1, 1};
    int64_t at[INFO_MAX_VALUES];
    if (!lengths) return NULL;
    const bool counts = dtype_get(lengths->info->type)->cls == DTYPE_CLASS_INT;
    if (!counts || places > INFO_MAX_VALUES || tensor_count(lengths) != batch) x->failed = true;
    if (x->failed) return NULL;
    for (int64_t k = 0; k < places; k++) at[k] = k;
    tensor *const told =
        part_constant(x, "places", info_of_ints(x->e->m->arena, lengths->info->type, 1, &places, at, places));
    return part_do(x, "Less", told, part_reshaped(x, lengths, 3, column));
}

static tensor *memory_inputs(expansion *x, const layer *l, void *of) {
    memory *const m = of;
    const int64_t depth = tensor_dim(part_in(x, INPUT), 2);
    tensor *const weight = own(x, l, WEIGHT), *const score = own(x, l, SCORE), *const bias = bias_of(x, l);
    m->recurrence = own(x, l, RECURRENCE), m->query = own(x, l, QUERY_WEIGHT), m->mixed = own(x, l, MIXED);
    m->keys = part_do(x, "MatMul", part_in(x, MEMORY), own(x, l, MEMORY_WEIGHT));
    m->score = part_reshaped(x, score, 2, (int64_t[]){tensor_dim(score, 0), 1});
    m->held = held_places(x);
    m->seen = part_slice(x, weight, 1, depth, tensor_dim(weight, 1));
    tensor *const made = by_rows(x, part_in(x, INPUT), part_slice(x, weight, 1, 0, depth));
    return bias ? part_add(x, made, bias) : made;
}

/* What a state sees in the memory. */
static tensor *seen_of(expansion *x, const layer *l, const memory *m, tensor *state) {
    const int64_t places = tensor_dim(part_in(x, MEMORY), 1);
    tensor *const query = part_do(x, "MatMul", state, m->query);
    tensor *const all =
        part_do(x, "Add", m->keys, part_reshaped(x, query, 3, (int64_t[]){l->batch, 1, tensor_dim(query, -1)}));
    tensor *scores = part_do(x, "MatMul", part_do(x, "Tanh", all, NULL), m->score);
    scores = part_reshaped(x, scores, 3, (int64_t[]){l->batch, 1, places});
    if (m->held)
        scores = *part_make(
            x, &(step){.op_type = "Where", .in = {m->held, scores, part_real(x, scores, "low", -0x1.fep127)}});
    tensor *const found = part_do(x, "MatMul", part_do(x, "Softmax", scores, NULL), part_in(x, MEMORY));
    tensor *const flat = part_reshaped(x, found, 2, (int64_t[]){l->batch, tensor_dim(found, -1)});
    if (!m->mixed) return flat;
    tensor *const both =
        *part_make(x, &(step){.op_type = "Concat", .in = {state, flat}, .attrs = {int_attr("axis", 1)}});
    return part_do(x, "MatMul", both, m->mixed);
}

static tensor *memory_recur(expansion *x, const layer *l, tensor *state, void *of) {
    const memory *const m = of;
    tensor *const seen = seen_of(x, l, m, state);
    return part_add(x, by_rows(x, state, m->recurrence), by_rows(x, seen, m->seen));
}

/* With a state of its own the first step would see nothing of the memory, and the others do. */
void take_memory_lstm(expansion *x) {
    layer l = read_layer(x);
    memory m = {0};
    if (part_in(x, STATE) || tensor_rank(part_in(x, MEMORY)) != 3) x->failed = true;
    if (!x->failed) take_ways(x, &l, &(kind){memory_inputs, memory_recur, &m});
}
