/* Attention spelled out: the scores' walk and both products' dimensions (match_scores.c), queries, keys
 * and values followed upward, how they lie (match_heads.c) and the mask's kind (mask.c) become one record. A tensor
 * that is also used elsewhere keeps its maker out, and where that is a product or the
 * softmax itself (attention weights that are an output), nothing is joined. */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "extract/mask/mask_eval.h"
#include "extract/match/match_flow.h"
#include "extract/match/match_heads.h"
#include "extract/match/match_scores.h"
#include "extract/ops/cost.h"

#include <string.h>

/* What a mask's kind means for an attention: for one that is a single node with a mask for an input (the operator says
 * that there is a mask, its values say of what kind), and for the bytes that have to be read. */

typedef struct attention_mask {
    mask_verdict verdict; /* of all terms together */
    const mask_term *terms;
    int term_count;
    int64_t q_len, kv_len;
} attention_mask;

static int64_t stored_bytes(const work *w, tensor *t) {
    cost_weight found;
    return t->is_constant && t->producer && cost_trace(w, t, &found) ? found.bytes : cost_bytes(w, t);
}

static bool is_own(const work *w, const node *n) {
    for (int k = 0; k < w->node_count; k++) {
        if (w->nodes[k] == n) return true;
    }
    return false;
}

/* What of a mask tensor need not be read. A padding that a causal mask is put together with is one row per sequence. */
static int64_t spared_of(match *m, const work *w, const mask_term *term, const attention_mask *a, tensor *t) {
    int64_t all = stored_bytes(w, t);
    if (strcmp(a->verdict.kind, "causal+padding") != 0) return all;
    const char *own = mask_classify(&m->masks, m->model, term, 1, a->q_len, a->kv_len).kind;
    if (strcmp(own, "none") == 0 || strcmp(own, "causal") == 0) return all;
    bool by_query = a->q_len > 0 && flow_dim(t, term->turned ? -1 : -2) == a->q_len;
    return by_query ? all - all / a->q_len : 0;
}

/* Takes out of w's bytes_read, which counts every tensor that comes from outside, what a kernel that knows the kind of
 * the mask does not read: all of a causal one, all but the lengths themselves of one made from lengths. */
static void attention_mask_spare(match *m, work *w, const attention_mask *a) {
    const tensor *seen[MASK_MAX_TERMS];
    int64_t spared = 0;
    int count = 0;
    if (strcmp(a->verdict.kind, "additive") == 0) return;
    for (int k = 0; k < a->term_count; k++) {
        tensor *t = a->terms[k].t;
        /* a mask that the attention chooses from two scalars by itself: what it is chosen by is read */
        if (t->producer && is_own(w, t->producer)) t = flow_in(t->producer, 0);
        bool again = !t || (t->producer && is_own(w, t->producer));
        for (int i = 0; i < count; i++) again = again || seen[i] == t;
        if (again) continue;
        seen[count++] = t;
        spared = checked_add(spared, spared_of(m, w, &a->terms[k], a, t));
    }
    w->rec.bytes_read = spared < w->rec.bytes_read ? w->rec.bytes_read - spared : 0;
    if (a->verdict.lengths) w->rec.bytes_read = checked_add(w->rec.bytes_read, cost_bytes(w, a->verdict.lengths));
}

/* What the operator says beside its mask stays. */
static void keep_fields(oprec *to, const oprec *before) {
    to->layout = before->layout;
    for (int k = 0; k < before->field_count; k++) {
        const opfield *f = &before->fields[k];
        if (oprec_field(to, f->name) || strcmp(f->name, "mask_shape") == 0) continue;
        if (f->kind == OPFIELD_INT) oprec_set_int(to, f->name, f->i);
        if (f->kind == OPFIELD_TEXT) oprec_set_text(to, f->name, f->text);
        if (f->kind == OPFIELD_REAL) oprec_set_real(to, f->name, f->real);
    }
}

