/* Owns the rules by which measured times become a verdict. One table, in order: the first rule that applies decides
 * what should be done and says so. Where an interval touches a threshold the matter is open: the cheaper action is
 * taken, and the sentence says between what and what it lies. */
#include "common/verdict.h"

#include "common/plain.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const verdict_thresholds verdict_defaults = {
    .ceiling = 0.90,
    .ceiling_ci = 0.05,
    .high_proven = 0.05,
    .high_potential = 0.10,
    .medium_proven = 0.01,
    .medium_potential = 0.03,
    .margin = 0.02,
};

/* The floor at which a ceiling is said to be set by launching (scout/ceilings/ceilings.c): half of it. */
static const double launch_bound = 0.5;

typedef verdict_figure figure;

/* What the rules look at. Shares are of the model's time. */
typedef struct judged {
    const verdict_facts *f;
    const verdict_thresholds *t;
    double count, model_us;
    figure efficiency; /* not-a-number where no ceiling is known */
    figure win, rival; /* part of the baseline's time that the best one, its nearest rival saves */
    figure floor;      /* part of the ceiling that is launching */
    figure proven_share, potential_share;
    bool launch, data, proven, tie; /* `tie`: the rival stands for another approach */
    bool ceiling, vague;            /* one is known; to so little that it decides nothing */
} judged;

static bool is_time(double us) { return isfinite(us) && us > 0; }

bool verdict_known(double rel_ci) { return rel_ci >= 0 && rel_ci < 1; }
bool verdict_has_interval(double rel_ci) { return isfinite(rel_ci) && rel_ci >= 0 && rel_ci != 1; }
double verdict_width(double rel_ci) { return verdict_known(rel_ci) ? rel_ci : 1; }

/* Half of the interval of x, and of two that both matter. */
static double half_of(double x, double rel_ci) { return verdict_known(rel_ci) ? x * rel_ci : INFINITY; }
static double both(double a, double b) { return verdict_known(a) && verdict_known(b) ? a + b : INFINITY; }
static double part(double of, double half) { return of > 0 ? of * half : 0; } /* 0 x infinity counts as 0 */

verdict_gain verdict_gain_of(double ratio, double ratio_ci, double margin) {
    const double half = half_of(ratio, ratio_ci);
    if (!is_time(ratio)) return VERDICT_NO_GAIN;
    if (ratio + half < 1 - margin) return VERDICT_PROVEN_GAIN;
    return ratio - half < 1 - margin ? VERDICT_OPEN_GAIN : VERDICT_NO_GAIN;
}

void verdict_sum_add(verdict_sum *s, double us, double rel_ci) {
    s->us += us;
    if (verdict_known(rel_ci))
        s->squares += us * us * rel_ci * rel_ci;
    else
        s->common_us += us;
}

void verdict_sum_allow(verdict_sum *s, double us) {
    s->us += us;
    s->common_us += us;
}

double verdict_sum_unknown(const verdict_sum *s) { return s->us > 0 ? s->common_us / s->us : 0; }
double verdict_sum_ci(const verdict_sum *s) { return s->us > 0 ? (sqrt(s->squares) + s->common_us) / s->us : 0; }

static bool touches(figure f, double threshold) { return f.half > 0 && fabs(f.x - threshold) <= f.half; }
static bool surely(figure f, double threshold) { return f.x >= threshold && !touches(f, threshold); }

/* The next run measures somewhere in this interval, and has one of its own: up to the ends of both it may decide
 * otherwise. */
static bool near(figure f, double threshold) { return touches((figure){f.x, 2 * f.half}, threshold); }
static bool surely_again(figure f, double threshold) { return f.x >= threshold && !near(f, threshold); }
static bool possibly_later(figure f, double threshold) { return f.x >= threshold || near(f, threshold); }

static bool is_dense_gemm(const verdict_facts *f) {
    return f->op && strcmp(f->op, "gemm") == 0 && (!f->pattern || strcmp(f->pattern, "DENSE") == 0);
}

/* Devices that CUTLASS has tiles for; on others a product is judged as every other kind of operation is. */
static bool has_cutlass(const char *device) {
    static const char *const kinds[] = {"cuda"};
    const size_t length = device ? strcspn(device, ":") : 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (strlen(kinds[k]) == length && strncmp(kinds[k], device, length) == 0) return true;
    return false;
}

