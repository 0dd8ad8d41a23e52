/* What the parts of libscout_run share. From the ground up: lanes (what one launch at a time has), operations with
 * their ways (what runs them), launches, calls (from a caller's tensors to an operation). */
#pragma once

#include "common/arena.h"
#include "dispatch/scout_dispatch.h"
#include "runtime/scout_run.h"
#include "scout/input/operation.h"
#include "scout/plugin.h"
#include "scout/terms/variants.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    RUNTIME_LANES = 128,  /* launches at once, and streams: each has a lane */
    RUNTIME_TENSORS = 12, /* of a call */
    RUNTIME_SETTINGS = 12,
    RUNTIME_LINE = 64
};

/* ---- lanes: runtime_lanes.c ---- */

typedef enum runtime_why {
    RUNTIME_LISTED,
    RUNTIME_UNLISTED,
    RUNTIME_REFUSED,
    RUNTIME_UNPACKED,
    RUNTIME_WHYS
} runtime_why;

/* A launch has a lane to itself while it is enqueued. A lane belongs to one stream for good: what waits there in order
 * shares its workspace. Written under the run's lock, or by the launch that has it. */
typedef struct runtime_lane {
    _Alignas(RUNTIME_LINE) atomic_int busy;
    void *stream;
    void *workspace;
    uint64_t workspace_bytes;
    _Atomic(uint64_t) counts[RUNTIME_WHYS];
} runtime_lane;

/* ---- operations: runtime_op.c ---- */

/* A candidate's variant, prepared once for each lane that launches it. */
typedef struct runtime_way {
    const scout_op *op; /* that it is prepared for */
    bool there;         /* else nothing else of it is looked at */
    const scout_candidate *candidate;
    char variant[VARIANTS_TEXT];
    bool exhaustive; /* it is among those that are only looked at so */
    scout_plan_needs needs;
    scout_plan *spare; /* made to see that it can be: for the next lane */
    _Atomic(scout_plan *) plans[RUNTIME_LANES];
} runtime_way;

struct scout_run_op {
    scout_run *run;
    scout_run_op *next;
    arena arena; /* of `op` */
    const operation *operation;
    scout_op op;
    const char *key;          /* of the list; the table's one and what a caller's tensors tell beside it */
    runtime_why why;          /* of `chosen` */
    char note[400];           /* why it is the default; "": it is the table's choice */
    runtime_way chosen;       /* what runs on a packed weight, and on a plain one if it packs none */
    runtime_way plain;        /* the default in its place, on a plain one; made when it is first wanted */
    _Atomic(int) plain_state; /* 0: not asked yet; 1: there is one; 2: there is none */
    scout_op plain_op;        /* as `op`, but that its weight is any tensor */
    scout_tensor *plain_tensors;
    double expected_us, default_us;
};

struct scout_run {
    const scout_device_api *api;
    scout_device *device;
    int32_t ordinal;
    scout_identity identity;
    scout_dispatch *table; /* NULL: none */
    scout_dispatch_note table_note;
    bool near_shapes;
    uint64_t workspace_limit, alignment;
    double tune_s;   /* 0: nothing is tuned */
    char *cache_dir; /* owned; NULL: the usual one */
    void (*say)(void *context, const char *line);
    void *context;
    atomic_int lost;
    pthread_mutex_t lock; /* of all that is made */
    scout_run_op *ops;    /* grows at its head */
    runtime_lane lanes[RUNTIME_LANES];
    atomic_int lane_count;
    void **retired; /* workspaces that were too small: captured launches may still have them */
    size_t retired_count;
    _Atomic(struct runtime_calls *) calls; /* runtime_call.c */
};

/* A candidate and a weight that it has packed. */
struct scout_run_weight {
    const scout_run_op *asked; /* that it was packed for, and is launched as */
    const scout_run_op *op;    /* what that is with the zeros of this weight: else the same */
    const runtime_way *way;
    void *memory;
    uint64_t bytes;
};

/* The lane for a launch of this way on this stream, with a plan and a workspace; it must be given back. NULL: why. */
runtime_lane *runtime_lane_take(const scout_run_op *op, runtime_way *way, void *stream, scout_answer *answer,
                                scout_why *why);
void runtime_lane_give(runtime_lane *lane, runtime_why counted);
void runtime_lanes_free(scout_run *run);

/* A plan for this way; under the lock. */
scout_answer runtime_way_prepare(const scout_run_op *op, runtime_way *way, scout_plan **plan, scout_why *why);
/* How an operation is made. `describe` fills `out`, whose memory is the arena's, and fails through its guard. `finish`
 * (NULL: nothing) adds what candidates read and no key of reports has; it returns the key of the list. */
typedef struct runtime_making {
    void (*describe)(void *context, arena *a, operation *out);
    const char *(*finish)(void *context, arena *a, scout_op *op);
    void *context;
    const char *candidate, *variant; /* that it is to run as, if it can; NULL: what the table says */
} runtime_making;
int32_t runtime_op_find(scout_run *run, const runtime_making *making, const scout_run_op **op, scout_run_error *error);
/* One more field of an operation. */
void runtime_op_tell(scout_op *op, arena *a, const scout_field *field);
void runtime_ops_free(scout_run *run);
/* The way that plain tensors go; NULL: they have to be packed. */
runtime_way *runtime_op_plain(const scout_run_op *op, runtime_why *why);

