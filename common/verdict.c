/* Owns the rules by which measured times become a verdict. One table, in order: the first rule that applies decides
 * what should be done and says so. Where an interval touches a threshold, the cheaper action is taken and said to be
 * so. */
#include "common/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const verdict_thresholds verdict_defaults = {
    .ceiling = 0.90,
    .high_proven = 0.05,
    .high_potential = 0.10,
    .medium_proven = 0.01,
    .medium_potential = 0.03,
    .margin = 0.02,
};

/* What the rules look at. Shares are of the model's time; a half is half the width of an interval. */
typedef struct judged {
    const verdict_facts *f;
    const verdict_thresholds *t;
    double count, model_us;
    double efficiency, efficiency_half; /* not-a-number where no ceiling is known */
    double win, win_half;               /* part of the baseline's time that the best one saves */
    bool launch, ceiling, proven;       /* `ceiling`: one is known */
    double proven_share, proven_half, potential_share, potential_half;
} judged;

static bool is_time(double us) { return isfinite(us) && us > 0; }
static double width(double x) { return isfinite(x) && x > 0 ? x : 0; }
static bool touches(double x, double half, double threshold) { return half > 0 && fabs(x - threshold) <= half; }

static bool is_dense_gemm(const verdict_facts *f) {
    return f->op && strcmp(f->op, "gemm") == 0 && (!f->pattern || strcmp(f->pattern, "DENSE") == 0);
}

/* ---- the facts, weighed ---- */

static void judge_win(judged *j) {
    const verdict_facts *f = j->f;
    double ratio = f->ratio, half = width(f->ratio_ci) * f->ratio;
    if (!is_time(ratio) && is_time(f->best_us) && f->best_us < f->baseline_us) {
        ratio = f->best_us / f->baseline_us;
        half = ratio * (width(f->best_ci) + width(f->baseline_ci));
    }
    if (!is_time(ratio) || ratio >= 1) return;
    j->win = 1 - ratio;
    j->win_half = half;
    j->proven = j->win > j->t->margin && j->win > half && !touches(j->win, half, j->t->margin);
}

static judged judge(const verdict_facts *f, const verdict_thresholds *t) {
    judged j = {.f = f, .t = t, .efficiency = NAN};
    j.count = isfinite(f->count) && f->count > 0 ? f->count : 0;
    if (!f->measured || !is_time(f->baseline_us)) return j;
    const double weight = j.count * f->baseline_us;
    j.model_us = is_time(f->model_us) && f->model_us > weight ? f->model_us : weight;
    j.launch = f->bound && strcmp(f->bound, "launch") == 0;
    j.ceiling = is_time(f->ceiling_us);
    if (j.ceiling) {
        j.efficiency = f->ceiling_us / f->baseline_us;
        j.efficiency_half = j.efficiency * (width(f->baseline_ci) + width(f->ceiling_ci));
    }
    judge_win(&j);
    if (!(j.model_us > 0)) return j; /* a part: in nobody's time */
    const double share = weight / j.model_us;
    if (j.proven) j.proven_share = share * j.win, j.proven_half = share * j.win_half;
    if (j.ceiling && !j.launch && j.efficiency < 1) {
        j.potential_share = share * (1 - j.efficiency);
        j.potential_half = share * (width(f->baseline_ci) + j.efficiency * width(f->ceiling_ci));
    }
    return j;
}

/* ---- what to try first for a product ---- */

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
        {"no_candidate", "Nothing is known of it: no implementation of this kind is known here yet."},
        {"budget", "Nothing is known of it: its time was used up, run again with a larger --budget."},
        {"memory", "Nothing is known of it: measure it where more memory is free, or in smaller pieces."},
    };
    for (size_t k = 0; reason && k < sizeof known / sizeof known[0]; k++)
        if (strcmp(known[k].reason, reason) == 0) return known[k].text;
    return "Nothing could be measured: see the rows' reasons before deciding anything.";
}

static void say_unmeasured(const judged *j, char *text, size_t room) {
    if (is_time(j->f->best_us) && j->f->best_name)
        snprintf(text, room,
                 "No baseline ran, only %s did: see the rows' reasons, there is nothing to compare it with.",
                 j->f->best_name);
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
    snprintf(text, room, "Use %s: proven to take %.1f %% less time than %s.",
             j->f->best_name ? j->f->best_name : "the measured alternative", 100 * j->win, library_of(j));
}

static void say_launch_proven(const judged *j, char *text, size_t room) {
    snprintf(text, room,
             "Bound by launching: %s takes %.1f %% less time than %s, joining it with its neighbours may gain more.",
             j->f->best_name ? j->f->best_name : "the measured alternative", 100 * j->win, library_of(j));
}

static void say_launch(const judged *j, char *text, size_t room) {
    (void)j;
    snprintf(text, room, "Bound by launching: a faster kernel gains nothing here, joining it with its neighbours may.");
}

