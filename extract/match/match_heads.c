/* Follows operands up through moves and views, and the output down to a transpose; then tells in the record what the
 * strides are. Moves that something else reads stay what they are, and so does what strides cannot tell. */
#include "extract/match/match_heads.h"

#include "common/checked.h"
#include "extract/match/match_patterns.h"
#include "extract/ops/cost.h"
#include "extract/ops/view.h"

#include <string.h>

void heads_lie_set(heads_lie *l, const int64_t *dims, int64_t repeat, bool turned) {
    const int64_t all[5] = {dims[0], dims[1], repeat, dims[turned ? 3 : 2], dims[turned ? 2 : 3]};
    memcpy(l->dims, all, sizeof all);
    l->rank = 5;
    l->sequence = 0, l->head = 1;
    l->row = turned ? 4 : 3, l->size = turned ? 3 : 4;
    l->told = true;
}

/* ---- along a path ---- */

static bool is_move(const node *n) {
    return graph_is(n, "Transpose") || graph_is(n, "Slice") || graph_is(n, "Split") || graph_is(n, "Gather");
}

static bool is_view(const node *n) { return flow_reshapes(n) || graph_is(n, "Identity"); }

/* What a node of a path hands on: of a scale the side that is no scalar. */
static tensor *above(const node *n) {
    int slot;
    return graph_is(n, "Mul") || graph_is(n, "Div") ? flow_operand(n, &slot) : flow_in(n, 0);
}

static bool apply(match *m, view *v, const node *n, int slot) {
    int64_t before = 0;
    if (flow_renames(n) || flow_reshapes(n) || graph_is(n, "Mul") || graph_is(n, "Div")) return true;
    for (int k = 0; k < slot; k++) { /* only a split has several */
        view skipped = *v;
        if (!view_move(&skipped, work_of(m->list, n), k, &before)) return false;
    }
    return view_move(v, work_of(m->list, n), slot, &before);
}

/* Of dimensions of size 1 it makes no difference, and they get what is customary: as far as all others reach. */
static void settle(const heads_lie *l, int64_t *strides) {
    const int places[3] = {l->sequence, l->head, l->row};
    int64_t reach = l->dims[l->size];
    for (int k = 0; k < 3; k++) {
        const int64_t end = l->dims[places[k]] > 1 ? checked_mul(l->dims[places[k]], strides[k]) : 0;
        if (end > reach) reach = end;
    }
    for (int k = 0; k < 3; k++)
        if (l->dims[places[k]] == 1) strides[k] = reach;
}

/* Rows whose elements lie side by side, at steps that do not overlap; the first one as well aligned as all. */
static bool read_strides(heads_lie *l, view *v) {
    const int places[3] = {l->sequence, l->head, l->row};
    if (!view_cut(v, l->rank, l->dims)) return false;
    if (l->dims[l->size] > 1 && v->factors[l->size].stride != 1) return false;
    if (l->rank == 5 && l->dims[2] > 1 && v->factors[2].stride != 0) return false;
    for (int k = 0; k < 3; k++) {
        l->strides[k] = v->factors[places[k]].stride;
        if (l->dims[places[k]] > 1 && l->strides[k] < l->dims[l->size]) return false;
    }
    settle(l, l->strides);
    const int64_t all = l->strides[0] | l->strides[1] | l->strides[2];
    return (v->offset & ((all & -all) - 1)) == 0;
}

/* The operand as strides over what stands above its path, and with it each tensor that is read as such a view. */
static bool evaluate(match *m, heads_lie *l) {
    const heads_path *p = &l->path;
    const tensor *source = p->count > 0 ? above(p->nodes[p->count - 1]) : p->end;
    view v;
    if (!view_whole(&v, source)) return false;
    for (int k = p->count - 1; k >= 0; k--) {
        const tensor *made = k > 0 ? above(p->nodes[k - 1]) : p->end;
        if (!apply(m, &v, p->nodes[k], made->producer_slot)) return false;
        if (k != p->own) continue;
        view read = v;
        if (!cost_shaped(made) || !view_cut(&read, made->info->rank, made->info->dims)) return false;
    }
    return read_strides(l, &v);
}

/* ---- operands ---- */

static bool is_open(match *m, const node *n, const graph *home) {
    const work *w = work_of(m->list, n);
    return w && !w->owner && !w->folded && n->home == home && (is_move(n) ? w->rec.kind == OP_MOVE : is_view(n));
}

/* Views that no move stands above are what they are anyway. */
static void trim(heads_path *p) {
    while (p->count > p->own && is_view(p->nodes[p->count - 1])) p->count--;
}

static void extend(match *m, heads_path *p, const graph *home) {
    enum { MOST = 8 };
    const tensor *t = p->own > 0 ? above(p->nodes[p->own - 1]) : p->end;
    const int most = p->own + MOST < HEADS_MAX_STEPS ? p->own + MOST : HEADS_MAX_STEPS;
    p->count = p->own;
    while (t && t->producer && !flow_constant(t) && p->count < most && is_open(m, t->producer, home)) {
        p->nodes[p->count++] = t->producer;
        t = above(t->producer);
    }
    trim(p);
}

