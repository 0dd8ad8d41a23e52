/* The model once more with every half-precision number in fp32: each operation by its library's default, on the same
 * inputs and weights. What it ends in is what both lanes round, so it tells how far each of them is off. Memory is laid
 * out as theirs, everything at twice its place. */
#include "scout/plan/replay_internal.h"

#include "scout/kinds/kinds.h"

#include <math.h>
#include <string.h>

enum { WIDER = 2 };                     /* a number of fp32 beside a half-precision one */
static const double most_s = 60;        /* of all of it: a loop may run an operation very often */
static const double most_further = 1.5; /* than the default is off */
/* A default that is further off tells nothing of a plan, and a plan that is off by less is as good as any. */
static const double most_default = 0.25, least_planned = 0x1p-11;

typedef struct room { /* memory of the device's, as large as was needed so far */
    void *at;
    uint64_t bytes;
} room;

typedef struct wide { /* an operation in fp32 */
    bool built;
    scout_op op;
    choice choice;
} wide;

typedef struct exact {
    replay *replay;
    uint32_t copy;
    double end_s; /* by the device's time */
    wide *units;  /* by unit */
    wide *casts;  /* of tensors, by their type and number of elements */
    size_t cast_count, cast_cap;
    room activations, inputs, narrow, workspace, packed, constants[SCOUT_MAX_TENSORS];
    scout_why why;
} exact;

static bool is_half(uint32_t type) { return type == SCOUT_FP16 || type == SCOUT_BF16; }

static scout_answer make_room(exact *e, room *of, uint64_t bytes) {
    const scout_device_api *api = e->replay->api;
    if (of->bytes >= bytes && of->at) return SCOUT_OK;
    if (of->at) api->release(e->replay->device, of->at);
    *of = (room){.at = NULL};
    const scout_answer answer = api->alloc(e->replay->device, bytes, &of->at, &e->why);
    if (answer == SCOUT_OK) of->bytes = bytes;
    return answer;
}

/* ---- operations ---- */

static const char *widened(const char *text, arena *a) {
    char *copy = arena_strndup(a, text, strlen(text));
    for (char *at = copy; (at = strpbrk(at, "fbt")) != NULL; at++)
        if (strncmp(at, "fp16", 4) == 0 || strncmp(at, "bf16", 4) == 0 || strncmp(at, "tf32", 4) == 0)
            memcpy(at, "fp32", 4);
    return copy;
}

static dtype wide_type(dtype type) { return is_half((uint32_t)type) ? DTYPE_FP32 : type; }

static operation wide_operation(const operation *o, arena *a) {
    operation w = *o;
    w.rec.type = wide_type(o->rec.type);
    w.rec.weight_type = wide_type(o->rec.weight_type);
    w.rec.out_type = wide_type(o->rec.out_type);
    for (int k = 0; k < w.rec.field_count; k++)
        if (w.rec.fields[k].kind == OPFIELD_TEXT) w.rec.fields[k].text = widened(w.rec.fields[k].text, a);
    w.sparsity = 0; /* zeros are numbers like others */
    w.pattern = "DENSE";
    w.weight = NULL;
    return w;
}

static scout_answer build(exact *e, const operation *o, wide *to) {
    replay *r = e->replay;
    if (!kinds_build(o, r->request->workspace_limit, &r->arena, &to->op, &e->why)) return SCOUT_NO;
    const choice_wish wish = {.api = r->api, .op = &to->op, .id = o->id};
    replay_tell(r, NULL, "prepare", 120);
    const scout_answer answer = choice_default(&wish, r->device, &to->choice, &e->why);
    to->built = answer == SCOUT_OK;
    return answer;
}

static scout_answer of_unit(exact *e, int unit, wide **out) {
    replay *r = e->replay;
    *out = &e->units[unit];
    if ((*out)->built) return SCOUT_OK;
    const operation w = wide_operation(&r->units[unit].of->operation, &r->arena);
    const scout_answer answer = build(e, &w, *out);
    if (answer == SCOUT_OK && (*out)->op.tensor_count != r->units[unit].op.tensor_count)
        return scout_say(&e->why, SCOUT_NO, "layout", "in fp32 it has other tensors");
    return answer;
}

