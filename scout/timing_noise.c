/* What a steered clock leaves open. Its controller looks at about a second and makes up for what it misses, so that a
 * block of a whole second is one observation, and nothing shorter is. How far such blocks deviate is learnt from those
 * of all subjects together, since it is one and the same controller; what was seen of it on the card that the method
 * was made on stands in for what a few blocks cannot show. */
#include "scout/stats.h"
#include "scout/timing_judge.h"

#include <math.h>

/* Of an H200 at its power limit, relative: seconds deviate by this, and it counts like so many of them. The halves of a
 * second that are further apart than this are of another controller: then there has to be more than one. */
static const double known_deviation = 0.0025, halves = 0.03;
enum { KNOWN_DEGREES = 6 };

/* Launches were so long, on average over the blocks. */
double timing_noise_pace(const timing_series *s, size_t from) {
    double worked_s = 0, launches = 0;
    for (size_t k = from; k < s->block_count; k++) {
        worked_s += s->blocks[k].kept_s;
        launches += s->blocks[k].kept_s / s->blocks[k].level_s;
    }
    return worked_s / launches;
}

/* The sum of the squares of what the blocks deviate by, relative. */
static double apart(const timing_series *s, size_t from) {
    const double pace = timing_noise_pace(s, from);
    double sum = 0;
    for (size_t k = from; k < s->block_count; k++) sum += pow(s->blocks[k].level_s / pace - 1, 2);
    return sum;
}

void timing_noise_add(timing_noise *noise, const timing_series *s, size_t from) {
    const size_t n = s->block_count - from;
    if (n < 2) return;
    noise->squares += apart(s, from);
    noise->degrees += n - 1;
}

double timing_noise_half(const timing_noise *noise, const timing_series *s, size_t from) {
    const size_t n = s->block_count - from, degrees = noise->degrees + KNOWN_DEGREES;
    if (n == 0 || (n == 1 && !(s->blocks[from].halves <= halves))) return INFINITY;
    const double squares = noise->squares + KNOWN_DEGREES * known_deviation * known_deviation;
    return stats_t95(degrees) * sqrt(squares / (double)degrees / (double)n);
}

double timing_noise_ends(void) { return stats_t95(KNOWN_DEGREES) * known_deviation * sqrt(2); }
