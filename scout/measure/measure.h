/* One operation on one device, from its candidates to the figures of a pass. A measurement is opened once and measured
 * in passes: the first one prepares, verifies and races all candidates, each later one times those that are still of
 * interest on memory that is allocated anew. What the passes say together is the supervisor's matter (figures.h).
 * Runs in a worker. */
#pragma once

#include "common/json.h"
#include "scout/ceilings/ceilings.h"
#include "scout/device/plugins.h"
#include "scout/input/operation.h"
#include "scout/measure/parts.h"
#include "scout/plugin.h"
#include "scout/terms/reason.h"
#include "scout/terms/regime.h"

typedef struct measure_exclusion { /* a candidate (variant "": all of it) that must not be run, and the row it gets */
    const char *name, *variant;
    row_status status;
    scout_why why;
} measure_exclusion;

typedef struct measure_choice { /* a row of an earlier pass */
    const char *name, *variant;
} measure_choice;

typedef struct measure_request {
    const operation *operation;
    regime regime;
    const ceilings *ceilings; /* NULL: none are known; no early exit, no yardstick */
    bool exhaustive;
    double early_exit;        /* fraction of the ceiling: 0.97 */
    uint64_t workspace_limit; /* 32 MiB */
    const char *only;         /* names of the candidates to run beside the baseline, commas between; NULL: all */
    bool beside;              /* the fastest of each of these stays in, whatever the others take */
    const char *before;       /* what stands in the baseline's place (filter_is_before), or NULL */
    parts_request parts;      /* of a fusion: what is measured beside it, as the baseline */
    const measure_exclusion *exclusions;
    int exclusion_count;
    const char *variant; /* measure_qualify: only this one; NULL: all */
    uint32_t launches;   /* measure_qualify: this many, one after another, between a profiler's marks; 0: as it does */
} measure_request;

/* Told before every step that runs foreign code: what runs, and by when it must be done. A step of no candidate has
 * NULL. */
typedef struct measure_watcher {
    void *context;
    void (*step)(void *context, const char *candidate, const char *variant, const char *what, double seconds);
} measure_watcher;

typedef struct measure_pass {
    int number;                 /* from 1; the first takes part in no figure of a row that it has chosen among others */
    uint64_t seed;              /* of inputs and places in memory */
    double budget_s;            /* the first pass: for preparing and racing; what is not prepared by then is SKIPPED */
    bool cut;                   /* it would be more, but for the run's budget: others are to have a figure, too */
    double start_s;             /* beside it, of a fresh process: for what libraries load as they prepare first */
    double least_s;             /* of its blocks, however precise they are */
    bool samples;               /* each block is told */
    double hold_s;              /* so long the baseline may run alone until its clock holds; 0: that is not asked */
    const measure_choice *rows; /* later passes: what is timed, the baseline first */
    int row_count;
    double waited_s; /* before it began, for what was prepared ahead */
    bool fetch;      /* what fetching programs takes is asked for */
    void *spare;     /* ahead: memory of the device that launches may be noted on, and how much; NULL: none is */
    uint64_t spare_bytes;
} measure_pass;

struct measurement;

/* The request and what it borrows must outlive the measurement. NULL: no memory. */
struct measurement *measure_open(const scout_device_api *api, scout_device *device, const scout_identity *identity,
                                 const measure_request *request, const measure_watcher *watcher);
/* The pass (docs/formats.md: `candidates`, `baseline`, `probe`, …): an object for the caller, also when nothing could
 * run; rows then say why. NULL only with SCOUT_LOST (the device is gone: the caller starts again in another process)
 * or where memory of the host ran out (SCOUT_NO_MEMORY) or the device's clock says what is no time (SCOUT_FAILED). */
json_t *measure_run(struct measurement *m, const measure_pass *pass, scout_answer *answer, scout_why *why);
/* Gives back what no later pass needs of the last one; the next pass does that where it was not called. */
void measure_rest(struct measurement *m);
void measure_close(struct measurement *m);

/* On another thread than the one that measures, with a device of its own: lists what there is for the first pass and
 * makes the plans of all but the last resort. Runs nothing and allocates nothing on the device. False: it is of no
 * use but for measure_close. Else measure_take hands it to the thread that measures. */
bool measure_ahead(struct measurement *m, const measure_pass *pass);
void measure_take(struct measurement *m, scout_device *device, const measure_watcher *watcher);

/* Prepares, runs and verifies one candidate's variants alone, without timing: for a profiler, and for those that failed
 * (the array of their rows is empty where all is well; with `launches` it has all). */
json_t *measure_qualify(const scout_device_api *api, scout_device *device, const measure_request *request,
                        const char *candidate, const measure_watcher *watcher, scout_answer *answer, scout_why *why);
