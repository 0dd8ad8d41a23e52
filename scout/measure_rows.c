/* Who takes part: the candidates of a device and their variants, in an order that is the same in every run; and how
 * each is prepared and verified. */
#include "scout/measure_internal.h"

#include "scout/chosen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void measure_variant_text(const scout_domain *domain, const int *indices, char *text, size_t room) {
    size_t used = 0;
    if (room > 0) text[0] = 0;
    for (uint32_t k = 0; k < domain->count && k < SCOUT_MAX_PARAMETERS && used < room; k++) {
        const scout_parameter *p = &domain->parameters[k];
        const char *comma = k > 0 ? "," : "";
        const int n =
            p->labels
                ? snprintf(text + used, room - used, "%s%.23s=%s", comma, p->name, p->labels[indices[k]])
                : snprintf(text + used, room - used, "%s%.23s=%lld", comma, p->name, (long long)p->values[indices[k]]);
        if (n > 0) used += (size_t)n;
    }
    for (char *c = text; room > 0 && *c; c++) /* it goes into JSON and onto terminals */
        if (*c < 0x20 || *c > 0x7e) *c = '?';
}

void measure_rows_decide(measure_row *row, scout_answer answer, const scout_why *why) {
    row->decided = true;
    row->why = *why;
    row->status = bench_status_of(answer, &row->why);
    if (answer == SCOUT_OK) row->status = ROW_ERROR;
}

bool measure_rows_is_baseline(const measurement *m, const scout_candidate *c) {
    return chosen_is_before(m->request->before, c->name, c->library, (c->flags & SCOUT_BASELINE) != 0);
}

/* ---- the list ---- */

