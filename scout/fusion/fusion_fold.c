/* A product or a convolution that does what follows it in passing: a bias, another tensor that is added, a batch norm
 * (folded into weight and bias when a model is loaded), an activation, which comes last. */
#include "scout/fusion/fusion_internal.h"

#include "scout/op/conv.h"
#include "scout/op/gemm.h"

#include <string.h>

enum { OUTPUT = GEMM_C }; /* of both kinds */
_Static_assert((int)OUTPUT == (int)CONV_OUTPUT, "products and convolutions have their output in one place");

typedef struct fold {
    fusion_maker *m;
    int part;
    const char *value, *result; /* where the part finds what the one before wrote, and where it writes */
} fold;

static oprec *fused(const fold *f) { return &f->m->f->fused.rec; }

static int64_t columns(const fold *f) {
    const scout_op *head = &f->m->ops[0];
    if (head->kind == SCOUT_GEMM) return head->shape[1];
    const bool last = head->layout && strcmp(head->layout, "nhwc") == 0;
    return head->shape[last ? head->rank - 1 : 1];
}

/* A vector along the columns (channels) of what the head writes. */
static bool is_bias(const fold *f, const scout_tensor *t) {
    const scout_op *head = &f->m->ops[0];
    const bool last = head->kind == SCOUT_GEMM || (head->layout && strcmp(head->layout, "nhwc") == 0);
    const int64_t n = columns(f);
    if (op_elements(t) != n || t->rank < (last ? 1U : 2U)) return false;
    return t->role == SCOUT_SIDE ? last || n == 1 : t->dims[last ? t->rank - 1 : 1] == n;
}

/* The second operand: a bias, or a tensor as large as the result. */
static bool add_operand(const fold *f, const scout_op *op) {
    const scout_tensor *t = &op->tensors[1];
    oprec *rec = fused(f);
    if (t->role == SCOUT_INPUT && op_elements(t) == op_elements(&op->tensors[0])) {
        if (oprec_field(rec, "residual"))
            return fusion_refuse(f->m, "epilogue", "a second tensor to be added is not covered");
        oprec_set_int(rec, "residual", 1);
        fusion_put(f->m, f->part, 1, "residual", 0, 0);
        return true;
    }
    if (!is_bias(f, t) || oprec_field(rec, "bias"))
        return fusion_refuse(f->m, "epilogue", "what is added is neither the only bias nor as large as the result");
    oprec_set_text(rec, "bias", rec->kind == OP_GEMM ? "n" : "channel");
    fusion_put(f->m, f->part, 1, "bias", 0, 0);
    return true;
}

static bool fold_add(const fold *f) {
    const scout_op *op = &f->m->ops[f->part];
    if (op->tensor_count != 3) return fusion_refuse(f->m, "epilogue", "the sum of a tensor with itself is not covered");
    return add_operand(f, op);
}

/* Parameters go along under the names that an activation within another operation has. */
static bool fold_activation(const fold *f) {
    static const struct {
        const char *from, *to;
    } fields[] = {{"alpha", "activation_alpha"},
                  {"beta", "activation_beta"},
                  {"gamma", "activation_gamma"},
                  {"min", "activation_min"},
                  {"max", "activation_max"}};
    const scout_op *op = &f->m->ops[f->part];
    const oprec *from = &f->m->f->ops[f->part]->rec;
    oprec *rec = fused(f);
    if (op->tensor_count == 3 && !add_operand(f, op)) return false;
    if (op->tensor_count > 3) return fusion_refuse(f->m, "epilogue", "an activation of several tensors is not covered");
    /* The name has the bias in it, which is another tensor here. */
    oprec_set_text(rec, "activation", strcmp(from->what, "biasgelu") == 0 ? "gelu" : from->what);
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
        const opfield *x = oprec_field(from, fields[k].from);
        if (x && x->kind == OPFIELD_INT) oprec_set_int(rec, fields[k].to, x->i);
        if (x && x->kind == OPFIELD_REAL) oprec_set_real(rec, fields[k].to, x->real);
    }
    return true;
}

/* What is left of a folded batch norm is its bias. In sequence it runs with a scale, mean and variance that change
 * nothing, so that both compute the same. */
