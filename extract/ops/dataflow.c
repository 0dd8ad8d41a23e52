/* Owns the order in which works run and what flows between them. A plain work depends on what it reads; a joined one on
 * what any of its nodes reads; a loop or a branch on what its bodies read from around them, and it comes behind its
 * bodies, which come at once. */
#include "extract/ops/dataflow.h"

#include "common/checked.h"
#include "common/liveness.h"
#include "extract/ops/cost.h"
#include "extract/ops/view.h"

#include <string.h>

/* A work that is no part of another one. */
typedef struct unit {
    const work *w;
    const tensor *root; /* of an alias: the tensor with memory of its own that its output is */
    int place, first_node;
    enum { UNIT_NEW, UNIT_WAITS, UNIT_DONE } state;
} unit;

/* What a body reads from around it. */
typedef struct capture {
    tensor *t;
    struct capture *next; /* of the same owner */
} capture;

/* A unit that waits for what it needs, and how far its needs are looked through. */
typedef struct frame {
    int unit, node, in, passed; /* passed: input of the dequantisation that input `in` is read past */
    const capture *captured;
} frame;

typedef struct flow_builder {
    const catalog *catalog;
    arena *arena;
    dataflow *to;
    unit *units;
    int unit_count;
    int *unit_of;         /* by node id; -1: it does not run */
    int *row_of;          /* by the tensor's place: its row plus 1 */
    const view **view_of; /* by the tensor's place: of an alias, where it does not lie as its source does */
    frame *stack;
    size_t depth, stack_cap;
    capture **captured; /* by node id: of one with bodies, what they read from around them; NULL where none has */
    int *begins;        /* by graph: the occurrence that its body begins with */
} flow_builder;

int dataflow_occurrence_of(const dataflow *d, const work *w) {
    const int at = d->occurrence_of[w->node->id];
    return at < d->occurrence_count && d->occurrences[at].w == w ? at : -1;
}

bool dataflow_is_alias(const dataflow_tensor *t) { return t->source >= 0 && t->producer < 0; }

/* ---- units ---- */

static void list_units(flow_builder *b) {
    const catalog *c = b->catalog;
    const int64_t nodes = c->model->node_count;
    b->units = arena_array(b->arena, unit, nodes);
    b->unit_of = arena_array(b->arena, int, nodes);
    for (int64_t k = 0; k < nodes; k++) b->unit_of[k] = -1;
    for (size_t e = 0; e < c->entry_count; e++) {
        const catalog_entry *entry = c->entries[e];
        int place = 0, first_node = 0;
        for (const work *w = entry->part || entry->count == 0 ? NULL : entry->first; w; w = w->next_same) {
            for (int k = 0; k < w->node_count; k++) b->unit_of[w->nodes[k]->id] = b->unit_count;
            b->units[b->unit_count++] = (unit){.w = w, .place = place++, .first_node = first_node};
            first_node += w->node_count;
        }
    }
}

static unit *unit_of(const flow_builder *b, const node *n) {
    return n && b->unit_of[n->id] >= 0 ? &b->units[b->unit_of[n->id]] : NULL;
}

static unit *producer_of(const flow_builder *b, const tensor *t) { return unit_of(b, t->producer); }

/* Before the run begins: a Constant is so too where its own body gives it another shape in each iteration. */
static bool is_loaded(const unit *u) {
    return u->w->folded || (u->w->node_count == 1 && graph_is(u->w->node, "Constant"));
}

static bool is_read(const tensor *t) { return t->is_graph_output || t->user_count > 0; }

/* Output 0 is input 0, as it lies, or what its readers take as strides. Others that are free, as the handling of
 * sequences, stand for themselves. */
