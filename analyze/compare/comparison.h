/* Two runs beside each other: which operations are the same, what became of each, and what of the machine. The
 * statistics are drift.h's; this knows reports. Everything is owned by the comparison, which borrows from both studies
 * and ends before they do.
 *
 *     comparison c;
 *     if (!comparison_make(&c, &before, &after, &options, &st)) …;
 *     … c.rows[k] …
 *     comparison_close(&c);
 */
#pragma once

#include "analyze/compare/drift.h"
#include "analyze/study/study.h"

/* What became of approach and priority. Borderline rows keep theirs: the next run may well decide otherwise. */
typedef enum comparison_verdict {
    COMPARISON_KEPT,
    COMPARISON_WORSE,  /* it runs no more, a proven gain is gone, or it is further from its ceiling */
    COMPARISON_BETTER, /* a gain is proven, or it is nearer to its ceiling */
    COMPARISON_OTHER   /* changed, which is neither */
} comparison_verdict;
enum { COMPARISON_VERDICTS = 4, COMPARISON_STATES = 4 };
extern const char *const comparison_verdict_names[COMPARISON_VERDICTS]; /* "same", "worse", … */

/* Operations that one thing bounds, where they moved otherwise than the rest. */
typedef struct comparison_part {
    const char *bound; /* "compute", "memory", … */
    drift drift;
    drift_judgement machine;
} comparison_part;

/* One operation, or one fusion, of both runs. Deployment runs the best, so the state is that of the best times; the
 * baseline's stands beside it. */
typedef struct comparison_row {
    const study_report *before, *after;
    const comparison_part *part;    /* that it moved with; NULL: the machine */
    bool measured;                  /* by either; else there is nothing to compare */
    double change, baseline_change; /* after / before - 1; not-a-number: a figure is missing */
    drift_judgement best, baseline; /* net of the machine; the baseline of a fusion is its parts */
    double lost_us;                 /* per run, net of the machine: below 0 it is a gain; not-a-number as change */
    bool partial;                   /* of a model without all of its times: shares of that are not compared */
    bool chosen_otherwise;          /* the library's default before and another one after, or the other way round */
    const char *note;               /* what else there is to know; NULL */
    comparison_verdict verdict;
} comparison_row;

typedef struct comparison_difference {
    const char *what, *before, *after; /* "" where one of them does not say */
} comparison_difference;

/* What a kind of ceiling did. */
typedef struct comparison_ceiling {
    const char *bound, *precision;
    size_t operations;
    double change; /* of its times: after / before - 1 */
} comparison_ceiling;

/* What the ceilings say of a machine that moved. */
typedef enum comparison_ceilings {
    COMPARISON_CEILINGS_UNKNOWN, /* there are none */
    COMPARISON_CEILINGS_STORED,  /* the same figures in both: they were taken once, and tell nothing */
    COMPARISON_CEILINGS_ALIKE,   /* moved as the operations did */
    COMPARISON_CEILINGS_APART
} comparison_ceilings;

/* Operations, or fusions, of both runs. */
typedef struct comparison_list {
    comparison_row *rows; /* what is worst first: SLOWER, worse verdicts, FASTER, AMBIGUOUS, other verdicts, the rest */
    size_t row_count;
    const study_report **gone, **fresh; /* of one run alone */
    size_t gone_count, fresh_count;
    size_t measured, states[COMPARISON_STATES], verdicts[COMPARISON_VERDICTS];
} comparison_list;

typedef struct comparison_options {
    drift_options drift; /* its prior is chosen by the device */
    double margin;       /* that a winner wins by, of the studies' thresholds */
} comparison_options;

typedef struct comparison {
    guard guard;
    arena arena;
    const study *studies[2]; /* before, after */
    const study_group *before, *after;
    const char *folders[2]; /* UTF-8, whatever they are called */
    study_skipped *skipped; /* files of both that were left out; paths as folders */
    size_t skipped_count;
    comparison_options options;
    drift drift; /* of all operations that are in no part */
    drift_judgement machine;
    comparison_part *parts;
    size_t part_count;
    comparison_list operations;
    comparison_list fusions; /* which nothing is learned from, and which are in no sum */
    comparison_difference *differences;
    size_t difference_count;
    comparison_ceiling *ceilings;
    size_t ceiling_count;
    comparison_ceilings ceilings_say;
    double model_us[2],
        clock_mhz[2]; /* matched operations by their best; the median of the baselines. NaN: not known */
} comparison;

/* false: st says why: regimes or methods differ, nothing is in both, no memory. */
bool comparison_make(comparison *c, const study *before, const study *after, const comparison_options *options,
                     status *st);
void comparison_close(comparison *c);

bool comparison_has_any(const comparison_list *list); /* in either run */

/* Whether the row is one that a reader wants to see: everything but SAME with its verdict kept. */
bool comparison_is_news(const comparison_row *row);

/* What the machine or a part of it did, in words: "as fast as before", "slower", … */
const char *comparison_machine_text(const drift *d, drift_state state);
const char *comparison_ceilings_text(comparison_ceilings say); /* "" where there is nothing to say */

/* Of the part that an operation moved with. */
const drift *comparison_drift(const comparison *c, const comparison_row *row);

/* Steps of comparison_make, each in a file of its own. */
void comparison_learn(comparison *c, const drift_row *rows, size_t family); /* the machine and its parts */
void comparison_match(comparison *c);                                       /* both lists: rows, gone, fresh */
void comparison_differ(comparison *c);                                      /* differences */
void comparison_weigh(comparison *c);                                       /* ceilings, against the machine */
comparison_verdict comparison_verdict_of(const comparison_row *row);
