/* Recurrent layers: their tensors (scout/op/recurrent.h), what cannot be expressed so, and how exact a result has to
 * be.
 */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/recurrent.h"

#include <math.h>

static const char *const known_fields[] = {"directions",
                                           "direction",
                                           "order",
                                           "activations",
                                           "activation_alpha",
                                           "activation_beta",
                                           "clip",
                                           "bias",
                                           "peephole",
                                           "initial_state",
                                           "lengths",
                                           "returns",
                                           "input_forget",
                                           "linear_before_reset",
                                           "weight_rearranged",
                                           NULL};

/* Numbers of a list of words: whether it holds this one. */
static bool lists(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = (uint32_t)rec->type;
    out->weight = rec->weight_type != DTYPE_NONE ? (uint32_t)rec->weight_type : out->input;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : out->input;
    out->accumulate = SCOUT_FP32;
    const bool known = out->input == SCOUT_FP32 || out->input == SCOUT_FP16 || out->input == SCOUT_BF16;
    if (known && out->weight == out->input && out->output == out->input) return true;
    return kind_tensors_refuse(why, "type", "recurrent layers of fp32, fp16 and bf16 are known here, all in one type");
}

static bool check_words(const scout_op *op, scout_why *why) {
    static const char *const outputs[] = {"y", "y_h", "y_c"};
    const char *direction = op_text(op, "direction"), *order = op_text(op, "order"), *returns = op_text(op, "returns");
    const int64_t directions = op_number(op, "directions", 1);
    size_t words = 0, known = 0;
    if (directions != 1 && directions != 2)
        return kind_tensors_refuse(why, "feature", "%lld directions are not covered", (long long)directions);
    if (direction && (strcmp(direction, "reverse") != 0 || directions == 2))
        return kind_tensors_refuse(why, "feature", "direction %.40s is not covered", direction);
    if (order && strcmp(order, "batch_first") != 0)
        return kind_tensors_refuse(why, "layout", "order %.40s is not known", order);
    for (const char *at = returns; at && *at; at += strcspn(at, ","), at += *at == ',') words++;
    for (size_t k = 0; k < sizeof outputs / sizeof outputs[0]; k++) known += lists(returns, outputs[k]);
    if (words == 0 || known != words || (lists(returns, "y_c") && !op_is(op, "lstm")))
        return kind_tensors_refuse(why, "feature", "returns must list what is wanted of y, y_h and (lstm) y_c");
    return true;
}

/* An activation that is steeper than 1 would make what each step is off by grow in the next. */
static bool check_activations(const scout_op *op, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    if (p.cell == RECURRENT_NONE)
        return kind_tensors_refuse(why, "feature", "activations %.60s of a %.20s are not covered",
                                   op_text(op, "activations") ? op_text(op, "activations") : "", op->what);
    for (int d = 0; d < p.directions; d++)
        for (int k = 0; k < RECURRENT_ACTIVATIONS; k++) {
            const recurrent_activation *a = &p.activations[d][k];
            if (!isfinite(a->alpha) || !isfinite(a->beta) || recurrent_steepest(a) > 1)
                return kind_tensors_refuse(why, "feature", "an activation that is steeper than 1 is not covered");
        }
    if (!(p.clip >= 0) || !isfinite(p.clip))
        return kind_tensors_refuse(why, "feature", "a clip must be a number above 0");
    if ((p.input_forget || op_number(op, "peephole", 0)) && p.cell != RECURRENT_LSTM)
        return kind_tensors_refuse(why, "feature", "only an lstm has peepholes and a forget gate");
    return true;
}