static bool is_alias(const unit *u) {
    static const char *const others[] = {"Optional", "OptionalHasElement", "Shape", "Size"};
    const work *w = u->w;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    if (w->strided) return true;
    if (!w->free || is_loaded(u) || w->node_count != 1 || graph_has_body(w->node)) return false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (graph_is(w->node, others[k])) return false;
    for (int k = 1; k < w->node->out_count; k++)
        if (w->node->out[k] && is_read(w->node->out[k])) return false;
    return cost_shaped(in) && cost_shaped(out) && in->info->form == INFO_TENSOR && out->info->form == INFO_TENSOR &&
           info_count(in->info) == info_count(out->info) && cost_type(w, in) == cost_type(w, out);
}

/* ---- what bodies read from around them ---- */

static bool runs(const graph *g) { return g->times != 0; }

static void note_capture(flow_builder *b, const graph *reader, tensor *t) {
    const graph *g = reader;
    while (g->parent && g->parent != t->home) g = g->parent;
    if (!g->parent) return;
    capture *c = arena_alloc(b->arena, sizeof *c);
    *c = (capture){t, b->captured[g->owner->id]};
    b->captured[g->owner->id] = c;
}

static void find_capture(flow_builder *b, const node *n, tensor *t) {
    const unit *u = unit_of(b, n);
    const node *passed = u ? cost_passed(u->w, t) : NULL;
    for (int i = 0; passed && i < passed->in_count; i++) find_capture(b, n, passed->in[i]);
    if (!passed && t && t->home != n->home && !cost_known(t)) note_capture(b, n->home, t);
}

static void find_captures(flow_builder *b) {
    const model *m = b->catalog->model;
    if (m->graph_count == 1) return;
    b->captured = arena_array(b->arena, capture *, m->node_count);
    for (int64_t k = 0; k < m->node_count; k++) {
        const node *n = m->nodes[k];
        if (!n->home->parent || !runs(n->home)) continue;
        for (int i = 0; i < n->in_count; i++) find_capture(b, n, n->in[i]);
    }
}

/* ---- tensors ---- */

static dataflow_kind kind_of(const flow_builder *b, const tensor *t) {
    if (t->source == TENSOR_INPUT) return DATAFLOW_INPUT;
    if (t->source == TENSOR_FORMAL) return DATAFLOW_STATE;
    if (t->source == TENSOR_ASSUMED) return DATAFLOW_ASSUMED;
    if (t->source == TENSOR_INITIALIZER || t->blob) return DATAFLOW_WEIGHT;
    const unit *u = producer_of(b, t);
    if (u ? is_loaded(u) : t->is_constant) return DATAFLOW_CONSTANT;
    return t->is_graph_output && t->home == b->catalog->model->main ? DATAFLOW_OUTPUT : DATAFLOW_ACTIVATION;
}

/* Under the precision that all works share. */
static dtype type_of(const flow_builder *b, const tensor *t) {
    return b->unit_count > 0 ? cost_type(b->units[0].w, t) : t->info->type;
}

/* NULL: it lies as its source does. */
static const dataflow_strides *strides_of(flow_builder *b, const view *of, const tensor *t) {
    const int rank = cost_rank(t);
    view v;
    if (!of) return NULL;
    v = *of;
    if (rank < 0 || !view_cut(&v, rank, t->info->dims)) return NULL;
    dataflow_strides *made = arena_zalloc(b->arena, sizeof *made + (size_t)rank * sizeof *made->strides);
    made->offset = v.offset;
    for (int k = 0; k < rank; k++) made->strides[k] = v.factors[k].stride;
    return made;
}

/* The row of t, made where there is none. */
static int row_of(flow_builder *b, const tensor *t, dtype type) {
    int *at = &b->row_of[t->place];
    if (*at) return *at - 1;
    const unit *u = producer_of(b, t);
    dataflow_tensor row = {
        .t = t, .type = (uint8_t)type, .kind = (uint8_t)kind_of(b, t), .producer = -1, .to = -1, .source = -1};
    if (u && u->root) row.source = row_of(b, u->root, type);
    if (u && u->root) row.view = strides_of(b, b->view_of[t->place], t);
    if (row.kind == DATAFLOW_STATE) row.from = b->begins[t->home->place];
    *at = ++b->to->tensor_count;
    b->to->tensors[*at - 1] = row;
    return *at - 1;
}

