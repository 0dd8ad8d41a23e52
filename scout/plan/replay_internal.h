/* What the parts of a replay share: replay_open.c prepares its plans, replay.c makes its steps and times them,
 * replay_groups.c says which of them the plan takes, replay_memory.c owns what they run on, replay_pieces.c times a run
 * that others disturb, replay_check.c holds one lane against the other, replay_exact.c both against fp32, with
 * replay_numbers.c, and replay_json.c tells what came of it. */
#pragma once

#include "scout/device/choice.h"
#include "scout/input/weights.h"
#include "scout/measure/bench.h"
#include "scout/measure/device_lanes.h"
#include "scout/plan/binding.h"
#include "scout/plan/replay.h"

/* In which orders activations lie: those of the lanes, and, where the plan turns images, its occurrences one by one. */
enum { REPLAY_ALONE = REPLAY_LANES, REPLAY_ORDERS };

typedef enum replay_phase {
    REPLAY_PREPARING,
    REPLAY_FILLING,
    REPLAY_CHECKING,
    REPLAY_TIMING,
    REPLAY_PHASES
} replay_phase;

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
    const char *equal; /* all of it is this number (fusion_place.of); NULL: it is not */
    bool read;         /* of a weight: some plan reads it as it is; else it is made only to be packed */
    bool copied;       /* its content is that of others, one behind the other */
    bool source;       /* others are copied from it */
    bool placed;       /* it has its offset */
    replay_region region;
} replay_slot;

typedef struct replay_place {
    replay_region region;
    int at;          /* an item of the activations, which lies elsewhere in each lane; else a slot */
    uint64_t offset; /* within that */
} replay_place;

typedef struct replay_unit { /* an operation, or a fusion */
    const replay_operation *of;
    scout_op op;
    bool out;             /* it takes part no more, why says for which reason */
    scout_why why, wanes; /* wanes: why the best is the default after all; code "": it is not */
    choice choices[REPLAY_LANES];
    int choice_of[REPLAY_LANES]; /* by lane */
    weights_content weights;     /* owned, as the plans */
    double tolerance;
    bool checked;
    uint64_t compared_bytes;         /* of outputs that were held against each other */
    bool allowed;                    /* of a fusion: its tolerance has that of its parts */
    bool planned;                    /* the plan takes it: an operation by itself at one of its occurrences at least */
    double in_place_s[REPLAY_LANES]; /* of all its launches in a run; 0: not known */
    int64_t traced[REPLAY_LANES];    /* launches, where in_place_s is of their kernels alone; else 0 */
} replay_unit;

typedef struct replay_step {
    int unit, occurrence; /* of a group the first one that it names */
    int flow;             /* which one that is of: 0, or 1 for what the plan alone has */
    bool planned;         /* the second lane has it */
    int64_t times;
    replay_place places[SCOUT_MAX_TENSORS];
    uint64_t packed[REPLAY_LANES]; /* by choice: where its packed weight lies among the weights */
} replay_step;

typedef struct replay_group { /* of a fusion; its step is one of those behind all single ones, in the same order */
    const plan_group *of;
    binding_site site;
    replay_place (*parts)[SCOUT_MAX_TENSORS]; /* by part: its tensors, as bound here */
} replay_group;

typedef struct replay_course { /* the steps of a lane, in its order */
    int *steps, count;
} replay_course;

typedef struct replay_held { /* numbers that others are made in the place of */
    void *at;                /* owned; NULL: nothing is held */
    bool here;               /* on the host */
} replay_held;

typedef struct replay_numbers { /* held ones, or where they were made */
    uint32_t type;
    const void *at; /* borrowed */
    bool here;
} replay_numbers;

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
    bool in_pieces; /* its launches are those of a run in pieces */
    replay_sequence sequences[80];
    int sequence_count;
} replay_lane;

typedef struct replay_piece {
    int64_t end;              /* launches of the run until then */
    bool known;               /* in the run that is put together */
    double seconds, missed_s; /* missed: other work took so much of it */
} replay_piece;

typedef struct replay_pieces { /* of a lane's run */
    replay_piece *items;
    int count, at;
    int64_t of, launched; /* launches of the run that was cut, and of the one under way */
    bool cutting;
    double from_s, stolen_s; /* since the last end */
} replay_pieces;

typedef struct replay_memory {
    void *allocated[REPLAY_REGIONS]; /* owned */
    char *base[REPLAY_REGIONS];
    uint64_t bytes[REPLAY_REGIONS]; /* of one copy */
    uint32_t copies;                /* of the weights */
    uint64_t gap;                   /* that a region may begin behind where its memory does */
    int shared;                     /* occurrences of an operation share so many weights; 0: each has its own */
    uint64_t weight_bytes, packed_bytes[REPLAY_LANES];
    replay_place *made;                                    /* by tensor: where; `at` -1: no step makes it */
    uint64_t *items[REPLAY_ORDERS];                        /* by item: where it lies among the activations */
    uint64_t activation_bytes[REPLAY_ORDERS], least_bytes; /* least: of the first lane's activations */
} replay_memory;

