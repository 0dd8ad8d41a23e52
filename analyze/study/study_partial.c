/* Owns what of a model has no figure, and the one sentence about it: every format says it on top. */
#include "analyze/study/study_internal.h"

#include "common/plain.h"

#include <math.h>
#include <string.h>

/* ---- of a folder ---- */

static size_t without_report(const map *reports, const study_asked *asked, size_t count, bool left) {
    size_t absent = 0;
    for (size_t k = 0; k < count; k++) absent += asked[k].left == left && !map_get(reports, asked[k].id);
    return absent;
}

/* Files of one folder stand together; a folder may have none. */
void study_count_absent(study *s, const study_file *files, size_t count) {
    size_t at = 0;
    for (int folder = 0; folder < s->options.folder_count; folder++) {
        study_beside *b = &s->beside[folder];
        map reports;
        map_init(&reports, &s->arena);
        for (; at < count && files[at].folder == folder; at++) *map_put(&reports, files[at].report.operation) = b;
        for (size_t k = 0; k < b->operation_count; k++) {
            const char *const id = b->operations[k].id;
            if (map_get(&reports, id) || !map_get(&b->unreadable, id)) continue;
            b->unread++;
            *map_put(&reports, id) = b;
        }
        b->absent = without_report(&reports, b->operations, b->operation_count, false);
        b->left = without_report(&reports, b->operations, b->operation_count, true);
        b->absent_fusions = without_report(&reports, b->fusions, b->fusion_count, false);
    }
}

/* ---- of a group ---- */

/* A run that was killed has said nothing since it began. */
static const char *ending(const char *state) {
    static const char *const endings[][2] = {
        {"interrupted", "the run was interrupted"}, {"running", "the run has not ended"}, {"failed", "the run failed"}};
    for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++)
        if (plain_same(state, endings[k][0])) return endings[k][1];
    return NULL;
}

void study_join_course(study_course *c, study_beside *b) {
    b->joined = true;
    if (!c->state && ending(b->state)) c->state = b->state;
    c->absent += b->absent;
    c->unread += b->unread;
    c->left += b->left;
    c->absent_fusions += b->absent_fusions;
}

static const char *more(arena *a, const char *text, size_t count, const char *what) {
    return count > 0 ? arena_printf(a, "%s%s%zu %s", text, *text ? ", " : "", count, what) : text;
}

void study_make_partial(study *s, study_group *g) {
    const study_course *c = &g->course;
    study_partial *p = &g->partial;
    bool known = c->absent + c->unread + c->left == 0; /* what each takes by estimate */
    for (size_t k = 0; k < g->count; k++) {
        const study_report *r = &g->reports[k];
        if (r->count <= 0 || verdict_is_excused(r->reason_code)) continue;
        const bool figure = study_has_baseline(r);
        p->measured += figure;
        p->operations++;
        p->late += !figure && plain_same(r->reason_code, "budget");
        known = known && (figure || r->least_us > 0);
    }
    const size_t without = p->operations - p->measured;
    p->operations += c->absent + c->unread + c->left;
    p->share = known && g->model_us > 0 ? g->measured_us / g->model_us : NAN;
    if (p->measured == p->operations && !c->state && c->absent_fusions == 0) return;
    arena *a = &s->arena;
    const char *why = c->state ? ending(c->state) : "";
    why = more(a, why, c->absent, "not reached");
    why = more(a, why, c->unread, "with a report that cannot be read");
    why = more(a, why, p->late, "skipped for want of time");
    why = more(a, why, without - p->late, "without a valid baseline");
    why = more(a, why, c->left, "left out by --only");
    why = more(a, why, c->absent_fusions, c->absent_fusions == 1 ? "fusion not reached" : "fusions not reached");
    const char *share = isfinite(p->share) && p->measured < p->operations
                            ? arena_printf(a, ", %.1f %% of the estimated time", floor(1000 * p->share) / 10)
                            : "";
    p->text = arena_printf(a, "PARTIAL: %zu of %zu operation%s %s a figure%s (%s)", p->measured, p->operations,
                           p->operations == 1 ? "" : "s", p->measured == 1 ? "has" : "have", share, why);
}
