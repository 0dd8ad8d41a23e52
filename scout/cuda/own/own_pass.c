/* What the candidates of own passes over memory share: their variants. */
#include "scout/cuda/own/own_pass.h"

#include "scout/op/op.h"

enum { THREADS, RESIDENT, PARAMETERS };

scout_answer own_pass_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[THREADS] = (scout_parameter){.name = "threads", .count = 3, .values = {256, 512, 128}};
    out->parameters[RESIDENT] = (scout_parameter){.name = "resident", .count = 2, .values = {0, 4}};
    return SCOUT_OK;
}

pass_config own_pass_config(const int64_t *values) {
    pass_config c = {.threads = 256, .resident = 0};
    if (values) c.threads = (int)values[THREADS], c.resident = (int)values[RESIDENT];
    return c;
}

int own_pass_size(const scout_tensor *t) { return (int)(t->bytes / (uint64_t)op_elements(t)); }
