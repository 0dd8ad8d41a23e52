/* The table of fusion patterns and the finding of candidates. A chain pattern is a line of the table: which operation
 * begins, what may follow it. Three patterns that are no chains stand below it as functions. */
#include "extract/ops/fuse_internal.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

enum { FUSE_MAX_STEPS = 5 };

typedef struct fuse_step {
    op_kind kind;
    const char *what;     /* names separated by '|'; NULL: any */
    fuse_operand operand; /* what the other operand must be; NONE: anything */
    bool optional;
} fuse_step;

typedef struct fuse_pattern {
    const char *name;
    bool keeps; /* the first result may be needed elsewhere too: it is still written, only its reading is saved */
    fuse_step steps[FUSE_MAX_STEPS];
} fuse_pattern;

#define BIAS                                                                                                           \
    { OP_ELEMENTWISE, "add", FUSE_OPERAND_VECTOR, false }
#define BIAS_OPTIONAL                                                                                                  \
    { OP_ELEMENTWISE, "add", FUSE_OPERAND_VECTOR, true }
#define RESIDUAL                                                                                                       \
    { OP_ELEMENTWISE, "add", FUSE_OPERAND_FULL, false }
#define UNARY(names)                                                                                                   \
    { OP_ELEMENTWISE, names, FUSE_OPERAND_NONE, false }
#define UNARY_OPTIONAL(names)                                                                                          \
    { OP_ELEMENTWISE, names, FUSE_OPERAND_NONE, true }
#define GELUS            "gelu|gelu_tanh|fastgelu|quickgelu|biasgelu"
#define SILUS            "silu|swish"
#define CONV_ACTIVATIONS "relu|clip|hardswish|hardsigmoid|leakyrelu|sigmoid|" SILUS

static const fuse_pattern patterns[] = {
    {"gemm+bias", false, {{OP_GEMM, NULL, FUSE_OPERAND_NONE, false}, BIAS}},
    {"gemm+relu", false, {{OP_GEMM, NULL, FUSE_OPERAND_NONE, false}, BIAS_OPTIONAL, UNARY("relu")}},
    {"gemm+gelu", false, {{OP_GEMM, NULL, FUSE_OPERAND_NONE, false}, BIAS_OPTIONAL, UNARY(GELUS)}},
    {"gemm+silu", false, {{OP_GEMM, NULL, FUSE_OPERAND_NONE, false}, BIAS_OPTIONAL, UNARY(SILUS)}},
    {"gemm+residual", false, {{OP_GEMM, NULL, FUSE_OPERAND_NONE, false}, BIAS_OPTIONAL, RESIDUAL}},
    {"conv+bn+activation",
     false,
     {{OP_CONV, NULL, FUSE_OPERAND_NONE, false},
      {OP_NORM, "batch", FUSE_OPERAND_NONE, false},
      UNARY_OPTIONAL(CONV_ACTIVATIONS)}},
    {"conv+activation", false, {{OP_CONV, NULL, FUSE_OPERAND_NONE, false}, UNARY(CONV_ACTIVATIONS)}},
    {"conv+residual+activation",
     false,
     {{OP_CONV, NULL, FUSE_OPERAND_NONE, false},
      {OP_NORM, "batch", FUSE_OPERAND_NONE, true},
      RESIDUAL,
      UNARY_OPTIONAL(CONV_ACTIVATIONS)}},
    {"norm+residual", true, {RESIDUAL, {OP_NORM, "layer|rms", FUSE_OPERAND_NONE, false}}},
    {"softmax+mask", false, {UNARY("add|where|mul|div"), {OP_SOFTMAX, NULL, FUSE_OPERAND_NONE, false}}},
};

void fuse_add(fuse *f, const fuse_candidate *c) {
    void *items = f->found;
    arena_grow(f->arena, &items, &f->cap, f->count, sizeof *f->found);
    f->found = items;
    f->found[f->count++] = *c;
}

static bool name_among(const char *name, const char *list) {
    size_t n = name ? strlen(name) : 0;
    for (const char *at = list; n && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, name, n) == 0 && (at[n] == '|' || at[n] == '\0')) return true;
    }
    return false;
}

static bool step_takes(const fuse *f, const fuse_step *s, const work *w, const tensor *through) {
    if (w->rec.kind != s->kind || (s->what && !name_among(w->rec.what, s->what))) return false;
    if (s->operand == FUSE_OPERAND_NONE) return true;
    if (through) return fuse_other_operand(f, w, through) == s->operand;
    /* the first of a chain: both operands are looked at */
    return w->node_count == 1 && w->node->in_count == 2 && w->node->in[0] && w->node->in[1] &&
           (info_same_shape(w->node->in[0]->info, w->node->in[1]->info) == (s->operand == FUSE_OPERAND_FULL));
}

