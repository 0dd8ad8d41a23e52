/* Lanes in alternating blocks: a look at each, a race that leaves few of many, full rounds there and back, and at the
 * end the clock that the baseline holds by itself. */
#include "scout/timing/lanes.h"

#include "scout/terms/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKS = 3,
    RACE_ROUNDS = LANES_RACE_ROUNDS,
    BLOCKS = LANES_BLOCKS,
    INTERVALS = 128,
    FEW = 3,
    PAIRS = 4 /* rounds of two pairs */,
    STARVED = 2,
    FEWEST_PARTS = 4, /* of a rotation: what is between two uses of one is most of it */
    MOST_PARTS = 64   /* so many recordings at most */
};

static const double boosted_s = 1e-3;                   /* so long a load is faster behind a rest */
static const double hopeless = 2;                       /* one launch against the best one: nothing more is tried */
static const double behind[RACE_ROUNDS] = {1.25, 1.08}; /* how far, after each round of the race */
static const double lower_part = 0.25; /* where hardly a block is undisturbed, what disturbs only adds */
static const double far = 1.25;        /* a block so many times as long as the middle one was disturbed, unseen */
static const double unsure = 0.05;     /* standard error of a figure that other work disturbed */
static const double beat_s = 30;

lanes_rules lanes_rules_of(const regime *r, bool host, bool first) {
    const bool burst = r->load == REGIME_BURST;
    return (lanes_rules){
        .burst = burst,
        .block_s = host ? 1e-3 : 0.25e-3,
        .interval_s = 0.25e-3,
        .look_s = 0.02,
        .quick_s = host ? 0.5e-3 : 0.1e-3,
        .rounds = host    ? 6
                  : first ? 4
                          : 2,
        .most_rounds = host ? 60 : 12,
        .precise = host ? 0.004 : 0.003,
        .fall = host ? 0.02 : 0.002,
        .settle_s = 0.1,
        .most_s = !host   ? 0.01
                  : first ? 0.12
                          : 0.06, /* another pass tells more than more of the same */
        .disturbed = 0.02,
        .finalists = 3,
        .beside = 1.05,
        .idle_s = 1,
        .burst_s = 0.01,
    };
}

/* What a lane has been seen to take. */
typedef struct record {
    double seconds[BLOCKS];  /* of a launch, a block each */
    double launches[BLOCKS]; /* in it */
    double hz[BLOCKS];       /* the clock; 0: not known */
    double missed[BLOCKS];   /* the part of it that other work took */
    bool bad[BLOCKS];        /* disturbed: too much of it */
    int count;
} record;

typedef struct course {
    const timing_clock *clock;
    const lanes_rules *rules;
    lanes_lane *lanes;
    record *records;
    int count, baseline;
    double worked_s;                                  /* burst: since the last pause */
    struct load {                                     /* blocks since the rounds began, one behind the other */
        double began_s, seconds, late_s, late_cycles; /* late: from fallen_s on */
    } load;
    bool lost;
} course;

/* Power is capped on a mean of a second, and a clock that has stood for half a second falls by a sixth for two tenths
 * of it, once a second. From fallen_s after a load begins to LANES_WHOLE_S the mean is that of the long run, to
 * whole_error (docs/h200-clock.md). Rounds are the same load but for their rivals; longer ones than alike_s do not
 * count. */
static const double fallen_s = 0.1, whole_error = 0.008, alike_s = 0.3;

static double now_of(const course *c) { return c->clock->now(c->clock->context); }
static bool runs(const lanes_lane *l) { return l->answer == SCOUT_OK && !l->raced_out; }
static double stolen_of(const course *c) { return c->clock->stolen ? c->clock->stolen(c->clock->context) : 0; }

/* Of the last intervals; all 0 where one of them is not known. */
static void clocks_of(const course *c, double *hz, uint32_t count) {
    const uint32_t known = c->clock->clocks ? c->clock->clocks(c->clock->context, hz, count) : 0;
    if (known < count) memset(hz, 0, count * sizeof *hz);
}

/* The mean of some intervals; 0 where one of them is not known. */
static double mean_clock(const double *hz, uint32_t count) {
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (!(hz[k] > 0)) return 0;
        sum += hz[k];
    }
    return count > 0 ? sum / count : 0;
}

static bool fail(course *c, lanes_lane *l, scout_answer answer) {
    l->answer = answer;
    c->lost = c->lost || answer == SCOUT_LOST;
    return false;
}

static bool fail_timer(course *c, lanes_lane *l, double seconds) {
    scout_say(&l->why, SCOUT_FAILED, "error", "the timer says that it took %g s", seconds);
    return fail(c, l, SCOUT_FAILED);
}

