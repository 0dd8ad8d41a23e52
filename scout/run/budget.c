/* Owns how the time of a run is divided. */
#include "scout/run/budget.h"

#include <math.h>
#include <stdlib.h>

/* Ceilings: seconds of a part, and of one that is measured in every way; of a budget this share at most. */
static const double CEILINGS_PART = 4, CEILINGS_PART_HOST = 5, CEILINGS_PART_AUDIT = 12;
static const double CEILINGS_SHARE = 1.0 / 3;
static const double CEILINGS_LEAST = 0.5; /* less measures nothing new */

/* The first pass: what any operation has, and what all share by their worth. */
static const double SEARCH_LEAST = 0.1, SEARCH_SHARED = 5, SEARCH_EXHAUSTIVE = 120;
/* Of a budget; the rest is for checks and blocks, without whose passes nothing is proven. A host's are dear. */
static const double SEARCH_SHARE = 0.25, SEARCH_SHARE_HOST = 0.6;
static const double LEAST = 0.02; /* less measures nothing */
/* A second search: so many times the first one's seconds at least, and of those that are left this part at most. */
static const double AGAIN_LEAST = 1.5, AGAIN_SHARE = 0.25;

/* Until a clock stands still, and the whole seconds that a cap on power takes the mean of: an operation is worth these
 * from so much of the model's time on. */
static const double HOLD_STILL = 0.8, HOLD_WHOLE = 1.5, HOLD_WORTH = 0.03;
static const double HOLD_SHARE = 0.5, HOLD_LEAST = 0.1; /* of a first pass that a budget cuts; less shows nothing */

static const double FUSIONS_SHARE = 0.25, FUSIONS_LEAST = 20; /* of a run; seconds, where there is no budget */

/* Later passes take as long as the first one, and this at least. Of a host all passes together take HOST_SECONDS,
 * where that leaves HOST_LATER. */
static const double LATER_LEAST = 14, HOST_SECONDS = 45, HOST_LATER = 15;
/* Behind them a host's figures narrow for this part of what passes took, and no longer than that. */
static const double SPARE_SHARE = 0.5, SPARE_MOST = 10;
static const double LOST_MOST = 30;                        /* is made up for */
static const double REPLAY_SHARE = 0.1, REPLAY_LEAST = 10; /* of a run; seconds, where there is no budget */
static const double REPLAY_MOST = 0.4;                     /* of a budget for all passes; */
static const double REPLAY_FIRST_MOST = 0.5;               /* for the first one, else nothing is kept */
/* Reports are written before it, and a worker of its own starts: seconds, and no more than its share. */
static const double REPLAY_START = 1.5;

budget budget_of(const options *o, double now) {
    return (budget){.whole_s = o->budget_s,
                    .started = now,
                    .end = o->budget_s > 0 ? now + o->budget_s : 0,
                    .exhaustive = o->exhaustive,
                    .chosen = o->only != NULL,
                    .ceilings_alone = o->mode == OPTIONS_CEILINGS};
}

void budget_wait(budget *b, double seconds) {
    b->started += seconds;
    if (b->end > 0) b->end += seconds;
}

/* ---- ceilings ---- */

double budget_ceilings_left(const budget *b, double used_s) {
    if (!(b->whole_s > 0)) return INFINITY;
    return (b->ceilings_alone ? 1 : CEILINGS_SHARE) * b->whole_s - used_s;
}

double budget_ceilings_part(const budget *b, double used_s, int parts, bool host) {
    const double most = b->ceilings_alone && b->exhaustive ? CEILINGS_PART_AUDIT
                        : host                             ? CEILINGS_PART_HOST
                                                           : CEILINGS_PART;
    return fmin(budget_ceilings_left(b, used_s) / (parts > 1 ? parts : 1), most);
}

bool budget_ceilings_enough(const budget *b, double part_s) {
    return part_s >= 0.5 * CEILINGS_PART || (b->whole_s > 0 && !b->ceilings_alone);
}

bool budget_ceilings_again(const budget *b, double used_s) { return budget_ceilings_left(b, used_s) > CEILINGS_LEAST; }

/* ---- the first pass ---- */

double budget_usual(const budget *b, double share) {
    return b->exhaustive ? SEARCH_EXHAUSTIVE : SEARCH_LEAST + SEARCH_SHARED * share;
}

double budget_search_again(const budget *b, double share, double had_s, double left_s) {
    const double seconds = fmin(budget_usual(b, share), AGAIN_SHARE * left_s);
    return had_s > 0 && seconds >= AGAIN_LEAST * had_s ? seconds : 0;
}

double budget_fusions_end(const budget *b, double begun) {
    if (b->end > 0) return b->end;
    if (b->exhaustive || b->chosen) return INFINITY;
    if (b->fusions_end > 0) return b->fusions_end;
    return begun + fmax(FUSIONS_LEAST, (begun - b->started) * FUSIONS_SHARE / (1 - FUSIONS_SHARE));
}

