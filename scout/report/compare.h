/* How a comparison came out: before (the measurement's baseline), after (the best of what was asked for), and whether
 * to keep it. Pure; the ratio is that of neighbouring blocks, as everywhere. */
#pragma once

#include "scout/report/report.h"

typedef enum compare_decision {
    COMPARE_NONE, /* what comes after does not do this operation */
    COMPARE_UNDECIDED,
    COMPARE_REVERT,
    COMPARE_KEEP
} compare_decision;
extern const char *const compare_decision_names[]; /* "NONE", … */

/* Rows and texts are borrowed from the measurement. */
typedef struct compare {
    compare_decision decision;
    const json_t *before, *after;                    /* rows; NULL: there is none */
    double before_us, before_ci, after_us, after_ci; /* not-a-number where it has no time that counts */
    double ratio, ratio_ci;                          /* after over before; not-a-number: not known */
    char text[320];                                  /* why, for a person */
} compare;

void compare_read(const report_input *in, const report_figures *f, compare *out);
json_t *compare_json(const compare *c, json_builder *b); /* the caller's */
/* Both at once, as the report's member. */
void compare_put(const report_input *in, const report_figures *f, json_t *report, json_builder *b);
