/* What a mask's kind means for an attention: for one that is a single node with a mask for an input (the operator says
 * that there is a mask, its values say of what kind), and for the bytes that have to be read. */
#include "extract/match/match_attention_mask.h"

#include "common/checked.h"
#include "extract/match/match_patterns.h"
#include "extract/ops/cost.h"

#include <string.h>

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

void attention_mask_spare(match *m, work *w, const attention_mask *a) {
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
