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

/* Of as many as there are, which may be more than one part has inputs. */
static tensor *joined_all(expansion *x, tensor **parts, int64_t count, int64_t axis) {
    while (count > 1 && !x->failed) {
        int64_t made = 0;
        for (int64_t from = 0; from < count; from += STEP_INPUTS, made++) {
            step joined = {.op_type = "Concat", .attrs = {int_attr("axis", axis)}};
            for (int64_t k = 0; k < STEP_INPUTS && from + k < count; k++) joined.in[k] = parts[from + k];
            parts[made] = count - from > 1 ? *part_make(x, &joined) : joined.in[0];
        }
        count = made;
    }
    return count == 1 && !x->failed ? parts[0] : NULL;
}

/* Those from `first` on; `before` is what the others made, NULL: there are none. */
static void take_each(expansion *x, const steps *s, int64_t first, tensor *before, tensor *state) {
    tensor *states[LONGEST], *all[LONGEST + 1] = {before};
    int count = before != NULL;
    if (checked_sub(s->length, first) > LONGEST) x->failed = true;
    for (int64_t k = first; k < s->length && !x->failed; k++) {
        states[k - first] = state = next_state(x, s, state, k);
        tensor *const made = *part_make(x, &(step){.domain = "com.microsoft",
                                                   .op_type = "FusedMatMul",
                                                   .in = {queries(x, s, k), state},
                                                   .attrs = {real_attr("alpha", s->scale)}});
        all[count++] = part_reshaped(x, made, 3, (int64_t[]){s->batch, 1, tensor_count(made) / s->batch});
    }
    if (x->failed) return;
    tensor *const kept = s->window > 0 ? window_of(x, s, states, s->length - first) : state;
    end(x, joined_all(x, all, count, 1));
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

static tensor *transposed(expansion *x, tensor *t, int rank, const int64_t *perm) {
    return *part_make(x, &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", rank, perm)}});
}

static tensor *padded(expansion *x, tensor *t, int rank, const int64_t *pads) {
    return *part_make(x, &(step){.op_type = "Pad", .in = {t, part_numbers(x, "pads", 2 * rank, pads)}});
}

static tensor *product(expansion *x, tensor *a, tensor *b, const attr *how) {
    step s = {.domain = "com.microsoft", .op_type = "FusedMatMul", .in = {a, b}};
    for (int k = 0; how && how[k].name; k++) s.attrs[k] = how[k];
    return *part_make(x, &s);
}

static tensor *lower(expansion *x, tensor *t, int64_t diagonal) {
    tensor *const from = diagonal != 0 ? part_scalar(x, "diagonal", DTYPE_INT64, diagonal) : NULL;
    return *part_make(x, &(step){.op_type = "Trilu", .in = {t, from}, .attrs = {int_attr("upper", 0)}});
}

/* A gate that leaves nothing may be minus infinity, which sums could not be told apart from. */
static tensor *sums_of(expansion *x, tensor *gates, int64_t axis) {
    tensor *const kept = part_do(x, "Max", gates, part_real(x, gates, "least", -128));
    return tensor_dim(kept, (int)axis) > 1 ? do_axis(x, "CumSum", kept, axis) : kept;
}

/* Gates are counted in floats at least: sums of halves would be too coarse for what is raised to them. */
static tensor *power_of(expansion *x, const steps *s, tensor *far) {
    return wide(x, part_do(x, "Exp", far, NULL), s->type);
}

/* What is left from each of `n` to each later one, of that many times their sums; 1 from later ones, whose powers could
 * be too large. */
static tensor *left(expansion *x, const steps *s, tensor *sums, int64_t many, int64_t n) {
    const int64_t down[] = {many, n, 1}, along[] = {many, 1, n};
    return power_of(x, s,
                    lower(x, part_do(x, "Sub", part_reshaped(x, sums, 3, down), part_reshaped(x, sums, 3, along)), 0));
}

/* The steps that chunks have, of an input that may have more: what is behind them changes no state. */
static tensor *of_chunks(expansion *x, const chunks *c, tensor *t) {
    const int64_t all = checked_mul(c->count, c->length), pads[] = {0, 0, 0, 0, checked_sub(all, c->s->length), 0};
    if (tensor_dim(t, 1) > c->s->length) t = part_slice(x, t, 1, 0, c->s->length);
    return pads[4] > 0 ? padded(x, t, 3, pads) : t;
}

/* [batch, length, groups * rows * size] of an input, by group, chunk and row. */
static tensor *in_chunks(expansion *x, const chunks *c, int slot, int64_t groups, int64_t rows, int64_t size) {
    static const int64_t perm[] = {0, 3, 1, 4, 2, 5};
    const steps *s = c->s;
    const bool narrow = s->type == DTYPE_FP16 || s->type == DTYPE_BF16;
    const int64_t dims[] = {s->batch, c->count, c->length, groups, rows, size},
                  made[] = {s->batch, groups, c->count, checked_mul(rows, c->length), size};
    tensor *const all = of_chunks(x, c, wide(x, part_in(x, slot), slot == DECAY && narrow ? DTYPE_FP32 : s->type));
    return part_reshaped(x, transposed(x, part_reshaped(x, all, LAST + 2, dims), LAST + 2, perm), LAST + 1, made);
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

/* A power of two, so that each can be halved; fewer where many of the last chunk would be none of the sequence. */
static void set_length(chunks *c) {
    enum { USUAL = 64 /* as of Flash Linear Attention */, FEW = 8 };
    const int64_t all = c->s->length;
    for (c->length = 1; c->length < all && c->length < USUAL;) c->length *= 2;
    while (c->length > FEW && checked_ceil_div(all, c->length) * c->length > all + all / 8) c->length /= 2;
    c->count = checked_ceil_div(all, c->length);
}

static chunks read_chunks(expansion *x, const steps *s) {
    chunks c = {.s = s, .rows = s->heads > s->groups ? s->heads / s->groups : 1};
    set_length(&c);
    c.query = queries_of_chunks(x, &c);
    c.key = in_chunks(x, &c, KEY, s->groups, 1, s->size);
    c.val = in_chunks(x, &c, VALUE, s->groups, 1, s->value_size);
    if (!s->decays) return c;
    const int64_t many = checked_mul(checked_mul(s->batch, s->groups), c.count),
                  flat[] = {s->batch, s->groups, c.count, c.length, c.length};
    c.sums = sums_of(x, in_chunks(x, &c, DECAY, s->groups, 1, s->by_key ? s->size : 1), 3);
    if (!s->by_key) c.decay = part_reshaped(x, left(x, s, c.sums, many, c.length), LAST + 1, flat);
    return c;
}

/* Rows of steps by what is left of them over that far. */
static tensor *faded(expansion *x, const chunks *c, tensor *t, int64_t rows, tensor *far) {
    const steps *s = c->s;
    if (!far || !t) return t;
    const int64_t apart[] = {s->batch, s->groups, c->count, rows, c->length, tensor_dim(t, LAST)},
                  gates[] = {s->batch, s->groups, c->count, 1, c->length, tensor_dim(far, LAST)};
    tensor *const kept = part_reshaped(x, power_of(x, s, far), LAST + 2, gates);
    return part_reshaped(x, part_do(x, "Mul", part_reshaped(x, t, LAST + 2, apart), kept), LAST + 1, t->info->dims);
}

static tensor *end_sums(expansion *x, const chunks *c) { return part_slice(x, c->sums, 3, c->length - 1, c->length); }

/* What of each key is left at the end of its chunk. */
static tensor *left_keys(expansion *x, const chunks *c) {
    return c->sums ? faded(x, c, c->key, 1, part_do(x, "Sub", end_sums(x, c), c->sums)) : c->key;
}

/* ---- pairs of steps of a chunk, where each number of a key has a gate of its own ---- */

typedef struct halves { /* of blocks of steps: [.., blocks, 2, steps of a half, rows of a step, size] */
    int64_t all, blocks, steps, rows, size;
} halves;

static tensor *half(expansion *x, const halves *h, tensor *t, int64_t rows, int64_t size, int which) {
    const int64_t apart[] = {h->all, h->blocks, 2, checked_mul(h->steps, rows), size},
                  made[] = {h->all, h->blocks, h->steps, rows, size};
    return part_reshaped(x, part_slice(x, part_reshaped(x, t, LAST + 1, apart), 2, which, which + 1), LAST + 1, made);
}

/* What later halves have to do with the sooner ones: each fades as far as to where these meet, so that no power is
 * above what the rule itself has. */
static tensor *between(expansion *x, const chunks *c, const halves *h, tensor *t, double alpha) {
    const attr how[] = {int_attr("transB", 1), real_attr("alpha", alpha), {.name = NULL}};
    const int64_t many = checked_mul(h->all, h->blocks), later_rows[] = {many, checked_mul(h->steps, h->rows), h->size},
                  key_rows[] = {many, h->steps, h->size};
    tensor *const sooner = half(x, h, c->sums, 1, h->size, 0), *const later = half(x, h, c->sums, 1, h->size, 1),
                  *const meet = part_slice(x, sooner, 2, h->steps - 1, h->steps);
    tensor *const seeing = part_do(x, "Mul", half(x, h, t, h->rows, h->size, 1),
                                   power_of(x, c->s, part_do(x, "Sub", later, meet))),
                  *const seen = part_do(x, "Mul", half(x, h, c->key, 1, h->size, 0),
                                        power_of(x, c->s, part_do(x, "Sub", meet, sooner)));
    return product(x, part_reshaped(x, seeing, 3, later_rows), part_reshaped(x, seen, 3, key_rows), how);
}

/* Blocks twice as long, of those of `whole` (NULL: nothing): what is right of the diagonal is nothing. */
static tensor *twice(expansion *x, const halves *h, tensor *whole, tensor *below) {
    const int64_t many = checked_mul(h->all, h->blocks), rows = checked_mul(h->steps, h->rows),
                  dims[] = {many, rows, h->steps}, pads[] = {0, 0, 0, 0, 0, h->steps},
                  around[] = {0, rows, 0, 0, 0, h->steps};
    if (!whole) return padded(x, below, 3, around);
    tensor *const above = padded(x, part_reshaped(x, half(x, h, whole, h->rows, h->steps, 0), 3, dims), 3, pads),
                  *const right = part_reshaped(x, half(x, h, whole, h->rows, h->steps, 1), 3, dims);
    const step low = {.op_type = "Concat", .in = {below, right}, .attrs = {int_attr("axis", 2)}};
    const step both = {.op_type = "Concat", .in = {above, *part_make(x, &low)}, .attrs = {int_attr("axis", 1)}};
    return *part_make(x, &both);
}

/* Blocks of one step, then of two, and so on; a step has to do with itself only up to that diagonal. */
static tensor *pairs_by_key(expansion *x, const chunks *c, tensor *t, int64_t rows, double alpha, int64_t diagonal) {
    static const int64_t turn[] = {0, 2, 1, 3};
    const attr how[] = {real_attr("alpha", alpha), {.name = NULL}};
    const steps *s = c->s;
    halves h = {.all = checked_mul(checked_mul(s->batch, s->groups), c->count), .rows = rows, .size = s->size};
    const int64_t each = checked_mul(h.all, c->length), own[] = {each, rows, s->size}, column[] = {each, s->size, 1},
                  by_row[] = {h.all, rows, c->length, s->size}, made[] = {h.all, c->length, rows, c->length};
    if (rows > 1) t = transposed(x, part_reshaped(x, t, RANK, by_row), RANK, turn);
    tensor *whole =
        diagonal == 0 ? product(x, part_reshaped(x, t, 3, own), part_reshaped(x, c->key, 3, column), how) : NULL;
    for (h.steps = 1; h.steps < c->length; h.steps *= 2) {
        h.blocks = c->length / (2 * h.steps);
        whole = twice(x, &h, whole, between(x, c, &h, t, alpha));
    }
    return rows > 1 ? transposed(x, part_reshaped(x, whole, RANK, made), RANK, turn) : whole;
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
    return part_reshaped(x, lower(x, scores, diagonal), LAST + 1, flat);
}

/* ---- states from chunk to chunk ---- */

static tensor *last_of(expansion *x, tensor *t, int axis) {
    const int64_t n = tensor_dim(t, axis);
    return n > 1 ? part_slice(x, t, axis, n - 1, n) : t;
}

/* Before each, of those behind each: [.., chunks, size]; NULL: nothing was before the only one. */
static tensor *shifted(expansion *x, tensor *states, tensor *first) {
    static const int64_t pads[] = {0, 1, 0, 0, 0, 0};
    const int64_t n = tensor_dim(states, 1);
    if (n <= 1) return first;
    tensor *const others = part_slice(x, states, 1, 0, n - 1);
    const step joined = {.op_type = "Concat", .in = {first, others}, .attrs = {int_attr("axis", 1)}};
    return first ? *part_make(x, &joined) : padded(x, others, 3, pads);
}

/* States behind each of [rows, chunks, size], that only fade: groups of chunks at once, then groups of these, so that
 * their triangles stay small. */
static tensor *pass(expansion *x, const steps *s, tensor *gates, tensor *added, tensor *first) {
    enum { GROUP = 32 };
    const int64_t rows = tensor_dim(added, 0), n = tensor_dim(added, 1), size = tensor_dim(added, 2),
                  each = n < GROUP ? n : GROUP, many = each > 0 ? checked_ceil_div(n, each) : 0,
                  all = checked_mul(rows, many), pads[] = {0, 0, 0, 0, checked_sub(checked_mul(many, each), n), 0};
    if (x->failed || all <= 0) return NULL;
    if (pads[4] > 0) gates = padded(x, gates, 3, pads), added = padded(x, added, 3, pads);
    tensor *const sums = sums_of(x, part_reshaped(x, gates, 3, (int64_t[]){all, each, 1}), 1);
    tensor *made = part_reshaped(x, added, 3, (int64_t[]){all, each, size});
    if (each > 1) made = product(x, lower(x, left(x, s, sums, all, each), 0), made, NULL);
    if (many > 1) {
        tensor *const ends = part_reshaped(x, last_of(x, sums, 1), 3, (int64_t[]){rows, many, 1});
        tensor *const behind =
            pass(x, s, ends, part_reshaped(x, last_of(x, made, 1), 3, (int64_t[]){rows, many, size}), first);
        first = part_reshaped(x, shifted(x, behind, first), 3, (int64_t[]){all, 1, size});
    }
    if (first) made = part_add(x, made, part_do(x, "Mul", power_of(x, s, sums), first));
    made = part_reshaped(x, made, 3, (int64_t[]){rows, checked_mul(many, each), size});
    return pads[4] > 0 ? part_slice(x, made, 1, 0, n) : made;
}

/* The states that chunks begin with, and behind the last one; each number of a key is a row where it has a gate. */
static tensor *states_of(expansion *x, const chunks *c, tensor *past, tensor **last) {
    static const int64_t turn[] = {0, 2, 1, 3};
    const steps *s = c->s;
    const int64_t heads = checked_mul(s->batch, s->groups), rows = s->by_key ? checked_mul(heads, s->size) : heads,
                  size = s->by_key ? s->value_size : checked_mul(s->size, s->value_size),
                  flat[] = {rows, c->count, size}, one[] = {rows, 1, size}, gate[] = {rows, c->count, 1},
                  by_chunk[] = {heads, c->count, s->size, s->value_size},
                  by_key[] = {heads, s->size, c->count, s->value_size}, ends_by_chunk[] = {heads, c->count, s->size, 1},
                  matrices[] = {s->batch, s->groups, c->count, s->size, s->value_size};
    tensor *added = product(x, left_keys(x, c), c->val, (attr[]){int_attr("transA", 1), {.name = NULL}}),
           *ends = c->sums ? end_sums(x, c) : NULL;
    if (s->by_key) {
        added = transposed(x, part_reshaped(x, added, RANK, by_chunk), RANK, turn);
        ends = transposed(x, part_reshaped(x, ends, RANK, ends_by_chunk), RANK, turn);
    }
    added = part_reshaped(x, added, 3, flat);
    if (past) past = part_reshaped(x, past, 3, one);
    if (ends) {
        added = pass(x, s, part_reshaped(x, ends, 3, gate), added, past);
    } else {
        if (c->count > 1) added = do_axis(x, "CumSum", added, 1);
        if (past) added = part_add(x, added, past);
    }
    *last = last_of(x, added, 1);
    tensor *before = shifted(x, added, past);
    if (before && s->by_key) before = transposed(x, part_reshaped(x, before, RANK, by_key), RANK, turn);
    return before ? part_reshaped(x, before, LAST + 1, matrices) : NULL;
}

/* ---- and those that correct their state: within a chunk each step knows what earlier ones changed ---- */

typedef struct corrected {
    tensor *made, *known; /* what steps write into a state of zero, and what they take back of the one that was there */
} corrected;

enum { BLOCK = 16 };

/* Diagonal blocks of triangles P, one behind the other along the chunks: (I - P)^-1 - I, of P + P^2 + P^3 and so on. */
static tensor *solved_blocks(expansion *x, tensor *power, int64_t length) {
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 2)}};
    const int64_t each = length < BLOCK ? length : BLOCK;
    for (int64_t k = 0; k * each < length; k++)
        joined.in[k] = length > each ? part_slice(x, part_slice(x, power, 3, k * each, (k + 1) * each), LAST, k * each,
                                                  (k + 1) * each)
                                     : power;
    tensor *square = length > each ? *part_make(x, &joined) : power, *solved = square;
    for (int64_t reach = 2; reach < each; reach *= 2) {
        square = product(x, square, square, NULL);
        solved = part_add(x, part_add(x, solved, square), product(x, square, solved, NULL));
    }
    return solved;
}

