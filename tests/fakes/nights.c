/* Owns the simulation. The median of n launches with noise s is drawn as what it is: normal, with deviation
 * s * sqrt(pi / 2 / n); the report's interval is 1.96 of these, as well as so many launches tell it. */
#include "tests/fakes/nights.h"

#include "tests/fakes/noisy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double median_noise(const nights_model *m) { return m->launch_noise * sqrt(1.5707963267948966 / m->launches); }

static double interval(const nights_model *m, uint64_t *random) {
    if (m->claimed_ci > 0) return m->claimed_ci;
    return 1.96 * median_noise(m) * (1 + noisy_normal(random) / sqrt(2.0 * m->launches));
}

/* Student's t of whole degrees above 2, with the deviation of a normal one. */
static double heavy(double degrees, uint64_t *random) {
    double squares = 0;
    for (int k = 0; k < (int)degrees; k++) {
        const double x = noisy_normal(random);
        squares += x * x;
    }
    return noisy_normal(random) / sqrt(squares / degrees) * sqrt((degrees - 2) / degrees);
}

void nights_rows(const nights_model *m, uint64_t *random, drift_row *rows) {
    const double machine = log1p(m->machine) + m->machine_runs * noisy_normal(random);
    for (int k = 0; k < m->operations; k++) {
        const double between = m->between * (m->tails > 0 ? heavy(m->tails, random) : noisy_normal(random));
        const double within = median_noise(m) * (noisy_normal(random) - noisy_normal(random));
        const double change = k < m->slowed ? log1p(m->slowdown) : 0;
        const double before_ci = interval(m, random), after_ci = interval(m, random);
        rows[k] = (drift_row){machine + change + between + within, drift_noise(before_ci, after_ci)};
    }
}

static void count_night(const nights_model *m, const drift *d, const drift_row *rows, nights_count *c) {
    int found = 0, slower = 0, faster = 0;
    for (int k = 0; k < m->operations; k++) {
        const drift_state state = drift_judge(d, rows[k], 0).state;
        found += k < m->slowed && state == DRIFT_SLOWER;
        slower += k >= m->slowed && state == DRIFT_SLOWER;
        faster += k >= m->slowed && state == DRIFT_FASTER;
        c->ambiguous += state == DRIFT_AMBIGUOUS;
    }
    const drift_state machine = drift_judge_machine(d).state;
    c->machine_slower += machine == DRIFT_SLOWER;
    c->machine_faster += machine == DRIFT_FASTER;
    c->found += found == m->slowed;
    c->false_slower += slower > 0;
    c->false_faster += faster > 0;
    c->heavy += d->normal < 0.5;
    c->spread += d->spread;
    c->limit += d->limit;
    c->detectable += drift_detectable(d);
}

nights_count nights_run(const nights_model *m, const drift_options *options, int nights, uint64_t seed) {
    nights_count c = {.nights = nights};
    drift_row *rows = malloc((size_t)m->operations * sizeof *rows);
    for (int night = 0; rows && night < nights; night++) {
        drift d;
        nights_rows(m, &seed, rows);
        if (!drift_learn(&d, options, rows, (size_t)m->operations, (size_t)m->operations)) abort();
        count_night(m, &d, rows, &c);
    }
    free(rows);
    c.ambiguous /= nights;
    c.spread /= nights;
    c.limit /= nights;
    c.detectable /= nights;
    return c;
}
