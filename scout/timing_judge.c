/* Judging blocks. Intervals of one block share the state that the device was in, so a bootstrap over them alone would
 * promise too much: how far the blocks' medians lie apart is added to it.
 *
 * Where a block follows another subject's, something of that one is left in it (power, temperature, caches), and on the
 * way back it is something else: blocks differ by their place in the round, every time alike. That is no chance, and no
 * more rounds make it less. So as soon as there are two of them, pairs of a block forwards and one backwards are
 * compared, not blocks. A pair counts as one look: what it hides is paid for with half of the degrees of freedom. */
#include "scout/timing_judge.h"
#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>

const double timing_judge_restless = 0.05;

static const double drift_floor = 0.01; /* less is no drift worth the word */

/* A few looks may agree by luck, and what all of them share (the rest of a transition, what an event takes, how memory
 * happens to lie) shows in none: they are never believed to deviate by less than this. */
static const double least_deviation = 0.0005;

bool timing_judge_block(timing_series *s, int round) {
    if (s->block_count == s->block_room) {
        const size_t room = s->block_room ? 2 * s->block_room : 8;
        timing_block *more = realloc(s->blocks, room * sizeof *more);
        if (!more) return false;
        s->blocks = more;
        s->block_room = room;
    }
    s->blocks[s->block_count++] =
        (timing_block){.first = s->n,
                       .round = round,
                       .telemetry = {.clock_mhz = NAN, .memory_clock_mhz = NAN, .power_w = NAN, .temperature_c = NAN}};
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

void timing_judge_close(timing_series *s) {
    timing_block *last = &s->blocks[s->block_count - 1];
    last->median_s = stats_median(s->x + last->first, last->count);
}

void timing_judge_free(timing_series *s) {
    free(s->x);
    free(s->blocks);
    *s = (timing_series){.n = 0};
}

/* How much a swing that is slower than the blocks widens what they say together: neighbours alike are not independent.
 * By the correlation of each with the next; fewer than four show none. */
static double alike(const double *y, size_t n) {
    enum { LEAST = 4 };
    const double mean = stats_mean(y, n), most = 0.8;
    double own = 0, next = 0;
    if (n < LEAST) return 1;
    for (size_t k = 0; k < n; k++) own += (y[k] - mean) * (y[k] - mean);
    for (size_t k = 0; k + 1 < n; k++) next += (y[k] - mean) * (y[k + 1] - mean);
    const double correlation = own > 0 ? fmin(fmax(next / own, 0), most) : 0;
    return sqrt((1 + correlation) / (1 - correlation));
}

/* Half the 95 % width of what n looks say together, from their deviation. Student's t of n - 1 degrees asks of two of
 * them to agree within a twelfth of the target; one degree more is lent from the fact that most differences between
 * looks are the device's own and alike for all subjects (see common_deviation). */
static double between_looks(double deviation, size_t n) {
    return n > 1 ? stats_t95(n) * fmax(deviation, least_deviation) / sqrt((double)n) : 0;
}

/* What is compared: blocks, or pairs of them. */
typedef struct look {
    double median_s, clock_mhz, middle_s;
} look;

static double spread_of(const double *x, size_t n) {
    return (stats_quantile(x, n, 0.95) - stats_quantile(x, n, 0.05)) / stats_median(x, n);
}

static bool restless(const timing_series *s) {
    const timing_block *last = &s->blocks[s->block_count - 1];
    return spread_of(s->x + last->first, last->count) > timing_judge_restless;
}

/* Not where the device is restless: a swing as fast as the rounds would hide in pairs. */
static bool in_pairs(const timing_series *s, size_t from) {
    enum { LEAST = 4 };
    const size_t n = s->block_count - from;
    return s->paired && n >= LEAST && n % 2 == 0 && s->blocks[from].round % 2 == 0 && !restless(s);
}

/* Of the blocks from `from` on, `each` at a time. The caller frees; NULL: no memory. */
static look *looks_of(const timing_series *s, size_t from, size_t each, size_t *n) {
    *n = (s->block_count - from) / each;
    look *all = *n ? calloc(*n, sizeof *all) : NULL;
    for (size_t k = 0; all && k < *n * each; k++) {
        const timing_block *block = &s->blocks[from + k];
        look *one = &all[k / each];
        one->median_s += block->median_s / (double)each;
        one->clock_mhz += block->telemetry.clock_mhz / (double)each;
        one->middle_s += block->middle_s / (double)each;
    }
    return all;
}

/* Slope by Theil and Sen over their moments: what goes forth and back is not evenly spaced. */
static double slope_of(const double *y, const look *looks, size_t n) {
    double *slopes = calloc(n * (n - 1) / 2, sizeof *slopes);
    size_t count = 0;
    if (!slopes) return NAN;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const double apart_s = looks[j].middle_s - looks[i].middle_s;
            if (apart_s > 0) slopes[count++] = (y[j] - y[i]) / apart_s;
        }
    const double slope = stats_median(slopes, count);
    free(slopes);
    return slope;
}