static void add_edge(flow_builder *b, int row) {
    dataflow *d = b->to;
    arena_grow(b->arena, (void **)&d->edges, &d->edge_cap, d->edge_count, sizeof *d->edges);
    d->edges[d->edge_count++] = row;
}

/* ---- an occurrence ---- */

static void read_row(flow_builder *b, int row) {
    dataflow *d = b->to;
    dataflow_tensor *t = &d->tensors[row];
    const int now = d->occurrence_count;
    if (t->seen == now + 1) return;
    t->seen = now + 1;
    t->readers++;
    t->to = now;
    if (dataflow_is_alias(t)) d->tensors[t->source].to = now;
    add_edge(b, row);
    d->occurrences[now].reads++;
}

/* Of a stack of constants its first ones: a view that begins where it does. */
static int row_of_first(flow_builder *b, const cost_weight *found) {
    const int root = row_of(b, found->root, found->type);
    if (!found->first) return root;
    const int row = row_of(b, found->first, found->type);
    const tensor *t = found->first;
    view whole;
    if (b->to->tensors[row].source < 0 && view_whole(&whole, t)) {
        b->to->tensors[row].source = root;
        b->to->tensors[row].view = strides_of(b, &whole, t);
    }
    return row;
}

/* A constant is read as it is stored, with what it takes to unpack it. */
static void read_constant(flow_builder *b, const cost_weight *found) {
    const tensor *const more[] = {found->scales, found->zero_points};
    read_row(b, row_of_first(b, found));
    for (size_t k = 0; k < sizeof more / sizeof *more; k++)
        if (more[k]) read_row(b, row_of(b, more[k], type_of(b, more[k])));
}

/* What should have been made by now and is not: a joined work and another one that need each other. */
static bool is_there(const flow_builder *b, const tensor *t) {
    const unit *u = producer_of(b, t);
    if (!t->producer || b->row_of[t->place]) return true;
    if (!u || u->state != UNIT_DONE) return false;
    return is_loaded(u) || (u->root && (!u->root->producer || b->row_of[u->root->place]));
}

/* Of what is read in another order than it is stored in: all but weights are put in that order when a model is loaded.
 */
static bool is_put_in_order(const work *w, const cost_weight *found) {
    const op_kind kind = w->rec.kind;
    const bool weight = kind == OP_GEMM || kind == OP_CONV || kind == OP_RECURRENT;
    return !weight && !found->quantized && (found->transposed || found->rearranged);
}

static void read_any(flow_builder *b, const work *w, tensor *t) {
    cost_weight found;
    const unit *u = producer_of(b, t); /* of a constant too, where what makes it is not resolved */
    const bool stored = (!u || is_loaded(u)) && cost_trace(w, t, &found) && !is_put_in_order(w, &found);
    if (stored && is_there(b, found.root)) {
        read_constant(b, &found);
    } else if (is_there(b, t)) {
        read_row(b, row_of(b, t, type_of(b, t)));
    } else {
        b->to->occurrences[b->to->occurrence_count].cut = true;
    }
}

static void read_tensor(flow_builder *b, const work *w, tensor *t) {
    if (t && !cost_is_parameter(t)) read_any(b, w, t);
}

/* A dequantisation whose result several works take is in the nodes of one of them; each reads what it dequantises. */
static void read_input(flow_builder *b, const unit *u, tensor *t) {
    const node *passed = cost_passed(u->w, t);
    for (int i = 0; passed && i < passed->in_count; i++) read_tensor(b, u->w, passed->in[i]);
    if (!passed && !(t && t->producer && producer_of(b, t) == u)) read_tensor(b, u->w, t);
}

