/* Recurrent layers step by step, in fp32: the input's products of many steps are one product (by OpenBLAS, where it is
 * here), then each step has its product with the state and its gates. Threads share out the hidden units, and all gates
 * of a unit are one thread's. Weights in half types are packed as fp32. The baseline of what oneDNN lacks: lengths,
 * peepholes, clipping, other activations, fp16. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_openblas.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/kernels/cpu_recurrent_gates.h"
#include "scout/cpu/kernels/cpu_rows.h"

#include <limits.h>
#include <stdbool.h>

enum { FEW_ROWS = 4 }; /* for fewer a product gains nothing: the weight is read once in any case */

static const char *const ways[] = {"dots", "openblas"}; /* how the state is multiplied */

/* Places in the workspace, in floats. */
typedef struct layout {
    int64_t x, gates, back, h, next_h, c, reset, bias, peephole, all;
} layout;

struct scout_plan {
    recurrent_problem p;
    const cpu_openblas *lib; /* NULL: not here, or not asked for */
    const cpu_recurrent_kernels *kernels;
    const cpu_rows *rows;
    bool blas_state; /* the state is multiplied by the library too */
    bool half, gathers;
    int64_t wide;  /* gates of a row */
    int64_t chunk; /* steps whose input is multiplied at once */
    layout at;
};

typedef struct job {
    const scout_plan *plan;
    void *const *tensors;
    float *room;
    const float *w, *r; /* of this direction */
    const float *x;     /* rows of this chunk, step by step */
    const float *state; /* that is multiplied */
    int direction, first_gate, last_gate;
    int64_t step, from; /* the step; the first one of its chunk */
    int64_t steps;      /* of the chunk */
} job;

static int64_t length_of(const job *j, int64_t row) {
    const recurrent_problem *p = &j->plan->p;
    return recurrent_length(p, p->lengths >= 0 ? j->tensors[p->lengths] : NULL, row);
}

static const void *element(const scout_plan *plan, const void *data, int64_t at) {
    return (const char *)data + at * (plan->half ? 2 : 4);
}

static void *place(const scout_plan *plan, void *data, int64_t at) { return (char *)data + at * (plan->half ? 2 : 4); }

/* ---- products ---- */

/* Rows of x in the order of the steps; what no sequence is so long for is 0. */
static void gather(void *context, int thread, int threads) {
    const job *j = context;
    const recurrent_problem *p = &j->plan->p;
    int64_t from, to;
    cpu_team_share(j->steps * p->batch, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        const int64_t row = k % p->batch, step = j->from + k / p->batch, length = length_of(j, row);
        float *out = j->room + j->plan->at.x + k * p->input;
        if (step >= length) {
            memset(out, 0, (size_t)p->input * sizeof *out);
            continue;
        }
        const int64_t at = recurrent_time(p, j->direction, step, length) * p->x_step + row * p->x_row;
        j->plan->rows->load(p->type, element(j->plan, j->tensors[RECURRENT_X], at), p->input, out);
    }
}

static void multiply_input_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_plan *plan = j->plan;
    const int64_t input = plan->p.input;
    int64_t from, to;
    cpu_team_share(plan->wide, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++)
        plan->kernels->dots(j->w + k * input, j->x, input, j->steps * plan->p.batch, input,
                            j->room + plan->at.gates + k, plan->wide);
}

static void multiply_by_library(const scout_plan *plan, const float *x, int64_t rows, int64_t depth, const float *w,
                                int64_t wide, float *out) {
    plan->lib->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)wide, (int)depth, 1.0F, x, (int)depth, w,
                     (int)depth, 0.0F, out, (int)plan->wide);
}

static void multiply_input(job *j) {
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t rows = j->steps * p->batch;
    j->x = (const float *)j->tensors[RECURRENT_X] + j->from * p->batch * p->input;
    if (plan->gathers) {
        cpu_team_run(gather, j);
        j->x = j->room + plan->at.x;
    }
    if (plan->lib && rows >= FEW_ROWS)
        multiply_by_library(plan, j->x, rows, p->input, j->w, plan->wide, j->room + plan->at.gates);
    else
        cpu_team_run(multiply_input_share, j);
}

/* The state's product with this thread's units of the current gates. */
static void multiply_state(const job *j, int64_t from, int64_t to) {
    const scout_plan *plan = j->plan;
    const int64_t hidden = plan->p.hidden;
    for (int gate = j->first_gate; gate < j->last_gate; gate++)
        for (int64_t unit = gate * hidden + from; unit < gate * hidden + to; unit++)
            plan->kernels->dots(j->r + unit * hidden, j->state, hidden, plan->p.batch, hidden,
                                j->room + plan->at.back + unit, plan->wide);
}

/* ---- a step ---- */