typedef struct replay_trace { /* of one run of a lane */
    scout_trace_event *events;
    int *units; /* by event */
    uint32_t count;
} replay_trace;

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
    replay_unit *units; /* of operations, then of fusions */
    int unit_count;
    scout_device *crew[REPLAY_MOST_BESIDE]; /* of the threads that prepared them; owned */
    int crew_count;
    replay_step *steps; /* of single occurrences, then of groups */
    int step_count, single_count;
    int *step_of[2]; /* by flow and occurrence: its single step; -1: it has none */
    replay_group *groups;
    replay_course courses[REPLAY_ORDERS];
    int *turns[REPLAY_ORDERS]; /* by occurrence: its turn in that order, whether it has a step or not */
    int standing;              /* groups that the plan's course has */
    replay_slot *slots;
    size_t slot_count, slot_cap;
    int places_found, places;
    int64_t launches[REPLAY_LANES]; /* of a run */
    bool opened, checked, two, captured;
    replay_memory memory;
    replay_lane lanes[REPLAY_LANES];
    lanes_lane figures[REPLAY_LANES];
    scout_telemetry telemetry;
    lanes_learned learned;
    replay_pieces pieces[REPLAY_LANES];
    double waived_s; /* taken from runs in pieces, and in no piece that counts */
    replay_trace traces[REPLAY_LANES];
    scout_why untraced; /* code "": nothing kept it from being traced */
    double *timing;     /* by step: what its launches took, while they are timed in place */
    replay_pass pass;
    double spent_s[REPLAY_PHASES], spent_until_s;
    struct { /* of the check */
        int compared, worst;
        double error, relative; /* to its tolerance */
    } seen;
    int64_t nonfinite;       /* of what the last launch of a run makes by default */
    bool own_numbers;        /* what only the plan has reads numbers of its own: its lane ends in others */
    struct {                 /* what a run of each lane ends in: the model's outputs, held against each other */
        int compared, worst; /* worst: a tensor */
        uint64_t bytes, all; /* that were compared, of all that there are */
        double error;
    } ends;
    struct {                         /* the same held against what fp32 makes of them */
        bool known;                  /* else why says for which reason */
        bool worse;                  /* the plan is further off than rounding in another order explains */
        int worst;                   /* a tensor: that where the plan does worst beside the default */
        double errors[REPLAY_LANES]; /* of it, by lane */
        scout_why why;
    } exact;
    scout_answer answer;
    scout_why why;
};

void replay_tell(replay *r, const choice *c, const char *what, double seconds);
scout_answer replay_note(replay *r, scout_answer answer, const scout_why *why); /* what ends the pass ends it */
void replay_leave_out(replay_unit *u, const scout_why *why);

/* The model's dataflow, or that of the plan. */
const operation_flow *replay_flow(const replay *r, int which);
bool replay_turns(const replay *r); /* these are not the same */
/* The order in which what a step makes by default lies where nothing else of it does; of a group its parts. */
int replay_alone(const replay *r, const replay_step *s);

/* replay_open.c */
void replay_open_units(replay *r);

/* replay_groups.c */
void replay_groups_open(replay *r); /* steps of the plan's groups, behind the single ones */
/* A group is, while its fusion and all of its parts take part. */
bool replay_takes_part(const replay *r, const replay_step *s);
const replay_group *replay_group_of(const replay *r, const replay_step *s); /* NULL: a single one */
const replay_fusion *replay_fusion_of(const replay *r, const replay_group *g);
const replay_step *replay_part(const replay *r, const replay_group *g, int part);
int replay_groups_standing(const replay *r);
void replay_courses(replay *r); /* what each lane runs, of what takes part by now */

/* replay_memory.c: binds the tensors of the courses' steps and lays out what they need. */
void replay_memory_plan(replay *r);
/* For one pass: allocates at other places than before, fills and packs. */
scout_answer replay_memory_open(replay *r, scout_why *why);
void replay_memory_close(replay *r);
/* c: what is packed for it takes the place of its weight; NULL: nothing does. */
void replay_memory_tensors(const replay *r, const replay_step *s, int order, const choice *c, uint32_t copy,
                           void **tensors);
void *replay_memory_at(const replay *r, const replay_place *p, int order, uint32_t copy);
/* A slot's content once more, wherever it is wanted. */
scout_answer replay_memory_fill(replay *r, size_t slot, uint32_t copy, void *to, scout_why *why);

/* One launch of a step by the implementation of that lane. */
scout_answer replay_launch(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream, scout_why *why);
scout_answer replay_launch_on(const replay *r, const choice *c, void *const *tensors, void *stream, scout_why *why);

