/* Owns what no report can say: members that must be there, and figures that contradict each other. */
#include "analyze/study/study_internal.h"
#include "common/plain.h"

#include "common/rows_table.h"

#include <math.h>
#include <string.h>

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool say(char *why, size_t room, const char *what) {
    snprintf(why, room, "%s", what);
    return false;
}

/* Whether it is a report at all comes before what is wrong in it. */
static bool check_schema(study_file *to, char *why, size_t room) {
    static const char wanted[] = "ceiling-scout/report/1";
    if (!to->schema) return say(why, room, "is not a report: it has no schema");
    if (strcmp(to->schema, wanted) == 0) return true;
    if (!begins(to->schema, "ceiling-scout/")) return say(why, room, "is not a report: it has another schema");
    if (begins(to->schema, "ceiling-scout/report/"))
        snprintf(why, room, "is a report of another version (%.40s; %s is read)", to->schema, wanted);
    else
        snprintf(why, room, "is not a report but %.60s", to->schema);
    if (!begins(to->schema, "ceiling-scout/report/")) to->is = STUDY_OTHER;
    return false;
}

static bool check_members(const study_file *to, char *why, size_t room) {
    const study_report *r = &to->report;
    const struct {
        const char *name;
        bool there;
    } needed[] = {
        {"operation", r->operation && *r->operation},
        {"op", r->op && *r->op},
        {"key", r->key && *r->key},
        {"shape", to->shaped},
        {"device", to->device_class && *to->device_class && to->model},
        {"regime", to->regime && *to->regime},
        {"method", to->method > 0},
        {"status", r->status != NULL},
        {"candidates", to->rows},
    };
    for (size_t k = 0; k < sizeof needed / sizeof needed[0]; k++) {
        if (needed[k].there) continue;
        snprintf(why, room, "'%s' is missing in it", needed[k].name);
        return false;
    }
    return true;
}

static const study_row *find_row(const study_scanner *s, const char *name, const char *variant) {
    for (size_t k = 0; name && k < s->row_count; k++)
        if (plain_same(s->rows[k].name, name) && (!variant || plain_same(s->rows[k].variant, variant)))
            return &s->rows[k];
    return NULL;
}

static bool is_of(const study_row *row, double us) {
    return row && isfinite(row->median_us) && fabs(row->median_us - us) <= 1e-6 * us;
}

static const double most_tflops = 1e9; /* of a device, as in its peak */

/* A time must be the time of a row that is OK. */
static bool check_times(const study_scanner *s, study_report *r, char *why, size_t room) {
    static const char *const known[] = {"OK", "SKIPPED", "UNSUPPORTED", "WRONG", "TIMEOUT", "CRASHED", "ERROR"};
    bool is_known = false;
    r->status = rows_table_status(r->status);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) is_known = is_known || plain_same(r->status, known[k]);
    if (!is_known) return say(why, room, "its status is unknown");
    if (plain_same(r->status, "OK") == isnan(r->baseline_us))
        return say(why, room, "its status and its baseline_time_us contradict each other");
    if (!plain_same(r->status, "OK") && !r->reason_code)
        return say(why, room, "it has neither a baseline nor a reason");
    const study_row *baseline = find_row(s, r->baseline, r->baseline_variant);
    const study_row *best = find_row(s, r->best, r->best_variant);
    if (!isnan(r->baseline_us) && !is_of(baseline, r->baseline_us))
        return say(why, room, "its baseline_time_us is not the time of any row");
    if (!isnan(r->best_us) && !is_of(best, r->best_us))
        return say(why, room, "its best_time_us is not the time of any row");
    if (!isnan(r->baseline_us) && r->flops > most_tflops * 1e6 * r->baseline_us)
        return say(why, room, "no device does its flops in its baseline_time_us");
    if (isnan(r->least_us)) r->least_us = r->ceiling_us;
    r->baseline_ci = r->best_ci = r->clock_mhz = r->power_w = r->address_best = r->address_worst = NAN;
    if (!isnan(r->baseline_us)) {
        r->baseline_ci = baseline->ci;
        r->clock_mhz = baseline->clock_mhz;
        r->power_w = baseline->power_w;
    }
    if (!isnan(r->best_us)) r->best_ci = best->ci;
    const study_row *decides = !isnan(r->best_us) ? best : !isnan(r->baseline_us) ? baseline : NULL;
    if (decides) r->address_best = decides->address_best, r->address_worst = decides->address_worst;
    return true;
}

/* The text goes where only these are looked for. */
static bool check_approaches(const study_report *r, char *why, size_t room) {
    const char *const texts[] = {r->best_approach, r->rival_approach, r->said};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (texts[k] && !verdict_has_approach(texts[k], false)) return say(why, room, "its approach is unknown");
    return true;
}

static bool check_fusion(const study_file *to, char *why, size_t room) {
    const study_report *r = &to->report;
    if (r->fusion && r->worth && isnan(r->speedup)) return say(why, room, "it has a gain, but no speedup");
    return true;
}

bool study_check(const study_scanner *s, study_file *to, char *why, size_t room) {
    char complaint[STUDY_WHY];
    snprintf(complaint, sizeof complaint, "%s", why);
    why[0] = 0;
    if (!check_schema(to, why, room)) return false;
    if (complaint[0]) return say(why, room, complaint);
    to->report.fusion = to->report.fusion_pattern != NULL;
    to->report.sum = plain_same(to->fusion_how, "sum");
    return check_members(to, why, room) && check_times(s, &to->report, why, room) &&
           check_approaches(&to->report, why, room) && check_fusion(to, why, room);
}
