/* Convolutions of fp16 and bf16, and of bytes, by the project's own products of these (cpu_gemm_widened,
 * cpu_gemm_bytes): the windows of an image become columns (im2col), which the weight is multiplied with as it is; the
 * convolution's epilogue is the product's. The baseline on processors without library support for these types. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/conv.h"
#include "scout/op/gemm.h"

enum { MOST_FIELDS = 32, TENSORS = 5 };

typedef struct product { /* of one image and one group */
    scout_op op;
    scout_tensor tensors[TENSORS];
    scout_field fields[MOST_FIELDS];
} product;

struct scout_plan {
    conv_problem p;
    product asked;
    const scout_candidate *by;
    scout_plan *multiply; /* of it */
    bool direct;          /* no columns needed */
    uint64_t columns_bytes;
};

typedef struct columns_job {
    const scout_plan *plan;
    const char *input; /* of the group */
    char *columns;
    int64_t size; /* of an element */
    int padding;  /* the zero point of bytes */
} columns_job;

/* --- columns --- */

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

static int64_t size_of(uint32_t type) {
    return is_byte(type) ? 1 : type == SCOUT_FP16 || type == SCOUT_BF16 ? 2 : 4; /* fp32, int32 */
}

#define LAY_LOOP(type, padding)                                                                                        \
    for (int64_t k = 0; k < a->out; k++) {                                                                             \
        const int64_t at = k * a->stride + shift;                                                                      \
        ((type *)out)[k] = at >= 0 && at < a->in ? ((const type *)input)[at] : (type)(padding);                        \
    }

/* One tap along a row of the output. */
static void lay_row(const columns_job *job, const window_axis *a, int64_t tap, const char *input, char *out) {
    const int64_t shift = tap * a->dilation - a->begin; /* in = out * stride + shift */
    if (job->size == 1)
        LAY_LOOP(uint8_t, job->padding)
    else
        LAY_LOOP(uint16_t, 0)
}

static void lay_columns(void *context, int thread, int threads) {
    const columns_job *job = context;
    const conv_problem *p = &job->plan->p;
    const window_axis *d = &p->w.axes[0], *h = &p->w.axes[1], *x = &p->w.axes[2];
    const int64_t taps = window_kernel(&p->w), plane = window_in(&p->w), wide = window_out(&p->w);
    int64_t from, to;
    cpu_team_share(p->cin / p->group * taps, thread, threads, &from, &to);
    for (int64_t line = from; line < to; line++) {
        const int64_t tap = line % taps, kx = tap % x->kernel, kh = tap / x->kernel % h->kernel;
        const int64_t kd = tap / x->kernel / h->kernel;
        for (int64_t row = 0; row < d->out * h->out; row++) {
            const int64_t in_d = row / h->out * d->stride - d->begin + kd * d->dilation;
            const int64_t in_h = row % h->out * h->stride - h->begin + kh * h->dilation;
            const bool inside = in_d >= 0 && in_d < d->in && in_h >= 0 && in_h < h->in;
            char *out = job->columns + (line * wide + row * x->out) * job->size;
            if (inside)
                lay_row(job, x, kx, job->input + (line / taps * plane + (in_d * h->in + in_h) * x->in) * job->size,
                        out);
            else
                memset(out, job->padding, (size_t)(x->out * job->size)); /* of halves it is 0 */
        }
    }
}

static bool is_product(const conv_problem *p) {
    bool yes = true;
    for (int k = 0; k < WINDOW_AXES; k++) {
        const window_axis *a = &p->w.axes[k];
        yes = yes && a->kernel == 1 && a->stride == 1 && a->begin == 0 && a->end == 0;
    }
    return yes;
}

/* --- the product --- */

static void add_matrix(product *to, const char *name, scout_role role, uint32_t type, int64_t rows, int64_t cols) {
    scout_tensor *const t = &to->tensors[to->op.tensor_count++];
    *t = (scout_tensor){.size = sizeof *t, .role = (uint32_t)role, .type = type, .rank = 3};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dims[0] = 1, t->dims[1] = rows, t->dims[2] = cols;
    t->strides[0] = rows * cols, t->strides[1] = cols, t->strides[2] = 1;
    t->bytes = (uint64_t)(rows * cols * size_of(type));
}

/* Output channels by places: a convolution's vector for channels is along M. false: it has too many fields. */
static bool product_of(const scout_op *op, const conv_problem *p, product *to) {
    const int64_t m = p->cout / p->group, n = window_out(&p->w), k = conv_depth(p);
    memset(to, 0, sizeof *to);
    if (op->field_count > MOST_FIELDS) return false;
    for (uint32_t f = 0; f < op->field_count; f++) {
        if (strcmp(op->fields[f].name, "batch") == 0) return false;
        to->fields[f] = op->fields[f];
        if (strcmp(op->fields[f].name, "bias") == 0) to->fields[f].text = "m";
        if (strcmp(op->fields[f].name, "quant") == 0) to->fields[f].text = "qdq"; /* its factor is known here */
    }
    to->op = (scout_op){.size = sizeof to->op, .kind = SCOUT_GEMM, .layout = "nn", .key = op->key, .rank = 3};
    to->op.shape[0] = m, to->op.shape[1] = n, to->op.shape[2] = k;
    to->op.input = p->type_weight, to->op.weight = p->type_in, to->op.output = p->type_out; /* it stands on the left */
    to->op.accumulate = op->accumulate;
    to->op.workspace_limit = op->workspace_limit;
    to->op.fields = to->fields, to->op.field_count = op->field_count;
    to->op.tensors = to->tensors;
    add_matrix(to, "a", SCOUT_INPUT, p->type_weight, m, k);
    add_matrix(to, "b", SCOUT_INPUT, p->type_in, k, n);
    add_matrix(to, "c", SCOUT_OUTPUT, p->type_out, m, n);
    if (p->bias >= 0) {
        add_matrix(to, "bias", SCOUT_SIDE, op->tensors[p->bias].type, m, 1);
        to->tensors[3].rank = 1, to->tensors[3].dims[0] = m, to->tensors[3].strides[0] = 1;
    }
    if (p->residual >= 0) add_matrix(to, "residual", SCOUT_INPUT, p->type_out, m, n);
    return true;
}