bool match_attention_mask(match *m, node *n) {
    work *w = work_of(m->list, n);
    tensor *mask = flow_in(n, 3);
    if (!w || w->owner || w->rec.kind != OP_ATTENTION || w->rec.rank != 4 || n->domain[0] || !mask) return false;
    if (!w->rec.mask || strcmp(w->rec.mask, "additive") != 0) return false;
    mask_term term = {.t = mask, .form = mask->info->type == DTYPE_BOOL ? MASK_KEEP : MASK_ADD};
    int64_t q_len = w->rec.shape[2], kv_len = oprec_int(&w->rec, "kv_len", q_len);
    mask_verdict v = mask_classify(&m->masks, m->model, &term, 1, q_len, kv_len);
    if (strcmp(v.kind, "additive") == 0) return false;
    const opfield *scale = oprec_field(&w->rec, "scale"), *softcap = oprec_field(&w->rec, "softcap");
    cost_attention a = {
        .batch = w->rec.shape[0],
        .heads = w->rec.shape[1],
        .q_len = q_len,
        .head = w->rec.shape[3],
        .kv_heads = oprec_int(&w->rec, "kv_heads", 0),
        .kv_len = kv_len,
        .v_head = oprec_int(&w->rec, "v_head", 0),
        .past = -1,
        .mask = v.kind,
        .scale = scale && scale->kind == OPFIELD_REAL ? scale->real : 0,
        .window = v.window,
        .softcap = softcap && softcap->kind == OPFIELD_REAL ? softcap->real : 0,
    };
    oprec before = w->rec;
    memset(&w->rec, 0, sizeof w->rec);
    w->rec.type = before.type;
    w->rec.out_type = before.out_type;
    w->rec.bytes_read = before.bytes_read;
    w->rec.bytes_written = before.bytes_written;
    cost_set_attention(w, &a);
    keep_fields(&w->rec, &before);
    attention_mask_spare(m, w, &(attention_mask){v, &term, 1, q_len, kv_len});
    return true;
}

/* Follows queries, keys and values upward. Heads that a model repeats for its library's sake (Expand, Tile, Concat with
 * itself, Gather) are no work that an attention has to do, so they are seen through and counted once. */

typedef struct heads_side {
    double scale; /* product of the scalars met */
    bool scale_known;
    int64_t repeat; /* how often each head of the source is used */
    heads_path path;
} heads_side;

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

/* Views below a transpose: what the transpose makes may have strides where they have none, as of batch and heads in one
 * dimension. `inner`: nodes of the chain that nothing else reads. */
static void keep_views(heads_walk *w, int inner) {
    int views = w->keep;
    while (views < inner && flow_reshapes(w->chain[views])) views++;
    if (views < inner && graph_is(w->chain[views], "Transpose")) w->keep = views;
}

/* Follows t upward and adds to `set` what belongs to the attention: scaling by a scalar, a transpose that turns the
 * matrix (where `turn`: the product needs it turned), repeats of heads with the views around them. Head splits and
 * merges stay outside, and so does everything that is used elsewhere too. */
static void heads_trace(match *m, tensor *t, bool turn, bool scaled, flow_set *set, heads_side *side) {
    heads_walk w = {.m = m, .turn = turn, .scaled = scaled, .side = side};
    flow_set inside = *set;
    bool apart = false; /* met something used elsewhere: what is above stays outside */
    int inner = 0;      /* nodes of the chain before that */
    *side = (heads_side){.scale = 1, .scale_known = true, .repeat = 1, .path = {.end = t}};
    while (t && t->producer && t->producer_slot == 0 && w.length < HEADS_MAX_STEPS) {
        node *n = t->producer;
        bool keep;
        if (!apart && !flow_closed(&inside, t)) apart = true;
        if (apart) w.scaled = w.turn = false;
        bool view = is_view_of_repeat(&w, n);
        tensor *up = heads_step(&w, n, &keep);
        if (!up) break;
        w.chain[w.length++] = n;
        if (!apart) inner = w.length;
        flow_add(&inside, n);
        if ((keep || view) && !apart) w.keep = w.length;
        t = up;
    }
    keep_views(&w, inner);
    for (int k = 0; k < w.keep; k++) flow_add(set, w.chain[k]);
    memcpy(side->path.nodes, w.chain, (size_t)w.keep * sizeof *w.chain);
    side->path.own = side->path.count = w.keep;
}

