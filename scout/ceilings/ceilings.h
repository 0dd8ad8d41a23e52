/* What a device can do at best, measured on that very device: peak per precision, bandwidth over working-set size and
 * read fraction, special functions, launch overhead. One `ceilings` per device instance and regime (load and launch;
 * cache states share it), stored as JSON (docs/formats.md). */
#pragma once

#include "common/json.h"
#include "scout/plugin.h"
#include "scout/terms/regime.h"
#include "scout/timing/timing.h"

enum { CEILINGS_MAX_PEAKS = 16, CEILINGS_MAX_BANDWIDTHS = 256, CEILINGS_MAX_SWEEP = 64 };

typedef struct ceilings_peak {
    char precision[16]; /* fp32, tf32, fp16, bf16, fp8, int8 */
    double tflops;
    int64_t shape[3]; /* that reached it; all 0 where `how` is not a product */
    char how[64];     /* "cublaslt algo=3", "registers" */
    char layout[4];
    double clock_mhz, power_w, rel_ci95, datasheet;
    int32_t tried;  /* shapes looked at */
    double seconds; /* that the search took */
    bool disturbed; /* confirming disagrees with what was seen before, or with itself: to be measured again */
} ceilings_peak;

typedef struct ceilings_bandwidth {
    uint64_t bytes;       /* read plus written by one launch */
    double read_fraction; /* 1: only read; 0.5: copy; 0: only written */
    bool resident;        /* hot: the same bytes again; cold: bytes that no cache can hold */
    double tbps;          /* net of the launch floor: bytes / (time - launch_s) */
    double rel_ci95;
} ceilings_bandwidth;

typedef struct ceilings_point { /* of a K sweep */
    int64_t shape[3];
    double tflops, rel_ci95, clock_mhz;
} ceilings_point;

typedef struct ceilings {
    char instance[640]; /* device_instance, as long as IDENTITY_INSTANCE_ROOM allows */
    regime_load load;
    regime_launch launch;
    char taken[32];       /* when, UTC: 2026-11-21T15:07:52Z */
    double launch_s;      /* one launch that does nothing, back to back */
    double special_per_s; /* special functions (exp) per second; 0: not measured */
    double special_clock_mhz;
    double plateau_bytes; /* rotating over at least so many bytes is cold: the bandwidth has stopped falling */
    double read_tbps, copy_tbps, write_tbps; /* largest sets, cold */
    double datasheet_tbps;
    double clock_mhz, power_w;
    double
        clock_fall; /* by how much a capped clock lies below what stands, over whole seconds; 0: not known, or none */
    int peak_count, bandwidth_count;
    ceilings_peak peaks[CEILINGS_MAX_PEAKS];
    ceilings_bandwidth bandwidths[CEILINGS_MAX_BANDWIDTHS];
    int sweep_count;
    char sweep_precision[16];
    ceilings_point sweep[CEILINGS_MAX_SWEEP];
} ceilings;

json_t *ceilings_to_json(const ceilings *c, json_builder *b);
json_t *ceilings_sweep_to_json(const ceilings *c, json_builder *b);     /* its part "sweep" */
bool ceilings_from_json(const json_t *root, ceilings *out, status *st); /* hostile files: every number is checked */
const ceilings_peak *ceilings_find_peak(const ceilings *c, const char *precision); /* NULL: not measured */

/* What is attainable with so many bytes at such a read fraction, in TB/s: between the table's sizes by the logarithm of
 * the size, between its mixes what running the two one after another gives. */
double ceilings_bandwidth_at(const ceilings *c, double bytes, double read_fraction, bool resident);
/* The best rate of any size at that mix; between two mixes the better one's: nothing is faster. 0: not known. */
double ceilings_plateau(const ceilings *c, double read_fraction, bool resident);
/* Raises what cannot be: a size that is slower than a smaller one (of resident ones up to the fastest, for then the
 * cache ends), a mix between reading, copying and writing slower than these one after another, a resident set slower
 * than a cold one. */
void ceilings_close(ceilings *c);

