/* Groups that overlap, or that could wait for one another in a circle, are decided together: searched to the end where
 * that is feasible. All others are independent of each other, because a circle among chosen groups is one among all
 * groups too. */
#include "scout/plan/choose.h"

#include <stdlib.h>
#include <string.h>

/* Groups that are decided together by search; of more the best are taken first, and then so many neighbours searched
 * again, each time with all others as they are. */
enum { MOST_SEARCHED = 200, WINDOW = 24 };
/* Steps of looking: for everything, for what is decided together, for a window, for what one group alone may take. */
static const int64_t all_effort = 1000000000, part_effort = 20000000, window_effort = 100000, group_effort = 2000000;

typedef struct chooser {
    const choose_problem *p;
    arena *arena;
    int *readers, *reader_begins; /* of an occurrence, as needs are */
    double *gains;                /* by group */
    int *group_of;                /* by occurrence: the group that is taken; -1: none */
    int *seen, *stack, stamp;     /* of a walk */
    double *shares;               /* by occurrence: the most that a group gains for each of its members */
    int *shared, share_stamp;     /* by occurrence: of which look its share is */
    int64_t effort, left;         /* that is left of what is under way, and of everything */
    choose_fate *fates;
} chooser;

static bool spend(chooser *c, int64_t steps) {
    c->left -= steps;
    return (c->effort -= steps) > 0;
}

/* Begins something that may take so much. */
static void give(chooser *c, int64_t effort) { c->effort = effort < c->left ? effort : c->left; }

static int least(const choose_group *g) {
    int at = g->members[0];
    for (int k = 1; k < g->count; k++) at = g->members[k] < at ? g->members[k] : at;
    return at;
}

static int most(const choose_group *g) {
    int at = g->members[0];
    for (int k = 1; k < g->count; k++) at = g->members[k] > at ? g->members[k] : at;
    return at;
}

/* ---- circles ---- */

static void invert(chooser *c) {
    const choose_problem *p = c->p;
    const int edges = p->begins[p->count];
    int *at = arena_array(c->arena, int, p->count + 1);
    c->reader_begins = arena_array(c->arena, int, p->count + 1);
    c->readers = arena_array(c->arena, int, edges + 1);
    for (int k = 0; k < edges; k++) c->reader_begins[p->needs[k] + 1]++;
    for (int k = 0; k < p->count; k++) at[k + 1] = c->reader_begins[k + 1] += c->reader_begins[k];
    for (int k = 0; k < p->count; k++)
        for (int n = p->begins[k]; n < p->begins[k + 1]; n++) c->readers[at[p->needs[n]]++] = k;
}

static bool is_member(const choose_group *g, int occurrence) {
    for (int k = 0; k < g->count; k++)
        if (g->members[k] == occurrence) return true;
    return false;
}

static void push_readers(chooser *c, const choose_group *g, int occurrence, int last, int *depth) {
    for (int n = c->reader_begins[occurrence]; n < c->reader_begins[occurrence + 1]; n++) {
        const int reader = c->readers[n];
        if (reader > last || c->seen[reader] == c->stamp || (g && is_member(g, reader))) continue;
        c->seen[reader] = c->stamp;
        c->stack[(*depth)++] = reader;
    }
}

/* Whether something outside of g needs a member and is needed by another, over the groups that are taken. None of them
 * has a member behind `last`. Effort that runs out counts as a circle. */
static bool closes_circle(chooser *c, const choose_group *g, int last) {
    int depth = 0;
    c->stamp++;
    for (int k = 0; k < g->count; k++) push_readers(c, g, g->members[k], last, &depth);
    while (depth > 0) {
        const int at = c->stack[--depth], taken = c->group_of[at];
        const choose_group *around = taken >= 0 ? &c->p->groups[taken] : NULL;
        for (int k = 0; k < (around ? around->count : 1); k++) {
            const int from = around ? around->members[k] : at;
            if (!spend(c, 1 + c->reader_begins[from + 1] - c->reader_begins[from])) return true;
            c->seen[from] = c->stamp;
            for (int n = c->reader_begins[from]; n < c->reader_begins[from + 1]; n++)
                if (is_member(g, c->readers[n])) return true;
            push_readers(c, NULL, from, last, &depth);
        }
    }
    return false;
}

/* ---- each by itself ---- */

static choose_fate fate_alone(chooser *c, int index) {
    const choose_group *g = &c->p->groups[index];
    double alone = 0;
    for (int k = 0; k < g->count; k++) alone += c->p->costs[g->members[k]];
    c->gains[index] = alone - g->cost;
    give(c, group_effort);
    if (!(c->gains[index] > 0)) return CHOOSE_DEAR;
    if (c->p->segments[least(g)] != c->p->segments[most(g)]) return CHOOSE_CIRCLE;
    if (!closes_circle(c, g, most(g))) return CHOOSE_BEATEN;
    return c->effort > 0 ? CHOOSE_CIRCLE : CHOOSE_LONG;
}

