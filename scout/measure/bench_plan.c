/* Plans: a candidate's variant prepared on a set's tensors, its packed weights, and its recorded launches. */
#include "scout/measure/bench_internal.h"

#include "scout/terms/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- launching ---- */

static scout_answer launch(bench_plan *p, uint32_t copy, void *stream, scout_why *why) {
    bench_set *s = p->set;
    void *tensors[SCOUT_MAX_TENSORS];
    bench_copy_tensors(s, copy, tensors);
    const bench_buffer packed = p->pack ? bench_slab_at(&p->pack->copies, copy) : (bench_buffer){NULL, 0};
    if (p->pack) tensors[p->pack->tensor] = bench_data(&packed);
    const bench_buffer workspace = bench_workspace(s, p->needs.workspace_bytes);
    const scout_args args = {.size = sizeof args,
                             .tensors = tensors,
                             .workspace = p->needs.workspace_bytes ? bench_data(&workspace) : NULL,
                             .stream = stream};
    return p->candidate->launch(p->plan, &args, why);
}

static scout_answer forget(bench_plan *p, scout_forget what, uint32_t copy, void *stream, scout_why *why) {
    void *tensors[SCOUT_MAX_TENSORS];
    bench_copy_tensors(p->set, copy, tensors);
    return p->set->api->forget(p->set->device, what, p->set->op, tensors, stream, why);
}

/* In a graph a launch's place says the copy; without one the set's turn goes on. */
static uint32_t copy_of(const bench_launcher *l, uint32_t number) {
    bench_set *s = l->plan->set;
    return l->alone ? l->copy : l->plan->captured ? (l->first + number) % s->copies : s->turn++ % s->copies;
}

static scout_answer enqueue(void *context, uint32_t number, void *stream, scout_why *why) {
    const bench_launcher *l = context;
    const uint32_t copy = copy_of(l, number);
    const scout_answer answer = l->forgets ? forget(l->plan, l->what, copy, stream, why) : SCOUT_OK;
    return answer == SCOUT_OK && !l->idle ? launch(l->plan, copy, stream, why) : answer;
}

static scout_answer record(bench_plan *p, uint32_t launches, bench_launcher *launcher, scout_sequence **out,
                           scout_why *why) {
    bench_set *s = p->set;
    scout_answer answer = s->api->record(s->device, p->graph, launches, enqueue, launcher, out, why);
    if (answer == SCOUT_NO && p->captured && why) snprintf(why->code, sizeof why->code, "capture");
    return bench_note(s, answer);
}

/* Where a part of a rotation begins that runs alone. Another plan's part is elsewhere, but for what is in the cache
 * anyway: that begins at the last copy, which is watched. */
static uint32_t first_alone(const bench_plan *p, uint32_t launches) {
    if (launches >= p->set->copies) return 0;
    return p->set->cold ? p->window : p->set->copies - 1;
}

/* Where one begins that is played in turns with others: behind theirs, so that a copy comes again only after half
 * of the rotation at least. At multiples of its own length, so that there are few to record. */
static uint32_t first_in_turn(const bench_plan *p, uint32_t launches) {
    bench_set *s = p->set;
    if (!s->cold || launches == 0 || launches >= bench_plan_whole(p)) return first_alone(p, launches);
    const uint32_t at = (s->next + launches - 1) / launches * launches, first = at + launches > s->copies ? 0 : at;
    s->next = first + launches;
    return first;
}

/* The recorded sequence of so many launches from copy `first` on; the oldest makes room. */
static scout_answer sequence_of(bench_plan *p, uint32_t launches, uint32_t first, scout_sequence **out,
                                scout_why *why) {
    bench_set *s = p->set;
    for (uint32_t k = 0; k < p->sequence_count; k++) {
        if (p->sequences[k].launches != launches || p->sequences[k].first != first) continue;
        *out = p->sequences[k].recorded;
        return SCOUT_OK;
    }
    if (p->sequence_count == BENCH_SEQUENCES) {
        s->api->drop(s->device, p->sequences[0].recorded);
        memmove(&p->sequences[0], &p->sequences[1], (BENCH_SEQUENCES - 1) * sizeof p->sequences[0]);
        p->sequence_count--;
    }
    p->rotating.first = first;
    const scout_answer answer = record(p, launches, &p->rotating, out, why);
    if (answer == SCOUT_OK) p->sequences[p->sequence_count++] = (bench_sequence){launches, first, *out};
    return answer;
}