/* The next unit of a chain, and the bytes that joining it saves. */
static work *next_of(const fuse *f, const work *w, bool keeps, const fuse_step *wanted, tensor **through,
                     int64_t *saved) {
    tensor *t = fuse_result(f, w);
    if (!t) return NULL;
    int others = 0;
    work *users[FUSE_MAX_OPS];
    work *next = fuse_only_user(f, t, &others);
    int64_t bytes = cost_bytes(w, t);
    *through = t;
    *saved = checked_mul(bytes, 2);
    if (next || !keeps) return next;
    int count = fuse_users(f, t, users, FUSE_MAX_OPS, &others);
    for (int k = 0; k < count && !next; k++)
        if (step_takes(f, wanted, users[k], t)) next = users[k];
    *saved = bytes;
    return next;
}

static void match_chain(fuse *f, const fuse_pattern *p, work *first) {
    if (!step_takes(f, &p->steps[0], first, NULL)) return;
    fuse_candidate c = {.pattern = p->name, .ops = {first}, .op_count = 1};
    for (int k = 1; k < FUSE_MAX_STEPS && (p->steps[k].kind != OP_UNKNOWN); k++) {
        tensor *through;
        int64_t saved;
        work *last = c.ops[c.op_count - 1];
        work *next = next_of(f, last, p->keeps, &p->steps[k], &through, &saved);
        if (next && next->times == first->times && step_takes(f, &p->steps[k], next, through)) {
            c.ops[c.op_count++] = next;
            c.saved = checked_add(c.saved, saved);
        } else if (!p->steps[k].optional) {
            return;
        }
    }
    if (c.op_count > 1) fuse_add(f, &c);
}

/* ---- projections that share their input ---- */

static bool is_projection(const work *w) {
    int data = 0; /* a product that takes another's result as well could not run in one with it */
    for (int k = 0; k < w->node->in_count; k++) {
        const tensor *t = w->node->in[k];
        data += t && !t->is_constant && t->source != TENSOR_INITIALIZER;
    }
    return data == 1 && w->rec.kind == OP_GEMM && w->weight && w->rec.rank == 3 && w->node->in_count >= 2 &&
           oprec_int(&w->rec, "batch", 1) == 1;
}

static bool alike(const work *a, const work *b) {
    return a->rec.shape[0] == b->rec.shape[0] && a->rec.shape[2] == b->rec.shape[2] && a->rec.type == b->rec.type &&
           a->rec.weight_type == b->rec.weight_type && a->times == b->times;
}

/* The same with the bias that follows each of them. */
static void add_biases(fuse *f, const fuse_candidate *shared) {
    static const fuse_step bias = BIAS;
    fuse_candidate c = *shared;
    c.pattern = "gemm+gemm shared input+bias";
    for (int k = 0; k < shared->op_count; k++) {
        tensor *through;
        int64_t saved;
        work *next = next_of(f, shared->ops[k], false, NULL, &through, &saved);
        if (c.op_count == FUSE_MAX_OPS || !next || !step_takes(f, &bias, next, through)) return;
        c.ops[c.op_count++] = next;
        c.saved = checked_add(c.saved, saved);
    }
    fuse_add(f, &c);
}

static void add_shared(fuse *f, fuse_candidate c, int64_t each) {
    if (c.op_count < 2) return;
    c.saved = checked_mul(each, c.op_count - 1);
    fuse_add(f, &c);
    add_biases(f, &c);
}

/* Those of one width by themselves as well, such as keys and values beside wider queries: they can run as a batch. */
static void add_equal(fuse *f, const fuse_candidate *all, int64_t each) {
    for (int k = 0; k < all->op_count; k++) {
        const int64_t width = all->ops[k]->rec.shape[1];
        fuse_candidate c = {.pattern = all->pattern};
        bool first = true;
        for (int n = 0; n < all->op_count; n++) {
            if (all->ops[n]->rec.shape[1] != width) continue;
            first = first && n >= k;
            c.ops[c.op_count++] = all->ops[n];
        }
        if (first && c.op_count < all->op_count) add_shared(f, c, each);
    }
}

/* Called with each projection; the first user of the shared input speaks for all. */
static void match_projections(fuse *f, work *w) {
    if (!is_projection(w)) return;
    for (int k = 0; k < w->node->in_count; k++) {
        tensor *root = NULL, *in = w->node->in[k];
        if (!in || in->is_constant || in->source == TENSOR_INITIALIZER ||
            info_count(in->info) != checked_mul(w->rec.shape[0], w->rec.shape[2]))
            continue;
        fuse_source(f, in, &root);
        work *users[FUSE_MAX_OPS];
        int others, count = fuse_users(f, root ? root : in, users, FUSE_MAX_OPS, &others);
        fuse_candidate c = {.pattern = "gemm+gemm shared input"};
        for (int u = 0; u < count; u++)
            if (is_projection(users[u]) && alike(w, users[u])) c.ops[c.op_count++] = users[u];
        if (c.op_count < 2 || c.ops[0] != w) continue;
        const node *dequantize = cost_passed(w, in);
        const int64_t each = cost_bytes(w, dequantize ? dequantize->in[0] : in);
        add_shared(f, c, each);
        add_equal(f, &c, each);
        return;
    }
}

