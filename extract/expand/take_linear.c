/* Linear attention: what each step does with its state, or many steps at once. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <math.h>
#include <string.h>

enum { PAST = 3, DECAY, BETA, RANK = 4, LONGEST = STEP_INPUTS, MOST_STEPS = 1 << 20 };

/* Each key head has a state; several query heads may share one, or several states a query head. */
typedef struct steps {
    int64_t batch, length, heads, groups, size, value_size, window; /* groups: key heads */
    double scale;
    dtype type;                    /* of the state, which all is counted in */
    bool decays, corrects, by_key; /* by_key: each number of a key has a gate of its own */
} steps;

static bool read_rule(const expansion *x, steps *s) {
    static const struct {
        const char *name;
        bool decays, corrects;
    } rules[] = {{"delta", false, true}, {"gated", true, false}, {"gated_delta", true, true}, {"linear", false, false}};
    const char *const rule = graph_attr_string(x->n, "update_rule", "gated_delta");
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
        if (strcmp(rules[k].name, rule) == 0) {
            s->decays = rules[k].decays, s->corrects = rules[k].corrects;
            return true;
        }
    return false;
}

static steps read_steps(expansion *x) {
    const tensor *const query = part_in(x, QUERY), *const key = part_in(x, KEY), *const val = part_in(x, VALUE),
                        *const past = part_in(x, PAST);
    steps s = {.batch = tensor_dim(query, 0),
               .length = tensor_dim(query, 1),
               .heads = graph_attr_int(x->n, "q_num_heads", 0),
               .groups = graph_attr_int(x->n, "kv_num_heads", 0),
               .window = graph_attr_int(x->n, "state_window", 0),
               .scale = graph_attr_float(x->n, "scale", 0)};
    if (!read_rule(x, &s) || tensor_rank(query) != 3 || s.heads < 1 || s.groups < 1 || s.batch < 1 || s.length < 1 ||
        s.length > MOST_STEPS || s.window < 0 || s.window > LONGEST ||
        (s.heads % s.groups != 0 && s.groups % s.heads != 0) || (s.decays && !part_in(x, DECAY)) ||
        (s.corrects && !part_in(x, BETA)))
        x->failed = true;
    if (x->failed) return s;
    s.size = tensor_dim(key, 2) / s.groups, s.value_size = tensor_dim(val, 2) / s.groups;
    s.type = past ? past->info->type : query->info->type;
    if (s.size < 1 || s.value_size < 1) x->failed = true;
    const int64_t gates = s.decays ? tensor_dim(part_in(x, DECAY), 2) : s.groups;
    s.by_key = gates != s.groups;
    if (s.by_key && gates != checked_mul(s.groups, s.size)) x->failed = true;
    if (s.scale == 0 && s.size > 0) s.scale = 1 / sqrt((double)s.size);
    return s;
}

static tensor *wide(expansion *x, tensor *t, dtype type) {
    return t && t->info->type != type ? part_cast(x, t, type) : t;
}

/* What an input says of step `at`, in that shape. */
static tensor *of_step(expansion *x, const steps *s, int slot, int64_t at, int64_t rows, int64_t cols) {
    tensor *t = part_in(x, slot);
    if (s->length > 1) t = part_slice(x, t, 1, at, at + 1);
    t = wide(x, t, s->type);
    const int64_t each = checked_mul(rows, cols), heads = each > 0 ? tensor_count(t) / s->batch / each : 0;
    return t ? part_reshaped(x, t, RANK, (int64_t[]){s->batch, heads, rows, cols}) : NULL;
}

/* A query of each state: those that share one are its rows, and one that has several is there for each. */
static tensor *queries(expansion *x, const steps *s, int64_t at) {
    const int64_t rows = s->heads / s->groups;
    if (rows > 0) return of_step(x, s, QUERY, at, rows, s->size);
    tensor *const one =
        part_reshaped(x, of_step(x, s, QUERY, at, 1, s->size), RANK, (int64_t[]){s->batch, s->heads, 1, s->size});
    const int64_t dims[] = {s->batch, s->heads, s->groups / s->heads, s->size};
    tensor *const all = *part_make(x, &(step){.op_type = "Expand", .in = {one, part_numbers(x, "shape", RANK, dims)}});
    return part_reshaped(x, all, RANK, (int64_t[]){s->batch, s->groups, 1, s->size});
}