/* ---- the facts, weighed ---- */

/* What a ratio of two times saves; nothing where there is none. */
static figure saving(double ratio, double rel_ci) {
    return is_time(ratio) ? (figure){1 - ratio, half_of(ratio, rel_ci)} : (figure){0, 0};
}

static const char *family_of(const verdict_facts *f) { return f->best_family ? f->best_family : "LIBRARY_TUNE"; }

static void judge_win(judged *j) {
    const verdict_facts *f = j->f;
    const double margin = j->t->margin;
    double ratio = f->ratio, ratio_ci = f->ratio_ci;
    if (!is_time(ratio) && is_time(f->best_us) && f->best_us < f->baseline_us)
        ratio = f->best_us / f->baseline_us, ratio_ci = both(f->best_ci, f->baseline_ci);
    j->win = saving(ratio, ratio_ci);
    if (verdict_known(f->rival_ratio_ci)) j->rival = saving(f->rival_ratio, f->rival_ratio_ci);
    j->proven = verdict_gain_of(ratio, ratio_ci, margin) == VERDICT_PROVEN_GAIN;
    const bool another = f->rival_family && strcmp(f->rival_family, family_of(f)) != 0;
    j->tie = j->proven && another && j->rival.x + j->rival.half >= j->win.x - j->win.half;
}

/* A ceiling from beside is a ratio to the baseline: what the clock does is in both, and the interval is the ratio's. A
 * stored one is another measurement, which decides nothing where it is hardly known. */
static void judge_ceiling(judged *j) {
    const verdict_facts *f = j->f;
    j->launch = f->bound && strcmp(f->bound, "launch") == 0;
    j->data = f->bound && strcmp(f->bound, "data") == 0;
    j->ceiling = is_time(f->ceiling_us) && !j->data;
    if (!j->ceiling) return;
    j->vague = !f->ceiling_beside && !(f->ceiling_ci <= j->t->ceiling_ci);
    j->efficiency.x = f->ceiling_us / f->baseline_us;
    j->efficiency.half =
        half_of(j->efficiency.x, f->ceiling_beside ? f->ceiling_ci : both(f->baseline_ci, f->ceiling_ci));
    if (!is_time(f->launch_us)) return;
    j->floor.x = f->launch_us / f->ceiling_us;
    j->floor.half = isfinite(f->ceiling_ci) ? j->floor.x * f->ceiling_ci : 0;
    if (touches(j->floor, launch_bound)) j->launch = !j->vague; /* the cheaper action: it has no potential */
}

/* A share falls as the model's time grows: by what this operation itself takes, and by what all others do. */
static void judge_shares(judged *j) {
    const verdict_facts *f = j->f;
    const double weight = j->count * f->baseline_us, share = weight / j->model_us;
    const double own = half_of(1, f->baseline_ci), rest = part(1 - share, own);
    const double all = verdict_width(f->model_ci) * j->model_us, mine = weight * verdict_width(f->baseline_ci);
    const double others = all > mine ? sqrt(all * all - mine * mine) / j->model_us : 0;
    if (j->proven) {
        const double gain = share * j->win.x;
        j->proven_share = (figure){gain, share * (j->win.half + j->win.x * rest) + gain * others};
    }
    if (j->vague && !j->launch) {
        j->potential_share = (figure){0, INFINITY}; /* it may be any: only what is proven makes a priority */
    } else if (j->ceiling && !j->launch && j->efficiency.x < 1) {
        const double gain = share * (1 - j->efficiency.x), ceiling = half_of(j->efficiency.x, f->ceiling_ci);
        const double half = f->ceiling_beside ? part(gain, rest) : part(share * (1 - gain), own);
        j->potential_share = (figure){gain, half + part(share, ceiling) + gain * others};
    }
}

static judged judge(const verdict_facts *f, const verdict_thresholds *t) {
    judged j = {.f = f, .t = t, .efficiency = {NAN, 0}};
    j.count = isfinite(f->count) && f->count > 0 ? f->count : 0;
    if (!f->measured || !is_time(f->baseline_us)) return j;
    const double weight = j.count * f->baseline_us;
    j.model_us = is_time(f->model_us) && f->model_us > weight ? f->model_us : weight;
    judge_ceiling(&j);
    judge_win(&j);
    if (j.model_us > 0) judge_shares(&j); /* else a part, which is in no sum */
    return j;
}