/* The first launches that are timed are a single one on copy 0: what is hopelessly slow is known by that, before a
 * rotation of hundreds of copies is recorded and run. */
enum { LOOKS = 2 };

static bool to_look(const bench_plan *p, uint32_t launches) {
    return launches == 1 && p->captured && p->set->copies > 1 && p->looks < LOOKS;
}

static scout_answer look(bench_plan *p, uint32_t repeats, double *seconds, scout_why *why) {
    bench_set *s = p->set;
    scout_answer answer = bench_plan_record_alone(p, why);
    if (answer == SCOUT_OK) answer = bench_note(s, s->api->run(s->device, p->single, repeats, seconds, why));
    if (answer != SCOUT_OK) return answer;
    p->look_s = p->looks++ > 0 ? fmin(p->look_s, seconds[0]) : seconds[0];
    return SCOUT_OK;
}

/* Rotations shall be as cold as the plateau of bandwidths, which memory reads in a fraction of a millisecond. Of a
 * kernel that takes longer that is 1 %, and the part of a rotation inside of an interval is cold enough. A
 * burst is 10 ms, which a rotation shall fit into even where launches beside cold copies are slower than the first
 * looks. */
static const double longest_rotation_s = 0.02, longest_in_burst_s = 0.007;

uint32_t bench_plan_whole(const bench_plan *p) {
    const uint32_t copies = p->set->copies;
    const double longest_s = p->set->burst ? longest_in_burst_s : longest_rotation_s;
    return p->captured && p->set->cold && !(p->look_s * copies > longest_s) ? copies : 1;
}

scout_answer bench_plan_run(bench_plan *p, uint32_t launches, uint32_t repeats, double *seconds, scout_why *why) {
    bench_set *s = p->set;
    scout_sequence *sequence = NULL;
    if (s->lost) return scout_say(why, SCOUT_LOST, "poisoned", "the device was lost before");
    if (launches == 0) launches = 1;
    if (to_look(p, launches)) return look(p, repeats, seconds, why);
    /* A graph that ended within a rotation would begin the next run with copies that it has just used. A part of one is
     * asked for where many plans take turns: each has copies of its own, and the others' launches are in between. */
    const uint32_t whole = bench_plan_whole(p), over = launches < whole ? 0 : launches % whole,
                   real = over ? launches + whole - over : launches;
    scout_answer answer = sequence_of(p, real, first_alone(p, real), &sequence, why);
    if (answer != SCOUT_OK) return answer;
    p->timed = true;
    answer = bench_note(s, s->api->run(s->device, sequence, repeats, seconds, why));
    if (real != launches)
        for (uint32_t k = 0; answer == SCOUT_OK && k < repeats; k++) seconds[k] *= (double)launches / real;
    return answer;
}

scout_answer bench_plan_recorded(bench_plan *p, uint32_t launches, scout_sequence **out, scout_why *why) {
    if (p->set->lost) return scout_say(why, SCOUT_LOST, "poisoned", "the device was lost before");
    p->timed = true;
    return sequence_of(p, launches, first_in_turn(p, launches), out, why);
}

scout_answer bench_plan_record_forgotten(bench_plan *p, scout_forget what, uint32_t launches, bool idle,
                                         scout_sequence **out, scout_why *why) {
    if (p->set->lost) return scout_say(why, SCOUT_LOST, "poisoned", "the device was lost before");
    bench_launcher launcher = {.plan = p, .forgets = true, .what = what, .idle = idle};
    launcher.first = first_in_turn(p, launches);
    p->timed = true;
    return record(p, launches, &launcher, out, why); /* a graph: it is called within */
}

typedef struct forgotten {
    bench_plan *plan;
    double *behind_s, *usual_s;
} forgotten;

static scout_answer enqueue_forgotten(void *context, uint32_t number, void *stream, scout_why *why) {
    const forgotten *f = context;
    bench_set *s = f->plan->set;
    const bool behind = number % 2 == 0;
    const uint32_t copy = s->turn++ % s->copies;
    scout_answer answer = behind ? forget(f->plan, SCOUT_FORGET_TENSORS, copy, stream, why) : SCOUT_OK;
    const double from = s->api->now(s->device);
    if (answer == SCOUT_OK) answer = launch(f->plan, copy, stream, why);
    (behind ? f->behind_s : f->usual_s)[number / 2] = s->api->now(s->device) - from;
    return answer;
}