/* Whether n reads t as strides over what stands above it, wherever it is in a path: a move of one, or an operand. */
static bool is_reader(const heads_lie *sides, const work *w, const node *n, const tensor *t) {
    bool reads = false;
    for (int s = HEADS_Q; s <= HEADS_V; s++) {
        const heads_path *p = &sides[s].path;
        const tensor *read = p->own > 0 ? above(p->nodes[p->own - 1]) : p->end;
        bool here = false;
        for (int k = p->own; k < p->count && !here; k++) {
            here = p->nodes[k] == n;
            if (here && (above(n) != t || k + 1 == p->count)) return false;
        }
        for (int k = 0; k < w->node_count && read == t && !here; k++) {
            here = w->nodes[k] == n;
            if (here && (!sides[s].told || p->count == p->own)) return false;
        }
        reads = reads || here;
    }
    return reads;
}

static bool is_closed(const heads_lie *sides, const work *w, const node *n) {
    for (int o = 0; o < n->out_count; o++) {
        const tensor *t = n->out[o];
        if (!t) continue;
        if (t->is_graph_output || t->user_count > FLOW_MAX_USERS) return false;
        for (int u = 0; u < t->user_count; u++) {
            const node *user = t->users[u];
            if (!graph_is(user, "Shape") && !graph_is(user, "Size") && !is_reader(sides, w, user, t)) return false;
        }
    }
    return true;
}

/* Cuts paths above what something else reads; true where it did. */
static bool close_paths(heads_lie *sides, const work *w) {
    for (int s = HEADS_Q; s <= HEADS_V; s++) {
        heads_path *p = &sides[s].path;
        for (int k = p->own; k < p->count; k++) {
            if (is_closed(sides, w, p->nodes[k])) continue;
            p->count = k;
            trim(p);
            return true;
        }
    }
    return false;
}

/* Cuts a path at its uppermost move where strides do not tell all of it; true where it did. */
static bool shorten(match *m, heads_lie *sides) {
    for (int s = HEADS_Q; s <= HEADS_V; s++) {
        heads_path *p = &sides[s].path;
        if (!sides[s].told || evaluate(m, &sides[s])) continue;
        if (p->count == p->own) {
            sides[s].told = false;
            return true;
        }
        p->count--;
        trim(p);
        return true;
    }
    return false;
}

static void make_free(match *m, const heads_path *p) {
    for (int k = p->own; k < p->count; k++) {
        work *w = work_of(m->list, p->nodes[k]);
        if (w->free) continue;
        w->rec = (oprec){.kind = OP_MOVE, .what = "view"};
        w->free = w->strided = true;
    }
}

/* ---- the output ---- */

/* Down to a transpose that alone reads it; false: there is none that strides tell. */
static bool follow(match *m, heads_lie *out, heads_path *down) {
    enum { MOST = 4 };
    tensor *t = out->path.end;
    view v;
    if (!view_whole(&v, t)) return false;
    for (down->count = 0; t && down->count < MOST; t = flow_out(down->nodes[down->count - 1], 0)) {
        node *n = flow_user(t);
        if (!n || n->in[0] != t || n->home != t->home || !flow_free(m, n) || !(graph_is(n, "Transpose") || is_view(n)))
            return false;
        if (!apply(m, &v, n, 0)) return false;
        down->nodes[down->count++] = n;
        if (is_view(n) || work_of(m->list, n)->free) continue;
        return view_turn(&v) && read_strides(out, &v);
    }
    return false;
}

node *heads_follow(match *m, heads_lie *out, flow_set *set) {
    heads_lie turned = *out;
    heads_path down;
    if (out->told && follow(m, &turned, &down)) {
        *out = turned;
        for (int k = 0; k < down.count; k++) flow_add(set, down.nodes[k]);
        return down.nodes[down.count - 1];
    }
    out->told = out->told && evaluate(m, out);
    return out->path.end->producer;
}

/* ---- what the record says ---- */

static const char *const layouts[] = {"bhsd", "bshd"};
static const char *const fields[HEADS_SIDES] = {"q_layout", "k_layout", "v_layout", "out_layout"};

static bool lies(const heads_lie *l, const char *layout) {
    const int64_t heads = l->dims[l->head], rows = l->dims[l->row], size = l->dims[l->size];
    const bool inside = strcmp(layout, "bshd") == 0;
    const int64_t all = checked_mul(checked_mul(heads, rows), size);
    int64_t usual[3] = {all, checked_mul(rows, size), size};
    if (inside) usual[1] = size, usual[2] = checked_mul(heads, size);
    settle(l, usual);
    return memcmp(usual, l->strides, sizeof usual) == 0;
}

/* One whose strides are not known is taken as if it were copied to what is usual without a layout. */
static void tell(work *w, const heads_lie *l, const char *field, const char *usual) {
    if (l->told ? lies(l, usual) : usual == layouts[0]) return;
    for (int k = 0; k < 2; k++) {
        if (l->told && !lies(l, layouts[k])) continue;
        oprec_set_text(&w->rec, field, layouts[k]);
        return;
    }
    oprec_set_ints(&w->rec, w->arena, field, 3, l->strides);
}

