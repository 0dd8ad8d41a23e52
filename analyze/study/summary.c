/* Owns the sums over a study, its categories, and the order in which its operations deserve attention. */
#include "analyze/study/summary.h"
#include "common/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const summary_outcome_info summary_outcomes[SUMMARY_OUTCOMES] = {
    [SUMMARY_PROVEN] = {"proven", "a faster one is proven"},
    [SUMMARY_OWN] = {"own", "faster than an own kernel"},
    [SUMMARY_OPEN] = {"open", "worth trying"},
    [SUMMARY_OPTIMAL] = {"optimal", "already optimal"},
    [SUMMARY_UNDECIDED] = {"undecided", "at the ceiling or not"},
    [SUMMARY_LAUNCH] = {"launch", "bound by launching"},
    [SUMMARY_SMALL] = {"small", "too little to gain"},
    [SUMMARY_UNKNOWN] = {"unknown", "ceiling not known well"},
    [SUMMARY_MISSING] = {"missing", "no baseline"},
    [SUMMARY_OUTSIDE] = {"outside", "takes no time of its own"},
};

bool summary_to_do(summary_outcome outcome) { return outcome <= SUMMARY_OPEN; }

const char *summary_whole(const summary_group *g) {
    if (!g->group->partial.text) return "the time";
    return g->group->model_us > g->group->measured_us ? "the estimated time of all" : "the measured time";
}

static summary_outcome outcome_of(const study_report *r) {
    const verdict *v = &r->verdict;
    if (r->count <= 0 || verdict_is_excused(r->reason_code)) return SUMMARY_OUTSIDE;
    if (!study_has_baseline(r)) return SUMMARY_MISSING;
    if (v->proven_gain_us > 0) return r->baseline_own ? SUMMARY_OWN : SUMMARY_PROVEN;
    if (plain_same(v->approach, "UNMEASURED") || plain_same(r->bound, "data")) return SUMMARY_UNKNOWN;
    if (!plain_same(v->approach, "NONE")) return SUMMARY_OPEN;
    if (plain_same(verdict_rule(v->rule), VERDICT_OPEN)) return SUMMARY_UNDECIDED;
    if (!plain_same(v->priority, "NONE")) return SUMMARY_SMALL;
    return plain_same(r->bound, "launch") ? SUMMARY_LAUNCH : SUMMARY_OPTIMAL;
}

static double share_of(double us, double model_us) { return model_us > 0 ? us / model_us : 0; }

static summary_row row_of(const study_group *g, const study_report *r) {
    const verdict *v = &r->verdict;
    summary_row row = {.report = r, .outcome = outcome_of(r)};
    if (row.outcome == SUMMARY_OUTSIDE || row.outcome == SUMMARY_MISSING) return row;
    row.weight_us = (double)r->count * r->baseline_us;
    row.share = share_of(row.weight_us, g->model_us);
    row.proven_share = share_of(v->proven_gain_us, g->model_us);
    row.potential_us = fmax(v->potential_gain_us - v->proven_gain_us, 0);
    row.potential_share = share_of(row.potential_us, g->model_us);
    return row;
}

/* ---- sums ---- */

static void add(summary_sum *sum, const summary_row *row) {
    const study_report *r = row->report;
    const double count = (double)r->count;
    sum->operations++;
    sum->occurrences += r->count;
    if (row->outcome == SUMMARY_OUTSIDE) return;
    if (row->outcome == SUMMARY_MISSING) {
        const double us = r->least_us > 0 ? count * r->least_us : 0;
        sum->baseline_us += us;
        sum->best_us += us;
        sum->ceiling_us += us;
        return;
    }
    const bool won = r->verdict.proven_gain_us > 0 && !r->baseline_own, bounded = r->ceiling_us > 0;
    verdict_sum_add(&sum->now, row->weight_us, r->baseline_ci);
    verdict_sum_add(&sum->won, count * (won ? r->best_us : r->baseline_us), won ? r->best_ci : r->baseline_ci);
    verdict_sum_add(&sum->least, count * (bounded ? r->ceiling_us : r->baseline_us),
                    bounded ? r->ceiling_ci : r->baseline_ci);
    sum->measured++;
    sum->measured_us += row->weight_us;
    sum->measured_ceiling_us += count * (r->ceiling_us > 0 ? r->ceiling_us : r->baseline_us);
    sum->baseline_us += row->weight_us;
    sum->best_us += count * (r->verdict.proven_gain_us > 0 ? r->best_us : r->baseline_us);
    sum->ceiling_us += count * (r->ceiling_us > 0 ? r->ceiling_us : r->baseline_us);
    *(r->baseline_own ? &sum->own_us : &sum->proven_us) += r->verdict.proven_gain_us;
    sum->potential_us += row->potential_us;
    sum->borderline += r->verdict.borderline;
}