/* What is asked for its shape alone needs no data. */
static bool leaves(const flow_builder *b, const work *w, const tensor *t) {
    for (int k = 0; k < t->user_count; k++) {
        const unit *u = unit_of(b, t->users[k]);
        if (u && u->w != w && !is_loaded(u) && !cost_passed(u->w, t)) return true;
    }
    return t->is_graph_output;
}

static void make_tensor(flow_builder *b, const tensor *t, int begin) {
    dataflow *d = b->to;
    const int now = d->occurrence_count, row = row_of(b, t, type_of(b, t));
    d->tensors[row].producer = d->tensors[row].to = now;
    d->tensors[row].from = begin;
    add_edge(b, row);
    d->occurrences[now].makes++;
}

static void make_tensors(flow_builder *b, const work *w, int begin) {
    const dataflow_occurrence *o = &b->to->occurrences[b->to->occurrence_count];
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->out_count; i++) {
            const tensor *t = n->out[i];
            if (t && (w->node_count == 1 ? is_read(t) : leaves(b, w, t))) make_tensor(b, t, begin);
        }
    }
    const bool unread = o->makes == 0;
    for (int i = 0; unread && i < w->node->out_count; i++)
        if (w->node->out[i]) make_tensor(b, w->node->out[i], begin);
}

/* Of a move: each of its outputs as strides over what it moves. */
static void tell_views(flow_builder *b, const work *w) {
    dataflow *d = b->to;
    const tensor *in = cost_in(w, 0);
    if (w->rec.kind != OP_MOVE || w->node_count != 1 || !in || cost_known(in) || !b->row_of[in->place]) return;
    const int from = b->row_of[in->place] - 1;
    int64_t before = 0;
    for (int k = 0; k < w->node->out_count; k++) {
        const tensor *out = w->node->out[k];
        view v;
        const dataflow_strides *strides =
            view_whole(&v, in) && view_move(&v, w, k, &before) ? strides_of(b, &v, out) : NULL;
        if (!strides || !b->row_of[out->place]) continue;
        dataflow_tensor *row = &d->tensors[b->row_of[out->place] - 1];
        row->view = strides;
        row->source = dataflow_is_alias(&d->tensors[from]) ? d->tensors[from].source : from;
    }
}

/* ---- which of the operation's own tensors they are ---- */

enum { MOST_BETWEEN = 8 }; /* nodes of a joined work between its operator and a tensor that is read or made */

/* Past what dequantises or transposes within the work. */
static tensor *read_for(const flow_builder *b, const unit *u, tensor *t) {
    for (int k = 0; t && k < MOST_BETWEEN; k++) {
        const node *passed = cost_passed(u->w, t);
        if (!passed && producer_of(b, t) != u) return t;
        const node *n = passed ? passed : t->producer;
        const bool same = passed || graph_is(n, "DequantizeLinear") || graph_is(n, "Transpose");
        t = same && n->in_count > 0 ? n->in[0] : NULL;
    }
    return NULL;
}

static bool is_edge(const flow_builder *b, int row, bool made) {
    const dataflow_tensor *t = row >= 0 ? &b->to->tensors[row] : NULL;
    const int now = b->to->occurrence_count;
    return t && (made ? t->producer == now : t->seen == now + 1);
}

/* A constant lies as it is stored: transposed only where the record says it of the weight. */
static const tensor *stored_for(const unit *u, tensor *t) {
    cost_weight found;
    if (!cost_trace(u->w, t, &found) || is_put_in_order(u->w, &found)) return t;
    const bool told = u->w->rec.kind == OP_GEMM && found.root == u->w->weight;
    return found.rearranged || (found.transposed && !told) ? NULL : found.first ? found.first : found.root;
}

static int row_read(const flow_builder *b, const unit *u, const work_operand *o) {
    tensor *t = read_for(b, u, o->t);
    const unit *from = t ? producer_of(b, t) : NULL;
    const tensor *of = t && (!from || is_loaded(from)) ? stored_for(u, t) : t;
    const int row = of ? b->row_of[of->place] - 1 : -1;
    return is_edge(b, row, false) ? row : -1;
}