/* replay_check.c: each step by itself on fresh numbers, its best held against its default, and a group against its
 * parts by default. */
void replay_check(replay *r);
/* One launch, to its end. */
scout_answer replay_check_run(replay *r, const scout_op *op, const choice *c, void *const *tensors, scout_why *why);
/* Before it: numbers in what others make, and nothing that is right in what it makes itself. */
scout_answer replay_check_fill(replay *r, const scout_tensor *like, void *to, uint64_t seed, scout_why *why);
void replay_check_seen(replay *r, int unit, double error);
/* Enough of its occurrences were compared: it takes a run longer than that. */
bool replay_check_enough(const replay_unit *u);
/* replay_check_group.c */
void replay_check_group(replay *r, const replay_step *s);
/* Numbers that the step has just made, and that are infinite or none: `nonfinite`. */
void replay_count_nonfinite(replay *r, const replay_step *s);
/* The model's outputs after a run of the first lane, while the second one runs. False: there is no memory for them, or
 * the device is lost. */
bool replay_check_hold_ends(replay *r, replay_held *to);
/* Those of a lane, behind a run of the second one: `at` bytes of them lie before it. */
replay_numbers replay_check_end_of(const replay *r, int tensor, int lane, const replay_held *first, uint64_t at);
void replay_check_end(replay *r, const replay_held *first); /* of both lanes: `ends` */
/* The next output of the model that a step makes, by its tensor; -1: there is none. `at`: bytes of those before it. */
int replay_check_next_end(const replay *r, int tensor, uint64_t *at);
uint64_t replay_check_end_bytes(const replay *r, int tensor, uint64_t at); /* so many of its first are compared */

/* replay_numbers.c */
scout_answer replay_hold_open(replay *r, uint64_t bytes, replay_held *to, scout_why *why);
scout_answer replay_hold(replay *r, const replay_held *to, uint64_t at, const void *from, uint64_t bytes,
                         scout_why *why);
void replay_hold_close(replay *r, replay_held *held);
uint64_t replay_held_bytes(uint64_t bytes); /* of one beside others */
replay_numbers replay_numbers_held(const replay_held *held, uint64_t at, uint32_t type);
/* `bytes`: of what is wanted. */
scout_answer replay_numbers_distance(replay *r, const replay_numbers *want, const replay_numbers *got, uint64_t bytes,
                                     scout_distance *out, scout_why *why);
/* The norm of the difference over that of what is wanted; infinite where one alone has a number. */
double replay_numbers_relative(const scout_distance *d);
scout_answer replay_numbers_off(replay *r, const replay_numbers *want, const replay_numbers *got, uint64_t bytes,
                                double *off, scout_why *why);
/* On the host: adds so many numbers' to a distance. */
void replay_numbers_add(uint32_t want_type, const unsigned char *want, uint32_t got_type, const unsigned char *got,
                        uint64_t count, scout_distance *to);

/* replay_exact.c: the model in fp32 on the same numbers, `copy` of its weights, and how far each lane's ends are off.
 */
bool replay_exact_wanted(replay *r); /* else there is nothing to compare, and why it is so */
void replay_exact(replay *r, uint32_t copy, const replay_held *first); /* behind a run of the second lane */

/* Every launch of a run in an order, loops and all, until one fails; `at`: that one. */
typedef scout_answer replay_visit(void *context, const replay_step *s);
scout_answer replay_each(replay *r, int order, replay_visit *visit, void *context, const replay_step **at);
/* All launches of a run of that lane. What failed is to blame for it. */
typedef scout_answer replay_launcher(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream,
                                     scout_why *why);
scout_answer replay_launch_all(replay *r, int lane, uint32_t copy, void *stream, scout_why *why,
                               replay_launcher *launch);
void replay_look_at_lanes(replay *r); /* how much they launch by now */

/* replay_pieces.c: runs on a device that tells what other work took from it. */
typedef scout_answer replay_pieces_play(void *context, double *seconds, scout_why *why);
bool replay_pieces_serve(const replay_lane *l, uint32_t launches);
/* A run that is put together of pieces of several; `play` makes one of them, with replay_pieces_launch for a launch. */
scout_answer replay_pieces_run(replay_lane *l, replay_pieces_play *play, void *context, double *seconds,
                               scout_why *why);
scout_answer replay_pieces_launch(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream,
                                  scout_why *why);
double replay_pieces_stolen(void *context); /* timing_clock.stolen: of what counts */

/* replay_trace.c: in place of a pass. */
void replay_trace_lanes(replay *r);
void replay_trace_launches(replay *r, int lane); /* within one, on a device without graphs */
json_t *replay_trace_json(const replay *r, json_builder *b);

json_t *replay_json(const replay *r);
