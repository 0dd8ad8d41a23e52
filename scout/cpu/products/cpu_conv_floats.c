/* Convolutions that no library has in their types or layout, in fp32: operands are widened (bytes less their zero
 * points, a weight of bytes times its scales), a convolution of fp32 makes the sums, and a pass behind it adds the rest
 * and rounds to the output's type. The baseline of transposed fp16 and bf16, of weights of int8 beside floats, and of
 * quantised bytes whose channels come last. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/conv.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK = 512, ALIGN = 512, TENSORS = CONV_OUTPUT + 1, MOST_FIELDS = 32 };

typedef struct product { /* in fp32, with nothing behind it */
    scout_op op;
    scout_tensor tensors[TENSORS];
    scout_field fields[MOST_FIELDS];
} product;

struct scout_plan {
    conv_problem p;
    uint32_t types[SCOUT_MAX_TENSORS];
    product asked;
    const scout_candidate *by;
    scout_plan *convolve; /* of it */
    bool by_packs;
    bool moved[TENSORS]; /* lies as fp32 at `at` of the workspace; of a constant weight that is packed it does not */
    uint64_t at[TENSORS];
};

/* --- what is asked of the library --- */

static const scout_candidate *const convolvers[] = {&cpu_conv_onednn, &cpu_conv_lowered, &cpu_conv_depthwise};

static bool is_behind(const char *name) {
    static const char *const names[] = {"bias", "residual", "quant", "weight_scales", "activation"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strncmp(name, names[k], strlen(names[k])) == 0) return true;
    return false;
}

static bool product_of(const scout_op *op, product *to) {
    memset(to, 0, sizeof *to);
    to->op = *op;
    to->op.field_count = 0, to->op.tensor_count = TENSORS;
    to->op.input = to->op.weight = to->op.output = to->op.accumulate = SCOUT_FP32;
    for (uint32_t f = 0; f < op->field_count; f++) {
        if (is_behind(op->fields[f].name)) continue;
        if (to->op.field_count == MOST_FIELDS) return false;
        to->fields[to->op.field_count++] = op->fields[f];
    }
    for (int k = 0; k < TENSORS; k++) {
        to->tensors[k] = op->tensors[k];
        to->tensors[k].type = SCOUT_FP32;
        to->tensors[k].bytes = (uint64_t)op_elements(&op->tensors[k]) * sizeof(float);
    }
    return true;
}

static void point(product *to) { to->op.fields = to->fields, to->op.tensors = to->tensors; }

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

/* Sums of bytes are whole numbers, of which fp32 has those below 2^24: enough where they are rounded to bytes. */
static bool has_types(const conv_problem *p) {
    if (is_byte(p->type_in)) return p->quant.is && is_byte(p->type_weight);
    if (!cpu_convert_known(p->type_in) || !cpu_convert_known(p->type_out)) return false;
    return p->type_in == SCOUT_FP32 ? p->scales >= 0 : p->type_weight == p->type_in || p->scales >= 0;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    scout_answer answer = SCOUT_NO;
    product asked;
    if (!has_types(&p))
        return scout_say(why, SCOUT_NO, "type", "for fp16, bf16, quantised bytes, and weights of int8 beside floats");
    if (!product_of(op, &asked)) return scout_say(why, SCOUT_NO, "feature", "the operation has too many fields");
    point(&asked);
    for (size_t k = 0; k < sizeof convolvers / sizeof convolvers[0] && answer == SCOUT_NO; k++)
        answer = convolvers[k]->supports(&asked.op, device, why);
    return answer;
}

/* --- preparing --- */

static void destroy(scout_plan *plan) {
    if (plan->convolve) scout_destroy(plan->by, plan->convolve);
}

