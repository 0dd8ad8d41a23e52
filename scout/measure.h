/* One operation measured on one device, from its candidates to their rows: verify, settle, race, confirm, verify again.
 * Runs in a worker. */
#ifndef SCOUT_MEASURE_H
#define SCOUT_MEASURE_H

#include "common/json.h"
#include "scout/ceilings.h"
#include "scout/operation.h"
#include "scout/parts.h"
#include "scout/plugin.h"
#include "scout/plugins.h"
#include "scout/reason.h"
#include "scout/regime.h"

typedef struct measure_exclusion { /* a candidate (variant "": all of it) that must not be run, and the row it gets */
    const char *name, *variant;
    row_status status;
    scout_why why;
} measure_exclusion;

typedef struct measure_request {
    const operation *operation;
    regime regime;
    const ceilings *ceilings; /* NULL: none are known; no early exit, no probe */
    bool exhaustive;
    double budget_s;
    double timing_s;   /* at least so much of it for racing and confirming, whatever preparing took; 0: a part of it */
    double early_exit; /* fraction of the ceiling: 0.97 */
    uint64_t workspace_limit; /* 32 MiB */
    uint64_t seed;
    const char *only;    /* names of the candidates to run beside the baseline, commas between; NULL: all */
    const char *before;  /* what stands in the baseline's place (chosen_is_before), or NULL */
    parts_request parts; /* of a fusion: what is measured beside it, as the baseline */
    const measure_exclusion *exclusions;
    int exclusion_count;
    const char *variant; /* measure_qualify: only this one; NULL: all */
    uint32_t launches;   /* measure_qualify: this many, one after another, between a profiler's marks; 0: as it does */
} measure_request;

/* Told before every step that runs foreign code: who is at it, and by when it must be done. A step of nobody has NULL.
 */
typedef struct measure_watcher {
    void *context;
    void (*step)(void *context, const char *candidate, const char *variant, const char *what, double seconds);
} measure_watcher;

/* The measurement (docs/formats.md: `candidates`, `baseline`, `best`, times, `probe`, `rotation_bytes`, …): an object
 * for the caller, also when nothing could run; rows then say why. NULL only with SCOUT_LOST (the device is gone: the
 * caller starts again in another process) or where memory of the host ran out (SCOUT_NO_MEMORY). */
json_t *measure_operation(const scout_device_api *api, scout_device *device, const scout_identity *identity,
                          const measure_request *request, const measure_watcher *watcher, scout_answer *answer,
                          scout_why *why);

/* Prepares, runs and verifies one candidate's variants alone, without timing; for candidates of plugins, in a process
 * of their own. The array of rows of those that failed (empty: all is well); with `launches`, of all. */
json_t *measure_qualify(const scout_device_api *api, scout_device *device, const measure_request *request,
                        const char *candidate, const measure_watcher *watcher, scout_answer *answer, scout_why *why);

#endif
