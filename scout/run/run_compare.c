/* Owns what --compare adds to a run: whose candidates come after, whether all names are known, and how the run ends. */
#include "scout/run/run_internal.h"

#include "common/json.h"

#include "scout/report/compare.h"
#include "scout/terms/filter.h"

#include <string.h>

/* ---- names ---- */

/* Of the device that the run is on: a list of workers has those of all. */
static bool is_here(const run *r, const json_t *candidate) {
    const char *device = r->devices[0].about->name, *of = json_get_text(candidate, "device");
    const size_t n = strcspn(device, ":");
    return strlen(of) == n && strncmp(of, device, n) == 0;
}

static bool known_candidate(const run *r, const json_t *list, const char *name, size_t length) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *known = json_get_text(json_array_get(list, k), "name");
        if (is_here(r, json_array_get(list, k)) && strlen(known) == length && strncmp(known, name, length) == 0)
            return true;
    }
    return false;
}

static bool known_before(const run *r, const json_t *list, const char *before) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const bool is_default = json_integer_value(json_object_get(one, "flags")) & SCOUT_BASELINE;
        if (is_here(r, one) && filter_is_before(before, json_get_text(one, "name"),
                                                json_string_value(json_object_get(one, "library")), is_default))
            return true;
    }
    return false;
}

/* A slip in a name would measure the baseline alone. */
static bool check_names(const run *r, const json_t *list, status *st) {
    const options *o = r->options;
    const char *device = r->devices[0].about->name;
    for (const char *at = o->candidate; at && *at;) {
        const size_t n = strcspn(at, ",");
        if (!known_candidate(r, list, at, n))
            return status_fail(st, STATUS_USAGE,
                               "--candidate: '%.*s' is not known on %s; --list-candidates lists the known ones", (int)n,
                               at, device);
        at += n + (at[n] == ',');
    }
    if (!o->before || known_before(r, list, o->before)) return true;
    return status_fail(
        st, STATUS_USAGE,
        "--before: '%s' is neither a candidate nor a library with a default on %s; --list-candidates lists the "
        "known ones",
        o->before, device);
}

/* All that custom kernels bring, as one list. */
static const char *custom_names(run *r, const json_t *list) {
    const char *names = NULL;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const char *name = json_get_text(one, "name");
        if (!is_here(r, one) || !json_is_string(json_object_get(one, "plugin"))) continue;
        if (r->options->before && strcmp(name, r->options->before) == 0) continue;
        names = names ? arena_printf(&r->arena, "%s,%s", names, name) : arena_printf(&r->arena, "%s", name);
    }
    return names;
}

bool run_compare_names(run *r, const supervisor_options *with, status *st) {
    const options *o = r->options;
    if (!o->candidate && !o->compare) return true;
    json_t *list = supervisor_ask(with, "candidates", NULL, st);
    bool good = list && check_names(r, list, st);
    if (good && o->compare && !o->candidate) {
        r->search.candidate = custom_names(r, list);
        good = r->search.candidate != NULL;
        if (!good)
            status_set(st, STATUS_USAGE,
                       "--compare: no --custom-kernel has a candidate for %s; name one with --candidate",
                       r->devices[0].about->name);
    }
    json_decref(list);
    return good;
}

/* ---- the end ---- */

/* A comparison of which anything is to be reverted has found a regression; one that decided nothing is not done. */
void run_compare_end(const run *r, status *st) {
    int counts[COMPARE_KEEP + 1] = {0};
    char said[512] = "";
    if (!r->options->compare || st->code > STATUS_INCOMPLETE) return;
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        report_figures f;
        compare c;
        if (!i->measurement || i->source == RUN_LEFT) continue;
        const report_input in = run_input(r, i, -1);
        report_read(&in, &f);
        compare_read(&in, &f, &c);
        if (c.decision == COMPARE_REVERT && counts[COMPARE_REVERT] == 0)
            snprintf(said, sizeof said, "%.100s: %.320s", i->operation->name, c.text);
        counts[c.decision]++;
    }
    if (counts[COMPARE_REVERT] > 1)
        status_set(st, STATUS_REGRESSION, "revert in %d operations; %s", counts[COMPARE_REVERT], said);
    else if (counts[COMPARE_REVERT] > 0)
        status_set(st, STATUS_REGRESSION, "revert; %s", said);
    else if (counts[COMPARE_UNDECIDED] > 0 || counts[COMPARE_KEEP] == 0)
        st->code = STATUS_INCOMPLETE;
}