scout_answer bench_plan_time_forgotten(bench_plan *p, uint32_t pairs, double *behind_s, double *usual_s,
                                       scout_why *why) {
    bench_set *s = p->set;
    forgotten f = {p, behind_s, usual_s};
    scout_sequence *sequence = NULL;
    double seconds;
    if (s->lost) return scout_say(why, SCOUT_LOST, "poisoned", "the device was lost before");
    p->timed = true;
    scout_answer answer = s->api->record(s->device, 0, 2 * pairs, enqueue_forgotten, &f, &sequence, why);
    if (answer == SCOUT_OK) answer = bench_note(s, s->api->run(s->device, sequence, 1, &seconds, why));
    if (sequence && !s->lost) s->api->drop(s->device, sequence);
    return answer;
}

/* A library may load a kernel at its first launch, which cannot be part of a graph: then it is launched once outside of
 * one, and recorded again. */
scout_answer bench_plan_record_alone(bench_plan *p, scout_why *why) {
    bench_set *s = p->set;
    scout_sequence *once = NULL;
    scout_why ignored;
    double seconds = 0;
    if (p->single) return SCOUT_OK;
    const scout_answer answer = record(p, 1, &p->alone, &p->single, why);
    if (!p->captured || (answer != SCOUT_NO && answer != SCOUT_FAILED)) return answer;
    if (s->api->record(s->device, 0, 1, enqueue, &p->alone, &once, &ignored) != SCOUT_OK) return answer;
    const scout_answer ran = bench_note(s, s->api->run(s->device, once, 1, &seconds, &ignored));
    if (ran == SCOUT_LOST) return scout_say(why, SCOUT_LOST, "poisoned", "its first launch lost the device");
    s->api->drop(s->device, once);
    return ran == SCOUT_OK ? record(p, 1, &p->alone, &p->single, why) : answer;
}

scout_answer bench_plan_run_alone(bench_plan *p, scout_why *why) {
    bench_set *s = p->set;
    double seconds = 0;
    const scout_answer answer = bench_plan_record_alone(p, why);
    return answer == SCOUT_OK ? bench_note(s, s->api->run(s->device, p->single, 1, &seconds, why)) : answer;
}

scout_answer bench_plan_run_last(bench_plan *p, scout_why *why) {
    bench_set *s = p->set;
    bench_launcher last = {.plan = p, .alone = true, .copy = s->copies - 1};
    scout_sequence *sequence = NULL;
    double seconds = 0;
    scout_answer answer = record(p, 1, &last, &sequence, why);
    if (answer == SCOUT_OK) answer = bench_note(s, s->api->run(s->device, sequence, 1, &seconds, why));
    if (sequence && !s->lost) s->api->drop(s->device, sequence);
    return answer;
}

static scout_answer subject_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    return bench_plan_run(context, launches, batches, seconds, why);
}

static uint32_t subject_whole(void *context) { return bench_plan_whole(context); }

static scout_answer subject_record(void *context, uint32_t launches, scout_sequence **out, scout_why *why) {
    return bench_plan_recorded(context, launches, out, why);
}

timing_subject bench_plan_subject(bench_plan *p) {
    return (timing_subject){.context = p, .run = subject_run, .whole = subject_whole, .record = subject_record};
}

/* ---- packing ---- */

typedef struct packing {
    bench_plan *plan;
    uint32_t first; /* copy */
} packing;

static bool packs_tensors(const scout_candidate *c) { return SCOUT_HAS(c, pack_tensors) && c->pack_tensors; }

static scout_answer enqueue_pack(void *context, uint32_t number, void *stream, scout_why *why) {
    const packing *work = context;
    bench_plan *p = work->plan;
    const uint32_t copy = work->first + number;
    const bench_buffer to = bench_slab_at(&p->pack->copies, copy);
    void *tensors[SCOUT_MAX_TENSORS], *packed = bench_data(&to);
    bench_copy_tensors(p->set, copy, tensors);
    if (packs_tensors(p->candidate)) return p->candidate->pack_tensors(p->plan, tensors, packed, stream, why);
    return p->candidate->pack(p->plan, tensors[p->pack->tensor], packed, stream, why);
}

/* Weights side by side, and how long they took until they were done. Poisoned before, as one, and what lay between them
 * written again: what a plan leaves out is the same each time. */
