/* Asking nodes for their attributes, linking tensors to their users, and keeping the run's warnings. */
#include "extract/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_MAX_WARNINGS = 100 };

void graph_warn(model *m, const char *format, ...) {
    if (m->warning_count >= GRAPH_MAX_WARNINGS) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    void *items = (void *)m->warnings;
    arena_grow(m->arena, &items, &m->warning_cap, m->warning_count, sizeof *m->warnings);
    m->warnings = items;
    m->warnings[m->warning_count++] = arena_strndup(m->arena, text, strlen(text));
}

/* Every use of a tensor: counted first, so that all lists lie side by side in one piece of memory. */
void graph_link_users(const model *m) {
    int64_t uses = 0;
    for (int64_t k = 0; k < m->tensor_count; k++) m->tensors[k]->user_count = 0;
    for (int64_t k = 0; k < m->node_count; k++)
        for (int j = 0; j < m->nodes[k]->in_count; j++)
            if (m->nodes[k]->in[j]) m->nodes[k]->in[j]->user_count++, uses++;
    node **next = arena_array(m->arena, node *, uses);
    for (int64_t k = 0; k < m->tensor_count; k++) {
        tensor *t = m->tensors[k];
        t->users = next;
        next += t->user_count;
        t->user_count = 0;
    }
    for (int64_t k = 0; k < m->node_count; k++)
        for (int j = 0; j < m->nodes[k]->in_count; j++) {
            tensor *t = m->nodes[k]->in[j];
            if (t) t->users[t->user_count++] = m->nodes[k];
        }
}

const attr *graph_attr_any(const node *n, const char *name) {
    for (int k = 0; k < n->attr_count; k++)
        if (strcmp(n->attrs[k].name, name) == 0) return &n->attrs[k];
    return NULL;
}

const attr *graph_attr(const node *n, const char *name, attr_kind kind) {
    const attr *a = n->misfit ? NULL : graph_attr_any(n, name);
    return a && a->kind == kind ? a : NULL;
}

int64_t graph_attr_int(const node *n, const char *name, int64_t otherwise) {
    const attr *a = graph_attr(n, name, ATTR_INT);
    return a ? a->i : otherwise;
}

double graph_attr_float(const node *n, const char *name, double otherwise) {
    const attr *a = graph_attr(n, name, ATTR_FLOAT);
    return a ? a->f : otherwise;
}

const char *graph_attr_string(const node *n, const char *name, const char *otherwise) {
    const attr *a = graph_attr(n, name, ATTR_STRING);
    return a ? a->s : otherwise;
}

static bool is_in(const node *n, const char *domain, const char *op_type) {
    return n && strcmp(n->op_type, op_type) == 0 && strcmp(n->domain, domain) == 0;
}

bool graph_is(const node *n, const char *op_type) { return is_in(n, "", op_type); }
bool graph_is_ms(const node *n, const char *op_type) { return is_in(n, "com.microsoft", op_type); }

bool graph_is_blocked(const node *n) { return n && strcmp(n->domain, "com.microsoft.nchwc") == 0; }

const char *graph_operator(arena *a, const node *n) {
    return n->domain[0] ? arena_printf(a, "%s.%s", n->domain, n->op_type) : n->op_type;
}

bool graph_is_random(const node *n) {
    static const char *const names[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                        "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (graph_is(n, names[k])) return true;
    return false;
}

bool graph_has_body(const node *n) {
    for (int k = 0; k < n->attr_count; k++)
        if (n->attrs[k].kind == ATTR_GRAPH) return true;
    return false;
}

static int by_name(const void *name, const void *row) { return strcmp(name, *(const char *const *)row); }

const void *graph_row(const void *rows, size_t count, size_t size, const char *name) {
    return bsearch(name, rows, count, size, by_name);
}
