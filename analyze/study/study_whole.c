/* Owns model.json: reading it as if a stranger had written it, and the sentence in which people are told. */
#include "analyze/study/study_internal.h"

#include "common/amount.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>

static const double most_us = 1e12;

static bool read_time(const json_t *o, study_whole_time *out) {
    const double ci = json_get_number(o, "ci"), sum_ci = json_get_number(o, "sum_ci");
    out->us = json_get_positive(o, "time_us");
    out->sum_us = json_get_positive(o, "sum_us");
    out->ci = ci >= 0 ? ci : INFINITY;
    out->sum_ci = sum_ci >= 0 ? sum_ci : INFINITY;
    if (!(out->sum_us > 0 && out->sum_us < most_us)) out->sum_us = 0;
    return out->us > 0 && out->us < most_us;
}

bool study_whole_read(const json_t *root, study_whole *out, status *st) {
    *out = (study_whole){.ratio = 1};
    const json_t *best = json_object_get(root, "best");
    out->same = !json_is_object(best);
    if (!read_time(json_object_get(root, "default"), &out->first) || (!out->same && !read_time(best, &out->best)))
        return status_fail(st, STATUS_INPUT, "has no time that can be one; scout_batch --replay measures it again");
    if (out->same) {
        out->best = out->first;
    } else {
        const double ci = json_get_number(root, "ratio_ci");
        out->ratio = json_get_positive(root, "ratio");
        if (!(out->ratio > 0)) out->ratio = out->best.us / out->first.us;
        out->ratio_ci = ci >= 0 ? ci : INFINITY;
    }
    out->left_out = (int)json_array_size(json_object_get(root, "left_out"));
    out->known = true;
    return true;
}

void study_whole_say(const study_whole *w, char *text, size_t room) {
    const bool sums = w->first.sum_us > 0 && w->best.sum_us > 0;
    int n = snprintf(text, room, "%s by the libraries' defaults", amount_time(w->first.us).s);
    const char *how = w->same ? "measured as a whole" : "both measured as a whole";
    if (n < 0 || (size_t)n >= room) return;
    if (!w->same) n += snprintf(text + n, room - (size_t)n, ", %s by what is proven", amount_time(w->best.us).s);
    if (n < 0 || (size_t)n >= room) return;
    if (!sums)
        snprintf(text + n, room - (size_t)n, " (%s)", how);
    else if (w->same)
        snprintf(text + n, room - (size_t)n, " (%s; the sum of its parts is %s)", how, amount_time(w->first.sum_us).s);
    else
        snprintf(text + n, room - (size_t)n, " (%s; the sums of their parts are %s and %s)", how,
                 amount_time(w->first.sum_us).s, amount_time(w->best.sum_us).s);
}
