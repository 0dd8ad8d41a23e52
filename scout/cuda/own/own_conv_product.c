/* A convolution with non-overlapping windows as a product by cuBLASLt: "conv_product". One copy makes each window a row
 * (or a column) of a matrix; a 1x1 window with a stride of 1 needs no copy. Overlapping windows would be copied several
 * times, so they are left to other candidates. */
#include "kernels/pass/pass_kernels.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/lt/lt_product.h"
#include "scout/cuda/own/own_activate.h"

/* The layout of windows, and the extent of a product. Images in nhwc, or with one output place, are one product with
 * the right layout (ALL). Others have a product for each image, with windows in columns or in rows, or one product and
 * a transpose after it. These are the parameter "form". */
typedef enum form { COLUMNS, ROWS, TURNED, ALL, FORMS } form;
static const char *const form_names[] = {"columns", "rows", "turned", "all"};

/* Bias, residual and activation, where there are any: by the library, or by a kernel after it. */
enum { WITHIN, APART, BEHINDS };
static const char *const behind_names[] = {"within", "apart"};

enum { ALGO, FORM, BEHIND }; /* parameters */
enum { ALIGNMENT = 256, PIECE = 16, LIBRARY_BYTES = 32 << 20 };

typedef struct shape {
    conv_problem p;
    form form;
    int behind;
    int element; /* bytes, of input and weight */
    int64_t depth, places;
    bool unfolds, packs, more; /* more: there is an epilogue */
    move_copy unfold, turn, pack;
    uint64_t windows_bytes, sums_bytes;
} shape;

struct scout_plan {
    shape s;
    scout_plan *multiply; /* of lt_candidate */
    uint64_t windows_at, sums_at;
};

/* --- copies: dimensions from the innermost one of the result on --- */

static void copy_add(move_copy *c, int64_t count, int64_t from) {
    const int last = c->rank - 1;
    const int64_t to = c->rank ? c->to_strides[last] * c->dims[last] : 1;
    if (count == 1) return;
    if (c->rank && c->from_strides[last] * c->dims[last] == from) {
        c->dims[last] *= count;
        return;
    }
    c->dims[c->rank] = count, c->from_strides[c->rank] = from, c->to_strides[c->rank] = to;
    c->rank++;
}

/* Whether the copy changes the layout; a copy of one element has a dimension, too. */
static bool copy_end(move_copy *c) {
    if (c->rank == 0) c->rank = 1, c->dims[0] = c->from_strides[0] = c->to_strides[0] = 1;
    return c->rank > 1 || c->from_strides[0] != 1;
}

/* One window: in the weight's layout, or with its channels last where the weight is packed so. */
static void copy_window(move_copy *c, const conv_problem *p, const int64_t *steps) {
    if (p->w.last) copy_add(c, p->cin, p->in_c);
    for (int k = WINDOW_AXES - 1; k >= 0; k--) copy_add(c, p->w.axes[k].kernel, p->w.axes[k].dilation * steps[k]);
    if (!p->w.last) copy_add(c, p->cin, p->in_c);
}

static void copy_places(move_copy *c, const conv_problem *p, const int64_t *steps) {
    for (int k = WINDOW_AXES - 1; k >= 0; k--) copy_add(c, p->w.axes[k].out, p->w.axes[k].stride * steps[k]);
}

static void copies_of(shape *s) {
    const conv_problem *const p = &s->p;
    const int64_t taps = window_kernel(&p->w);
    int64_t steps[WINDOW_AXES];
    s->unfold.size = s->turn.size = s->pack.size = s->element;
    for (int k = WINDOW_AXES - 1; k >= 0; k--)
        steps[k] = k == WINDOW_AXES - 1 ? p->in_step : steps[k + 1] * p->w.axes[k + 1].in;
    if (s->form == COLUMNS) copy_places(&s->unfold, p, steps);
    copy_window(&s->unfold, p, steps);
    if (s->form != COLUMNS) copy_places(&s->unfold, p, steps);
    copy_add(&s->unfold, p->n, p->in_n);
    s->unfolds = copy_end(&s->unfold);
    s->turn.size = p->type_out == SCOUT_FP32 ? 4 : 2;
    copy_add(&s->turn, s->places, p->cout);
    copy_add(&s->turn, p->cout, 1);
    copy_add(&s->turn, p->n, p->cout * s->places);
    copy_end(&s->turn);
    copy_add(&s->pack, p->cin, taps);
    copy_add(&s->pack, taps, 1);
    copy_add(&s->pack, p->cout, p->cin * taps);
    s->packs = copy_end(&s->pack) && p->w.last;
}