/* What solves X = asked + P X, one block of steps after the other. */
static tensor *solve(expansion *x, const chunks *c, tensor *power, tensor *asked) {
    tensor *const solved = solved_blocks(x, power, c->length);
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 3)}};
    if (c->length <= BLOCK) return part_add(x, asked, product(x, solved, asked, NULL));
    for (int64_t k = 0; k * BLOCK < c->length; k++) {
        const int64_t from = k * BLOCK, to = from + BLOCK;
        tensor *own = part_slice(x, asked, 3, from, to);
        if (k > 0) {
            tensor *const sooner = k > 1 ? *part_make(x, &joined) : joined.in[0], *const row = part_slice(
                                                                                      x,
                                                                                      part_slice(x, power, 3, from, to),
                                                                                      LAST, 0, from);
            own = part_add(x, own, product(x, row, sooner, NULL));
        }
        tensor *const block = part_slice(x, solved, 2, k * c->count, (k + 1) * c->count);
        joined.in[k] = part_add(x, own, product(x, block, own, NULL));
    }
    return *part_make(x, &joined);
}

static corrected correct(expansion *x, const chunks *c) {
    const steps *s = c->s;
    const int64_t rates = tensor_dim(part_in(x, BETA), 2), sizes[] = {s->value_size, s->size};
    if (rates != 1 && rates != s->groups) x->failed = true;
    if (x->failed) return (corrected){NULL, NULL};
    tensor *const rate = in_chunks(x, c, BETA, rates, 1, 1), *const key = part_do(x, "Mul", c->key, rate);
    const step both = {.op_type = "Concat",
                       .in = {part_do(x, "Mul", c->val, rate), faded(x, c, key, 1, c->sums)},
                       .attrs = {int_attr("axis", LAST)}};
    tensor *const asked = *part_make(x, &both);
    tensor *const made = c->length > 1 ? solve(x, c, pairs(x, c, key, 1, -1, -1), asked) : asked;
    tensor *const *parts = part_split(x, made, LAST, 2, sizes);
    return (corrected){parts[0], parts[1]};
}

