/* How the time of a run is divided: ceilings first, then the first pass over every operation, fusions, later passes.
 * All of these shares stand in budget.c. Functions take the present moment, in seconds of a steady clock. */
#pragma once

#include "scout/run/options.h"

typedef struct budget {
    double whole_s, started, end;  /* --budget, and when it ends; 0: none */
    bool exhaustive, chosen;       /* --exhaustive; --only names what is measured */
    bool ceilings_alone;           /* the run measures nothing else */
    double fusions_end;            /* where no budget says so; 0: no fusion has begun */
    double later_began, later_end; /* of later passes; 0: none has begun */
    double replay_s;               /* of a budget: kept for the model as a whole */
    bool keeps;                    /* it may keep some for that */
    double lost_s;                 /* of passes that other work disturbed; they are made up for */
} budget;

budget budget_of(const options *o, double now);
/* So long, and before anything was measured, the run waited for another one: that is not its time. */
void budget_wait(budget *b, double seconds);

/* Seconds left for ceilings, of which `used_s` are gone; infinite without a budget. */
double budget_ceilings_left(const budget *b, double used_s);
/* What each of so many parts (a precision, the bandwidths) may take. */
double budget_ceilings_part(const budget *b, double used_s, int parts, bool host);
/* Whether stored ceilings that had so much time a part are good enough: a short run does not pay for better ones. */
bool budget_ceilings_enough(const budget *b, double part_s);
/* Whether what is left of their time can tell more than is known. */
bool budget_ceilings_again(const budget *b, double used_s);

/* A job of the first pass. */
typedef struct budget_job {
    bool fusion, fusions_left; /* it is a fusion; some fusion is not measured yet */
    bool early;                /* its stage has not begun */
    bool host;                 /* it runs on one */
    double share;              /* of the model's time that the operation is expected to take */
    double part;               /* of all that is left of its stage, for this job; 0: it is the last one */
} budget_job;
/* Seconds that an operation of such a share is searched in, where there is no lack of them. */
double budget_usual(const budget *b, double share);
/* The same for one that had so much, and turned out to be worth more; 0: there is nothing to gain, or no time. left_s:
 * until later passes end. */
double budget_search_again(const budget *b, double share, double had_s, double left_s);
/* Seconds of a budget until fusions have their share; infinite without one. */
double budget_operations_left(const budget *b, double now);
/* When fusions that begin then end at the latest, or have begun before. */
double budget_fusions_end(const budget *b, double begun);
/* Seconds for preparing and racing; 0: none are left. The search is as wide as the operation is worth. */
double budget_search(budget *b, const budget_job *job, double now);

/* Whether it is a budget that leaves a first pass of an operation of such a share no more than that. */
bool budget_cuts(const budget *b, double share, double pass_s);
/* Seconds that a load may be held for, so that its times are those of the clock that it holds in the long run; 0: none.
 * In a first pass that has `pass_s`, or `again` in a later one. No operation is to lack a figure for it. */
double budget_hold(const budget *b, double share, double pass_s, bool again, double now);

/* A pass of so many seconds was disturbed. Where no budget says when a run ends, it ends so much later. */
void budget_lose(budget *b, double seconds);
/* When later passes end, after a first one of so many seconds. */
double budget_later_end(budget *b, double first_s, bool host, double now);
/* Seconds that a host's figures narrow when all is decided, behind so many seconds of passes. */
double budget_spare(double passes_s);
typedef struct budget_wish {
    double share, seconds; /* what it is worth, and what it takes */
} budget_wish;
/* Those from which share on fit into what is left, the one of the most in any case; 0: all do. Sorts them. */
double budget_afforded(budget_wish *all, size_t count, double left_s);

/* The model is measured as a whole when all else is done, for which a tenth of a budget is kept, and the start. */
void budget_reserve(budget *b);
/* What the first pass of it is expected to take at least, and all of them, as far as that is known by now: more is
 * kept, or nothing any more where the first one does not fit. */
void budget_reserve_for(budget *b, double first_s, double all_s, double now);
double budget_replay_end(const budget *b, double now);
/* So much later its least of passes may end, once it is opened: a single one proves nothing. */
double budget_replay_more(const budget *b);