/* ---- what is decided together ---- */

static int root_of(int *parent, int k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
}

static void join(int *parent, int a, int b) {
    const int x = root_of(parent, a), y = root_of(parent, b);
    parent[x > y ? x : y] = x > y ? y : x;
}

/* Takes away what no circle leads to, or back from, with `neighbours` as the direction. */
static void peel(chooser *c, int *parent, const int *neighbours, const int *begins, uint8_t *gone) {
    const arena_mark mark = arena_save(c->arena);
    const int count = c->p->count;
    int *waits = arena_array(c->arena, int, count), *next = arena_array(c->arena, int, count);
    int *first = arena_array(c->arena, int, count), depth = 0;
    for (int k = 0; k < count; k++) first[k] = -1;
    for (int k = count - 1; k >= 0; k--) { /* members of a node, by its root */
        next[k] = first[root_of(parent, k)];
        first[root_of(parent, k)] = k;
    }
    for (int k = 0; k < count; k++)
        for (int n = begins[k]; n < begins[k + 1]; n++) {
            const int to = root_of(parent, neighbours[n]);
            waits[to] += to != root_of(parent, k) && !gone[root_of(parent, k)];
        }
    for (int k = 0; k < count; k++)
        if (root_of(parent, k) == k && !gone[k] && waits[k] == 0) c->stack[depth++] = k;
    while (depth > 0) {
        const int node = c->stack[--depth];
        gone[node] = 1;
        for (int k = first[node]; k >= 0; k = next[k])
            for (int n = begins[k]; n < begins[k + 1]; n++) {
                const int to = root_of(parent, neighbours[n]);
                if (to != node && !gone[to] && --waits[to] == 0) c->stack[depth++] = to;
            }
    }
    arena_rewind(c->arena, mark);
}

/* By occurrence: the least one that is decided with it. */
static int *decided_together(chooser *c) {
    const choose_problem *p = c->p;
    int *parent = arena_array(c->arena, int, p->count);
    uint8_t *gone = arena_array(c->arena, uint8_t, p->count);
    for (int k = 0; k < p->count; k++) parent[k] = k;
    for (int g = 0; g < p->group_count; g++)
        for (int k = 1; c->fates[g] == CHOOSE_BEATEN && k < p->groups[g].count; k++)
            join(parent, p->groups[g].members[0], p->groups[g].members[k]);
    peel(c, parent, c->readers, c->reader_begins, gone);
    peel(c, parent, p->needs, p->begins, gone);
    int *joined = arena_array(c->arena, int, p->count);
    memcpy(joined, parent, (size_t)p->count * sizeof *joined);
    for (int k = 0; k < p->count; k++)
        for (int n = p->begins[k]; n < p->begins[k + 1]; n++)
            if (!gone[root_of(parent, k)] && !gone[root_of(parent, p->needs[n])]) join(joined, k, p->needs[n]);
    return joined;
}

/* ---- deciding ---- */

typedef struct ranked {
    int place, group;
    double gain;
} ranked;

