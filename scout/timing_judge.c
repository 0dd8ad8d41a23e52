/* Judging blocks. Neighbouring intervals share the state that the device is in (a clock hops between steps, and stays
 * on each for some hundredths of a second), so they are no independent observations. Looks are: the means of so many
 * neighbouring intervals that hops have come and gone between one and the next. Where looks still resemble their
 * neighbours the interval is widened, and where blocks disagree beyond what their looks explain, blocks are compared.
 *
 * What is stated is the middle of the looks: of a clock with several steps the median over intervals is one step or
 * the other, by chance. Means over looks lie between, and what a controller misses in one look it makes up for in
 * others, so that their mean is steadier than their median; without a fifth at either end rare excursions move it not.
 */
#include "scout/timing_judge.h"
#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>

const double timing_judge_restless = 0.05;

/* A few looks may agree by luck, and what all of them share (the rest of a transition, what an event takes, how memory
 * happens to lie) shows in none: they are never believed to deviate by less than this. */
static const double least_deviation = 0.0005;

static const double beyond_clocks = 1.5; /* an interval so many times its block's median is no doing of the clock */

bool timing_judge_block(timing_series *s) {
    if (s->block_count == s->block_room) {
        const size_t room = s->block_room ? 2 * s->block_room : 8;
        timing_block *more = realloc(s->blocks, room * sizeof *more);
        if (!more) return false;
        s->blocks = more;
        s->block_room = room;
    }
    s->blocks[s->block_count++] = (timing_block){
        .first = s->n, .telemetry = {.clock_mhz = NAN, .memory_clock_mhz = NAN, .power_w = NAN, .temperature_c = NAN}};
    return true;
}

bool timing_judge_add(timing_series *s, double launch_s) {
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 256;
        double *more = realloc(s->x, room * sizeof *more);
        if (!more) return false;
        s->x = more;
        s->room = room;
    }
    s->x[s->n++] = launch_s;
    s->blocks[s->block_count - 1].count++;
    return true;
}

/* Of looks or blocks: the mean without a fifth at either end, one at least where there are three. */
static double middle_of(const double *y, size_t n) {
    const size_t cut = n > 2 ? (n + 4) / 5 : 0;
    return stats_middle_mean(y, n, cut);
}

static size_t looks_in(const timing_series *s, const timing_block *block) {
    /* A block that ends a few intervals short of its last look has it all the same. */
    const double n = s->per_look ? floor(1.1 * (double)block->count / (double)s->per_look) : 1;
    return (size_t)fmax(n, 1);
}

static double look_level(const timing_series *s, const timing_block *block, size_t look, size_t looks) {
    const size_t begin = block->count * look / looks, end = block->count * (look + 1) / looks;
    return stats_trimmed_mean(s->x + block->first + begin, end - begin);
}

/* Of all its intervals: what a controller misses in some it makes up for in others. */
static double mean_level(const timing_series *s, const timing_block *block) {
    const double *x = s->x + block->first, most = beyond_clocks * stats_median(x, block->count);
    double sum = 0;
    size_t n = 0;
    for (size_t k = 0; k < block->count; k++) {
        if (x[k] > most) continue;
        sum += x[k];
        n++;
    }
    return sum / (double)n;
}

static void level(timing_series *s, timing_block *block) {
    enum { MOST = 16 };
    double levels[MOST];
    const size_t looks = looks_in(s, block), n = looks < MOST ? looks : MOST;
    for (size_t k = 0; k < n; k++) levels[k] = look_level(s, block, k, n);
    block->level_s = s->steered ? mean_level(s, block) : middle_of(levels, n);
    block->halves = block->count > 1 ? fabs(look_level(s, block, 0, 2) / look_level(s, block, 1, 2) - 1) : 0;
}

void timing_judge_close(timing_series *s) { level(s, &s->blocks[s->block_count - 1]); }

void timing_judge_steered(timing_series *s) {
    if (s->steered) return;
    s->steered = true;
    s->per_look = 0;
    for (size_t k = 0; k < s->block_count; k++) level(s, &s->blocks[k]);
}