/* Intervals of so many launches, back to back. */
static bool run(course *c, lanes_lane *l, uint32_t launches, uint32_t intervals, double *seconds) {
    const double about_s = l->launch_s * launches * intervals;
    if (c->clock->beat) c->clock->beat(c->clock->context, beat_s + 10 * about_s);
    if (c->rules->burst && c->worked_s + about_s > c->rules->burst_s) {
        c->clock->pause(c->clock->context, c->rules->idle_s);
        c->worked_s = 0;
    }
    const scout_answer answer = l->subject.run(l->subject.context, launches, intervals, seconds, &l->why);
    if (answer != SCOUT_OK) return fail(c, l, answer);
    for (uint32_t k = 0; k < intervals; k++) {
        if (!(seconds[k] >= 0) || !isfinite(seconds[k])) return fail_timer(c, l, seconds[k]);
        c->worked_s += seconds[k];
    }
    return true;
}

/* ---- a look ---- */

static bool look(course *c, lanes_lane *l) {
    double seconds[LOOKS];
    if (!run(c, l, 1, 1, seconds)) return false;
    l->launch_s = seconds[0];
    const bool brief = l->launch_s < c->rules->look_s;
    if (brief && !run(c, l, 1, LOOKS, seconds)) return false;
    for (int k = 0; brief && k < LOOKS; k++) l->launch_s = fmin(l->launch_s, seconds[k]);
    l->launch_s = fmax(l->launch_s, fmax(c->clock->resolution_s, 1e-9));
    l->blocks = 1; /* all that is known of what goes no further */
    l->total = brief ? 1 + LOOKS : 1;
    return true;
}

static bool plays(const course *c) {
    bool all = c->clock->play != NULL && !c->rules->burst;
    for (int k = 0; k < c->count; k++) all = all && (!runs(&c->lanes[k]) || c->lanes[k].subject.record);
    return all;
}

static uint32_t whole_of(const lanes_lane *l) { return l->subject.whole ? l->subject.whole(l->subject.context) : 1; }

/* About `wanted` launches: a power of two, so that parts of several lanes lie behind each other without gaps. */
static uint32_t part_of(double wanted, uint32_t whole) {
    uint32_t launches = 1;
    while (launches < 0.7 * wanted || launches * MOST_PARTS < whole) launches *= 2;
    return launches;
}

/* As many launches as make an interval; whole rotations, where the subject has any, or a small part of one. */
static void pace(const course *c, lanes_lane *l, bool parts) {
    const double wanted = fmax(c->rules->interval_s, 20 * c->clock->resolution_s) / l->launch_s;
    const uint32_t whole = whole_of(l), part = part_of(fmin(wanted, whole), whole);
    l->launches = (uint32_t)fmin(fmax(ceil(wanted), 1), 1 << 20);
    if (parts && whole >= FEWEST_PARTS * part)
        l->launches = part;
    else if (whole > 1)
        l->launches = l->launches < whole ? whole : (l->launches + whole / 2) / whole * whole;
}

/* What is played needs a part of a rotation for an interval: the next one has the next part. Parts and whole ones do
 * not mix: a part that follows a whole one might find in the cache what that has just read. */
static void pace_all(const course *c) {
    bool parts = plays(c);
    for (int k = 0; k < c->count; k++) {
        lanes_lane *l = &c->lanes[k];
        if (runs(l)) pace(c, l, parts);
        parts = parts && (!runs(l) || whole_of(l) == 1 || l->launches < whole_of(l));
    }
    for (int k = 0; k < c->count && !parts; k++)
        if (runs(&c->lanes[k])) pace(c, &c->lanes[k], false);
}

/* ---- blocks ---- */

/* An interval of the race may be a part of a rotation: recording whole ones takes longer than the race. */
static uint32_t quick_launches(const lanes_lane *l, double quick_s) {
    const double wanted = ceil(quick_s / l->launch_s);
    return (uint32_t)fmin(fmax(wanted, 1), fmax(l->launches, whole_of(l)));
}

/* Of what is played. */
static uint32_t quick_part(const lanes_lane *l, double quick_s) {
    const uint32_t whole = whole_of(l);
    const double wanted = quick_s / l->launch_s;
    return part_of(whole > 1 ? fmin(wanted, whole) : wanted, whole);
}

static uint32_t intervals_of(const lanes_lane *l, uint32_t launches, double block_s) {
    const double wanted = block_s / (l->launch_s * launches);
    return (uint32_t)fmin(fmax(round(wanted), 1), INTERVALS);
}

/* The load goes on for so long at such a clock. */
static void bear(course *c, double seconds, double hz) {
    if (c->load.seconds >= fallen_s && hz > 0) c->load.late_s += seconds, c->load.late_cycles += seconds * hz;
    c->load.seconds += seconds;
}

/* What a block took: it goes to the record. */
static void keep(course *c, int lane, double sum_s, double launches, double missed_s, double hz) {
    lanes_lane *l = &c->lanes[lane];
    record *r = &c->records[lane];
    const double launch_s = sum_s / launches;
    if (!(launch_s > 0)) return;
    l->launch_s = launch_s;
    bear(c, sum_s, hz);
    if (r->count == BLOCKS) return;
    r->missed[r->count] = fmin(fmax(missed_s / sum_s, 0), 1);
    r->bad[r->count] = missed_s > c->rules->disturbed * sum_s;
    r->hz[r->count] = hz;
    r->launches[r->count] = launches;
    r->seconds[r->count++] = launch_s;
}