static scout_answer of_cast(exact *e, uint32_t type, uint64_t elements, wide **out) {
    replay *r = e->replay;
    const int64_t shape[] = {(int64_t)elements};
    operation o = {.id = "cast", .name = "cast", .pattern = "DENSE"};
    for (size_t k = 0; k < e->cast_count; k++) {
        const scout_tensor *from = &e->casts[k].op.tensors[0];
        *out = &e->casts[k];
        if (from->type == type && from->bytes == WIDER * elements) return SCOUT_OK;
    }
    o.rec = (oprec){.kind = OP_MOVE, .what = "cast", .type = (dtype)type, .out_type = DTYPE_FP32};
    oprec_set_shape(&o.rec, &r->arena, 1, shape);
    arena_grow(&r->arena, (void **)&e->casts, &e->cast_cap, e->cast_count, sizeof *e->casts);
    *out = &e->casts[e->cast_count];
    **out = (wide){.built = false};
    const scout_answer answer = build(e, &o, *out);
    e->cast_count += answer == SCOUT_OK;
    return answer;
}

/* ---- launches ---- */

typedef struct launching {
    const choice *choice;
    void *const *tensors;
    void *workspace, *packed; /* packed: a weight is packed to it; NULL: the operation is launched */
} launching;

static scout_answer enqueue(void *context, uint32_t launch, void *stream, scout_why *why) {
    const launching *l = context;
    const choice *c = l->choice;
    const scout_args args = {.size = sizeof args, .tensors = l->tensors, .workspace = l->workspace, .stream = stream};
    (void)launch;
    if (!l->packed) return c->candidate->launch(c->plan, &args, why);
    if (SCOUT_HAS(c->candidate, pack_tensors) && c->candidate->pack_tensors)
        return c->candidate->pack_tensors(c->plan, l->tensors, l->packed, stream, why);
    return c->candidate->pack(c->plan, l->tensors[c->needs.packs - 1], l->packed, stream, why);
}

static scout_answer launch(exact *e, launching *l, const scout_op *op) {
    replay *r = e->replay;
    scout_sequence *sequence = NULL;
    double seconds = 0;
    replay_tell(r, l->choice, "exact", fmin(30 + op->flops / 1e9 + (op->bytes_read + op->bytes_written) / 2e8, 600));
    scout_answer answer = r->api->record(r->device, 0, 1, enqueue, l, &sequence, &e->why);
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, &seconds, &e->why);
    if (sequence && answer != SCOUT_LOST) r->api->drop(r->device, sequence);
    return answer;
}

static scout_answer run(exact *e, const wide *w, void **tensors) {
    const scout_plan_needs *needs = &w->choice.needs;
    launching l = {.choice = &w->choice, .tensors = tensors};
    scout_answer answer = SCOUT_OK;
    if (needs->workspace_bytes > 0) answer = make_room(e, &e->workspace, needs->workspace_bytes);
    l.workspace = needs->workspace_bytes > 0 ? e->workspace.at : NULL;
    if (answer == SCOUT_OK && needs->packs > 0) {
        answer = make_room(e, &e->packed, needs->pack_bytes);
        l.packed = e->packed.at;
        if (answer == SCOUT_OK) answer = launch(e, &l, &w->op);
        tensors[needs->packs - 1] = l.packed;
        l.packed = NULL;
    }
    return answer == SCOUT_OK ? launch(e, &l, &w->op) : answer;
}

static scout_answer widen(exact *e, uint32_t type, void *from, void *to, uint64_t bytes) {
    wide *w = NULL;
    void *tensors[SCOUT_MAX_TENSORS] = {from, to};
    const scout_answer answer = bytes > 0 ? of_cast(e, type, bytes / WIDER, &w) : SCOUT_OK;
    return answer == SCOUT_OK && bytes > 0 ? run(e, w, tensors) : answer;
}

/* ---- tensors ---- */

static uint64_t wide_bytes(uint32_t type, uint64_t bytes) { return is_half(type) ? WIDER * bytes : bytes; }

