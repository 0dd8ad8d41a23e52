/* What is chosen by data: tokens that are no padding, elements that are there once, tokens that would repeat others.
 * How many they are is not known, so that their parts are as large as they can be. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <math.h>

static tensor *gathered(expansion *x, tensor *t, tensor *places) {
    return *part_make(x, &(step){.op_type = "Gather", .in = {t, places}, .attrs = {int_attr("axis", 0)}});
}

static tensor *joined(expansion *x, tensor *a, tensor *b) {
    return *part_make(x, &(step){.op_type = "Concat", .in = {a, b}, .attrs = {int_attr("axis", 0)}});
}

/* Which elements of a vector are true. */
static tensor *places_of(expansion *x, tensor *flags) {
    return part_do(x, "Squeeze", part_do(x, "NonZero", flags, NULL), part_number(x, "axes", 0));
}

/* How many are true before each of them, and with it. */
static tensor *running(expansion *x, tensor *flags) {
    return part_do(x, "CumSum", part_cast(x, flags, DTYPE_INT64), part_scalar(x, "axis", DTYPE_INT64, 0));
}

static tensor *less_one(expansion *x, tensor *t) { return part_do(x, "Sub", t, part_scalar(x, "one", DTYPE_INT64, 1)); }

/* A vector whose element at places[k] is values[k], for each k once. */
static tensor *scattered(expansion *x, tensor *places, tensor *values) {
    const int64_t count = tensor_count(places);
    return *part_make(x, &(step){.op_type = "ScatterElements",
                                 .in = {part_table(x, "blank", DTYPE_INT64, 1, &count), places, values},
                                 .attrs = {int_attr("axis", 0)}});
}

/* ---- what is made of a length that data decide; of a known one it is a constant ---- */

static bool is_number(const tensor *t, double number) {
    const value *v = t ? t->info->val : NULL;
    return v && v->n == 1 && value_at(v, 0) == number;
}

/* The first ones of as many numbers as there can be. */
void take_range(expansion *x) {
    enum { START, LIMIT, DELTA };
    static const int64_t one = 1;
    const info *const is = part_out(x, 0)->info;
    tensor *const start = part_in(x, START), *const delta = part_in(x, DELTA), *end = part_in(x, LIMIT);
    const bool from_start = !is_number(start, 0);
    if (!is->inexact || (delta && !is_number(delta, 1)) || (is->type != DTYPE_INT64 && is->type != DTYPE_INT32))
        x->failed = true;
    if (x->failed) return;
    const info *const zero = info_of_ints(x->e->m->arena, is->type, 1, &one, (int64_t[]){0}, 1);
    if (from_start) end = part_do(x, "Sub", end, start);
    end = part_reshaped(x, end, 1, &one);
    tensor *const steps = *part_make(
        x, &(step){.op_type = "Slice",
                   .in = {part_table(x, "steps", is->type, 1, is->dims), part_constant(x, "starts", zero), end}});
    if (from_start) part_do(x, "Add", steps, start);
    part_end_made(x);
}

void take_filled(expansion *x) {
    const attr *fill = graph_attr(x->n, "value", ATTR_TENSOR);
    if (!part_out(x, 0)->info->inexact) x->failed = true;
    if (x->failed) return;
    tensor *const number =
        fill && fill->t ? part_constant(x, "fill", fill->t->info) : part_table(x, "fill", DTYPE_FP32, 0, info_no_dims);
    part_end(x, &(step){.op_type = "Expand", .in = {number, part_in(x, 0)}});
}

/* ---- tokens ---- */

/* Where each token was: first those that are some, then padding. */
static tensor *order_of(expansion *x, tensor *flags, tensor *counts) {
    const int64_t all = tensor_count(flags);
    tensor *const before = running(x, flags), *const each = part_table(x, "places", DTYPE_INT64, 1, &all);
    tensor *total = *part_make(x, &(step){.op_type = "ReduceSum", .in = {counts}, .attrs = {int_attr("keepdims", 1)}});
    total = part_cast(x, total, DTYPE_INT64);
    tensor *const padding = part_do(x, "Add", part_do(x, "Sub", each, before), total);
    tensor *const to = *part_make(x, &(step){.op_type = "Where", .in = {flags, less_one(x, before), padding}});
    return part_cast(x, scattered(x, to, each), DTYPE_INT32);
}

