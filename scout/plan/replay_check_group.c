/* Holds what a group makes against what its parts make by default, on the same numbers: the parts one after another at
 * the places that they have one by one, the group at its own in the second lane. */
#include "scout/plan/replay_internal.h"

#include "common/dtype.h"
#include "common/mix.h"
#include "scout/measure/parts.h"
#include "scout/op/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparison {
    replay *replay;
    const replay_step *step;
    const replay_group *group;
    replay_held want[SCOUT_MAX_TENSORS]; /* owned; by output of the fused operation */
    void *constants[SCOUT_MAX_TENSORS];  /* owned, on the device; of the part that runs */
    double worst;
    scout_why why;
} comparison;

static const scout_op *fused_of(const comparison *c) { return &c->replay->units[c->step->unit].op; }

/* The tensor of the fused operation that a part's tensor is; -1: it is another part's, or a number. */
static int whole_of(const comparison *c, const fusion_place *p) {
    if (p->of[0] == '@' || p->of[0] == '=') return -1;
    return p->of[0] == '#' ? atoi(p->of + 1) : op_tensor(fused_of(c), p->of);
}

static bool is_same_place(const replay_place *a, const replay_place *b) {
    return a->region == b->region && a->at == b->at && a->offset == b->offset;
}

static bool is_copied(const comparison *c, const replay_place *of) {
    return of->region != REPLAY_ACTIVATIONS && c->replay->slots[of->at].copied;
}

/* Bytes in the fused operation's tensor before a part's. */
static uint64_t offset_in(const scout_tensor *own, const fusion_place *p) {
    return (uint64_t)dtype_bytes((dtype)own->type, p->offset);
}

/* One for each place: what a group takes twice, as a convolution's input that is its residual too, has one content. */
static uint64_t seed_of(const comparison *c, int whole) {
    int first = 0;
    while (!is_same_place(&c->step->places[first], &c->step->places[whole])) first++;
    return mix_bits(c->replay->pass.seed + (uint64_t)c->step->occurrence * SCOUT_MAX_TENSORS + (uint64_t)first);
}

/* What comes from outside is filled where it lies among the activations; constants lie there already, for both. */
static scout_answer fill_part(comparison *c, int part, uint32_t t, void *to) {
    replay *r = c->replay;
    const scout_tensor *own = &r->units[replay_part(r, c->group, part)->unit].op.tensors[t];
    const replay_place *at = &c->group->parts[part][t];
    const fusion_place *place = &replay_fusion_of(r, c->group)->parts[part].places[t];
    const int whole = whole_of(c, place);
    if (own->role == SCOUT_OUTPUT) return replay_check_fill(r, own, to, 0, &c->why);
    if (whole < 0 || fused_of(c)->tensors[whole].role == SCOUT_OUTPUT) return SCOUT_OK; /* a part before made it */
    if (at->region == REPLAY_ACTIVATIONS && c->step->places[whole].region == REPLAY_ACTIVATIONS)
        return replay_check_fill(r, &fused_of(c)->tensors[whole], to, seed_of(c, whole), &c->why);
    replay_place slice = c->step->places[whole];
    slice.offset += offset_in(own, place);
    if (is_same_place(at, &slice) || is_copied(c, &slice)) return SCOUT_OK;
    return scout_say(&c->why, SCOUT_NO, "layout", "its %.16s lies elsewhere than that of its parts",
                     fused_of(c)->tensors[whole].name);
}

static scout_answer find_tensors(comparison *c, int part, void **tensors) {
    replay *r = c->replay;
    const scout_op *op = &r->units[replay_part(r, c->group, part)->unit].op;
    const fusion_place *places = replay_fusion_of(r, c->group)->parts[part].places;
    scout_answer answer = SCOUT_OK;
    for (uint32_t t = 0; t < op->tensor_count && answer == SCOUT_OK; t++) {
        if (places[t].of[0] == '=') {
            answer = parts_make_constant(r->api, r->device, &op->tensors[t], places[t].of, &c->constants[t], &c->why);
            tensors[t] = c->constants[t];
        } else {
            tensors[t] = replay_memory_at(r, &c->group->parts[part][t], replay_alone(r, c->step), 0);
            answer = fill_part(c, part, t, tensors[t]);
        }
    }
    return answer;
}

/* Some of what the fused operation makes, or all of it. */
static scout_answer take(comparison *c, int whole, uint64_t offset, uint64_t bytes, const void *from) {
    replay_held *to = &c->want[whole];
    const scout_answer answer =
        to->at ? SCOUT_OK : replay_hold_open(c->replay, fused_of(c)->tensors[whole].bytes, to, &c->why);
    return answer == SCOUT_OK ? replay_hold(c->replay, to, offset, from, bytes, &c->why) : answer;
}