/* All of a weight's slot, as another tensor may begin within it. One that is only there packed is made once more. */
static scout_answer make_constant(exact *e, const replay_place *p, room *of) {
    replay *r = e->replay;
    const replay_slot *slot = &r->slots[p->at];
    const replay_place all = {.region = p->region, .at = p->at};
    void *from = slot->read ? replay_memory_at(r, &all, 0, e->copy) : NULL;
    if (!slot->read && r->memory.shared > 0)
        return scout_say(&e->why, SCOUT_NO, "memory", "memory is short: which weight was packed is not known");
    replay_tell(r, NULL, "fill", 600);
    scout_answer answer = make_room(e, of, wide_bytes(slot->like.type, slot->bytes) + 1);
    if (answer == SCOUT_OK && !is_half(slot->like.type))
        return replay_memory_fill(r, (size_t)p->at, e->copy, of->at, &e->why);
    if (answer == SCOUT_OK && !from) {
        answer = make_room(e, &e->narrow, slot->bytes);
        from = e->narrow.at;
        if (answer == SCOUT_OK) answer = replay_memory_fill(r, (size_t)p->at, e->copy, from, &e->why);
    }
    return answer == SCOUT_OK ? widen(e, slot->like.type, from, of->at, slot->bytes) : answer;
}

static scout_answer find_tensor(exact *e, const replay_step *s, uint32_t t, void **to) {
    replay *r = e->replay;
    const replay_place *p = &s->places[t];
    const uint64_t offset = wide_bytes(r->units[s->unit].op.tensors[t].type, p->offset);
    scout_answer answer = SCOUT_OK;
    char *base = NULL;
    if (p->region == REPLAY_ACTIVATIONS) {
        base = (char *)e->activations.at + WIDER * r->memory.items[0][p->at];
    } else if (p->region == REPLAY_INPUTS) {
        base = (char *)e->inputs.at + WIDER * r->slots[p->at].offset;
    } else {
        const replay_slot *slot = &r->slots[p->at];
        const replay_place all = {.region = p->region, .at = p->at};
        const bool as_it_is = slot->read && !is_half(slot->like.type);
        if (!as_it_is) answer = make_constant(e, p, &e->constants[t]);
        base = as_it_is ? replay_memory_at(r, &all, 0, e->copy) : e->constants[t].at;
    }
    if (answer == SCOUT_OK) *to = base + offset;
    return answer;
}

static scout_answer visit(void *context, const replay_step *s) {
    exact *e = context;
    void *tensors[SCOUT_MAX_TENSORS] = {NULL};
    wide *w = NULL;
    if (e->replay->api->now(e->replay->device) > e->end_s)
        return scout_say(&e->why, SCOUT_NO, "budget", "%g s were not enough to get there", most_s);
    scout_answer answer = of_unit(e, s->unit, &w);
    for (uint32_t t = 0; answer == SCOUT_OK && t < w->op.tensor_count; t++) answer = find_tensor(e, s, t, &tensors[t]);
    return answer == SCOUT_OK ? run(e, w, tensors) : answer;
}

static scout_answer fill_inputs(exact *e) {
    replay *r = e->replay;
    const uint64_t bytes = r->memory.bytes[REPLAY_INPUTS];
    scout_answer answer = bytes > 0 ? make_room(e, &e->inputs, WIDER * bytes) : SCOUT_OK;
    for (size_t k = 0; k < r->slot_count && answer == SCOUT_OK; k++) {
        const replay_slot *s = &r->slots[k];
        const replay_place place = {.region = REPLAY_INPUTS, .at = (int)k};
        if (s->region != REPLAY_INPUTS || s->bytes == 0) continue;
        char *const to = (char *)e->inputs.at + WIDER * s->offset;
        replay_tell(r, NULL, "fill", 600);
        answer = is_half(s->like.type) ? widen(e, s->like.type, replay_memory_at(r, &place, 0, 0), to, s->bytes)
                                       : replay_memory_fill(r, k, 0, to, &e->why);
    }
    return answer;
}

/* ---- what it ends in ---- */

static scout_answer compare(exact *e, int tensor, const replay_numbers *end, uint64_t bytes, double *error) {
    replay *r = e->replay;
    const operation_tensor *t = &replay_flow(r, 0)->tensors[tensor];
    const uint32_t narrow = (uint32_t)t->type;
    const replay_place *p = &r->memory.made[tensor];
    const uint64_t at = WIDER * r->memory.items[0][p->at] + wide_bytes(narrow, p->offset);
    const replay_numbers made = {(uint32_t)wide_type(t->type), (const char *)e->activations.at + at, false};
    replay_tell(r, NULL, "verify", 600);
    return replay_numbers_off(r, &made, end, wide_bytes(narrow, bytes), error, &e->why);
}

