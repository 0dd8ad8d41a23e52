/* The race: many variants, little time for each. Early rounds throw out what is hopeless by its best interval so far,
 * so that one disturbed interval costs nobody the race; later ones compare pairs of neighbouring intervals, so that a
 * clock that moves for all of them moves nobody's place. */
#include "scout/stats.h"
#include "scout/timing.h"
#include "scout/timing_pace.h"

#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 40, LEAST_ROUNDS = 4 };

static const double hopeless = 3;          /* a single launch against the best single launch: nothing more is tried */
static const double far_behind_1 = 1.5;    /* best interval so far against the best's median, after one round */
static const double far_behind_2 = 1.15;   /* after two */
static const double worth_telling = 1.005; /* nearer ones stay, however sure their place: confirming tells them apart */
static const double many_looks = 1.5;      /* on the interval: one look in twenty fails, and there is one each round */
static const double known_share = 0.01;    /* of the race's time: rounds that cost less are run for intervals' sake */
static const double least_s = 0.25;        /* what disturbs a steered clock is over in less: no race is all within it */
static const double warm_share = 0.15;     /* of the race's time, for the warm-ups of its first round */

typedef struct race {
    timing_pace pace;
    timing_racer *racers;
    int count, finalists;
    double *x;                /* seconds of a launch: ROUNDS for each racer */
    double *lowest;           /* of each racer */
    double best_single_s;     /* infinite: none yet */
    double longest_launch_s;  /* of those that were timed */
    double begun_s, budget_s; /* of the race */
    bool lost;
} race;

static double *times_of(const race *r, int k) { return r->x + (size_t)k * ROUNDS; }

static bool fits(const race *r, double expected_s) {
    return timing_pace_now(&r->pace) - r->begun_s + expected_s <= r->budget_s;
}

static void failed(race *r, timing_racer *one, scout_answer answer) {
    one->answer = answer;
    one->alive = false;
    r->lost = answer == SCOUT_LOST;
}

static void add_time(race *r, int k, double launch_s) {
    timing_racer *one = &r->racers[k];
    times_of(r, k)[one->rounds++] = launch_s;
    r->lowest[k] = fmin(r->lowest[k], launch_s);
    one->median_s = stats_median(times_of(r, k), one->rounds);
}

/* The first round of one: how many launches make an interval, warm-ups, and that interval. */
static void enter(race *r, int k) {
    timing_racer *one = &r->racers[k];
    const timing_rules *rules = r->pace.rules;
    const timing_pitch_wish wish = {
        .interval_s = rules->burst ? rules->interval_s / 4 : rules->interval_s, /* several share a burst */
        .repeats = 1,
        .patience_s = warm_share * r->budget_s / r->count,
        .guess_s = r->longest_launch_s,
        .far_s = one->keep || !isfinite(r->best_single_s) ? 0 : hopeless * r->best_single_s,
    };
    timing_pitch pitch;
    double seconds[1];
    scout_answer answer = timing_pace_find(&r->pace, &one->subject, &wish, &pitch, &one->why);
    if (answer != SCOUT_OK) {
        failed(r, one, answer);
        return;
    }
    one->launches = pitch.launches;
    if (pitch.far || pitch.single_s >= fmax(wish.interval_s, wish.patience_s / 8)) {
        add_time(r, k, pitch.single_s); /* long launches: what was seen is all that is affordable */
    } else {
        const double expected_s = pitch.launches * pitch.launch_s;
        answer = timing_pace_run(&r->pace, &one->subject, pitch.launches, 1, expected_s, true, seconds, &one->why);
        if (answer != SCOUT_OK) {
            failed(r, one, answer);
            return;
        }
        r->lowest[k] = pitch.launch_s;
        add_time(r, k, seconds[0] / pitch.launches);
    }
    if (pitch.far) {
        one->alive = false;
        scout_say(&one->why, SCOUT_OK, "outraced", "a single launch takes %.1f times as long as the best one's",
                  pitch.single_s / r->best_single_s);
        return;
    }
    r->best_single_s = fmin(r->best_single_s, pitch.single_s);
    r->longest_launch_s = fmax(r->longest_launch_s, pitch.launch_s);
}

static void first_round(race *r) {
    for (int k = 0; k < r->count && !r->lost; k++) {
        const double idling_s = r->pace.rules->burst ? r->pace.rules->idle_s : 0;
        if (r->racers[k].keep || !isfinite(r->best_single_s) || fits(r, r->longest_launch_s + idling_s)) enter(r, k);
    }
}

static int best_of(const race *r) {
    int best = -1;
    for (int k = 0; k < r->count; k++) {
        const timing_racer *one = &r->racers[k];
        if (one->alive && one->rounds > 0 && (best < 0 || one->median_s < r->racers[best].median_s)) best = k;
    }
    return best;
}