/* What is left of states at the end of each chunk. */
static tensor *kept_states(expansion *x, const chunks *c) {
    const steps *s = c->s;
    if (!c->sums) return NULL;
    tensor *const ends = power_of(x, s, end_sums(x, c));
    const int64_t column[] = {s->batch, s->groups, c->count, tensor_dim(ends, LAST), 1};
    return part_reshaped(x, ends, LAST + 1, column);
}

/* Each follows from the one before, by nine parts: a node has that many parts at most. */
enum { MOST_FOLLOWING = 640 };

/* The states that chunks begin with, what their steps write, and the state behind the last one. */
static tensor *follow(expansion *x, const chunks *c, tensor *state, tensor **written, tensor **last) {
    const steps *s = c->s;
    tensor *before[MOST_FOLLOWING], *writes[MOST_FOLLOWING];
    const attr turned[] = {int_attr("transA", 1), {.name = NULL}};
    const int64_t matrix[] = {s->batch, s->groups, 1, s->size, s->value_size};
    const int64_t pads[2 * (LAST + 1)] = {[2] = state == NULL};
    int64_t begun = 0;
    if (c->count > MOST_FOLLOWING) x->failed = true;
    if (x->failed) return NULL;
    const corrected of = correct(x, c);
    tensor *const keys = left_keys(x, c), *const ends = kept_states(x, c);
    if (state) state = part_reshaped(x, state, LAST + 1, matrix);
    for (int64_t k = 0; k < c->count && !x->failed; k++) {
        tensor *change = part_slice(x, of.made, 2, k, k + 1);
        if (state) before[begun++] = state;
        if (state) change = part_do(x, "Sub", change, product(x, part_slice(x, of.known, 2, k, k + 1), state, NULL));
        writes[k] = change;
        tensor *const more = product(x, part_slice(x, keys, 2, k, k + 1), change, turned);
        if (state && ends) state = part_do(x, "Mul", state, part_slice(x, ends, 2, k, k + 1));
        state = state ? part_add(x, state, more) : more;
    }
    *last = state, *written = joined_all(x, writes, c->count, 2);
    tensor *const all = begun > 0 ? joined_all(x, before, begun, 2) : NULL;
    return all && pads[2] > 0 ? padded(x, all, LAST + 1, pads) : all;
}