static void finish(summary_sum *sum, double model_us) {
    sum->share = share_of(sum->baseline_us, model_us);
    sum->measured_share = share_of(sum->measured_us, model_us);
    sum->proven_share = share_of(sum->proven_us, model_us);
    sum->own_share = share_of(sum->own_us, model_us);
    sum->potential_share = share_of(sum->potential_us, model_us);
}

/* ---- categories ---- */

static int by_share(const void *a, const void *b) {
    const summary_category *x = a, *y = b;
    if (x->sum.baseline_us != y->sum.baseline_us) return x->sum.baseline_us < y->sum.baseline_us ? 1 : -1;
    return strcmp(x->op, y->op);
}

static void make_categories(study *s, summary_group *to) {
    summary_category *all = NULL;
    size_t count = 0, cap = 0;
    map index;
    map_init(&index, &s->arena);
    for (size_t k = 0; k < to->row_count; k++) {
        const summary_row *row = &to->rows[k];
        if (row->outcome == SUMMARY_OUTSIDE) continue;
        void **at = map_put(&index, row->report->op);
        if (!*at) {
            arena_grow(&s->arena, (void **)&all, &cap, count, sizeof *all);
            all[count++] = (summary_category){.op = row->report->op};
            *at = (void *)(uintptr_t)count;
        }
        summary_category *c = &all[(uintptr_t)*at - 1];
        add(&c->sum, row);
        if (row->outcome == SUMMARY_OPTIMAL) add(&c->optimal, row);
    }
    for (size_t k = 0; k < count; k++) {
        finish(&all[k].sum, to->group->model_us);
        finish(&all[k].optimal, to->group->model_us);
    }
    if (count > 0) qsort(all, count, sizeof *all, by_share);
    to->categories = all;
    to->category_count = count;
}

/* ---- what to do first ---- */

static int level(const summary_row *row) {
    static const char *const names[] = {"NONE", "LOW", "MEDIUM", "HIGH"};
    for (int k = 0; k < 4 && row->outcome != SUMMARY_OUTSIDE; k++)
        if (plain_same(names[k], row->report->verdict.priority)) return k;
    return -1;
}

static int compare(double x, double y) { return (x < y) - (x > y); }

/* Of the same priority: where something is to be done, then where something is to be found out. */
static const int turns[SUMMARY_OUTCOMES] = {
    [SUMMARY_PROVEN] = 0, [SUMMARY_OWN] = 0,       [SUMMARY_OPEN] = 1,    [SUMMARY_UNKNOWN] = 2, [SUMMARY_MISSING] = 3,
    [SUMMARY_SMALL] = 4,  [SUMMARY_UNDECIDED] = 5, [SUMMARY_OPTIMAL] = 6, [SUMMARY_LAUNCH] = 7,  [SUMMARY_OUTSIDE] = 8,
};

/* What is proven before what is only potential; then what takes the most time. */
static int by_rank(const void *a, const void *b) {
    const summary_row *x = a, *y = b;
    int order = level(y) - level(x);
    if (!order) order = compare(x->report->verdict.proven_gain_us, y->report->verdict.proven_gain_us);
    if (!order) order = turns[x->outcome] - turns[y->outcome];
    if (!order) order = compare(x->potential_us, y->potential_us);
    if (!order) order = compare(x->weight_us, y->weight_us);
    return order ? order : strcmp(x->report->operation, y->report->operation);
}

static void make_rows(study *s, summary_group *to) {
    const study_group *g = to->group;
    summary_row *rows = arena_array(&s->arena, summary_row, g->count + 1);
    for (size_t k = 0; k < g->count; k++) rows[k] = row_of(g, &g->reports[k]);
    qsort(rows, g->count, sizeof *rows, by_rank);
    for (size_t k = 0; k < g->count; k++) rows[k].rank = k + 1;
    to->rows = rows;
    to->row_count = g->count;
}