/* By how much the plan is further off than the default. */
static double beside(const double *errors) {
    if (errors[1] == errors[0]) return 1;
    return errors[0] > 0 ? errors[1] / errors[0] : (double)INFINITY;
}

static scout_answer compare_all(exact *e, const replay_held *first) {
    replay *r = e->replay;
    uint64_t at = 0;
    double most = -1, furthest = 0;
    for (int k = replay_check_next_end(r, -1, &at); k >= 0; k = replay_check_next_end(r, k, &at)) {
        double errors[REPLAY_LANES] = {0};
        for (int lane = 0; lane < REPLAY_LANES; lane++) {
            const replay_numbers end = replay_check_end_of(r, k, lane, first, at);
            const scout_answer answer = compare(e, k, &end, replay_check_end_bytes(r, k, at), &errors[lane]);
            if (answer != SCOUT_OK) return answer;
        }
        furthest = fmax(furthest, errors[0]);
        if (!(beside(errors) > most)) continue;
        most = beside(errors);
        r->exact.worst = k;
        memcpy(r->exact.errors, errors, sizeof errors);
    }
    if (most < 0) return scout_say(&e->why, SCOUT_NO, "feature", "there is no output to compare");
    if (!(furthest <= most_default))
        return scout_say(&e->why, SCOUT_NO, "feature", "the defaults themselves are off by more than %g", most_default);
    r->exact.known = true;
    r->exact.worse = most > most_further && r->exact.errors[1] > least_planned;
    return SCOUT_OK;
}

static scout_answer run_all(exact *e) {
    replay *r = e->replay;
    const replay_step *at = NULL;
    const uint64_t bytes = WIDER * r->memory.activation_bytes[0] + sizeof(float);
    replay_tell(r, NULL, "fill", 600);
    scout_answer answer = make_room(e, &e->activations, bytes);
    if (answer == SCOUT_OK)
        answer = r->api->fill(r->device, e->activations.at, bytes & ~(uint64_t)3, SCOUT_FP32, SCOUT_FILL_NORMAL,
                              r->pass.seed, &e->why);
    if (answer == SCOUT_OK) answer = fill_inputs(e);
    if (answer == SCOUT_OK) answer = replay_each(r, 0, visit, e, &at);
    if (answer == SCOUT_OK || !at) return answer;
    const scout_why why = e->why;
    return scout_say(&e->why, answer, why.code, "%.60s in fp32: %.150s", r->units[at->unit].of->operation.id, why.text);
}

bool replay_exact_wanted(replay *r) {
    for (int k = 0; k < r->unit_count; k++) {
        const replay_unit *u = &r->units[k];
        if (!u->out && u->op.tf32) return true;
        for (uint32_t t = 0; !u->out && t < u->op.tensor_count; t++)
            if (is_half(u->op.tensors[t].type)) return true;
    }
    r->exact.why = (scout_why){"feature", "it computes in fp32 itself"};
    return false;
}

static void close(exact *e) {
    replay *r = e->replay;
    room *const rooms[] = {&e->activations, &e->inputs, &e->narrow, &e->workspace, &e->packed};
    if (r->answer == SCOUT_LOST) return;
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++)
        if (rooms[k]->at) r->api->release(r->device, rooms[k]->at);
    for (int t = 0; t < SCOUT_MAX_TENSORS; t++)
        if (e->constants[t].at) r->api->release(r->device, e->constants[t].at);
    for (int k = 0; k < r->unit_count; k++)
        if (e->units[k].choice.plan) scout_destroy(e->units[k].choice.candidate, e->units[k].choice.plan);
    for (size_t k = 0; k < e->cast_count; k++) scout_destroy(e->casts[k].choice.candidate, e->casts[k].choice.plan);
}

void replay_exact(replay *r, uint32_t copy, const replay_held *first) {
    exact e = {.replay = r, .copy = copy, .end_s = r->api->now(r->device) + most_s};
    e.units = arena_array(&r->arena, wide, r->unit_count);
    scout_answer answer = run_all(&e);
    if (answer == SCOUT_OK) answer = compare_all(&e, first);
    if (answer == SCOUT_LOST) replay_note(r, answer, &e.why);
    close(&e);
    r->exact.why = e.why;
}