/* The relative change over n >= 2 looks, and how much of one their noise could feign. */
static double change_over(const double *y, const look *looks, size_t n, double *feigned) {
    const double slope = slope_of(y, looks, n), median = stats_median(y, n);
    const double whole_s = looks[n - 1].middle_s - looks[0].middle_s;
    double *residuals = calloc(2 * n, sizeof *residuals);
    *feigned = INFINITY;
    if (!residuals || isnan(slope)) {
        free(residuals);
        return 0;
    }
    double *moments = residuals + n;
    for (size_t k = 0; k < n; k++) {
        moments[k] = looks[k].middle_s;
        residuals[k] = y[k] - slope * (moments[k] - moments[0]);
    }
    /* The deviation of a slope over these moments, times the time between the first and the last. */
    const double width_s = stats_deviation(moments, n) * sqrt((double)n - 1);
    *feigned = n > 2 ? stats_t95(n - 1) * stats_deviation(residuals, n) / median * whole_s / width_s : 0;
    free(residuals);
    return slope * whole_s / median;
}

/* What the intervals within the first and the last block leave open. */
static double noise_of_ends(const timing_series *s, size_t from) {
    const timing_block *ends[] = {&s->blocks[from], &s->blocks[s->block_count - 1]};
    double noise = 0;
    for (int k = 0; k < 2; k++) {
        const double half = stats_median_interval(s->x + ends[k]->first, ends[k]->count, 0, 1).relative;
        noise += isfinite(half) ? half * half : 0; /* a block of one interval says nothing about it */
    }
    return sqrt(noise);
}

static bool drift_over(const timing_series *s, const look *looks, size_t n, timing_opinion *o) {
    double *y = calloc(2 * n, sizeof *y);
    if (!y) return false;
    double *clocks = y + n, feigned = 0;
    bool known = true;
    for (size_t k = 0; k < n; k++) {
        y[k] = looks[k].median_s;
        clocks[k] = looks[k].clock_mhz;
        known = known && clocks[k] > 0;
    }
    o->drift = n > 1 ? change_over(y, looks, n, &feigned) : 0;
    if (n > 1 && fabs(o->drift) > drift_floor) {
        o->drifts = fabs(o->drift) > fmax(feigned, noise_of_ends(s, o->first_block));
        const double moved = known ? change_over(clocks, looks, n, &feigned) : 0;
        o->by_clock = o->drifts && fabs(moved) > drift_floor && moved * o->drift < 0;
    }
    free(y);
    return true;
}

/* The deviation of the looks, relative to their median. */
static double deviation_over(const look *looks, size_t n, double *median_s) {
    double *y = calloc(n, sizeof *y);
    *median_s = NAN;
    if (!y) return INFINITY;
    for (size_t k = 0; k < n; k++) y[k] = looks[k].median_s;
    *median_s = stats_median(y, n);
    const double deviation = alike(y, n) * stats_deviation(y, n) / *median_s;
    free(y);
    return deviation;
}

static bool find_drift(const timing_series *s, timing_opinion *o) {
    enum { TELLING = 6 }; /* blocks; fewer pairs than three of a drift and of chance look the same */
    size_t n = 0;
    o->pairs = in_pairs(s, o->first_block);
    look *looks = looks_of(s, o->first_block, o->pairs ? 2 : 1, &n);
    if (!looks) return false;
    o->looks = n;
    o->deviation = deviation_over(looks, n, &o->median_s);
    if (o->pairs && s->block_count - o->first_block < TELLING) {
        free(looks);
        looks = looks_of(s, o->first_block, 1, &n);
    }
    const bool good = looks && drift_over(s, looks, n, o);
    free(looks);
    return good;
}

/* How many blocks may be left out: up to a half, but none where the device is restless, for there the crest of a slow
 * swing looks like the end of a warm-up. */
static size_t most_skipped(const timing_series *s) {
    const size_t most = s->paired ? s->block_count / 4 * 2 : s->block_count / 2;
    return restless(s) ? 0 : most;
}