/* --- what can be done, and how --- */

static int element_of(const conv_problem *p) { return p->type_in == SCOUT_FP32 ? 4 : 2; }

static bool form_exists(const conv_problem *p, int element, form f) {
    const int64_t taps = window_kernel(&p->w), row = p->w.axes[WINDOW_AXES - 1].kernel * element;
    const bool all = p->w.last || window_out(&p->w) == 1;
    if (f == ALL || all) return f == ALL && all;
    return f == COLUMNS ? row < PIECE : taps > 1; /* in rows pieces are as wide as a window's */
}

static bool apart_from_each_other(const window_axis *a) {
    return a->begin == 0 && a->end == 0 && (a->kernel == 1 || a->out == 1 || window_reach(a) <= a->stride);
}

static scout_answer covers(const scout_op *op, const conv_problem *p, scout_why *why) {
    if (p->transposed || p->group != 1)
        return scout_say(why, SCOUT_NO, "feature", "a transposed or grouped convolution is not one product");
    if (p->type_in != SCOUT_FP32 && p->type_in != SCOUT_FP16 && p->type_in != SCOUT_BF16)
        return scout_say(why, SCOUT_NO, "type", "conv_product is for fp32, fp16 and bf16");
    if (p->type_weight != p->type_in || p->quant.is)
        return scout_say(why, SCOUT_NO, "type", "conv_product has one type for input and weight");
    for (int k = 0; k < WINDOW_AXES; k++)
        if (!apart_from_each_other(&p->w.axes[k]))
            return scout_say(why, SCOUT_NO, "shape", "windows that overlap or are padded are not supported");
    if (p->w.last && window_kernel(&p->w) > 1 && p->cin > 1 && op->tensors[CONV_WEIGHT].role != SCOUT_WEIGHT)
        return scout_say(why, SCOUT_NO, "layout", "a weight that is not constant cannot be packed");
    return SCOUT_OK;
}

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static uint64_t library_bytes(const scout_op *op) {
    return op->workspace_limit / 4 < LIBRARY_BYTES ? op->workspace_limit / 4 : LIBRARY_BYTES;
}

static scout_answer shape_of(const scout_op *op, form f, int behind, shape *s, scout_why *why) {
    *s = (shape){.p = conv_problem_of(op), .form = f, .behind = behind};
    const conv_problem *const p = &s->p;
    const scout_answer answer = covers(op, p, why);
    if (answer != SCOUT_OK) return answer;
    s->element = element_of(p);
    s->depth = conv_depth(p), s->places = window_out(&p->w);
    s->more = p->bias >= 0 || p->residual >= 0 || p->activation.function != ACTIVATION_PLAIN;
    if (!form_exists(p, s->element, f))
        return scout_say(why, SCOUT_NO, "layout", "this form does not fit the convolution");
    if (behind == WITHIN && f == TURNED && p->residual >= 0)
        return scout_say(why, SCOUT_NO, "epilogue",
                         "a residual does not have the layout of the product before its transpose");
    copies_of(s);
    const uint64_t rows = (uint64_t)(p->n * s->places);
    s->windows_bytes = s->unfolds ? aligned(rows * (uint64_t)s->depth * (uint64_t)s->element) : 0;
    s->sums_bytes = f == TURNED ? aligned(rows * (uint64_t)p->cout * (uint64_t)s->turn.size) : 0;
    if (s->windows_bytes + s->sums_bytes > op->workspace_limit - library_bytes(op) - ALIGNMENT)
        return scout_say(why, SCOUT_NO, "memory", "the windows of this convolution do not fit the workspace");
    return SCOUT_OK;
}

