/* Convolutions by cuDNN: the baseline of this device. Its first variant is what PyTorch calls: the first engine of the
 * library's heuristics that builds for the convolution alone, also with sums of lower precision; bias, residual and
 * activation behind it, by one kernel where PyTorch has one for each; and a constant weight in nhwc where the
 * activations are. The others are its other engines, and other forms (dnn.h). Asked for all in one graph the heuristics
 * rank other engines first: a convolution of 1x1 took 48 us by the first of these on an H200, and 15 us as PyTorch
 * runs it. */

#include "kernels/harness/kernels.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/own/own_activate.h"

#include <stdlib.h>

/* The first that works is the default. */
static const dnn_conv_form forms[DNN_CONV_FORMS] = {DNN_CONV_SPLIT, DNN_CONV_PACKED, DNN_CONV_AS_IS,
                                                    DNN_CONV_CONVERTED};
static const char *const form_names[DNN_CONV_FORMS] = {"split", "packed", "as_is", "converted"};

enum { ALIGN = 512 };

/* Activations converted to another layout: their place in the workspace. */
typedef struct moved {
    int place; /* in op->tensors; -1: none */
    uint64_t offset;
    int64_t channels, places, images;
    int element;
} moved;

struct scout_plan {
    dnn_plan plan;
    conv_problem p;
    dnn_conv_form form;
    int tensor_count;
    int element;          /* of the weight, in bytes */
    int64_t outer, inner; /* first two dimensions of the weight */
    moved input, residual, output;
    uint64_t own_workspace; /* offset of cuDNN's, after the converted activations */
    int constant_count;
    float constants[DNN_ACTIVATE_CONSTANTS];
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    cudnnDataType_t type;
    (void)device;
    if (!dnn_open(why)) return SCOUT_NO;
    if (!dnn_type(p.type_in, &type) || !dnn_type(p.type_weight, &type) || !dnn_type(p.type_out, &type))
        return scout_say(why, SCOUT_NO, "type", "cuDNN's convolution does not support these types");
    if (p.type_in != p.type_weight)
        return scout_say(why, SCOUT_NO, "type", "cuDNN's convolution has one type for input and weight");
    if (p.quant.zero_out || p.quant.zero_weight)
        return scout_say(why, SCOUT_NO, "type", "unsigned bytes are not supported with cuDNN");
    for (uint32_t k = 0; k < op->tensor_count; k++)
        for (uint32_t d = 0; d < op->tensors[k].rank; d++)
            if (op->tensors[k].dims[d] > INT32_MAX)
                return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds cuDNN's limit");
    return SCOUT_OK;
}

/* --- variants --- */

static dnn_offer *offer_of(const scout_op *op, scout_device *device, int64_t form, scout_why *why) {
    return dnn_offer_get(device, op, dnn_conv_build, form, why);
}

/* Parameters are "engine", first the first that the default form can build, and "form", from the default one on;
 * allows() says which form has which ranks: those of two forms are not alike. */
static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    scout_parameter *const engine = &out->parameters[0], *const form = &out->parameters[1];
    scout_answer answer = SCOUT_NO;
    int first = 0, most = 0; /* most: ranks */
    memset(out, 0, sizeof *out);
    for (int k = 0; k < DNN_CONV_FORMS; k++) {
        scout_why later;
        dnn_offer *const offer =
            dnn_conv_exists(op, forms[k]) ? offer_of(op, device, forms[k], out->count > 0 ? &later : why) : NULL;
        if (!offer) continue;
        if (offer->count > most) most = offer->count;
        if (out->count > 0) continue;
        answer = dnn_offer_domain(offer, exhaustive, out, why);
        if (answer == SCOUT_LOST || answer == SCOUT_NO_MEMORY) return answer;
        if (answer == SCOUT_OK) first = k;
    }
    if (out->count == 0) return answer;
    engine->count = 1;
    for (int rank = 0; rank < most && (exhaustive || engine->count < DNN_RANKED_ENGINES); rank++)
        if (rank != engine->values[0]) engine->values[engine->count++] = rank;
    snprintf(form->name, sizeof form->name, "form");
    form->labels = form_names + first;
    for (int k = first; k < DNN_CONV_FORMS; k++) form->values[form->count++] = forms[k];
    out->count = 2;
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    if (!dnn_conv_exists(op, (dnn_conv_form)values[1])) return 0;
    const dnn_offer *const offer = offer_of(op, device, values[1], NULL);
    return offer && dnn_offer_allows(offer, values[0]);
}

/* --- preparing --- */

static void destroy(scout_plan *plan) { dnn_plan_free(&plan->plan); }

/* Reserves workspace for a tensor in another layout. */
static moved move_of(const scout_op *op, int place, int64_t channels, uint64_t *used) {
    moved m = {.place = place, .offset = *used, .channels = channels};
    if (place < 0) return m;
    const scout_tensor *const t = &op->tensors[place];
    const int64_t elements = op_elements(t);
    m.images = t->dims[0];
    m.places = elements / m.images / channels;
    m.element = (int)(t->bytes / (uint64_t)elements);
    *used += (t->bytes + ALIGN - 1) / ALIGN * ALIGN;
    return m;
}