static void say_at_ceiling(const judged *j, char *text, size_t room) {
    snprintf(text, room, "%s is at %.1f %% of the ceiling: use it, a custom kernel %s.", library_of(j),
             100 * j->efficiency, j->efficiency >= 0.97 ? "cannot improve on it" : "would hardly improve on it");
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
             100 * (1 - j->efficiency));
}

static void say_attention(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Write an attention kernel for this shape: %.0f %% of its time lies above the ceiling.",
             100 * (1 - j->efficiency));
}

static void say_kernel(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Write a kernel of its own: up to %.1f %% of the model's time is to be gained.",
             100 * j->potential_share);
}

static void say_too_little(const judged *j, char *text, size_t room) {
    snprintf(text, room, "Use %s: at best %.1f %% of the model's time is to be gained, which pays for no kernel.",
             library_of(j), 100 * j->potential_share);
}

/* ---- the rules ---- */

static bool is_no_work(const judged *j) { return j->f->no_work; }
static bool is_unmeasured(const judged *j) {
    return !j->f->measured || !is_time(j->f->baseline_us) || (!j->ceiling && !j->proven);
}
static bool is_proven(const judged *j) { return j->proven; }
static bool is_launch_proven(const judged *j) {
    return j->proven && j->launch && !(j->f->best_family && strcmp(j->f->best_family, "FUSION") == 0);
}
static bool is_launch(const judged *j) { return j->launch; }
static bool is_at_ceiling(const judged *j) { return j->efficiency + j->efficiency_half >= j->t->ceiling; }
static bool is_product(const judged *j) { return is_dense_gemm(j->f); }
static bool is_attention(const judged *j) { return j->f->op && strcmp(j->f->op, "attention") == 0; }
static bool is_worth_it(const judged *j) { return j->potential_share - j->potential_half >= j->t->medium_potential; }
static bool is_anything(const judged *j) {
    (void)j;
    return true;
}

static bool near_ceiling(const judged *j) { return touches(j->efficiency, j->efficiency_half, j->t->ceiling); }
static bool near_worth(const judged *j) {
    return near_ceiling(j) || touches(j->potential_share, j->potential_half, j->t->medium_potential);
}
static bool near_nothing(const judged *j) {
    (void)j;
    return false;
}

typedef struct rule {
    bool (*applies)(const judged *j);
    const char *approach; /* NULL: the family of the one that won */
    bool idle;            /* nothing is to be done: priority NONE */
    bool (*borderline)(const judged *j);
    void (*say)(const judged *j, char *text, size_t room);
} rule;

static const rule rules[] = {
    {is_no_work, "NONE", true, near_nothing, say_no_work},
    {is_unmeasured, "UNMEASURED", true, near_nothing, say_unmeasured},
    {is_launch_proven, NULL, true, near_nothing, say_launch_proven},
    {is_proven, NULL, false, near_nothing, say_proven},
    {is_launch, "NONE", true, near_nothing, say_launch},
    {is_at_ceiling, "NONE", true, near_ceiling, say_at_ceiling},
    {is_product, "CUTLASS_SWEEP", false, near_ceiling, say_sweep},
    {is_attention, "CUSTOM_ATTENTION", false, near_ceiling, say_attention},
    {is_worth_it, "CUSTOM_KERNEL", false, near_worth, say_kernel},
    {is_anything, "NONE", false, near_worth, say_too_little},
};

/* ---- priority ---- */

static const char *const priorities[] = {"LOW", "MEDIUM", "HIGH"};

static int level(const judged *j, double proven, double potential) {
    if (proven >= j->t->high_proven || potential >= j->t->high_potential) return 2;
    return proven >= j->t->medium_proven || potential >= j->t->medium_potential;
}

/* The lower one of those that the intervals allow. */
static const char *priority(const judged *j, bool *borderline) {
    const int least = level(j, j->proven_share - j->proven_half, j->potential_share - j->potential_half);
    const int most = level(j, j->proven_share + j->proven_half, j->potential_share + j->potential_half);
    *borderline = *borderline || least != most;
    return priorities[least];
}

verdict verdict_of(const verdict_facts *facts, const verdict_thresholds *thresholds) {
    const judged j = judge(facts, thresholds ? thresholds : &verdict_defaults);
    const rule *r = rules;
    while (!r->applies(&j)) r++; /* the last one always does */
    verdict v = {.efficiency = j.efficiency, .priority = "NONE"};
    v.approach = r->approach ? r->approach : facts->best_family ? facts->best_family : "LIBRARY_TUNE";
    v.borderline = r->borderline(&j) || (j.win > 0 && touches(j.win, j.win_half, j.t->margin));
    if (j.proven) v.proven_gain_us = j.count * facts->baseline_us * j.win;
    if (j.potential_share > 0) v.potential_gain_us = j.count * (facts->baseline_us - facts->ceiling_us);
    if (!r->idle) v.priority = priority(&j, &v.borderline);
    r->say(&j, v.recommendation, sizeof v.recommendation);
    return v;
}
