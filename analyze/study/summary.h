/* What follows from a study: sums, categories, and what to do first. Every format prints these figures, so
 * that all formats say the same. Proven gains, those over own kernels and potential ones are never added: what is only
 * potential (the distance to the ceiling less what is proven of it) stands by itself. Times are microseconds per run of
 * the model, shares are of the model's time. Texts and reports are the study's, which must live as long. */
#pragma once

#include "analyze/study/study.h"

/* Every operation comes out as one of these. */
typedef enum summary_outcome {
    SUMMARY_PROVEN,    /* something faster than a library was measured */
    SUMMARY_OWN,       /* something faster than a kernel of this project, where no library is */
    SUMMARY_OPEN,      /* far enough from its ceiling to be worth trying */
    SUMMARY_OPTIMAL,   /* at its ceiling, with all of its interval */
    SUMMARY_UNDECIDED, /* its interval is on both sides of what decides that */
    SUMMARY_LAUNCH,    /* bound by launching: nothing to gain in itself */
    SUMMARY_SMALL,     /* below its ceiling, but it pays for no kernel */
    SUMMARY_UNKNOWN,   /* measured, but its ceiling is not known, or not well enough */
    SUMMARY_MISSING,   /* no baseline: counted in the model's time as what it takes at least */
    SUMMARY_OUTSIDE,   /* in no time: it does nothing, or is only a part of another one */
    SUMMARY_OUTCOMES
} summary_outcome;

typedef struct summary_outcome_info {
    const char *name;  /* "proven": in files */
    const char *title; /* "faster one is proven": for people */
} summary_outcome_info;
extern const summary_outcome_info summary_outcomes[SUMMARY_OUTCOMES];
bool summary_to_do(summary_outcome outcome); /* something is to be done about it: proven over either, or worth trying */

/* A sum over operations. */
typedef struct summary_sum {
    size_t operations; /* distinct ones */
    int64_t occurrences;
    double baseline_us, best_us; /* of those that are missing, what they take at least */
    double ceiling_us;           /* where none is known, the baseline */
    double share;                /* of baseline_us */
    size_t measured;             /* of these, with a figure, and their own times: what people are told */
    double measured_us, measured_ceiling_us, measured_share;
    verdict_sum now, won, least; /* of the measured by the default, with what is proven, at the ceilings: how surely */
    double proven_us, proven_share;       /* over libraries */
    double own_us, own_share;             /* over kernels of this project */
    double potential_us, potential_share; /* only that: without what is proven of either */
    size_t borderline;
} summary_sum;

typedef struct summary_row {
    const study_report *report;
    summary_outcome outcome;
    size_t rank;             /* from 1 */
    double weight_us, share; /* count times baseline (0 where there is none) */
    double proven_share;
    double potential_us, potential_share; /* only that: without what is proven */
} summary_row;

typedef struct summary_category {
    const char *op; /* "gemm" */
    summary_sum sum;
    summary_sum optimal; /* of these, SUMMARY_OPTIMAL */
} summary_category;

/* Operations whose time is not in the model's, by why. */
typedef struct summary_missing {
    const char *status, *code, *text; /* text: of the first one */
    const study_report *first;
    size_t operations;
    int64_t occurrences;
} summary_missing;

typedef struct summary_fusions {
    const study_report *const *rows; /* those worth doing, the largest saving first; then borderline ones */
    size_t count;                    /* of rows */
    size_t all, worth, borderline, unknown;
    double saved_us; /* proven, of those that were selected (no two of them join the same operation) */
    double saved_share;
} summary_fusions;

/* What to type next: words that a shell takes as they are, and what it is for. */
typedef struct summary_next {
    const char *command, *why;
} summary_next;

/* Of one group: what may be compared. */
typedef struct summary_group {
    const study_group *group;
    summary_sum all; /* in the model's time */
    summary_sum outcomes[SUMMARY_OUTCOMES];
    double missing_us;                  /* of model_us, what those without a baseline take at least */
    double borderline_share;            /* of the rows in the model's time that have a verdict */
    const summary_category *categories; /* the largest share first */
    size_t category_count;
    const summary_row *rows; /* all operations, what to do first on top */
    size_t row_count;
    const summary_missing *missing; /* the most operations first */
    size_t missing_count;
    summary_fusions fusions;
    const summary_next *next;
    size_t next_count;
    size_t bad_rows;       /* operations of which some candidate failed */
    size_t said_otherwise; /* reports whose own approach is another one than by these thresholds */
} summary_group;

typedef struct summary {
    const study *study;
    const summary_group *groups;
    size_t group_count;
    size_t top;      /* rows that are printed where space is dear; 0: all */
    bool incomplete; /* exit code 1: skipped files, missing baselines, bad rows */
} summary;

/* What the shares of a group are of, in words; of what was measured in part it is not what the totals are of. */
const char *summary_whole(const summary_group *g);

/* summary_next.c: of a group whose rows are there. */
void summary_make_next(study *s, summary_group *to);
/* In the study's arena. false: st says why (memory). */
bool summary_make(study *s, size_t top, summary *m, status *st);
