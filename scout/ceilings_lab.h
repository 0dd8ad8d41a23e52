/* What the parts of measuring ceilings share: the device, its clock and regime, and how launches become figures. Only
 * for scout/ceilings_*.c. */
#ifndef SCOUT_CEILINGS_LAB_H
#define SCOUT_CEILINGS_LAB_H

#include "scout/ceilings.h"

typedef struct ceilings_lab {
    const scout_device_api *api;
    scout_device *device;
    const timing_clock *clock;
    regime regime;
    timing_rules rules;             /* of the regime; budgets are set by each use */
    const scout_identity *identity; /* or NULL */
    ceilings_say *say;
    void *say_context;
    double launch_s; /* the floor, once it is known */
    double end_s;    /* on the device's clock: by then all parts are done; infinite: whenever they are */
    double part_s;   /* the same of the part that is being measured */
} ceilings_lab;

#define CEILINGS_LAB_WIDE                                                                                              \
    0.05 /* a figure whose interval is wider was disturbed, and decides nothing (common/verdict.c) */
enum { CEILINGS_LAB_TIMES = 3 }; /* that something disturbed is timed, at most */

double ceilings_lab_now(const ceilings_lab *lab);
__attribute__((format(printf, 2, 3))) void ceilings_lab_say(const ceilings_lab *lab, const char *format, ...);
/* The next part begins, of so many that are left: each gets as much of the time as the others. */
void ceilings_lab_part(ceilings_lab *lab, int parts_left);
double ceilings_lab_left(const ceilings_lab *lab); /* seconds of the part; not negative */
bool ceilings_lab_late(const ceilings_lab *lab);
uint64_t ceilings_lab_free_bytes(const ceilings_lab *lab); /* 0: not known */

/* One thing that is launched again and again; the sequence of its launches is recorded when first run. Starts as
 * {lab, enqueue, context}; ceilings_work_drop gives the sequence back. */
typedef struct ceilings_work {
    const ceilings_lab *lab;
    scout_enqueue enqueue;
    void *context;
    scout_sequence *sequence; /* of `launches` launches, or NULL */
    uint32_t launches;
} ceilings_work;
timing_subject ceilings_work_subject(ceilings_work *w); /* valid as long as w */
void ceilings_work_drop(ceilings_work *w);

/* Seconds of one launch, from at least `least` intervals of `launches` launches and `seconds` of work (burst: in pieces
 * of at most the regime's, with rests between). The first interval is a warm-up. */
typedef struct ceilings_figure {
    double median_s, rel_ci95;
} ceilings_figure;
scout_answer ceilings_lab_meter(const ceilings_lab *lab, const timing_subject *subject, uint32_t launches,
                                double seconds, uint32_t least, ceilings_figure *out, scout_why *why);

/* After `worked` seconds of work in a burst regime: rests so long that the device stays at its burst clock. */
void ceilings_lab_rest(const timing_clock *clock, const timing_rules *rules, double worked);

/* The parts. Each fills its members of c. */
scout_answer ceilings_launch_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_special_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_bandwidth_measure(ceilings_lab *lab, ceilings *c, scout_why *why);
scout_answer ceilings_gemm_measure(ceilings_lab *lab, const char *precision, double budget_s, ceilings *c,
                                   json_builder *b, json_t *audit, scout_why *why);
scout_answer ceilings_gemm_sweep(ceilings_lab *lab, const char *precision, int64_t m, int64_t n, double budget_s,
                                 ceilings *c, scout_why *why);
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

#endif
