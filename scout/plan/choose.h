/* Which occurrences of a run go together: the cheapest cover of all of them by groups, each of one occurrence or of
 * several that an implementation does at once. Pure: numbers in, a choice and an order out. */
#pragma once

#include "common/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct choose_group {
    const int *members; /* occurrences, each once */
    int count;          /* 2 or more */
    double cost;        /* of all of it */
} choose_group;

typedef struct choose_problem { /* all borrowed */
    int count;                  /* of occurrences, in an order in which they can run */
    const double *costs;        /* of each by itself */
    const int *segments;        /* of each, never falling: a group lies in one, and none changes places with another */
    const int *needs,
        *begins; /* occurrence k needs those from needs[begins[k]] to needs[begins[k + 1]]: all before k */
    const choose_group *groups;
    int group_count;
} choose_problem;

typedef enum choose_fate {
    CHOOSE_TAKEN,
    CHOOSE_BEATEN, /* others are better */
    CHOOSE_DEAR,   /* it costs no less than its members one by one */
    CHOOSE_CIRCLE, /* something in between needs one member and is needed by another, or it lies in two segments */
    CHOOSE_LONG    /* whether that is so was not found out within bounds */
} choose_fate;

typedef struct choose_choice {
    choose_fate *fates; /* by group */
    int *order;         /* all occurrences; members of a group that is taken follow one another, as they did before */
    double alone, cost; /* all one by one, and as chosen: never more */
    double bound;       /* no choice costs less; below `cost` where a search was given up */
} choose_choice;

/* Every taken set can run: none of its groups needs, over others, what needs it. In the arena. */
choose_choice *choose_groups(const choose_problem *p, arena *a);