static double operations_end(const budget *b) { return b->started + (1 - FUSIONS_SHARE) * (b->end - b->started); }

double budget_operations_left(const budget *b, double now) {
    return b->end > 0 ? operations_end(b) - now : (double)INFINITY;
}

/* Fusions keep their share for themselves until they begin. 0: there is no end. */
static double stage_end(budget *b, const budget_job *job, double now) {
    if (b->end > 0) {
        const bool shared = !job->fusion && job->fusions_left;
        return shared ? operations_end(b) : b->end;
    }
    if (!job->fusion || job->early || b->exhaustive || b->chosen) return 0;
    return b->fusions_end = budget_fusions_end(b, now);
}

double budget_search(budget *b, const budget_job *job, double now) {
    const double usual = budget_usual(b, job->share);
    const double end = stage_end(b, job, now);
    if (end == 0) return usual;
    double left_s = end - now;
    if (b->end == 0) return left_s < LEAST ? 0 : fmin(left_s, usual); /* first come, first served */
    const double part = job->part > 0 ? fmin(job->part, 1) : 1;
    /* Operations use up what is for fusions, and then what is for the model as a whole, rather than have no time. */
    if (part * left_s < LEAST && !job->fusion) left_s = b->end - now;
    if (part * left_s < LEAST && !job->fusion) left_s += b->replay_s;
    /* A sum lacks what has no figure: for one an operation may be as late as a replay. */
    if (left_s <= 0 && !job->fusion) return left_s + budget_replay_more(b) > 0 ? LEAST : 0;
    const double most = job->host ? SEARCH_SHARE_HOST : SEARCH_SHARE;
    return left_s <= 0 ? 0 : fmin(fmax(most * part * left_s, LEAST), usual);
}

bool budget_cuts(const budget *b, double share, double pass_s) { return b->end > 0 && pass_s < budget_usual(b, share); }

double budget_hold(const budget *b, double share, double pass_s, bool again, double now) {
    const bool heavy = share >= HOLD_WORTH;
    if (again) return !heavy || (b->end > 0 && b->end - now < HOLD_WHOLE) ? 0 : HOLD_WHOLE;
    const double most = heavy ? HOLD_WHOLE : HOLD_STILL;
    if (!budget_cuts(b, share, pass_s)) return most;
    return HOLD_SHARE * pass_s < HOLD_LEAST ? 0 : fmin(HOLD_SHARE * pass_s, most);
}

/* ---- later passes ---- */

void budget_lose(budget *b, double seconds) { b->lost_s = fmin(b->lost_s + seconds, LOST_MOST); }

double budget_later_end(budget *b, double first_s, bool host, double now) {
    const double most = host ? fmax(HOST_SECONDS - first_s, HOST_LATER) : INFINITY;
    if (b->end > 0) return b->end;
    if (b->later_end == 0) b->later_began = now;
    if (b->later_end == 0) b->later_end = b->exhaustive ? INFINITY : now + fmax(fmin(first_s, most), LATER_LEAST);
    return b->later_end + b->lost_s;
}

double budget_spare(double passes_s) { return fmin(SPARE_SHARE * passes_s, SPARE_MOST); }

static int by_share(const void *a, const void *b) {
    const budget_wish *x = a, *y = b;
    return (x->share < y->share) - (x->share > y->share);
}

double budget_afforded(budget_wish *all, size_t count, double left_s) {
    double least = 0;
    if (count > 0) qsort(all, count, sizeof *all, by_share);
    for (size_t k = 0; k < count; k++) {
        if (k > 0 && all[k].seconds > left_s) return least;
        left_s -= all[k].seconds;
        least = all[k].share;
    }
    return 0;
}

/* ---- the model as a whole ---- */

double budget_replay_more(const budget *b) { return b->end > 0 ? REPLAY_SHARE * b->whole_s : 0; }

static double replay_start(const budget *b) { return fmin(REPLAY_SHARE * b->whole_s, REPLAY_START); }

void budget_reserve(budget *b) {
    b->keeps = b->end > 0;
    b->replay_s = b->end > 0 ? REPLAY_SHARE * b->whole_s + replay_start(b) : 0;
    b->end -= b->replay_s;
}

void budget_reserve_for(budget *b, double first_s, double all_s, double now) {
    const double start_s = replay_start(b), usual_s = REPLAY_SHARE * b->whole_s + start_s;
    const double least_s = start_s + first_s, end = b->end + b->replay_s;
    const double wanted_s = fmax(least_s, fmin(start_s + all_s, REPLAY_MOST * b->whole_s));
    if (!b->keeps) return;
    b->replay_s = least_s > REPLAY_FIRST_MOST * b->whole_s || now + first_s > end + budget_replay_more(b)
                      ? 0
                      : fmax(usual_s, wanted_s);
    b->end = end - b->replay_s;
}

double budget_replay_end(const budget *b, double now) {
    return b->end > 0 ? b->end + b->replay_s : now + fmax(REPLAY_SHARE * (now - b->started), REPLAY_LEAST);
}
