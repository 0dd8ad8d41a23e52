/* Rotary embedding spelled out: x cos + rotated(x) sin, where rotated(x) is x with its halves (or its pairs) exchanged
 * and one of them negated; or both halves of the result computed apart and put together. */
#include "extract/ops/match_patterns.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

enum { ROTARY_MAX_STEPS = 12 };

/* Picks or regroups parts of one tensor. */
static bool is_part(const node *n) {
    return graph_is(n, "Slice") || graph_is(n, "Split") ||
           (graph_is(n, "Gather") && flow_in(n, 1) && flow_constant(flow_in(n, 1)));
}

/* What n negates: by Neg, or times -1. NULL where it negates nothing. */
static tensor *negated(match *m, const node *n) {
    int slot;
    double x;
    if (graph_is(n, "Neg")) return flow_in(n, 0);
    tensor *t = graph_is(n, "Mul") ? flow_operand(n, &slot) : NULL;
    return t && flow_scalar(m, n->in[1 - slot], &x) && x == -1 ? t : NULL;
}

/* What one half is made from: up through Neg (counted), the pick of a part, views and casts. NULL where no part is
 * picked. */
static tensor *half_source(match *m, tensor *t, int *negations, flow_set *set) {
    bool picked = false;
    tensor *source = NULL;
    for (int step = 0; t && t->producer && step < ROTARY_MAX_STEPS; step++) {
        node *n = t->producer;
        if (t->producer_slot != 0 && !graph_is(n, "Split")) break;
        tensor *up = negated(m, n);
        if (up) {
            if (picked) break;
            *negations += 1;
        } else if (is_part(n)) {
            if (picked) break;
            picked = true;
        } else if (!(flow_reshapes(n) || flow_renames(n)) || picked) {
            break;
        }
        flow_add(set, n);
        t = up ? up : flow_in(n, 0);
        if (picked) source = t;
    }
    return source;
}

/* A factor of the rotation: it does not come from x, and is no larger. */
static bool is_angle(const tensor *t, const tensor *x) {
    return t && !flow_is_scalar(t) && flow_count(t) <= flow_count(x) && flow_rank(t) >= 1;
}

/* Same numbers regrouped (pairs split off by a Reshape before the parts are picked). */
static tensor *before_views(tensor *t, const tensor *like, flow_set *set) {
    for (int step = 0; t && step < 4 && t != like; step++) {
        node *n = t->producer;
        if (!n || !(flow_reshapes(n) || graph_is(n, "Cast"))) break;
        flow_add(set, n);
        t = flow_in(n, 0);
    }
    return t;
}

/* t is x with halves or pairs exchanged and one negated; adds what makes it to the set. */
static bool is_rotated(match *m, tensor *t, tensor *x, flow_set *set) {
    int negations = 0;
    for (int step = 0; t && t->producer && step < 4 && (flow_reshapes(t->producer) || flow_renames(t->producer));
         step++) {
        flow_add(set, t->producer);
        t = flow_in(t->producer, 0);
    }
    node *n = t ? t->producer : NULL;
    if (!n || !graph_is(n, "Concat") || n->in_count != 2) return false;
    flow_add(set, n);
    for (int i = 0; i < 2; i++) {
        tensor *source = half_source(m, n->in[i], &negations, set);
        if (!source) return false;
        if (source != x && before_views(source, x, set) != x) return false;
    }
    return negations == 1;
}

/* [B, H, S, D] from x, and from which of its dimensions the angles do not know: heads share them. */
static void fill_rotary(work *w, tensor *x, const tensor *y, const tensor *angle, bool interleaved) {
    int rank = flow_rank(x);
    int64_t shape[4] = {1, 1, 1, flow_dim(x, -1)};
    if (rank == 4) {
        int64_t a1 = flow_rank(angle) >= 3 ? flow_dim(angle, -3) : 1, a2 = flow_dim(angle, -2);
        bool heads_last = a2 == 1 && a1 > 1;
        shape[0] = flow_dim(x, 0);
        shape[1] = flow_dim(x, heads_last ? 2 : 1);
        shape[2] = flow_dim(x, heads_last ? 1 : 2);
    } else if (rank == 3) {
        shape[1] = flow_dim(x, 0);
        shape[2] = flow_dim(x, 1);
    } else {
        shape[2] = flow_dim(x, -1) > 0 ? flow_count(x) / flow_dim(x, -1) : 0;
    }
    memset(&w->rec, 0, sizeof w->rec);
    w->rec.kind = OP_ROTARY;
    oprec_set_shape(&w->rec, w->arena, 4, shape);
    if (interleaved) oprec_set_int(&w->rec, "interleaved", 1);
    cost_set_types(w, x, y);
    cost_boundary(w);
    w->rec.flops = checked_mul(flow_count(x), COST_ROTARY);
}

