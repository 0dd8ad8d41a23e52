/* The check of a plan: run alone on poisoned outputs, it must write all of them rightly and nothing else. */
#include "scout/measure/bench_internal.h"

#include <math.h>
#include <string.h>

row_status bench_status_of(scout_answer answer, scout_why *why) {
    static const struct {
        row_status status;
        const char *code, *text;
    } rows[] = {
        [SCOUT_OK] = {ROW_OK, "", ""},
        [SCOUT_NO] = {ROW_UNSUPPORTED, "feature", "not for this operation"},
        [SCOUT_NO_MEMORY] = {ROW_ERROR, "memory", "not enough memory"},
        [SCOUT_FAILED] = {ROW_ERROR, "error", "a call failed"},
        [SCOUT_LOST] = {ROW_CRASHED, "poisoned", "left the device unusable"},
    };
    const size_t known = sizeof rows / sizeof *rows;
    const size_t k = (unsigned)answer < known ? (size_t)answer : (size_t)SCOUT_FAILED;
    if (k == SCOUT_OK) return ROW_OK;
    why->code[sizeof why->code - 1] = why->text[sizeof why->text - 1] = 0; /* a plugin may have filled them */
    if (!reason_known(why->code)) snprintf(why->code, sizeof why->code, "%s", rows[k].code);
    if (!why->text[0]) snprintf(why->text, sizeof why->text, "%s", rows[k].text);
    return rows[k].status;
}

/* One step of the check; what it finds wrong goes to the verdict. */
typedef struct verify {
    bench_plan *plan;
    bench_set *set;
    bench_verdict *verdict;
    bool damaged; /* inputs or canaries: they must be made anew */
} verify;

/* What is wrong is told rather than what is imprecise. */
static void judge(verify *v, const char *code, const char *text) {
    const bool imprecise = strcmp(v->verdict->why.code, "precision") == 0;
    if (v->verdict->status != ROW_OK && !imprecise) return;
    v->verdict->status = ROW_WRONG;
    scout_say(&v->verdict->why, SCOUT_FAILED, code, "%s", text);
}

static scout_answer sum_inputs(verify *v, bool before) {
    bench_set *s = v->set;
    scout_why *why = &v->verdict->why;
    for (uint32_t k = 0; k < s->op->tensor_count; k++) {
        bench_tensor *t = &s->tensors[k];
        if (!t->input || (before && t->summed)) continue;
        uint64_t sum = 0;
        const bench_buffer at = bench_slab_at(&t->copies, 0);
        const scout_answer answer =
            bench_note(s, s->api->checksum(s->device, bench_data(&at), s->op->tensors[k].bytes, &sum, why));
        if (answer != SCOUT_OK) return answer;
        if (before) {
            t->summed = true;
            t->sum = sum;
        } else if (sum != t->sum) {
            v->damaged = true;
            judge(v, "input_changed", "it changed one of its inputs");
        }
    }
    const bench_pack *pack = v->plan->pack;
    if (!pack || before) return SCOUT_OK;
    uint64_t sum = 0;
    const bench_buffer at = bench_slab_at(&pack->copies, 0);
    const scout_answer answer = bench_note(s, s->api->checksum(s->device, bench_data(&at), pack->bytes, &sum, why));
    if (answer != SCOUT_OK || sum == pack->sum) return answer;
    v->damaged = true;
    judge(v, "input_changed", "it changed its packed weight");
    return SCOUT_OK;
}

static scout_answer inspect(verify *v, const bench_buffer *b, uint64_t bytes, const char *what) {
    bool whole = true;
    const scout_answer answer = bench_inspect(v->set, b, bytes, &whole, &v->verdict->why);
    if (answer != SCOUT_OK || whole) return answer;
    char text[96];
    snprintf(text, sizeof text, "it wrote outside of its tensors: beside %.40s", what);
    v->damaged = true;
    judge(v, "canary", text);
    return SCOUT_OK;
}

/* Around copy 0, or around all that have canaries. */
static scout_answer inspect_slab(verify *v, const bench_slab *slab, bool every_copy, const char *what) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t c = 0; c < (every_copy ? slab->count : 1) && answer == SCOUT_OK; c++) {
        if (!bench_watched(v->set, c, slab->count)) continue;
        const bench_buffer at = bench_slab_at(slab, c);
        answer = inspect(v, &at, slab->bytes, what);
    }
    return answer;
}

