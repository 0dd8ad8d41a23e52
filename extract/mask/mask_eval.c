/* Pulls single elements out of the part of a graph that makes a mask. Bounded in depth and in steps, so that a graph
 * that doubles back on itself ends as "not known" instead of running long. */
#include "extract/mask/mask_eval.h"

#include "extract/read/constants.h"
#include "extract/read/model_file.h"

int mask_eval_rank(const tensor *t) {
    if (!t || !info_shaped(t->info) || t->info->rank > MASK_EVAL_MAX_RANK) return -1;
    return t->info->rank;
}

void mask_eval_split(const tensor *t, int64_t index, int64_t *pos) {
    for (int k = t->info->rank - 1; k >= 0; k--) {
        int64_t dim = t->info->dims[k] > 0 ? t->info->dims[k] : 1;
        pos[k] = index % dim;
        index /= dim;
    }
}

int64_t mask_eval_index(const tensor *t, const int64_t *pos) {
    int64_t index = 0;
    for (int k = 0; k < t->info->rank; k++) index = index * t->info->dims[k] + pos[k];
    return index;
}

int64_t mask_eval_broadcast(const tensor *from, const tensor *to, int64_t index) {
    int64_t pos[MASK_EVAL_MAX_RANK] = {0}, at[MASK_EVAL_MAX_RANK] = {0};
    int lead = to->info->rank - from->info->rank;
    mask_eval_split(to, index, pos);
    for (int k = 0; k < from->info->rank; k++) {
        int64_t p = k + lead >= 0 ? pos[k + lead] : 0;
        at[k] = p < from->info->dims[k] ? p : 0;
    }
    return mask_eval_index(from, at);
}

/* One element where it lies in the mapped file, so that a large buffer is not decoded for the few that are asked for.
 */
static bool mapped_element(const mask_eval *e, const tensor *t, int64_t index, double *x) {
    const constant *c = (const constant *)(const void *)t->blob;
    if (!c->blob.raw || c->blob.why_unreachable || c->external || c->values) return false;
    const dtype_info *type = dtype_get(t->info->type);
    const uint8_t *bytes = e->m->file->base + c->blob.offset;
    if (dtype_bytes(t->info->type, index + 1) > c->blob.length) return false;
    if (type->cls == DTYPE_CLASS_FLOAT) return constants_float(t->info->type, bytes, index, x);
    int64_t whole;
    if (!constants_int(t->info->type, bytes, index, &whole)) return false;
    *x = (double)whole;
    return true;
}

static const value *constant_values(mask_eval *e, const tensor *t) {
    for (int k = 0; k < e->read_count; k++) {
        if (e->read[k] == t) return e->values[k];
    }
    if (e->read_count == MASK_EVAL_CONSTANTS) return NULL;
    const value *v = read_values(e->m, t, MASK_EVAL_MAX_CONSTANT - e->read_elements);
    if (v) e->read_elements += v->n;
    e->read[e->read_count] = t;
    e->values[e->read_count++] = v;
    return v;
}

const int64_t *mask_eval_ints(mask_eval *e, const tensor *t, int64_t *n) {
    if (!t || t->info->form != INFO_TENSOR || info_count(t->info) > INFO_MAX_VALUES) return NULL;
    const value *v = t->info->val;
    if (!v && t->blob) v = constant_values(e, t);
    if (!v || !v->i) return NULL;
    *n = v->n;
    return v->i;
}

static bool input_value(mask_eval *e, const tensor *t, mask_number *out) {
    const dtype_info *type = dtype_get(t->info->type);
    if (type->cls != DTYPE_CLASS_INT && type->cls != DTYPE_CLASS_FLOAT) return false;
    out->x = type->cls == DTYPE_CLASS_INT ? e->int_input : e->float_input;
    out->depends = true;
    if (!e->asked) e->asked = t;
    if (e->asked != t) e->asked_several = true;
    return true;
}

bool mask_eval_at(mask_eval *e, const tensor *t, int64_t index, int depth, mask_number *out) {
    if (!t || depth > MASK_EVAL_MAX_DEPTH || --e->steps < 0 || mask_eval_rank(t) < 0) return false;
    if (index < 0 || index >= info_count(t->info)) return false;
    const value *v = t->info->val;
    out->depends = false;
    if (!v && t->blob && mapped_element(e, t, index, &out->x)) return true;
    if (!v && t->blob) v = constant_values(e, t);
    if (v) {
        if (index >= v->n) return false;
        *out = (mask_number){.x = value_at(v, index), .depends = false};
        return true;
    }
    if (!t->producer) return t->source == TENSOR_INITIALIZER ? false : input_value(e, t, out);
    if (t->producer->domain[0] || (t->producer_slot != 0 && !graph_is(t->producer, "Split"))) return false;
    mask_eval_fn *fn = mask_move_find(t->producer->op_type);
    if (!fn) fn = mask_number_find(t->producer->op_type);
    return fn && fn(e, t->producer, t, index, depth + 1, out);
}
