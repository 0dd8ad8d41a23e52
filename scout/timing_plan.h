/* The plan of a confirmation: who takes part, how long their blocks are, and who is left out because launches are too
 * long for the budget. For the timing_*.c alone. */
#ifndef SCOUT_TIMING_PLAN_H
#define SCOUT_TIMING_PLAN_H

#include "scout/timing_judge.h"
#include "scout/timing_pace.h"

enum { TIMING_PLAN_ROUNDS = 2 }; /* least */

typedef struct timing_entrant {
    const timing_subject *subject;
    timing_result *result;
    timing_series series;
    timing_pitch pitch;
    timing_opinion opinion;
    double drop_s;   /* sustained: of a block, thrown away */
    double block_s;  /* sustained: what the last block took */
    double stretch;  /* the time that an interval takes over what is timed of it */
    uint32_t drop;   /* burst: intervals thrown away */
    uint32_t keep;   /* intervals of a block that count, at least */
    uint32_t rounds; /* burst: for the stated minima */
    bool relaxed;    /* launches are too long for the minima */
    bool probe;      /* two blocks before all others, or one in every round of them */
    double beside;   /* half width of the efficiency that it stands for, where it runs among the others */
    bool brief;      /* its interval matters no more */
    bool enough;     /* seen often enough, without drift: only its interval may still be too wide */
    bool dead, open;
} timing_entrant;

typedef struct timing_trial {
    timing_pace pace;
    timing_entrant *entrants;
    int count;
    double begun_s, budget_s; /* of confirming */
    bool hops;                /* the clock does: blocks are longer */
    bool steered;             /* it is known to be steered: a block is a whole second of it */
    int held_back;            /* so many blocks ended with a clock that power holds back */
    timing_noise noise;       /* of all entrants' blocks, where it is steered */
    bool lost;
} timing_trial;

double timing_plan_used(const timing_trial *c); /* seconds since it began */
double timing_plan_interval(const timing_entrant *e);
uint64_t timing_plan_launches(const timing_entrant *e);                  /* that count */
double timing_plan_cost(const timing_trial *c, const timing_entrant *e); /* seconds of one block of it */
/* Launches that it has to have: none of a probe among the others, whose launches are as long as it likes. */
uint32_t timing_plan_least(const timing_rules *rules, const timing_entrant *e);
bool timing_plan_room(const timing_trial *c); /* for one more round of those that are open */
void timing_plan_fail(timing_trial *c, timing_entrant *e, scout_answer answer);
void timing_plan_shortest(const timing_trial *c, timing_entrant *e); /* the shortest block that is one */

/* Finds the launches of an interval of each, warms them up, and lays out the blocks. */
void timing_plan(timing_trial *c);
void timing_plan_anew(timing_trial *c); /* blocks for what is left, once the clock turns out to be steered */
/* Loads the device until it is fit for figures, or for part of the time that a steered one takes. */
void timing_plan_load(timing_trial *c, double part);
/* What telemetry at the end of a block says. */
void timing_plan_steered(timing_trial *c, const scout_telemetry *t);
int timing_plan_rounds(const timing_trial *c);       /* least */
bool timing_plan_turn(const timing_trial *c, int k); /* whether it has a block in the next round */

/* timing_block.c: one block of an entrant, into its series. */
void timing_block_run(timing_trial *c, timing_entrant *e);

/* timing_fill.c: what is to be reported of an entrant that is not dead. */
void timing_fill(const timing_rules *rules, const timing_entrant *e, timing_result *out);

#endif
