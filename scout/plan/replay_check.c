/* Holds what a plan makes of an occurrence against what the default makes of it, on the same numbers and at the places
 * that they have in the run. What later steps overwrite is looked at before they run. */
#include "common/mix.h"
#include "scout/plan/replay_internal.h"

#include <math.h>

bool replay_check_enough(const replay_unit *u) { return u->compared_bytes >= (uint64_t)128 << 20; }

/* ---- one launch ---- */

typedef struct alone {
    replay *replay;
    const choice *choice;
    void *const *tensors;
} alone;

static scout_answer enqueue(void *context, uint32_t launch, void *stream, scout_why *why) {
    const alone *a = context;
    (void)launch;
    return replay_launch_on(a->replay, a->choice, a->tensors, stream, why);
}

scout_answer replay_check_run(replay *r, const scout_op *op, const choice *c, void *const *tensors, scout_why *why) {
    alone a = {r, c, tensors};
    scout_sequence *sequence = NULL;
    double seconds = 0;
    replay_tell(r, c, "verify", fmin(30 + op->flops / 2e9 + (op->bytes_read + op->bytes_written) / 2e8, 600));
    scout_answer answer = r->api->record(r->device, 0, 1, enqueue, &a, &sequence, why);
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, &seconds, why);
    if (sequence && answer != SCOUT_LOST) r->api->drop(r->device, sequence);
    return answer;
}

scout_answer replay_check_fill(replay *r, const scout_tensor *like, void *to, uint64_t seed, scout_why *why) {
    const uint32_t how = bench_fill(like, &seed);
    if (like->bytes == 0) return SCOUT_OK;
    if (like->role == SCOUT_OUTPUT)
        return r->api->fill(r->device, to, like->bytes, SCOUT_NONE, SCOUT_FILL_BYTE, 0xff, why);
    return r->api->fill(r->device, to, like->bytes, like->type, how, seed, why);
}

/* ---- one step ---- */

static scout_answer prepare(replay *r, const replay_step *s, int order, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    replay_memory_tensors(r, s, order, NULL, 0, tensors);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        const uint64_t seed = mix_bits(r->pass.seed + (uint64_t)s->occurrence * SCOUT_MAX_TENSORS + t);
        if (u->op.tensors[t].role == SCOUT_OUTPUT || s->places[t].region == REPLAY_ACTIVATIONS)
            answer = replay_check_fill(r, &u->op.tensors[t], tensors[t], seed, why);
    }
    return answer;
}

static scout_answer run_alone(replay *r, const replay_step *s, int order, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    const choice *c = &u->choices[order == 1 ? u->choice_of[1] : 0];
    void *tensors[SCOUT_MAX_TENSORS];
    const scout_answer answer = prepare(r, s, order, why);
    replay_memory_tensors(r, s, order, c, 0, tensors);
    return answer == SCOUT_OK ? replay_check_run(r, &u->op, c, tensors, why) : answer;
}

static uint64_t output_bytes(const replay_unit *u) {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < u->op.tensor_count; t++)
        if (u->op.tensors[t].role == SCOUT_OUTPUT) sum += replay_held_bytes(u->op.tensors[t].bytes);
    return sum;
}

/* All outputs one behind the other. */
static scout_answer hold(replay *r, const replay_step *s, int order, replay_held *to, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    uint64_t at = 0;
    replay_memory_tensors(r, s, order, NULL, 0, tensors);
    scout_answer answer = replay_hold_open(r, output_bytes(u), to, why);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        if (u->op.tensors[t].role != SCOUT_OUTPUT) continue;
        answer = replay_hold(r, to, at, tensors[t], u->op.tensors[t].bytes, why);
        at += replay_held_bytes(u->op.tensors[t].bytes);
    }
    return answer;
}

