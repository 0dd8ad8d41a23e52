/* What flows between units: results, users and sources, seen through views. */
#include "extract/ops/fuse_internal.h"

#include <string.h>

/* The plain work of a node that is free is found through no unit; views are told by their operator's record. */
static bool node_is_view(const fuse *f, const node *n) {
    static const char *const views[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", NULL};
    if (f->unit_of[n->id] || n->domain[0]) return false;
    for (int k = 0; views[k]; k++)
        if (strcmp(n->op_type, views[k]) == 0) return n->out_count == 1 && n->out[0];
    return false;
}

/* A move that is free, because what reads it takes it as strides. */
static bool node_is_strided(const fuse *f, const node *n) {
    static const char *const moves[] = {"Transpose", "Slice", "Split", "Gather", NULL};
    if (f->unit_of[n->id] || n->domain[0]) return false;
    for (int k = 0; moves[k]; k++)
        if (strcmp(n->op_type, moves[k]) == 0) return true;
    return false;
}

tensor *fuse_result(const fuse *f, const work *w) {
    tensor *result = NULL;
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int o = 0; o < n->out_count; o++) {
            tensor *t = n->out[o];
            if (!t) continue;
            bool leaves = t->is_graph_output;
            for (int u = 0; u < t->user_count && !leaves; u++) leaves = f->unit_of[t->users[u]->id] != w;
            if (!leaves) continue;
            if (result && result != t) return NULL;
            result = t;
        }
    }
    return result;
}

typedef struct user_walk {
    const fuse *f;
    work **users;
    int count, max, others, steps;
} user_walk;

static void walk_users(user_walk *x, const tensor *t, const graph *home) {
    if (t->is_graph_output) x->others++;
    for (int u = 0; u < t->user_count; u++) {
        const node *n = t->users[u];
        work *w = x->f->unit_of[n->id];
        if (++x->steps > FUSE_MAX_THROUGH) { /* so many users that none is the only one: no need to look at them all */
            x->others++;
            return;
        }
        if (n->home != home) {
            x->others++;
            continue;
        }
        if (!w && n->in[0] == t && (node_is_view(x->f, n) || node_is_strided(x->f, n))) {
            for (int o = 0; o < n->out_count; o++)
                if (n->out[o]) walk_users(x, n->out[o], home);
            continue;
        }
        if (!w) continue; /* folded: Shape and its like read no data */
        int k = 0;
        while (k < x->count && x->users[k] != w) k++;
        if (k < x->count) continue;
        if (x->count == x->max)
            x->others++;
        else
            x->users[x->count++] = w;
    }
}

int fuse_users(const fuse *f, tensor *t, work **users, int max, int *others) {
    user_walk x = {.f = f, .users = users, .max = max};
    walk_users(&x, t, t->home);
    *others = x.others;
    return x.count;
}

work *fuse_only_user(const fuse *f, tensor *t, int *others) {
    work *users[FUSE_MAX_OPS];
    int count = fuse_users(f, t, users, FUSE_MAX_OPS, others);
    if (count != 1) *others += count;
    return count == 1 && *others == 0 ? users[0] : NULL;
}

work *fuse_source(const fuse *f, tensor *t, tensor **root) {
    for (int steps = 0; t->producer && steps < FUSE_MAX_THROUGH; steps++) {
        work *w = f->unit_of[t->producer->id];
        *root = t;
        if (w) return w;
        if (!node_is_view(f, t->producer) || !t->producer->in[0]) return NULL;
        t = t->producer->in[0];
    }
    *root = t;
    return NULL;
}

static fuse_operand operand_kind(const info *other, const info *whole) {
    int64_t count = info_count(other);
    if (count == info_count(whole)) return FUSE_OPERAND_FULL;
    bool columns = whole->rank > 0 && other->rank > 0 && count == whole->dims[whole->rank - 1] &&
                   other->dims[other->rank - 1] == count;
    return columns ? FUSE_OPERAND_VECTOR : FUSE_OPERAND_NONE;
}

fuse_operand fuse_other_operand(const fuse *f, const work *w, const tensor *t) {
    const node *n = w->node;
    if (w->node_count != 1 || n->in_count != 2 || !n->out[0] || !n->in[0] || !n->in[1]) return FUSE_OPERAND_NONE;
    const info *whole = n->out[0]->info;
    for (int k = 0; k < 2; k++) {
        tensor *root = NULL;
        fuse_source(f, n->in[k], &root);
        if (root == t && info_count(n->in[k]->info) == info_count(whole))
            return operand_kind(n->in[1 - k]->info, whole);
    }
    return FUSE_OPERAND_NONE;
}
