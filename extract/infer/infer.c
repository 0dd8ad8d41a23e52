/* The driver of shape inference: takes the nodes in order, calls each operator's shape function, and checks what it
 * says. */
#include "extract/infer/infer.h"

#include "common/checked.h"

#include <inttypes.h>
#include <string.h>

/* More elements than any memory holds: such a shape is a defect of the model (or an attack), not work to list. */
static const int64_t INFER_MAX_ELEMENTS = (int64_t)1 << 56;

void infer_fail(infer *c, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    infer_state *s = c->model->infer;
    if (s->soft) {
        c->node->misfit = true;
        c->node->unresolved = infer_reason(c, text);
        longjmp(*s->soft, 1);
    }
    guard_fail(c->model->guard, STATUS_INPUT, "node '%s' (%s): %s", c->node->name, c->node->op_type, text);
}

static void check_arity(infer *c) {
    const node *n = c->node;
    const operator_def *d = n->def;
    int in = n->in_count, out = n->out_count;
    while (in > 0 && !n->in[in - 1]) in--;
    while (out > 0 && !n->out[out - 1]) out--;
    if (in < d->min_inputs || (d->max_inputs >= 0 && in > d->max_inputs))
        infer_fail(c, "has %d inputs where %d to %d are allowed", in, d->min_inputs, d->max_inputs);
    if (d->max_outputs >= 0 && out > d->max_outputs)
        infer_fail(c, "has %d outputs where at most %d are allowed", out, d->max_outputs);
}

/* A body that runs more often than this never ends; 2^53 is still a whole number as a double. */
static const double INFER_MAX_TIMES = 9007199254740992.0;

/* The reason to give for a node that cannot be resolved because of one of its inputs. */
static const char *follows_from(infer *c, const tensor *t) {
    if (!t->producer) return arena_printf(c->arena, "input '%s' has no stated shape", t->name);
    const char *why = t->producer->unresolved;
    if (why && strncmp(why, "follows from ", 13) == 0) return why;
    return arena_printf(c->arena, "follows from node '%s'", t->producer->name);
}

static bool is_blank(const info *i) { return i->form == INFO_UNKNOWN || (i->form == INFO_TENSOR && i->rank < 0); }

static const tensor *first_input(const node *n, bool (*is)(const info *)) {
    for (int k = 0; k < n->in_count; k++)
        if (n->in[k] && is(n->in[k]->info)) return n->in[k];
    return NULL;
}

static bool is_open(const info *i) { return i->inexact || i->least; }

static bool is_constant(const node *n) {
    if (!n->def || graph_is_random(n) || graph_has_body(n)) return false;
    for (int k = 0; k < n->in_count; k++)
        if (n->in[k] && !n->in[k]->is_constant && n->in[k]->source != TENSOR_INITIALIZER) return false;
    return true;
}

void infer_check_dims(infer *c, int i, const info *x) {
    if (!info_shaped(x)) return;
    int64_t count = 1;
    for (int k = 0; k < x->rank; k++) {
        if (x->dims[k] < 0) infer_fail(c, "output %d would be %s: a negative dimension", i, info_text(c->arena, x));
        count = checked_mul(count, x->dims[k] ? x->dims[k] : 1);
    }
    if (count > INFER_MAX_ELEMENTS)
        infer_fail(c, "output %d would be %s: more elements than any memory holds", i, info_text(c->arena, x));
}

/* Statements in the model are a check only: a difference is worth a warning, the inferred shape stands. */
static void check_stated(infer *c, const tensor *t) {
    const info *said = t->stated, *is = t->info;
    if (!said || is->inexact || !info_shaped(is) || said->form != INFO_TENSOR) return;
    bool differs = said->type != DTYPE_NONE && is->type != DTYPE_NONE && said->type != is->type;
    if (said->rank >= 0) {
        differs |= said->rank != is->rank;
        for (int k = 0; !differs && k < is->rank; k++) differs |= said->dims[k] >= 0 && said->dims[k] != is->dims[k];
    }
    if (!differs) return;
    if (c->model->infer->mismatches++ == 0)
        graph_warn(c->model, "tensor '%s' is stated as %s but inferred as %s; the latter is used", t->name,
                   info_text(c->arena, said), info_text(c->arena, is));
}

/* For an operator that is not known, what the model states is all there is. */
static bool take_stated(tensor *t) {
    const info *said = t->stated;
    if (!said || !info_shaped(said)) return false;
    for (int k = 0; k < said->rank; k++)
        if (said->dims[k] < 0) return false;
    t->info = said;
    return true;
}

static void infer_unknown_operator(infer *c) {
    node *n = c->node;
    n->unknown = true;
    for (int k = 0; k < n->out_count; k++) {
        if (!n->out[k]) continue;
        n->out[k]->info = &info_unknown;
        if (!take_stated(n->out[k]))
            n->unresolved = arena_printf(c->arena, "the operator %s is not known and the model states no shape",
                                         graph_operator(c->arena, n));
    }
}