static scout_answer inspect_all(verify *v, bool every_copy) {
    bench_set *s = v->set;
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
        answer = inspect_slab(v, &s->tensors[k].copies, every_copy, s->op->tensors[k].name);
    if (answer == SCOUT_OK && v->plan->pack)
        answer = inspect_slab(v, &v->plan->pack->copies, every_copy, "its packed weight");
    if (answer != SCOUT_OK || v->plan->needs.workspace_bytes == 0) return answer;
    const bench_buffer workspace = bench_workspace(s, v->plan->needs.workspace_bytes);
    return inspect(v, &workspace, v->plan->needs.workspace_bytes, "its workspace");
}

static bench_buffer output_of(const bench_set *s, uint32_t output, uint32_t copy) {
    return bench_slab_at(&s->tensors[output].copies, copy);
}

static scout_answer poison_all(verify *v) {
    bench_set *s = v->set;
    const uint64_t workspace = v->plan->needs.workspace_bytes;
    scout_why *why = &v->verdict->why;
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++) {
        const bench_buffer at = output_of(s, k, 0);
        if (!s->tensors[k].input) answer = bench_poison(s, &at, s->op->tensors[k].bytes, why);
    }
    if (workspace == 0 || answer != SCOUT_OK) return answer;
    const bench_buffer at = bench_workspace(s, workspace);
    answer = bench_poison(s, &at, workspace, why);
    return answer == SCOUT_OK ? bench_arm(s, &at, workspace, why) : answer;
}

static scout_answer ask_reference(const bench_set *s, scout_check *check, uint32_t output, bool only, const void *data,
                                  scout_verdict *found, scout_why *why) {
    const scout_reference *r = s->reference;
    if (only) return r->compare(check, data, s->tolerance.element, found, why);
    if (!SCOUT_HAS(r, compare_at) || !r->compare_at)
        return scout_say(why, SCOUT_FAILED, "error", "the reference has one output, the operation has more");
    return r->compare_at(check, output, data, s->tolerance.element, found, why);
}

/* A library may join parts of a sum in the output's type, and says so of some plans alone: each part is rounded, as the
 * output is. One that is wrong is off by hundreds of roundings. */
static const double most_roundings = 4;

static bool is_rounded(const verify *v, const scout_verdict *found) {
    return v->plan->candidate->library && found->worst <= most_roundings * v->set->tolerance.element;
}

static scout_answer compare_output(verify *v, scout_check *check, uint32_t output, bool only, uint32_t copy) {
    bench_set *s = v->set;
    bench_verdict *out = v->verdict;
    scout_verdict found = {.size = sizeof found};
    char text[160];
    const bench_buffer at = output_of(s, output, copy);
    const void *data = bench_data(&at);
    const scout_answer answer = bench_note(s, ask_reference(s, check, output, only, data, &found, &out->why));
    if (answer != SCOUT_OK) return answer;
    /* a projection joins many elements: its error is told only where it is what is wrong */
    const bool samples = !(found.worst <= s->tolerance.element);
    const bool projection = !(found.worst_projected <= s->tolerance.projection);
    out->worst = fmax(out->worst, samples || !projection ? found.worst : found.worst_projected);
    if (found.wrong == 0 && !samples && !projection) return SCOUT_OK;
    if (samples || !projection)
        snprintf(text, sizeof text, "%llu of %llu checked are off: at %llu it is %.6g instead of %.6g",
                 (unsigned long long)found.wrong, (unsigned long long)found.compared, (unsigned long long)found.at,
                 found.got, found.want);
    else
        snprintf(text, sizeof text, "samples are right, but a projection of all is off by %.3g, %.3g is allowed",
                 found.worst_projected, s->tolerance.projection);
    const bool coarse = v->plan->needs.coarse != 0, rounded = samples && !projection && is_rounded(v, &found);
    if (!coarse && !rounded) {
        judge(v, samples || !projection ? "samples" : "projection", text);
    } else if (out->status == ROW_OK) {
        out->status = ROW_UNSUPPORTED;
        scout_say(&out->why, SCOUT_NO, "precision", "%s: %s",
                  coarse ? "its library reports less exact accumulation" : "its library rounds on the way", text);
    }
    return SCOUT_OK;
}

static scout_answer compare(verify *v, scout_check *check, uint32_t copy) {
    const bench_set *s = v->set;
    scout_answer answer = SCOUT_OK;
    uint32_t outputs = 0;
    for (uint32_t k = 0; k < s->op->tensor_count; k++) outputs += !s->tensors[k].input;
    if (outputs == 0) return scout_say(&v->verdict->why, SCOUT_FAILED, "error", "there is no output");
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
        if (!s->tensors[k].input) answer = compare_output(v, check, k, outputs == 1, copy);
    return answer;
}

