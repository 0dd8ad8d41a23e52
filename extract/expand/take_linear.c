/* Linear attention of few steps, as in decoding: what each does with its state. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <math.h>
#include <string.h>

enum { PAST = 3, DECAY, BETA, INPUTS, RANK = 4, LONGEST = MAX_STEPS };

/* Each key head has a state; several query heads may share one, or several states a query head. */
typedef struct steps {
    int64_t batch, length, heads, groups, size, value_size, window; /* groups: key heads */
    double scale;
    dtype type; /* of the state, which all is counted in */
    bool decays, corrects;
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
        s.length > LONGEST || s.window < 0 || s.window > LONGEST ||
        (s.heads % s.groups != 0 && s.groups % s.heads != 0) || (s.decays && !part_in(x, DECAY)) ||
        (s.corrects && !part_in(x, BETA)))
        x->failed = true;
    if (x->failed) return s;
    s.size = tensor_dim(key, 2) / s.groups, s.value_size = tensor_dim(val, 2) / s.groups;
    s.type = past ? past->info->type : query->info->type;
    if (s.size < 1 || s.value_size < 1) x->failed = true;
    if (s.scale == 0 && s.size > 0) s.scale = 1 / sqrt((double)s.size);
    return s;
}

/* What an input says of step `at`, in that shape. */
static tensor *of_step(expansion *x, const steps *s, int slot, int64_t at, int64_t rows, int64_t cols) {
    tensor *t = part_in(x, slot);
    if (s->length > 1) t = part_slice(x, t, 1, at, at + 1);
    if (t && t->info->type != s->type) t = part_cast(x, t, s->type);
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
        const bool each = tensor_dim(part_in(x, DECAY), 2) == checked_mul(s->groups, s->size) && s->size > 1;
        state = part_do(x, "Mul", state, part_do(x, "Exp", of_step(x, s, DECAY, at, each ? s->size : 1, 1), NULL));
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
static tensor *window_of(expansion *x, const steps *s, tensor *const *states) {
    const int64_t count = s->length < s->window ? s->length : s->window;
    int64_t dims[] = {1, s->batch, s->groups, s->size, s->value_size}, pads[10] = {0};
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 0)}};
    if (count > STEP_INPUTS) x->failed = true;
    for (int64_t k = 0; k < count && !x->failed; k++)
        joined.in[k] = part_reshaped(x, states[s->length - count + k], RANK + 1, dims);
    tensor *const all = count > 1 ? *part_make(x, &joined) : joined.in[0];
    pads[0] = s->window - count;
    if (pads[0] == 0) return all;
    return *part_make(x, &(step){.op_type = "Pad", .in = {all, part_numbers(x, "pads", 2 * (RANK + 1), pads)}});
}

static tensor *first_state(expansion *x, const steps *s) {
    tensor *const past = part_in(x, PAST);
    if (!past || s->window == 0) return past;
    return part_reshaped(x, part_slice(x, past, 0, s->window - 1, s->window), RANK, past->info->dims + 1);
}

void take_linear_attention(expansion *x) {
    const steps s = read_steps(x);
    const tensor *const out = part_out(x, 0);
    tensor *states[LONGEST], *state = x->failed ? NULL : first_state(x, &s);
    step joined = {.op_type = "Concat", .attrs = {int_attr("axis", 1)}};
    if (s.length > STEP_INPUTS) x->failed = true;
    for (int64_t k = 0; k < s.length && !x->failed; k++) {
        states[k] = state = next_state(x, &s, state, k);
        tensor *const made = *part_make(x, &(step){.domain = "com.microsoft",
                                                   .op_type = "FusedMatMul",
                                                   .in = {queries(x, &s, k), state},
                                                   .attrs = {real_attr("alpha", s.scale)}});
        joined.in[k] = part_reshaped(x, made, 3, (int64_t[]){s.batch, 1, tensor_count(made) / s.batch});
    }
    if (x->failed) return;
    tensor *const kept = s.window > 0 ? window_of(x, &s, states) : state;
    tensor *const all = s.length > 1 ? *part_make(x, &joined) : joined.in[0];
    if (all && out && all->info->type != out->info->type)
        part_end(x, &(step){.op_type = "Cast", .in = {all}, .attrs = {int_attr("to", out->info->type)}});
    else
        part_end_reshaped(x, all);
    part_give(x, 1, kept);
}