/* ---- sentences ---- */

static const char *library_of(const judged *j) { return j->f->baseline_name ? j->f->baseline_name : "the library"; }

/* What can be done about having no figure, by the reason's code. */
static const char *advice_for(const char *reason) {
    static const char quiet[] = "Its times would not settle: measure it again while the device has nothing else to do.";
    static const char none[] = "No library here computes it: look for one that does before writing a kernel.";
    static const struct {
        const char *reason, *text;
    } known[] = {
        {"interval", quiet},
        {"drift", quiet},
        {"clock", quiet},
        {"type", none},
        {"shape", none},
        {"layout", none},
        {"epilogue", none},
        {"feature", none},
        {"hardware", none},
        {"no_candidate", "Not measured: no implementation of this kind is known here yet."},
        {"budget", "Not measured: the time budget was used up, run again with a larger --budget."},
        {"memory", "Not measured: measure it where more memory is free, or in smaller pieces."},
    };
    for (size_t k = 0; reason && k < sizeof known / sizeof known[0]; k++)
        if (strcmp(known[k].reason, reason) == 0) return known[k].text;
    return "Not measured: see the rows' reasons before deciding anything.";
}

static const char longer[] = "measure it longer (--budget) before writing a kernel";

static void say_unmeasured(const judged *j, char *text, size_t room) {
    if (is_time(j->f->best_us) && j->f->best_name)
        snprintf(text, room, "No baseline ran, only %s did: see the rows' reasons.", j->f->best_name);
    else if (j->f->measured)
        snprintf(text, room, "No ceiling is known for this operation: measure it with --ceilings, then run again.");
    else
        snprintf(text, room, "%s", advice_for(j->f->reason));
}

static void say_no_work(const judged *j, char *text, size_t room) {
    (void)j;
    snprintf(text, room, "Nothing to do: it computes nothing and moves nothing.");
}

static void say_proven(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Use %s: proven to take %.1f %% less time than %s%s.",
             j->f->best_name ? j->f->best_name : "the measured alternative", 100 * j->win.x, library_of(j),
             j->f->baseline_own ? ", which is not a library's" : "");
}

static void say_apart(const judged *j, char *text, size_t room) {
    const double ratio = j->f->rival_ratio, ci = j->f->rival_ratio_ci;
    if (is_time(ratio) && ratio < 1 && !(verdict_known(ci) && ratio * (1 + ci) < 1))
        snprintf(text, room, "Not decided: the fused operation took %.2f times as long, which is not proven.", ratio);
    else if (is_time(ratio) && ratio < 1)
        snprintf(text, room, "Do not fuse them: the fused operation takes %.1f %% less time, too little.",
                 100 * (1 - ratio));
    else if (is_time(ratio))
        snprintf(text, room, "Do not fuse them: the fused operation takes %.2f times as long.", ratio);
    else
        snprintf(text, room, "Do not fuse them: no fused candidate was measured to be faster.");
}

static void say_launch_proven(const judged *j, char *text, size_t room) {
    snprintf(text, room,
             "Bound by launching: %s takes %.1f %% less time than %s, fusing it with its neighbours may gain more.",
             j->f->best_name ? j->f->best_name : "the measured alternative", 100 * j->win.x, library_of(j));
}

static void say_launch(const judged *j, char *text, size_t room) {
    (void)j;
    snprintf(text, room, "Bound by launching: a faster kernel gains nothing here, fusing it with its neighbours may.");
}

static void say_data(const judged *j, char *text, size_t room) {
    (void)j;
    snprintf(text, room, "How much it does depends on its data: what bounds it is not known.");
}

static void say_vague(const judged *j, char *text, size_t room) {
    const double ci = j->f->ceiling_ci;
    static const char again[] = "measure it again with --ceilings --no-cache";
    if (ci < 1)
        snprintf(text, room, "Its ceiling is known to +- %.1f %% only: %s.", 100 * ci, again);
    else
        snprintf(text, room, "The uncertainty of its ceiling is unknown: %s.", again);
}