/* Against the best of the same round: a moment in which all of them were slow is nobody's. Of two rounds the better. */
static double behind_beside(const race *r, int k, int best) {
    double least = INFINITY;
    for (uint32_t round = 0; round < r->racers[k].rounds; round++)
        least = fmin(least, times_of(r, k)[round] / times_of(r, best)[round]);
    return least;
}

static void drop_those_behind(race *r) {
    const int best = best_of(r);
    for (int k = 0; k < r->count && best >= 0; k++) {
        timing_racer *one = &r->racers[k];
        const timing_racer *first = &r->racers[best];
        if (!one->alive || one->keep || k == best || one->rounds == 0) continue;
        double ratio = r->lowest[k] / first->median_s;
        bool behind = one->rounds == 1 ? ratio > far_behind_1 : fmin(ratio, behind_beside(r, k, best)) > far_behind_2;
        if (one->rounds > 2) {
            const stats_interval interval =
                stats_ratio_interval(times_of(r, k), times_of(r, best), one->rounds, (uint64_t)k, &ratio);
            behind = ratio > worth_telling && ratio - many_looks * (ratio - interval.low) > 1;
        }
        if (!behind) continue;
        one->alive = false;
        scout_say(&one->why, SCOUT_OK, "outraced", "%.1f %% behind the best after %u round%s", 100 * (ratio - 1),
                  one->rounds, one->rounds == 1 ? "" : "s");
    }
}

/* Those in the race that are not there anyway. */
static int rivals(const race *r) {
    int left = 0;
    for (int k = 0; k < r->count; k++) left += r->racers[k].alive && !r->racers[k].keep;
    return left;
}

static bool might_beat(const race *r, int k, int kept) {
    const uint32_t rounds = r->racers[k].rounds;
    double ratio;
    if (rounds == 0 || rounds != r->racers[kept].rounds) return true;
    const stats_interval interval =
        stats_ratio_interval(times_of(r, k), times_of(r, kept), rounds, (uint64_t)k, &ratio);
    return ratio - many_looks * (ratio - interval.low) < 1 - r->pace.rules->margin;
}

/* Whether the race leaves open that somebody beats who is kept by the margin. */
static bool contested(const race *r) {
    int kept = -1;
    for (int k = 0; k < r->count; k++)
        if (r->racers[k].alive && r->racers[k].keep) kept = k;
    for (int k = 0; k < r->count; k++)
        if (r->racers[k].alive && k != kept && (kept < 0 || might_beat(r, k, kept))) return true;
    return false;
}

static double round_cost_s(const race *r) {
    double work_s = 0;
    for (int k = 0; k < r->count; k++)
        if (r->racers[k].alive && r->racers[k].rounds > 0) work_s += r->racers[k].launches * r->racers[k].median_s;
    const timing_rules *rules = r->pace.rules;
    return rules->burst ? work_s + ceil(work_s / rules->burst_s) * rules->idle_s : work_s;
}

/* The last word on those that are left: their rounds beside the best one's, so that a clock that moved between rounds
 * moves nobody's place, and widens nobody's interval. */
static void compare(race *r) {
    const int best = best_of(r);
    if (best < 0) return;
    const double best_s = r->racers[best].median_s;
    for (int k = 0; k < r->count; k++) {
        timing_racer *one = &r->racers[k];
        double ratio = 1;
        if (!one->alive || k == best || one->rounds < 2 || one->rounds != r->racers[best].rounds) continue;
        const stats_interval interval =
            stats_ratio_interval(times_of(r, k), times_of(r, best), one->rounds, (uint64_t)k, &ratio);
        one->median_s = ratio * best_s;
        one->rel_ci95 = interval.relative; /* over the best one: what both share is in neither */
        r->racers[best].rel_ci95 = 0;
    }
}

/* In turn, from another one each time, forwards and backwards: nobody always runs after the same neighbour. */
static void next_round(race *r, uint32_t round) {
    const uint32_t count = (uint32_t)r->count, stride = count % 7 ? 7 : 5; /* by a multiple all would begin alike */
    for (int step = 0; step < r->count && !r->lost; step++) {
        const int turn = (int)((round * stride + (uint32_t)step) % count);
        const int k = round % 2 ? r->count - 1 - turn : turn;
        timing_racer *one = &r->racers[k];
        double seconds[1];
        if (!one->alive || one->rounds == 0) continue;
        const double expected_s = one->launches * one->median_s;
        const scout_answer answer =
            timing_pace_run(&r->pace, &one->subject, one->launches, 1, expected_s, true, seconds, &one->why);
        if (answer == SCOUT_OK)
            add_time(r, k, seconds[0] / one->launches);
        else
            failed(r, one, answer);
    }
}

