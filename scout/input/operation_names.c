/* Which members an entry of the hand-written form can have, and which it must have. A typed file may misspell a name,
 * or take it from another kind, and what is silently left out would be measured as another operation: so
 * a name that its kind does not have is refused, with the nearest one that it has. An entry that lacks what its kind
 * cannot do without is refused as well, with what is to be said: no candidate could tell it as clearly. */
#include "scout/input/operation_internal.h"

#include <string.h>

enum { LONGEST = 32 }; /* no name is longer; what is has nothing near it */

/* Beside the named dimensions of operation_fields.c. What comes after `comment` says nothing here: a remark, and what
 * an entry that was copied from ops.json brings along. */
static const char *const members[] = {
    "op",    "shape",        "dtype",     "count",   "sparsity", "causal",     "layout",        "mask",
    "what",  "weight_dtype", "out_dtype", "comment", "id",       "nodes",      "occurrences",   "weights",
    "parts", "region",       "times",     "macs",    "flops",    "bytes_read", "bytes_written", "sparse_block"};

enum { MEMBERS = sizeof members / sizeof *members, MOST_NAMES = 32 };

#define OF(kind) (1U << OP_##kind)

/* Names that only these kinds have, as docs/formats.md tells them; all others any kind may have: what few operators
 * are told by stands in no kind's list. */
static const struct {
    unsigned kinds;
    const char *names[MOST_NAMES];
} owned[] = {
    {OF(ATTENTION),
     {"causal",     "mask",     "block_mask", "kv_heads",      "kv_len",         "v_head",       "window",
      "softcap",    "past",     "mask_shape", "packed_tokens", "window_left",    "window_right", "softmax_dtype",
      "scores_out", "sink",     "qk_norm",    "qk_output",     "smooth_softmax", "k_quant",      "v_quant",
      "kv_bits",    "q_layout", "k_layout",   "v_layout",      "out_layout"}},
    {OF(ATTENTION) | OF(ROTARY), {"rotary_dim", "interleaved"}},
    {OF(ROTARY), {"angle_batch", "angle_dim"}},
    {OF(ATTENTION) | OF(ROTARY) | OF(SOFTMAX), {"scale"}},
    {OF(GEMM),
     {"batch", "batch_a", "batch_b", "batch_inside", "batch_stride_a", "batch_stride_b", "weight_side",
      "weight_rearranged", "experts", "top_k", "gated", "normalize_routing", "sparse_mixer", "swiglu_fusion",
      "swiglu_limit", "accuracy_level"}},
    {OF(CONV), {"group", "transposed", "output_padding", "offset_group", "offset_mask"}},
    {OF(CONV) | OF(POOL) | OF(MOVE), {"kernel", "stride", "dilation", "pads"}},
    {OF(GEMM) | OF(CONV) | OF(ATTENTION) | OF(NORM) | OF(POOL), {"layout"}},
    {OF(NORM) | OF(REDUCE), {"channels"}},
    {OF(NORM), {"residual_out"}},
    {OF(SOFTMAX), {"inner", "inner_broadcast"}},
    {OF(POOL), {"global", "ceil_mode", "count_include_pad", "storage_order", "indices_out"}},
    {OF(EMBEDDING), {"table"}},
    {OF(RECURRENT),
     {"directions", "order", "activations", "input_forget", "linear_before_reset", "peephole", "initial_state",
      "returns"}},
    {OF(ELEMENTWISE), {"chain"}},
    {OF(RECURRENT) | OF(ELEMENTWISE), {"direction"}},
    {OF(MOVE), {"perm"}},
    {OF(MOVE) | OF(QUANTIZE), {"saturate"}},
};

/* How other programs say what has another name here. */
static const struct {
    const char *name, *here;
    op_kind kind;
} foreign[] = {
    {"transpose_b", "\"layout\": \"nt\"", OP_GEMM}, {"transpose_a", "\"layout\": \"tn\"", OP_GEMM},
    {"trans_b", "\"layout\": \"nt\"", OP_GEMM},     {"trans_a", "\"layout\": \"tn\"", OP_GEMM},
    {"transB", "\"layout\": \"nt\"", OP_GEMM},      {"transA", "\"layout\": \"tn\"", OP_GEMM},
};

/* Without these the work is undefined. Nothing stands here that only some of its kind need, or that has a customary
 * value. */