static bool near_ceiling(const judged *j) { return near(j->efficiency, j->t->ceiling); }

static void say_at_ceiling(const judged *j, char *text, size_t room) {
    snprintf(text, room, "%s is at %.1f %% of the ceiling: use it, a custom kernel %s.", library_of(j),
             100 * j->efficiency.x, j->efficiency.x >= 0.97 ? "cannot improve on it" : "would hardly improve on it");
}

static void say_open(const judged *j, char *text, size_t room) {
    const figure f = j->efficiency;
    const double ci = j->f->ceiling_beside ? j->f->ceiling_ci : j->f->baseline_ci; /* which is not known */
    if (isfinite(f.half))
        snprintf(text, room, "%s is at between %.1f and %.1f %% of the ceiling: use it, %s.", library_of(j),
                 100 * fmax(f.x - f.half, 0), 100 * (f.x + f.half), longer);
    else if (verdict_has_interval(ci))
        snprintf(text, room, "%s is at about %.1f %% of the ceiling, known to +- %.0f %% only: use it, %s.",
                 library_of(j), 100 * f.x, 100 * ci, longer);
    else
        snprintf(text, room, "%s is at about %.1f %% of the ceiling, from one pass only: use it, %s.", library_of(j),
                 100 * f.x, longer);
}

static void say_sweep(const judged *j, char *text, size_t room) {
    verdict_tile tiles[VERDICT_TILES];
    const int count = verdict_tiles(j->f, tiles);
    char list[96] = "";
    size_t used = 0;
    for (int k = 0; k < count && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%dx%dx%d",
                                 k == 0           ? ""
                                 : k == count - 1 ? " and "
                                                  : ", ",
                                 tiles[k].m, tiles[k].n, tiles[k].k);
    const double blocks = count == 0
                              ? 0
                              : ceil((double)j->f->shape[0] / tiles[0].m) * ceil((double)j->f->shape[1] / tiles[0].n) *
                                    (double)(j->f->batch > 1 ? j->f->batch : 1);
    snprintf(text, room, "Sweep tile shapes%s%s%s: %.0f %% of its time lies above the ceiling.",
             count > 0 ? ", first " : "", list, blocks > 0 && 2 * blocks <= j->f->units ? ", with K split" : "",
             100 * (1 - j->efficiency.x));
}

static void say_attention(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Write an attention kernel for this shape: %.0f %% of its time lies above the ceiling.",
             100 * (1 - j->efficiency.x));
}

static void say_kernel(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Write a custom kernel: up to %.1f %% of the model's time can be gained.",
             100 * j->potential_share.x);
}

static void say_too_little(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Use %s: at most %.1f %% of the model's time can be gained, too little for a custom kernel.",
             library_of(j), 100 * j->potential_share.x);
}

/* ---- the rules ---- */

static bool is_no_work(const judged *j) { return j->f->no_work; }
static bool is_unmeasured(const judged *j) {
    return !j->f->measured || !is_time(j->f->baseline_us) || (!j->ceiling && !j->proven && !j->data);
}
static bool is_proven(const judged *j) { return j->proven; }
static bool is_launch_proven(const judged *j) {
    return j->proven && j->launch && !(j->f->best_family && strcmp(j->f->best_family, "FUSION") == 0);
}
static bool is_fusion(const judged *j) { return j->f->fusion; }
static bool is_launch(const judged *j) { return j->launch; }
static bool is_data(const judged *j) { return j->data; }
static bool is_vague(const judged *j) { return j->vague; }
static bool is_at_ceiling(const judged *j) { return surely(j->efficiency, j->t->ceiling); }
static bool is_open(const judged *j) { return touches(j->efficiency, j->t->ceiling); }
static bool is_swept(const judged *j) { return is_dense_gemm(j->f) && has_cutlass(j->f->device); }
static bool is_attention(const judged *j) { return j->f->op && strcmp(j->f->op, "attention") == 0; }
static bool is_worth_it(const judged *j) { return surely(j->potential_share, j->t->medium_potential); }
static bool is_anything(const judged *j) {
    (void)j;
    return true;
}