static measure_row *add_row(measurement *m, const plugins_candidate *c, const char *variant, const int64_t *values) {
    if (m->row_count == MEASURE_ROWS) {
        m->left_out++;
        return NULL;
    }
    measure_row *row = &m->rows[m->row_count++];
    *row = (measure_row){.owner = m,
                         .candidate = c->candidate,
                         .plugin = c->plugin,
                         .plugin_hash = c->plugin_hash,
                         .status = ROW_SKIPPED,
                         .ratio = NAN,
                         .ratio_ci = NAN};
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

static bool allowed(const measurement *m, const scout_candidate *c, const int64_t *values) {
    return !c->allows || c->allows(&m->op, m->device, values);
}

/* Every combination, the last parameter turning fastest, so that a library's first choice comes first in all forms. */
static void add_variants(measurement *m, const plugins_candidate *c, const scout_domain *domain, bool only_first) {
    int indices[SCOUT_MAX_PARAMETERS] = {0};
    bool first = true;
    for (;;) {
        int64_t values[SCOUT_MAX_PARAMETERS] = {0};
        char text[sizeof m->rows->variant];
        for (uint32_t k = 0; k < domain->count; k++) values[k] = domain->parameters[k].values[indices[k]];
        if (allowed(m, c->candidate, values)) {
            measure_variant_text(domain, indices, text, sizeof text);
            const bool wanted = !m->qualify || !m->request->variant || strcmp(m->request->variant, text) == 0;
            measure_row *row = wanted ? add_row(m, c, text, values) : NULL;
            if (row) row->first = first;
            if (row) (void)exclude(m, c, text, row);
            first = false;
            if (only_first) return;
        }
        int k = (int)domain->count - 1;
        while (k >= 0 && ++indices[k] == (int)domain->parameters[k].count) indices[k--] = 0;
        if (k < 0) return;
    }
}

bool measure_rows_good_domain(const scout_domain *d) {
    if (d->count > SCOUT_MAX_PARAMETERS) return false;
    for (uint32_t k = 0; k < d->count; k++)
        if (d->parameters[k].count < 1 ||
            d->parameters[k].count > sizeof d->parameters[k].values / sizeof d->parameters[k].values[0])
            return false;
    return true;
}

static void add_candidate(measurement *m, const plugins_candidate *c) {
    const scout_candidate *candidate = c->candidate;
    const char *only = m->request->only;
    const bool asked = chosen_is(only, candidate->name);
    scout_why why = {.code = ""};
    if (m->qualify && strcmp(m->qualify, candidate->name) != 0) return;
    if (!asked && !measure_rows_is_baseline(m, candidate)) {
        scout_say(&why, SCOUT_NO, "not_asked", "only %.60s was asked for", only);
        add_decided(m, c, SCOUT_NO, &why);
        m->rows[m->row_count - 1].status = ROW_SKIPPED;
        return;
    }
    if (!m->built) { /* nothing can be asked about it: whoever calls says why */
        (void)add_row(m, c, "", NULL);
        return;
    }
    if (exclude(m, c, "", NULL)) return;
    m->at_it = NULL;
    measure_tell(m, candidate, candidate->name, "", "supports", 30);
    scout_answer answer = candidate->supports(&m->op, m->device, &why);
    scout_domain *domain = arena_zalloc(&m->arena, sizeof *domain);
    if (answer == SCOUT_OK && candidate->domain)
        answer = candidate->domain(&m->op, m->device, m->request->exhaustive, domain, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    if (answer == SCOUT_OK && !measure_rows_good_domain(domain))
        answer = scout_say(&why, SCOUT_FAILED, "error", "its domain of variants is broken");
    if (answer == SCOUT_OK)
        add_variants(m, c, domain, !asked);
    else
        add_decided(m, c, answer, &why);
}

static int by_priority(const void *a, const void *b) {
    const scout_candidate *x = ((const plugins_candidate *)a)->candidate,
                          *y = ((const plugins_candidate *)b)->candidate;
    if (x->priority != y->priority) return x->priority < y->priority ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Of the process's registry; of a device that is not in it, its own. */
int measure_rows_candidates(const scout_device_api *api, uint32_t kind, plugins_candidate *out) {
    int count = 0;
    if (plugins_device_named(api->name) == api) return plugins_candidates(api, kind, out, PLUGINS_MAX_CANDIDATES);
    for (uint32_t k = 0; k < api->candidate_count && count < PLUGINS_MAX_CANDIDATES; k++)
        if (api->candidates[k]->kind == kind) out[count++] = (plugins_candidate){.candidate = api->candidates[k]};
    qsort(out, (size_t)count, sizeof *out, by_priority);
    return count;
}

void measure_rows_list(measurement *m) {
    plugins_candidate *list = arena_array(&m->arena, plugins_candidate, PLUGINS_MAX_CANDIDATES);
    const int count = measure_rows_candidates(m->api, m->op.kind, list);
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

bool measure_rows_prepare(measure_row *row) {
    measurement *m = row->owner;
    scout_answer answer = SCOUT_OK;
    measure_tell_row(row, "prepare", 60 + m->patience_s);
    row->why = (scout_why){.code = ""};
    row->plan = bench_plan_new(m->set, row->candidate, row->values, m->request->regime.launch == REGIME_GRAPH, &answer,
                               &row->why);
    if (!row->plan) {
        const scout_why why = row->why;
        measure_rows_decide(row, answer, &why);
        return answer != SCOUT_LOST;
    }
    row->needs = *bench_plan_needs(row->plan);
    row->pack_s = bench_plan_pack_s(row->plan);
    m->at_it = NULL;
    measure_tell(m, m->set, NULL, NULL, "reference", 120 + 10 * m->patience_s); /* where it is not there already */
    if (bench_need_check(m->set, &row->why) == SCOUT_LOST) return false;
    measure_tell_row(row, "verify", m->patience_s);
    const bench_verdict verdict = bench_plan_verify(row->plan);
    row->compared = verdict.status == ROW_OK || verdict.status == ROW_WRONG;
    row->worst = verdict.worst;
    row->tolerance = verdict.tolerance;
    row->why = verdict.why;
    if (verdict.lost) return false;
    if (verdict.status == ROW_OK) {
        bench_plan_made_of(row->plan, &row->made_of);
        keep_config(row);
        return true;
    }
    row->decided = true;
    row->status = verdict.status;
    bench_plan_free(row->plan);
    row->plan = NULL;
    return true;
}