/* What later parts write may lie where this one's outputs do: they are taken at once. */
static scout_answer take_part(comparison *c, int part, void *const *tensors) {
    replay *r = c->replay;
    const scout_op *op = &r->units[replay_part(r, c->group, part)->unit].op;
    scout_answer answer = SCOUT_OK;
    for (uint32_t t = 0; t < op->tensor_count && answer == SCOUT_OK; t++) {
        const fusion_place *place = &replay_fusion_of(r, c->group)->parts[part].places[t];
        const int whole = whole_of(c, place);
        if (op->tensors[t].role == SCOUT_OUTPUT && whole >= 0)
            answer = take(c, whole, offset_in(&op->tensors[t], place), op->tensors[t].bytes, tensors[t]);
    }
    return answer;
}

static scout_answer run_part(comparison *c, int part) {
    replay *r = c->replay;
    const replay_step *s = replay_part(r, c->group, part);
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS], *packed[SCOUT_MAX_TENSORS];
    const uint32_t packs = u->choices[0].needs.packs;
    scout_answer answer = find_tensors(c, part, tensors);
    if (answer == SCOUT_OK && packs > 0) {
        replay_memory_tensors(r, s, 0, &u->choices[0], 0, packed);
        tensors[packs - 1] = packed[packs - 1];
        if (!is_same_place(&s->places[packs - 1], &c->group->parts[part][packs - 1]))
            answer = scout_say(&c->why, SCOUT_NO, "layout", "a part's weight is another one here");
    }
    if (answer == SCOUT_OK) answer = replay_check_run(r, &u->op, &u->choices[0], tensors, &c->why);
    if (answer == SCOUT_OK) answer = take_part(c, part, tensors);
    for (int t = 0; t < SCOUT_MAX_TENSORS; t++) {
        if (c->constants[t] && answer != SCOUT_LOST) r->api->release(r->device, c->constants[t]);
        c->constants[t] = NULL;
    }
    return answer;
}

/* The one behind part `before` in the model's order, by which memory is laid out; -1: the first. */
static int next_part(const comparison *c, int before) {
    const int *order = &c->replay->request->plan->order[c->group->of->first];
    int next = -1;
    for (int k = 0; k < c->group->of->count; k++)
        if ((before < 0 || order[k] > order[before]) && (next < 0 || order[k] < order[next])) next = k;
    return next;
}

/* An output that no part made is as far off as can be. */
static scout_answer look_at(comparison *c, int whole, const void *made) {
    const scout_tensor *of = &fused_of(c)->tensors[whole];
    const replay_numbers want = replay_numbers_held(&c->want[whole], 0, of->type), got = {of->type, made, false};
    double error = INFINITY;
    const scout_answer answer =
        want.at ? replay_numbers_off(c->replay, &want, &got, of->bytes, &error, &c->why) : SCOUT_OK;
    c->worst = fmax(c->worst, error);
    return answer;
}

static scout_answer run_whole(comparison *c) {
    replay *r = c->replay;
    const scout_op *op = fused_of(c);
    const choice *chosen = &r->units[c->step->unit].choices[0];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    replay_memory_tensors(r, c->step, 1, NULL, 0, tensors);
    for (uint32_t t = 0; t < op->tensor_count && answer == SCOUT_OK; t++)
        if (op->tensors[t].role == SCOUT_OUTPUT || c->step->places[t].region == REPLAY_ACTIVATIONS)
            answer = replay_check_fill(r, &op->tensors[t], tensors[t], seed_of(c, (int)t), &c->why);
    replay_memory_tensors(r, c->step, 1, chosen, 0, tensors);
    if (answer == SCOUT_OK) answer = replay_check_run(r, op, chosen, tensors, &c->why);
    for (uint32_t t = 0; t < op->tensor_count && answer == SCOUT_OK; t++)
        if (op->tensors[t].role == SCOUT_OUTPUT) answer = look_at(c, (int)t, tensors[t]);
    return answer;
}

void replay_check_group(replay *r, const replay_step *s) {
    comparison c = {.replay = r, .step = s, .group = replay_group_of(r, s)};
    replay_unit *u = &r->units[s->unit];
    scout_answer answer = SCOUT_OK;
    if (replay_check_enough(u)) return;
    for (uint32_t t = 0; t < u->op.tensor_count; t++)
        if (u->op.tensors[t].role == SCOUT_OUTPUT) u->compared_bytes += u->op.tensors[t].bytes;
    for (int k = -1, n = 0; n < c.group->of->count && answer == SCOUT_OK; n++) {
        k = next_part(&c, k);
        answer = run_part(&c, k);
    }
    if (answer == SCOUT_OK) answer = run_whole(&c);
    if (answer == SCOUT_LOST) replay_note(r, answer, &c.why);
    if (answer == SCOUT_OK) {
        replay_check_seen(r, s->unit, c.worst);
        if (!(c.worst <= u->tolerance))
            answer = scout_say(&c.why, SCOUT_FAILED, "samples",
                               "what it makes differs from its parts' by %.2g of its norm, and %.2g is allowed",
                               c.worst, u->tolerance);
    }
    if (answer != SCOUT_OK) {
        (void)bench_status_of(answer, &c.why);
        replay_leave_out(u, &c.why);
    }
    for (int t = 0; t < SCOUT_MAX_TENSORS; t++) replay_hold_close(r, &c.want[t]);
}