/* A short list of whole numbers that is no parameter: its elements are what is gathered, or added up. */
static void read_operands(flow_builder *b, const unit *u) {
    work_operand *operands;
    const int count = work_operands(u->w, &operands);
    for (int k = 0; k < count; k++) {
        tensor *t = operands[k].made ? NULL : read_for(b, u, operands[k].t);
        if (t && cost_is_parameter(t)) read_any(b, u->w, t);
    }
}

static int row_made(const flow_builder *b, const unit *u, const work_operand *o) {
    const tensor *t = o->t;
    for (int k = 0; t && k < MOST_BETWEEN; k++) {
        if (is_edge(b, b->row_of[t->place] - 1, true)) return b->row_of[t->place] - 1;
        const node *n = t->user_count == 1 ? t->users[0] : NULL;
        t = n && unit_of(b, n) == u && n->out_count > 0 ? n->out[0] : NULL;
    }
    return -1;
}

/* In dimensions that a run can broadcast. */
static bool is_broadcast(const tensor *t) {
    return t && cost_shaped(t) && t->info->rank <= FORMED_RANK && info_count(t->info) > 0;
}

/* A term that the work transposes is none: its elements lie otherwise. */
static void add_formed(flow_builder *b, const unit *u, const work_operand *o, int place) {
    dataflow *d = b->to;
    const work_formed *formed = u->w->beside ? u->w->beside->formed : NULL;
    if (!formed || o->t || strcmp(o->name, formed->name) != 0 || !is_broadcast(formed->like)) return;
    dataflow_formed row = {
        .occurrence = d->occurrence_count, .place = place, .what = formed->what, .like = formed->like->info};
    for (int k = 0; k < WORK_TERMS && formed->t[k]; k++, row.count++) {
        tensor *t = formed->t[k];
        row.tensors[k] = read_for(b, u, t) == t ? row_read(b, u, &(work_operand){o->name, t, false}) : -1;
        if (row.tensors[k] < 0 || !is_broadcast(t)) return;
        row.as[k] = t->info;
    }
    arena_grow(b->arena, (void **)&d->formed, &d->formed_cap, d->formed_count, sizeof *d->formed);
    d->formed[d->formed_count++] = row;
}

static void add_operands(flow_builder *b, const unit *u) {
    dataflow *d = b->to;
    dataflow_occurrence *o = &d->occurrences[d->occurrence_count];
    work_operand *operands;
    o->operands = (int)d->operand_count;
    o->operand_count = work_operands(u->w, &operands);
    if (o->operand_count > OPREC_MOST_OPERANDS) o->operand_count = 0;
    for (int k = 0; k < o->operand_count; k++) {
        arena_grow(b->arena, (void **)&d->operands, &d->operand_cap, d->operand_count, sizeof *d->operands);
        d->operands[d->operand_count++] =
            operands[k].made ? row_made(b, u, &operands[k]) : row_read(b, u, &operands[k]);
        add_formed(b, u, &operands[k], k);
    }
}

static bool is_cut(const work *w) {
    for (int k = 0; k < w->node_count; k++)
        if (w->nodes[k]->unresolved || w->nodes[k]->unknown) return true;
    return false;
}

static void read_bodies(flow_builder *b, const work *w, const node *n) {
    for (const capture *c = b->captured ? b->captured[n->id] : NULL; c; c = c->next) read_tensor(b, w, c->t);
    for (int k = 0; k < n->attr_count; k++) {
        const graph *g = n->attrs[k].kind == ATTR_GRAPH && runs(n->attrs[k].g) ? n->attrs[k].g : NULL;
        for (int i = 0; g && i < g->output_count; i++) read_tensor(b, w, g->outputs[i]);
    }
}

