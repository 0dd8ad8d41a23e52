/* A device in the host's memory with a clock that only its launches move, and candidates that are right or faulty in
 * one way each: what the harness does with them can be tried in milliseconds. */
#ifndef TESTS_FAKES_FAKE_DEVICE_H
#define TESTS_FAKES_FAKE_DEVICE_H

#include "scout/plugin.h"

#include <stdbool.h>

enum { FAKE_MOST_MHZ = 2000, FAKE_LOG = 8192, FAKE_OWNED = 8192 };

struct scout_device {
    double now_s;
    uint64_t used_bytes, limit_bytes;
    int live_allocations, live_plans, live_sequences, live_checks;
    scout_sequence *capturing; /* NULL: launches run at once */
    bool lost;
    double noise;                        /* of an interval, relative: 0.002 */
    double slow;                         /* everything takes so much longer, relative: 0 */
    double counted_per_s, counted_noise; /* multiply-adds or special functions; of a launch, relative: 1e9, 0 */
    uint64_t random;
    uint64_t fills;            /* calls of fill with random numbers */
    float fill_factor;         /* of these; 0: 1 */
    const void *log[FAKE_LOG]; /* weights of the last launches, in order */
    uint64_t launches;         /* that ran */
    uint32_t prepared;         /* plans */
    uint32_t steal_each;       /* other work takes 3 ms beside each so-manieth launch: 0, never */
    uint32_t executed;
    double stolen_s;
    double clock_mhz;
    double held_mhz; /* not 0: work brings its clock there; times go with it from 2000 MHz on */
    double hz[64];   /* of the last intervals */
    uint32_t hz_count;
    double fetch_s, tensors_s; /* that a launch takes more behind fake_forget, by what it forgets */
    double change_s;           /* likewise, whatever it forgets */
    double owed_s;             /* of it, by the next launch */
    uint32_t left;             /* of the first tensor that it was asked for */
    double crowd_written;      /* likewise */
    void *owned[FAKE_OWNED];   /* all that lives in it, which goes with it where it was lost */
};

scout_device *fake_open(void);
void fake_close(scout_device *d); /* frees also what was leaked; live_* told of it */

extern scout_device_api fake_api;                                 /* candidates and has_graphs may be set by a test */
uint32_t fake_clocks(scout_device *d, double *hz, uint32_t most); /* for fake_api, where a test wants it to tell */
double fake_stolen(scout_device *d);                              /* likewise, as those that follow */
scout_answer fake_play(scout_device *d, scout_sequence *const *sequences, uint32_t count, double *seconds,
                       scout_why *why);
/* 30 us */
scout_answer fake_forget(scout_device *d, scout_forget what, const scout_op *op, void *const *tensors, void *stream,
                         scout_why *why);
void fake_use(int count, const scout_candidate *const *candidates);

/* Each computes the product in fp32 at 200 us a launch, unless it says otherwise. */
/* For fake_candidates.c: what lives in the device, and a launch of a plan. */
void *fake_own(scout_device *d, void *memory); /* NULL: freed, there is no room */
void fake_disown(scout_device *d, void *memory);
void fake_compute(const scout_op *op, void *const *tensors, bool packed, double *want, double *spread);

typedef struct fake_call {
    scout_plan *plan;
    void *tensors[SCOUT_MAX_TENSORS];
    void *workspace;
    double stream_s; /* plan NULL: so long, and nothing else */
    double owes_s;   /* a launch of fake_forget */
} fake_call;
void fake_execute(fake_call *call);
void fake_take(scout_device *d, const fake_call *one); /* what is recorded has one more */

struct scout_sequence {
    bool graph;
    uint32_t launches, count, room;
    fake_call *calls; /* of a graph */
    scout_enqueue enqueue;
    void *context;
};

extern const scout_candidate fake_right;   /* the baseline */
extern const scout_candidate fake_copies;  /* of elementwise operations with one operand, which it copies: 100 us */
extern const scout_candidate fake_fast;    /* 150 us */
extern const scout_candidate fake_brief;   /* a baseline of 20 us */
extern const scout_candidate fake_brisk;   /* 15 us */
extern const scout_candidate fake_slow;    /* 500 us */
extern const scout_candidate fake_crawls;  /* 0.1 s */
extern const scout_candidate fake_near;    /* 198 us: within the margin */
extern const scout_candidate fake_tuned;   /* algo=0…5 x split=1,2: 180 us at algo=3,split=1, else 210 and more */
extern const scout_candidate fake_rounded; /* a library's */
extern const scout_candidate fake_rounded_own;
extern const scout_candidate fake_late_default; /* as coarse, but engine=0 comes out wrong late; the last is fastest */
extern const scout_candidate fake_coarse;  /* a baseline too: engine=0…2, of form=0 the last one is right: 150 us */
extern const scout_candidate fake_many;    /* 1024 variants, all slow */
extern const scout_candidate fake_wrong;   /* one element is off; fast */
extern const scout_candidate fake_outside; /* writes one float behind its output */
extern const scout_candidate fake_before;  /* writes one byte in front of its workspace */
extern const scout_candidate fake_before_large; /* the same, and it has 40 MB of it */
extern const scout_candidate fake_changes;      /* writes to an input */
extern const scout_candidate fake_partial;      /* leaves the last element out */
extern const scout_candidate fake_fails;        /* prepare fails */
extern const scout_candidate fake_refuses;      /* supports says no */
extern const scout_candidate fake_hungry;       /* takes all memory and keeps it */
extern const scout_candidate fake_lost;         /* its launch loses the device */
extern const scout_candidate fake_packs; /* wants the weight transposed; order=0,1 pack alike, order=2 does not */
extern const scout_candidate fake_uncapturable;
extern const scout_candidate fake_late;         /* right at first, wrong after 300 launches; fast */
extern const scout_candidate fake_late_outside; /* spoils what lies behind every output but the first; fast */
extern const scout_candidate fake_lazy;         /* its first launch cannot be captured; fast */
extern const scout_candidate fake_remembers;    /* goes on with the tensors of its first launch; fast */
extern const scout_candidate fake_last;         /* of the last resort; 120 us */
extern const scout_candidate fake_plain;        /* a baseline where no library is: 500 us */
extern const scout_candidate fake_plain_last;   /* its like, of the last resort: 300 us */

#endif