void timing_judge_forget(timing_series *s) { s->n = s->block_count = 0; }

void timing_judge_free(timing_series *s) {
    free(s->x);
    free(s->blocks);
    *s = (timing_series){.n = 0};
}

/* How much a swing that is slower than the looks widens what they say together: neighbours alike are not independent.
 * By the correlation of each with the next; fewer than four show none. Neighbours that make up for each other, as those
 * of a steered clock do, say more than independent ones: a little of that is believed. */
static double alike(const double *y, size_t n) {
    enum { LEAST = 4 };
    const double mean = stats_mean(y, n), most = 0.8, least = -0.33;
    double own = 0, next = 0;
    if (n < LEAST) return 1;
    for (size_t k = 0; k < n; k++) own += (y[k] - mean) * (y[k] - mean);
    for (size_t k = 0; k + 1 < n; k++) next += (y[k] - mean) * (y[k + 1] - mean);
    const double correlation = own > 0 ? fmin(fmax(next / own, least), most) : 0;
    return sqrt((1 + correlation) / (1 - correlation));
}

/* Half the 95 % width of what n values say together, from their relative deviation. Student's t of n - 1 degrees asks
 * of two of them to agree within a twelfth of the target, so one degree more is lent: noise within them is known. */
static double together(double deviation, size_t n) {
    return n > 1 ? stats_t95(n) * fmax(deviation, least_deviation) / sqrt((double)n) : 0;
}

/* The relative deviation of y, whose outliers are drawn in to their neighbours (y is changed): from TELLING on, a fifth
 * at either end, and *left of them count (Tukey and McLaughlin). */
static double robust_deviation(double *y, size_t n, size_t *left) {
    enum { TELLING = 5 };
    const double median = stats_median(y, n);
    const size_t cut = n >= TELLING ? n / 5 : 0;
    *left = n - 2 * cut;
    if (cut > 0) {
        const double low = stats_quantile(y, n, (double)cut / (double)(n - 1));
        const double high = stats_quantile(y, n, (double)(n - 1 - cut) / (double)(n - 1));
        for (size_t k = 0; k < n; k++) y[k] = fmin(fmax(y[k], low), high);
    }
    return alike(y, n) * stats_deviation(y, n) / median * (double)n / (double)*left;
}

static double spread_of(const double *x, size_t n) {
    return (stats_quantile(x, n, 0.95) - stats_quantile(x, n, 0.05)) / stats_median(x, n);
}

static bool restless(const timing_series *s) {
    const timing_block *last = &s->blocks[s->block_count - 1];
    return spread_of(s->x + last->first, last->count) > timing_judge_restless;
}

/* Of the blocks from `from` on. The caller frees; NULL: no memory. */
static timing_look *looks_of(const timing_series *s, size_t from, size_t *n) {
    size_t room = 0;
    for (size_t k = from; k < s->block_count; k++) room += looks_in(s, &s->blocks[k]);
    timing_look *all = room ? calloc(room, sizeof *all) : NULL;
    *n = 0;
    for (size_t k = from; all && k < s->block_count; k++) {
        const timing_block *block = &s->blocks[k];
        const size_t count = looks_in(s, block);
        for (size_t j = 0; j < count; j++) {
            const double part = ((double)j + 0.5) / (double)count - 0.5;
            all[(*n)++] = (timing_look){.level_s = look_level(s, block, j, count),
                                        .clock_mhz = block->telemetry.clock_mhz,
                                        .moment_s = block->middle_s + part * block->kept_s};
        }
    }
    return all;
}

/* What the looks within blocks explain of how far blocks lie apart, relative; 0: every block is one look. */
static double explained(const timing_series *s, size_t from) {
    double sum = 0;
    size_t looks = 0, n = s->block_count - from;
    for (size_t k = from; k < s->block_count; k++) {
        const timing_block *block = &s->blocks[k];
        const size_t count = looks_in(s, block);
        double mean = 0;
        for (size_t j = 0; j < count; j++) mean += look_level(s, block, j, count) / (double)count;
        for (size_t j = 0; j < count; j++) sum += pow(look_level(s, block, j, count) / mean - 1, 2);
        looks += count;
    }
    return looks > n ? sqrt(sum / (double)(looks - n) * (double)n / (double)looks) : 0;
}

