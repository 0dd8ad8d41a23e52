/* The candidate `parts`: the operations that a fusion joins, one after another on the fused operation's tensors, each
 * by the candidate of the device that it runs best with. Made of the device's own candidates and nothing else, it is
 * the baseline of a fusion's measurement: verified, raced and confirmed as whatever does all at once. */
#pragma once

#include "scout/fusion/fusion.h"

typedef struct parts_request {
    int count; /* 0: the operation is no fusion */
    const fusion_part *items;
    bool exhaustive; /* their variants were found so */
} parts_request;

/* Lays the parts out on the fused operation's tensors. Everything is borrowed, and lies in the arena. What cannot be
 * laid out is refused when the candidate is asked whether it supports the operation. ahead: its plans wait for
 * parts_settle. */
typedef struct parts_layout parts_layout;
parts_layout *parts_open(const scout_device_api *api, const scout_op *op, const parts_request *request, bool ahead,
                         arena *a);
/* The candidate, as that of this layout until the next call in this thread: the interface gives a candidate no place
 * for what it is made of, and a thread is at one operation at a time. NULL: of none. */
const scout_candidate *parts_use(parts_layout *layout);

/* Gives a plan that was made ahead its memory, on the device that runs it; one that has it already keeps it. */
scout_answer parts_settle(const parts_layout *layout, scout_plan *plan, scout_device *device, scout_why *why);

/* Memory of the device's with a vector of one number, as a place tells it ("=1"); the caller's. Of fp32, fp16 or bf16.
 */
scout_answer parts_make_constant(const scout_device_api *api, scout_device *device, const scout_tensor *t,
                                 const char *name, void **out, scout_why *why);
/* The same in memory that is there. */
scout_answer parts_fill_constant(const scout_device_api *api, scout_device *device, const scout_tensor *t,
                                 const char *name, void *to, scout_why *why);

/* What the parts' roundings in between add to what an element of the fused operation may be off by, where its kind does
 * not expect them anyway: relative to |want| + spread. NULL: there are no parts. */
double parts_tolerance(const parts_layout *layout);
