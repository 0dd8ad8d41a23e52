/* Under a power cap the clock settles where energy per flop times flops per second meets the cap. A product of more
 * flops per cycle therefore runs at a lower clock, where a flop costs less: about half of its gain is left. A product
 * that moves less data per flop keeps all of what that saves. How much either counts on this device is learnt from the
 * shapes that were timed: a line through the logarithms of their rates, drawn towards what is expected beforehand, so
 * that two timed shapes already give a sensible one. */
#include "scout/ceilings_guess.h"

#include <math.h>

enum { TERMS = 4 };

/* The work done under a steered clock strays from an even pace by about this much time's worth, however long it is
 * watched (measured on an H200: 1 to 1.9 ms). */
static const double astray_s = 1.5e-3;

/* What no line says about a kernel. */
static const double spread = 0.015;

static const double expected[TERMS] = {0, 0.5, 0, 0};    /* beforehand: the level, of flops per cycle, of data moved */
static const double open_by[TERMS] = {1, 0.3, 0.1, 0.1}; /* and the deviation of that */

/* Noise in what short slots say flattens the line; it never falls. */
static const double least_gain = 0.4;

/* Of the most flops per cycle: who has fewer could not keep up at the highest clock, and lines end somewhere. */
static const double hopeless = 0.75;

double ceilings_guess_error(double seconds) { return astray_s / seconds; }

ceilings_guess_moved ceilings_guess_moves(const ceilings_field *x, const ceilings_search_point *p) {
    const double scale = (double)x->s->space.most / 16, m = (double)p->m, n = (double)p->n;
    return (ceilings_guess_moved){.inputs = scale / (scale + m * n / (m + n)),
                                  .output = scale / (scale + (double)p->k)};
}

static void terms_of(const ceilings_field *x, const ceilings_entry *e, double terms[TERMS]) {
    const ceilings_guess_moved moved = ceilings_guess_moves(x, &e->p);
    terms[0] = 1;
    terms[1] = log(e->brief);
    terms[2] = moved.inputs;
    terms[3] = moved.output;
}

/* a * out = b, a symmetric and positive (every term has an expectation): no pivots are needed. a and b are used up. */
static void solve(double a[TERMS][TERMS], double b[TERMS], double out[TERMS]) {
    for (int k = 0; k < TERMS; k++)
        for (int row = k + 1; row < TERMS; row++) {
            const double factor = a[row][k] / a[k][k];
            for (int column = k; column < TERMS; column++) a[row][column] -= factor * a[k][column];
            b[row] -= factor * b[k];
        }
    for (int k = TERMS - 1; k >= 0; k--) {
        out[k] = b[k];
        for (int column = k + 1; column < TERMS; column++) out[k] -= a[k][column] * out[column];
        out[k] /= a[k][k];
    }
}

static double value_of(const double line[TERMS], const double terms[TERMS]) {
    double sum = 0;
    for (int k = 0; k < TERMS; k++) sum += line[k] * terms[k];
    return sum;
}

/* Deviations from what is expected, weighted: `origin` is the level that the first term deviates from. */
static void fit(const ceilings_field *x, double origin, double line[TERMS]) {
    double a[TERMS][TERMS] = {{0}}, b[TERMS] = {0}, terms[TERMS];
    for (int k = 0; k < TERMS; k++) a[k][k] = 1 / (open_by[k] * open_by[k]);
    for (int k = 0; k < x->count; k++) {
        const ceilings_entry *e = &x->entries[k];
        if (e->dead || !(e->weight > 0) || !(e->brief > 0)) continue;
        terms_of(x, e, terms);
        const double counts = 1 / (1 / e->weight + spread * spread);
        const double beyond = e->level - origin - value_of(expected, terms);
        for (int row = 0; row < TERMS; row++) {
            for (int column = 0; column < TERMS; column++) a[row][column] += counts * terms[row] * terms[column];
            b[row] += counts * terms[row] * beyond;
        }
    }
    solve(a, b, line);
    for (int k = 0; k < TERMS; k++) line[k] += expected[k];
    line[1] = fmin(fmax(line[1], least_gain), 1);
    line[0] += origin;
}

void ceilings_guess_score(ceilings_field *x) {
    double line[TERMS], terms[TERMS], sum = 0, most = 0;
    int timed = 0;
    for (int k = 0; k < x->count; k++) {
        if (!x->entries[k].dead) most = fmax(most, x->entries[k].brief);
        if (!(x->entries[k].weight > 0)) continue;
        sum += x->entries[k].level;
        timed++;
    }
    if (timed == 0) return;
    fit(x, sum / timed, line);
    for (int k = 0; k < x->count; k++) {
        ceilings_entry *e = &x->entries[k];
        e->score = 0;
        if (e->dead || !(e->brief > hopeless * most)) continue;
        terms_of(x, e, terms);
        const double others = 1 / (spread * spread);
        e->score = exp((e->weight * e->level + others * value_of(line, terms)) / (e->weight + others));
    }
}
