/* Figures as a person reads them. Each is a text that lives to the end of the expression:
 *
 *     fprintf(out, "%s\n", amount_time(us).s);
 *
 * What is not known is "-". */
#pragma once

typedef struct amount {
    char s[32];
} amount;

amount amount_time(double us);         /* "18.92 us", "30.20 ms" */
amount amount_percent(double share);   /* "3.4 %" */
amount amount_within(double relative); /* "± 0.6 %"; "± ?" where it is not known */
