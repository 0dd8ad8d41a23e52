/* The order of a graph's nodes. The format asks for one in which every value is there before it is used, but not every
 * exporter keeps to it: nodes that come too early are put after those they need, all others stay where they are. */
#include "extract/read/build.h"

typedef struct order {
    build *b;
    const build_scope *scope;
    const build_raw *raws;
    uint8_t *state; /* 0 new, 1 on the stack, 2 in the order */
    int64_t *stack; /* nodes that wait for what they need */
    size_t *next;   /* which of its needs each node on the stack looks at */
    int64_t *result;
    size_t count, depth;
} order;

/* The raw node that produces need k of a node; -1 where none of this graph does, -2 after the last need. */
static int64_t need(const order *o, const build_raw *raw, size_t k) {
    if (k >= raw->in_count + raw->captured_count) return -2;
    const char *name = k < raw->in_count ? raw->in[k] : raw->captured[k - raw->in_count];
    const build_name *n = *name ? map_get(&o->scope->names, name) : NULL;
    return n ? n->producer : -1;
}

static void push(order *o, int64_t which) {
    if (o->state[which] == 1)
        build_fail(o->b, "%s: needs its own output: the graph has a cycle", build_raw_text(o->b, &o->raws[which]));
    if (o->state[which] == 2) return;
    o->state[which] = 1;
    o->stack[o->depth] = which;
    o->next[o->depth++] = 0;
}

static void settle(order *o, int64_t root) {
    push(o, root);
    while (o->depth > 0) {
        const int64_t top = o->stack[o->depth - 1];
        const int64_t needed = need(o, &o->raws[top], o->next[o->depth - 1]++);
        if (needed >= 0) push(o, needed);
        if (needed != -2) continue;
        o->state[top] = 2;
        o->result[o->count++] = top;
        o->depth--;
    }
}

const int64_t *build_order(build *b, const build_scope *s, const build_raw *raws, size_t count) {
    order o = {.b = b, .scope = s, .raws = raws};
    o.state = arena_array(b->frames, uint8_t, count);
    o.stack = arena_array(b->frames, int64_t, count);
    o.next = arena_array(b->frames, size_t, count);
    o.result = arena_array(b->frames, int64_t, count);
    for (size_t k = 0; k < count; k++) settle(&o, (int64_t)k);
    return o.result;
}