/* The state behind a step; what it was before is NULL where it is zero. */
static tensor *next_state(expansion *x, const steps *s, tensor *state, int64_t at) {
    tensor *const key = of_step(x, s, KEY, at, s->size, 1);
    tensor *val = of_step(x, s, VALUE, at, 1, s->value_size);
    if (state && s->decays) {
        tensor *const gate = of_step(x, s, DECAY, at, s->by_key ? s->size : 1, 1);
        state = part_do(x, "Mul", state, part_do(x, "Exp", gate, NULL));
    }
    if (s->corrects && state) {
        tensor *const known =
            part_do(x, "MatMul", part_reshaped(x, key, RANK, (int64_t[]){s->batch, s->groups, 1, s->size}), state);
        val = part_do(x, "Sub", val, known);
    }
    if (s->corrects) val = part_do(x, "Mul", val, of_step(x, s, BETA, at, 1, 1));
    tensor *const change = part_do(x, "Mul", key, val);
    return state ? part_add(x, state, change) : change;
}

/* The last states, the newest last; before the first one they are zero. */
static tensor *window_of(expansion *x, const steps *s, tensor *const *states, int64_t known) {
    const int64_t count = known < s->window ? known : s->window;
    int64_t dims[] = {1, s->batch, s->groups, s->size, s->value_size}, pads[10] = {0};
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 0)}};
    if (count > STEP_INPUTS) x->failed = true;
    for (int64_t k = 0; k < count && !x->failed; k++)
        joined.in[k] = part_reshaped(x, states[known - count + k], RANK + 1, dims);
    tensor *const all = count > 1 ? *part_make(x, &joined) : joined.in[0];
    pads[0] = s->window - count;
    if (pads[0] == 0) return all;
    return *part_make(x, &(step){.op_type = "Pad", .in = {all, part_numbers(x, "pads", 2 * (RANK + 1), pads)}});
}

static tensor *first_state(expansion *x, const steps *s) {
    tensor *const past = part_in(x, PAST);
    if (past && tensor_rank(past) != (s->window > 0 ? RANK + 1 : RANK)) x->failed = true;
    if (!past || s->window == 0 || x->failed) return past;
    return part_reshaped(x, part_slice(x, past, 0, s->window - 1, s->window), RANK, past->info->dims + 1);
}

static void end(expansion *x, tensor *all) {
    const tensor *const out = part_out(x, 0);
    if (all && out && all->info->type != out->info->type)
        part_end(x, &(step){.op_type = "Cast", .in = {all}, .attrs = {int_attr("to", out->info->type)}});
    else
        part_end_reshaped(x, all);
}

/* Those from `first` on; `before` is what the others made, NULL: there are none. */
static void take_each(expansion *x, const steps *s, int64_t first, tensor *before, tensor *state) {
    tensor *states[LONGEST];
    step joined = {.op_type = "Concat", .in = {before}, .attrs = {int_attr("axis", 1)}};
    int count = before != NULL;
    if (checked_sub(s->length, first) > STEP_INPUTS - count) x->failed = true;
    for (int64_t k = first; k < s->length && !x->failed; k++) {
        states[k - first] = state = next_state(x, s, state, k);
        tensor *const made = *part_make(x, &(step){.domain = "com.microsoft",
                                                   .op_type = "FusedMatMul",
                                                   .in = {queries(x, s, k), state},
                                                   .attrs = {real_attr("alpha", s->scale)}});
        joined.in[count++] = part_reshaped(x, made, 3, (int64_t[]){s->batch, 1, tensor_count(made) / s->batch});
    }
    if (x->failed) return;
    tensor *const kept = s->window > 0 ? window_of(x, s, states, s->length - first) : state;
    end(x, count > 1 ? *part_make(x, &joined) : joined.in[0]);
    part_give(x, 1, kept);
}