/* Tokens without padding; where each was, where each sequence begins, and the most that one has. */
void take_remove_padding(expansion *x) {
    enum { TOKENS, COUNTS, RANK = 3, ROWS = 2, WHERE = 1, BEGINS, MOST };
    tensor *const in = part_in(x, TOKENS), *const counts = part_in(x, COUNTS);
    tensor *where = NULL, *begins = NULL, *most = NULL;
    if (tensor_rank(in) != RANK || tensor_rank(counts) != 1 || counts->info->type != DTYPE_INT32) x->failed = true;
    if (x->failed) return;
    const int64_t batch = tensor_dim(in, 0), length = tensor_dim(in, 1), all = checked_mul(batch, length);
    const int64_t down[ROWS] = {batch, 1}, along[ROWS] = {1, length}, table[ROWS] = {batch, length};
    tensor *const steps = part_table(x, "steps", DTYPE_INT32, ROWS, along);
    tensor *const flags = part_reshaped(x, part_do(x, "Less", steps, part_reshaped(x, counts, ROWS, down)), 1, &all);
    if (part_out(x, WHERE)) where = part_reshaped(x, order_of(x, flags, counts), ROWS, table);
    if (part_out(x, BEGINS)) {
        tensor *const sums = part_do(x, "CumSum", counts, part_scalar(x, "axis", DTYPE_INT64, 0));
        begins = joined(x, part_table(x, "first", DTYPE_INT32, 1, (int64_t[]){1}), sums);
    }
    if (part_out(x, MOST))
        most = *part_make(x, &(step){.op_type = "ReduceMax", .in = {counts}, .attrs = {int_attr("keepdims", 1)}});
    tensor *const rows = part_reshaped(x, in, ROWS, (int64_t[ROWS]){all, tensor_dim(in, 2)});
    part_end(x, &(step){.op_type = "Gather", .in = {rows, places_of(x, flags)}, .attrs = {int_attr("axis", 0)}});
    part_give(x, WHERE, where);
    part_give(x, BEGINS, begins);
    part_give(x, MOST, most);
}

/* A token is not to follow that followed the same ones before: of those that end a sequence, all but one of so many. */
void take_ngram_block(expansion *x) {
    enum { IDS, SCORES, RANK = 2, MOST_SIZE = 64 };
    tensor *const ids = part_in(x, IDS), *const scores = part_in(x, SCORES), *same = NULL;
    const int64_t size = graph_attr_int(x->n, "ngram_size", 0), length = tensor_dim(ids, 1);
    if (tensor_rank(ids) != RANK || tensor_rank(scores) != RANK || size < 1 || size > MOST_SIZE) x->failed = true;
    if (x->failed) return;
    const int64_t grams = length - size + 1, all[RANK] = {tensor_dim(ids, 0), grams};
    if (grams < 1) {
        part_end(x, &(step){.op_type = "Identity", .in = {scores}});
        return;
    }
    for (int64_t k = 0; k < size - 1; k++) {
        tensor *const here =
            part_do(x, "Equal", part_slice(x, ids, 1, k, k + grams), part_slice(x, ids, 1, grams + k, grams + k + 1));
        same = same ? part_do(x, "And", same, here) : here;
    }
    tensor *const never = part_real(x, scores, "never", -INFINITY), *const free =
                                                                        part_real(x, scores, "free", INFINITY);
    tensor *most = same ? *part_make(x, &(step){.op_type = "Where", .in = {same, never, free}})
                        : part_do(x, "Expand", never, part_numbers(x, "shape", RANK, all));
    part_end(x, &(step){.op_type = "ScatterElements",
                        .in = {scores, part_slice(x, ids, 1, size - 1, length), most},
                        .attrs = {int_attr("axis", 1), text_attr("reduction", "min")}});
}

/* ---- elements that are there once ---- */

/* A vector in order. Elements of a group are equal, and their places rise. */
typedef struct groups {
    tensor *values, *places; /* sorted, and where each was */
    tensor *fresh;           /* whether a group begins */
    tensor *begins;          /* of each group */
} groups;