/* What a loop or a branch gives is there as soon as its body begins. */
static void add_occurrence(flow_builder *b, const unit *u, int begin) {
    dataflow *d = b->to;
    const work *w = u->w;
    d->occurrences[d->occurrence_count] = (dataflow_occurrence){
        .w = w, .place = u->place, .first_node = u->first_node, .edges = (int)d->edge_count, .cut = is_cut(w)};
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->in_count; i++) read_input(b, u, n->in[i]);
        if (graph_has_body(n)) read_bodies(b, w, n);
    }
    read_operands(b, u);
    make_tensors(b, w, w->free ? begin : d->occurrence_count);
    add_operands(b, u);
    tell_views(b, w);
    d->occurrence_of[w->node->id] = d->occurrence_count++;
}

/* ---- order ---- */

static void order_region(flow_builder *b, const graph *g);

/* What an alias lies in, and how: a reshape changes neither. */
static void tell_alias(flow_builder *b, unit *u) {
    const tensor *in = cost_in(u->w, 0);
    const unit *above = producer_of(b, in);
    const view *from = b->view_of[in->place];
    int64_t before = 0;
    u->root = above && above->root ? above->root : in;
    for (int k = 0; k < u->w->node->out_count; k++) {
        const tensor *out = cost_out(u->w, k);
        view v;
        if (!out) continue;
        if (!u->w->strided) {
            b->view_of[out->place] = from;
            continue;
        }
        if (from) v = *from;
        if ((!from && !view_whole(&v, in)) || !view_move(&v, u->w, k, &before)) continue;
        view *made = arena_alloc(b->arena, sizeof *made);
        *made = v;
        b->view_of[out->place] = made;
    }
}

static void finish_unit(flow_builder *b, unit *u) {
    const work *w = u->w;
    const int begin = b->to->occurrence_count;
    u->state = UNIT_DONE;
    if (is_loaded(u)) return;
    if (is_alias(u)) {
        tell_alias(b, u);
        return;
    }
    for (int k = 0; k < w->node_count; k++) {
        const node *n = w->nodes[k];
        for (int i = 0; i < n->attr_count; i++)
            if (n->attrs[i].kind == ATTR_GRAPH && runs(n->attrs[i].g)) order_region(b, n->attrs[i].g);
    }
    add_occurrence(b, u, begin);
}

/* One that waits already needs itself: read_tensor says so. */
static void push_unit(flow_builder *b, unit *u) {
    if (!u || u->state != UNIT_NEW) return;
    u->state = UNIT_WAITS;
    arena_grow(b->arena, (void **)&b->stack, &b->stack_cap, b->depth, sizeof *b->stack);
    b->stack[b->depth++] = (frame){.unit = (int)(u - b->units)};
}

static void push(flow_builder *b, const tensor *t, const graph *home) {
    if (t && t->producer && t->producer->home == home) push_unit(b, producer_of(b, t));
}

/* Puts the next thing that the unit on top needs on top of it; false: it has all. */
static bool push_need(flow_builder *b) {
    frame *f = &b->stack[b->depth - 1];
    const work *w = b->units[f->unit].w;
    if (f->node == w->node_count) return false;
    const node *n = w->nodes[f->node];
    if (f->in < n->in_count) {
        const node *passed = cost_passed(w, n->in[f->in]);
        const tensor *in = passed ? passed->in[f->passed++] : n->in[f->in];
        if (!passed || f->passed == passed->in_count) f->in++, f->passed = 0;
        push(b, in, n->home);
        return true;
    }
    if (f->in++ == n->in_count) f->captured = b->captured ? b->captured[n->id] : NULL;
    if (f->captured) {
        const capture *c = f->captured;
        f->captured = c->next; /* the frame moves when the stack grows */
        push(b, c->t, n->home);
        return true;
    }
    f->node++;
    f->in = 0;
    return true;
}