/* How far that output is off that is furthest. */
static scout_answer worst_of(replay *r, const replay_step *s, const replay_held *want, double *worst, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    uint64_t at = 0;
    replay_memory_tensors(r, s, 1, NULL, 0, tensors);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        const scout_tensor *of = &u->op.tensors[t];
        double error = 0;
        if (of->role != SCOUT_OUTPUT) continue;
        const replay_numbers wanted = replay_numbers_held(want, at, of->type), got = {of->type, tensors[t], false};
        answer = replay_numbers_off(r, &wanted, &got, of->bytes, &error, why);
        *worst = fmax(*worst, error);
        at += replay_held_bytes(of->bytes);
    }
    return answer;
}

void replay_check_seen(replay *r, int unit, double error) {
    const double relative = error / fmax(r->units[unit].tolerance, 1e-300);
    if (r->seen.compared++ > 0 && !(relative > r->seen.relative)) return;
    r->seen.worst = unit;
    r->seen.error = error;
    r->seen.relative = relative;
}

/* The best is the default from here on. */
static void wane(replay_unit *u, const char *code, const char *text) {
    u->choice_of[1] = 0;
    scout_say(&u->wanes, SCOUT_FAILED, code, "%s", text);
}

static void compare(replay *r, const replay_step *s) {
    replay_unit *u = &r->units[s->unit];
    replay_held want = {.at = NULL};
    scout_why why = {.code = ""};
    double error = 0;
    char text[160];
    scout_answer answer = hold(r, s, replay_alone(r, s), &want, &why);
    if (answer == SCOUT_OK) answer = run_alone(r, s, 1, &why);
    if (answer == SCOUT_OK) answer = worst_of(r, s, &want, &error, &why);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    replay_hold_close(r, &want);
    if (answer != SCOUT_OK) {
        (void)bench_status_of(answer, &why);
        wane(u, why.code, why.text);
        return;
    }
    replay_check_seen(r, s->unit, error);
    if (error <= u->tolerance) return;
    snprintf(text, sizeof text, "what it makes differs from the default's by %.2g of its norm, and %.2g is allowed",
             error, u->tolerance);
    wane(u, "samples", text);
}

static void check_step(replay *r, const replay_step *s) {
    replay_unit *u = &r->units[s->unit];
    scout_why why = {.code = ""};
    const bool two = u->choice_of[1] == 1 && s->planned && !replay_check_enough(u);
    if (u->out || (u->checked && !two)) return;
    u->checked = true;
    const scout_answer answer = run_alone(r, s, replay_alone(r, s), &why);
    if (answer != SCOUT_OK) {
        if (answer == SCOUT_LOST) replay_note(r, answer, &why);
        (void)bench_status_of(answer, &why);
        replay_leave_out(u, &why);
        return;
    }
    if (!two) return;
    u->compared_bytes += output_bytes(u);
    compare(r, s);
}

void replay_check(replay *r) {
    r->seen.compared = 0;
    for (int k = 0; k < r->step_count && r->answer == SCOUT_OK; k++) {
        const replay_step *s = &r->steps[k];
        if (!replay_takes_part(r, s)) continue;
        if (replay_group_of(r, s))
            replay_check_group(r, s);
        else
            check_step(r, s);
    }
}

void replay_count_nonfinite(replay *r, const replay_step *s) {
    const replay_unit *u = &r->units[s->unit];
    void *tensors[SCOUT_MAX_TENSORS];
    scout_answer answer = SCOUT_OK;
    scout_why why;
    r->nonfinite = 0;
    replay_memory_tensors(r, s, 0, NULL, 0, tensors);
    for (uint32_t t = 0; t < u->op.tensor_count && answer == SCOUT_OK; t++) {
        const scout_tensor *of = &u->op.tensors[t];
        const replay_numbers made = {of->type, tensors[t], false};
        scout_distance to_itself = {.size = sizeof to_itself};
        if (of->role != SCOUT_OUTPUT) continue;
        answer = replay_numbers_distance(r, &made, &made, of->bytes, &to_itself, &why);
        r->nonfinite += (int64_t)to_itself.infinite;
    }
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
}

