/* Attention by its tensors. How they lie is told as extract_ops tells it: by a layout where all lie as is usual for
 * it, and of each that does not by a layout or strides of its own. */
#include "runtime/runtime_front.h"

#include <math.h>
#include <string.h>

enum { Q, K, V, OUT, MASK, LENGTHS };

static const char *const layouts[] = {"bhsd", "bshd"};

/* ---- how a tensor lies ---- */

/* Of dimensions of size 1 it makes no difference: they get what is customary, as far as all others reach. */
static void settle(const scout_run_tensor *t, int64_t *strides) {
    int64_t reach = t->dims[3];
    for (int d = 0; d < 3; d++) {
        const int64_t end = t->dims[d] > 1 ? t->dims[d] * strides[d] : 0;
        if (end > reach) reach = end;
    }
    for (int d = 0; d < 3; d++)
        if (t->dims[d] == 1) strides[d] = reach;
}

static bool lies(const scout_run_tensor *t, const int64_t *strides, const char *layout) {
    const int64_t heads = t->dims[1], rows = t->dims[2], size = t->dims[3];
    int64_t usual[3] = {heads * rows * size, rows * size, size};
    if (strcmp(layout, layouts[1]) == 0) usual[1] = size, usual[2] = heads * size;
    settle(t, usual);
    return memcmp(usual, strides, sizeof usual) == 0;
}

static void tell(oprec *rec, arena *a, const scout_run_tensor *t, const char *field, const char *usual) {
    int64_t strides[3] = {t->strides[0], t->strides[1], t->strides[2]};
    settle(t, strides);
    if (lies(t, strides, usual)) return;
    for (int k = 0; k < 2; k++) {
        if (!lies(t, strides, layouts[k])) continue;
        oprec_set_text(rec, field, layouts[k]);
        return;
    }
    oprec_set_ints(rec, a, field, 3, strides);
}

static void set_layouts(const runtime_call *call, arena *a, oprec *rec) {
    static const char *const fields[] = {"q_layout", "k_layout", "v_layout", "out_layout"};
    const scout_run_tensor *out = call->tensors[OUT];
    int64_t strides[3] = {out->strides[0], out->strides[1], out->strides[2]};
    settle(out, strides);
    const bool inside = !lies(out, strides, layouts[0]) && lies(out, strides, layouts[1]);
    const bool cache = call->tensors[K]->dims[2] != out->dims[2];
    if (inside) rec->layout = layouts[1];
    for (int k = Q; k <= OUT; k++)
        tell(rec, a, call->tensors[k], fields[k], layouts[inside && !(cache && (k == K || k == V))]);
}

/* ---- sizes ---- */

static bool check_sizes(const runtime_call *call, scout_run_error *error) {
    const scout_run_tensor *const *t = call->tensors;
    for (int k = Q; k <= OUT; k++)
        if (t[k]->rank != 4 || (t[k]->dims[3] > 1 && t[k]->strides[3] != 1))
            return runtime_refuse(error, "%s: expected 4 dimensions with the elements of a row side by side",
                                  call->front->names[k]);
    const int64_t want[4][4] = {{t[Q]->dims[0], t[Q]->dims[1], t[Q]->dims[2], t[Q]->dims[3]},
                                {t[Q]->dims[0], t[K]->dims[1], t[K]->dims[2], t[Q]->dims[3]},
                                {t[Q]->dims[0], t[K]->dims[1], t[K]->dims[2], t[V]->dims[3]},
                                {t[Q]->dims[0], t[Q]->dims[1], t[Q]->dims[2], t[V]->dims[3]}};
    for (int k = Q; k <= OUT; k++)
        if (memcmp(want[k], t[k]->dims, sizeof want[k]) != 0)
            return runtime_refuse(error, "%s: expected %lld x %lld x %lld x %lld", call->front->names[k],
                                  (long long)want[k][0], (long long)want[k][1], (long long)want[k][2],
                                  (long long)want[k][3]);
    return true;
}

/* ---- masks ---- */