/* ---- many steps at once: chunks of them, whose states follow from one another ---- */

typedef struct chunks {
    const steps *s;
    int64_t count, length, rows; /* rows: queries that share a state */
    tensor *query, *key, *val;   /* [batch, groups, chunks, rows * steps or steps, size] */
    tensor *sums, *decay; /* of gates within a chunk, and from step to step; NULL without gates, or of one for all */
} chunks;

enum { LAST = 4 /* axis of sizes */ };

static tensor *do_axis(expansion *x, const char *op_type, tensor *t, int64_t axis) {
    return *part_make(x, &(step){.op_type = op_type, .in = {t, part_scalar(x, "axis", DTYPE_INT64, axis)}});
}

/* The steps that chunks have, of an input that may have more: what is behind them changes no state. */
static tensor *of_chunks(expansion *x, const chunks *c, tensor *t) {
    const int64_t all = checked_mul(c->count, c->length), pads[] = {0, 0, 0, 0, checked_sub(all, c->s->length), 0};
    if (tensor_dim(t, 1) > c->s->length) t = part_slice(x, t, 1, 0, c->s->length);
    return pads[4] > 0 ? *part_make(x, &(step){.op_type = "Pad", .in = {t, part_numbers(x, "pads", 6, pads)}}) : t;
}

/* [batch, length, groups * rows * size] of an input, by group, chunk and row. */
static tensor *in_chunks(expansion *x, const chunks *c, int slot, int64_t groups, int64_t rows, int64_t size) {
    static const int64_t perm[] = {0, 3, 1, 4, 2, 5};
    enum { AXES = 6 };
    const steps *s = c->s;
    const int64_t dims[] = {s->batch, c->count, c->length, groups, rows, size},
                  made[] = {s->batch, groups, c->count, checked_mul(rows, c->length), size};
    tensor *const apart = part_reshaped(x, of_chunks(x, c, wide(x, part_in(x, slot), s->type)), AXES, dims);
    tensor *const t =
        *part_make(x, &(step){.op_type = "Transpose", .in = {apart}, .attrs = {ints_attr("perm", AXES, perm)}});
    return part_reshaped(x, t, LAST + 1, made);
}

static tensor *product(expansion *x, tensor *a, tensor *b, const attr *how) {
    step s = {.domain = "com.microsoft", .op_type = "FusedMatMul", .in = {a, b}};
    for (int k = 0; how && how[k].name; k++) s.attrs[k] = how[k];
    return *part_make(x, &s);
}

/* What is left from each of `n` to each later one, of sums that end in [n]: [n, n], nothing from later ones. */
static tensor *left(expansion *x, const chunks *c, tensor *sums, int64_t many, int64_t n) {
    const int64_t down[] = {c->s->batch, c->s->groups, many, n, 1}, along[] = {c->s->batch, c->s->groups, many, 1, n};
    tensor *const far =
        part_do(x, "Sub", part_reshaped(x, sums, LAST + 1, down), part_reshaped(x, sums, LAST + 1, along));
    return *part_make(
        x, &(step){.op_type = "Trilu", .in = {part_do(x, "Exp", far, NULL)}, .attrs = {int_attr("upper", 0)}});
}

/* Queries of each state: one that has several is there for each. */
static tensor *queries_of_chunks(expansion *x, const chunks *c) {
    const steps *s = c->s;
    if (s->heads >= s->groups) return in_chunks(x, c, QUERY, s->groups, c->rows, s->size);
    int64_t one[] = {s->batch, s->heads, 1, c->count, c->length, s->size},
            all[] = {s->batch, s->groups, c->count, c->length, s->size};
    tensor *const made = part_reshaped(x, in_chunks(x, c, QUERY, s->heads, 1, s->size), LAST + 2, one);
    one[2] = s->groups / s->heads;
    return part_reshaped(
        x, *part_make(x, &(step){.op_type = "Expand", .in = {made, part_numbers(x, "shape", LAST + 2, one)}}), LAST + 1,
        all);
}

