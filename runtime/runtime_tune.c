/* Tuning on a miss: the candidates of an operation race, measured and checked by what scout_batch measures with, in
 * passes while the time lasts. What was found goes into its cache, under its key of a measurement that had less time
 * than usual, marked as a race's: it has no costs, and serves no report. A measurement of scout_batch that is there
 * serves as well. */
#include "runtime/runtime_internal.h"

#include "common/json.h"
#include "common/verdict.h"
#include "scout/cache/cache.h"
#include "scout/device/identity.h"
#include "scout/device/plugins.h"
#include "scout/measure/figures.h"
#include "scout/measure/measure.h"
#include "scout/measure/measure_key.h"

#include <math.h>
#include <string.h>

enum { TUNE_PASSES = 8, TUNE_ROWS = 16 };
static const double first_share = 0.5; /* of the time: the first pass chooses, and so proves nothing */
static const double most_first_s = 0.3, most_next_s = 0.1; /* more is not needed, however long it may take */
/* Memory that stays in the cache is filled in no time. */
static const regime tune_regime = {REGIME_SUSTAINED, REGIME_HOT, REGIME_GRAPH};
static const regime model_regime = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH}; /* of scout_batch, for models */

/* ---- one measurement ---- */

static measure_request request_for(const scout_run_op *op) {
    return (measure_request){.operation = op->operation,
                             .regime = tune_regime,
                             .early_exit = measure_key_early_exit,
                             .workspace_limit = op->run->workspace_limit};
}

/* Rows are borrowed from `list`. */
static int read_rows(const json_t *list, measure_choice *rows) {
    int count = 0;
    for (size_t k = 0; k < json_array_size(list) && count < TUNE_ROWS; k++) {
        const json_t *one = json_array_get(list, k);
        rows[count++] = (measure_choice){json_get_text(one, "name"), json_get_text(one, "variant")};
    }
    return count;
}

/* The measurement with one more pass; NULL: it failed, and why says it. */
static json_t *add_pass(struct measurement *m, json_t *so_far, double budget_s, scout_answer *answer, scout_why *why) {
    measure_choice rows[TUNE_ROWS];
    json_t *chosen = so_far ? figures_choose(so_far, NULL, false) : NULL;
    const int number = so_far ? figures_passes(so_far) + 1 : 1;
    const measure_pass pass = {.number = number,
                               .seed = (uint64_t)number * 0x9E3779B97F4A7C15u >> 12,
                               .budget_s = budget_s,
                               .rows = rows,
                               .row_count = read_rows(chosen, rows)};
    json_t *result = so_far && !chosen ? NULL : measure_run(m, &pass, answer, why);
    if (result)
        so_far = figures_add(so_far, result);
    else if (so_far)
        json_decref(so_far), so_far = NULL;
    json_decref(result);
    json_decref(chosen);
    return so_far;
}

/* A pass is begun if one as long as the last one ends in time. */
static json_t *race(const scout_run_op *op, scout_answer *answer, scout_why *why) {
    const scout_run *run = op->run;
    const measure_request request = request_for(op);
    const double end_s = run->api->now(run->device) + run->tune_s;
    struct measurement *m = measure_open(run->api, run->device, &run->identity, &request, NULL);
    json_t *found = NULL;
    *answer = m ? SCOUT_OK : scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    double left_s = run->tune_s, last_s = 0;
    for (int k = 0; m && k < TUNE_PASSES && (k == 0 || (found && left_s > last_s)); k++) {
        const double budget_s = k == 0 ? fmin(first_share * run->tune_s, most_first_s) : fmin(left_s / 3, most_next_s);
        found = add_pass(m, found, budget_s, answer, why);
        const double now_left_s = end_s - run->api->now(run->device);
        last_s = left_s - now_left_s, left_s = now_left_s;
        if (k > 0 && found && figures_open(found) == 0) break;
    }
    measure_close(m);
    return found;
}

/* ---- the cache ---- */

typedef struct tuning {
    scout_run_op *op;
    runtime_tuned *out;
    scout_answer answer;
    scout_why why;
    arena arena;
    cache cache;
} tuning;

