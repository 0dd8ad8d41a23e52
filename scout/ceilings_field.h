/* The shapes that a search looks at, their scores, and how one of them is timed. Only for scout/ceilings_search.c. */
#ifndef SCOUT_CEILINGS_FIELD_H
#define SCOUT_CEILINGS_FIELD_H

#include "scout/ceilings_search.h"

enum { CEILINGS_FIELD_ENTRIES = 4096, CEILINGS_FIELD_RATES = 8, CEILINGS_FIELD_PROBES = 5 };

typedef struct ceilings_entry {
    ceilings_search_point p;
    double score; /* comparable between entries of one ceilings_field */
    double brief; /* flops per cycle, in terms of the probe's: what short slots say */
    double level,
        weight; /* of long slots: the mean logarithm of its rate (flop/s), and what that counts; 0: none yet */
    double rates[CEILINGS_FIELD_RATES];
    int rate_count;
    bool open, dead;
    bool sure;   /* `brief` was looked at again */
    bool picked; /* by whoever makes a list */
    bool known;  /* an earlier search ended with it */
    timing_subject subject;
    uint32_t launches;
} ceilings_entry;

typedef struct ceilings_field {
    const ceilings_search *s;
    timing_rules rules; /* those of s, with a state of its own */
    timing_state state;
    bool steered; /* its plan is that of a device whose clock power or heat holds back */
    ceilings_entry *entries;
    int count;
    double best_rate; /* flop/s, of any interval so far */
    double steady;    /* flop/s: the best under steady load, in long slots */
    double probe[CEILINGS_FIELD_PROBES], probe_now;
    int probes;
    double start, budget_s; /* what is planned with */
} ceilings_field;

/* Entry 0 is the probe: a product in the middle of the space, timed once. ceilings_field_finish whatever comes back. */
scout_answer ceilings_field_begin(ceilings_field *x, const ceilings_search *s, scout_why *why);
void ceilings_field_finish(ceilings_field *x);
void ceilings_field_tell(const ceilings_field *x, const char *what, int done, int of);
double ceilings_field_now(const ceilings_field *x);
bool ceilings_field_late(const ceilings_field *x, double part); /* that part of the budget is used */

/* Borrowed, valid until ceilings_field_finish. NULL: looked at already, or no room. */
ceilings_entry *ceilings_field_add(ceilings_field *x, const ceilings_search_point *p);
void ceilings_field_close(ceilings_field *x, ceilings_entry *e);
/* The best entries that live, best first; all others are closed. Returns how many there are, at most `most`. */
int ceilings_field_best(ceilings_field *x, ceilings_entry **out, int most);

/* Times an entry for about work_s: flop/s into *rate. from: which part of the intervals is thrown away. */
scout_answer ceilings_field_slot(ceilings_field *x, ceilings_entry *e, double work_s, double from, double *rate,
                                 scout_why *why);
/* The same for a steered clock: all of the work beyond the first drop_s counts, however its intervals are spread, since
 * what the controller misses in one of them it makes up for in others. */
scout_answer ceilings_field_long(ceilings_field *x, ceilings_entry *e, double work_s, double drop_s, double *rate,
                                 scout_why *why);
/* As slot, but a shape that cannot be timed is only marked as dead. */
scout_answer ceilings_field_try(ceilings_field *x, ceilings_entry *e, double work_s, double from, double *rate,
                                scout_why *why);
/* Times the probe. Its figure, probe_now, moves slowly: the median of its last few. */
scout_answer ceilings_field_probe(ceilings_field *x, scout_why *why);
/* What an answer about one shape means for the others: the shape is marked as dead, or everything ends. */
scout_answer ceilings_field_spare(ceilings_field *x, ceilings_entry *e, scout_answer answer);
double ceilings_field_screen_s(const ceilings_field *x); /* of work at the first look */

#endif
