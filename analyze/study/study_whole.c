/* Owns model.json: reading it as if a stranger had written it, and the sentence in which people are told. */
#include "analyze/study/study_internal.h"

#include "common/amount.h"
#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double most_us = 1e12;
static const int64_t most_operations = 1000000;

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
    out->given = json_is_true(json_object_get(root, "given"));
    if (!read_time(json_object_get(root, "default"), &out->first) || (!out->same && !read_time(best, &out->best)))
        return status_fail(st, STATUS_INPUT, "has no time that can be one; scout_batch --replay measures it again");
    if (out->same) {
        out->best = out->first;
    } else {
        const double ci = json_get_number(root, "ratio_ci");
        out->ratio = json_get_positive(root, "ratio");
        if (!(out->ratio > 0)) out->ratio = out->best.us / out->first.us;
        out->ratio_ci = ci >= 0 ? ci : INFINITY;
        out->elsewhere = json_is_true(json_object_get(root, "elsewhere"));
        out->proven = out->ratio * (1 + out->ratio_ci) < 1 && !out->elsewhere;
    }
    const json_t *groups = json_object_get(root, "groups");
    out->operations = json_get_int(groups, "operations", 0);
    out->groups = json_get_int(groups, "groups", 0);
    out->fused = json_get_int(groups, "fused", 0);
    out->turned = json_get_int(groups, "turned", 0);
    const int64_t conversions = json_get_int(groups, "conversions", 0);
    if (out->same || out->groups < 1 || out->fused < 0 || out->fused > out->groups || out->operations < 1 ||
        out->operations > most_operations || out->turned < 0 || out->turned > out->operations || conversions < 0 ||
        conversions > most_operations || out->groups > out->operations + conversions)
        out->operations = out->groups = out->fused = out->turned = 0;
    out->left_out = (int)json_array_size(json_object_get(root, "left_out"));
    out->known = true;
    return true;
}

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t room, const char *format, ...) {
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    if (used < room) vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

bool study_whole_refutes(const study_whole *w) { return w->known && !w->same && !w->proven; }

void study_whole_say(const study_whole *w, char *text, size_t room) {
    const bool sums = w->first.sum_us > 0 && w->best.sum_us > 0;
    snprintf(text, room, "%s by the libraries' defaults", amount_time(w->first.us).s);
    if (!w->same) add(text, room, ", %s by %s plan", amount_time(w->best.us).s, w->given ? "a given" : "the");
    add(text, room, " (");
    if (w->fused > 0)
        add(text, room, "%" PRId64 " operations in %" PRId64 " groups, %" PRId64 " fused", w->operations, w->groups,
            w->fused);
    else if (w->operations > 0)
        add(text, room, "%" PRId64 " operations, none fused", w->operations);
    if (w->turned > 0) add(text, room, ", %" PRId64 " with their channels last", w->turned);
    if (w->operations > 0) add(text, room, "; ");
    add(text, room, w->same ? "measured as a whole" : "both measured as a whole");
    if (sums && w->same) add(text, room, "; the sum of its parts is %s", amount_time(w->first.sum_us).s);
    if (sums && !w->same)
        add(text, room, "; the sums of their parts are %s and %s", amount_time(w->first.sum_us).s,
            amount_time(w->best.sum_us).s);
    if (w->left_out > 0) add(text, room, "; without %d operation%s", w->left_out, w->left_out == 1 ? "" : "s");
    add(text, room,
        !study_whole_refutes(w) ? ")"
        : w->elsewhere          ? "; the plan computes other numbers, so no gain is proven)"
                                : "; as a whole no gain is proven)");
}