/* ---- chains of elementwise work ---- */

static bool is_pointwise(const work *w) {
    return w->rec.kind == OP_ELEMENTWISE || (w->rec.kind == OP_MOVE && name_among(w->rec.what, "cast"));
}

static void match_pointwise(fuse *f, work *first) {
    if (!is_pointwise(first)) return;
    const node *n = first->node;
    for (int k = 0; k < n->in_count; k++) { /* only where no chain runs into it */
        tensor *root = NULL;
        int others;
        work *before = n->in[k] ? fuse_source(f, n->in[k], &root) : NULL;
        if (before && is_pointwise(before) && fuse_result(f, before) == root &&
            fuse_only_user(f, root, &others) == first)
            return;
    }
    fuse_candidate c = {.pattern = "elementwise chain", .ops = {first}, .op_count = 1};
    while (c.op_count < FUSE_MAX_OPS) {
        tensor *through;
        int64_t saved;
        work *next = next_of(f, c.ops[c.op_count - 1], false, NULL, &through, &saved);
        if (!next || !is_pointwise(next) || next->times != first->times) break;
        c.ops[c.op_count++] = next;
        c.saved = checked_add(c.saved, saved);
    }
    if (c.op_count > 1) fuse_add(f, &c);
}

/* ---- operations recognised from parts ---- */

static const char *parts_pattern(const fuse *f, const work *w) {
    const oprec *r = &w->rec;
    const char *name = r->what ? r->what : oprec_kind_name(r->kind);
    if (r->kind == OP_ATTENTION) return r->mask && strcmp(r->mask, "none") != 0 ? "attention+mask" : "attention";
    if (oprec_field(r, "quant")) return arena_printf(f->arena, "quantised %s", name);
    return r->kind == OP_GEMM ? "gemm+transpose" : name;
}

/* The plain works under w that run, down to the last; false where they are more than a candidate holds. */
static bool add_parts(fuse_candidate *c, const work *w, int64_t *apart) {
    for (int k = 0; k < w->part_count; k++) {
        work *p = w->parts[k];
        if (p->free) continue;
        if (p->part_count) {
            if (!add_parts(c, p, apart)) return false;
            continue;
        }
        if (c->op_count == FUSE_MAX_OPS) return false;
        c->ops[c->op_count++] = p;
        *apart = checked_add(*apart, checked_add(p->rec.bytes_read, p->rec.bytes_written));
    }
    return true;
}

/* What is one operation already (attention with its mask, a gate, a norm spelled out) is a fusion of its parts. */
static void match_parts(fuse *f, work *w) {
    if (w->part_count < 2 || w->rec.kind == OP_UNKNOWN) return;
    fuse_candidate c = {.pattern = parts_pattern(f, w)};
    int64_t apart = 0;
    if (!add_parts(&c, w, &apart) || c.op_count < 2) return;
    c.saved = checked_sub(apart, checked_add(w->rec.bytes_read, w->rec.bytes_written));
    if (c.saved > 0) fuse_add(f, &c);
}

/* Inside an attention the mask can be joined to the softmax alone. */
static void match_softmax_parts(fuse *f, work *w) {
    if (w->rec.kind != OP_ATTENTION) return;
    const fuse_pattern *p = &patterns[sizeof patterns / sizeof *patterns - 1];
    for (int k = 0; k < w->part_count; k++)
        for (int n = 0; n < w->parts[k]->node_count; n++)
            f->unit_of[w->parts[k]->nodes[n]->id] = w->parts[k]->free ? NULL : w->parts[k];
    for (int k = 0; k < w->part_count; k++)
        if (!w->parts[k]->free) match_chain(f, p, w->parts[k]);
    for (int k = 0; k < w->node_count; k++) f->unit_of[w->nodes[k]->id] = w;
}

void fuse_find(fuse *f) {
    for (size_t e = 0; e < f->catalog->entry_count; e++) {
        catalog_entry *entry = f->catalog->entries[e];
        if (entry->part || entry->free || entry->count == 0) continue;
        for (work *w = entry->first; w; w = w->next_same) {
            if (w->owner) continue;
            for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) match_chain(f, &patterns[p], w);
            match_projections(f, w);
            match_pointwise(f, w);
            match_parts(f, w);
            match_softmax_parts(f, w);
        }
    }
}
