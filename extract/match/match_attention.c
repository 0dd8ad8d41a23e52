/* Attention spelled out: the scores' walk (match_scores.c), both products' dimensions (match_product.c), queries, keys
 * and values followed upward (match_heads.c) and the mask's kind (mask.c) become one record. Head splits and merges
 * stay works of their own; a tensor that is also used elsewhere keeps its maker out, and where that is a product or the
 * softmax itself (attention weights that are an output), nothing is joined. */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "extract/mask/mask_eval.h"
#include "extract/match/match_attention_mask.h"
#include "extract/match/match_heads.h"
#include "extract/match/match_scores.h"
#include "extract/ops/cost.h"

#include <string.h>

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

/* The shape that the mask broadcasts with: that of its only term, or of all together where there are several. */
static int mask_shape(const scores *s, int64_t *dims) {
    int rank = 0;
    for (int k = 0; k < s->term_count; k++) {
        const tensor *t = s->terms[k].t;
        int r = flow_rank(t);
        if (r < 0 || r > MASK_EVAL_MAX_RANK) return 0;
        for (; rank < r; rank++) {
            memmove(dims + 1, dims, (size_t)rank * sizeof *dims);
            dims[0] = 1;
        }
        for (int i = 0; i < r; i++) {
            int64_t *d = &dims[rank - r + i], own = t->info->dims[i];
            if (own > *d) *d = own;
        }
    }
    return rank;
}

typedef struct attention_sides {
    product_sides first, last;
    heads_side q, k, v;
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

static void fill(match *m, work *w, const scores *s, const attention_sides *a) {
    int64_t dims[MASK_EVAL_MAX_RANK], batch = a->first.batch, heads = a->first.heads;
    if (heads < 0) split_merged(s, &a->first, &a->last, &batch, &heads);
    mask_verdict mask = mask_classify(&m->masks, m->model, s->terms, s->term_count, a->first.rows, a->first.cols);
    bool known = s->scale_known && a->q.scale_known && a->k.scale_known;
    double scale = s->scale * a->q.scale * a->k.scale * a->first.alpha * (s->softcap != 0 ? s->softcap : 1);
    cost_attention c = {
        .batch = batch,
        .heads = heads,
        .q_len = a->first.rows,
        .head = a->first.inner,
        .kv_heads = kv_heads_of(heads, &a->first, &a->last, &a->k, &a->v),
        .kv_len = a->first.cols,
        .v_head = a->last.cols,
        .past = -1,
        .mask = mask.kind,
        .scale = known ? scale : 0,
        .window = min64(mask.window, a->first.cols),
        .softcap = s->softcap,
    };
    c.mask_rank = strcmp(mask.kind, "additive") == 0 ? mask_shape(s, dims) : 0;
    c.mask_dims = dims;
    memset(&w->rec, 0, sizeof w->rec);
    cost_set_attention(w, &c);
    cost_set_types(w, a->first.left, flow_out(s->last, 0));
    cost_boundary(w);
    attention_mask_spare(m, w, &(attention_mask){mask, s->terms, s->term_count, a->first.rows, a->first.cols});
}

bool match_attention(match *m, node *softmax) {
    scores s;
    attention_sides a;
    const work *found = work_top(work_of(m->list, softmax));
    if (!found || found->rec.kind != OP_SOFTMAX || found->node != softmax) return false;
    if (!scores_find(m, softmax, &s) || !find_sides(m, &s, &a)) return false;
    work *w = flow_join(m, &s.set, s.last);
    if (!w) return false;
    fill(m, w, &s, &a);
    return true;
}
