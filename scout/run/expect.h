/* When a run will end, by what it has done, by what is left, and by the rules of budget.h that end it. Pure numbers:
 * seconds of one steady clock.
 *
 *     expect_work w = {.ceilings_s = 3};
 *     expect_job(&w, …), expect_passes(&w, …) of the items;
 *     left_s = expect_left(&e, &w, &budget, now);
 */
#pragma once

#include "scout/run/budget.h"

enum { EXPECT_LOOKS = 4 }; /* estimate_look: at an interval */

/* What is left, and what was learnt from what is done. All zero: nothing. */
typedef struct expect_work {
    double ceilings_s; /* that they take still */
    double began;      /* the first pass; 0: not yet */
    bool host;
    struct {
        double done, left; /* of its jobs, in seconds that the budget gives for searching */
        double took_s;     /* that those which are done took */
        double under_way_s;
    } first[2];                 /* passes over operations, and over fusions and what they need */
    double ahead[EXPECT_LOOKS]; /* later ones up to the next look, to the one behind it, …: the roots of first ones */
    double passed_s, passed_roots; /* that later ones took, and the roots of the first ones for each */
    int to_come;                   /* items without a figure */
    int figures, wanting;          /* items with a figure; of these, that have or want a second pass */
    int looks, went_on;            /* at their intervals; of these, that led to more passes */
    double spare_s;                /* behind all of these */
} expect_work;

typedef struct expect { /* what was said before; all zero: nothing */
    double end;
    double part;
} expect;

/* A job of the first pass. took_s: of one that is done; begun_s: since one that is under way began; both 0: it is to
 * come. */
void expect_job(expect_work *w, const budget *b, bool fusion, double share, bool done, double took_s, double begun_s);
/* An item that has so many passes: whether it wants another one, what its first pass took, and how many later ones this
 * run made and what these took together. */
void expect_passes(expect_work *w, int passes, bool wanted, double first_s, int later, double later_s);
/* Seconds until the end, and e->part of the run done. Near the end this never says more than it said before. */
double expect_left(expect *e, const expect_work *w, const budget *b, double now);