static bool set_mask(const runtime_call *call, arena *a, oprec *rec, scout_run_error *error) {
    const scout_run_tensor *mask = call->tensors[MASK], *lengths = call->tensors[LENGTHS];
    const bool causal = runtime_call_setting(call, "causal") != NULL;
    const int64_t full[4] = {rec->shape[0], rec->shape[1], rec->shape[2], call->tensors[K]->dims[2]};
    if (lengths && (mask || causal))
        return runtime_refuse(error, "lengths: expected neither a mask nor a causal one beside them");
    if (lengths && (lengths->rank != 1 || lengths->dims[0] != full[0] || !runtime_dense(lengths)))
        return runtime_refuse(error, "lengths: expected one for each of %lld sequences", (long long)full[0]);
    rec->mask = lengths ? "lengths" : causal ? (mask ? "causal+padding" : "causal") : mask ? "additive" : "none";
    if (!mask) return true;
    bool fits = mask->rank >= 1 && mask->rank <= 4 && runtime_dense(mask);
    for (int d = 0; fits && d < mask->rank; d++) fits = mask->dims[d] == 1 || mask->dims[d] == full[4 - mask->rank + d];
    if (!fits)
        return runtime_refuse(error, "mask: expected %lld x %lld x %lld x %lld, or 1 in some places, without gaps",
                              (long long)full[0], (long long)full[1], (long long)full[2], (long long)full[3]);
    oprec_set_ints(rec, a, "mask_shape", mask->rank, mask->dims);
    return true;
}

/* ---- the front ---- */

/* What is as usual is not told. */
static void set_numbers(const runtime_call *call, oprec *rec) {
    const runtime_setting *scale = runtime_call_setting(call, "scale"), *past = runtime_call_setting(call, "past");
    static const char *const others[] = {"window", "softcap"};
    const int64_t customary_past = call->tensors[K]->dims[2] - rec->shape[2];
    const double customary = 1 / sqrt((double)rec->shape[3]);
    if (scale && !(fabs(scale->numbers[0] - customary) <= 1e-6 * customary))
        runtime_front_number(rec, "scale", scale->numbers[0]);
    if (past && past->numbers[0] != (double)customary_past) runtime_front_number(rec, "past", past->numbers[0]);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const runtime_setting *s = runtime_call_setting(call, others[k]);
        if (s) runtime_front_number(rec, s->name, s->numbers[0]);
    }
}

static bool describe(runtime_call *call, arena *a, operation *out, scout_run_error *error) {
    const scout_run_tensor *const *t = call->tensors;
    oprec *rec = &out->rec;
    if (!check_sizes(call, error)) return false;
    rec->type = (dtype)t[Q]->type;
    runtime_front_types(rec, t[OUT]);
    oprec_set_shape(rec, a, 4, t[Q]->dims);
    oprec_set_int(rec, "kv_heads", t[K]->dims[1]);
    oprec_set_int(rec, "kv_len", t[K]->dims[2]);
    if (t[V]->dims[3] != t[Q]->dims[3]) oprec_set_int(rec, "v_head", t[V]->dims[3]);
    set_layouts(call, a, rec);
    set_numbers(call, rec);
    return set_mask(call, a, rec, error);
}

static const runtime_front front = {"attention", 4, {"q", "k", "v", "out", "mask", "lengths"}, describe};

int32_t scout_run_attention(scout_run *run, const scout_run_tensor *q, const scout_run_tensor *k,
                            const scout_run_tensor *v, const scout_run_tensor *out,
                            const scout_run_attention_more *given, void *stream, scout_run_error *error) {
    scout_run_attention_more more;
    runtime_call call;
    if (!RUNTIME_FRONT_MORE(&more, given, error)) return SCOUT_RUN_INVALID;
    runtime_call_begin(&call, &front, NULL, LENGTHS + 1, NULL);
    call.tensors[Q] = q, call.tensors[K] = k, call.tensors[V] = v, call.tensors[OUT] = out;
    call.tensors[MASK] = more.mask, call.tensors[LENGTHS] = more.lengths;
    const double past = (double)more.past, window = (double)more.window;
    if (more.causal) runtime_call_set(&call, "causal", "1", 0, NULL);
    if (more.causal && more.has_past) runtime_call_set(&call, "past", NULL, 1, &past);
    if (window != 0) runtime_call_set(&call, "window", NULL, 1, &window);
    if (more.scale != 0) runtime_call_set(&call, "scale", NULL, 1, &more.scale);
    if (more.softcap != 0) runtime_call_set(&call, "softcap", NULL, 1, &more.softcap);
    return runtime_call_launch(run, &call, stream, error);
}