/* Pairs are put together by stacking single elements; halves by a Concat of what was sliced. */
static bool is_interleaved(const flow_set *s) {
    for (int k = 0; k < s->count; k++) {
        if (graph_is(s->nodes[k], "Unsqueeze")) return true;
    }
    return false;
}

static bool join_rotary(match *m, flow_set *set, node *last, tensor *x, const tensor *angle) {
    work *w = flow_join(m, set, last);
    if (!w) return false;
    fill_rotary(w, x, last->out[0], angle, is_interleaved(set));
    return true;
}

bool match_rotary_add(match *m, node *sum) {
    if (sum->in_count != 2 || !flow_free(m, sum)) return false;
    for (int straight = 0; straight < 2; straight++) {
        node *a = flow_producer(sum->in[straight]), *b = flow_producer(sum->in[1 - straight]);
        if (!graph_is(a, "Mul") || !graph_is(b, "Mul") || a == b || !flow_same_shape(flow_out(a, 0), flow_out(b, 0)) ||
            a->in_count != 2 || b->in_count != 2)
            continue;
        for (int i = 0; i < 4; i++) {
            tensor *x = a->in[i & 1], *cosine = a->in[1 - (i & 1)], *rotated = b->in[i >> 1],
                   *sine = b->in[1 - (i >> 1)];
            flow_set set = {.count = 0};
            if (!x || !rotated || !rotated->producer || !is_angle(cosine, x) || !is_angle(sine, x)) continue;
            if (!flow_same_shape(x, a->out[0]) || !is_rotated(m, rotated, x, &set)) continue;
            flow_add(&set, a);
            flow_add(&set, b);
            flow_add(&set, sum);
            for (int k = 0; k < 2; k++) {
                if (sum->in[k]->producer != a && sum->in[k]->producer != b) flow_add(&set, sum->in[k]->producer);
            }
            if (join_rotary(m, &set, sum, x, cosine)) return true;
        }
    }
    return false;
}

/* One half of the result: part1 angle1 +- part2 angle2. The source of both parts, or NULL. */
static tensor *half_result(match *m, tensor *t, const char *op_type, flow_set *set, const tensor **angle) {
    for (int step = 0; t && t->producer && step < 3 && (flow_reshapes(t->producer) || flow_renames(t->producer));
         step++) {
        flow_add(set, t->producer);
        t = flow_in(t->producer, 0);
    }
    node *n = t ? t->producer : NULL;
    tensor *found = NULL;
    if (!n || !graph_is(n, op_type) || n->in_count != 2) return NULL;
    flow_add(set, n);
    for (int i = 0; i < 2; i++) {
        node *mul = flow_producer(n->in[i]);
        tensor *source = NULL;
        if (!mul || !graph_is(mul, "Mul") || mul->in_count != 2) return NULL;
        flow_add(set, mul);
        for (int k = 0; k < 2 && !source; k++) {
            int negations = 0, before = set->count;
            source = half_source(m, mul->in[k], &negations, set);
            if (source && negations == 0 && !flow_constant(mul->in[k])) {
                *angle = mul->in[1 - k];
                break;
            }
            set->count = before;
            source = NULL;
        }
        if (!source || (found && source != found)) return NULL;
        found = source;
    }
    return found;
}

bool match_rotary_concat(match *m, node *concat) {
    if (concat->in_count != 2 || !flow_free(m, concat)) return false;
    for (int i = 0; i < 2; i++) {
        flow_set set = {.count = 0};
        const tensor *angle = NULL;
        tensor *x = half_result(m, concat->in[i], "Sub", &set, &angle);
        if (!x || x != half_result(m, concat->in[1 - i], "Add", &set, &angle)) continue;
        if (!flow_out(concat, 0) || flow_count(x) != flow_count(concat->out[0])) continue;
        flow_add(&set, concat);
        if (join_rotary(m, &set, concat, x, angle)) return true;
    }
    return false;
}
