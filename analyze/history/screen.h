/* The rule of the alarms: figures in, a judgement out; it knows no file. A figure is the logarithm of a time over the
 * ceiling of its night, so that differences are relative changes. Everything is robust: one bad night moves nothing.
 *
 *     screen_base b = screen_base_of(x, level, n);      the nights before
 *     b.spread = screen_blend(&b, common);
 *     if (fabs(screen_z(&b, tonight)) > SCREEN_LIMIT) …  it is suspect, and measured again
 *     screen_again a = screen_settle(&b, again, m, machine);   what these say */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    SCREEN_NIGHTS = 42,   /* that are looked at */
    SCREEN_LEAST = 5,     /* without these nothing is suspect yet */
    SCREEN_REPEATS = 8,   /* how often a suspect is measured again */
    SCREEN_COMMON = 10,   /* nights' worth that all other operations' spread has in each one's own */
    SCREEN_MACHINE = 20,  /* operations that tell what the machine does */
    SCREEN_WITNESSES = 16 /* of these, that are measured again for it */
};
extern const double screen_limit, screen_sure; /* standard deviations: suspect; confirmed */

double screen_median(double *x, size_t n); /* changes their order; not-a-number where there are none */

typedef struct screen_base {
    double middle, spread; /* of the nights since the last change; standard deviation of all that were looked at */
    size_t nights, all;    /* since that change; all */
} screen_base;

/* Of nights in their order. Levels (NULL: all one) rise with each change; nights of earlier ones tell only how much
 * nights differ. */
screen_base screen_base_of(const double *x, const int *level, size_t n);
double screen_blend(const screen_base *own, double common); /* common: of all others; not-a-number: not known */
double screen_z(const screen_base *b, double x);

typedef struct screen_again {
    bool confirmed;
    double change; /* logarithm, over the base */
} screen_again;
/* tonight: its first figure; machine: what all operations moved by tonight, which is no change of its own. */
screen_again screen_settle(const screen_base *b, double tonight, const double *again, size_t n, double machine);

/* Where a series changed: the first night of each new level, in their order; at most `most` of them. Chance finds one
 * in 100,000 series. This dates what happened; it raises no alarm. */
size_t screen_changes(const double *x, size_t n, size_t *at, size_t most);
