/* Figures as a person reads them. Each is a text that lives to the end of the expression:
 *
 *     fprintf(out, "%s\n", amount_time(us).s);
 *
 * What is not known is "-". */
#pragma once

typedef struct amount {
    char s[32];
} amount;

amount amount_time(double us); /* "18.92 us", "30.20 ms" */
/* Of a column of times: the unit that suits the largest, and times in it: "0.726". */
typedef struct amount_unit {
    const char *name; /* "ms" */
    double us;
    int digits;
} amount_unit;
amount_unit amount_unit_of(double largest_us);
amount amount_in(amount_unit unit, double us);
amount amount_bytes(double bytes);     /* "13.5 GB" */
amount amount_percent(double share);   /* "3.4 %" */
amount amount_within(double relative); /* "± 0.6 %"; "± ?" where it is not known */
/* Of a sum, a part of which has no interval: "± 0.6 % (12 % without interval)". `relative` counts that part as it is
 * (verdict_sum_ci, verdict_sum_unknown). */
typedef struct amount_words {
    char s[64];
} amount_words;
amount_words amount_within_of(double relative, double unknown);