/* One block of one lane, alone; `counts`: it is kept. */
static void block(course *c, int lane, uint32_t launches, double block_s, bool counts) {
    lanes_lane *l = &c->lanes[lane];
    double seconds[INTERVALS], hz[INTERVALS], sum = 0;
    const uint32_t intervals = intervals_of(l, launches, block_s);
    const double stolen = stolen_of(c);
    if (!run(c, l, launches, intervals, seconds)) return;
    const double missed = stolen_of(c) - stolen;
    for (uint32_t k = 0; k < intervals; k++) sum += seconds[k];
    clocks_of(c, hz, intervals);
    if (counts)
        keep(c, lane, sum, (double)intervals * launches, missed, mean_clock(hz, intervals));
    else if (sum > 0)
        l->launch_s = sum / ((double)intervals * launches);
}

/* ---- rounds without a pause ---- */

enum { PLAYED = 1024 };

typedef struct program { /* of one call of play: which sequences, and whose */
    scout_sequence *sequences[PLAYED];
    struct {
        int lane;
        uint32_t intervals;
        bool counts;
    } blocks[PLAYED];
    uint32_t count, block_count;
    double expected_s, lead_s; /* lead_s: of it, what does not count */
} program;

/* Adds a lane's block of so long; false: there is no room, or it cannot be recorded (then it has failed). */
static bool add_block(course *c, program *p, int lane, double block_s, bool counts) {
    lanes_lane *l = &c->lanes[lane];
    const uint32_t intervals = intervals_of(l, l->launches, block_s);
    if (p->count + intervals > PLAYED) return false;
    for (uint32_t k = 0; k < intervals; k++) {
        const scout_answer answer =
            l->subject.record(l->subject.context, l->launches, &p->sequences[p->count + k], &l->why);
        if (answer != SCOUT_OK) return fail(c, l, answer);
    }
    p->count += intervals;
    p->blocks[p->block_count].lane = lane;
    p->blocks[p->block_count].counts = counts;
    p->blocks[p->block_count++].intervals = intervals;
    p->expected_s += intervals * l->launches * l->launch_s;
    p->lead_s += counts ? 0 : intervals * l->launches * l->launch_s;
    return true;
}

/* The blocks of a program, in its order. */
static scout_answer play(course *c, const program *p, scout_why *why) {
    double seconds[PLAYED], hz[PLAYED] = {0};
    if (p->count == 0) return SCOUT_OK;
    const scout_answer answer = c->clock->play(c->clock->context, p->sequences, p->count, p->expected_s, seconds, why);
    if (answer == SCOUT_OK) clocks_of(c, hz, p->count);
    for (uint32_t n = 0, k = 0; answer == SCOUT_OK && n < p->block_count; n++) {
        const int lane = p->blocks[n].lane;
        const uint32_t first = k, intervals = p->blocks[n].intervals;
        double sum = 0;
        for (; k < first + intervals; k++) sum += seconds[k];
        if (!p->blocks[n].counts) continue;
        if (sum >= 0 && isfinite(sum))
            keep(c, lane, sum, (double)intervals * c->lanes[lane].launches, 0, mean_clock(&hz[first], intervals));
        else
            fail_timer(c, &c->lanes[lane], sum);
    }
    return answer;
}

/* Which one it was, none can say. */
static void fail_all(course *c, scout_answer answer, const scout_why *why) {
    for (int k = 0; answer != SCOUT_OK && k < c->count; k++) {
        if (!runs(&c->lanes[k])) continue;
        c->lanes[k].why = *why;
        (void)fail(c, &c->lanes[k], answer);
    }
}

/* Of a pair of rounds: there and back. */
static int lane_at(const course *c, int n) { return n < c->count ? n : 2 * c->count - 1 - n; }

/* A pair of rounds. The first has one before it that does not count: for the memory of each lane, the clock, and what
 * ran before: a product of 12 us took 10 % less in the whole first millisecond. A long interval needs none. Returns its
 * seconds. */
static double play_rounds(course *c, bool first) {
    const double longest = 10;
    program p = {.count = 0, .block_count = 0, .lead_s = 0};
    scout_why why;
    for (int lane = 0; first && lane < c->count && !c->lost; lane++)
        if (runs(&c->lanes[lane]) && c->lanes[lane].launch_s * c->lanes[lane].launches < longest * c->rules->block_s)
            add_block(c, &p, lane, c->rules->block_s, false);
    for (int n = 0; n < 2 * c->count && !c->lost; n++) {
        const int lane = lane_at(c, n);
        if (!runs(&c->lanes[lane]) || add_block(c, &p, lane, c->rules->block_s, true)) continue;
        if (runs(&c->lanes[lane])) break; /* no room: blocks of this lane are too many for one call */
    }
    if (!c->lost) fail_all(c, play(c, &p, &why), &why);
    return p.lead_s;
}

/* ---- figures ---- */