static int by_place(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

typedef struct part { /* groups that are decided together, what gains most first */
    const int *groups;
    int count, last;             /* last: the last occurrence of any */
    uint8_t *taken, *best_taken; /* by place */
    double gain, best;
} part;

static void take(chooser *c, int group, int by) {
    for (int k = 0; k < c->p->groups[group].count; k++) c->group_of[c->p->groups[group].members[k]] = by;
}

static bool is_free(const chooser *c, int group) {
    for (int k = 0; k < c->p->groups[group].count; k++)
        if (c->group_of[c->p->groups[group].members[k]] >= 0) return false;
    return true;
}

/* What the groups from `from` on may gain at most beside what is taken: no more than each of their members' best share,
 * and no more than all of them. */
static double bound_of(chooser *c, const part *x, int from) {
    double all = 0, sum = 0;
    c->share_stamp++;
    for (int k = from; k < x->count; k++) {
        const choose_group *g = &c->p->groups[x->groups[k]];
        const double share = c->gains[x->groups[k]] / g->count;
        (void)spend(c, g->count);
        if (!is_free(c, x->groups[k])) continue;
        sum += c->gains[x->groups[k]];
        for (int m = 0; m < g->count; m++) {
            const int at = g->members[m];
            const double before = c->shared[at] == c->share_stamp ? c->shares[at] : 0;
            if (share <= before) continue;
            all += share - before;
            c->shared[at] = c->share_stamp;
            c->shares[at] = share;
        }
    }
    return all < sum ? all : sum;
}

/* Rounding is no reason to look further. */
static bool is_more(double gain, double than) { return gain > than * (1 + 1e-12); }

static void search(chooser *c, part *x, int from) {
    if (is_more(x->gain, x->best)) {
        x->best = x->gain;
        memcpy(x->best_taken, x->taken, (size_t)x->count);
    }
    while (from < x->count && !is_free(c, x->groups[from])) from++;
    if (from == x->count || c->effort <= 0 || !is_more(x->gain + bound_of(c, x, from), x->best)) return;
    const int group = x->groups[from];
    const double before = x->gain;
    if (!closes_circle(c, &c->p->groups[group], x->last)) {
        take(c, group, group);
        x->taken[from] = 1;
        x->gain += c->gains[group];
        search(c, x, from + 1);
        x->gain = before;
        x->taken[from] = 0;
        take(c, group, -1);
    }
    search(c, x, from + 1);
}

static void take_first(chooser *c, const part *x) {
    for (int k = 0; k < x->count; k++) {
        const int group = x->groups[k];
        if (is_free(c, group) && !closes_circle(c, &c->p->groups[group], x->last)) take(c, group, group);
    }
}

/* Those of `groups` anew, beside all others that are taken. */
static void search_window(chooser *c, const int *groups, int count, int last) {
    uint8_t taken[WINDOW] = {0}, before[WINDOW] = {0};
    part x = {.groups = groups, .count = count, .last = last, .taken = taken, .best_taken = before};
    for (int k = 0; k < count; k++) {
        before[k] = c->group_of[c->p->groups[groups[k]].members[0]] == groups[k];
        if (!before[k]) continue;
        x.best += c->gains[groups[k]];
        take(c, groups[k], -1);
    }
    give(c, window_effort);
    search(c, &x, 0);
    for (int k = 0; k < count; k++)
        if (before[k]) take(c, groups[k], groups[k]);
}

/* The most that these gain where nothing else is taken, or more. */
static double most_of(chooser *c, const int *groups, int count, int last) {
    uint8_t taken[WINDOW] = {0}, best_taken[WINDOW] = {0};
    part x = {.groups = groups, .count = count, .last = last, .taken = taken, .best_taken = best_taken};
    const double bound = bound_of(c, &x, 0);
    give(c, window_effort);
    search(c, &x, 0);
    return c->effort > 0 ? x.best : bound;
}

/* More than a search can decide. What is taken stands in best_taken. No choice gains more than the best ones of windows
 * that lie side by side, each for itself. */
static void decide_many(chooser *c, part *x, double *bound) {
    double windows = 0;
    ranked *order = arena_array(c->arena, ranked, x->count);
    int *placed = arena_array(c->arena, int, x->count);
    for (int k = 0; k < x->count; k++) order[k] = (ranked){least(&c->p->groups[x->groups[k]]), x->groups[k], 0};
    qsort(order, (size_t)x->count, sizeof *order, by_place);
    for (int k = 0; k < x->count; k++) placed[k] = order[k].group;
    for (int from = 0; from < x->count; from += WINDOW)
        windows += most_of(c, placed + from, x->count - from < WINDOW ? x->count - from : WINDOW, x->last);
    *bound = windows < *bound ? windows : *bound;
    give(c, part_effort);
    take_first(c, x);
    for (int from = 0; from < x->count && c->left > 0; from += WINDOW / 2)
        search_window(c, placed + from, x->count - from < WINDOW ? x->count - from : WINDOW, x->last);
    for (int k = 0; k < x->count; k++) {
        const int group = x->groups[k];
        x->best_taken[k] = c->group_of[c->p->groups[group].members[0]] == group;
        if (x->best_taken[k]) x->best += c->gains[group];
    }
}

/* Returns what is gained; *bound: what no choice exceeds. */
static double decide(chooser *c, part *x, double *bound) {
    const arena_mark mark = arena_save(c->arena);
    x->taken = arena_array(c->arena, uint8_t, x->count);
    x->best_taken = arena_array(c->arena, uint8_t, x->count);
    for (int k = 0; k < x->count; k++)
        if (most(&c->p->groups[x->groups[k]]) > x->last) x->last = most(&c->p->groups[x->groups[k]]);
    *bound = bound_of(c, x, 0);
    give(c, part_effort);
    if (x->count <= MOST_SEARCHED)
        search(c, x, 0);
    else
        decide_many(c, x, bound);
    if (x->count <= MOST_SEARCHED && c->effort > 0) *bound = x->best;
    for (int k = 0; k < x->count; k++)
        if (x->best_taken[k]) {
            take(c, x->groups[k], x->groups[k]);
            c->fates[x->groups[k]] = CHOOSE_TAKEN;
        }
    arena_rewind(c->arena, mark);
    return x->best;
}

static void decide_all(chooser *c, choose_choice *to) {
    const choose_problem *p = c->p;
    const int *together = decided_together(c);
    ranked *all = arena_array(c->arena, ranked, p->group_count);
    int *groups = arena_array(c->arena, int, p->group_count), count = 0;
    for (int g = 0; g < p->group_count; g++)
        if (c->fates[g] == CHOOSE_BEATEN) {
            int at = p->groups[g].members[0];
            while (together[at] != at) at = together[at];
            all[count++] = (ranked){at, g, c->gains[g]};
        }
    if (count > 0) qsort(all, (size_t)count, sizeof *all, by_place);
    for (int k = 0; k < count; k++) groups[k] = all[k].group;
    for (int k = 0, end; k < count; k = end) {
        part x = {.groups = groups + k};
        double bound = 0;
        for (end = k; end < count && all[end].place == all[k].place; end++) x.count++;
        to->cost -= decide(c, &x, &bound);
        to->bound -= bound;
    }
}

/* ---- an order ---- */

/* A heap of nodes by their last occurrence: what stood first goes first, and no segment before the one in front of it.
 */
static void heap_push(int *heap, int *count, int item) {
    int at = (*count)++;
    for (; at > 0 && heap[(at - 1) / 2] > item; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static int heap_pop(int *heap, int *count) {
    const int top = heap[0], item = heap[--*count];
    int at = 0;
    for (int child; (child = 2 * at + 1) < *count; at = child) {
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= item) break;
        heap[at] = heap[child];
    }
    heap[at] = item;
    return top;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* A node stands under its last occurrence. */
static int node_of(const chooser *c, const int *lasts, int occurrence) {
    const int group = c->group_of[occurrence];
    return group >= 0 ? lasts[group] : occurrence;
}

static int *order_of(chooser *c) {
    const choose_problem *p = c->p;
    int *order = arena_array(c->arena, int, p->count), *waits = arena_array(c->arena, int, p->count),
        *heap = arena_array(c->arena, int, p->count), *lasts = arena_array(c->arena, int, p->group_count), ready = 0,
        done = 0;
    for (int g = 0; g < p->group_count; g++) lasts[g] = most(&p->groups[g]);
    for (int k = 0; k < p->count; k++)
        for (int n = p->begins[k]; n < p->begins[k + 1]; n++)
            waits[node_of(c, lasts, k)] += node_of(c, lasts, p->needs[n]) != node_of(c, lasts, k);
    for (int k = 0; k < p->count; k++)
        if (node_of(c, lasts, k) == k && waits[k] == 0) heap_push(heap, &ready, k);
    while (ready > 0) {
        const int node = heap_pop(heap, &ready), group = c->group_of[node], begin = done;
        for (int k = 0; k < (group >= 0 ? p->groups[group].count : 1); k++)
            order[done++] = group >= 0 ? p->groups[group].members[k] : node;
        qsort(order + begin, (size_t)(done - begin), sizeof *order, by_number);
        for (int k = begin; k < done; k++)
            for (int n = c->reader_begins[order[k]]; n < c->reader_begins[order[k] + 1]; n++) {
                const int to = node_of(c, lasts, c->readers[n]);
                if (to != node && --waits[to] == 0) heap_push(heap, &ready, to);
            }
    }
    return order;
}

choose_choice *choose_groups(const choose_problem *p, arena *a) {
    choose_choice *to = arena_array(a, choose_choice, 1);
    chooser c = {.p = p,
                 .arena = a,
                 .left = all_effort,
                 .gains = arena_array(a, double, p->group_count),
                 .group_of = arena_array(a, int, p->count),
                 .seen = arena_array(a, int, p->count),
                 .stack = arena_array(a, int, p->count),
                 .shares = arena_array(a, double, p->count),
                 .shared = arena_array(a, int, p->count),
                 .fates = arena_array(a, choose_fate, p->group_count)};
    invert(&c);
    for (int k = 0; k < p->count; k++) {
        to->alone += p->costs[k];
        c.group_of[k] = -1;
    }
    for (int g = 0; g < p->group_count; g++) c.fates[g] = fate_alone(&c, g);
    to->cost = to->bound = to->alone;
    decide_all(&c, to);
    to->fates = c.fates;
    to->order = order_of(&c);
    return to;
}