static groups grouped(expansion *x, tensor *flat, int64_t count) {
    static const int64_t yes = 1;
    tensor *const *sorted =
        part_make(x, &(step){.op_type = "TopK",
                             .in = {flat, part_number(x, "k", count)},
                             .attrs = {int_attr("axis", 0), int_attr("largest", 0), int_attr("sorted", 1)},
                             .outputs = 2});
    groups g = {.values = sorted[0], .places = sorted[1]};
    tensor *const same =
        part_do(x, "Equal", part_slice(x, g.values, 0, 1, count), part_slice(x, g.values, 0, 0, count - 1));
    tensor *const first = part_constant(x, "first", info_of_ints(x->e->m->arena, DTYPE_BOOL, 1, &yes, &yes, 1));
    g.fresh = joined(x, first, part_do(x, "Not", same, NULL));
    g.begins = places_of(x, g.fresh);
    return g;
}

/* How many elements each group has. */
static tensor *sizes_of(expansion *x, const groups *g, int64_t count) {
    return part_do(x, "Sub", joined(x, part_slice(x, g->begins, 0, 1, count), part_number(x, "end", count)), g->begins);
}

enum { FIRST, INVERSE, SIZES, BESIDE }; /* outputs beside the elements */

/* One element is itself, stands first, and is there once. */
static step one_chosen(expansion *x, tensor *flat, const bool *wanted, tensor **beside) {
    for (int k = 0; k < BESIDE; k++) {
        tensor *const one = wanted[k] ? part_do(x, "Shape", flat, NULL) : NULL;
        beside[k] = one && k != SIZES ? less_one(x, one) : one;
    }
    return (step){.op_type = "Identity", .in = {flat}};
}

/* Each element once, in order or as they came. */
static step some_chosen(expansion *x, tensor *flat, bool sorted, const bool *wanted, tensor **beside) {
    const int64_t count = tensor_count(flat);
    const groups g = grouped(x, flat, count);
    const bool sizes = wanted[SIZES], inverse = wanted[INVERSE];
    tensor *first = wanted[FIRST] || !sorted ? gathered(x, g.places, g.begins) : NULL;
    tensor *of = inverse || (sizes && !sorted) ? scattered(x, g.places, less_one(x, running(x, g.fresh))) : NULL;
    beside[SIZES] = sizes ? sizes_of(x, &g, count) : NULL;
    if (!sorted) {
        tensor *const marks = part_cast(x, scattered(x, g.places, part_cast(x, g.fresh, DTYPE_INT64)), DTYPE_BOOL);
        tensor *const ranks = inverse ? gathered(x, less_one(x, running(x, marks)), first) : NULL;
        first = places_of(x, marks);
        if (sizes) beside[SIZES] = gathered(x, beside[SIZES], gathered(x, of, first));
        if (inverse) of = gathered(x, ranks, of);
    }
    beside[FIRST] = wanted[FIRST] ? first : NULL;
    beside[INVERSE] = inverse ? of : NULL;
    return (step){.op_type = "Gather",
                  .in = {sorted ? g.values : flat, sorted ? g.begins : first},
                  .attrs = {int_attr("axis", 0)}};
}

/* com.microsoft's does not say where they came first, and sorts nothing. */
void take_unique(expansion *x) {
    static const int slots[2][BESIDE] = {{1, 2, 3}, {STEP_OUTPUTS, 1, 2}};
    const bool plain = !*x->n->domain, sorted = plain && graph_attr_int(x->n, "sorted", 1) != 0;
    tensor *flat = part_in(x, 0), *beside[BESIDE];
    const int64_t count = tensor_count(flat);
    bool wanted[BESIDE];
    if (count < 1 || flat->info->type == DTYPE_STRING) x->failed = true;
    if (tensor_rank(flat) > 1 && graph_attr_any(x->n, "axis")) x->failed = true; /* slices, which have no order here */
    if (x->failed) return;
    for (int k = 0; k < BESIDE; k++) wanted[k] = part_out(x, slots[!plain][k]) != NULL;
    flat = part_reshaped(x, flat, 1, &count);
    const step last = count == 1 ? one_chosen(x, flat, wanted, beside) : some_chosen(x, flat, sorted, wanted, beside);
    part_end(x, &last);
    for (int k = 0; k < BESIDE; k++) part_give(x, slots[!plain][k], beside[k]);
}
