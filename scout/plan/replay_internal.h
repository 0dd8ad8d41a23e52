/* What the parts of a replay share: replay.c makes its steps and times them, replay_memory.c owns what they run on,
 * replay_check.c holds one lane against the other, replay_json.c tells what came of it. */
#pragma once

#include "scout/input/weights.h"
#include "scout/measure/bench.h"
#include "scout/measure/choice.h"
#include "scout/measure/device_lanes.h"
#include "scout/plan/replay.h"

typedef enum replay_region {
    REPLAY_ACTIVATIONS, /* placed by liveness */
    REPLAY_INPUTS,      /* what no step makes: the model's inputs, and tensors that were not found in the dataflow */
    REPLAY_WEIGHTS,     /* as many copies as make them cold, packed ones too */
    REPLAY_SCRATCH,     /* a weight, only to be packed */
    REPLAY_WORKSPACE,
    REPLAY_REGIONS
} replay_region;

typedef struct replay_slot { /* a piece of a region that is filled */
    uint64_t offset, bytes;
    scout_tensor like; /* how */
    const void *given; /* its content; NULL: random numbers */
    bool read;         /* of a weight: some plan reads it as it is; else it is made only to be packed */
    replay_region region;
} replay_slot;

typedef struct replay_place {
    replay_region region;
    int slot;        /* of inputs and weights */
    uint64_t offset; /* within the region; of inputs and weights within the slot */
} replay_place;

typedef struct replay_unit { /* an operation */
    const replay_operation *of;
    scout_op op;
    bool out;             /* it takes part no more, why says for which reason */
    scout_why why, wanes; /* wanes: why the best is the default after all; code "": it is not */
    choice choices[REPLAY_LANES];
    int choice_of[REPLAY_LANES]; /* by lane */
    weights_content weights;     /* owned, as the plans */
    double tolerance;
    bool checked;
    double in_place_s[REPLAY_LANES]; /* of all its launches in a run; 0: not known */
} replay_unit;

typedef struct replay_step {
    int unit, occurrence;
    int64_t times;
    replay_place places[SCOUT_MAX_TENSORS];
    uint64_t packed[REPLAY_LANES]; /* by choice: where its packed weight lies among the weights */
} replay_step;

typedef struct replay_sequence {
    uint32_t launches, first;
    scout_sequence *recorded; /* owned */
} replay_sequence;

typedef struct replay_lane {
    struct replay *replay;
    int lane;
    uint32_t first; /* copy of the weights that its next recording begins at, and that of the one under way */
    uint32_t turn;
    double launch_s;
    replay_sequence sequences[80];
    int sequence_count;
} replay_lane;

typedef struct replay_memory {
    void *allocated[REPLAY_REGIONS]; /* owned */
    char *base[REPLAY_REGIONS];
    uint64_t bytes[REPLAY_REGIONS]; /* of one copy */
    uint32_t copies;                /* of the weights */
    uint64_t gap;                   /* that a region may begin behind where its memory does */
    int shared;                     /* occurrences of an operation share so many weights; 0: each has its own */
    uint64_t weight_bytes, packed_bytes[REPLAY_LANES], least_bytes; /* least: of the activations */
} replay_memory;

struct replay {
    const scout_device_api *api;
    scout_device *device;
    const scout_identity *identity;
    const replay_request *request;
    const measure_watcher *watcher;
    guard guard;
    arena arena;
    device_lanes on;
    timing_clock clock;
    replay_unit *units;
    replay_step *steps;
    replay_slot *slots;
    size_t slot_count, slot_cap;
    int step_count, places_found, places;
    int64_t launches; /* of a run */
    bool opened, checked, two, captured;
    replay_memory memory;
    replay_lane lanes[REPLAY_LANES];
    lanes_lane figures[REPLAY_LANES];
    scout_telemetry telemetry;
    lanes_learned learned;
    double *timing; /* by step: what its launches took, while they are timed in place */
    replay_pass pass;
    double started_s;
    struct { /* of the check */
        int compared, worst;
        double error, relative; /* to its tolerance */
    } seen;
    int64_t nonfinite; /* of what the last launch of a run makes by default */
    scout_answer answer;
    scout_why why;
};

void replay_tell(replay *r, const choice *c, const char *what, double seconds);
scout_answer replay_note(replay *r, scout_answer answer, const scout_why *why); /* what ends the pass ends it */
void replay_leave_out(replay_unit *u, const scout_why *why);
uint64_t replay_mix(uint64_t x);

/* replay_memory.c: binds the steps' tensors and lays out what they need; once. */
void replay_memory_plan(replay *r);
/* For one pass: allocates at other places than before, fills and packs. */
scout_answer replay_memory_open(replay *r, scout_why *why);
void replay_memory_close(replay *r);
void replay_memory_tensors(const replay *r, const replay_step *s, const choice *c, uint32_t copy, void **tensors);

/* One launch of a step by the implementation of that lane. */
scout_answer replay_launch(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream, scout_why *why);

/* replay_check.c: each step by itself on fresh numbers, and its best held against its default. */
void replay_check(replay *r);
/* Numbers that the step has just made, and that are infinite or none: `nonfinite`. */
void replay_count_nonfinite(replay *r, const replay_step *s);

json_t *replay_json(const replay *r);
