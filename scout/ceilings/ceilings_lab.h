/* What the parts of measuring ceilings share: the device, its clock and regime, and how launches become figures. Only
 * for scout/ceilings/ceilings_*.c. */
#pragma once

#include "scout/ceilings/ceilings.h"
#include "scout/timing/lanes.h"

typedef struct ceilings_lab {
    const scout_device_api *api;
    scout_device *device;
    const timing_clock *clock;
    regime regime;
    bool host;
    const scout_identity *identity; /* or NULL */
    ceilings_say *say;
    void *say_context;
    double launch_s; /* the floor, once it is known */
    double end_s;    /* on the device's clock: by then all parts are done; infinite: whenever they are */
    double part_s;   /* the same of the part that is being measured */
} ceilings_lab;

#define CEILINGS_LAB_WIDE                                                                                              \
    0.05 /* a figure whose interval is wider was disturbed, and decides nothing (common/verdict.c) */

double ceilings_lab_now(const ceilings_lab *lab);
__attribute__((format(printf, 2, 3))) void ceilings_lab_say(const ceilings_lab *lab, const char *format, ...);
/* The next part begins, of so many that are left: each gets as much of the time as the others, at most `most_s`. */
void ceilings_lab_part(ceilings_lab *lab, int parts_left, double most_s);
double ceilings_lab_left(const ceilings_lab *lab); /* seconds of the part; not negative */
bool ceilings_lab_late(const ceilings_lab *lab);
uint64_t ceilings_lab_free_bytes(const ceilings_lab *lab); /* 0: not known */

/* One thing that is launched again and again; the sequence of its launches is recorded when first run. Starts as
 * {lab, enqueue, context}; ceilings_work_drop gives the sequence back. */
typedef struct ceilings_work {
    const ceilings_lab *lab;
    scout_enqueue enqueue;
    void *context;
    uint32_t whole;           /* launches that belong together: an interval is a multiple of them; 0: any number */
    scout_sequence *sequence; /* of `launches` launches, or NULL */
    uint32_t launches;
} ceilings_work;
timing_subject ceilings_work_subject(ceilings_work *w); /* valid as long as w */
void ceilings_work_drop(ceilings_work *w);

/* A pass of lanes that all stay in, each for about `seconds` in blocks of at most `block_s`. SCOUT_LOST: the device is
 * gone; what else a lane may answer is that lane's matter. */
scout_answer ceilings_lab_pass(const ceilings_lab *lab, double seconds, double block_s, lanes_lane *lanes, int count,
                               scout_why *why);

/* Seconds of a launch; 0: none. Of a host the twentieth part of its blocks that was fastest tells what it can do: what
 * disturbs it only adds. */
double ceilings_lab_launch_s(const ceilings_lab *lab, const lanes_lane *lane);

/* The long run of one thing alone: passes of so many seconds each, without a pause on a device. `cycles`: its time goes
 * with the clock, and is that at the mean one where the device counts its cycles. */
typedef struct ceilings_figure {
    double launch_s, rel_ci95, clock_mhz, power_w;
} ceilings_figure;
scout_answer ceilings_lab_long(const ceilings_lab *lab, const timing_subject *subject, bool cycles, double seconds,
                               int passes, ceilings_figure *out, scout_why *why);

/* By how much a clock that power caps lies below what stands, over whole seconds; 0: nothing caps it, or the device
 * does not tell. */
scout_answer ceilings_lab_fall(const ceilings_lab *lab, const timing_subject *subject, double *fall, scout_why *why);

/* The parts. Each fills its members of c. */
scout_answer ceilings_launch_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_special_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_bandwidth_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_gemm_measure(ceilings_lab *lab, const char *precision, double budget_s, ceilings *c,
                                   json_builder *b, json_t *audit, scout_why *why);
scout_answer ceilings_gemm_sweep(ceilings_lab *lab, const char *precision, int64_t m, int64_t n, ceilings *c,
                                 scout_why *why);
scout_answer ceilings_registers_measure(ceilings_lab *lab, const char *precision, ceilings *c, scout_why *why);

/* Precisions that have a peak of their own. */
typedef struct ceilings_precision {
    const char *name;
    uint32_t type;
    int tf32;
    double in_bytes, out_bytes; /* of an element */
} ceilings_precision;
const ceilings_precision *ceilings_precision_named(const char *name); /* NULL: there is none; int4 is fp16 */

/* Keeps the larger one of what is known and `p`. */
void ceilings_peak_offer(ceilings *c, const ceilings_peak *p);