/* Of equal length, and as few as hold all steps where no length divides them well. */
static void set_length(chunks *c) {
    enum { USUAL = 64, MOST = 32 /* chunks, of sequences that are longer */ };
    const int64_t all = c->s->length, longest = all / MOST > USUAL ? checked_ceil_div(all, MOST) : USUAL;
    c->length = all < longest ? all : longest;
    while (all % c->length != 0 && c->length > longest / 2) c->length--;
    if (all % c->length != 0) c->length = checked_ceil_div(all, checked_ceil_div(all, longest));
    c->count = checked_ceil_div(all, c->length);
}

static chunks read_chunks(expansion *x, const steps *s) {
    chunks c = {.s = s, .rows = s->heads > s->groups ? s->heads / s->groups : 1};
    set_length(&c);
    c.query = queries_of_chunks(x, &c);
    c.key = in_chunks(x, &c, KEY, s->groups, 1, s->size);
    c.val = in_chunks(x, &c, VALUE, s->groups, 1, s->value_size);
    if (s->decays) {
        c.sums = do_axis(x, "CumSum", in_chunks(x, &c, DECAY, s->groups, 1, s->by_key ? s->size : 1), 3);
        if (!s->by_key) c.decay = left(x, &c, c.sums, c.count, c.length);
    }
    return c;
}

static tensor *lower(expansion *x, tensor *t, int64_t diagonal) {
    tensor *const from = diagonal != 0 ? part_scalar(x, "diagonal", DTYPE_INT64, diagonal) : NULL;
    return *part_make(x, &(step){.op_type = "Trilu", .in = {t, from}, .attrs = {int_attr("upper", 0)}});
}

/* Some steps by what is left between them and the step that sums are counted from. */
static tensor *faded_from(expansion *x, const chunks *c, tensor *t, int64_t rows, tensor *far) {
    const int64_t length = tensor_dim(far, 3), size = c->s->size;
    const int64_t apart[] = {c->s->batch, c->s->groups, c->count, rows, length, size},
                  gates[] = {c->s->batch, c->s->groups, c->count, 1, length, size},
                  flat[] = {c->s->batch, c->s->groups, c->count, checked_mul(rows, length), size};
    tensor *const left_over = part_reshaped(x, part_do(x, "Exp", far, NULL), LAST + 2, gates);
    return part_reshaped(x, part_do(x, "Mul", part_reshaped(x, t, LAST + 2, apart), left_over), LAST + 1, flat);
}

/* Of gates by key: blocks of few steps at a time, counted from the middle of the block, so that no power is too large
 * for its type. */
static tensor *pairs_by_key(expansion *x, const chunks *c, tensor *t, int64_t rows, double alpha, int64_t diagonal) {
    enum { BLOCK = 16 };
    const attr how[] = {int_attr("transB", 1), real_attr("alpha", alpha), {.name = NULL}};
    const int64_t all[] = {c->s->batch, c->s->groups, c->count, rows, c->length, c->s->size};
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", LAST)}};
    int count = 0;
    if (c->length > (int64_t)BLOCK * STEP_INPUTS) x->failed = true;
    tensor *const apart = part_reshaped(x, t, LAST + 2, all);
    for (int64_t from = 0; from < c->length && !x->failed; from += BLOCK) {
        const int64_t to = c->length < from + BLOCK ? c->length : from + BLOCK, middle = (from + to) / 2;
        const int64_t dims[] = {all[0], all[1], all[2], rows, to - from, to},
                      pads[2 * (LAST + 2)] = {[2 * (LAST + 2) - 1] = c->length - to};
        tensor *const at = part_slice(x, c->sums, 3, middle, middle + 1);
        tensor *const later = part_do(x, "Sub", part_slice(x, c->sums, 3, from, to), at), *const sooner = part_do(
                                                                                              x, "Sub", at,
                                                                                              part_slice(x, c->sums, 3,
                                                                                                         0, to));
        tensor *const block = faded_from(x, c, part_slice(x, apart, LAST, from, to), rows, later),
                      *const keys = faded_from(x, c, part_slice(x, c->key, 3, 0, to), 1, sooner);
        tensor *made = lower(x, part_reshaped(x, product(x, block, keys, how), LAST + 2, dims), from + diagonal);
        if (to < c->length)
            made =
                *part_make(x, &(step){.op_type = "Pad", .in = {made, part_numbers(x, "pads", 2 * (LAST + 2), pads)}});
        joined.in[count++] = made;
    }
    return count > 1 ? *part_make(x, &joined) : joined.in[0];
}

