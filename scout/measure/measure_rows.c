/* The rows that take part: the candidates of a device and their variants, in an order that is the same in every run;
 * and how each is prepared and verified. */
#include "scout/measure/measure_internal.h"

#include "scout/terms/variants.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void measure_rows_decide(measure_row *row, scout_answer answer, const scout_why *why) {
    row->decided = true;
    row->why = *why;
    row->status = bench_status_of(answer, &row->why);
    if (answer == SCOUT_OK) row->status = ROW_ERROR;
}

void measure_rows_skip(measure_row *row, const char *code, const char *format, ...) {
    va_list args;
    row->decided = true;
    row->status = ROW_SKIPPED;
    snprintf(row->why.code, sizeof row->why.code, "%s", code);
    va_start(args, format);
    vsnprintf(row->why.text, sizeof row->why.text, format, args);
    va_end(args);
}

bool measure_rows_is_baseline(const measurement *m, const scout_candidate *c) {
    return filter_is_before(m->request->before, c->name, c->library, (c->flags & SCOUT_BASELINE) != 0);
}

/* ---- the list ---- */

static measure_row *add_row(measurement *m, const plugins_candidate *c, const char *variant, const int64_t *values) {
    if (m->row_count == MEASURE_ROWS) {
        m->left_out++;
        return NULL;
    }
    measure_row *row = &m->rows[m->row_count++];
    *row = (measure_row){.owner = m,
                         .fetch_s = NAN,
                         .candidate = c->candidate,
                         .plugin = c->plugin,
                         .plugin_hash = c->plugin_hash,
                         .status = ROW_SKIPPED};
    snprintf(row->variant, sizeof row->variant, "%s", variant);
    if (values) memcpy(row->values, values, sizeof row->values);
    return row;
}

/* The row that an exclusion asks for; of a variant, or ("") of a whole candidate. */
static bool exclude(measurement *m, const plugins_candidate *c, const char *variant, measure_row *row) {
    for (int k = 0; k < m->request->exclusion_count; k++) {
        const measure_exclusion *e = &m->request->exclusions[k];
        if (strcmp(e->name, c->candidate->name) != 0 || strcmp(e->variant, variant) != 0) continue;
        if (!row) row = add_row(m, c, variant, NULL);
        if (!row) return true;
        row->decided = true;
        row->status = e->status;
        row->why = e->why;
        return true;
    }
    return false;
}

static void add_decided(measurement *m, const plugins_candidate *c, scout_answer answer, const scout_why *why) {
    measure_row *row = add_row(m, c, "", NULL);
    if (row) measure_rows_decide(row, answer, why);
}

static void add_skipped(measurement *m, const plugins_candidate *c, const scout_why *why) {
    measure_row *row = add_row(m, c, "", NULL);
    if (!row) return;
    measure_rows_decide(row, SCOUT_NO, why);
    row->status = ROW_SKIPPED;
}

static void add_variant(measurement *m, const plugins_candidate *c, const variants_one *one) {
    measure_row *row = add_row(m, c, one->text, one->values);
    if (!row) return;
    row->first = one->first;
    (void)exclude(m, c, one->text, row);
}

static void add_variants(measurement *m, const plugins_candidate *c, variants *all, bool only_first) {
    variants_one one;
    if (m->qualify && m->request->variant) {
        if (variants_find(all, m->request->variant, &one) && (one.first || !only_first)) add_variant(m, c, &one);
        return;
    }
    while (variants_next(all, &one)) {
        add_variant(m, c, &one);
        if (only_first) return;
    }
}

/* What asking a candidate's library took in this process, on the mean: heuristics of some libraries take a third of a
 * second, which is more than most operations are worth. All threads that ask share what they found. */
typedef struct asking {
    const scout_candidate *candidate;
    double seconds, prepared_s; /* of its first variants: sums */
    int times, prepared;
} asking;

static asking asked_all[PLUGINS_MAX_CANDIDATES];
static pthread_mutex_t asked_guard = PTHREAD_MUTEX_INITIALIZER;

