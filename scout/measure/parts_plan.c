/* A plan of plans: what a part writes for others and the constants that it reads are the plan's own memory; packed
 * weights are slices of the one packed tensor that the harness makes copies of. */
#include "scout/measure/parts_internal.h"

#include "common/json.h"
#include "scout/op/op.h"

#include <stdlib.h>
#include <string.h>

enum { PACK_ALIGNMENT = 512 };

struct scout_plan {
    const parts_layout *layout;
    scout_device *device;
    choice choices[FUSION_PARTS];
    void *between[FUSION_PARTS];                      /* owned, as all that follows */
    void *constants[FUSION_PARTS][SCOUT_MAX_TENSORS]; /* of each part's tensors */
    uint64_t pack_offsets[FUSION_PARTS];
    int packed; /* tensor of the fused operation that parts pack; -1: none */
    bool settled;
};

/* ---- constants ---- */

/* A batch norm divides by the root of variance + 1e-5. */
static const struct {
    const char *name;
    uint32_t fp32, fp16, bf16;
} constants[] = {{"=0", 0, 0, 0},
                 {"=1", 0x3f800000, 0x3c00, 0x3f80},
                 {"=8", 0x41000000, 0x4800, 0x4100},
                 {"=0.125", 0x3e000000, 0x3000, 0x3e00},
                 {"=variance", 0x3f7fff58, 0x3c00, 0x3f80}};

int parts_constant(const char *name) {
    for (size_t k = 0; k < sizeof constants / sizeof constants[0]; k++)
        if (strcmp(constants[k].name, name) == 0) return (int)k;
    return -1;
}

scout_answer parts_fill_constant(const scout_device_api *api, scout_device *device, const scout_tensor *t,
                                 const char *name, void *to, scout_why *why) {
    const int constant = parts_constant(name);
    const size_t count = (size_t)op_elements(t), size = t->type == SCOUT_FP32 ? 4 : 2;
    if (constant < 0) return scout_say(why, SCOUT_NO, "feature", "there is no such constant: %.40s", name);
    const uint32_t bits = t->type == SCOUT_FP32   ? constants[constant].fp32
                          : t->type == SCOUT_FP16 ? constants[constant].fp16
                                                  : constants[constant].bf16;
    char *host = malloc(count * size + 1);
    if (!host) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    for (size_t k = 0; k < count * size; k++) host[k] = (char)(bits >> 8 * (k % size)); /* the low byte first */
    const scout_answer answer = api->upload(device, to, host, count * size, why);
    free(host);
    return answer;
}

scout_answer parts_make_constant(const scout_device_api *api, scout_device *device, const scout_tensor *t,
                                 const char *name, void **out, scout_why *why) {
    const scout_answer answer = api->alloc(device, t->bytes, out, why);
    return answer == SCOUT_OK ? parts_fill_constant(api, device, t, name, *out, why) : answer;
}

/* ---- making ---- */

scout_answer parts_settle(const parts_layout *l, scout_plan *p, scout_device *device, scout_why *why) {
    if (p->settled) return SCOUT_OK;
    p->settled = true;
    p->device = device;
    for (int k = 0; k < l->count; k++) {
        const parts_step *s = &l->steps[k];
        scout_answer answer = SCOUT_OK;
        if (s->between_bytes > 0) answer = l->api->alloc(p->device, s->between_bytes, &p->between[k], why);
        for (uint32_t t = 0; t < s->op.tensor_count && answer == SCOUT_OK; t++)
            if (s->sources[t].where == PARTS_CONSTANT)
                answer = parts_make_constant(l->api, p->device, &s->op.tensors[t], s->sources[t].constant,
                                             &p->constants[k][t], why);
        if (answer != SCOUT_OK) return answer;
    }
    return SCOUT_OK;
}

static void drop_choices(scout_plan *p) {
    for (int k = 0; k < p->layout->count; k++) {
        const choice *c = &p->choices[k];
        if (c->plan) scout_destroy(c->candidate, c->plan);
        p->choices[k].plan = NULL;
    }
}

/* The harness packs one tensor: all that parts pack must be slices of it, and no part may read it unpacked. */
static scout_answer share_pack(scout_plan *p, scout_plan_needs *needs, scout_why *why) {
    const parts_layout *l = p->layout;
    uint64_t bytes = 0;
    p->packed = -1;
    needs->workspace_bytes = 0;
    for (int k = 0; k < l->count; k++) {
        const scout_plan_needs *own = &p->choices[k].needs;
        if (own->workspace_bytes > needs->workspace_bytes) needs->workspace_bytes = own->workspace_bytes;
        needs->coarse |= own->coarse;
        if (own->packs == 0) continue;
        const parts_source *s = own->packs <= l->steps[k].op.tensor_count ? &l->steps[k].sources[own->packs - 1] : NULL;
        if (!s || s->where != PARTS_FUSED || (p->packed >= 0 && p->packed != s->at))
            return scout_say(why, SCOUT_NO, "feature", "its parts pack several tensors");
        p->packed = s->at;
        p->pack_offsets[k] = bytes;
        bytes += (own->pack_bytes + PACK_ALIGNMENT - 1) / PACK_ALIGNMENT * PACK_ALIGNMENT;
    }
    for (int k = 0; k < l->count && p->packed >= 0; k++)
        for (uint32_t t = 0; t < l->steps[k].op.tensor_count; t++)
            if (l->steps[k].sources[t].where == PARTS_FUSED && l->steps[k].sources[t].at == p->packed &&
                p->choices[k].needs.packs != t + 1)
                return scout_say(why, SCOUT_NO, "feature", "one part packs a weight that another one does not");
    needs->packs = (uint32_t)(p->packed + 1);
    needs->pack_bytes = bytes;
    return SCOUT_OK;
}

