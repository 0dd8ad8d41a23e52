/* Lays the parts of a fusion out on the fused operation's tensors, and is the candidate that runs them. */
#include "scout/measure/parts_internal.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"

#include <stdlib.h>
#include <string.h>

_Thread_local parts_layout *parts_current;

/* ---- the layout ---- */

static bool refuse(parts_layout *l, const char *code, const char *text, const char *name) {
    scout_say(&l->why, SCOUT_NO, code, "%s: %.60s", text, name);
    return false;
}

/* Rows further apart than the part alone would have them. */
static void widen(scout_tensor *t, int64_t stride) {
    int64_t last = 0;
    if (stride == 0 || t->rank < 2) return;
    t->strides[t->rank - 2] = stride;
    for (uint32_t d = 0; d < t->rank; d++) last = checked_add(last, checked_mul(t->dims[d] - 1, t->strides[d]));
    t->bytes = (uint64_t)dtype_bytes((dtype)t->type, checked_add(last, 1));
}

static bool in_fused(parts_layout *l, const scout_tensor *t, const fusion_place *p, parts_source *to) {
    const int at = p->of[0] == '#' ? atoi(p->of + 1) : op_tensor(l->fused, p->of);
    if (at < 0 || (uint32_t)at >= l->fused->tensor_count)
        return refuse(l, "feature", "the fused operation has no such tensor", p->of);
    const scout_tensor *whole = &l->fused->tensors[at];
    if (whole->type != t->type) return refuse(l, "type", "a part has another type of", p->of);
    to->where = PARTS_FUSED;
    to->at = at;
    to->offset = (uint64_t)dtype_bytes((dtype)t->type, p->offset);
    if (to->offset % FUSION_ALIGNMENT != 0)
        return refuse(l, "alignment", "a part's slice would not begin at a line of memory", p->of);
    if (to->offset > whole->bytes || t->bytes > whole->bytes - to->offset)
        return refuse(l, "shape", "a part's tensor is larger than that of the fused operation", p->of);
    if (t->role != SCOUT_OUTPUT && whole->role == SCOUT_OUTPUT) return true; /* written by a part before */
    return (t->role == SCOUT_OUTPUT) == (whole->role == SCOUT_OUTPUT) ||
           refuse(l, "feature", "a part would write an input", p->of);
}

static bool between(parts_layout *l, int part, const scout_tensor *t, const fusion_place *p, parts_source *to) {
    const int from = atoi(p->of + 1);
    if (from < 0 || from > part || p->offset || p->stride) return refuse(l, "feature", "no part before writes", p->of);
    to->where = PARTS_BETWEEN;
    to->at = from;
    if (t->role == SCOUT_OUTPUT && from == part) {
        l->steps[part].between_bytes = t->bytes;
        return true;
    }
    if (t->role == SCOUT_OUTPUT || from == part || l->steps[from].between_bytes != t->bytes)
        return refuse(l, "shape", "a part reads more or less than the one before writes", p->of);
    return true;
}

static bool constant(parts_layout *l, const scout_tensor *t, const fusion_place *p, parts_source *to) {
    to->where = PARTS_CONSTANT;
    to->constant = p->of;
    const bool known = t->type == SCOUT_FP32 || t->type == SCOUT_FP16 || t->type == SCOUT_BF16;
    if (parts_constant(p->of) < 0 || t->role == SCOUT_OUTPUT)
        return refuse(l, "feature", "there is no such constant", p->of);
    return known || refuse(l, "type", "no constant of this type", p->of);
}

static bool lay_out(parts_layout *l, int part, const fusion_part *from, arena *a) {
    parts_step *s = &l->steps[part];
    s->id = from->operation->id;
    s->candidate = from->candidate;
    s->variant = from->variant;
    if (!kinds_build(from->operation, l->fused->workspace_limit, a, &s->op, &l->why)) return false;
    if ((uint32_t)from->place_count != s->op.tensor_count)
        return refuse(l, "feature", "not every tensor of a part has a place", s->id);
    scout_tensor *tensors = arena_array(a, scout_tensor, s->op.tensor_count);
    memcpy(tensors, s->op.tensors, s->op.tensor_count * sizeof *tensors);
    s->op.tensors = tensors;
    for (uint32_t k = 0; k < s->op.tensor_count; k++) {
        const fusion_place *p = &from->places[k];
        if (strcmp(p->tensor, tensors[k].name) != 0)
            return refuse(l, "feature", "a part has no such tensor at this place", p->tensor);
        widen(&tensors[k], p->stride);
        if (p->stride) /* another layout is another operation for a candidate that caches its findings */
            s->op.key = arena_printf(a, "%s;%s=%lld", s->op.key, p->tensor, (long long)p->stride);
        const bool good = p->of[0] == '@'   ? between(l, part, &tensors[k], p, &s->sources[k])
                          : p->of[0] == '=' ? constant(l, &tensors[k], p, &s->sources[k])
                                            : in_fused(l, &tensors[k], p, &s->sources[k]);
        if (!good) return false;
    }
    return true;
}

/* ---- the candidate ---- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!parts_current || op != parts_current->fused)
        return scout_say(why, SCOUT_NO, "feature", "no parts of this operation are known");
    if (parts_current->good) return SCOUT_OK;
    *why = parts_current->why;
    return SCOUT_NO;
}

static const char *const precisions[] = {NULL};

/* Of any kind: it is in no device's list. */
static const scout_candidate candidate = {.size = sizeof candidate,
                                          .precisions = precisions,
                                          .flags = SCOUT_BASELINE,
                                          .priority = 1000,
                                          .name = "parts",
                                          .about = "the operations that a fusion joins, one after another",
                                          .approach = "NONE",
                                          .supports = supports,
                                          .prepare = parts_plan_prepare,
                                          .launch = parts_plan_launch,
                                          .describe = parts_plan_describe,
                                          .destroy = parts_plan_destroy,
                                          .pack_tensors = parts_plan_pack};

parts_layout *parts_open(const scout_device_api *api, const scout_op *op, const parts_request *request, bool ahead,
                         arena *a) {
    parts_layout *l = arena_array(a, parts_layout, 1);
    l->api = api;
    l->fused = op;
    l->arena = a;
    l->count = request->count < FUSION_PARTS ? request->count : FUSION_PARTS;
    l->exhaustive = request->exhaustive;
    l->ahead = ahead;
    l->good = true;
    for (int k = 0; k < l->count && l->good; k++) l->good = lay_out(l, k, &request->items[k], a);
    return l;
}

const scout_candidate *parts_use(parts_layout *layout) {
    parts_current = layout;
    return layout ? &candidate : NULL;
}

/* Whether a part goes on with what another one wrote. */
static bool goes_on(const parts_layout *l) {
    for (int k = 0; k < l->count; k++)
        for (uint32_t t = 0; t < l->steps[k].op.tensor_count; t++)
            if (l->steps[k].sources[t].where == PARTS_BETWEEN && l->steps[k].sources[t].at < k) return true;
    return false;
}

/* Norms allow for the residual being added by another kernel, products and convolutions for what stands behind them. A
 * softmax does not for a sum that was rounded before: the exponent x - largest has two of them, up to 8 each. */
double parts_tolerance(const parts_layout *l) {
    const bool rounds = l && l->good && goes_on(l) && l->fused->kind == SCOUT_SOFTMAX;
    return rounds ? 16 * kind_rounding(l->fused->input) : 0;
}
