/* Attention as one node with a mask for an input: the operator says that there is a mask, its values say of what kind.
 */
#include "extract/ops/match_patterns.h"

#include "extract/ops/cost.h"

#include <string.h>

bool match_attention_mask(match *m, node *n) {
    work *w = work_of(m->list, n);
    const tensor *mask = flow_in(n, 3);
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
        .scale = scale ? scale->real : 0,
        .window = v.window,
        .softcap = softcap ? softcap->real : 0,
    };
    oprec before = w->rec;
    memset(&w->rec, 0, sizeof w->rec);
    w->rec.type = before.type;
    w->rec.out_type = before.out_type;
    w->rec.bytes_read = before.bytes_read;
    w->rec.bytes_written = before.bytes_written;
    cost_set_attention(w, &a);
    return true;
}