/* Outputs of all images are the rows of one product; or those of an image are columns, and channels are rows. */
static void product_of(const scout_op *op, const shape *s, lt_product *out) {
    const conv_problem *const p = &s->p;
    const int64_t k = s->depth, each = p->cout * s->places;
    const bool one = s->form == ALL || s->form == TURNED, columns = s->form == COLUMNS;
    const int64_t rows = one ? p->n * s->places : s->places, many[] = {p->cout, rows, k}, all[] = {rows, p->cout, k};
    const lt_product_matrix weight = {p->type_in, p->cout, k, k, 0};
    const lt_product_matrix sums = one ? (lt_product_matrix){p->type_out, rows, p->cout, p->cout, 0}
                                       : (lt_product_matrix){p->type_out, p->cout, rows, rows, each};
    const int64_t stride = one ? 0 : rows * k;
    const lt_product_matrix windows = columns ? (lt_product_matrix){p->type_in, k, rows, rows, stride}
                                              : (lt_product_matrix){p->type_in, rows, k, k, stride};
    lt_product_begin(out, op, columns ? "nn" : "nt", one ? all : many, one ? 1 : p->n, library_bytes(op));
    lt_product_add(out, "a", one ? &windows : &weight);
    lt_product_add(out, "b", one ? &weight : &windows);
    lt_product_add(out, "c", &sums);
    if (s->behind == APART) return;
    lt_product_behind(out, op, p->bias < 0 ? NULL : one ? "n" : "m", p->cout);
    if (p->residual >= 0) lt_product_add(out, "residual", &sums);
}

/* --- the candidate --- */

/* Whether the library takes this epilogue. */
static scout_answer asks(const scout_op *op, scout_device *device, form f, int behind, lt_product *out,
                         scout_why *why) {
    shape s;
    const scout_answer answer = shape_of(op, f, behind, &s, why);
    if (answer != SCOUT_OK) return answer;
    if (behind == APART && !s.more) return scout_say(why, SCOUT_NO, "epilogue", "no epilogue to fuse");
    product_of(op, &s, out);
    return lt_candidate.supports(&out->op, device, why);
}

/* The product alone: its epilogue has a kernel of its own where the library has none. */
static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op->kind != SCOUT_CONV) return scout_say(why, SCOUT_NO, "feature", "only convolutions");
    const conv_problem p = conv_problem_of(op);
    scout_answer answer = covers(op, &p, why);
    for (int f = 0; f < FORMS && answer == SCOUT_OK; f++) {
        lt_product asked;
        shape s;
        if (!form_exists(&p, element_of(&p), (form)f)) continue;
        answer = shape_of(op, (form)f, APART, &s, why);
        return answer == SCOUT_OK ? asks(op, device, (form)f, s.more ? APART : WITHIN, &asked, why) : answer;
    }
    return answer;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    uint32_t most = 0, forms = 0, behinds = 0;
    scout_answer answer = SCOUT_NO;
    lt_product each;
    for (int k = 0; k < FORMS * BEHINDS; k++) {
        const int f = k / BEHINDS, behind = k % BEHINDS;
        if (asks(op, device, (form)f, behind, &each, NULL) != SCOUT_OK) continue;
        answer = lt_candidate.domain(&each.op, device, exhaustive, out, why);
        if (answer != SCOUT_OK && answer != SCOUT_NO) return answer;
        if (answer == SCOUT_NO) continue;
        if (out->parameters[0].count > most) most = out->parameters[0].count;
        forms |= 1U << f, behinds |= 1U << behind;
    }
    if (most == 0) return answer; /* why is the library's */
    lt_product_algos(&out->parameters[ALGO], most, exhaustive);
    lt_product_choices(&out->parameters[FORM], "form", form_names, forms);
    lt_product_choices(&out->parameters[BEHIND], "behind", behind_names, behinds);
    out->count = 3;
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    lt_product asked;
    return asks(op, device, (form)values[FORM], (int)values[BEHIND], &asked, NULL) == SCOUT_OK &&
           lt_candidate.allows(&asked.op, device, values);
}