static bool fold_batch_norm(const fold *f) {
    const scout_op *op = &f->m->ops[f->part], *head = &f->m->ops[0];
    const int bias = op_tensor(op, "bias"), own = op_tensor(head, "bias");
    static const struct {
        const char *name, *of;
    } sides[] = {{"scale", "=1"}, {"mean", "=0"}, {"variance", "=variance"}};
    if (!op_is(op, "batch")) return fusion_refuse(f->m, "feature", "only a batch norm can be folded");
    if (bias < 0) return fusion_refuse(f->m, "feature", "a batch norm without a bias is not covered");
    if (op->tensors[bias].type != head->output || op_elements(&op->tensors[bias]) != columns(f))
        return fusion_refuse(f->m, "type", "the batch norm's bias is of another type or length");
    if (own >= 0) fusion_put(f->m, 0, own, "=0", 0, 0);
    oprec_set_text(fused(f), "bias", "channel");
    fusion_put(f->m, f->part, bias, "bias", 0, 0);
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++) {
        const int at = op_tensor(op, sides[k].name);
        if (at >= 0) fusion_put(f->m, f->part, at, sides[k].of, 0, 0);
    }
    return true;
}

static const struct {
    op_kind head, step;
    const char *what; /* NULL: any */
    bool (*apply)(const fold *f);
} folds[] = {
    {OP_GEMM, OP_ELEMENTWISE, "add", fold_add},       {OP_GEMM, OP_ELEMENTWISE, NULL, fold_activation},
    {OP_CONV, OP_NORM, NULL, fold_batch_norm},        {OP_CONV, OP_ELEMENTWISE, "add", fold_add},
    {OP_CONV, OP_ELEMENTWISE, NULL, fold_activation},
};

/* The part's value is its first tensor, its result the tensor that it writes. */
static bool fold_part(fold *f) {
    const operation *step = f->m->f->ops[f->part];
    const scout_op *op = &f->m->ops[f->part], *before = &f->m->ops[f->part - 1];
    if (oprec_field(fused(f), "activation"))
        return fusion_refuse(f->m, "epilogue", "what follows an activation cannot be fused");
    for (uint32_t t = 0; t < op->tensor_count; t++)
        if (op->tensors[t].role == SCOUT_OUTPUT) fusion_put(f->m, f->part, (int)t, f->result, 0, 0);
    fusion_put(f->m, f->part, 0, f->value, 0, 0);
    if (op->tensors[0].type != before->output || op->input != before->output)
        return fusion_refuse(f->m, "type", "a part reads another type than the one before it writes");
    for (size_t k = 0; k < sizeof folds / sizeof folds[0]; k++)
        if (folds[k].head == fused(f)->kind && folds[k].step == step->rec.kind &&
            (!folds[k].what || (step->rec.what && strcmp(folds[k].what, step->rec.what) == 0)))
            return folds[k].apply(f);
    return fusion_refuse(f->m, "epilogue", "%.60s cannot be fused",
                         step->rec.what ? step->rec.what : oprec_kind_name(step->rec.kind));
}

bool fusion_fold(fusion_maker *m) {
    const scout_op *head = &m->ops[0];
    const int last = m->f->op_count - 1;
    m->f->fused.rec = m->f->ops[0]->rec;
    if (head->kind != SCOUT_GEMM && head->kind != SCOUT_CONV)
        return fusion_refuse(m, "feature", "its first operation is neither a product nor a convolution");
    const char *out = head->tensors[OUTPUT].name;
    fusion_put(m, 0, OUTPUT, fusion_between(m, 0), 0, 0);
    for (int k = 1; k <= last; k++) {
        fold f = {m, k, fusion_between(m, k - 1), k == last ? out : fusion_between(m, k)};
        if (!fold_part(&f)) return false;
    }
    for (int k = 0; k <= last; k++) fusion_put_rest(m, k);
    const uint32_t written = m->ops[last].output;
    m->f->fused.rec.out_type = written == head->input ? DTYPE_NONE : (dtype)written;
    fusion_costs(m, 1U << last);
    return true;
}