/* How much steps of a chunk have to do with earlier ones of it, up to that diagonal. */
static tensor *pairs(expansion *x, const chunks *c, tensor *t, int64_t rows, double alpha, int64_t diagonal) {
    const steps *s = c->s;
    const attr how[] = {int_attr("transB", 1), real_attr("alpha", alpha), {.name = NULL}};
    const int64_t apart[] = {s->batch, s->groups, c->count, rows, c->length, c->length},
                  gates[] = {s->batch, s->groups, c->count, 1, c->length, c->length},
                  flat[] = {s->batch, s->groups, c->count, checked_mul(rows, c->length), c->length};
    if (s->by_key) return part_reshaped(x, pairs_by_key(x, c, t, rows, alpha, diagonal), LAST + 1, flat);
    tensor *scores = part_reshaped(x, product(x, t, c->key, how), LAST + 2, apart);
    if (c->decay) scores = part_do(x, "Mul", scores, part_reshaped(x, c->decay, LAST + 2, gates));
    if (!c->decay || diagonal != 0) scores = lower(x, scores, diagonal);
    return part_reshaped(x, scores, LAST + 1, flat);
}

/* How much steps of a chunk see of earlier ones of it. */
static tensor *seen_within(expansion *x, const chunks *c) { return pairs(x, c, c->query, c->rows, c->s->scale, 0); }

/* What of each key is left at the end of its chunk. */
static tensor *left_keys(expansion *x, const chunks *c) {
    const int64_t column[] = {c->s->batch, c->s->groups, c->count, c->length, 1};
    if (!c->sums) return c->key;
    if (c->s->by_key) {
        tensor *const end = part_slice(x, c->sums, 3, c->length - 1, c->length);
        return faded_from(x, c, c->key, 1, part_do(x, "Sub", end, c->sums));
    }
    tensor *const last = part_slice(x, c->decay, 3, c->length - 1, c->length);
    return part_do(x, "Mul", c->key, part_reshaped(x, last, LAST + 1, column));
}

/* Rows of steps by what is left since their chunk began. */
static tensor *faded(expansion *x, const chunks *c, tensor *t) {
    const steps *s = c->s;
    const int64_t apart[] = {s->batch, s->groups, c->count, c->rows, c->length, tensor_dim(t, LAST)},
                  gates[] = {s->batch, s->groups, c->count, 1, c->length, tensor_dim(c->sums, LAST)};
    if (!c->sums || !t) return t;
    tensor *const made = part_do(x, "Mul", part_reshaped(x, t, LAST + 2, apart),
                                 part_do(x, "Exp", part_reshaped(x, c->sums, LAST + 2, gates), NULL));
    return part_reshaped(x, made, LAST + 1, t->info->dims);
}

/* The states behind each chunk, as rows: what each adds, and what is left of those before it. */
static tensor *behind(expansion *x, const chunks *c, tensor *past) {
    const steps *s = c->s;
    const int64_t all = checked_mul(s->size, s->value_size), flat[] = {s->batch, s->groups, 1, c->count, all},
                  one[] = {s->batch, s->groups, 1, 1, all}, each[] = {s->batch, s->groups, 1, c->count, 1};
    tensor *ends = NULL, *made = product(x, left_keys(x, c), c->val, (attr[]){int_attr("transA", 1), {.name = NULL}});
    made = part_reshaped(x, made, LAST + 1, flat);
    if (c->decay) {
        ends = part_reshaped(x, part_slice(x, c->sums, 3, c->length - 1, c->length), LAST + 1, each);
        if (c->count > 1) ends = do_axis(x, "CumSum", ends, 3);
    }
    if (c->count > 1)
        made = c->decay ? product(x, left(x, c, ends, 1, c->count), made, NULL) : do_axis(x, "CumSum", made, 3);
    if (!past) return made;
    past = part_reshaped(x, past, LAST + 1, one);
    return part_add(x, made, c->decay ? part_do(x, "Mul", part_do(x, "Exp", ends, NULL), past) : past);
}