static void plan_moves(scout_plan *plan, const scout_op *op) {
    const conv_problem *const p = &plan->p;
    plan->input.place = plan->residual.place = plan->output.place = -1;
    if (plan->form != DNN_CONV_CONVERTED) return;
    plan->input = move_of(op, CONV_INPUT, p->cin, &plan->own_workspace);
    plan->residual = move_of(op, p->residual, p->cout, &plan->own_workspace);
    plan->output = move_of(op, CONV_OUTPUT, p->cout, &plan->own_workspace);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const scout_tensor *const weight = &op->tensors[CONV_WEIGHT];
    dnn_offer *const offer = offer_of(op, device, values[1], why);
    if (!offer) return SCOUT_NO;
    scout_plan *const plan = *out;
    plan->p = conv_problem_of(op);
    plan->form = (dnn_conv_form)values[1];
    plan->tensor_count = (int)op->tensor_count;
    plan->element = (int)(weight->bytes / (uint64_t)op_elements(weight));
    plan->outer = weight->dims[0], plan->inner = weight->dims[1];
    plan->constant_count =
        plan->form == DNN_CONV_SPLIT ? 0 : dnn_activate_constants(&plan->p.activation, plan->constants);
    if (plan->p.quant.is) plan->constant_count = 1, plan->constants[0] = (float)plan->p.quant.factor;
    plan_moves(plan, op);
    const scout_answer answer = dnn_plan_make(offer, values[0], &plan->plan, why);
    if (answer != SCOUT_OK) return answer;
    needs->packs = dnn_conv_packs(op, plan->form) ? CONV_WEIGHT + 1 : 0;
    needs->pack_bytes = needs->packs ? weight->bytes : 0;
    needs->workspace_bytes = plan->own_workspace + plan->plan.workspace;
    if (SCOUT_HAS(needs, coarse)) needs->coarse = plan->plan.coarse;
    return SCOUT_OK;
}

/* [output][input][tap] becomes [output][tap][input]. */
static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const int64_t taps = window_kernel(&plan->p.w), inner = plan->inner;
    return cuda_device_answer(kernels_transpose(packed, weight, plan->element, inner, taps, taps, inner, inner * taps,
                                                inner * taps, plan->outer, stream),
                              "repacking the weight", why);
}

/* --- launching --- */

static void *in_workspace(const scout_args *args, uint64_t offset) { return (char *)args->workspace + offset; }

/* Converts activations to nhwc in the workspace, or back, where needed. */
static scout_answer move(const moved *m, bool back, const scout_args *args, scout_why *why) {
    if (m->place < 0) return SCOUT_OK;
    void *const plain = args->tensors[m->place], *const last = in_workspace(args, m->offset);
    const int64_t rows = back ? m->places : m->channels, cols = back ? m->channels : m->places;
    return cuda_device_answer(kernels_transpose(back ? plain : last, back ? last : plain, m->element, rows, cols, cols,
                                                rows, rows * cols, rows * cols, m->images, args->stream),
                              "changing the layout of activations", why);
}

static scout_answer run(const scout_plan *plan, const scout_args *args, scout_why *why) {
    const moved *const all[] = {&plan->input, &plan->residual, &plan->output};
    int64_t uids[SCOUT_MAX_TENSORS + DNN_ACTIVATE_CONSTANTS];
    void *pointers[SCOUT_MAX_TENSORS + DNN_ACTIVATE_CONSTANTS];
    float constants[DNN_ACTIVATE_CONSTANTS];
    int n = 0;
    for (int k = 0; k < plan->tensor_count; k++) {
        if (plan->form == DNN_CONV_SPLIT && k > CONV_OUTPUT) continue;
        uids[n] = k + 1;
        pointers[n] = args->tensors[k];
        for (size_t j = 0; j < sizeof all / sizeof all[0]; j++)
            if (all[j]->place == k) pointers[n] = in_workspace(args, all[j]->offset);
        n++;
    }
    for (int k = 0; k < plan->constant_count; k++, n++) {
        constants[k] = plan->constants[k];
        uids[n] = DNN_ACTIVATE_FIRST + k;
        pointers[n] = &constants[k];
    }
    return dnn_plan_launch(&plan->plan, n, uids, pointers, in_workspace(args, plan->own_workspace), args->stream, why);
}

static scout_answer run_tail(const scout_plan *plan, const scout_args *args, scout_why *why) {
    const conv_problem *const p = &plan->p;
    const tail t = own_activate_tail(p);
    return cuda_device_answer(
        (cudaError_t)tail_launch(&t, args->tensors[CONV_OUTPUT], p->bias >= 0 ? args->tensors[p->bias] : NULL,
                                 p->residual >= 0 ? args->tensors[p->residual] : NULL, args->stream),
        "adding bias and activation", why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scout_answer answer = move(&plan->input, false, args, why);
    if (answer == SCOUT_OK) answer = move(&plan->residual, false, args, why);
    if (answer == SCOUT_OK) answer = run(plan, args, why);
    if (answer == SCOUT_OK) answer = move(&plan->output, true, args, why);
    if (answer == SCOUT_OK && plan->form == DNN_CONV_SPLIT) answer = run_tail(plan, args, why);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    char members[700];
    const char *name = "";
    for (int k = 0; k < DNN_CONV_FORMS; k++)
        if (forms[k] == plan->form) name = form_names[k];
    dnn_plan_describe(&plan->plan, members, sizeof members);
    return snprintf(json, room, "{%s,\"form\":\"%s\"}", members, name);
}

const scout_candidate dnn_conv = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cudnn_conv",
    .about = "cuDNN's convolutions: the engines of its heuristics, with bias, residual and activation",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", "int8", NULL},
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