/* What is known by now, with this added. */
static asking asking_add(const scout_candidate *c, const asking *more) {
    asking known = {.candidate = c};
    pthread_mutex_lock(&asked_guard);
    for (size_t k = 0; k < sizeof asked_all / sizeof asked_all[0]; k++) {
        asking *at = &asked_all[k];
        if (at->candidate && at->candidate != c) continue;
        *at = (asking){c, at->seconds + more->seconds, at->prepared_s + more->prepared_s, at->times + more->times,
                       at->prepared + more->prepared};
        known = *at;
        break;
    }
    pthread_mutex_unlock(&asked_guard);
    return known;
}

static asking asking_of(const scout_candidate *c) { return asking_add(c, &(asking){.times = 0}); }

bool measure_rows_dear(const scout_candidate *c, double most_s) {
    const asking known = asking_of(c);
    return known.prepared > 0 && known.prepared_s / known.prepared > most_s;
}

void measure_rows_took(const scout_candidate *c, double seconds) {
    asking_add(c, &(asking){.prepared_s = seconds, .prepared = 1});
}

static bool too_dear(measurement *m, const plugins_candidate *c, bool asked, scout_why *why) {
    const asking known = asking_of(c->candidate);
    const bool wanted = measure_rows_is_baseline(m, c->candidate) || m->request->exhaustive || m->qualify ||
                        (asked && m->request->only) || m->pass.number > 1;
    if (wanted || known.times == 0 || known.seconds / known.times <= m->pass.budget_s) return false;
    scout_say(why, SCOUT_NO, "budget",
              "its library needs about %.2g s to prepare, more than the operation is worth; --exhaustive tries it",
              known.seconds / known.times);
    return true;
}

static void add_candidate(measurement *m, const plugins_candidate *c) {
    const scout_candidate *candidate = c->candidate;
    const char *only = m->request->only;
    const bool asked = filter_takes(only, candidate->name);
    scout_why why = {.code = ""};
    if (m->qualify && strcmp(m->qualify, candidate->name) != 0) return;
    if (!asked && !measure_rows_is_baseline(m, candidate)) {
        scout_say(&why, SCOUT_NO, "not_asked", "only %.60s was requested", only);
        add_skipped(m, c, &why);
        return;
    }
    if (!m->built) { /* nothing can be asked about it: the caller says why */
        (void)add_row(m, c, "", NULL);
        return;
    }
    if (exclude(m, c, "", NULL)) return;
    if (too_dear(m, c, asked, &why)) {
        add_skipped(m, c, &why);
        return;
    }
    m->at_it = NULL;
    measure_tell(m, candidate, candidate->name, "", "supports", 30);
    const double began_s = m->api->now(m->device);
    scout_answer answer = candidate->supports(&m->op, m->device, &why);
    scout_domain *domain = arena_zalloc(&m->arena, sizeof *domain);
    variants all;
    if (answer == SCOUT_OK)
        answer = variants_open(&all, candidate, &m->op, m->device, m->request->exhaustive, domain, &why);
    /* what fails ahead may do so for the company that it has: the thread that measures tries it alone */
    if (answer == SCOUT_LOST || (m->ahead && answer != SCOUT_OK && answer != SCOUT_NO)) measure_stop(m, answer, &why);
    if (answer == SCOUT_OK) asking_add(candidate, &(asking){.seconds = m->api->now(m->device) - began_s, .times = 1});
    if (answer == SCOUT_OK)
        add_variants(m, c, &all, !asked);
    else
        add_decided(m, c, answer, &why);
}

void measure_rows_list(measurement *m) {
    plugins_candidate *list = arena_array(&m->arena, plugins_candidate, PLUGINS_MAX_CANDIDATES);
    const int count = plugins_candidates(m->api, m->op.kind, list, PLUGINS_MAX_CANDIDATES);
    m->rows = arena_array(&m->arena, measure_row, MEASURE_ROWS);
    if (m->parts) add_candidate(m, &(plugins_candidate){.candidate = m->parts});
    for (int baseline = 1; baseline >= 0; baseline--)
        for (int k = 0; k < count && !measure_stopped(m); k++)
            if (measure_rows_is_baseline(m, list[k].candidate) == (baseline == 1)) add_candidate(m, &list[k]);
}

/* ---- preparing ---- */

static void keep_config(measure_row *row) {
    char json[4096];
    const int n = bench_plan_describe(row->plan, json, sizeof json);
    if (n > 0 && (size_t)n < sizeof json) row->config = arena_strndup(&row->owner->arena, json, strlen(json));
}