static void keep_outputs(infer *c) {
    node *n = c->node;
    const tensor *bound = first_input(n, is_open);
    bool constant = is_constant(n);
    for (int k = 0; k < n->out_count; k++) {
        tensor *t = n->out[k];
        if (!t) continue;
        info *x = c->out[k];
        if (!x) {
            t->info = &info_unknown;
            if (!n->unresolved) n->unresolved = bound ? follows_from(c, bound) : "its shape depends on data";
            continue;
        }
        infer_check_dims(c, k, x);
        if (x->inexact && !n->unresolved) n->unresolved = bound ? follows_from(c, bound) : "its body depends on data";
        t->info = x;
        t->is_constant = constant;
        check_stated(c, t);
    }
}

static void call_shape(infer *c) {
    check_arity(c);
    if (first_input(c->node, is_open))
        infer_bound(c);
    else
        c->node->def->shape(c);
    keep_outputs(c);
}

static void infer_node(model *m, node *n) {
    infer_state *s = m->infer;
    infer c = {.model = m, .arena = m->arena, .node = n};
    info *small[8] = {0};
    c.out = n->out_count <= 8 ? small : arena_array(m->arena, info *, n->out_count);
    n->unresolved = NULL;
    n->misfit = false;
    if (!n->def) {
        infer_unknown_operator(&c);
        return;
    }
    const tensor *blank = first_input(n, is_blank);
    const char *outer_reason = blank ? follows_from(&c, blank) : NULL;
    /* Reshape to known numbers says its output's shape whatever its input is. */
    bool callable = !blank || (graph_is(n, "Reshape") && blank == n->in[0]);
    bool soft = blank || first_input(n, is_open);
    for (int k = 0; k < n->out_count; k++)
        if (n->out[k]) n->out[k]->info = &info_unknown;
    if (!callable) {
        n->unresolved = outer_reason;
        return;
    }
    if (!soft) {
        call_shape(&c);
        return;
    }
    jmp_buf env, *outer = s->soft;
    s->soft = &env;
    if (setjmp(env) == 0) {
        call_shape(&c);
        s->soft = outer;
    } else { /* contradictory only because an input is a bound or unknown */
        s->soft = outer;
        const tensor *cause = blank ? blank : first_input(n, is_open);
        if (cause) n->unresolved = follows_from(&c, cause);
    }
}

void infer_graph(model *m, graph *g) {
    for (int k = 0; k < g->node_count; k++) infer_node(m, g->nodes[k]);
}

bool infer_made(model *m, node *n) {
    jmp_buf env;
    infer_state state = {.soft = &env};
    m->infer = &state;
    if (setjmp(env) == 0) infer_node(m, n);
    m->infer = NULL;
    bool fits = !n->misfit;
    for (int k = 0; k < n->out_count; k++) fits = fits && (!n->out[k] || info_shaped(n->out[k]->info));
    return fits;
}

static void give_up_from(graph *g) {
    for (int k = 0; k < g->node_count; k++) {
        node *n = g->nodes[k];
        for (int o = 0; o < n->out_count; o++)
            if (n->out[o] && n->out[o]->info->form == INFO_UNKNOWN && !n->unresolved)
                n->unresolved = "follows a node that does not fit";
    }
}

bool infer_graph_soft(model *m, graph *g) {
    infer_state *s = m->infer;
    jmp_buf env, *outer = s->soft;
    s->soft = &env;
    if (setjmp(env) == 0) {
        infer_graph(m, g);
        s->soft = outer;
        return true;
    }
    s->soft = outer;
    give_up_from(g);
    return false;
}

void infer_model(model *m) {
    infer_state state = {0};
    m->infer = &state;
    for (int k = 0; k < m->graph_count; k++) {
        m->graphs[k]->times = 1;
        m->graphs[k]->times_known = m->graphs[k] == m->main;
    }
    infer_graph(m, m->main);
    for (int k = 0; k < m->graph_count; k++) { /* parents stand before bodies */
        graph *g = m->graphs[k];
        if (!g->parent) continue;
        g->times *= g->parent->times;
        if (g->times > INFER_MAX_TIMES) g->times = INFER_MAX_TIMES;
        g->times_known = g->times_known && g->parent->times_known;
    }
    /* Bodies whose owner could not be resolved were never entered. */
    for (int64_t k = 0; k < m->node_count; k++) {
        node *n = m->nodes[k];
        if (n->home->owner && n->home->owner->unresolved && !n->unresolved && n->out_count && n->out[0] &&
            n->out[0]->info->form == INFO_UNKNOWN)
            n->unresolved = arena_printf(m->arena, "follows from node '%s'", n->home->owner->name);
    }
    if (state.mismatches > 1)
        graph_warn(m, "%" PRId64 " tensors in all are stated with a type or shape other than the inferred one",
                   state.mismatches);
    m->infer = NULL;
}