/* How the time goes with the clock, in blocks that all know theirs: their number, and sums of logarithms. */
typedef struct slope {
    double n, x, y, xx, xy, yy;
} slope;

static void slope_add(slope *s, double hz, double seconds) {
    const double x = log(hz), y = log(seconds);
    s->n++, s->x += x, s->y += y, s->xx += x * x, s->xy += x * y, s->yy += y * y;
}

static slope slope_centred(slope s) {
    if (!(s.n > 0)) return s;
    return (slope){s.n,
                   s.x / s.n,
                   s.y / s.n,
                   fmax(s.xx - s.x * s.x / s.n, 0),
                   s.xy - s.x * s.y / s.n,
                   fmax(s.yy - s.y * s.y / s.n, 0)};
}

/* The points of one that are not among the first ones, which another has. */
static slope slope_behind(const slope *s, const slope *first) {
    return (slope){s->n - first->n,   s->x - first->x,   s->y - first->y,
                   s->xx - first->xx, s->xy - first->xy, s->yy - first->yy};
}

/* A time goes with the clock by no more than that, and never against it. */
static double exponent_of(const slope *s) { return s->xx > 0 ? fmin(fmax(-s->xy / s->xx, 0), 1) : 0; }

/* What is left of the squares once the clock has had its part. */
static double unexplained(const slope *s) {
    const double b = exponent_of(s);
    return fmax(s->yy + 2 * b * s->xy + b * b * s->xx, 0);
}

static double longest_of(const record *r) { return far * stats_median(r->seconds, (size_t)r->count); }

/* No other work is known to have disturbed it. */
static bool undisturbed(const record *r, int k, double longest_s) { return !r->bad[k] && r->seconds[k] <= longest_s; }

/* Of what other work disturbed, the blocks that count. */
static double missed_of(const record *r, double longest_s) {
    double sum = 0;
    int n = 0;
    for (int k = 0; k < r->count; k++)
        if (r->seconds[k] <= longest_s) sum += r->missed[k], n++;
    return sum / n;
}

/* From the middle of one group of blocks to that of another: a kernel that waits for memory at one clock, and for
 * itself at another, goes with the clock along no line. */
static slope slope_between(const slope *one, const slope *other) {
    const double part = one->n * other->n / (one->n + other->n), x = one->x - other->x, y = one->y - other->y;
    return (slope){.n = one->n + other->n,
                   .xx = part * x * x,
                   .xy = part * x * y,
                   .yy = part * y * y + unexplained(one) + unexplained(other)};
}

/* How much a time differs where the clock does, both relative. Where the clock hardly moved, as much at most. */
static double steepness(const slope *s) {
    static const double moved = 0.01;
    return s->xx > s->n * moved * moved ? exponent_of(s) : 1;
}

/* Of the undisturbed blocks; where these are too few, of the lower part of all. */
static void summarise(const course *c, int lane) {
    lanes_lane *l = &c->lanes[lane];
    const record *r = &c->records[lane];
    double kept[BLOCKS], sum = 0, logs = 0, squares = 0, launches = 0, all = 0;
    slope clocked = {0};
    const double longest_s = longest_of(r);
    int n = 0;
    for (int k = 0; k < r->count; k++) all += r->launches[k];
    for (int k = 0; k < r->count; k++)
        if (undisturbed(r, k, longest_s)) {
            kept[n++] = r->seconds[k];
            launches += r->launches[k];
            if (r->hz[k] > 0) slope_add(&clocked, r->hz[k], r->seconds[k]);
        }
    l->dropped = (uint32_t)(r->count - n);
    l->disturbed = n < r->count && n < FEW;
    if (l->disturbed) {
        memcpy(kept, r->seconds, (size_t)r->count * sizeof kept[0]);
        stats_sort(kept, (size_t)r->count);
        n = (int)fmax(ceil(lower_part * r->count), 1);
        launches = all * n / r->count;
        l->dropped = (uint32_t)(r->count - n);
        l->missed = missed_of(r, kept[n - 1]);
    }
    l->blocks = (uint32_t)n;
    if (n == 0) return;
    for (int k = 0; k < n; k++) {
        sum += kept[k];
        logs += log(kept[k]);
    }
    l->time_s = exp(logs / n);
    l->mean_s = sum / n;
    for (int k = 0; k < n; k++) squares += pow(log(kept[k]) - logs / n, 2);
    l->clock_hz = l->clock_xx = l->clock_xy = l->clock_yy = l->clock_n = 0;
    if (clocked.n == n && !l->disturbed) {
        const slope s = slope_centred(clocked);
        l->clock_hz = exp(s.x), l->clock_xx = s.xx, l->clock_xy = s.xy, l->clock_yy = s.yy, l->clock_n = s.n;
        squares = unexplained(&s);
    }
    l->error = n > 1 ? sqrt(squares / (n - 1) / n) : INFINITY;
    l->min_s = stats_quantile(kept, (size_t)n, 0);
    l->p05_s = stats_quantile(kept, (size_t)n, 0.05);
    l->p25_s = stats_quantile(kept, (size_t)n, 0.25);
    l->p50_s = stats_median(kept, (size_t)n);
    l->p75_s = stats_quantile(kept, (size_t)n, 0.75);
    l->p95_s = stats_quantile(kept, (size_t)n, 0.95);
    const double fence_s = 1.5 * (l->p75_s - l->p25_s); /* Tukey's */
    l->outliers = 0;
    for (int k = 0; k < n; k++) l->outliers += kept[k] < l->p25_s - fence_s || kept[k] > l->p75_s + fence_s;
    l->total = (uint64_t)launches;
}