/* Batch of a three-dimensional attention [batch * heads, length, head], found where the reshape before t (or after)
 * says it; 0 where nothing says it. `merged` is batch * heads. */
static int64_t heads_batch_before(tensor *t, int64_t merged, int64_t head) {
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

static int64_t heads_batch_after(const tensor *t, int64_t merged) {
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

/* Where the scores are [batch * heads, q, k], the reshapes around say how many of either. */
static void split_merged(const scores *s, const product_sides *first, const product_sides *last, int64_t *batch,
                         int64_t *heads) {
    int64_t merged = first->batch;
    *batch = heads_batch_before(first->left, merged, first->inner);
    if (*batch < 1) *batch = heads_batch_before(first->right, merged, first->inner);
    if (*batch < 1) *batch = heads_batch_before(last->right, merged, last->cols);
    if (*batch < 1) *batch = heads_batch_after(flow_out(s->last, 0), merged);
    /* nothing splits it: one head, and the dimension is the batch */
    if (*batch < 1) *batch = merged;
    *heads = *batch > 0 ? merged / *batch : 0;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Heads of keys and values: what either side says, less what is repeated on the way. */
static int64_t kv_heads_of(int64_t heads, const product_sides *first, const product_sides *last, const heads_side *k,
                           const heads_side *v) {
    int64_t by_k = first->kv_heads > 0 ? first->kv_heads : heads, by_v = last->kv_heads > 0 ? last->kv_heads : heads;
    if (k->repeat > 1 && by_k % k->repeat == 0) by_k /= k->repeat;
    if (v->repeat > 1 && by_v % v->repeat == 0) by_v /= v->repeat;
    int64_t kv = by_k > by_v ? by_k : by_v;
    return kv > 0 && heads % kv == 0 ? kv : heads;
}

/* The shape that the mask broadcasts with: that of its only term, or of all together where there are several. Of scores
 * [batch * heads, q, k] a term has both in one dimension, and they are told apart here. */
static int mask_shape(const scores *s, int64_t batch, int64_t heads, int64_t *dims) {
    int rank = 0;
    for (int k = 0; k < s->term_count; k++) {
        const tensor *t = s->terms[k].t;
        const int r = flow_rank(t);
        if (r < 0 || r > MASK_EVAL_MAX_RANK) return 0;
        int64_t own[MASK_EVAL_MAX_RANK + 1];
        const bool merged = r == 3 && batch > 1 && t->info->dims[0] == checked_mul(batch, heads);
        const int all = r + merged;
        memcpy(own + merged, t->info->dims, (size_t)r * sizeof *own);
        if (merged) own[0] = batch, own[1] = heads;
        for (; rank < all; rank++) {
            memmove(dims + 1, dims, (size_t)rank * sizeof *dims);
            dims[0] = 1;
        }
        for (int i = 0; i < all; i++) {
            int64_t *d = &dims[rank - all + i];
            if (own[i] > *d) *d = own[i];
        }
    }
    return rank;
}

/* In decoding, exporters put the heads that share keys and values where the query's length stands: [batch, heads, 1,
 * head] reshaped to [batch, kv_heads, heads / kv_heads, head]. It is still one query for each head, where all of them
 * have the same mask. */
static bool is_folded(tensor *t, int64_t heads, int64_t rows, bool masked, int64_t mask_rows) {
    if (rows < 2 || heads < 1 || (masked && mask_rows > 1)) return false;
    for (int step = 0; t && t->producer && step < HEADS_MAX_STEPS; step++) {
        const node *n = t->producer;
        int slot = 0;
        tensor *in = flow_in(n, 0);
        if (graph_is(n, "Reshape"))
            return flow_rank(in) == 4 && flow_rank(t) == 4 && flow_dim(in, 0) == flow_dim(t, 0) &&
                   flow_dim(in, 2) == 1 && flow_dim(in, 1) == checked_mul(heads, rows);
        if (graph_is(n, "Mul") || graph_is(n, "Div"))
            in = flow_operand(n, &slot);
        else if (!flow_renames(n))
            in = NULL;
        t = in;
    }
    return false;
}

typedef struct attention_sides {
    product_sides first, last;
    heads_side q, k, v;
    mask_verdict mask;
    int64_t mask_dims[MASK_EVAL_MAX_RANK];
    cost_attention cost;
    heads_lie lies[HEADS_SIDES];
} attention_sides;

static bool find_sides(match *m, scores *s, attention_sides *a) {
    if (!product_scores(s->first, s->first_turned, &a->first)) return false;
    if (!product_values(s->last, s->probs, s->probs_turned, &a->last)) return false;
    if (a->first.cols != a->last.inner || a->first.rows != a->last.rows) return false;
    if (a->first.rows < 1 || a->first.cols < 1 || a->first.inner < 1 || a->last.cols < 1) return false;
    flow_add(&s->set, s->last);
    heads_trace(m, a->first.left, false, true, &s->set, &a->q);
    heads_trace(m, a->first.right, !a->first.right_turned, true, &s->set, &a->k);
    heads_trace(m, a->last.right, a->last.right_turned, false, &s->set, &a->v);
    return true;
}

static void find_cost(match *m, const scores *s, attention_sides *a) {
    int64_t batch = a->first.batch, heads = a->first.heads;
    if (heads < 0) split_merged(s, &a->first, &a->last, &batch, &heads);
    a->mask = mask_classify(&m->masks, m->model, s->terms, s->term_count, a->first.rows, a->first.cols);
    bool known = s->scale_known && a->q.scale_known && a->k.scale_known;
    double scale = s->scale * a->q.scale * a->k.scale * a->first.alpha * (s->softcap != 0 ? s->softcap : 1);
    cost_attention *c = &a->cost;
    *c = (cost_attention){
        .batch = batch,
        .heads = heads,
        .q_len = a->first.rows,
        .head = a->first.inner,
        .kv_heads = kv_heads_of(heads, &a->first, &a->last, &a->k, &a->v),
        .kv_len = a->first.cols,
        .v_head = a->last.cols,
        .past = -1,
        .mask = a->mask.kind,
        .scale = known ? scale : 0,
        .window = min64(a->mask.window, a->first.cols),
        .softcap = s->softcap,
    };
    c->mask_rank = strcmp(a->mask.kind, "additive") == 0 ? mask_shape(s, batch, heads, a->mask_dims) : 0;
    c->mask_dims = a->mask_dims;
    const bool plain = strcmp(a->mask.kind, "none") == 0, additive = c->mask_rank > 0;
    if (a->first.heads > 0 && (plain || additive) &&
        is_folded(a->first.left, heads, c->q_len, additive, c->mask_rank > 1 ? a->mask_dims[c->mask_rank - 2] : 1)) {
        c->heads = checked_mul(heads, c->q_len);
        c->q_len = 1;
    }
}

/* What its products read and make, in its own dimensions. Letters would have to be followed one by one. */
static void find_lies(const scores *s, attention_sides *a) {
    const cost_attention *c = &a->cost;
    const int64_t q[4] = {c->batch, c->heads, c->q_len, c->head}, k[4] = {c->batch, c->kv_heads, c->kv_len, c->head},
                  v[4] = {c->batch, c->kv_heads, c->kv_len, c->v_head},
                  out[4] = {c->batch, c->heads, c->q_len, c->v_head};
    for (int side = 0; side < HEADS_SIDES; side++) a->lies[side] = (heads_lie){.told = false};
    a->lies[HEADS_Q].path = a->q.path, a->lies[HEADS_K].path = a->k.path, a->lies[HEADS_V].path = a->v.path;
    a->lies[HEADS_OUT].path.end = flow_out(s->last, 0);
    if (a->first.by_letters || a->last.by_letters) return;
    heads_lie_set(&a->lies[HEADS_Q], q, 1, a->first.left_turned);
    heads_lie_set(&a->lies[HEADS_K], k, a->k.repeat, !a->first.right_turned);
    heads_lie_set(&a->lies[HEADS_V], v, a->v.repeat, a->last.right_turned);
    heads_lie_set(&a->lies[HEADS_OUT], out, 1, a->last.exchanged);
}

/* Whether a term is added where scores stand as the operation has them, [batch, heads, queries, keys], or with heads
 * still in the batch, or with the batch split, as of the windows of a Swin transformer. Of other views a dimension as
 * large as one of these may be another one. */
static bool stands_in_place(const mask_term *term, const cost_attention *c) {
    const tensor *t = term->scores;
    const int rank = flow_rank(t);
    if (rank < 3 || rank > 5 || flow_dim(t, -2) != c->q_len || flow_dim(t, -1) != c->kv_len) return false;
    if (rank == 3) return flow_dim(t, 0) == checked_mul(c->batch, c->heads) && flow_rank(term->t) == 3;
    const int64_t batch = rank == 4 ? flow_dim(t, 0) : checked_mul(flow_dim(t, 0), flow_dim(t, 1));
    return flow_dim(t, -3) == c->heads && batch == c->batch;
}

/* What the attention takes into itself: Where of a condition and two scalars. */
static bool chosen_mask(const work *w, const mask_term *term, work_formed *to) {
    const node *n = term->t->producer;
    if (!n || !graph_is(n, "Where") || !is_own(w, n) || n->in_count != 3 || !n->in[0]) return false;
    if (!n->in[1] || !n->in[2] || !flow_is_scalar(n->in[1]) || !flow_is_scalar(n->in[2])) return false;
    *to = (work_formed){"mask", "where", to->like, {n->in[0], n->in[1], n->in[2]}};
    return true;
}

/* The view of the scores that all terms can be broadcast to: where the batch is split, if it is for one of them, and
 * the same for all sequences of the others. NULL: there is none. */
static const tensor *common_view(const scores *s) {
    const tensor *view = s->terms[0].scores;
    for (int k = 1; k < s->term_count; k++)
        if (flow_rank(s->terms[k].scores) > flow_rank(view)) view = s->terms[k].scores;
    for (int k = 0; k < s->term_count; k++) {
        const mask_term *term = &s->terms[k];
        const bool alike = flow_rank(term->t) < 4 || flow_dim(term->t, 0) == 1;
        if (!flow_same_shape(term->scores, view) && (flow_rank(term->scores) != 4 || !alike)) return NULL;
    }
    return flow_rank(view) > 3 ? view : NULL;
}

/* All that is added to the scores. */
static void tell_mask(work *w, const scores *s, const attention_sides *a) {
    const bool kept = strcmp(a->mask.kind, "causal+padding") == 0 || strcmp(a->mask.kind, "additive") == 0;
    const mask_term *first = s->terms;
    const int count = s->term_count;
    bool added = count > 0 && s->added_last;
    for (int k = 0; k < count; k++)
        added = added && s->terms[k].form == MASK_ADD && !s->terms[k].turned && stands_in_place(&s->terms[k], &a->cost);
    const tensor *view = added && kept ? common_view(s) : NULL;
    work_formed formed = {"mask", "add", view, {count > 0 ? first->t : NULL, count == 2 ? s->terms[1].t : NULL}};
    if (view && (count == 1 ? chosen_mask(w, first, &formed) : count == 2))
        work_tell_formed(w, &formed);
    else
        heads_tell_mask(w, added && count == 1 ? first->t : NULL);
}

bool match_attention(match *m, node *softmax) {
    scores s;
    attention_sides a;
    const work *found = work_top(work_of(m->list, softmax));
    if (!found || found->rec.kind != OP_SOFTMAX || found->node != softmax) return false;
    if (!scores_find(m, softmax, &s) || !find_sides(m, &s, &a)) return false;
    find_cost(m, &s, &a);
    find_lies(&s, &a);
    node *last = heads_follow(m, &a.lies[HEADS_OUT], &s.set);
    work *w = flow_join(m, &s.set, last);
    if (!w) return false;
    memset(&w->rec, 0, sizeof w->rec);
    cost_set_types(w, a.first.left, flow_out(s.last, 0));
    cost_set_attention(w, &a.cost);
    cost_boundary(w);
    attention_mask_spare(m, w, &(attention_mask){a.mask, s.terms, s.term_count, a.first.rows, a.first.cols});
    heads_tell(m, w, a.lies);
    if (a.cost.scale == 0) work_tell_unknown(w, "scale");
    tell_mask(w, &s, &a);
    return true;
}