static void write_y(const job *j, int64_t row, int64_t from, int64_t count, bool over) {
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t time = over ? j->step : recurrent_time(p, j->direction, j->step, length_of(j, row));
    if (p->y < 0) return;
    void *y = place(plan, j->tensors[p->y], time * p->y_step + j->direction * p->y_direction + row * p->y_row + from);
    if (over)
        memset(y, 0, (size_t)count * (plan->half ? 2 : 4));
    else
        plan->rows->store(p->type, j->room + plan->at.next_h + row * p->hidden + from, count, y);
}

/* Past the end of its sequence a row keeps its state, and its y is 0. */
static void step_share(void *context, int thread, int threads) {
    const job *j = context;
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    const bool second = j->first_gate > 0, last = second || p->cell != RECURRENT_GRU || p->linear_before_reset;
    int64_t from, to;
    cpu_team_share(p->hidden, thread, threads, &from, &to);
    if (from == to) return;
    if (!plan->blas_state) multiply_state(j, from, to);
    for (int64_t row = 0; row < p->batch; row++) {
        const int64_t line = ((j->step - j->from) * p->batch + row) * plan->wide + from, at = row * p->hidden + from;
        const bool over = j->step >= length_of(j, row);
        const cpu_recurrent_gates g = {
            .p = p,
            .kernels = plan->kernels,
            .functions = p->activations[j->direction],
            .wide = plan->wide,
            .count = to - from,
            .input = j->room + plan->at.gates + line,
            .back = j->room + plan->at.back + row * plan->wide + from,
            .bias = p->bias < 0 ? NULL : j->room + plan->at.bias + j->direction * 2 * plan->wide + from,
            .peephole = p->peephole < 0 ? NULL : j->room + plan->at.peephole + j->direction * 3 * p->hidden + from,
            .before = j->room + plan->at.h + at,
            .h = j->room + plan->at.next_h + at,
            .c = j->room + plan->at.c + at,
            .reset = j->room + plan->at.reset + at,
        };
        if (over)
            memcpy(g.h, g.before, (size_t)g.count * sizeof(float));
        else
            cpu_recurrent_gates_run(&g, second);
        if (last) write_y(j, row, from, g.count, over);
    }
}

static void run_gates(job *j, int first, int last, const float *state) {
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    j->first_gate = first, j->last_gate = last, j->state = state;
    if (plan->blas_state)
        multiply_by_library(plan, state, p->batch, p->hidden, j->r + first * p->hidden * p->hidden,
                            (last - first) * p->hidden, j->room + plan->at.back + first * p->hidden);
    cpu_team_run(step_share, j);
}

static void run_step(job *j) {
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    const bool twice = p->cell == RECURRENT_GRU && !p->linear_before_reset;
    float *h = j->room + plan->at.h;
    run_gates(j, 0, twice ? p->gates - 1 : p->gates, h);
    if (twice) run_gates(j, p->gates - 1, p->gates, j->room + plan->at.reset);
    memcpy(h, j->room + plan->at.next_h, (size_t)(p->batch * p->hidden) * sizeof *h);
}

/* ---- all ---- */

static void load_state(const job *j, int tensor, int64_t at) {
    const recurrent_problem *p = &j->plan->p;
    float *to = j->room + at;
    for (int64_t row = 0; row < p->batch; row++, to += p->hidden) {
        const int64_t from = j->direction * p->state_direction + row * p->state_row;
        if (tensor < 0)
            memset(to, 0, (size_t)p->hidden * sizeof *to);
        else
            j->plan->rows->load(p->type, element(j->plan, j->tensors[tensor], from), p->hidden, to);
    }
}

static void store_state(const job *j, int tensor, int64_t at) {
    const recurrent_problem *p = &j->plan->p;
    for (int64_t row = 0; tensor >= 0 && row < p->batch; row++) {
        const int64_t to = j->direction * p->state_direction + row * p->state_row;
        j->plan->rows->store(p->type, j->room + at + row * p->hidden, p->hidden,
                             place(j->plan, j->tensors[tensor], to));
    }
}

static void run_direction(job *j) {
    const scout_plan *plan = j->plan;
    const recurrent_problem *p = &plan->p;
    const int64_t sized = plan->wide * p->input, packed = p->directions * sized;
    j->w = (const float *)j->tensors[RECURRENT_W] + j->direction * sized;
    j->r = (plan->half ? (const float *)j->tensors[RECURRENT_W] + packed : (const float *)j->tensors[RECURRENT_R]) +
           j->direction * plan->wide * p->hidden;
    load_state(j, p->h0, plan->at.h);
    load_state(j, p->c0, plan->at.c);
    for (j->from = 0; j->from < p->steps; j->from += plan->chunk) {
        j->steps = p->steps - j->from < plan->chunk ? p->steps - j->from : plan->chunk;
        multiply_input(j);
        for (j->step = j->from; j->step < j->from + j->steps; j->step++) run_step(j);
    }
    store_state(j, p->y_h, plan->at.h);
    store_state(j, p->y_c, plan->at.c);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const recurrent_problem *p = &plan->p;
    job j = {.plan = plan, .tensors = args->tensors, .room = args->workspace};
    (void)why;
    if (p->bias >= 0)
        plan->rows->load(p->type, args->tensors[p->bias], 2 * p->directions * plan->wide, j.room + plan->at.bias);
    if (p->peephole >= 0)
        plan->rows->load(p->type, args->tensors[p->peephole], 3 * p->directions * p->hidden,
                         j.room + plan->at.peephole);
    for (j.direction = 0; j.direction < p->directions; j.direction++) run_direction(&j);
    return SCOUT_OK;
}

