/* An operation's tensors on a device, and plans that run on them: rotating copies for cold runs, canaries around every
 * buffer, poisoned outputs, checksummed inputs, and the check against the reference. */
#pragma once

#include "common/arena.h"
#include "scout/plugin.h"
#include "scout/terms/reason.h"
#include "scout/terms/regime.h"
#include "scout/timing/timing.h"

typedef struct bench_set bench_set;   /* the tensors of one operation */
typedef struct bench_plan bench_plan; /* a candidate's variant, prepared on them */

/* Copies of what the regime wants cold: enough that one rotation covers at least plateau_bytes, within the memory that
 * is free. NULL: why says. Owned: bench_set_free. */
typedef struct bench_given { /* a tensor whose content is known, in memory of the host; borrowed as long as the set */
    uint32_t tensor;
    const void *bytes; /* NULL: there is none */
} bench_given;
/* What is relative to |want| + spread in an element, and to what a projection adds up. */
typedef struct bench_tolerance {
    double element, projection;
} bench_tolerance;
bench_set *bench_set_new(const scout_device_api *api, scout_device *device, const scout_op *op, const regime *r,
                         double plateau_bytes, uint64_t seed, bench_tolerance tolerance, const bench_given *given,
                         scout_answer *answer, scout_why *why);
void bench_set_free(bench_set *s);
uint64_t bench_set_rotation_bytes(const bench_set *s); /* that one rotation covers, of all tensors that rotate */
uint32_t bench_set_copies(const bench_set *s);         /* of each tensor that rotates; 1: nothing does */
bool bench_set_is_cold(const bench_set *s);            /* a rotation empties the cache */
double bench_set_resident_bytes(const bench_set *s);   /* of one launch's bytes, those that do not rotate */
/* New random inputs, a new reference (made when it is needed), and packed weights are packed again. first_only: of
 * the copies that a check runs on, the others stay. */
scout_answer bench_set_refresh(bench_set *s, bool first_only, scout_why *why);

/* Prepares, allocates the workspace, packs (timed). Plans of one set run one after another, so that they share one
 * workspace; plans of one candidate whose packed weights are equal share these too. */
typedef struct bench_kept { /* what of a plan knows no memory, between two sets; plan NULL: none */
    scout_plan *plan;
    scout_plan_needs needs;
} bench_kept;
/* kept (may be NULL): is taken over instead of preparing. */
bench_plan *bench_plan_new(bench_set *s, const scout_candidate *candidate, const int64_t *values, bool graph,
                           bench_kept *kept, scout_answer *answer, scout_why *why);
bench_kept bench_plan_keep(bench_plan *p); /* frees the rest; the caller's, for the next set or its destroy */
void bench_plan_free(bench_plan *p);
timing_subject bench_plan_subject(bench_plan *p); /* valid as long as the plan */
/* Launches of a rotation; 1: any number is good, as on a host and where a rotation takes too long. What runs alone runs
 * whole ones. */
uint32_t bench_plan_whole(const bench_plan *p);
/* The next sequence of so many launches that takes turns with others: whole rotations, or a quarter of one at most,
 * which begins where the last one on this set ended. Borrowed until others take its place. */
scout_answer bench_plan_recorded(bench_plan *p, uint32_t launches, scout_sequence **out, scout_why *why);
/* The same, each launch behind the device's `forget`; idle: that alone. A graph, the caller's. */
scout_answer bench_plan_record_forgotten(bench_plan *p, scout_forget what, uint32_t launches, bool idle,
                                         scout_sequence **out, scout_why *why);
/* On a device that has done a launch when it returns: each of so many launches behind `forget` of its tensors, and of
 * others that follow as usual, by its clock. */
scout_answer bench_plan_time_forgotten(bench_plan *p, uint32_t pairs, double *behind_s, double *usual_s,
                                       scout_why *why);
double bench_plan_pack_s(const bench_plan *p);
const scout_plan_needs *bench_plan_needs(const bench_plan *p);
/* What one launch is made of, once it was verified; size 0: the device cannot tell. */
void bench_plan_made_of(bench_plan *p, scout_composition *out);
int bench_plan_describe(const bench_plan *p, char *json, size_t room);

/* Runs it once, alone, on poisoned outputs, and holds everything against the reference. ROW_OK, or ROW_WRONG (samples,
 * projection, canary, input_changed), ROW_UNSUPPORTED (precision), ROW_ERROR, …; `lost` where the device cannot be used
 * any more. */
typedef struct bench_verdict {
    row_status status;
    scout_why why;
    double worst, tolerance;
    bool lost;
} bench_verdict;
bench_verdict bench_plan_verify(bench_plan *p);

/* How a tensor is filled so that it means something: scales are positive, places lie inside of what they point into, a
 * weight with an activation behind it is small. What that needs goes into the seed. */
uint32_t bench_fill(const scout_tensor *t, uint64_t *seed);

/* The row that an answer stands for; an unknown code becomes the answer's own. */
row_status bench_status_of(scout_answer answer, scout_why *why);