static bool near_worth(const judged *j) { return near_ceiling(j) || near(j->potential_share, j->t->medium_potential); }
static bool near_nothing(const judged *j) {
    (void)j;
    return false;
}

typedef struct rule {
    const char *name;
    bool (*applies)(const judged *j);
    const char *approach; /* NULL: the family of the one that won */
    bool idle;            /* nothing is to be done: priority NONE */
    bool (*borderline)(const judged *j);
    void (*say)(const judged *j, char *text, size_t room);
} rule;

static const rule rules[] = {
    {"nothing to do", is_no_work, "NONE", true, near_nothing, say_no_work},
    {"not measured", is_unmeasured, "UNMEASURED", true, near_nothing, say_unmeasured},
    {"proven, and bound by launching", is_launch_proven, NULL, true, near_nothing, say_launch_proven},
    {"proven", is_proven, NULL, false, near_nothing, say_proven},
    {"fusion without a gain", is_fusion, "NONE", true, near_nothing, say_apart},
    {"bound by its data", is_data, "NONE", true, near_nothing, say_data},
    {"bound by launching", is_launch, "NONE", true, near_nothing, say_launch},
    {"ceiling not known well enough", is_vague, "UNMEASURED", true, is_vague, say_vague},
    {"at the ceiling", is_at_ceiling, "NONE", true, near_ceiling, say_at_ceiling},
    {VERDICT_OPEN, is_open, "NONE", true, is_open, say_open},
    {"dense product", is_swept, "CUTLASS_SWEEP", false, near_ceiling, say_sweep},
    {"attention", is_attention, "CUSTOM_ATTENTION", false, near_ceiling, say_attention},
    {"worth a kernel", is_worth_it, "CUSTOM_KERNEL", false, near_worth, say_kernel},
    {"anything else", is_anything, "NONE", false, near_worth, say_too_little},
};

const char *verdict_rule(int number) {
    return number >= 0 && number < (int)(sizeof rules / sizeof rules[0]) ? rules[number].name : NULL;
}

/* What is compared with each threshold (launch_bound and those that are options). */
static const struct {
    const char *what, *effect;
    verdict_figures figure;
    size_t threshold;
} checks[VERDICT_CHECKS] = {
    {"saved by the best", "proven", VERDICT_SAVING, offsetof(verdict_thresholds, margin)},
    {"saved by its rival", "might win", VERDICT_RIVAL, offsetof(verdict_thresholds, margin)},
    {"launching in the ceiling", "bound by launching", VERDICT_FLOOR, SIZE_MAX},
    {"efficiency", "at the ceiling", VERDICT_EFFICIENCY, offsetof(verdict_thresholds, ceiling)},
    {"proven gain", "HIGH", VERDICT_PROVEN, offsetof(verdict_thresholds, high_proven)},
    {"proven gain", "MEDIUM", VERDICT_PROVEN, offsetof(verdict_thresholds, medium_proven)},
    {"potential gain", "HIGH", VERDICT_POTENTIAL, offsetof(verdict_thresholds, high_potential)},
    {"potential gain", "MEDIUM", VERDICT_POTENTIAL, offsetof(verdict_thresholds, medium_potential)},
};

void verdict_checks(const verdict *v, const verdict_thresholds *thresholds, verdict_check to[VERDICT_CHECKS]) {
    for (int k = 0; k < VERDICT_CHECKS; k++) {
        to[k] = (verdict_check){.what = checks[k].what, .effect = checks[k].effect, .figure = checks[k].figure};
        to[k].threshold = launch_bound;
        if (checks[k].threshold != SIZE_MAX)
            memcpy(&to[k].threshold, (const char *)thresholds + checks[k].threshold, sizeof to[k].threshold);
        to[k].touches = touches(v->figures[checks[k].figure], to[k].threshold);
        to[k].near = near(v->figures[checks[k].figure], to[k].threshold);
    }
}

/* ---- what is open beside the rule ---- */

