/* What the passes of a measurement say together. A worker measures a pass; here the supervisor keeps what each pass saw
 * of every row, and makes the figures of it: times, ratios, intervals, the winner, what is still open. A measurement is
 * JSON (docs/formats.md), so that what was cached or written to a report goes on where it was. */
#pragma once

#include "common/json.h"

#include <stdbool.h>

/* Adds a worker's pass to `measurement` (NULL: it is the first) and makes the figures anew. The caller's, in place of
 * `measurement`; NULL: no memory, and `measurement` is given back. */
json_t *figures_add(json_t *measurement, const json_t *pass);

/* A time is good, and no longer open, once it is known to so much: relative; 0: as the method says. */
double figures_usual_target(bool host);
void figures_aim(json_t *measurement, double target_ci);

/* Seconds that its blocks ran. */
double figures_timed_s(const json_t *measurement);

/* How many passes it has; 0: it is of no such form. */
int figures_passes(const json_t *measurement);
/* Whether other work on a host disturbed the last of several, or slowed it so that it does not count. */
bool figures_lost(const json_t *measurement);

/* The rows of the next pass, the baseline first: what may still win, and twice the best of its rivals, so that it is
 * known how far behind it is. `only`: names that were asked for, commas between; NULL: all. `beside`: each of these,
 * the fastest of its variants. The array is the caller's; NULL: there is no baseline, or no memory. */
json_t *figures_choose(const json_t *measurement, const char *only, bool beside);
/* Whether the next pass asks once more for the clock that the baseline's load holds: it moved while it was looked at.
 */
bool figures_hold_again(const json_t *measurement);

/* The row that is the fastest by all that is known, proven or not; borrowed. NULL: none has a figure. */
const json_t *figures_leader(const json_t *measurement);

/* By how much of itself the time of the operation is open, relative: what its interval leaves where it is wider than
 * the target, or what a winner that is not decided may gain. 0: nothing. Infinite: only one pass is known. */
double figures_open(const json_t *measurement);
double figures_gain_open(const json_t *measurement); /* the latter alone */

/* The relative half width of the interval of the operation's time; infinite: only one pass is known. */
double figures_ci(const json_t *measurement);

/* Whether the interval of the operation's time is wider than the target. */
bool figures_wide(const json_t *measurement);

/* Whether a guess alone makes it wide, of the clock that its load holds in the long run: passes that do not hold that
 * load leave it so. */
bool figures_guessed(const json_t *measurement);

/* A copy without what a launch takes more in one model; the caller's. */
json_t *figures_without_fetch(const json_t *measurement);