static void destroy(scout_plan *plan) {
    if (plan->multiply) scout_destroy(&lt_candidate, plan->multiply);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    shape made;
    lt_product asked;
    scout_answer answer = shape_of(op, (form)values[FORM], (int)values[BEHIND], &made, why);
    if (answer != SCOUT_OK) return answer;
    scout_plan *const plan = *out;
    plan->s = made;
    const shape *const s = &plan->s;
    product_of(op, s, &asked);
    answer = scout_prepare(&lt_candidate, &asked.op, device, values, &plan->multiply, needs, why);
    if (answer != SCOUT_OK) return answer;
    plan->windows_at = aligned(needs->workspace_bytes);
    plan->sums_at = plan->windows_at + s->windows_bytes;
    needs->workspace_bytes = plan->sums_at + s->sums_bytes;
    needs->packs = s->packs ? CONV_WEIGHT + 1 : 0;
    needs->pack_bytes = s->packs ? op->tensors[CONV_WEIGHT].bytes : 0;
    return SCOUT_OK;
}

/* [output][input][tap] becomes [output][tap][input]. */
static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    return cuda_device_answer((cudaError_t)move_copy_launch(&plan->s.pack, weight, packed, stream),
                              "repacking the weight", why);
}

static scout_answer multiply(const scout_plan *plan, const scout_args *args, scout_why *why) {
    const shape *const s = &plan->s;
    const conv_problem *const p = &s->p;
    const bool one = s->form == ALL || s->form == TURNED;
    uint8_t *const workspace = args->workspace;
    void *const windows = s->unfolds ? workspace + plan->windows_at : args->tensors[CONV_INPUT];
    void *const weight = args->tensors[CONV_WEIGHT];
    void *tensors[SCOUT_MAX_TENSORS] = {one ? windows : weight, one ? weight : windows,
                                        s->form == TURNED ? workspace + plan->sums_at : args->tensors[CONV_OUTPUT]};
    int count = 3;
    if (s->behind == WITHIN && p->bias >= 0) tensors[count++] = args->tensors[p->bias];
    if (s->behind == WITHIN && p->residual >= 0) tensors[count] = args->tensors[p->residual];
    const scout_args each = {sizeof each, tensors, args->workspace, args->stream};
    return lt_candidate.launch(plan->multiply, &each, why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const shape *const s = &plan->s;
    const conv_problem *const p = &s->p;
    uint8_t *const workspace = args->workspace;
    void *const output = args->tensors[CONV_OUTPUT];
    int error = 0;
    if (s->unfolds)
        error = move_copy_launch(&s->unfold, args->tensors[CONV_INPUT], workspace + plan->windows_at, args->stream);
    if (error) return cuda_device_answer((cudaError_t)error, "unfolding the input", why);
    const scout_answer answer = multiply(plan, args, why);
    if (answer != SCOUT_OK) return answer;
    if (s->form == TURNED) error = move_copy_launch(&s->turn, workspace + plan->sums_at, output, args->stream);
    if (!error && s->behind == APART) {
        const tail t = own_activate_tail(p);
        error = tail_launch(&t, output, p->bias >= 0 ? args->tensors[p->bias] : NULL,
                            p->residual >= 0 ? args->tensors[p->residual] : NULL, args->stream);
    }
    return cuda_device_answer((cudaError_t)error, "the epilogue of a product", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const shape *const s = &plan->s;
    char members[120];
    snprintf(members, sizeof members, "\"form\":\"%s\",\"windows\":\"%s\",\"behind\":\"%s\"", form_names[s->form],
             s->unfolds ? move_copy_mode(&s->unfold) : "in place", behind_names[s->behind]);
    return lt_product_describe(plan->multiply, members, json, room);
}

const scout_candidate own_conv_product = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .priority = 90,
    .name = "conv_product",
    .about = "a convolution whose windows do not overlap as cuBLASLt's product of unfolded windows",
    .library = "cublaslt",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