static const struct {
    op_kind kind;
    const char *what, *unless; /* only of this one of its kind (NULL: of any), and not where this is 1 (NULL: always) */
    const char *member, *meaning;
} needed[] = {
    {OP_CONV, NULL, NULL, "input", "the dimensions of what it reads, as [1, 3, 224, 224]"},
    {OP_CONV, NULL, NULL, "kernel", "the sides of its filter, as [3, 3]"},
    {OP_POOL, NULL, NULL, "what", "max or average"},
    {OP_POOL, NULL, NULL, "input", "the dimensions of what it reads, as [1, 64, 112, 112]"},
    {OP_POOL, "max", "global", "kernel", "the sides of its window, as [2, 2], or \"global\": true"},
    {OP_POOL, "average", "global", "kernel", "the sides of its window, as [2, 2], or \"global\": true"},
    {OP_NORM, "group", NULL, "channels", "the number of them"},
    {OP_NORM, "batch", NULL, "channels", "the number of them"},
    {OP_NORM, "instance", NULL, "channels", "the number of them"},
    {OP_EMBEDDING, NULL, NULL, "table", "the number of rows of its table"},
    {OP_RECURRENT, NULL, NULL, "what", "lstm, gru or rnn"},
    {OP_ELEMENTWISE, NULL, NULL, "what", "the operator, such as add or gelu"},
    {OP_REDUCE, NULL, NULL, "what", "the operator, such as sum or max"},
    {OP_MOVE, NULL, NULL, "what", "the operator, such as transpose or concat"},
    {OP_MOVE, "transpose", NULL, "input", "the dimensions of what it reads, as [64, 32]"},
    {OP_MOVE, "transpose", NULL, "perm", "the order of its dimensions, as [1, 0]"},
    {OP_MOVE, "cast", NULL, "out_dtype", "the type that it becomes"},
    {OP_QUANTIZE, NULL, NULL, "what", "quantize or dequantize"},
    {OP_QUANTIZE, "quantize", NULL, "out_dtype", "the type that it becomes, such as int8"},
    {OP_QUANTIZE, "dequantize", NULL, "out_dtype", "the type that it becomes, such as fp32"},
};

/* The k-th name that is known; NULL: there are no more. */
static const char *known_name(size_t k) { return k < MEMBERS ? members[k] : operation_field_name(k - MEMBERS); }

static bool is_known(const char *name) {
    for (size_t k = 0; k < MEMBERS; k++)
        if (strcmp(members[k], name) == 0) return true;
    return operation_is_field(name);
}

/* Bits of the kinds that have it; all where it belongs to no kind alone. */
static unsigned kinds_of(const char *name) {
    for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
        for (int n = 0; n < MOST_NAMES && owned[k].names[n]; n++)
            if (strcmp(owned[k].names[n], name) == 0) return owned[k].kinds;
    return ~0U;
}

/* Of an unknown kind nothing is known to be wrong. */
static bool fits(const char *name, op_kind kind) { return kind == OP_UNKNOWN || kinds_of(name) & 1U << kind; }

static int least(int a, int b) { return a < b ? a : b; }

/* How many letters must be put in, left out, replaced, or swapped with their neighbour. Both have LONGEST at most. */
static int distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (swapped) d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

/* NULL: nothing that the kind has is so near that it could have been meant. */
static const char *nearest(const char *name, op_kind kind) {
    const size_t length = strlen(name);
    const char *best = NULL, *one;
    if (length > LONGEST) return NULL;
    int far = length < 2 ? 0 : length < 4 ? 1 : length < 8 ? 2 : 3;
    for (size_t k = 0; (one = known_name(k)); k++) {
        if (strlen(one) > LONGEST || !fits(one, kind)) continue;
        const int d = distance(name, one);
        if (d < far || (d == far && !best)) best = one, far = d;
    }
    return best;
}

static _Noreturn void not_of_kind(const operation_reader *r, const char *name, op_kind kind) {
    const char *kinds = "";
    for (int k = 0; k < OP_KIND_COUNT; k++)
        if (kinds_of(name) & 1U << k)
            kinds = arena_printf(r->arena, "%s%s%s", kinds, *kinds ? ", " : "", oprec_kind_name((op_kind)k));
    operation_fail(r, "\"%.60s\" is not a member of %s: it is a member of %s", name, oprec_kind_name(kind), kinds);
}

static _Noreturn void not_known(const operation_reader *r, const char *name, op_kind kind) {
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        if (foreign[k].kind == kind && strcmp(foreign[k].name, name) == 0)
            operation_fail(r, "\"%.60s\" is not known; did you mean %s?", name, foreign[k].here);
    const char *meant = nearest(name, kind);
    if (meant) operation_fail(r, "\"%.60s\" is not known; did you mean \"%s\"?", name, meant);
    operation_fail(r,
                   "\"%.60s\" is not known; known are %sop, shape, dtype, count, sparsity, pattern, %scomment and the "
                   "members of its kind in docs/formats.md",
                   name, r->dimensions ? r->dimensions : "", fits("causal", kind) ? "causal, " : "");
}

void operation_check_names(const operation_reader *r, const json_t *entry) {
    const char *op = json_string_value(json_object_get(entry, "op")), *name;
    json_t *value;
    op_kind kind = OP_UNKNOWN; /* which is said elsewhere */
    if (op) (void)oprec_kind_from_name(op, &kind);
    json_object_foreach((json_t *)(uintptr_t)entry, name, value) {
        if (!is_known(name)) not_known(r, name, kind);
        if (!fits(name, kind)) not_of_kind(r, name, kind);
    }
}

void operation_check_needs(const operation_reader *r, const json_t *entry, const oprec *rec) {
    const char *const only = r->code == STATUS_USAGE ? "; give it by --set, with commas between its numbers" : "";
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
        if (needed[k].kind != rec->kind) continue;
        if (needed[k].what && (!rec->what || strcmp(needed[k].what, rec->what) != 0)) continue;
        if (needed[k].unless && oprec_int(rec, needed[k].unless, 0)) continue;
        const bool there = strcmp(needed[k].member, "what") == 0 ? rec->what != NULL /* an alias says it, too */
                                                                 : json_object_get(entry, needed[k].member) != NULL;
        if (!there)
            operation_fail(r, "%.40s needs \"%s\": %s%s", json_string_value(json_object_get(entry, "op")),
                           needed[k].member, needed[k].meaning, only);
    }
}