/* The first that can, by its first variant. */
static scout_answer prepare_convolver(scout_plan *plan, scout_device *device, scout_plan_needs *needs, scout_why *why) {
    scout_domain *const domain = calloc(1, sizeof *domain); /* 100 KB */
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    scout_answer answer = SCOUT_NO;
    if (!domain) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    for (size_t k = 0; k < sizeof convolvers / sizeof convolvers[0] && answer == SCOUT_NO; k++) {
        plan->by = convolvers[k];
        answer = plan->by->supports(&plan->asked.op, device, why);
    }
    if (answer == SCOUT_OK && plan->by->domain) answer = plan->by->domain(&plan->asked.op, device, 0, domain, why);
    for (uint32_t k = 0; answer == SCOUT_OK && k < domain->count; k++) values[k] = domain->parameters[k].values[0];
    if (answer == SCOUT_OK)
        answer = scout_prepare(plan->by, &plan->asked.op, device, values, &plan->convolve, needs, why);
    free(domain);
    return answer;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)values;
    plan->p = conv_problem_of(op);
    for (uint32_t k = 0; k < op->tensor_count; k++) plan->types[k] = op->tensors[k].type;
    if (!product_of(op, &plan->asked)) return scout_say(why, SCOUT_NO, "feature", "the operation has too many fields");
    point(&plan->asked);
    const scout_answer answer = prepare_convolver(plan, device, needs, why);
    if (answer != SCOUT_OK) return answer;
    const bool constant = op->tensors[CONV_WEIGHT].role == SCOUT_WEIGHT;
    plan->by_packs = needs->packs != 0;
    if (constant && !plan->by_packs) needs->pack_bytes = plan->asked.tensors[CONV_WEIGHT].bytes;
    needs->packs = constant ? CONV_WEIGHT + 1 : 0;
    uint64_t at = (needs->workspace_bytes + ALIGN - 1) / ALIGN * ALIGN;
    for (int k = 0; k < TENSORS; k++) {
        plan->moved[k] = k == CONV_WEIGHT ? !constant : op->tensors[k].type != SCOUT_FP32;
        plan->at[k] = at;
        if (plan->moved[k]) at += (plan->asked.tensors[k].bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    needs->workspace_bytes = at;
    if (at > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for operands in fp32", (double)at / 1e6);
    return SCOUT_OK;
}

/* --- widening --- */

typedef struct widen_job {
    const scout_plan *plan;
    int tensor;
    const void *from, *scales; /* scales: of the weight's output channels, NULL: none */
    float *to;
} widen_job;

static void widen_block(const widen_job *j, int64_t at, int64_t here) {
    const conv_problem *const p = &j->plan->p;
    const uint32_t type = j->plan->types[j->tensor];
    const int zero = j->tensor == CONV_INPUT ? p->quant.zero_in : p->quant.zero_weight;
    double row[BLOCK];
    if (cpu_convert_known(type)) {
        cpu_convert_load(type, (const char *)j->from + at * cpu_convert_size(type), here, j->to + at);
        return;
    }
    cpu_number_load(type, j->from, at, 1, here, row);
    for (int64_t k = 0; k < here; k++) j->to[at + k] = (float)(row[k] - zero);
    if (!j->scales) return;
    const int64_t depth = conv_depth(p);
    for (int64_t k = 0; k < here; k++) {
        double scale;
        cpu_number_load(j->plan->types[p->scales], j->scales, (at + k) / depth, 1, 1, &scale);
        j->to[at + k] *= (float)scale;
    }
}

static void widen_share(void *context, int thread, int threads) {
    const widen_job *const j = context;
    const int64_t count = op_elements(&j->plan->asked.tensors[j->tensor]);
    int64_t from, to;
    cpu_team_share((count + BLOCK - 1) / BLOCK, thread, threads, &from, &to);
    for (int64_t b = from; b < to; b++)
        widen_block(j, b * BLOCK, count - b * BLOCK < BLOCK ? count - b * BLOCK : BLOCK);
}

static void widen(const scout_plan *plan, int tensor, void *const *tensors, float *to) {
    const bool scaled = tensor == CONV_WEIGHT && plan->p.scales >= 0;
    widen_job j = {plan, tensor, tensors[tensor], scaled ? tensors[plan->p.scales] : NULL, to};
    cpu_team_run(widen_share, &j);
}

static scout_answer pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    if (!plan->by_packs) {
        widen(plan, CONV_WEIGHT, tensors, packed);
        return SCOUT_OK;
    }
    float *const wide = malloc((size_t)plan->asked.tensors[CONV_WEIGHT].bytes);
    if (!wide) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a weight in fp32");
    widen(plan, CONV_WEIGHT, tensors, wide);
    const scout_answer answer = plan->by->pack(plan->convolve, wide, packed, stream, why);
    free(wide);
    return answer;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    void *tensors[TENSORS] = {[CONV_WEIGHT] = (void *)(uintptr_t)weight};
    if (plan->p.scales >= 0)
        return scout_say(why, SCOUT_NO, "feature", "a weight of bytes cannot be widened without its scales");
    return pack_tensors(plan, tensors, packed, stream, why);
}

/* --- what stands behind the sums --- */

typedef struct finish_job {
    const scout_plan *plan;
    void *const *tensors;
    const float *sums;
} finish_job;

/* A row of the output's storage: a channel of an image, or the channels of a place. */
static void finish_row(const finish_job *j, int64_t row, int64_t count) {
    const conv_problem *const p = &j->plan->p;
    double bias[BLOCK] = {0}, residual[BLOCK] = {0};
    for (int64_t from = 0; from < count; from += BLOCK) {
        const int64_t here = count - from < BLOCK ? count - from : BLOCK, at = row * count + from;
        if (p->bias >= 0)
            cpu_number_load(j->plan->types[p->bias], j->tensors[p->bias], p->w.last ? from : row % p->cout, p->w.last,
                            here, bias);
        if (p->residual >= 0) cpu_number_load(p->type_out, j->tensors[p->residual], at, 1, here, residual);
        for (int64_t k = 0; k < here; k++) {
            const double sum = (double)j->sums[at + k] + bias[k] + residual[k];
            const double y =
                p->quant.is ? requantize_apply(&p->quant, &p->activation, sum) : activation_apply(&p->activation, sum);
            cpu_number_store(p->type_out, j->tensors[CONV_OUTPUT], at + k, y);
        }
    }
}

static void finish_share(void *context, int thread, int threads) {
    const finish_job *const j = context;
    const conv_problem *const p = &j->plan->p;
    const int64_t places = window_out(&p->w), rows = p->n * (p->w.last ? places : p->cout);
    int64_t from, to;
    cpu_team_share(rows, thread, threads, &from, &to);
    for (int64_t row = from; row < to; row++) finish_row(j, row, p->w.last ? p->cout : places);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *tensors[TENSORS];
    for (int k = 0; k < TENSORS; k++) {
        tensors[k] = plan->moved[k] ? (char *)args->workspace + plan->at[k] : args->tensors[k];
        if (plan->moved[k] && k != CONV_OUTPUT) widen(plan, k, args->tensors, tensors[k]);
    }
    const scout_args each = {sizeof each, tensors, args->workspace, args->stream};
    const scout_answer answer = plan->by->launch(plan->convolve, &each, why);
    finish_job j = {plan, args->tensors, tensors[CONV_OUTPUT]};
    if (answer == SCOUT_OK) cpu_team_run(finish_share, &j);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    char by[400];
    const int written = scout_describe(plan->by, plan->convolve, by, sizeof by);
    return snprintf(json, room, "{\"kernel\": \"floats\", \"by\": %s}",
                    written > 0 && written < (int)sizeof by ? by : "null");
}

const scout_candidate cpu_conv_floats = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 10,
    .name = "cpu_conv_floats",
    .about = "a convolution in fp32 between own passes that widen its operands and round its sums",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .pack_tensors = pack_tensors,
    .plan_bytes = sizeof(scout_plan),
};
