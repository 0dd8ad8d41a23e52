/* Convolutions that are told their padding at run time, or remember what came before. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

void take_conv_transpose(expansion *x) {
    enum { INPUT, WEIGHT, PADS, BIAS, ATTRS = 8 };
    const tensor *const told = part_in(x, PADS);
    const value *const pads = told ? told->info->val : NULL;
    step s = {.op_type = "ConvTranspose", .in = {part_in(x, INPUT), part_in(x, WEIGHT), part_in(x, BIAS)}};
    int at = 0;
    part_like_node(x, &s);
    while (at < ATTRS && s.attrs[at].name) at++;
    if ((told && !(pads && pads->i)) || at == ATTRS) x->failed = true;
    if (x->failed) return;
    if (told) s.attrs[at] = ints_attr("pads", (int)pads->n, pads->i);
    part_end(x, &s);
}

/* ---- causal ones: each channel by itself, along the last axis, with the end of what came before in front ---- */

enum { INPUT, WEIGHT, BIAS, PAST, RANK = 3 };

typedef struct causal {
    int axis;                              /* along which it is causal */
    int64_t batch, channels, length, kept; /* kept: of what came before */
    tensor *in, *joined;                   /* joined: behind what came before; the input itself where nothing did */
} causal;

static tensor *turned(expansion *x, tensor *t) {
    static const int64_t perm[RANK] = {0, 2, 1};
    return *part_make(x, &(step){.op_type = "Transpose", .in = {t}, .attrs = {ints_attr("perm", RANK, perm)}});
}

static causal read_causal(expansion *x) {
    const bool last = graph_attr_int(x->n, "channels_last", 0) != 0;
    tensor *const in = part_in(x, INPUT), *const past = part_in(x, PAST);
    causal c = {.axis = last ? 1 : 2, .batch = tensor_dim(in, 0), .channels = tensor_dim(part_in(x, WEIGHT), 0)};
    if (graph_attr_int(x->n, "ndim", 1) != 1 || graph_attr_int(x->n, "state_window", 0) != 0 ||
        tensor_rank(part_in(x, WEIGHT)) != RANK || (!last && tensor_rank(in) != RANK))
        x->failed = true;
    c.length = x->failed ? 0 : tensor_dim(in, c.axis);
    c.kept = checked_mul(checked_sub(tensor_dim(part_in(x, WEIGHT), -1), 1), graph_attr_int(x->n, "dilation", 1));
    if (c.length < 1 || c.kept < 1) x->failed = true;
    if (x->failed) return c;
    const int64_t dims[] = {c.batch, last ? c.length : c.channels, last ? c.channels : c.length},
                  before[] = {c.batch, last ? c.kept : c.channels, last ? c.channels : c.kept};
    c.in = c.joined = part_reshaped(x, in, RANK, dims);
    if (past)
        c.joined = *part_make(x, &(step){.op_type = "Concat",
                                         .in = {part_reshaped(x, past, RANK, before), c.in},
                                         .attrs = {int_attr("axis", c.axis)}});
    return c;
}

/* The end of all that it has seen; in front of its first input there are zeros. */
static tensor *state(expansion *x, const causal *c) {
    const int64_t seen = tensor_dim(c->joined, c->axis), missing = checked_sub(c->kept, seen);
    int64_t pads[2 * RANK] = {0};
    if (missing <= 0) return part_slice(x, c->joined, c->axis, -missing, seen);
    pads[c->axis] = missing;
    return *part_make(x, &(step){.op_type = "Pad", .in = {c->joined, part_numbers(x, "pads", 2 * RANK, pads)}});
}

void take_causal_conv(expansion *x) {
    const char *const activation = graph_attr_string(x->n, "activation", "none");
    const bool opens = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    const tensor *const kept = part_out(x, 1);
    if (!opens && strcmp(activation, "none") != 0) x->failed = true;
    const causal c = read_causal(x);
    if (x->failed) return;
    arena *const a = x->e->m->arena;
    int64_t *const pads = arena_array(a, int64_t, 2), *const dilation = arena_array(a, int64_t, 1);
    pads[0] = part_in(x, PAST) ? 0 : c.kept, pads[1] = 0;
    *dilation = graph_attr_int(x->n, "dilation", 1);
    tensor *present = kept ? state(x, &c) : NULL;
    if (kept && !x->failed) present = part_reshaped(x, present, kept->info->rank, kept->info->dims);
    const bool last = c.axis == 1;
    tensor *made =
        *part_make(x, &(step){.op_type = "Conv",
                              .in = {last ? turned(x, c.joined) : c.joined, part_in(x, WEIGHT), part_in(x, BIAS)},
                              .attrs = {int_attr("group", c.channels), ints_attr("pads", 2, pads),
                                        ints_attr("dilations", 1, dilation)}});
    if (opens)
        made = *part_make(
            x,
            &(step){.domain = "com.microsoft", .op_type = "QuickGelu", .in = {made}, .attrs = {real_attr("alpha", 1)}});
    if (last)
        part_end_reshaped(x, turned(x, made));
    else
        part_end_reshaped(x, made);
    part_give(x, 1, present);
}