/* Blocks that disagree by more than twice what their looks explain: then it is blocks that are independent, if any. */
static double between_blocks(const timing_series *s, size_t from) {
    const size_t n = s->block_count - from;
    const double expected = explained(s, from);
    double *y = n > 1 && expected > 0 ? calloc(n, sizeof *y) : NULL;
    if (!y) return 0;
    for (size_t k = 0; k < n; k++) y[k] = s->blocks[from + k].level_s;
    const double deviation = stats_deviation(y, n) / stats_median(y, n);
    const double half = deviation > 2 * expected ? together(alike(y, n) * deviation, n) : 0;
    free(y);
    return half;
}

/* The middle of the looks and its interval, from what they and their blocks deviate by. */
static bool compare(const timing_series *s, const timing_noise *noise, const timing_look *looks, size_t n,
                    timing_opinion *o) {
    o->looks = n;
    if (s->steered) {
        o->median_s = timing_noise_pace(s, o->first_block);
        o->rel_ci95 = timing_noise_half(noise, s, o->first_block);
        return true;
    }
    double *y = n ? calloc(n, sizeof *y) : NULL;
    size_t left;
    if (!y) return false;
    for (size_t k = 0; k < n; k++) y[k] = looks[k].level_s;
    o->median_s = middle_of(y, n);
    const double plain = alike(y, n) * stats_deviation(y, n) / o->median_s, deviation = robust_deviation(y, n, &left);
    const double half =
        left < n ? stats_t95(left - 1) * fmax(deviation, least_deviation) / sqrt((double)n) : together(deviation, n);
    o->rel_ci95 = fmax(fmin(half, together(plain, n)), between_blocks(s, o->first_block));
    free(y);
    return true;
}

static bool find_drift(const timing_series *s, const timing_noise *noise, timing_opinion *o) {
    size_t n = 0;
    timing_look *looks = looks_of(s, o->first_block, &n);
    const bool good = looks && compare(s, noise, looks, n, o) && timing_drift(s, looks, n, o);
    free(looks);
    return good;
}

/* How many blocks may be left out: up to a half, but none where the device is restless, for there the crest of a slow
 * swing looks like the end of a warm-up. */
static size_t most_skipped(const timing_series *s) { return !s->steered && restless(s) ? 0 : s->block_count / 2; }

/* Blocks at the beginning that are not like the later half at all: the warm-up was not over. */
static size_t transient(const timing_series *s, size_t most) {
    enum { LEAST = 6 };
    const double notable = 0.005, beyond = 4;
    const size_t half = s->block_count / 2, n = s->block_count - half;
    double *later = s->block_count >= LEAST ? calloc(n, sizeof *later) : NULL;
    size_t skip = 0;
    if (!later) return 0;
    for (size_t k = 0; k < n; k++) later[k] = s->blocks[half + k].level_s;
    const double median = stats_median(later, n);
    const double allowed = fmax(notable * median, beyond * stats_deviation(later, n));
    while (skip < most && fabs(s->blocks[skip].level_s - median) > allowed) skip++;
    free(later);
    return skip;
}

size_t timing_judge_first(const timing_series *s) { return transient(s, most_skipped(s)); }

/* What the intervals within the blocks from `from` on leave open, wherever the blocks themselves lie. */
static double within_blocks(const timing_series *s, size_t from) {
    const size_t begin = s->block_count ? s->blocks[from].first : 0, n = s->n - begin;
    double *x = n ? calloc(n, sizeof *x) : NULL;
    if (!x) return NAN;
    for (size_t j = from; j < s->block_count; j++) {
        const timing_block *block = &s->blocks[j];
        for (size_t i = block->first; i < block->first + block->count; i++) x[i - begin] = s->x[i] / block->level_s;
    }
    const double half = stats_median_interval(x, n, 0, 1).relative;
    free(x);
    return half;
}

