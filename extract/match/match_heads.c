/* Follows queries, keys and values upward. Heads that a model repeats for its library's sake (Expand, Tile, Concat with
 * itself, Gather) are no work that an attention has to do, so they are seen through and counted once. */
#include "extract/match/match_heads.h"

#include "common/checked.h"

enum { HEADS_MAX_STEPS = 24 };

static bool is_repeat_concat(const node *n) {
    if (!graph_is(n, "Concat") || n->in_count < 2) return false;
    for (int k = 1; k < n->in_count; k++) {
        if (n->in[k] != n->in[0]) return false;
    }
    return n->in[0] != NULL;
}

/* How often n repeats its first input: 1 where it is a repeat of nothing, 0 where it is none. */
static int64_t repeat_of(match *m, const node *n) {
    int64_t count;
    bool repeats = graph_is(n, "Expand") || graph_is(n, "Tile") || is_repeat_concat(n);
    if (graph_is(n, "Gather") && n->in_count == 2) {
        int64_t from = flow_count(n->in[0]), to = flow_count(flow_out(n, 0));
        repeats = to > from && flow_ints(m, n->in[1], &count) != NULL;
    }
    if (!repeats) return 0;
    const tensor *in = flow_in(n, 0), *out = flow_out(n, 0);
    int64_t from = flow_count(in), to = flow_count(out);
    if (from < 1 || to < from || to % from) return 0;
    /* the length and the width of a head are never repeated, and neither is the batch */
    bool same_head = flow_dim(in, -1) == flow_dim(out, -1);
    bool same_batch = flow_rank(in) != flow_rank(out) || flow_dim(in, 0) == flow_dim(out, 0);
    return same_head && same_batch ? to / from : 0;
}

/* A Transpose that moves the last dimension away: the matrix comes out turned. */
static bool turns(const node *n) {
    int rank;
    int64_t perm[INFO_MAX_RANK];
    return flow_perm(n, &rank, perm) && perm[rank - 1] != rank - 1;
}

typedef struct heads_walk {
    match *m;
    bool turn, scaled; /* a turn is still wanted; scalars still belong to the attention */
    heads_side *side;
    node *chain[HEADS_MAX_STEPS];
    int length;
    int keep; /* nodes of the chain, from its lower end, that belong to the attention */
} heads_walk;

static bool take_scale(heads_walk *w, const node *n, tensor **up) {
    int slot;
    double x;
    bool divides = graph_is(n, "Div");
    if (!w->scaled || !(divides || graph_is(n, "Mul"))) return false;
    tensor *t = flow_operand(n, &slot);
    if (!t || (divides && slot != 0)) return false;
    if (!flow_scalar(w->m, n->in[1 - slot], &x))
        w->side->scale_known = false;
    else
        w->side->scale *= divides ? 1 / x : x;
    *up = t;
    return true;
}

/* Looks at one node of the walk: where to go on, and whether what lies below it now belongs to the attention. */
static tensor *heads_step(heads_walk *w, const node *n, bool *keep) {
    tensor *up = flow_in(n, 0);
    *keep = false;
    if (take_scale(w, n, &up)) {
        *keep = true;
        return up;
    }
    int64_t repeat = repeat_of(w->m, n);
    if (repeat > 0) {
        w->side->repeat = checked_mul(w->side->repeat, repeat);
        *keep = repeat > 1;
        return up;
    }
    if (graph_is(n, "Transpose")) {
        bool turned = turns(n);
        if (w->turn && turned) {
            w->turn = false;
            *keep = true;
        } else {
            w->scaled = false; /* before the heads were split: part of what comes before the attention */
        }
        return up;
    }
    return flow_renames(n) || flow_reshapes(n) ? up : NULL;
}

/* What feeds a kept repeat by nothing but another view of the same numbers. */
static bool is_view_of_repeat(const heads_walk *w, const node *n) {
    return w->length > 0 && w->keep == w->length && repeat_of(w->m, w->chain[w->length - 1]) > 1 && flow_reshapes(n);
}

void heads_trace(match *m, tensor *t, bool turn, bool scaled, flow_set *set, heads_side *side) {
    heads_walk w = {.m = m, .turn = turn, .scaled = scaled, .side = side};
    flow_set inside = *set;
    bool apart = false; /* met something used elsewhere: what is above stays outside */
    *side = (heads_side){.scale = 1, .scale_known = true, .repeat = 1};
    while (t && t->producer && t->producer_slot == 0 && w.length < HEADS_MAX_STEPS) {
        node *n = t->producer;
        bool keep;
        if (!apart && !flow_closed(&inside, t)) apart = true;
        if (apart) w.scaled = w.turn = false;
        bool view = is_view_of_repeat(&w, n);
        tensor *up = heads_step(&w, n, &keep);
        if (!up) break;
        w.chain[w.length++] = n;
        flow_add(&inside, n);
        if ((keep || view) && !apart) w.keep = w.length;
        t = up;
    }
    for (int k = 0; k < w.keep; k++) flow_add(set, w.chain[k]);
}

int64_t heads_batch_before(tensor *t, int64_t merged, int64_t head) {
    for (int step = 0; t && t->producer && step < HEADS_MAX_STEPS; step++) {
        const node *n = t->producer;
        tensor *in = flow_in(n, 0);
        if (graph_is(n, "Reshape") && flow_rank(in) == 4 && flow_dim(in, 0) > 0 && merged % flow_dim(in, 0) == 0 &&
            checked_mul(flow_dim(in, 0), flow_dim(in, 1)) == merged) {
            return flow_dim(in, 0);
        }
        /* [length, batch, width] to [length, batch * heads, head] */
        if (graph_is(n, "Reshape") && flow_rank(in) == 3 && flow_dim(n->out[0], 1) == merged &&
            flow_dim(in, 0) == flow_dim(n->out[0], 0)) {
            int64_t heads = head > 0 ? flow_dim(in, 2) / head : 0;
            return heads > 0 && merged % heads == 0 && merged / heads == flow_dim(in, 1) ? flow_dim(in, 1) : 0;
        }
        int slot = 0;
        if (graph_is(n, "Mul") || graph_is(n, "Div"))
            in = flow_operand(n, &slot);
        else if (!flow_renames(n) && !flow_reshapes(n) && !graph_is(n, "Transpose"))
            in = NULL;
        t = in;
    }
    return 0;
}

int64_t heads_batch_after(const tensor *t, int64_t merged) {
    for (int step = 0; t && step < 4; step++) {
        const node *n = flow_user(t);
        const tensor *out = flow_out(n, 0);
        if (graph_is(n, "Reshape") && flow_rank(out) == 4 && flow_dim(out, 0) > 0 && merged % flow_dim(out, 0) == 0 &&
            checked_mul(flow_dim(out, 0), flow_dim(out, 1)) == merged) {
            return flow_dim(out, 0);
        }
        if (!flow_renames(n) && !graph_is(n, "Reshape")) return 0;
        t = out;
    }
    return 0;
}