/* What a yardstick reached beside an operation. */
typedef struct ceilings_seen {
    const char *bound; /* "compute", "memory", "special" */
    const char *precision;
    double rate;  /* TFLOP/s, TB/s or special functions per second */
    bool product; /* compute: a product of the peak's shape, not multiply-adds in registers */
    double bytes, read_fraction;
    bool resident;     /* memory: these bytes */
    double over_bytes; /* of bytes that are not: so many were walked over */
} ceilings_seen;
/* Whether that is more than `c` holds by over 2 %: then it takes its place. Of bytes from memory, only if the caches
 * could not keep them: an operation that rotates over little has a yardstick that does so as well. */
bool ceilings_raise(ceilings *c, const ceilings_seen *seen);
extern const char *const ceilings_in_registers; /* how a peak was reached that is no product's */

/* The ceiling time of an operation and what sets it. The largest of its parts, plus the launch floor. */
typedef struct ceilings_time {
    double seconds; /* attainable at this size; not-a-number where the peak of its precision is not known and it needs
                       more than 8 flops for each of its bytes */
    double physical_s; /* the physical bound: bytes at their plateau's rate; not above `seconds` */
    double rel_ci95;   /* of `seconds`, as far as what sets it has an interval: peaks and bandwidths have, the floor has
                          none */
    double compute_s, memory_s, special_s, launch_s;
    double compute_ci, memory_ci, special_ci;
    double plateau_s;                        /* memory_s at the plateau's rate */
    double moved_bytes, moved_read_fraction; /* what memory_s is the time of: all bytes, or those that are cold */
    bool moved_resident;                     /* at the cache's bandwidth */
    const char *bound; /* "compute", "memory", "special", "launch" (the floor is half of it or more) */
} ceilings_time;
/* resident_bytes: of bytes_read + bytes_written, how many the regime leaves in the cache (activations in `model`). */
ceilings_time ceilings_time_of(const ceilings *c, const char *precision, double flops, double bytes_read,
                               double bytes_written, double resident_bytes, double specials);

/* The same where the part that is called `bound` takes so long instead: what a probe saw beside the operation. A name
 * that is none of the three changes nothing. */
ceilings_time ceilings_time_beside(ceilings_time t, const char *bound, double seconds, double rel_ci95);

/* The same at another clock than the peak's, and than that of the special functions: what computes goes with it.
 * clock_mhz 0, or a peak of no known clock: nothing changes. */
ceilings_time ceilings_time_at(ceilings_time t, const ceilings *c, const char *precision, double clock_mhz);

/* The type that a precision multiplies, as a device's arithmetic() wants it; SCOUT_NONE where it has no such peak. */
uint32_t ceilings_type_of(const char *precision);

/* Measuring, in a worker. What is in `c` already (a peak of that precision that was not disturbed, the bandwidth table)
 * is not measured again unless `again`. `say` is told about progress ("fp16: shape 120 of 380, best 671.2 TFLOP/s"). */
typedef struct ceilings_request {
    const char *precisions[CEILINGS_MAX_PEAKS]; /* whose peaks are wanted; ends with NULL */
    bool bandwidth;
    bool again;
    bool audit; /* --exhaustive: also time 500 random shapes and say how the search compares with the best of them */
    const char *sweep_precision; /* K sweep: M = N = sweep_m, sweep_n, K from 65,536 to 262,144; NULL: none */
    int64_t sweep_m, sweep_n;
    double budget_s; /* per precision; bandwidth gets as much, on a host twice */
    /* Told when a part is done ("bandwidth", a precision), with all that is known by then; NULL: not needed. */
    void (*part)(void *part_context, const ceilings *c, const char *name);
    void *part_context;
    double within_s; /* for all parts together; 0: each has its budget, and they take what they take */
    const scout_identity
        *identity; /* units and cache of the device, for the search and the datasheet; NULL: not known */
} ceilings_request;
typedef void ceilings_say(void *context, const char *text);
/* `c` keeps its `instance`; load, launch and taken are set. `audit` (an object of the caller, or NULL) gets a member
 * per precision: random_shapes, best_random_shape, best_random_tflops, found_shape, found_tflops, ratio, rel_ci95,
 * seconds. A precision that nothing here computes is left out and said; SCOUT_LOST ends everything. */
scout_answer ceilings_measure(const scout_device_api *api, scout_device *device, const timing_clock *clock,
                              const regime *r, const ceilings_request *request, ceilings_say *say, void *say_context,
                              ceilings *c, json_builder *b, json_t *audit, scout_why *why);