/* ---- tuning: runtime_tune.c ---- */

typedef struct runtime_tuned {
    char candidate[64], variant[VARIANTS_TEXT]; /* "": the default, for nothing was proven to be faster */
    double ratio;                               /* of its time over the default's */
    bool cached;
} runtime_tuned;
/* Under the run's lock. false: why; the default is to be run. */
bool runtime_tune(scout_run_op *op, runtime_tuned *out, scout_why *why);

/* ---- launches: runtime_launch.c ---- */

int32_t runtime_launch(const scout_run_op *op, void *const *tensors, const scout_run_weight *packed, void *stream,
                       scout_run_error *error);
int32_t runtime_pack(const scout_run_op *op, void *const *tensors, scout_run_weight **packed, scout_run_error *error);

/* The operation that a product is with the zeros of this weight, if the table lists it so; else itself. NULL: why. */
const scout_run_op *runtime_sparse_of(const scout_run_op *op, void *const *tensors, scout_run_error *error);

/* Without a look at the pointers. */
int32_t runtime_launch_checked(const scout_run_op *op, void *const *tensors, const scout_run_weight *packed,
                               void *stream, scout_run_error *error);
uint64_t runtime_alignment_of(const scout_run *run, uint32_t type);

/* ---- calls: runtime_call.c ---- */

/* A number that no key has and candidates read: a field of that name; name NULL: none. */
typedef struct runtime_extra {
    const char *name;
    double value;
} runtime_extra;

typedef struct runtime_setting {
    const char *name;
    const char *text; /* NULL: numbers */
    double numbers[6];
    int count;
} runtime_setting;

typedef struct runtime_call runtime_call;

/* A kind of operation as it is called with tensors. */
typedef struct runtime_front {
    const char *kind;
    int least;                          /* so many tensors must be there */
    const char *names[RUNTIME_TENSORS]; /* as the operation calls them; NULL: by place (runtime_call.order) */
    /* Fills the operation that the call is of, and where it is told, its order and extra field. false: why. */
    bool (*describe)(runtime_call *call, arena *a, operation *out, scout_run_error *error);
} runtime_front;

struct runtime_call {
    const runtime_front *front;
    const char *what;
    const scout_run_tensor *tensors[RUNTIME_TENSORS]; /* NULL: not there */
    runtime_setting settings[RUNTIME_SETTINGS];
    int tensor_count, setting_count;
    const scout_run_weight *packed;
    /* of what describe found */
    int8_t order[RUNTIME_TENSORS]; /* of the operation's tensor k, the call's; where the front has no names */
    runtime_extra extra;           /* name NULL: none */
};

/* All tensors are NULL yet; what is not counted of the rest is not looked at. */
void runtime_call_begin(runtime_call *call, const runtime_front *front, const char *what, int tensor_count,
                        const scout_run_weight *packed);
void runtime_call_set(runtime_call *call, const char *name, const char *text, int count, const double *numbers);
const runtime_setting *runtime_call_setting(const runtime_call *call, const char *name); /* NULL: not set */
int32_t runtime_call_launch(scout_run *run, runtime_call *call, void *stream, scout_run_error *error);
int32_t runtime_call_pack(scout_run *run, runtime_call *call, scout_run_weight **packed, scout_run_error *error);
void runtime_calls_free(scout_run *run);

/* What fronts share: the last dimension is innermost and nothing lies between; elements; a refusal, always false. */
bool runtime_dense(const scout_run_tensor *t);
int64_t runtime_elements(const scout_run_tensor *t);
__attribute__((format(printf, 2, 3))) bool runtime_refuse(scout_run_error *error, const char *format, ...);

/* ---- opening, errors: runtime_open.c ---- */

/* On a device that the process's list need not have; of the options, its table and what is behind that. */
int32_t runtime_open_on(scout_run **run, const scout_device_api *api, int32_t ordinal, const scout_run_options *options,
                        scout_run_error *error);

__attribute__((format(printf, 3, 4))) int32_t runtime_say(scout_run_error *error, scout_run_status code,
                                                          const char *format, ...);
int32_t runtime_answer(scout_run *run, scout_answer answer, const scout_why *why, const char *doing,
                       scout_run_error *error);
/* What the process's variables say of threads: opening a device changes them for a while (runtime_environment.c). */
typedef struct runtime_environment {
    char **entries;
    size_t count;
} runtime_environment;
void runtime_environment_keep(runtime_environment *kept);
void runtime_environment_restore(runtime_environment *kept);
/* The cores of the calling thread. OpenMP, which runs the CPU's loops, pins a thread that starts a team; what belongs
 * to the caller is given back as it was. Not known where that is over: a thread is pinned once. */
typedef struct runtime_cores {
    cpu_set_t set;
    bool known;
} runtime_cores;
runtime_cores runtime_cores_of(const scout_run *run);
void runtime_cores_restore(const runtime_cores *cores);
__attribute__((format(printf, 2, 3))) void runtime_tell(const scout_run *run, const char *format, ...);