/* Blocks at the beginning that are not like the later half at all: the warm-up was not over. */
static size_t transient(const timing_series *s, size_t most) {
    enum { LEAST = 6 };
    const double notable = 0.005, beyond = 4;
    const size_t half = s->block_count / 2, n = s->block_count - half;
    double *later = s->block_count >= LEAST ? calloc(n, sizeof *later) : NULL;
    size_t skip = 0;
    if (!later) return 0;
    for (size_t k = 0; k < n; k++) later[k] = s->blocks[half + k].median_s;
    const double median = stats_median(later, n);
    const double allowed = fmax(notable * median, beyond * stats_deviation(later, n));
    while (skip < most && fabs(s->blocks[skip].median_s - median) > allowed) skip++;
    free(later);
    return s->paired && skip % 2 ? skip + 1 : skip; /* `most` is even then */
}

/* What the intervals within the blocks from `from` on leave open, wherever the blocks themselves lie. */
static double within_blocks(const timing_series *s, size_t from) {
    const size_t begin = s->block_count ? s->blocks[from].first : 0, n = s->n - begin;
    double *x = n ? calloc(n, sizeof *x) : NULL;
    if (!x) return NAN;
    for (size_t j = from; j < s->block_count; j++) {
        const timing_block *block = &s->blocks[j];
        for (size_t i = block->first; i < block->first + block->count; i++) x[i - begin] = s->x[i] / block->median_s;
    }
    const double half = stats_median_interval(x, n, 0, 1).relative;
    free(x);
    return half;
}

timing_opinion timing_judge(const timing_series *s, double common_deviation) {
    timing_opinion o = {.rel_ci95 = INFINITY, .median_s = NAN, .spread = NAN};
    if (s->block_count == 0 || s->n == 0) return o;
    const size_t most = most_skipped(s);
    o.first_block = transient(s, most);
    if (!find_drift(s, &o)) return o;
    /* A drift that ends was the warm-up's end too. */
    const size_t step = s->paired ? 2 : 1; /* two looks are left at least */
    for (size_t skip = o.first_block + step; o.drifts && skip <= most && skip + 2 * step <= s->block_count;
         skip += step) {
        timing_opinion later = {.first_block = skip, .rel_ci95 = INFINITY, .median_s = NAN, .spread = NAN};
        if (find_drift(s, &later) && !later.drifts) o = later;
    }
    const size_t from = s->blocks[o.first_block].first;
    const double *x = s->x + from;
    o.n = s->n - from;
    const double between = between_looks(fmax(o.deviation, common_deviation), o.looks);
    double within = 0;
    if (o.pairs) { /* of two places the median of all intervals is nowhere: anything between them is one */
        within = within_blocks(s, o.first_block);
    } else {
        within = stats_median_interval(x, o.n, 0, (uint64_t)o.n).relative;
        o.median_s = stats_median(x, o.n);
    }
    o.spread = spread_of(x, o.n);
    o.rel_ci95 = hypot(within, between);
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
    if (!before || !after) return before ? before->median_s : after ? after->median_s : NAN;
    const double part = (moment_s - before->middle_s) / (after->middle_s - before->middle_s);
    return before->median_s + part * (after->median_s - before->median_s);
}

static double deviation_of(const timing_series *s) {
    size_t n = 0;
    look *looks = looks_of(s, 0, in_pairs(s, 0) ? 2 : 1, &n);
    double median_s;
    const double deviation = looks ? deviation_over(looks, n, &median_s) : NAN;
    free(looks);
    return deviation;
}

double timing_judge_ratio(const timing_series *a, const timing_series *b, double *ci) {
    const size_t each = in_pairs(a, 0) ? 2 : 1, n = a->block_count / each;
    double *quotients = a->block_count > 1 && b->block_count > 1 ? calloc(n, sizeof *quotients) : NULL;
    *ci = NAN;
    if (!quotients) return NAN;
    for (size_t k = 0; k < n * each; k++)
        quotients[k / each] += a->blocks[k].median_s / at_moment(b, a->blocks[k].middle_s) / (double)each;
    const double ratio = stats_median(quotients, n);
    /* What moves the looks is taken to be common by half at most: a swing as fast as the rounds is met by one of the
     * two in its valleys and by the other on its hills, and a few looks do not show it. */
    const double moved = 0.5 * fmin(deviation_of(a), deviation_of(b));
    const double between = between_looks(fmax(stats_deviation(quotients, n) / ratio, moved), n);
    *ci = hypot(between, hypot(within_blocks(a, 0), within_blocks(b, 0)));
    free(quotients);
    return ratio;
}