/* What the strides are of; another order of its elements is none of them. */
static void tell_operands(work *w, const heads_lie *sides) {
    static const char *const names[HEADS_SIDES] = {"q", "k", "v", "out"};
    for (int s = HEADS_Q; s <= HEADS_V; s++) {
        const heads_path *p = &sides[s].path;
        tensor *read = p->own > 0 ? above(p->nodes[p->own - 1]) : p->end;
        work_tell(w, names[s], sides[s].told ? read : NULL);
    }
    work_tell_made(w, names[HEADS_OUT], flow_out(w->node, 0));
}

void heads_tell(match *m, work *w, heads_lie *sides) {
    const heads_lie *out = &sides[HEADS_OUT];
    if (!out->told) return;
    for (int s = HEADS_Q; s <= HEADS_V; s++) extend(m, &sides[s].path, w->node->home);
    while (close_paths(sides, w) || shorten(m, sides)) {
    }
    for (int s = HEADS_Q; s <= HEADS_V; s++)
        if (sides[s].told) make_free(m, &sides[s].path);
    const bool inside = !lies(out, layouts[0]) && lies(out, layouts[1]);
    const bool cache = sides[HEADS_K].dims[sides[HEADS_K].row] != out->dims[out->row];
    w->rec.layout = inside ? layouts[1] : NULL;
    for (int s = 0; s < HEADS_SIDES; s++) {
        const bool kept = cache && (s == HEADS_K || s == HEADS_V);
        tell(w, &sides[s], fields[s], layouts[inside && !kept]);
    }
    tell_operands(w, sides);
}

void heads_tell_mask(work *w, tensor *added) {
    static const struct {
        const char *mask, *operand;
    } rows[] = {{"additive", "mask"}, {"causal+padding", "mask"}, {"lengths", "lengths"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].mask, w->rec.mask) == 0) work_tell(w, rows[k].operand, added);
}

/* ---- attention as one node ---- */

/* [B, H, L, D], or [B, L, H * D]. Of a cache the fresh ones alone are an operand, and how it lies is not told. */
static bool set_operand(heads_lie *l, tensor *t, const oprec *r, int64_t heads, int64_t rows, int64_t size) {
    const bool inside = cost_rank(t) == 3;
    const int64_t all[4] = {r->shape[0], inside ? rows : heads, inside ? heads : rows, size};
    *l = (heads_lie){.path = {.end = t}, .rank = 4, .size = 3};
    l->head = inside ? 2 : 1, l->row = inside ? 1 : 2;
    memcpy(l->dims, all, sizeof all);
    l->told = (inside || cost_rank(t) == 4) && cost_dim(t, inside ? 1 : 2) == rows;
    return l->told || (t && cost_shaped(t));
}

/* All that is added to the scores; NULL: there are other masks beside it. */
static tensor *additive_mask(const node *n) {
    static const struct {
        const char *op_type, *domain, *causal;
        int slot, other; /* of a mask over keys */
    } rows[] = {{"Attention", "", "is_causal", 3, 6}, {"MultiHeadAttention", "com.microsoft", "unidirectional", 5, 4}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].op_type, n->op_type) == 0 && strcmp(rows[k].domain, n->domain) == 0 &&
            graph_attr_int(n, rows[k].causal, 0) == 0 && !flow_in(n, rows[k].other))
            return flow_in(n, rows[k].slot);
    return NULL;
}

bool match_attention_operands(match *m, node *n) {
    work *w = work_of(m->list, n);
    heads_lie sides[HEADS_SIDES];
    flow_set set = {.count = 0};
    if (!w || w->owner || w->free || w->rec.kind != OP_ATTENTION || w->rec.rank != 4 || w->rec.what) return false;
    const oprec *r = &w->rec;
    const int64_t heads = r->shape[1], rows = r->shape[2], size = r->shape[3],
                  kv_heads = oprec_int(r, "kv_heads", heads), keys = oprec_int(r, "kv_len", rows),
                  v_head = oprec_int(r, "v_head", size);
    if (r->field_count + HEADS_SIDES > OPREC_MAX_FIELDS || oprec_field(r, "packed_tokens") || n->in_count < 3)
        return false;
    if (!set_operand(&sides[HEADS_Q], n->in[0], r, heads, rows, size) || !sides[HEADS_Q].told ||
        !set_operand(&sides[HEADS_K], n->in[1], r, kv_heads, keys, size) ||
        !set_operand(&sides[HEADS_V], n->in[2], r, kv_heads, keys, v_head) ||
        !set_operand(&sides[HEADS_OUT], flow_out(n, 0), r, heads, rows, v_head))
        return false;
    flow_add(&set, n);
    node *last = heads_follow(m, &sides[HEADS_OUT], &set);
    if (!sides[HEADS_OUT].told) return false;
    if (last != n) {
        const work *plain = w;
        w = flow_join(m, &set, last);
        if (!w) return false;
        w->rec = plain->rec; /* and its bytes: what it writes is as large */
        w->weight = plain->weight;
    }
    heads_tell(m, w, sides);
    heads_tell_mask(w, additive_mask(n));
    return true;
}
