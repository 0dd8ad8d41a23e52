/* What the parts of the bench share: bench.c owns tensors, bench_plan.c plans, bench_verify.c the check. */
#pragma once

#include "scout/measure/bench.h"

enum {
    BENCH_CANARY = 256,   /* bytes on either side of every buffer */
    BENCH_FRONT = 512,    /* before the data, which so keeps the allocation's alignment; the canary is its end */
    BENCH_COPIES = 512,   /* at most: tiny tensors stay below the plateau, which rotation_bytes says */
    BENCH_PLACES = 32,    /* of what stays in the cache anyway */
    BENCH_LINE = 512,     /* copies begin at multiples of it, as allocations do */
    BENCH_GAP = 16 << 20, /* a slab begins up to so far behind where its memory does */
    BENCH_WATCHED = 6,    /* copies between the first and the last that have canaries, about */
    BENCH_WINDOW = 64,    /* copies between the first ones of two plans' rotations */
    BENCH_SEQUENCES = 96, /* recorded per plan: 64 parts of a rotation (lanes.c), and those of a race */
    BENCH_PACK_TIMES = 4  /* packed alone, of which the median is told */
};

typedef struct bench_buffer { /* borrowed from a slab */
    char *base;
    uint64_t bytes;
} bench_buffer;

/* Copies of one tensor, side by side in one allocation, at another place in every set. */
typedef struct bench_slab {
    char *memory, *first; /* owned; NULL: none */
    uint64_t stride, bytes;
    uint32_t count;
} bench_slab;

typedef struct bench_tensor {
    bench_slab copies;   /* owned */
    bool rotates, input; /* input: everything but the output */
    bool summed;         /* `sum` is that of copy 0 as it was filled */
    uint64_t sum;
} bench_tensor;

/* Packed weights of all copies, shared by the plans of a candidate that pack alike. */
typedef struct bench_pack {
    const scout_candidate *candidate;
    uint32_t tensor;
    uint64_t bytes, sum;
    bench_slab copies; /* owned */
    uint32_t users;
    double seconds;
    struct bench_pack *next;
} bench_pack;

struct bench_set {
    const scout_device_api *api;
    scout_device *device;
    const scout_op *op;
    bench_tolerance tolerance;
    bench_given given;
    uint64_t seed, round;
    uint32_t copies; /* of every tensor that rotates */
    uint32_t places; /* of every other one, which stays in the cache in all of them */
    bool cold;       /* a rotation empties the cache, so launches go through all of it in turn */
    uint32_t turn;   /* next copy where launches are not captured */
    uint32_t next;   /* copy that the next part of a rotation begins at */
    bench_tensor tensors[SCOUT_MAX_TENSORS];
    /* Each is made when a plan asks for it: few ask for more than the usual one, and a host pays for each page. */
    bench_slab workspace, large_workspace; /* of the usual bytes; of workspace_limit */
    uint64_t gaps;                         /* how many places were drawn */
    uint32_t plan_count;                   /* that were ever made on it */
    bool tight;                            /* no memory is left for gaps */
    const scout_reference *reference;
    scout_check *check, *last_check; /* of copy 0, and of the last one */
    bench_pack *packs;
    bench_plan *plans; /* all that are alive */
    bool burst;        /* no interval may be longer than one */
    bool suspect;      /* timed launches have damaged a canary, of which plan is unknown: each is examined alone */
    bool lost;         /* the device: nothing is called any more */
};

typedef struct bench_sequence {
    uint32_t launches, first; /* first: copy */
    scout_sequence *recorded; /* owned */
} bench_sequence;

typedef struct bench_launcher {
    bench_plan *plan;
    bool alone; /* on `copy` */
    uint32_t copy;
    uint32_t first; /* the copy of its first launch */
    bool forgets;   /* before each launch the device does so */
    scout_forget what;
    bool idle; /* that alone, and no launch */
} bench_launcher;

struct bench_plan {
    bench_set *set;
    const scout_candidate *candidate;
    scout_plan *plan; /* owned */
    scout_plan_needs needs;
    bench_pack *pack;
    bool graph, captured; /* captured: asked for, and the device has graphs */
    bool timed;           /* has run on all copies since it was verified last */
    bench_launcher rotating, alone;
    uint32_t window; /* the first copy of a part of a rotation */
    bench_sequence sequences[BENCH_SEQUENCES];
    uint32_t sequence_count;
    scout_sequence *single; /* owned: one launch on copy 0 */
    int looks;              /* how often that one was timed, and what it took */
    double look_s;
    bench_plan *next;
};

void *bench_data(const bench_buffer *b);
scout_answer bench_slab_new(bench_set *s, bench_slab *slab, uint64_t bytes, uint32_t count, scout_why *why);
bench_buffer bench_slab_at(const bench_slab *slab, uint32_t launch); /* of all copies in turn */
void bench_slab_free(bench_set *s, bench_slab *slab);
bool bench_watched(const bench_set *s, uint32_t copy, uint32_t count); /* whether this copy of so many has canaries */
void bench_copy_tensors(const bench_set *s, uint32_t copy, void **tensors);
scout_answer bench_arm(bench_set *s, const bench_buffer *b, uint64_t bytes, scout_why *why); /* writes both canaries */
scout_answer bench_arm_all(bench_set *s, scout_why *why); /* those of all tensors and packed weights */
scout_answer bench_pack_arm(bench_set *s, const bench_pack *pack, scout_why *why);
/* *whole: both canaries are as they were written. `bytes`: where the data ends. */
scout_answer bench_inspect(bench_set *s, const bench_buffer *b, uint64_t bytes, bool *whole, scout_why *why);
scout_answer bench_poison(bench_set *s, const bench_buffer *b, uint64_t bytes, scout_why *why);
/* Same inputs and canaries again, after a candidate has damaged them. */
scout_answer bench_restore(bench_set *s, scout_why *why);
scout_answer bench_need_workspace(bench_set *s, uint64_t bytes, scout_why *why);
bench_buffer bench_workspace(const bench_set *s, uint64_t bytes); /* that a plan which asks for so many has */
scout_answer bench_need_check(bench_set *s, scout_why *why);
/* As bench_need_check; a reference of the last copy's inputs. */
scout_answer bench_need_last_check(bench_set *s, scout_why *why);

/* The first `copies`, after the inputs have changed. */
scout_answer bench_pack_again(bench_plan *p, uint32_t copies, scout_why *why);
scout_answer bench_plan_run(bench_plan *p, uint32_t launches, uint32_t repeats, double *seconds, scout_why *why);
scout_answer bench_plan_record_alone(bench_plan *p, scout_why *why); /* what bench_plan_run_alone runs */
scout_answer bench_plan_run_alone(bench_plan *p, scout_why *why);
scout_answer bench_plan_run_last(bench_plan *p, scout_why *why); /* one launch on the last copy */
scout_answer bench_note(bench_set *s, scout_answer answer);      /* remembers that the device is lost */
