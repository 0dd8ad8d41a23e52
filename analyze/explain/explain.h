/* All that is known of one operation and why its verdict is what it is, for a terminal. Figures are the report's; what
 * the device can do is from the run.json beside it. */
#pragma once

#include "analyze/study/study.h"
#include "common/amount.h"
#include "common/json.h"
#include "common/plain.h"
#include "common/rows_table.h"
#include "common/terminal.h"

typedef struct explain {
    terminal to;
    arena *arena; /* its guard takes what fails */
    const study_group *group;
    const study_report *r;
    const verdict_thresholds *thresholds;
    const json_t *report; /* the whole of it */
    const json_t *run;    /* NULL: there is none */
    const json_t *plan;   /* likewise */
    size_t most;          /* layers that are listed, and candidates of those without a time; 0: all */
} explain;

void explain_write(const explain *e);

/* ---- its parts, each in a file of its own ---- */

void explain_ceiling(const explain *e);    /* what was taken for its ceiling, what bounds it, how far the others are */
void explain_candidates(const explain *e); /* which ran, how fast, and why one was chosen */
void explain_verdict(const explain *e);    /* the rule that decided, those before it, and every threshold */
void explain_changes(const explain *e);    /* what would make it another one */

/* ---- shared by them ---- */

void explain_title(const explain *e, const char *text);
/* Indented by two, over as many lines as it needs; `first` stands before the first word. */
void explain_say(const explain *e, const char *first, const char *text);
__attribute__((format(printf, 2, 3))) void explain_tell(const explain *e, const char *format, ...); /* "- …" */

const char *explain_points(const explain *e, verdict_figure f);          /* "88.2 ± 0.5 %" */
const char *explain_unit(const explain *e, double x, const char *unit);  /* "4.302 TB/s" */
const char *explain_time(const explain *e, amount_unit unit, double us); /* "0.726 ms" */
const char *explain_rate(const explain *e, double us);                   /* what that time is in TFLOP/s, or TB/s */
const char *explain_shape_of(const explain *e, const json_t *shape);     /* "8192x8192x16384" */