static bool verify_first(measure_row *row) {
    measurement *m = row->owner;
    m->at_it = NULL;
    measure_tell(m, m->set, NULL, NULL, "reference", 120 + 10 * m->patience_s); /* where it is not there already */
    if (bench_need_check(m->set, &row->why) == SCOUT_LOST) return false;
    measure_tell_row(row, "verify", m->patience_s);
    const bench_verdict verdict = bench_plan_verify(row->plan);
    row->compared =
        verdict.status == ROW_OK || verdict.status == ROW_WRONG || strcmp(verdict.why.code, "precision") == 0;
    row->worst = verdict.worst;
    row->tolerance = verdict.tolerance;
    row->why = verdict.why;
    if (verdict.lost) return false;
    keep_config(row);
    if (verdict.status == ROW_OK) {
        bench_plan_made_of(row->plan, &row->made_of);
        return true;
    }
    row->decided = true;
    row->status = verdict.status;
    bench_plan_free(row->plan);
    row->plan = NULL;
    return true;
}

typedef struct noted {
    const measure_row *row;
    const bench_kept *made;
} noted;

static scout_answer enqueue_noted(void *context, uint32_t number, void *stream, scout_why *why) {
    const noted *n = context;
    void *tensors[SCOUT_MAX_TENSORS], *const spare = n->row->owner->pass.spare;
    (void)number;
    for (uint32_t k = 0; k < n->row->owner->op.tensor_count; k++) tensors[k] = spare;
    const scout_args args = {.size = sizeof args,
                             .tensors = tensors,
                             .workspace = n->made->needs.workspace_bytes ? spare : NULL,
                             .stream = stream};
    return n->row->candidate->launch(n->made->plan, &args, why);
}

/* Libraries load a kernel when it is launched first. Noted on spare memory, it does not run. */
static void load_ahead(const measure_row *row, const bench_kept *made) {
    const measurement *m = row->owner;
    uint64_t most =
        made->needs.workspace_bytes > made->needs.pack_bytes ? made->needs.workspace_bytes : made->needs.pack_bytes;
    noted n = {row, made};
    for (uint32_t k = 0; k < m->op.tensor_count; k++)
        if (m->op.tensors[k].bytes > most) most = m->op.tensors[k].bytes;
    if (!m->pass.spare || most > m->pass.spare_bytes || row->candidate == m->parts) return;
    if (SCOUT_HAS(m->api, load) && m->api->load) m->api->load(m->device, enqueue_noted, &n);
}

bool measure_rows_prepare_ahead(measure_row *row) {
    measurement *m = row->owner;
    bench_kept made = {.needs = {.size = sizeof made.needs}};
    measure_tell_row(row, "prepare", 60 + m->patience_s);
    row->why = (scout_why){.code = ""};
    const scout_answer answer =
        scout_prepare(row->candidate, &m->op, m->device, row->values, &made.plan, &made.needs, &row->why);
    if (answer == SCOUT_OK) {
        load_ahead(row, &made);
        row->kept = made;
    }
    if (answer == SCOUT_NO) {
        const scout_why why = row->why;
        measure_rows_decide(row, answer, &why);
    }
    return answer != SCOUT_LOST;
}

bool measure_rows_prepare(measure_row *row, bool verify) {
    measurement *m = row->owner;
    scout_answer answer = SCOUT_OK;
    measure_tell_row(row, "prepare", 60 + m->patience_s);
    row->why = (scout_why){.code = ""};
    if (row->kept.plan && row->candidate == m->parts)
        answer = parts_settle(m->layout, row->kept.plan, m->device, &row->why);
    if (answer == SCOUT_OK)
        row->plan = bench_plan_new(m->set, row->candidate, row->values, m->request->regime.launch == REGIME_GRAPH,
                                   row->kept.plan ? &row->kept : NULL, &answer, &row->why);
    if (!row->plan) {
        const scout_why why = row->why;
        measure_rows_decide(row, answer, &why);
        return answer != SCOUT_LOST;
    }
    row->needs = *bench_plan_needs(row->plan);
    row->pack_s = bench_plan_pack_s(row->plan);
    return !verify || verify_first(row);
}