/* What steps see of the state that their chunk begins with. */
static tensor *across(expansion *x, const chunks *c, tensor *past, tensor *states) {
    const steps *s = c->s;
    const int64_t all = checked_mul(s->size, s->value_size), one[] = {s->batch, s->groups, 1, 1, all},
                  matrices[] = {s->batch, s->groups, c->count, s->size, s->value_size};
    tensor *before = past ? part_reshaped(x, past, LAST + 1, one) : NULL;
    if (c->count > 1) {
        const int64_t pads[2 * (LAST + 1)] = {[3] = 1};
        tensor *const others = part_slice(x, states, 3, 0, c->count - 1);
        const step joined = {.op_type = "Concat", .in = {before, others}, .attrs = {int_attr("axis", 3)}},
                   padded = {.op_type = "Pad", .in = {others, part_numbers(x, "pads", 2 * (LAST + 1), pads)}};
        before = *part_make(x, past ? &joined : &padded);
    }
    return faded(x, c,
                 product(x, c->query, part_reshaped(x, before, LAST + 1, matrices),
                         (attr[]){real_attr("alpha", s->scale), {.name = NULL}}));
}

/* ---- and those that correct their state: within a chunk each step knows what earlier ones changed ---- */

typedef struct corrected {
    tensor *made, *known; /* what steps write into a state of zero, and what they take back of the one that was there */
} corrected;

/* (I + L) of both is what each step asks for by itself, L below the diagonal: the inverse is (I - L)(I + L^2)(I + L^4)…
 */
static corrected correct(expansion *x, const chunks *c) {
    const steps *s = c->s;
    const int64_t rates = tensor_dim(part_in(x, BETA), 2), sizes[] = {s->value_size, s->size};
    if (rates != 1 && rates != s->groups) x->failed = true;
    if (x->failed) return (corrected){NULL, NULL};
    tensor *const rate = in_chunks(x, c, BETA, rates, 1, 1), *const key = part_do(x, "Mul", c->key, rate);
    tensor *power = pairs(x, c, key, 1, -1, -1);
    tensor *const asked = c->sums ? part_do(x, "Mul", key, part_do(x, "Exp", c->sums, NULL)) : key;
    tensor *both = *part_make(x, &(step){.op_type = "Concat",
                                         .in = {part_do(x, "Mul", c->val, rate), asked},
                                         .attrs = {int_attr("axis", LAST)}});
    for (int64_t reach = 1; reach < c->length; reach *= 2) {
        both = part_add(x, both, product(x, power, both, NULL));
        if (reach * 2 < c->length) power = product(x, power, power, NULL);
    }
    tensor *const *parts = part_split(x, both, LAST, 2, sizes);
    return (corrected){parts[0], parts[1]};
}