timing_opinion timing_judge(const timing_series *s, const timing_noise *noise) {
    timing_opinion o = {.rel_ci95 = INFINITY, .median_s = NAN, .spread = NAN};
    if (s->block_count == 0 || s->n == 0) return o;
    timing_noise own = {0};
    if (!noise) timing_noise_add(&own, s, timing_judge_first(s));
    if (!noise) noise = &own;
    const size_t most = most_skipped(s);
    o.first_block = timing_judge_first(s);
    if (!find_drift(s, noise, &o)) return o;
    /* A drift that ends was the warm-up's end too. Two blocks are left at least. */
    for (size_t skip = o.first_block + 1; o.drifts && skip <= most && skip + 2 <= s->block_count; skip++) {
        timing_opinion later = {.first_block = skip, .rel_ci95 = INFINITY, .median_s = NAN, .spread = NAN};
        if (find_drift(s, noise, &later) && !later.drifts) o = later;
    }
    const size_t from = s->blocks[o.first_block].first;
    o.n = s->n - from;
    o.spread = spread_of(s->x + from, o.n);
    if (!s->steered) o.rel_ci95 = hypot(o.rel_ci95, within_blocks(s, o.first_block));
    if (isnan(o.rel_ci95)) o.rel_ci95 = INFINITY;
    return o;
}

/* What b's blocks say for a moment, between the blocks before and after it: next to one of them it is that one. */
static double at_moment(const timing_series *b, double moment_s) {
    const timing_block *before = NULL, *after = NULL;
    for (size_t k = 0; k < b->block_count; k++) {
        if (b->blocks[k].middle_s <= moment_s)
            before = &b->blocks[k];
        else if (!after)
            after = &b->blocks[k];
    }
    if (!before || !after) return before ? before->level_s : after ? after->level_s : NAN;
    const double part = (moment_s - before->middle_s) / (after->middle_s - before->middle_s);
    return before->level_s + part * (after->level_s - before->level_s);
}

static double deviation_of(const timing_series *s) {
    double *y = calloc(s->block_count, sizeof *y);
    if (!y) return NAN;
    for (size_t k = 0; k < s->block_count; k++) y[k] = s->blocks[k].level_s;
    const double deviation = alike(y, s->block_count) * stats_deviation(y, s->block_count);
    const double relative = deviation / stats_median(y, s->block_count);
    free(y);
    return relative;
}

double timing_judge_ratio(const timing_series *a, const timing_series *b, const timing_noise *noise, double *ci) {
    if (a->steered) { /* its noise is faster than the rounds: neighbours have nothing in common */
        *ci = hypot(timing_noise_half(noise, a, 0), timing_noise_half(noise, b, 0));
        return a->block_count && b->block_count ? timing_noise_pace(a, 0) / timing_noise_pace(b, 0) : NAN;
    }
    const size_t n = a->block_count;
    double *quotients = n > 1 && b->block_count > 1 ? calloc(n, sizeof *quotients) : NULL;
    *ci = NAN;
    if (!quotients) return NAN;
    for (size_t k = 0; k < n; k++) quotients[k] = a->blocks[k].level_s / at_moment(b, a->blocks[k].middle_s);
    const double ratio = stats_median(quotients, n);
    /* What moves the blocks is taken to be common by half at most: a swing as fast as the rounds is met by one of the
     * two in its valleys and by the other on its hills, and a few blocks do not show it. */
    const double moved = 0.5 * fmin(deviation_of(a), deviation_of(b));
    const double seen = fmax(hypot(explained(a, 0), explained(b, 0)), stats_deviation(quotients, n) / ratio);
    const double between = together(fmax(seen, moved), n);
    *ci = hypot(between, hypot(within_blocks(a, 0), within_blocks(b, 0)));
    free(quotients);
    return ratio;
}
