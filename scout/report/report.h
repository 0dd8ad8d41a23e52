/* The report of one operation (docs/formats.md): what was measured, its ceiling, and, once the model's time is known,
 * its verdict. The same measurement gives the same report, whether it was just made, cached, or read from a report. */
#pragma once

#include "common/verdict.h"
#include "scout/ceilings/ceilings.h"
#include "scout/fusion/fusion.h"
#include "scout/input/operation.h"
#include "scout/terms/reason.h"
#include "scout/terms/regime.h"
#include "scout/worker/supervisor.h"

/* What else decides how an operation is measured; told in the report, and part of what makes a report reusable. */
typedef struct report_search {
    bool exhaustive;
    const char *candidate; /* those that were asked for, commas between; NULL: all */
    double early_exit;
    uint64_t workspace_limit;
    const char *before; /* of a comparison, what stands in the library's place; NULL: its default */
    bool compare;       /* a comparison: report_build adds how it came out */
} report_search;

typedef struct report_fusion { /* what a report of a fusion says beside what that of an operation does */
    const fusion *of;          /* NULL: it is an operation */
    double sum_us, sum_ci;     /* FUSION_SUM: what the parts take by themselves; not-a-number: not known */
    int sum_kernels;           /* -1: not known */
    const char *code, *text;   /* why it is not known */
} report_fusion;

typedef struct report_input {
    const operation *operation;
    report_fusion fusion;
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

/* A fusion in figures; not-a-number, -1 and NULL: not known. */
typedef struct report_fused {
    double parts_us, fused_us, ratio, ratio_ci; /* ratio: fused over parts; one pass alone: without an interval */
    double fetch_us;                            /* of what does all at once; not-a-number: not known */
    int kernels_parts, kernels_fused;
    const char *name, *variant; /* of what does all at once, the fastest */
    const char *worth;          /* yes, no, borderline */
    double saved_us;            /* per run of the model, where it is proven; else 0 */
    const char *code, *text;    /* why there is no comparison */
} report_fused;

/* The figures of a measurement; texts and rows are borrowed from it. */
typedef struct report_figures {
    row_status status; /* of the baseline; of the whole where there is none */
    const char *code, *text;
    const char *baseline, *best, *family;                               /* candidates' names; NULL: none */
    const json_t *baseline_row, *best_row;                              /* NULL where it is not OK */
    double baseline_us, baseline_ci, best_us, best_ci, ratio, ratio_ci; /* not-a-number where it is not known */
    double baseline_fetch_us, best_fetch_us;                            /* report_fetch_us */
    double proven_us;                   /* with what is proven: the best's time, or the baseline's */
    bool own;                           /* the baseline is a kernel of this project, for no library has one */
    bool wide;                          /* the baseline's or the best's interval is beyond the target, or it drifts */
    double rival_ratio, rival_ratio_ci; /* of the one that came nearest to the best, or to beating the baseline */
    const char *rival_family;
    const char *precision, *bound;
    const ceilings_peak *peak; /* NULL: not known */
    double flops, bytes_read, bytes_written, ceiling_us, ceiling_ci, launch_us, efficiency;
    const char *
        ceiling_from; /* stored (the ceilings'), clock (at the operation's own clock), probe (in neighbouring blocks) */
    double physical_us;       /* the physical bound, not above the ceiling; not-a-number: not known */
    double stored_ceiling_us; /* by the ceilings alone, where a probe had a say; else not-a-number */
    double estimate_us;       /* at least, also where nothing could be measured; not-a-number: not known */
    bool above_ceiling;       /* by more than all intervals */
    report_fused fused;       /* of a fusion */
    int bad_rows;             /* WRONG, TIMEOUT, CRASHED, ERROR */
    verdict verdict;
} report_figures;
void report_read(const report_input *in, report_figures *out);
/* What fetching a row's program takes more in a model than alone; not-a-number: not known. */
double report_fetch_us(const json_t *row);

/* report_fusion.c: the figures of a fusion from a measurement whose own are read, what its verdict is spoken on, and
 * the member `fusion` of its report. */
void report_fusion_read(const report_input *in, report_figures *out);
verdict_fused report_fusion_facts(const report_input *in, const report_figures *f);
json_t *report_fusion_json(const report_input *in, const report_figures *f, json_builder *b);

/* Whether the ceilings hold the K sweep that was asked for, and not that of another product. */
bool report_has_sweep(const report_input *in);

/* report_write.c: the caller's. */
json_t *report_build(const report_input *in, json_builder *b);

/* Whether a report that was read is of this operation, device class, regime and method; and whether it may stand for a
 * new measurement, which looks among the same candidates in the same way. */
bool report_is_like(const json_t *report, const report_input *in);
bool report_is_of(const json_t *report, const report_input *in);
/* Whether a measurement need not be made again: by the run that goes on where another one was stopped, or (`later`) by
 * any run that finds it in the cache, which would rather try again than serve a failure. */
bool report_may_serve(const json_t *measurement, bool later);