/* --- the candidate --- */

static uint64_t columns_of(const conv_problem *p) {
    const uint64_t bytes = (uint64_t)conv_depth(p) * (uint64_t)window_out(&p->w) * (uint64_t)size_of(p->type_in);
    return is_product(p) ? 0 : (bytes + 511) / 512 * 512;
}

static const scout_candidate *multiplier(const conv_problem *p) {
    return is_byte(p->type_in) ? &cpu_gemm_bytes : &cpu_gemm_widened;
}

static scout_answer covers(const scout_op *op, const conv_problem *p, product *asked, scout_why *why) {
    const bool halves = p->type_in == SCOUT_FP16 || p->type_in == SCOUT_BF16;
    if (p->scales >= 0 || (!halves && !(is_byte(p->type_in) && is_byte(p->type_weight))))
        return scout_say(why, SCOUT_NO, "type", "convolves fp16, bf16 and bytes");
    if (p->transposed) return scout_say(why, SCOUT_NO, "feature", "transposed convolutions are not supported");
    if (p->w.last) return scout_say(why, SCOUT_NO, "layout", "channels must come before space");
    if (!product_of(op, p, asked)) return scout_say(why, SCOUT_NO, "feature", "the operation has too many fields");
    if (columns_of(p) > op->workspace_limit / 2)
        return scout_say(why, SCOUT_NO, "memory", "needs %.1f MB of workspace for an image",
                         (double)columns_of(p) / 1e6);
    asked->op.workspace_limit = op->workspace_limit - columns_of(p);
    return multiplier(p)->supports(&asked->op, NULL, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    product asked;
    (void)device;
    return covers(op, &p, &asked, why);
}

static void destroy(scout_plan *plan) {
    if (plan->multiply) scout_destroy(plan->by, plan->multiply);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    plan->p = conv_problem_of(op);
    plan->by = multiplier(&plan->p);
    scout_answer answer = covers(op, &plan->p, &plan->asked, why);
    plan->asked.op.fields = plan->asked.fields, plan->asked.op.tensors = plan->asked.tensors;
    if (answer == SCOUT_OK)
        answer = scout_prepare(plan->by, &plan->asked.op, device, values, &plan->multiply, needs, why);
    if (answer != SCOUT_OK) return answer;
    plan->direct = is_product(&plan->p);
    plan->columns_bytes = columns_of(&plan->p);
    needs->workspace_bytes += plan->columns_bytes;
    return SCOUT_OK;
}

static char *at(void *base, int64_t element, int64_t size) { return (char *)base + element * size; }

static scout_answer convolve(scout_plan *plan, const scout_args *args, int64_t image, int64_t group, scout_why *why) {
    const conv_problem *p = &plan->p;
    const int64_t out_size = size_of(p->type_out), in_size = size_of(p->type_in);
    const int64_t input = image * p->in_n + group * (p->cin / p->group) * p->in_c,
                  output = image * p->out_n + group * (p->cout / p->group) * p->out_c;
    void *const *t = args->tensors;
    columns_job job = {plan, at(t[CONV_INPUT], input, in_size), args->workspace, in_size, p->quant.zero_in};
    void *operands[TENSORS] = {at(t[CONV_WEIGHT], group * p->w_g, size_of(p->type_weight)), job.columns,
                               at(t[CONV_OUTPUT], output, out_size)};
    int count = 3;
    if (plan->direct)
        operands[GEMM_B] = at(t[CONV_INPUT], input, in_size);
    else
        cpu_team_run(lay_columns, &job);
    if (p->bias >= 0)
        operands[count++] = at(t[p->bias], group * (p->cout / p->group), size_of(plan->asked.tensors[3].type));
    if (p->residual >= 0) operands[count++] = at(t[p->residual], output, out_size);
    const scout_args each = {sizeof each, operands, (char *)args->workspace + plan->columns_bytes, args->stream};
    return plan->by->launch(plan->multiply, &each, why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (int64_t image = 0; image < plan->p.n && answer == SCOUT_OK; image++)
        for (int64_t g = 0; g < plan->p.group && answer == SCOUT_OK; g++) answer = convolve(plan, args, image, g, why);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"widened\", \"columns\": \"%s\", \"threads\": \"%s\"}",
                    plan->direct ? "the input" : "im2col", cpu_team_about());
}

const scout_candidate cpu_conv_widened = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 15,
    .name = "cpu_conv_widened",
    .about = "windows laid out as columns (im2col), multiplied by the own products of fp16, bf16 and bytes; nchw",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