/* Recursion: bodies, which are nested no deeper than the reader allows. */
static void order_region(flow_builder *b, const graph *g) {
    b->begins[g->place] = b->to->occurrence_count;
    for (int k = 0; k < g->node_count; k++) {
        const size_t base = b->depth;
        push_unit(b, unit_of(b, g->nodes[k]));
        while (b->depth > base) {
            if (push_need(b)) continue;
            finish_unit(b, &b->units[b->stack[b->depth - 1].unit]);
            b->depth--;
        }
    }
}

/* ---- memory ---- */

static void keep_outputs(flow_builder *b) {
    const graph *g = b->catalog->model->main;
    dataflow *d = b->to;
    d->unmade = arena_array(b->catalog->arena, const tensor *, g->output_count);
    for (int k = 0; k < g->output_count; k++) {
        const tensor *t = g->outputs[k];
        if (!t) continue;
        const bool there = is_there(b, t);
        if (!there || kind_of(b, t) != DATAFLOW_OUTPUT) d->unmade[d->unmade_count++] = t;
        if (!there) continue;
        dataflow_tensor *row = &d->tensors[row_of(b, t, type_of(b, t))];
        row->to = d->occurrence_count - 1;
        if (dataflow_is_alias(row)) d->tensors[row->source].to = row->to;
    }
}

/* Tables of parts, and what parts compute of constants: no program finds it in the model, or computes it by that. */
static void assume_made(dataflow *d) {
    for (int k = 0; k < d->tensor_count; k++) {
        dataflow_tensor *const row = &d->tensors[k];
        const tensor *const t = row->t;
        const bool told = t->info->val || dataflow_is_alias(row) || (t->producer && !t->producer->made);
        if (row->kind == DATAFLOW_CONSTANT && t->source == TENSOR_NODE && !t->blob && !told)
            row->kind = DATAFLOW_ASSUMED;
    }
}

static int64_t row_bytes(const dataflow_tensor *t) {
    const info *i = t->t->info;
    const bool sized = i->form == INFO_TENSOR && i->rank >= 0 && dtype_get((dtype)t->type)->bits > 0;
    return sized ? dtype_bytes((dtype)t->type, info_count(i)) : -1;
}

static void add_memory(flow_builder *b) {
    dataflow *d = b->to;
    liveness l;
    liveness_begin(&l, b->arena, d->occurrence_count);
    for (int k = 0; k < d->tensor_count; k++) {
        const dataflow_tensor *t = &d->tensors[k];
        const int64_t bytes = row_bytes(t);
        if (dataflow_is_alias(t)) continue;
        d->unsized += bytes < 0;
        if (bytes < 0) continue;
        if (t->kind == DATAFLOW_WEIGHT || t->kind == DATAFLOW_CONSTANT)
            d->weight_bytes = checked_add(d->weight_bytes, bytes);
        else
            liveness_add(&l, bytes, t->from, t->to);
    }
    d->activation_bytes = liveness_peak(&l, &d->peak);
}

const dataflow *dataflow_build(const catalog *c) {
    const model *m = c->model;
    flow_builder b = {.catalog = c, .arena = c->arena};
    b.to = arena_zalloc(c->arena, sizeof *b.to);
    list_units(&b);
    find_captures(&b);
    b.row_of = arena_array(c->arena, int, m->tensor_count);
    b.view_of = arena_array(c->arena, const view *, m->tensor_count);
    b.begins = arena_array(c->arena, int, m->graph_count);
    b.to->tensors = arena_array(c->arena, dataflow_tensor, m->tensor_count);
    b.to->occurrences = arena_array(c->arena, dataflow_occurrence, b.unit_count);
    b.to->occurrence_of = arena_array(c->arena, int, m->node_count);
    for (int k = 0; k < m->main->input_count; k++) row_of(&b, m->main->inputs[k], type_of(&b, m->main->inputs[k]));
    order_region(&b, m->main);
    keep_outputs(&b);
    assume_made(b.to);
    add_memory(&b);
    return b.to;
}