/* wished: each as its own measurement found it best. */
static scout_answer choose(scout_plan *p, bool wished, scout_plan_needs *needs, scout_why *why) {
    const parts_layout *l = p->layout;
    for (int k = 0; k < l->count; k++) {
        const parts_step *s = &l->steps[k];
        scout_answer answer = SCOUT_NO;
        const choice_wish w = {.api = l->api,
                               .op = &s->op,
                               .id = s->id,
                               .candidate = s->candidate,
                               .variant = s->variant,
                               .exhaustive = l->exhaustive};
        if (wished && s->candidate) answer = choice_named(&w, p->device, &p->choices[k], why);
        if (answer != SCOUT_OK && answer != SCOUT_LOST) answer = choice_default(&w, p->device, &p->choices[k], why);
        if (answer != SCOUT_OK) return answer;
    }
    return share_pack(p, needs, why);
}

scout_answer parts_plan_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why) {
    (void)op, (void)values;
    scout_plan *p = arena_array(parts_current->arena, scout_plan, 1);
    p->layout = parts_current;
    p->device = device;
    p->packed = -1;
    scout_answer answer = choose(p, true, needs, why);
    if (answer != SCOUT_OK && answer != SCOUT_LOST) {
        drop_choices(p);
        answer = choose(p, false, needs, why);
    }
    if (answer == SCOUT_OK && !p->layout->ahead) answer = parts_settle(p->layout, p, device, why);
    if (answer == SCOUT_OK)
        *plan = p;
    else if (answer != SCOUT_LOST) /* a lost device is not touched any more */
        parts_plan_destroy(p);
    return answer;
}

void parts_plan_destroy(scout_plan *p) {
    const scout_device_api *api = p->layout->api;
    drop_choices(p);
    for (int k = 0; k < p->layout->count; k++) {
        if (p->between[k]) api->release(p->device, p->between[k]);
        for (int t = 0; t < SCOUT_MAX_TENSORS; t++)
            if (p->constants[k][t]) api->release(p->device, p->constants[k][t]);
    }
}

/* ---- running ---- */

/* The part's tensors; where it packs one, that is for the caller to replace. */
static void find_tensors(const scout_plan *p, int part, void *const *fused, void **out) {
    const parts_step *s = &p->layout->steps[part];
    for (uint32_t t = 0; t < s->op.tensor_count; t++) {
        const parts_source *from = &s->sources[t];
        out[t] = from->where == PARTS_FUSED     ? (char *)fused[from->at] + from->offset
                 : from->where == PARTS_BETWEEN ? p->between[from->at]
                                                : p->constants[part][t];
    }
}

scout_answer parts_plan_pack(scout_plan *p, void *const *tensors, void *packed, void *stream, scout_why *why) {
    void *own[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < p->layout->count && answer == SCOUT_OK; k++) {
        const choice *c = &p->choices[k];
        void *to = (char *)packed + p->pack_offsets[k];
        if (c->needs.packs == 0) continue;
        find_tensors(p, k, tensors, own);
        answer = SCOUT_HAS(c->candidate, pack_tensors) && c->candidate->pack_tensors
                     ? c->candidate->pack_tensors(c->plan, own, to, stream, why)
                     : c->candidate->pack(c->plan, own[c->needs.packs - 1], to, stream, why);
    }
    return answer;
}

scout_answer parts_plan_launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *own[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < p->layout->count && answer == SCOUT_OK; k++) {
        const choice *c = &p->choices[k];
        find_tensors(p, k, args->tensors, own);
        if (c->needs.packs > 0) own[c->needs.packs - 1] = (char *)args->tensors[p->packed] + p->pack_offsets[k];
        const scout_args its = {.size = sizeof its,
                                .tensors = own,
                                .workspace = c->needs.workspace_bytes > 0 ? args->workspace : NULL,
                                .stream = args->stream};
        answer = c->candidate->launch(c->plan, &its, why);
    }
    return answer;
}

int parts_plan_describe(const scout_plan *p, char *json, size_t room) {
    json_builder b = {NULL};
    status st;
    json_t *to = json_new_object(&b), *list = json_new_array(&b);
    for (int k = 0; k < p->layout->count; k++) {
        json_t *one = json_new_object(&b);
        json_put_text(&b, one, "operation", p->layout->steps[k].id);
        json_put_text(&b, one, "candidate", p->choices[k].candidate->name);
        json_put_text(&b, one, "variant", p->choices[k].variant);
        json_push(&b, list, one);
    }
    json_put(&b, to, "parts", list);
    to = json_finish(&b, to, &st);
    char *text = to ? json_dumps(to, JSON_COMPACT) : NULL;
    const int length = text ? snprintf(json, room, "%s", text) : 0;
    free(text);
    json_decref(to);
    return length;
}