static bool check(const scout_op *op, scout_why *why) {
    int64_t all = 1;
    if (recurrent_cell_of(op->what) == RECURRENT_NONE)
        return kind_tensors_refuse(why, "feature", "a recurrent layer is an lstm, a gru or an rnn, no %.40s",
                                   op->what ? op->what : "other");
    if (!kind_fields_only(op, known_fields, why)) return false;
    if (op->rank != 4)
        return kind_tensors_refuse(why, "shape", "a recurrent layer needs [steps, batch, input, hidden]");
    for (int d = 0; d < 4; d++) {
        if (op->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension is %lld", (long long)op->shape[d]);
        all = checked_mul(all, op->shape[d]);
    }
    if (all >= (int64_t)1 << 56 || op->shape[0] >= (int64_t)1 << 31)
        return kind_tensors_refuse(why, "shape", "its tensors are larger than any memory");
    return check_words(op, why) && check_activations(op, why);
}

/* ---- tensors ---- */

/* Weights as models have them: of such a deviation that sums of `terms` of them are near 1. */
static bool add_small(kind_tensors *t, const char *name, scout_role role, int rank, const int64_t *dims,
                      int64_t terms) {
    scout_tensor *at = kind_tensors_add(t, name, role, t->op->input, rank, dims);
    if (at) at->below = kind_small(terms, at->type);
    return at != NULL;
}

static bool add_inputs(kind_tensors *t, const scout_op *op, const recurrent_problem *p) {
    const int64_t d = p->directions, wide = p->gates * p->hidden;
    const int64_t x[] = {p->batch_first ? p->batch : p->steps, p->batch_first ? p->steps : p->batch, p->input};
    const int64_t w[] = {d, wide, p->input}, r[] = {d, wide, p->hidden}, bias[] = {d, 2 * wide};
    const int64_t state[] = {p->batch_first ? p->batch : d, p->batch_first ? d : p->batch, p->hidden};
    const int64_t peephole[] = {d, 3 * p->hidden};
    if (!kind_tensors_add(t, "x", SCOUT_INPUT, op->input, 3, x) || !add_small(t, "w", SCOUT_WEIGHT, 3, w, p->input) ||
        !add_small(t, "r", SCOUT_WEIGHT, 3, r, 3 * p->hidden) ||
        (op_number(op, "bias", 0) && !kind_tensors_add(t, "bias", SCOUT_SIDE, op->input, 2, bias)))
        return false;
    if (op_number(op, "lengths", 0)) {
        scout_tensor *at = kind_tensors_add_vector(t, "lengths", SCOUT_INPUT, SCOUT_INT32, p->batch);
        if (!at) return false;
        at->below = p->steps + 1;
    }
    if (op_number(op, "initial_state", 0) &&
        (!kind_tensors_add(t, "h0", SCOUT_INPUT, op->input, 3, state) ||
         (p->cell == RECURRENT_LSTM && !kind_tensors_add(t, "c0", SCOUT_INPUT, op->input, 3, state))))
        return false;
    return !op_number(op, "peephole", 0) || add_small(t, "peephole", SCOUT_SIDE, 2, peephole, 16);
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    static const char *const outputs[] = {"y", "y_h", "y_c"};
    if (!set_types(&o->rec, out, why) || !check(out, why)) return false;
    const recurrent_problem p = recurrent_problem_of(out);
    const int64_t d = p.directions;
    const int64_t y[] = {p.batch_first ? p.batch : p.steps, p.batch_first ? p.steps : d, p.batch_first ? d : p.batch,
                         p.hidden};
    const int64_t state[] = {p.batch_first ? p.batch : d, p.batch_first ? d : p.batch, p.hidden};
    kind_tensors t = kind_tensors_of(out, a, why);
    if (!add_inputs(&t, out, &p)) return false;
    for (int k = 0; k < 3; k++)
        if (lists(op_text(out, "returns"), outputs[k]) &&
            !kind_tensors_add(&t, outputs[k], SCOUT_OUTPUT, out->output, k ? 3 : 4, k ? state : y))
            return false;
    return true;
}

/* ---- tolerance ---- */

/* Of the spread that the reference carries from step to step, in which every product, gate and state stands once as
 * what may be off by this: a product's sum walks as in kind_gemm.c, and what is kept between (gates, states, products
 * of the input) may be rounded to the type: four deviations of that. */
static double tolerance(const scout_op *op) {
    const double depth = (double)op->shape[2] + (double)op->shape[3];
    return 4 * kind_rounding(op->output) + 0x1p-24 * (16 + 6 * sqrt(depth));
}

/* Of customary activations: one for each gate, and one more for the state of an lstm. */
static double specials(const scout_op *op) {
    const recurrent_problem p = recurrent_problem_of(op);
    const double cells = (double)p.steps * (double)p.batch * (double)p.hidden * p.directions;
    return p.customary ? cells * (p.gates + (p.cell == RECURRENT_LSTM)) : 0;
}

const kind kind_recurrent = {
    .op = OP_RECURRENT,
    .build = build,
    .tolerance = tolerance,
    .specials = specials,
    .workspaces = RECURRENT_WORKSPACES,
};