__attribute__((format(printf, 2, 3))) static void add(char text[], const char *format, ...) {
    const size_t used = strlen(text), room = sizeof((verdict *)0)->recommendation;
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

/* What may be a gain, and is none that is proven. */
static void add_gain(const char *name, double ratio, double ratio_ci, char text[]) {
    const figure w = saving(ratio, ratio_ci);
    if (isfinite(w.half))
        add(text,
            w.x < w.half ? " Open: %s takes between %.1f %% more and %.1f %% less."
                         : " Open: %s takes between %.1f and %.1f %% less.",
            name, 100 * fabs(w.x - w.half), 100 * (w.x + w.half));
    else if (w.x > 0 && verdict_has_interval(ratio_ci))
        add(text, " Open: %s took %.1f %% less, known to +- %.0f %% only.", name, 100 * w.x, 100 * ratio_ci);
    else if (w.x > 0)
        add(text, " Open: %s took %.1f %% less in one pass.", name, 100 * w.x);
}

static bool is_open_gain(const judged *j, double ratio, double ratio_ci) {
    return verdict_gain_of(ratio, ratio_ci, j->t->margin) == VERDICT_OPEN_GAIN;
}

static void add_open(const judged *j, char text[]) {
    const verdict_facts *f = j->f;
    if (!j->proven && f->best_name && is_open_gain(j, f->ratio, f->ratio_ci))
        add_gain(f->best_name, f->ratio, f->ratio_ci, text);
    else if (!j->proven && f->rival_name && is_open_gain(j, f->rival_ratio, f->rival_ratio_ci))
        add_gain(f->rival_name, f->rival_ratio, f->rival_ratio_ci, text);
    if (is_time(f->address_best) && is_time(f->address_worst))
        add(text, " Its time depends on memory addresses: between %.3f and %.3f of %s time.", f->address_best,
            f->address_worst, is_time(f->ratio) ? "the default's" : "its usual");
}

/* ---- priority ---- */

static const char *const priorities[] = {"LOW", "MEDIUM", "HIGH"};

static int level(const judged *j, bool (*reaches)(figure f, double threshold)) {
    const verdict_thresholds *t = j->t;
    if (reaches(j->proven_share, t->high_proven) || reaches(j->potential_share, t->high_potential)) return 2;
    return reaches(j->proven_share, t->medium_proven) || reaches(j->potential_share, t->medium_potential);
}

/* The lower one of those that the intervals allow. */
static const char *priority(const judged *j, bool *borderline) {
    *borderline = *borderline || level(j, surely_again) != level(j, possibly_later);
    return priorities[level(j, surely)];
}

/* What comes before the rules' own thresholds: whether anything was proven, by which candidate, and what bounds the
 * operation. A rival that might have won (it did not settle, or came near) may win the next time. */
static bool near_another_rule(const judged *j) {
    const double margin = j->t->margin;
    return near(j->win, margin) || (!j->proven && possibly_later(j->rival, margin)) || j->tie ||
           near(j->floor, launch_bound);
}

verdict verdict_of(const verdict_facts *facts, const verdict_thresholds *thresholds) {
    const judged j = judge(facts, thresholds ? thresholds : &verdict_defaults);
    const rule *r = rules;
    while (!r->applies(&j)) r++; /* the last one always does */
    verdict v = {.efficiency = j.efficiency.x,
                 .priority = "NONE",
                 .rule = (int)(r - rules),
                 .figures = {[VERDICT_EFFICIENCY] = j.efficiency,
                             [VERDICT_SAVING] = j.win,
                             [VERDICT_RIVAL] = j.rival,
                             [VERDICT_FLOOR] = j.floor,
                             [VERDICT_PROVEN] = j.proven_share,
                             [VERDICT_POTENTIAL] = j.potential_share}};
    v.approach = r->approach ? r->approach : family_of(facts);
    v.borderline = r->borderline(&j) || near_another_rule(&j);
    if (j.proven) v.proven_gain_us = j.count * facts->baseline_us * j.win.x;
    if (j.potential_share.x > 0) v.potential_gain_us = j.count * (facts->baseline_us - facts->ceiling_us);
    if (!r->idle) v.priority = priority(&j, &v.borderline);
    r->say(&j, v.recommendation, sizeof v.recommendation);
    add_open(&j, v.recommendation);
    plain_end(v.recommendation);
    return v;
}

/* ---- how scout_batch, from what it measured, and analyze, from a report, come to the same facts ---- */

bool verdict_is_excused(const char *reason) {
    return reason && (strcmp(reason, "no_work") == 0 || strcmp(reason, "not_asked") == 0);
}

bool verdict_has_approach(const char *approach, bool of_candidate) {
    static const char *const known[] = {"LIBRARY_TUNE",  "CUTLASS_SWEEP",    "SPARSE_24", "SPARSE_BLOCK", "SPARSE_CSR",
                                        "CUSTOM_KERNEL", "CUSTOM_ATTENTION", "FUSION",    "NONE",         "UNMEASURED"};
    const size_t count = sizeof known / sizeof known[0] - (of_candidate ? 2 : 0); /* the last two are verdicts alone */
    for (size_t k = 0; approach && k < count; k++)
        if (strcmp(known[k], approach) == 0) return true;
    return false;
}

bool verdict_is_sparse(const char *family) { return family && strncmp(family, "SPARSE_", 7) == 0; }

const char *verdict_name(const char *name, const char *variant, char text[VERDICT_NAME]) {
    if (!name) return NULL;
    snprintf(text, VERDICT_NAME, "%s%s%s", name, variant && *variant ? " " : "", variant ? variant : "");
    plain_end(text);
    return text;
}

void verdict_fuse(verdict_facts *facts, const verdict_fused *x) {
    facts->fusion = true;
    facts->baseline_name = "the parts";
    facts->measured = facts->measured && isfinite(x->parts_us);
    facts->baseline_us = x->parts_us;
    if (!x->sum) return;
    facts->best_family = facts->rival_family = "FUSION";
    facts->ceiling_beside = false; /* that was beside another baseline */
    facts->baseline_ci = x->sum_ci;
    facts->ratio = x->ratio < 1 ? x->ratio : 0;
    facts->rival_ratio = x->ratio < 1 ? NAN : x->ratio;
    facts->ratio_ci = facts->rival_ratio_ci = x->ratio_ci;
    facts->rival_name = facts->best_name;
}

const char *verdict_worth(const verdict_fused *x, double count, double margin, double *saved_us) {
    static const char *const words[] = {"no", "borderline", "yes"};
    const verdict_gain gain = verdict_gain_of(x->ratio, x->ratio_ci, margin);
    const bool proven = gain == VERDICT_PROVEN_GAIN && isfinite(x->parts_us);
    *saved_us = proven ? count * x->parts_us * (1 - x->ratio) : 0;
    return words[gain];
}

/* How well a block of C fits: what of it is inside of C, how full the last wave is, how much is computed per byte. */
static double tile_worth(const verdict_facts *f, const verdict_tile *t) {
    const double rows = ceil((double)f->shape[0] / t->m), columns = ceil((double)f->shape[1] / t->n);
    const double inside = (double)f->shape[0] * (double)f->shape[1] / (rows * t->m * columns * t->n);
    const double blocks = rows * columns * (double)(f->batch > 1 ? f->batch : 1);
    const double waves = f->units > 0 ? blocks / (ceil(blocks / f->units) * f->units) : 1;
    const double per_byte = 1 / (1 + 32.0 * (t->m + t->n) / ((double)t->m * t->n));
    return inside * waves * per_byte;
}

int verdict_tiles(const verdict_facts *facts, verdict_tile tiles[VERDICT_TILES]) {
    static const verdict_tile known[] = {{256, 128, 64}, {128, 256, 64}, {128, 128, 64}, {256, 64, 64}, {64, 256, 64},
                                         {128, 64, 64},  {64, 128, 64},  {64, 64, 64},   {64, 32, 128}, {32, 64, 128},
                                         {64, 16, 128},  {16, 64, 128},  {16, 128, 128}, {128, 16, 128}};
    double worth[VERDICT_TILES] = {0};
    int count = 0;
    if (facts->shape[0] <= 0 || facts->shape[1] <= 0) return 0;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const double w = tile_worth(facts, &known[k]);
        int at = count < VERDICT_TILES ? count++ : VERDICT_TILES;
        for (; at > 0 && w > worth[at - 1]; at--) {
            if (at == VERDICT_TILES) continue;
            worth[at] = worth[at - 1];
            tiles[at] = tiles[at - 1];
        }
        if (at == VERDICT_TILES) continue;
        worth[at] = w;
        tiles[at] = known[k];
    }
    return count;
}