/* The states that chunks begin with, and behind the last one: each is what is left of it, less what is taken back. */
static tensor *follow(expansion *x, const chunks *c, corrected of, tensor *state, tensor **last) {
    const steps *s = c->s;
    const attr turned[] = {int_attr("transA", 1), {.name = NULL}};
    const int64_t matrix[] = {s->batch, s->groups, 1, s->size, s->value_size};
    tensor *const keys = left_keys(x, c), *const added = product(x, keys, of.made, turned),
                  *const taken = of.known ? product(x, keys, of.known, turned) : NULL;
    tensor *ends = c->sums ? part_do(x, "Exp", part_slice(x, c->sums, 3, c->length - 1, c->length), NULL) : NULL;
    if (s->by_key) ends = part_reshaped(x, ends, LAST + 1, (int64_t[]){s->batch, s->groups, c->count, s->size, 1});
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 2)}};
    state = part_reshaped(x, state ? state : part_zeros(x, s->type, LAST + 1, matrix), LAST + 1, matrix);
    if (c->count > STEP_INPUTS) x->failed = true;
    for (int64_t k = 0; k < c->count && !x->failed; k++) {
        joined.in[k] = state;
        tensor *more = part_slice(x, added, 2, k, k + 1);
        if (taken) more = part_do(x, "Sub", more, product(x, part_slice(x, taken, 2, k, k + 1), state, NULL));
        if (ends) state = part_do(x, "Mul", state, part_slice(x, ends, 2, k, k + 1));
        state = part_add(x, state, more);
    }
    *last = state;
    return c->count > 1 ? *part_make(x, &joined) : joined.in[0];
}

/* What steps see of their own chunk, and of the state that it begins with. */
static tensor *see_followed(expansion *x, const chunks *c, tensor *past, tensor **last) {
    const corrected of = c->s->corrects ? correct(x, c) : (corrected){c->val, NULL};
    tensor *const before = follow(x, c, of, past, last), *const seen = seen_within(x, c);
    tensor *const scaled = faded(x, c, part_do(x, "Mul", c->query, part_real(x, c->query, "scale", c->s->scale)));
    tensor *const others = of.known ? part_do(x, "Sub", scaled, product(x, seen, of.known, NULL)) : scaled;
    return part_add(x, product(x, seen, of.made, NULL), product(x, others, before, NULL));
}

/* What steps see, and the state behind the last one. */
static tensor *see(expansion *x, const chunks *c, tensor *past, tensor **last) {
    tensor *const states = behind(x, c, past), *const own = product(x, seen_within(x, c), c->val, NULL);
    *last = c->count > 1 ? part_slice(x, states, 3, c->count - 1, c->count) : states;
    return past || c->count > 1 ? part_add(x, own, across(x, c, past, states)) : own;
}

/* What these steps make, and the state behind them. */
static tensor *take_chunks(expansion *x, const steps *s, tensor **state) {
    static const int64_t perm[] = {0, 2, 4, 1, 3, 5};
    tensor *const past = first_state(x, s), *last = NULL;
    const chunks c = read_chunks(x, s);
    if (x->failed) return NULL;
    tensor *const made = s->corrects || s->by_key ? see_followed(x, &c, past, &last) : see(x, &c, past, &last);
    const int64_t dims[] = {s->batch, s->groups, c.count, c.rows, c.length, s->value_size},
                  kept[RANK] = {s->batch, s->groups, s->size, s->value_size},
                  all[] = {s->batch, checked_mul(c.count, c.length),
                           checked_mul(checked_mul(s->groups, c.rows), s->value_size)};
    *state = part_reshaped(x, last, RANK, kept);
    tensor *const turned = *part_make(x, &(step){.op_type = "Transpose",
                                                 .in = {part_reshaped(x, made, LAST + 2, dims)},
                                                 .attrs = {ints_attr("perm", LAST + 2, perm)}});
    tensor *const flat = part_reshaped(x, turned, 3, all);
    return all[1] > s->length ? part_slice(x, flat, 1, 0, s->length) : flat;
}

/* A window of states goes step by step, behind what is before it. */
void take_linear_attention(expansion *x) {
    const steps s = read_steps(x);
    tensor *state = NULL;
    if (x->failed) return;
    if (s.length == 1 || (s.window > 0 && s.length <= LONGEST)) {
        take_each(x, &s, 0, NULL, first_state(x, &s));
        return;
    }
    steps many = s;
    many.length -= s.window;
    tensor *const made = take_chunks(x, &many, &state);
    if (s.window > 0) {
        take_each(x, &s, many.length, made, state);
        return;
    }
    end(x, made);
    part_give(x, 1, state);
}