static scout_answer pack_some(bench_plan *p, uint32_t first, uint32_t count, double *seconds, scout_why *why) {
    bench_set *s = p->set;
    packing work = {p, first};
    scout_sequence *sequence = NULL;
    double ignored = 0;
    const bench_buffer to = bench_slab_at(&p->pack->copies, first);
    scout_answer answer = bench_poison(s, &to, p->pack->copies.stride * (count - 1) + p->pack->bytes, why);
    if (answer == SCOUT_OK && count > 1) answer = bench_pack_arm(s, p->pack, why);
    if (answer == SCOUT_OK) answer = s->api->record(s->device, 0, count, enqueue_pack, &work, &sequence, why);
    const double start = s->api->now(s->device);
    if (answer == SCOUT_OK) answer = s->api->run(s->device, sequence, 1, &ignored, why);
    *seconds = s->api->now(s->device) - start;
    bench_note(s, answer);
    if (sequence && !s->lost) s->api->drop(s->device, sequence);
    return answer;
}

scout_answer bench_pack_again(bench_plan *p, uint32_t copies, scout_why *why) {
    bench_set *s = p->set;
    bench_pack *pack = p->pack;
    double times[BENCH_PACK_TIMES], together = 0;
    if (copies > pack->copies.count) copies = pack->copies.count;
    const uint32_t alone = copies < BENCH_PACK_TIMES ? copies : BENCH_PACK_TIMES;
    scout_answer answer = SCOUT_OK;
    for (uint32_t c = 0; c < alone && answer == SCOUT_OK; c++) answer = pack_some(p, c, 1, &times[c], why);
    if (answer == SCOUT_OK && copies > alone) answer = pack_some(p, alone, copies - alone, &together, why);
    if (answer != SCOUT_OK) return answer;
    if (copies == pack->copies.count || pack->seconds == 0) pack->seconds = stats_median(times, alone);
    const bench_buffer first = bench_slab_at(&pack->copies, 0);
    return bench_note(s, s->api->checksum(s->device, bench_data(&first), pack->bytes, &pack->sum, why));
}

static void drop_pack(bench_set *s, bench_pack *pack) {
    if (!pack || --pack->users > 0) return;
    for (bench_pack **at = &s->packs; *at; at = &(*at)->next) {
        if (*at != pack) continue;
        *at = pack->next;
        break;
    }
    bench_slab_free(s, &pack->copies);
    free(pack);
}

/* Room for all copies, once copy 0 is known to be like no other. */
static scout_answer complete_pack(bench_plan *p, uint32_t count, scout_why *why) {
    bench_set *s = p->set;
    bench_pack *pack = p->pack;
    if (count > 1) {
        bench_slab_free(s, &pack->copies);
        const scout_answer answer = bench_slab_new(s, &pack->copies, pack->bytes, count, why);
        if (answer != SCOUT_OK) return answer;
    }
    const scout_answer armed = bench_pack_arm(s, pack, why);
    if (armed != SCOUT_OK) return armed;
    pack->next = s->packs;
    s->packs = pack;
    return bench_pack_again(p, count, why);
}

static scout_answer pack_weights(bench_plan *p, scout_why *why) {
    bench_set *s = p->set;
    const uint32_t tensor = p->needs.packs - 1;
    if (tensor >= s->op->tensor_count || !s->tensors[tensor].input ||
        (!p->candidate->pack && !packs_tensors(p->candidate)))
        return scout_say(why, SCOUT_FAILED, "error",
                         "it asks to pack a tensor that is not an input, or has no pack function");
    const uint32_t count = s->tensors[tensor].copies.count;
    bench_pack *pack = calloc(1, sizeof *pack);
    if (!pack) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    *pack = (bench_pack){.candidate = p->candidate, .tensor = tensor, .bytes = p->needs.pack_bytes, .users = 1};
    p->pack = pack;
    scout_answer answer = bench_slab_new(s, &pack->copies, pack->bytes, 1, why);
    if (answer == SCOUT_OK) answer = bench_pack_arm(s, pack, why);
    if (answer != SCOUT_OK) return answer;
    if ((answer = bench_pack_again(p, 1, why)) != SCOUT_OK) return answer;
    for (bench_pack *other = s->packs; other; other = other->next) {
        if (other->candidate != p->candidate || other->tensor != tensor || other->bytes != pack->bytes ||
            other->sum != pack->sum)
            continue;
        drop_pack(s, pack);
        p->pack = other;
        other->users++;
        return SCOUT_OK;
    }
    return complete_pack(p, count, why);
}

/* ---- plans ---- */

