/* Simulated nights: the same operations measured in two runs, with nothing changed but what is asked for. */
#ifndef TESTS_FAKES_NIGHTS_H
#define TESTS_FAKES_NIGHTS_H

#include "analyze/compare/drift.h"

#include <stdint.h>

typedef struct nights_model {
    int operations;
    double launch_noise; /* deviation of one launch within a run */
    int launches;        /* of which a report tells the median, and how well it is known */
    double between;      /* deviation of an operation's log ratio of two runs beyond that */
    double tails;        /* degrees of Student's t of what is between; 0: normal */
    double machine_runs; /* deviation of the machine's log ratio of two runs */
    double claimed_ci;   /* what the reports say instead of what is so; 0: they say what is so */
    /* What happens in the second run. */
    double machine;  /* all operations: 0.05 is 5 % slower */
    int slowed;      /* so many operations */
    double slowdown; /* by so much */
} nights_model;

/* One night; rows: room for model->operations, the slowed ones first. */
void nights_rows(const nights_model *model, uint64_t *random, drift_row *rows);

typedef struct nights_count {
    int nights;
    int false_slower, false_faster; /* nights in which an operation that did not change was said to be so */
    int found;                      /* nights in which all slowed operations were said to be SLOWER */
    int machine_slower, machine_faster;
    int heavy;                                   /* nights whose tails were found to be heavier than normal */
    double ambiguous, spread, limit, detectable; /* means */
} nights_count;

nights_count nights_run(const nights_model *model, const drift_options *options, int nights, uint64_t seed);

#endif