static void make_sums(summary_group *to) {
    size_t judged = 0;
    for (size_t k = 0; k < to->row_count; k++) {
        const summary_row *row = &to->rows[k];
        const study_report *r = row->report;
        add(&to->outcomes[row->outcome], row);
        if (row->outcome == SUMMARY_OUTSIDE) continue;
        add(&to->all, row);
        judged += row->outcome != SUMMARY_MISSING;
        to->bad_rows += r->bad_rows > 0;
        to->said_otherwise += r->said && !plain_same(r->said, r->verdict.approach);
    }
    finish(&to->all, to->group->model_us);
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) finish(&to->outcomes[k], to->group->model_us);
    to->missing_us = to->outcomes[SUMMARY_MISSING].baseline_us;
    to->borderline_share = judged > 0 ? (double)to->all.borderline / (double)judged : 0;
}

/* ---- what is not in it ---- */

static int by_operations(const void *a, const void *b) {
    const summary_missing *x = a, *y = b;
    if (x->operations != y->operations) return x->operations < y->operations ? 1 : -1;
    const int order = strcmp(x->status, y->status);
    return order ? order : strcmp(x->code, y->code);
}

static void make_missing(study *s, summary_group *to) {
    summary_missing *all = NULL;
    size_t count = 0, cap = 0;
    map index;
    map_init(&index, &s->arena);
    for (size_t k = 0; k < to->row_count; k++) {
        const study_report *r = to->rows[k].report;
        if (to->rows[k].outcome != SUMMARY_MISSING) continue;
        const char *code = r->reason_code ? r->reason_code : "error";
        void **at = map_put(&index, arena_printf(&s->arena, "%s\n%s", r->status, code));
        if (!*at) {
            arena_grow(&s->arena, (void **)&all, &cap, count, sizeof *all);
            all[count++] = (summary_missing){
                .status = r->status, .code = code, .text = r->reason_text ? r->reason_text : "", .first = r};
            *at = (void *)(uintptr_t)count;
        }
        summary_missing *m = &all[(uintptr_t)*at - 1];
        m->operations++;
        m->occurrences += r->count;
    }
    if (count > 0) qsort(all, count, sizeof *all, by_operations);
    to->missing = all;
    to->missing_count = count;
}

/* ---- fusions ---- */

static int by_saving(const void *a, const void *b) {
    const study_report *x = *(const study_report *const *)a, *y = *(const study_report *const *)b;
    const int order = compare(x->saved_us, y->saved_us);
    return order ? order : strcmp(x->operation, y->operation);
}

static void make_fusions(study *s, summary_group *to) {
    const study_group *g = to->group;
    const study_report **rows = arena_array(&s->arena, const study_report *, g->fusion_count + 1);
    summary_fusions *f = &to->fusions;
    f->all = g->fusion_count;
    f->rows = rows;
    for (size_t k = 0; k < g->fusion_count; k++) {
        const study_report *r = &g->fusions[k];
        const bool worth = plain_same(r->worth, "yes"), borderline = plain_same(r->worth, "borderline");
        f->worth += worth;
        f->borderline += borderline;
        f->unknown += !r->worth;
        if (worth || borderline) rows[f->count++] = r;
        if (worth && r->selected > 0 && r->count > 0)
            f->saved_us += r->saved_us * fmin((double)r->selected / (double)r->count, 1);
    }
    qsort(rows, f->count, sizeof *rows, by_saving);
    f->saved_share = share_of(f->saved_us, g->model_us);
}

bool summary_make(study *s, size_t top, summary *m, status *st) {
    *m = (summary){.study = s, .top = top, .incomplete = s->skipped_count > 0};
    if (!guard_enter(&s->guard)) {
        *st = s->guard.st;
        return false;
    }
    summary_group *groups = arena_array(&s->arena, summary_group, s->group_count + 1);
    for (size_t k = 0; k < s->group_count; k++) {
        summary_group *to = &groups[k];
        to->group = &s->groups[k];
        make_rows(s, to);
        make_sums(to);
        make_categories(s, to);
        make_missing(s, to);
        make_fusions(s, to);
        summary_make_next(s, to);
        const study_course *c = &to->group->course;
        m->incomplete = m->incomplete || to->missing_count > 0 || to->bad_rows > 0 || c->absent + c->absent_fusions > 0;
    }
    m->groups = groups;
    m->group_count = s->group_count;
    return true;
}
