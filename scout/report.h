/* The report of one operation (docs/formats.md): what was measured, its ceiling, and, once the model's time is known,
 * its verdict. The same measurement gives the same report, whether it was just made, cached, or read from a report. */
#ifndef SCOUT_REPORT_H
#define SCOUT_REPORT_H

#include "common/verdict.h"
#include "scout/ceilings.h"
#include "scout/operation.h"
#include "scout/reason.h"
#include "scout/regime.h"
#include "scout/supervisor.h"

/* What else decides how an operation is measured; told in the report, and part of what makes a report reusable. */
typedef struct report_search {
    bool exhaustive;
    const char *candidate; /* NULL: all */
    double early_exit;
    uint64_t workspace_limit;
} report_search;

typedef struct report_input {
    const operation *operation;
    const char *key; /* operation_key */
    const supervisor_device *device;
    const regime *regime;
    const report_search *search;
    const json_t *measurement; /* borrowed; NULL: there is none, and `status` and `why` say why */
    row_status status;
    const char *code, *text;
    const ceilings *ceilings; /* NULL: not known */
    bool sweep;               /* the K sweep of this product was asked for */
    double model_us;          /* negative: not known yet, the report goes without its verdict */
    double model_ci;          /* relative half width of it */
} report_input;

/* What everybody wants to know of a measurement; texts and rows are borrowed from it. */
typedef struct report_figures {
    row_status status; /* of the baseline; of the whole where there is none */
    const char *code, *text;
    const char *baseline, *best, *family;                               /* candidates' names; NULL: none */
    const json_t *baseline_row, *best_row;                              /* NULL where it is not OK */
    double baseline_us, baseline_ci, best_us, best_ci, ratio, ratio_ci; /* not-a-number where there is none */
    double rival_ratio, rival_ratio_ci; /* of the one that came nearest to the best, or to beating the baseline */
    const char *rival_family;
    const char *precision, *bound;
    const ceilings_peak *peak; /* NULL: not known */
    double flops, bytes_read, bytes_written, ceiling_us, ceiling_ci, efficiency;
    double stored_ceiling_us; /* by the ceilings, where a probe took their place; else not-a-number */
    double estimate_us;       /* at least, also where nothing could be measured; not-a-number: not known */
    bool above_ceiling;       /* by more than all intervals */
    int bad_rows;             /* WRONG, UNSTABLE, TIMEOUT, CRASHED, ERROR */
    verdict verdict;
} report_figures;
/* What needs no measuring is no failure when it has none, and takes no time. */
bool report_is_excused(const report_figures *f);
void report_read(const report_input *in, report_figures *out);

/* Whether the ceilings hold the K sweep that was asked for, and not that of another product. */
bool report_has_sweep(const report_input *in);

/* The caller's. */
json_t *report_build(const report_input *in, json_builder *b);

/* Whether a report that was read may stand for a new measurement. */
bool report_is_of(const json_t *report, const report_input *in);
/* Whether a measurement need not be made again: by the run that goes on where another one was stopped, or (`later`) by
 * any run that finds it in the cache, which would rather try again than serve a failure. */
bool report_may_serve(const json_t *measurement, bool later);

#endif