static scout_answer look_at(bench_set *s, const bench_slab *slab, bool *whole, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t c = 0; c < slab->count && answer == SCOUT_OK && *whole; c++) {
        const bench_buffer at = bench_slab_at(slab, c);
        if (bench_watched(s, c, slab->count)) answer = bench_inspect(s, &at, slab->bytes, whole, why);
    }
    return answer;
}

/* Whether every canary of the set is whole after the timed launches of all plans: then none of them is to blame. */
static scout_answer look_around(bench_set *s, bool *whole, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    *whole = true;
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++)
        answer = look_at(s, &s->tensors[k].copies, whole, why);
    for (const bench_pack *pack = s->packs; pack && answer == SCOUT_OK; pack = pack->next)
        answer = look_at(s, &pack->copies, whole, why);
    return answer;
}

/* Timed launches of one plan damaged a canary: a plan that did it once does it again, alone with its own. */
static scout_answer prepare_canaries(verify *v) {
    bench_set *s = v->set;
    bool whole = true;
    if (!v->plan->timed) return SCOUT_OK;
    if (!s->suspect) {
        const scout_answer answer = look_around(s, &whole, &v->verdict->why);
        if (answer != SCOUT_OK) return answer;
    }
    s->suspect = s->suspect || !whole;
    return s->suspect ? bench_arm_all(s, &v->verdict->why) : SCOUT_OK;
}

/* All of the rotation once, then every canary: what the timed launches did to other copies. */
static scout_answer check_rotation(verify *v) {
    bench_set *s = v->set;
    double seconds = 0;
    if (!v->plan->timed || !s->suspect || s->copies < 2) return SCOUT_OK;
    const scout_answer answer = bench_plan_run(v->plan, s->copies, 1, &seconds, &v->verdict->why);
    return answer == SCOUT_OK ? inspect_all(v, true) : answer;
}

/* The last copy must come out right as well: a plan that goes on with the addresses of an earlier launch, or with what
 * it kept of an earlier weight, would be timed on warm memory. Not looked at where there is no memory for a second
 * reference.
 */
static scout_answer check_last_copy(verify *v) {
    bench_set *s = v->set;
    scout_why *why = &v->verdict->why;
    if (!v->plan->timed || s->copies < 2 || v->verdict->status != ROW_OK) return SCOUT_OK;
    scout_answer answer = bench_need_last_check(s, why);
    if (answer == SCOUT_NO_MEMORY) return SCOUT_OK;
    for (uint32_t k = 0; k < s->op->tensor_count && answer == SCOUT_OK; k++) {
        const bench_buffer at = output_of(s, k, s->copies - 1);
        if (!s->tensors[k].input) answer = bench_poison(s, &at, s->op->tensors[k].bytes, why);
    }
    if (answer == SCOUT_OK) answer = bench_plan_run_last(v->plan, why);
    return answer == SCOUT_OK ? compare(v, s->last_check, s->copies - 1) : answer;
}

static scout_answer verify_steps(verify *v) {
    scout_answer answer = bench_need_check(v->set, &v->verdict->why);
    if (answer == SCOUT_OK) answer = prepare_canaries(v);
    if (answer == SCOUT_OK) answer = sum_inputs(v, true);
    if (answer == SCOUT_OK)
        answer = bench_plan_record_alone(v->plan, &v->verdict->why); /* it may have to be launched */
    if (answer == SCOUT_OK) answer = poison_all(v);
    if (answer == SCOUT_OK) answer = bench_plan_run_alone(v->plan, &v->verdict->why);
    if (answer == SCOUT_OK) answer = inspect_all(v, false);
    if (answer == SCOUT_OK) answer = sum_inputs(v, false);
    if (answer == SCOUT_OK) answer = compare(v, v->set->check, 0);
    if (answer == SCOUT_OK) answer = check_last_copy(v);
    if (answer == SCOUT_OK) answer = check_rotation(v);
    return answer;
}

bench_verdict bench_plan_verify(bench_plan *p) {
    bench_verdict verdict = {.status = ROW_OK, .tolerance = p->set->tolerance.element};
    verify v = {.plan = p, .set = p->set, .verdict = &verdict};
    scout_answer answer = verify_steps(&v);
    if (answer != SCOUT_OK) verdict.status = bench_status_of(answer, &verdict.why);
    if (v.damaged && !p->set->lost) {
        scout_why why = {.code = ""};
        answer = bench_restore(p->set, &why);
        if (answer != SCOUT_OK && answer != SCOUT_LOST) p->set->lost = true; /* no plan may run on damaged inputs */
    }
    p->timed = false;
    verdict.lost = p->set->lost;
    return verdict;
}
