/* Keeping and comparing whole outputs. One wrong element is found anywhere, since every one is compared. */
#include "scout/cpu/reference/cpu_whole.h"

#include "scout/cpu/device/cpu_cover.h"
#include "scout/cpu/device/cpu_team.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 };

typedef struct right { /* what an output should be */
    uint32_t tensor, type;
    int64_t count;
    double *want;
    float *spread;
} right;

struct scout_check {
    right outputs[SCOUT_MAX_TENSORS];
    uint32_t output_count;
};

/* --- computing --- */

typedef struct computing {
    const cpu_whole *kind;
    const scout_op *op;
    void *const *tensors;
    const void *state;
    right *to;
    int64_t grain;
    size_t scratch;
    scout_answer *answers; /* one a thread */
} computing;

/* Pieces of whole grains, so that their spreads need little room. */
static scout_answer compute_piece(const computing *w, int64_t from, int64_t count, double *room) {
    double *const spread = room + w->scratch;
    const scout_answer answer =
        w->kind->compute(w->state, w->op, w->tensors, w->to->tensor, from, count, w->to->want + from, spread, room);
    for (int64_t k = 0; answer == SCOUT_OK && k < count; k++) w->to->spread[from + k] = (float)spread[k];
    return answer;
}

static void compute_share(void *context, int thread, int threads) {
    const computing *w = context;
    const int64_t piece = w->grain > PIECE ? w->grain : PIECE / w->grain * w->grain;
    const int64_t pieces = (w->to->count + piece - 1) / piece;
    double *room = malloc((w->scratch + (size_t)piece) * sizeof *room);
    int64_t begin, end;
    w->answers[thread] = room ? SCOUT_OK : SCOUT_NO_MEMORY;
    cpu_team_share(pieces, thread, threads, &begin, &end);
    for (int64_t k = begin; k < end && w->answers[thread] == SCOUT_OK; k++) {
        const int64_t from = k * piece, left = w->to->count - from;
        w->answers[thread] = compute_piece(w, from, left < piece ? left : piece, room);
    }
    free(room);
}

static scout_answer compute_output(const cpu_whole *kind, const scout_op *op, void *const *tensors, const void *state,
                                   right *to) {
    const int threads = cpu_team_size();
    scout_answer answer = SCOUT_OK;
    computing w = {.kind = kind, .op = op, .tensors = tensors, .state = state, .to = to};
    w.grain = kind->grain(state, op, to->tensor);
    w.scratch = kind->scratch ? kind->scratch(state, op) : 0;
    to->want = calloc((size_t)to->count, sizeof *to->want);
    to->spread = calloc((size_t)to->count, sizeof *to->spread);
    w.answers = calloc((size_t)threads, sizeof *w.answers);
    if (!to->want || !to->spread || !w.answers) {
        free(w.answers);
        return SCOUT_NO_MEMORY;
    }
    cpu_team_run(compute_share, &w);
    for (int k = 0; k < threads && answer == SCOUT_OK; k++) answer = w.answers[k];
    free(w.answers);
    return answer;
}

/* How many elements its storage has; outputs lie densely. */
static int64_t stored(const scout_tensor *t) { return op_elements(t); }

scout_answer cpu_whole_begin(const cpu_whole *kind, const scout_op *op, void *const *tensors, scout_check **check,
                             scout_why *why) {
    void *state = NULL;
    *check = NULL;
    scout_answer answer = kind->open ? kind->open(op, &state, why) : SCOUT_OK;
    if (answer != SCOUT_OK) return answer;
    scout_check *c = calloc(1, sizeof *c);
    answer = c ? SCOUT_OK : SCOUT_NO_MEMORY;
    for (uint32_t k = 0; k < op->tensor_count && answer == SCOUT_OK; k++) {
        const scout_tensor *t = &op->tensors[k];
        if (t->role != SCOUT_OUTPUT) continue;
        right *to = &c->outputs[c->output_count++];
        *to = (right){.tensor = k, .type = t->type, .count = stored(t)};
        answer = compute_output(kind, op, tensors, state, to);
    }
    free(state);
    if (answer == SCOUT_OK) {
        *check = c;
        return answer;
    }
    cpu_whole_end(c);
    if (answer == SCOUT_NO_MEMORY) return scout_say(why, answer, "memory", "no memory for the reference");
    return scout_say(why, answer, "error", "the reference cannot compute this operation");
}

void cpu_whole_end(scout_check *check) {
    for (uint32_t k = 0; check && k < check->output_count; k++) {
        free(check->outputs[k].want);
        free(check->outputs[k].spread);
    }
    free(check);
}

/* --- comparing --- */

typedef struct comparing {
    const right *of;
    const void *output;
    double tolerance;
    scout_verdict *parts; /* one a thread */
} comparing;

static void compare_share(void *context, int thread, int threads) {
    const comparing *w = context;
    scout_verdict *v = &w->parts[thread];
    double got[PIECE];
    int64_t from, to;
    cpu_team_share(w->of->count, thread, threads, &from, &to);
    for (int64_t at = from; at < to; at += PIECE) {
        const int64_t count = to - at < PIECE ? to - at : PIECE;
        cpu_number_load(w->of->type, w->output, at, 1, count, got);
        for (int64_t k = 0; k < count; k++) {
            const double want = w->of->want[at + k];
            const double error = cpu_cover_sample_error(got[k], want, (double)w->of->spread[at + k]);
            v->compared++;
            if (error > w->tolerance) v->wrong++;
            if (v->compared > 1 && error <= v->worst) continue;
            v->worst = error, v->at = (uint64_t)(at + k), v->got = got[k], v->want = want;
        }
    }
}

static scout_answer compare(const right *of, const void *output, double tolerance, scout_verdict *verdict,
                            scout_why *why) {
    const int threads = cpu_team_size();
    const uint32_t size = verdict->size;
    scout_verdict all = {.size = size};
    comparing w = {of, output, tolerance, calloc((size_t)threads, sizeof(scout_verdict))};
    if (!w.parts) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory to compare an output");
    cpu_team_run(compare_share, &w);
    for (int k = 0; k < threads; k++) {
        const scout_verdict *part = &w.parts[k];
        if (part->compared > 0 && (all.compared == 0 || part->worst > all.worst))
            all.worst = part->worst, all.at = part->at, all.got = part->got, all.want = part->want;
        all.compared += part->compared, all.wrong += part->wrong;
    }
    free(w.parts);
    memcpy(verdict, &all, size < sizeof all ? size : sizeof all);
    return SCOUT_OK;
}

scout_answer cpu_whole_compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                               scout_why *why) {
    return compare(&check->outputs[0], output, tolerance, verdict, why);
}

scout_answer cpu_whole_compare_at(scout_check *check, uint32_t tensor, const void *output, double tolerance,
                                  scout_verdict *verdict, scout_why *why) {
    for (uint32_t k = 0; k < check->output_count; k++)
        if (check->outputs[k].tensor == tensor) return compare(&check->outputs[k], output, tolerance, verdict, why);
    return scout_say(why, SCOUT_FAILED, "error", "tensor %u is no output", tensor);
}
