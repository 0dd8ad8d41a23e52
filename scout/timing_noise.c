/* What a steered clock leaves open. Its controller looks at about a second and makes up for what it misses, so that
 * what counts is a whole second of it: two blocks of half a second that lie at opposite phases. How far such pairs
 * deviate is learnt from those of all subjects together, since it is one and the same controller; what was seen of it
 * on the card that the method was made on stands in for what a few pairs cannot show. */
#include "scout/stats.h"
#include "scout/timing_judge.h"

#include <math.h>

/* Of an H200 at its power limit, relative: pairs deviate by this, and it counts like so many pairs. Two halves that are
 * further apart than this are of another controller: then there have to be more pairs. */
static const double known_deviation = 0.0025, halves = 0.04;
enum { KNOWN_DEGREES = 6, PAIR = 2 };

static double kept_in(const timing_series *s, size_t from, size_t count) {
    double sum_s = 0;
    for (size_t k = from; k < from + count; k++) sum_s += s->blocks[k].kept_s;
    return sum_s;
}

/* Launches were so long, on average over the blocks. */
static double pace_of(const timing_series *s, size_t from, size_t count) {
    double sum = 0;
    for (size_t k = from; k < from + count; k++) sum += s->blocks[k].kept_s / s->blocks[k].level_s;
    return kept_in(s, from, count) / sum;
}

static size_t pairs_of(const timing_series *s, size_t from) { return (s->block_count - from) / PAIR; }

/* The sum of the squares of what the pairs deviate by, relative. */
static double apart(const timing_series *s, size_t from) {
    const size_t n = pairs_of(s, from);
    const double pace = pace_of(s, from, n * PAIR);
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += pow(pace_of(s, from + k * PAIR, PAIR) / pace - 1, 2);
    return sum;
}

void timing_noise_add(timing_noise *noise, const timing_series *s, size_t from) {
    const size_t n = pairs_of(s, from);
    if (n < 2) return;
    noise->squares += apart(s, from);
    noise->degrees += n - 1;
}

double timing_noise_pace(const timing_series *s, size_t from) { return pace_of(s, from, s->block_count - from); }

double timing_noise_half(const timing_noise *noise, const timing_series *s, size_t from) {
    const size_t n = pairs_of(s, from), degrees = noise->degrees + KNOWN_DEGREES;
    if (n == 0) return INFINITY;
    if (n == 1 && fabs(s->blocks[from].level_s / s->blocks[from + 1].level_s - 1) > halves) return INFINITY;
    const double squares = noise->squares + KNOWN_DEGREES * known_deviation * known_deviation;
    return stats_t95(degrees) * sqrt(squares / (double)degrees / (double)n);
}

double timing_noise_ends(void) { return stats_t95(KNOWN_DEGREES) * known_deviation * sqrt(2); }