/* All that was kept, where it was asked for. */
static void hand_over(const course *c, int lane) {
    lanes_lane *l = &c->lanes[lane];
    const record *r = &c->records[lane];
    const double longest_s = longest_of(r);
    for (int k = 0; l->samples && k < r->count; k++)
        l->samples[l->sample_count++] =
            (lanes_sample){r->seconds[k], r->launches[k], r->hz[k], undisturbed(r, k, longest_s)};
}

/* ---- the race ---- */

static bool is_rival(const lanes_lane *l) { return runs(l) && !l->keep; }

/* The fastest of its side so far. */
static bool leads(const course *c, const lanes_lane *l) {
    for (int k = 0; l->side > 0 && k < c->count; k++) {
        const lanes_lane *other = &c->lanes[k];
        if (other->side == l->side && runs(other) &&
            (other->time_s < l->time_s || (other->time_s == l->time_s && other < l)))
            return false;
    }
    return l->side > 0;
}

static lanes_lane *best_of(const course *c) {
    lanes_lane *best = NULL;
    for (int k = 0; k < c->count; k++)
        if (is_rival(&c->lanes[k]) && (!best || c->lanes[k].time_s < best->time_s)) best = &c->lanes[k];
    return best;
}

/* Those that are so many times as slow as the best rival or as the baseline, by what they have shown. */
static void drop_behind(const course *c, double factor) {
    const lanes_lane *best = best_of(c), *base = c->baseline >= 0 ? &c->lanes[c->baseline] : NULL;
    for (int k = 0; k < c->count; k++) {
        lanes_lane *l = &c->lanes[k];
        if (!is_rival(l) || l == best || leads(c, l)) continue;
        const bool late = c->baseline >= 0 && runs(base) && l->time_s > factor * base->time_s;
        if (late || l->time_s > factor * best->time_s) l->raced_out = true;
    }
}

static int rivals_left(const course *c) {
    int n = 0;
    for (int k = 0; k < c->count; k++) n += is_rival(&c->lanes[k]) && !leads(c, &c->lanes[k]);
    return n;
}

static void drop_to(const course *c, int most) {
    while (rivals_left(c) > most) {
        lanes_lane *last = NULL;
        for (int k = 0; k < c->count; k++) {
            lanes_lane *l = &c->lanes[k];
            if (is_rival(l) && !leads(c, l) && (!last || l->time_s > last->time_s)) last = l;
        }
        if (!last) return;
        last->raced_out = true;
    }
}

/* In one direction and back: what a neighbour leaves behind in a cache is not always the same neighbour's. */
static int racer(const course *c, int number, int k) { return number % 2 ? c->count - 1 - k : k; }

/* All in one call, and in as many as they need room for: a call of its own for each takes longer than its block. False:
 * it failed, and each is to run alone, for then it is known which one it is. */
static bool play_race(course *c, int number) {
    program p = {.count = 0, .block_count = 0, .lead_s = 0};
    scout_why why;
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < c->count && !c->lost && answer == SCOUT_OK; k++) {
        const int lane = racer(c, number, k);
        lanes_lane *l = &c->lanes[lane];
        if (!runs(l)) continue;
        if (number == 0) l->launches = quick_part(l, c->rules->quick_s);
        if (p.count == 0) add_block(c, &p, lane, boosted_s, false);
        if (!runs(l) || add_block(c, &p, lane, c->rules->quick_s, true) || !runs(l)) continue;
        answer = play(c, &p, &why);
        p.count = p.block_count = 0, p.expected_s = 0;
        k -= answer == SCOUT_OK; /* it had no room */
    }
    if (answer == SCOUT_OK && !c->lost) answer = play(c, &p, &why);
    if (answer == SCOUT_LOST) fail_all(c, answer, &why);
    return answer == SCOUT_OK || answer == SCOUT_LOST;
}

static void quick_round(course *c, int number) {
    const double quick_s = c->rules->quick_s;
    const bool played = plays(c) && play_race(c, number);
    for (int k = 0; k < c->count && !c->lost; k++) {
        const int lane = racer(c, number, k);
        if (!runs(&c->lanes[lane])) continue;
        if (!played) block(c, lane, quick_launches(&c->lanes[lane], quick_s), quick_s, true);
        summarise(c, lane);
    }
}