/* ---- the candidate ---- */

static int64_t take(layout *at, int64_t floats) {
    const int64_t from = at->all;
    at->all += (floats + 15) / 16 * 16;
    return from;
}

/* The workspace for so many steps at once. */
static layout layout_of(const scout_plan *plan, int64_t chunk) {
    const recurrent_problem *p = &plan->p;
    const int64_t rows = chunk * p->batch, state = p->batch * p->hidden;
    layout at = {.all = 0};
    at.x = take(&at, plan->gathers ? rows * p->input : 0);
    at.gates = take(&at, rows * plan->wide);
    at.back = take(&at, p->batch * plan->wide);
    at.h = take(&at, state), at.next_h = take(&at, state), at.c = take(&at, state), at.reset = take(&at, state);
    at.bias = take(&at, p->bias < 0 ? 0 : 2 * p->directions * plan->wide);
    at.peephole = take(&at, p->peephole < 0 ? 0 : 3 * p->directions * p->hidden);
    return at;
}

static int64_t most_floats(const scout_op *op) { return (int64_t)(op->workspace_limit / sizeof(float)); }

static scout_plan plan_of(const scout_op *op) {
    scout_plan plan = {.p = recurrent_problem_of(op), .kernels = cpu_recurrent_kernels_best(), .rows = cpu_rows_best()};
    const recurrent_problem *p = &plan.p;
    plan.half = p->type != SCOUT_FP32;
    plan.gathers = plan.half || p->batch_first || p->lengths >= 0 || p->reverse || p->directions > 1;
    plan.wide = p->gates * p->hidden;
    plan.chunk = p->steps;
    while (plan.chunk > 1 && layout_of(&plan, plan.chunk).all > most_floats(op) / RECURRENT_WORKSPACES)
        plan.chunk = (plan.chunk + 1) / 2;
    plan.at = layout_of(&plan, plan.chunk);
    return plan;
}

static bool fits_library(const recurrent_problem *p) {
    return p->steps * p->batch < INT_MAX && p->input < INT_MAX && p->gates * p->hidden < INT_MAX;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_plan plan = plan_of(op);
    (void)device;
    if (plan.at.all <= most_floats(op)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for one step",
                     (double)plan.at.all * sizeof(float) / 1e6);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    (void)device, (void)exhaustive, (void)why;
    const uint32_t count = cpu_openblas_get(NULL) && fits_library(&p) ? 2 : 1;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "state", .count = count, .values = {0, 1}, .labels = ways};
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)why;
    scout_plan *const plan = *out;
    *plan = plan_of(op);
    const recurrent_problem *p = &plan->p;
    plan->lib = fits_library(p) ? cpu_openblas_get(NULL) : NULL;
    plan->blas_state = plan->lib && values && values[0] == 1;
    needs->workspace_bytes = (uint64_t)plan->at.all * sizeof(float);
    needs->packs = plan->half ? RECURRENT_W + 1 : 0;
    needs->pack_bytes =
        plan->half ? (uint64_t)(p->directions * plan->wide * (p->input + p->hidden)) * sizeof(float) : 0;
    return SCOUT_OK;
}

/* Both weights as fp32, one behind the other. */
static scout_answer pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    const recurrent_problem *p = &plan->p;
    const int64_t w = p->directions * plan->wide * p->input, r = p->directions * plan->wide * p->hidden;
    (void)stream, (void)why;
    plan->rows->load(p->type, tensors[RECURRENT_W], w, packed);
    plan->rows->load(p->type, tensors[RECURRENT_R], r, (float *)packed + w);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\": \"recurrent_steps\", \"vectors\": \"%s\", \"input\": \"%s\", \"state\": \"%s\", "
                    "\"chunk\": %lld, \"threads\": \"%s\"}",
                    plan->kernels->name, plan->lib ? "openblas" : "dots", ways[plan->blas_state],
                    (long long)plan->chunk, cpu_team_about());
}

const scout_candidate cpu_recurrent_steps = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_RECURRENT,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* the baseline where the library has none */
    .priority = 60,
    .name = "cpu_recurrent_steps",
    .about = "one product for the input of all steps, then the state's and the gates step by step; fp32 arithmetic",
    .library = "openblas",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
    .pack_tensors = pack_tensors,
};
