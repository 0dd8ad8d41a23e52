/* What the parts of measuring share: measure.c is the frame, measure_rows.c what takes part, measure_pass.c one pass,
 * measure_probe.c the yardstick beside it, measure_json.c the result. */
#pragma once

#include "scout/input/weights.h"
#include "scout/measure/bench_internal.h"
#include "scout/measure/device_lanes.h"
#include "scout/measure/measure.h"
#include "scout/terms/variants.h"

enum { MEASURE_ROWS = 600 };

typedef struct measurement measurement;

typedef struct measure_row {
    measurement *owner;
    const scout_candidate *candidate;
    const char *plugin;
    uint64_t plugin_hash;
    char variant[VARIANTS_TEXT];
    int64_t values[SCOUT_MAX_PARAMETERS];
    bool first; /* of its candidate */
    row_status status;
    scout_why why;    /* of every status but OK */
    bench_plan *plan; /* owned, during a pass; NULL: not prepared, or done with */
    bench_kept kept;  /* owned, between passes */
    bool decided;     /* excluded, skipped, failed: it takes no part any more */
    bool chosen;      /* in this pass */
    bool timed;       /* in this pass: `lane` has its figures */
    lanes_lane lane;
    double worst, tolerance;
    bool compared;
    double launch_s; /* roughly, for how long to wait; 0: not known */
    double fetch_s;  /* measure_fetch.c; not a number: this pass does not tell it */
    bool fetched;    /* a pass has told it */
    double pack_s;
    scout_plan_needs needs;
    char *config;              /* JSON text, owned by the arena */
    scout_composition made_of; /* size 0: not known */
} measure_row;

typedef enum measure_probe_kind {
    MEASURE_PROBE_PRODUCT, /* a GEMM of the peak's shape */
    MEASURE_PROBE_STREAM,  /* reading and writing the operation's bytes */
    MEASURE_PROBE_COUNTED  /* multiply-adds in registers, or special functions: where no product set the ceiling */
} measure_probe_kind;

/* What the time of a pass goes to, in this order; some of it several times. */
typedef enum measure_phase {
    MEASURE_WAITING,   /* for another thread that prepares it */
    MEASURE_LISTING,   /* what there is, with which variants: libraries are asked */
    MEASURE_FILLING,   /* tensors, and what the weights are */
    MEASURE_PREPARING, /* plans, packing, the first check */
    MEASURE_TIMING,
    MEASURE_CHECKING, /* once more, at the end */
    MEASURE_PHASES
} measure_phase;

typedef struct measure_probe {
    char precision[16];
    measure_probe_kind kind;
    int64_t shape[3];
    uint32_t type;                /* counted: of its arithmetic; SCOUT_NONE: special functions */
    uint64_t done;                /* counted: of one launch */
    double flops, bytes;          /* of one launch: multiply-adds and special functions are flops */
    bool resident;                /* the same bytes again */
    double read_fraction, stored; /* stored: TFLOP/s, TB/s or special functions per second in the ceilings */
    scout_op op;
    bench_set *set; /* owned, as all that follows */
    bench_plan *plan;
    measurement *owner;
    void *read, *written;
    uint64_t read_bytes, written_bytes;
    uint32_t copies, turn; /* turn: the next copy, where launches are not captured */
    scout_sequence *sequence;
    uint32_t sequence_launches;
    double launch_s;
    bool ready;
    lanes_lane lane;
} measure_probe;

struct measurement {
    const scout_device_api *api;
    scout_device *device;
    const scout_identity *identity;
    const measure_request *request;
    const measure_watcher *watcher;
    const char *qualify; /* the one candidate that is looked at; NULL: all */
    measure_pass pass;   /* that is under way */
    guard guard;
    arena arena;
    scout_op op;
    bool opened, built;
    bool ahead;           /* another thread than the one that measures is at it */
    parts_layout *layout; /* of a fusion; NULL: it is none */
    const scout_candidate *parts;
    bench_tolerance tolerance;
    double specials;
    weights_content weights;
    bench_set *set; /* owned, during a pass */
    measure_row *rows;
    int row_count, left_out; /* left_out: variants beyond the room for rows */
    int baseline;            /* its row; -1: none is OK */
    ceilings_time ceiling;   /* seconds not-a-number: not known */
    device_lanes on;
    timing_clock clock;        /* of it */
    scout_telemetry telemetry; /* at the end of the timing */
    double started_s;
    double spent_s[MEASURE_PHASES], spent_until_s; /* until: all of them together */
    uint64_t rotation_bytes;
    uint32_t copies;
    double resident_bytes;
    measure_probe probe;
    double patience_s;   /* for one launch of whatever speed */
    double promised_s;   /* on the watcher's clock: what was told covers so long */
    const void *at_it;   /* whose step was told last */
    double made_s;       /* what a weight with a pattern took */
    double refresh_s;    /* what new inputs took the last time */
    double check_s;      /* the same of the checks at the end of a pass */
    scout_answer answer; /* SCOUT_LOST or SCOUT_NO_MEMORY: it ends here */
    scout_why why;
};

/* Tells the watcher what runs next and how long that may take; not again where what was told still holds. */
void measure_tell(measurement *m, const void *row, const char *candidate, const char *variant, const char *what,
                  double seconds);
void measure_tell_row(measure_row *row, const char *what, double seconds);
double measure_elapsed(const measurement *m);
void measure_spend(measurement *m, measure_phase on); /* what has passed since the last call went to this */
void measure_stop(measurement *m, scout_answer answer, const scout_why *why); /* the measurement ends here */
bool measure_stopped(const measurement *m);

/* measure_pass.c: everything between the tensors and the figures; what it finds is in the rows. */
void measure_pass_run(measurement *m);
/* Ahead of it: plans, which the rows keep. */
void measure_pass_prepare(measurement *m);
timing_subject measure_pass_subject(measure_row *row); /* its plan, which says what it is before it runs */

void measure_fetch(measurement *m); /* what fetching a program takes, where the device can tell: into the rows */

json_t *measure_json_row(const measurement *m, const measure_row *row, json_builder *b);
json_t *measure_json_result(const measurement *m);

/* Whether a candidate is one whose first variant can be the baseline. */
bool measure_rows_is_baseline(const measurement *m, const scout_candidate *c);
/* Rows of all candidates and variants, the baseline first; some are decided already. */
void measure_rows_list(measurement *m);
/* Whether preparing a first variant is known to take longer than `most_s` in this process; and what one took. */
bool measure_rows_dear(const scout_candidate *c, double most_s);
void measure_rows_took(const scout_candidate *c, double seconds);
/* Makes its plan; `verify`: and holds it against the reference. False: the device was lost. `row` is decided where it
 * failed. */
bool measure_rows_prepare(measure_row *row, bool verify);
/* Makes its plan ahead of the pass, without tensors. What fails for want of anything but the library's ability is left
 * undecided. False: the device was lost. */
bool measure_rows_prepare_ahead(measure_row *row);
/* Fills row->status of what an answer says. */
void measure_rows_decide(measure_row *row, scout_answer answer, const scout_why *why);
void measure_rows_skip(measure_row *row, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes the yardstick ready where the operation's bound has one and memory allows; nothing is wrong where not. */
void measure_probe_open(measurement *m);
timing_subject measure_probe_subject(measure_probe *p);
void measure_probe_close(measure_probe *p);
json_t *measure_probe_json(const measurement *m, json_builder *b);