/* A look may have been disturbed: what seems hopeless is looked at once more, but for what takes too long. */
static void look_again(course *c) {
    const lanes_lane *best = best_of(c);
    const double least_s = best ? best->time_s : 0;
    for (int k = 0; k < c->count && !c->lost; k++) {
        lanes_lane *l = &c->lanes[k];
        const double before_s = l->launch_s;
        if (!is_rival(l) || before_s >= c->rules->look_s || before_s <= hopeless * least_s || !look(c, l)) continue;
        l->launch_s = l->time_s = fmin(l->launch_s, before_s);
        pace(c, l, false);
    }
}

static void race(course *c, double end_s) {
    for (int k = 0; k < c->count; k++) c->lanes[k].time_s = c->lanes[k].launch_s;
    look_again(c);
    drop_behind(c, hopeless);
    for (int number = 0; number < RACE_ROUNDS && !c->lost; number++) {
        if (rivals_left(c) <= c->rules->finalists || now_of(c) > end_s) break;
        quick_round(c, number);
        drop_behind(c, behind[number]);
    }
    if (rivals_left(c) > c->rules->finalists) drop_behind(c, c->rules->beside);
    drop_to(c, c->rules->finalists);
}

/* ---- full rounds ---- */

static bool precise(const course *c) {
    for (int k = 0; k < c->count; k++) {
        const lanes_lane *l = &c->lanes[k];
        if (runs(l) && ((int)l->blocks < c->rules->rounds || l->disturbed || !(l->error <= c->rules->precise)))
            return false;
    }
    return true;
}

/* Fewer blocks count than are wanted, or of too few to say which one was disturbed, one was. */
static bool starved(const course *c) {
    for (int k = 0; k < c->count; k++) {
        const lanes_lane *l = &c->lanes[k];
        const bool missed = l->dropped > 0 && (int)l->blocks < c->rules->rounds;
        if (runs(l) && (missed || (l->blocks < PAIRS && l->error > unsure))) return true;
    }
    return false;
}

/* There and back: of a drift that is the same all the while, every lane has the same part. What takes seconds goes
 * there alone. */
static void run_rounds(course *c) {
    const double began_s = now_of(c);
    for (int n = 0; n < 2 * c->count && !c->lost; n++) {
        const int lane = lane_at(c, n);
        if (n == c->count && now_of(c) - began_s > 10 * c->rules->most_s) break;
        if (runs(&c->lanes[lane])) block(c, lane, c->lanes[lane].launches, c->rules->block_s, true);
    }
}

/* A load makes the clock fall at first, and not alike for all lanes: by how much more the last two rounds took than
 * those before, in the middle of the lanes. */