/* What steps see of their own chunk, and of the state that it begins with. */
static tensor *see(expansion *x, const chunks *c, tensor *past, tensor **last) {
    tensor *written = c->val,
           *before = c->s->corrects ? follow(x, c, past, &written, last) : states_of(x, c, past, last);
    if (x->failed) return NULL;
    tensor *const own = product(x, pairs(x, c, c->query, c->rows, c->s->scale, 0), written, NULL);
    const attr how[] = {real_attr("alpha", c->s->scale), {.name = NULL}};
    return before ? part_add(x, own, product(x, faded(x, c, c->query, c->rows, c->sums), before, how)) : own;
}

/* What these steps make, and the state behind them. */
static tensor *take_chunks(expansion *x, const steps *s, tensor **state) {
    static const int64_t perm[] = {0, 2, 4, 1, 3, 5};
    tensor *const past = first_state(x, s), *last = NULL;
    const chunks c = read_chunks(x, s);
    if (x->failed) return NULL;
    tensor *const made = see(x, &c, past, &last);
    const int64_t dims[] = {s->batch, s->groups, c.count, c.rows, c.length, s->value_size},
                  kept[RANK] = {s->batch, s->groups, s->size, s->value_size},
                  all[] = {s->batch, checked_mul(c.count, c.length),
                           checked_mul(checked_mul(s->groups, c.rows), s->value_size)};
    if (x->failed) return NULL;
    *state = part_reshaped(x, last, RANK, kept);
    tensor *const flat =
        part_reshaped(x, transposed(x, part_reshaped(x, made, LAST + 2, dims), LAST + 2, perm), 3, all);
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