/* ---- what a run ends in ---- */

static const uint64_t most_ends = (uint64_t)1 << 30; /* bytes that are compared at most: of a larger one its first */

/* Of numbers that are places one more or less is as wrong as any other. */
static bool is_float(dtype type) {
    return type == DTYPE_FP32 || type == DTYPE_FP16 || type == DTYPE_BF16 || type == DTYPE_FP64;
}

static bool is_end(const replay *r, int tensor) {
    const operation_tensor *t = &replay_flow(r, 0)->tensors[tensor];
    return t->bytes > 0 && t->kept && t->source < 0 && is_float(t->type) && r->memory.made[tensor].at >= 0;
}

uint64_t replay_check_end_bytes(const replay *r, int tensor, uint64_t at) {
    const uint64_t bytes = (uint64_t)replay_flow(r, 0)->tensors[tensor].bytes, left = most_ends - at;
    return bytes < left ? bytes : left;
}

int replay_check_next_end(const replay *r, int tensor, uint64_t *at) {
    const operation_flow *f = replay_flow(r, 0);
    if (tensor >= 0) *at += replay_held_bytes(replay_check_end_bytes(r, tensor, *at));
    for (int k = tensor + 1; k < f->tensor_count && *at < most_ends; k++)
        if (is_end(r, k)) return k;
    return -1;
}

static replay_numbers end_of(const replay *r, int tensor, int lane) {
    const operation_tensor *t = &replay_flow(r, 0)->tensors[tensor];
    return (replay_numbers){(uint32_t)t->type, replay_memory_at(r, &r->memory.made[tensor], lane, 0), false};
}

bool replay_check_hold_ends(replay *r, replay_held *to) {
    uint64_t bytes = 0, at = 0;
    scout_why why;
    for (int k = replay_check_next_end(r, -1, &bytes); k >= 0;) k = replay_check_next_end(r, k, &bytes);
    scout_answer answer = replay_hold_open(r, bytes, to, &why);
    for (int k = replay_check_next_end(r, -1, &at); k >= 0 && answer == SCOUT_OK; k = replay_check_next_end(r, k, &at))
        answer = replay_hold(r, to, at, end_of(r, k, 0).at, replay_check_end_bytes(r, k, at), &why);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    return answer == SCOUT_OK;
}

replay_numbers replay_check_end_of(const replay *r, int tensor, int lane, const replay_held *first, uint64_t at) {
    return lane == 0 ? replay_numbers_held(first, at, (uint32_t)replay_flow(r, 0)->tensors[tensor].type)
                     : end_of(r, tensor, lane);
}

void replay_check_end(replay *r, const replay_held *first) {
    uint64_t at = 0;
    r->ends.compared = 0;
    r->ends.bytes = r->ends.all = 0;
    for (int k = 0; k < replay_flow(r, 0)->tensor_count; k++)
        if (is_end(r, k)) r->ends.all += (uint64_t)replay_flow(r, 0)->tensors[k].bytes;
    for (int k = replay_check_next_end(r, -1, &at); k >= 0; k = replay_check_next_end(r, k, &at)) {
        const replay_numbers want = replay_check_end_of(r, k, 0, first, at), got = end_of(r, k, 1);
        const uint64_t bytes = replay_check_end_bytes(r, k, at);
        scout_why why;
        double error = 0;
        const scout_answer answer = replay_numbers_off(r, &want, &got, bytes, &error, &why);
        if (answer == SCOUT_LOST) replay_note(r, answer, &why);
        if (answer != SCOUT_OK) {
            r->ends.compared = 0;
            return;
        }
        r->ends.bytes += bytes;
        if (r->ends.compared++ > 0 && !(error > r->ends.error)) continue;
        r->ends.worst = k;
        r->ends.error = error;
    }
}