/* A plan that keeps most of the device's memory to itself leaves none for its rivals. */
static scout_answer check_greed(bench_set *s, uint64_t free_before, scout_why *why) {
    uint64_t free_now = 0, total = 0;
    const scout_answer answer = bench_note(s, s->api->memory(s->device, &free_now, &total, why));
    if (answer != SCOUT_OK || free_now >= free_before) return answer;
    const uint64_t taken = free_before - free_now;
    if (taken <= free_before / 2 + s->op->workspace_limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO_MEMORY, "memory", "it took %.1f GB of the %.1f GB that were free",
                     (double)taken / 1e9, (double)free_before / 1e9);
}

static scout_answer prepare(bench_plan *p, const int64_t *values, scout_why *why) {
    bench_set *s = p->set;
    uint64_t free_bytes = 0, total = 0;
    p->needs.size = sizeof p->needs;
    scout_answer answer = SCOUT_OK;
    if (!p->plan) {
        answer = bench_note(s, s->api->memory(s->device, &free_bytes, &total, why));
        if (answer == SCOUT_OK)
            answer = bench_note(s, scout_prepare(p->candidate, s->op, s->device, values, &p->plan, &p->needs, why));
        if (answer != SCOUT_OK) return answer;
        if (!p->plan) return scout_say(why, SCOUT_FAILED, "error", "prepare made no plan");
        if ((answer = check_greed(s, free_bytes, why)) != SCOUT_OK) return answer;
    }
    if (p->needs.workspace_bytes > s->op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "it asks for %.1f MB of workspace, and %.1f MB are allowed",
                         (double)p->needs.workspace_bytes / 1e6, (double)s->op->workspace_limit / 1e6);
    if (p->needs.workspace_bytes > 0) answer = bench_need_workspace(s, p->needs.workspace_bytes, why);
    return answer == SCOUT_OK && p->needs.packs > 0 ? pack_weights(p, why) : answer;
}

bench_plan *bench_plan_new(bench_set *s, const scout_candidate *candidate, const int64_t *values, bool graph,
                           bench_kept *kept, scout_answer *answer, scout_why *why) {
    bench_plan *p = calloc(1, sizeof *p);
    if (!p) {
        *answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
        return NULL;
    }
    p->set = s;
    p->candidate = candidate;
    if (kept) {
        p->plan = kept->plan;
        p->needs = kept->needs;
        *kept = (bench_kept){.plan = NULL};
    }
    p->graph = graph;
    p->captured = graph && s->api->has_graphs;
    p->rotating = (bench_launcher){.plan = p};
    p->window = s->plan_count++ * BENCH_WINDOW;
    p->alone = (bench_launcher){.plan = p, .alone = true};
    p->next = s->plans;
    s->plans = p;
    *answer = prepare(p, values, why);
    if (*answer == SCOUT_OK) return p;
    bench_plan_free(p);
    return NULL;
}

bench_kept bench_plan_keep(bench_plan *p) {
    const bench_kept kept = {p->plan, p->needs};
    p->plan = NULL;
    bench_plan_free(p);
    return kept;
}

void bench_plan_free(bench_plan *p) {
    if (!p) return;
    bench_set *s = p->set;
    for (uint32_t k = 0; !s->lost && k < p->sequence_count; k++) s->api->drop(s->device, p->sequences[k].recorded);
    if (p->single && !s->lost) s->api->drop(s->device, p->single);
    for (bench_plan **at = &s->plans; *at; at = &(*at)->next) {
        if (*at != p) continue;
        *at = p->next;
        break;
    }
    drop_pack(s, p->pack);
    if (p->plan && !s->lost) scout_destroy(p->candidate, p->plan);
    free(p);
}

double bench_plan_pack_s(const bench_plan *p) { return p->pack ? p->pack->seconds : 0; }
const scout_plan_needs *bench_plan_needs(const bench_plan *p) { return &p->needs; }

void bench_plan_made_of(bench_plan *p, scout_composition *out) {
    const scout_device_api *api = p->set->api;
    scout_why ignored;
    *out = (scout_composition){.size = sizeof *out};
    const bool can = p->captured && p->single && SCOUT_HAS(api, made_of) && api->made_of;
    if (!can || bench_note(p->set, api->made_of(p->set->device, p->single, out, &ignored)) != SCOUT_OK) out->size = 0;
}

int bench_plan_describe(const bench_plan *p, char *json, size_t room) {
    if (room > 0) json[0] = 0;
    return scout_describe(p->candidate, p->plan, json, room);
}
