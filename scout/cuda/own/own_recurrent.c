/* recurrent_steps as a candidate. Its variants: how many rows of the batch a warp takes at once. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/own/own.h"

#include "scout/cuda/device/cuda_device.h"

enum { ROWS, PARAMETERS };

_Static_assert((int)RECURRENT_RNN == RECURRENT_LAYER_RNN && (int)RECURRENT_LSTM == RECURRENT_LAYER_LSTM &&
                   (int)RECURRENT_SOFTPLUS == RECURRENT_LAYER_SOFTPLUS && (int)RECURRENT_LAYER_BF16 == (int)SCOUT_BF16,
               "kernels number cells, functions and types alike");

struct scout_plan {
    recurrent_problem p;
    recurrent_steps_plan steps;
};

recurrent_layer own_recurrent_layer(const recurrent_problem *p) {
    recurrent_layer l = {.type = (int)p->type,
                         .cell = (int)p->cell,
                         .gates = p->gates,
                         .directions = p->directions,
                         .reverse = p->reverse,
                         .input_forget = p->input_forget,
                         .linear_before_reset = p->linear_before_reset,
                         .steps = p->steps,
                         .batch = p->batch,
                         .input = p->input,
                         .hidden = p->hidden,
                         .clip = p->clip,
                         .x_step = p->x_step,
                         .x_row = p->x_row,
                         .y_step = p->y_step,
                         .y_direction = p->y_direction,
                         .y_row = p->y_row,
                         .state_direction = p->state_direction,
                         .state_row = p->state_row};
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < RECURRENT_ACTIVATIONS; k++) {
            const recurrent_activation *a = &p->activations[d][k];
            l.functions[d][k] = (recurrent_layer_function){(int)a->function, a->alpha, a->beta};
        }
    return l;
}

static void *at(void *const *tensors, int which) { return which < 0 ? NULL : tensors[which]; }

recurrent_layer_tensors own_recurrent_tensors(const recurrent_problem *p, void *const *tensors) {
    return (recurrent_layer_tensors){.x = tensors[RECURRENT_X],
                                     .w = tensors[RECURRENT_W],
                                     .r = tensors[RECURRENT_R],
                                     .bias = at(tensors, p->bias),
                                     .h0 = at(tensors, p->h0),
                                     .c0 = at(tensors, p->c0),
                                     .peephole = at(tensors, p->peephole),
                                     .lengths = at(tensors, p->lengths),
                                     .y = at(tensors, p->y),
                                     .y_h = at(tensors, p->y_h),
                                     .y_c = at(tensors, p->y_c)};
}

/* As many as there are, up to four: then each weight is loaded once for all. */
static int usual_rows(const recurrent_problem *p) { return p->batch >= 4 ? 4 : p->batch >= 2 ? 2 : 1; }

static scout_answer make(const scout_op *op, int rows, recurrent_problem *p, recurrent_steps_plan *plan,
                         scout_why *why) {
    *p = recurrent_problem_of(op);
    const recurrent_layer layer = own_recurrent_layer(p);
    if (recurrent_steps_prepare(&layer, rows, op->workspace_limit / RECURRENT_WORKSPACES, plan) == 0) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "the gates of one step need more than the workspace");
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    recurrent_problem p;
    recurrent_steps_plan plan;
    (void)device;
    return make(op, 1, &p, &plan, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    const int usual = usual_rows(&p);
    (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    scout_parameter *rows = &out->parameters[ROWS];
    *rows = (scout_parameter){.name = "rows", .count = 1, .values = {usual}};
    for (int k = 1; k <= 8; k *= 2)
        if (k != usual && k < 2 * p.batch) rows->values[rows->count++] = k;
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device;
    scout_plan *const plan = *out;
    const recurrent_problem p = recurrent_problem_of(op);
    const int rows = values ? (int)values[ROWS] : usual_rows(&p);
    const scout_answer answer = make(op, rows, &plan->p, &plan->steps, why);
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = plan->steps.workspace_bytes;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const recurrent_layer_tensors t = own_recurrent_tensors(&plan->p, args->tensors);
    const int error = recurrent_steps_launch(&plan->steps, &t, args->workspace, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching recurrent_steps", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"recurrent_steps\",\"rows\":%d,\"chunk\":%lld}", plan->steps.rows,
                    (long long)plan->steps.chunk);
}

const scout_candidate own_recurrent = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_RECURRENT,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* the baseline where cuDNN has none */
    .priority = 50,
    .name = "recurrent_steps",
    .about = "own kernels: the input's products of many steps, then a kernel for each step; every option",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