typedef struct source { /* of measurements that serve, the best first */
    const regime *regime;
    bool race, cut, any; /* any: of any card of the class */
} source;
static const source sources[] = {
    {&model_regime, false, false, false}, {&model_regime, false, false, true}, {&model_regime, false, true, false},
    {&tune_regime, true, true, false},    {&tune_regime, true, true, true},
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

static const char *key_of(tuning *t, const source *from, const char *card) {
    const scout_run *run = t->op->run;
    const measure_key key = {.operation = t->op->op.key,
                             .regime = *from->regime,
                             .candidates = plugins_candidates_hash(run->api, &run->identity),
                             .early_exit = measure_key_early_exit,
                             .workspace_limit = run->workspace_limit,
                             .cut = from->cut,
                             .card = from->any ? NULL : card};
    return arena_printf(&t->arena, "%s%s", measure_key_text(&key, &t->arena), from->race ? "|race" : "");
}

static bool is_good(const json_t *found) {
    return found && figures_passes(found) > 1 && json_get_text_or_null(found, "best");
}

static json_t *look_up(tuning *t, const char *card, const source **from) {
    char note[256];
    json_t *found = NULL;
    for (int k = 0; k < SOURCES && !is_good(found); k++) {
        json_decref(found);
        *from = &sources[k];
        found = cache_get(&t->cache, key_of(t, *from, card), note, sizeof note);
    }
    if (is_good(found)) return found;
    json_decref(found);
    return NULL;
}

/* This card's own race that is there for the class alone: what kept it was killed between its two files. */
static bool is_half_kept(const source *from, const json_t *found, const char *card) {
    const char *of = json_string_value(json_object_get(found, "card"));
    return from->race && from->any && of && strcmp(of, card) == 0;
}

/* Where it cannot be kept, the next process races again. The card's own file is the last one, so that where it is
 * there both are. */
static void keep(tuning *t, json_t *found, const char *card) {
    status ignored = {.code = STATUS_OK};
    json_builder b = {0};
    json_put_text(&b, found, "card", card);
    for (int k = SOURCES - 1; k >= 0; k--)
        if (sources[k].race)
            (void)cache_put(&t->cache, (const char *[]){key_of(t, &sources[k], card)}, 1, found, &ignored);
}

/* ---- what it says ---- */

static void decide(const json_t *found, runtime_tuned *out) {
    const double ratio = json_get_number(found, "ratio"), ci = json_get_number(found, "ratio_ci");
    if (verdict_gain_of(ratio, ci, verdict_defaults.margin) != VERDICT_PROVEN_GAIN) return;
    snprintf(out->candidate, sizeof out->candidate, "%s", json_get_text(found, "best"));
    snprintf(out->variant, sizeof out->variant, "%s", json_get_text(found, "best_variant"));
    out->ratio = ratio;
}

static void tune(void *context) {
    tuning *t = context;
    const scout_run *run = t->op->run;
    char folder[IDENTITY_FOLDER_ROOM], instance[IDENTITY_INSTANCE_ROOM];
    status ignored = {.code = STATUS_OK};
    identity_class_folder(&run->identity, folder, sizeof folder);
    identity_instance(&run->identity, instance, sizeof instance);
    const char *card = measure_key_card(instance, &t->arena);
    (void)cache_open(&t->cache, run->cache_dir, folder, 0, &ignored);
    const source *from = sources;
    json_t *found = look_up(t, card, &from);
    t->out->cached = found != NULL;
    if (!found) found = race(t->op, &t->answer, &t->why);
    if (is_good(found) && (!t->out->cached || is_half_kept(from, found, card))) keep(t, found, card);
    if (is_good(found)) decide(found, t->out);
    json_decref(found);
    cache_close(&t->cache);
}

bool runtime_tune(scout_run_op *op, runtime_tuned *out, scout_why *why) {
    static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER; /* what measures knows of one device at a time */
    tuning t = {.op = op, .out = out, .answer = SCOUT_OK};
    status st = {.code = STATUS_OK};
    memset(out, 0, sizeof *out);
    if (op->operation->sparsity > 0) return false; /* whose weight is not at hand */
    pthread_mutex_lock(&measuring);
    const bool done = arena_within(&t.arena, tune, &t, &st);
    pthread_mutex_unlock(&measuring);
    if (t.answer != SCOUT_OK) *why = t.why;
    return done && t.answer == SCOUT_OK;
}