/* The race is over: the best stay, then those that nobody has looked at, by their order. */
static void cut(race *r, bool uncontested) {
    int places = r->finalists;
    const int best = best_of(r);
    for (int k = 0; k < r->count; k++) {
        timing_racer *one = &r->racers[k];
        if (!one->alive || one->keep) continue;
        int before = 0;
        for (int j = 0; j < r->count; j++) {
            const timing_racer *other = &r->racers[j];
            if (j == k || other->keep || !other->alive || other->rounds == 0) continue;
            before +=
                one->rounds == 0 || other->median_s < one->median_s || (other->median_s == one->median_s && j < k);
        }
        for (int j = 0; j < k && one->rounds == 0; j++)
            before += r->racers[j].alive && !r->racers[j].keep && r->racers[j].rounds == 0;
        r->lowest[k] = before < places ? 0 : 1; /* decided first, done below: who is out still counts for the others */
    }
    for (int k = 0; k < r->count; k++) {
        timing_racer *one = &r->racers[k];
        if (!one->alive || one->keep || r->lowest[k] == 0) continue;
        one->alive = false;
        if (one->rounds == 0)
            scout_say(&one->why, SCOUT_OK, "budget", "the race's %.2f s were used up before its turn", r->budget_s);
        else if (uncontested)
            scout_say(&one->why, SCOUT_OK, "outraced",
                      "%.1f %% behind the best, and nobody beats the baseline by %.3g %%",
                      100 * (one->median_s / r->racers[best].median_s - 1), 100 * r->pace.rules->margin);
        else
            scout_say(&one->why, SCOUT_OK, "budget", "%.1f %% behind the best when the race's %.2f s were used up",
                      100 * (one->median_s / r->racers[best].median_s - 1), r->budget_s);
    }
}

static void all_lost(race *r) {
    for (int k = 0; k < r->count; k++) {
        timing_racer *one = &r->racers[k];
        if (one->answer == SCOUT_OK)
            scout_say(&one->why, SCOUT_OK, "device_lost", "the device went away while another variant ran");
        one->answer = SCOUT_LOST;
        one->alive = false;
    }
}

/* Enough is known: few are left, or nothing hangs on their order. Rounds are cheap beside the blocks that each of the
 * last few would get, so these go on while they are. */
static bool decided(const race *r, uint32_t round, double next_s, bool *uncontested) {
    const bool brief = timing_pace_now(&r->pace) - r->begun_s < fmin(least_s, r->budget_s / 4);
    const bool cheap = next_s <= known_share * r->budget_s;
    if ((round < LEAST_ROUNDS || brief) && cheap) return false;
    *uncontested = round >= LEAST_ROUNDS && !contested(r);
    return *uncontested || rivals(r) <= (cheap ? 1 : r->finalists);
}

static void run_race(race *r) {
    bool uncontested = false;
    first_round(r);
    for (uint32_t round = 1; !r->lost; round++) {
        drop_those_behind(r);
        const double next_s = round_cost_s(r);
        if (decided(r, round, next_s, &uncontested) || round == ROUNDS || !fits(r, next_s)) break;
        next_round(r, round);
    }
    if (r->lost)
        all_lost(r);
    else if (rivals(r) > r->finalists)
        cut(r, uncontested);
    for (int k = 0; k < r->count; k++)
        if (r->racers[k].rounds > 0)
            r->racers[k].rel_ci95 = stats_median_interval(times_of(r, k), r->racers[k].rounds, 1, (uint64_t)k).relative;
    compare(r);
}

void timing_race(const timing_clock *clock, const timing_rules *rules, timing_racer *racers, int count, int finalists) {
    race r = {.pace = timing_pace_of(clock, rules),
              .racers = racers,
              .count = count,
              .finalists = finalists > 0 ? finalists : 0,
              .best_single_s = INFINITY,
              .budget_s = rules->race_share * rules->budget_s};
    if (count <= 0) return;
    r.x = calloc((size_t)count * ROUNDS, sizeof *r.x);
    r.lowest = calloc((size_t)count, sizeof *r.lowest);
    r.begun_s = timing_pace_now(&r.pace);
    for (int k = 0; k < count; k++) {
        timing_racer *one = &racers[k];
        one->alive = r.x && r.lowest;
        one->rounds = one->launches = 0;
        one->median_s = one->rel_ci95 = NAN;
        one->answer = SCOUT_OK;
        one->why = (scout_why){.code = ""};
        if (r.lowest) r.lowest[k] = INFINITY;
        if (!one->alive)
            one->answer = scout_say(&one->why, SCOUT_NO_MEMORY, "memory", "no memory to race %d variants", count);
    }
    if (r.x && r.lowest) run_race(&r);
    free(r.x);
    free(r.lowest);
}
