/* The formats of a comparison, one line each: adding one is a file with a writer and a line in analyze/formats.c. */
#pragma once

#include "analyze/compare/comparison.h"

#include <stdio.h>

/* What --fail-on names. */
typedef struct comparison_fail {
    bool slower, verdict;
} comparison_fail;
/* Whether it happened: exit code 5. The first is of the machine or a part of it, the other of one operation. */
bool comparison_fails_machine(drift_judgement machine, comparison_fail fail);
bool comparison_fails(const comparison_row *row, comparison_fail fail);
/* Neither run has a figure of what has something to measure. */
bool comparison_without_figure(const comparison_row *row);

typedef struct comparison_shown {
    size_t top; /* rows where space is dear; 0: all */
    comparison_fail fail;
} comparison_shown;

/* Writes all of it; the caller, which opened `out`, checks it for failures. false: st says what else went wrong. */
typedef bool comparison_write(const comparison *c, const comparison_shown *shown, FILE *out, status *st);

typedef struct comparison_format {
    const char *name; /* of --format */
    const char *file; /* in the folder of -o */
    comparison_write *write;
} comparison_format;

extern const comparison_format comparison_formats[]; /* ends with one that has no name */

/* To a file that appears whole or not at all; path NULL: to standard output. */
bool comparison_formats_put(const comparison_format *f, const comparison *c, const comparison_shown *shown,
                            const char *path, status *st);

comparison_write comparison_text, comparison_markdown, comparison_json, comparison_junit, comparison_csv;

size_t comparison_failed_machines(const comparison *c, comparison_fail fail);

/* Of those that are compared: which --fail-on names, and which of the others have a figure in one run alone. */
typedef struct comparison_tally {
    size_t failed, missing;
} comparison_tally;
comparison_tally comparison_tally_of(const comparison_list *list, comparison_fail fail);

/* Figures as all of them print them. */
typedef struct comparison_figure {
    char s[32];
} comparison_figure;
comparison_figure comparison_percent(double change);         /* "+3.1 %", "-0.2 %", "-" where it is not known */
comparison_figure comparison_span(double us);                /* "+18.9 us", "-1.20 ms" */
comparison_figure comparison_net(const comparison_row *row); /* "+3.1 ± 0.6 %": net of the machine, and 95 % */
/* "A slowdown of 3.1 % of one operation is found in 99 comparisons of 100" */
const char *comparison_found(const comparison *c, char *text, size_t room);
/* "verdict worse: approach NONE to CUSTOM_KERNEL, priority NONE to LOW" */
const char *comparison_verdict_text(const comparison_row *row, char *text, size_t room);