static double fall_of(const course *c) {
    double sum = 0;
    int n = 0;
    for (int k = 0; k < c->count; k++) {
        const record *r = &c->records[k];
        const double *x = &r->seconds[r->count < PAIRS ? 0 : r->count - PAIRS];
        if (!runs(&c->lanes[k]) || r->count < PAIRS || c->lanes[k].clock_hz > 0) continue; /* known, not waited for */
        sum += log(x[2] * x[3] / x[0] / x[1]) / 2;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* The last two rounds are the first that count. */
static void begin_anew(course *c) {
    for (int k = 0; k < c->count; k++) {
        record *r = &c->records[k];
        if (r->count < 2) continue;
        memmove(r->seconds, &r->seconds[r->count - 2], 2 * sizeof r->seconds[0]);
        memmove(r->launches, &r->launches[r->count - 2], 2 * sizeof r->launches[0]);
        memmove(r->hz, &r->hz[r->count - 2], 2 * sizeof r->hz[0]);
        memmove(r->bad, &r->bad[r->count - 2], 2 * sizeof r->bad[0]);
        r->count = 2;
    }
}

static void full_rounds(course *c) {
    const lanes_rules *rules = c->rules;
    double began_s = now_of(c);
    const double settled_s = began_s + rules->settle_s;
    const bool played = plays(c);
    pace_all(c);
    memset(&c->load, 0, sizeof c->load);
    c->load.began_s = began_s;
    for (int k = 0; k < c->count && !c->lost; k++) {
        if (!runs(&c->lanes[k])) continue;
        c->records[k].count = 0;
        if (!played && c->lanes[k].launch_s < rules->block_s)
            block(c, k, c->lanes[k].launches, rules->interval_s, false); /* its memory, its clock */
    }
    const int most_rounds = rules->least_s > 0 ? BLOCKS : rules->most_rounds;
    for (int number = 2; (number == 2 || number <= most_rounds) && !c->lost; number += 2) {
        double start_s = now_of(c);
        if (played) {
            const double lead_s = play_rounds(c, number == 2);
            start_s += lead_s, began_s += lead_s;
        } else {
            run_rounds(c);
        }
        const double end_s = now_of(c), next_s = end_s + (end_s - start_s);
        for (int k = 0; k < c->count; k++)
            if (runs(&c->lanes[k])) summarise(c, k);
        if (number == PAIRS && next_s < settled_s && fall_of(c) > rules->fall) {
            begin_anew(c);
            began_s = start_s;
            number = 2;
            for (int k = 0; k < c->count; k++)
                if (runs(&c->lanes[k])) summarise(c, k);
        }
        if (end_s - began_s < rules->least_s) continue;
        if (number >= rules->rounds && precise(c)) break;
        const double over = (next_s - began_s) / rules->most_s;
        if (over > STARVED || (over > 1 && number >= rules->rounds && !starved(c))) break;
    }
}

/* ---- the clock that a load holds ---- */

static const double first_s = 0.01; /* a load that the clock does not bear at all shows within so long */
static const double held = 0.004;   /* it holds where the halves of still_s differ by no more */
/* A clock may stand for a tenth of a second, and then fall. */
static const double still_s = 0.2;
static const double still_most_s = 0.8;
/* The long run of one load tells that of others to this part of how much it lies below what stands; where none is
 * known, to unknown_error. */
static const double fall_error = 0.4, unknown_error = 0.05;
static const double full_clock = 0.985;
static const double little_less = 0.88; /* of the highest: a cap on power takes more, and may hold from the start */
/* What is longer in time and in cycles than the middle one, no clock has made longer. */
static const double aside = 1.03;
static const double alike = 0.99; /* loads at clocks so near to each other draw as much */

/* Infinite: the device does not tell. */
static double most_clock(const course *c) {
    scout_telemetry t = {.size = sizeof t, .most_clock_mhz = (double)NAN};
    lanes_learned *const l = c->rules->learned;
    if (l->most_hz == 0) {
        c->clock->telemetry(c->clock->context, &t); /* takes milliseconds */
        l->most_hz = t.most_clock_mhz > 0 ? 1e6 * t.most_clock_mhz : (double)INFINITY;
    }
    return l->most_hz;
}

/* The lane alone for so long, its figures left as they are; the mean clock, 0: it is not known. It is one point of the
 * slope: of many that lie close together, what is between them and the rounds would hardly count. */
static double run_chunk(course *c, lanes_lane *l, double for_s, slope *s) {
    double seconds[INTERVALS], hz[INTERVALS], cycles[INTERVALS], logs = 0, log_hz = 0;
    const uint32_t whole = whole_of(l), launches = l->launches < whole ? whole : l->launches;
    const uint32_t intervals = intervals_of(l, launches, for_s);
    int n = 0;
    if (!run(c, l, launches, intervals, seconds)) return 0;
    clocks_of(c, hz, intervals);
    for (uint32_t k = 0; k < intervals; k++) cycles[k] = seconds[k] * hz[k];
    const double most_s = aside * stats_median(seconds, intervals), most = aside * stats_median(cycles, intervals);
    for (uint32_t k = 0; k < intervals; k++)
        if (hz[k] > 0 && seconds[k] > 0 && (seconds[k] <= most_s || cycles[k] <= most))
            logs += log(seconds[k] / launches), log_hz += log(hz[k]), n++;
    if (n > 0) slope_add(s, exp(log_hz / n), exp(logs / n));
    return mean_clock(hz, intervals);
}

static double mean_of(const double *x, int count) {
    double sum = 0;
    for (int k = 0; k < count; k++) sum += x[k];
    return sum / count;
}

/* The driver knows what it draws, and of nothing that keeps its clock down. */
static bool is_known_free(const course *c) {
    scout_telemetry t = {.size = sizeof t, .power_w = (double)NAN};
    c->clock->telemetry(c->clock->context, &t);
    return t.power_w > 0 && !t.throttle_text[0];
}

/* It runs until its clock has stood still, and where power is capped for whole seconds, if these are asked for: the
 * clock goes to the lane, and how far from it the long run may be. True: for whole seconds; behind `early` are those of
 * the points that lie in what the clock is a mean of. */
static bool run_until_still(course *c, lanes_lane *l, double able_hz, slope *all, slope *early) {
    enum { CHUNKS = 8 }; /* of still_s */
    const double began_s = now_of(c), fall = c->rules->clock_fall;
    const double stop_s = fmin(c->rules->hold_s, still_most_s);
    const bool asked = c->rules->hold_s >= LANES_WHOLE_S;
    double hz[CHUNKS] = {0}, passed_s = 0, apart = INFINITY;
    bool over = false;
    l->still_hz = 0;
    for (int n = 1;; n++) {
        const double start_s = passed_s;
        if (c->load.seconds < fallen_s) *early = *all;
        memmove(&hz[0], &hz[1], (CHUNKS - 1) * sizeof hz[0]);
        if (!((hz[CHUNKS - 1] = run_chunk(c, l, still_s / CHUNKS, all)) > 0)) {
            l->still_hz = 0;
            return false;
        }
        passed_s = now_of(c) - began_s;
        bear(c, passed_s - start_s, hz[CHUNKS - 1]);
        if (!over && n > 1 && (n >= CHUNKS || passed_s >= stop_s)) { /* what is seen once may be on its way */
            const int half = (n < CHUNKS ? n : CHUNKS) / 2;
            const double before_hz = mean_of(&hz[CHUNKS - 2 * half], half),
                         after_hz = mean_of(&hz[CHUNKS - half], half);
            l->still_hz = (before_hz + after_hz) / 2;
            apart = fabs(before_hz / after_hz - 1);
            over = apart <= held || passed_s >= stop_s;
        }
        const bool whole = now_of(c) - c->load.began_s >= LANES_WHOLE_S;
        if (over && (whole || !asked || l->still_hz >= able_hz)) break;
    }
    const bool low = l->still_hz < able_hz, capped = low && (asked || !is_known_free(c)),
               whole = capped && asked && c->load.late_s > 0;
    l->held_hz = whole ? c->load.late_cycles / c->load.late_s : capped ? (1 - fall) * l->still_hz : l->still_hz;
    l->held_error = whole ? whole_error : capped ? hypot(apart, fall > 0 ? fall_error * fall : unknown_error) : apart;
    if (apart > held) l->still_hz = 0; /* what was seen last may lie anywhere between */
    return whole;
}

/* A time belongs to a clock, and an operation's own is that of its own load in the long run. These blocks and those of
 * the rounds show how the time goes with it. What another load at such a clock has held, this one will. */
static void hold(course *c) {
    int lane = c->baseline;
    for (int k = 0; k < c->count && c->baseline < 0; k++) /* the best own one will be the baseline */
        if (runs(&c->lanes[k]) && c->lanes[k].own && (lane < 0 || c->lanes[k].time_s < c->lanes[lane].time_s)) lane = k;
    lanes_lane *l = lane >= 0 ? &c->lanes[lane] : NULL;
    if (!(c->rules->hold_s > 0) || !l || !runs(l) || !(l->clock_hz > 0)) return;
    const record *r = &c->records[lane];
    const double free_hz = full_clock * most_clock(c), able_hz = little_less * most_clock(c);
    double *const steady_hz = &c->rules->learned->steady_hz;
    slope all = {0};
    const double longest_s = longest_of(r);
    double hz = 0;
    if (c->load.seconds > alike_s) c->load = (struct load){.began_s = now_of(c)};
    if (c->rules->hold_low && (isinf(able_hz) || l->clock_hz >= able_hz)) return;
    if (!((hz = run_chunk(c, l, first_s, &all)) > 0)) return;
    const bool moves = fabs(hz / l->clock_hz - 1) > held;
    const bool heavy =
        c->rules->hold_s >= LANES_WHOLE_S; /* nothing is believed of it: power may cap it a little later */
    const bool known = !heavy && *steady_hz > 0 && hz >= alike * *steady_hz;
    slope near = all, early = all;
    bool whole = false;
    const bool is_free =
        l->clock_hz >= free_hz && hz >= free_hz; /* now and then by 5 % above what it is in the long run */
    if (c->rules->believe && known && !moves && hz >= able_hz && !is_free) l->held_hz = hz;
    if (!is_free && !(l->held_hz > 0)) {
        whole = run_until_still(c, l, able_hz, &all, &early);
        const bool stood = l->held_error <= held && l->held_hz >= alike * hz;
        if (stood && hz >= able_hz && !(*steady_hz > 0 && *steady_hz < hz)) *steady_hz = hz;
    }
    const slope late = slope_centred(slope_behind(&all, &early));
    for (int k = 0; k < r->count; k++)
        if (r->hz[k] > 0 && undisturbed(r, k, longest_s))
            slope_add(&all, r->hz[k], r->seconds[k]), slope_add(&near, r->hz[k], r->seconds[k]);
    near = slope_centred(near), all = slope_centred(all);
    l->held_error *= steepness(whole ? &late : &all);
    const slope s = whole ? slope_between(&near, &late) : all;
    l->clock_xx = s.xx, l->clock_xy = s.xy, l->clock_yy = s.yy, l->clock_n = s.n;
}

bool lanes_run(const timing_clock *clock, const lanes_rules *rules, lanes_lane *lanes, int count, int baseline,
               double end_s) {
    course c = {.clock = clock, .rules = rules, .lanes = lanes, .count = count, .baseline = baseline};
    c.records = calloc((size_t)count + 1, sizeof *c.records);
    for (int k = 0; k < count; k++) {
        lanes[k].answer = SCOUT_OK;
        if (!c.records) lanes[k].answer = scout_say(&lanes[k].why, SCOUT_NO_MEMORY, "memory", "the host has no memory");
    }
    for (int k = 0; k < count && c.records && !c.lost; k++) (void)look(&c, &lanes[k]);
    for (int k = 0; k < count && c.records && !c.lost; k++)
        if (runs(&lanes[k])) pace(&c, &lanes[k], false);
    if (c.records && !c.lost) race(&c, end_s);
    if (c.records && !c.lost) full_rounds(&c);
    const double alone_s = now_of(&c);
    if (c.records && !c.lost) hold(&c);
    if (rules->learned) rules->learned->hold_s = now_of(&c) - alone_s;
    for (int k = 0; k < count && c.records; k++) hand_over(&c, k);
    free(c.records);
    return !c.lost;
}
