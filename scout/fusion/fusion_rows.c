/* Norms and softmax that add another tensor before they look at their rows. */
#include "scout/fusion/fusion_internal.h"

#include "common/checked.h"
#include "scout/op/norm.h"
#include "scout/op/softmax.h"

/* ---- a residual and the norm of the sum ---- */

/* Where the sum is read elsewhere too it is still written, and only its reading is saved. */
bool fusion_norm(fusion_maker *m) {
    const scout_op *add = &m->ops[0], *norm = &m->ops[1];
    oprec *to = &m->f->fused.rec;
    *to = m->f->ops[1]->rec;
    if (m->f->op_count != 2 || add->kind != SCOUT_ELEMENTWISE || norm->kind != SCOUT_NORM)
        return fusion_refuse(m, "feature", "it is not a sum and its norm");
    if (!op_is(add, "add") || add->tensor_count != 3 || add->tensors[1].role != SCOUT_INPUT ||
        op_elements(&add->tensors[0]) != op_elements(&norm->tensors[NORM_X]) ||
        op_elements(&add->tensors[1]) != op_elements(&norm->tensors[NORM_X]))
        return fusion_refuse(m, "epilogue", "the tensors that are added are not both as large as what is normalised");
    if (op_tensor(norm, "residual") >= 0 || op_tensor(norm, "input_bias") >= 0)
        return fusion_refuse(m, "epilogue", "a norm that adds two tensors before is not covered");
    if (add->output != norm->input)
        return fusion_refuse(m, "type", "the norm reads another type than the sum is written in");
    const bool kept = m->f->saved_bytes < checked_mul(2, m->f->ops[0]->rec.bytes_written);
    const char *sum = kept ? "sum" : fusion_between(m, 0);
    oprec_set_int(to, "residual", 1);
    if (kept) oprec_set_int(to, "residual_out", 1);
    fusion_put(m, 0, 0, "x", 0, 0);
    fusion_put(m, 0, 1, "residual", 0, 0);
    fusion_put(m, 0, 2, sum, 0, 0);
    fusion_put(m, 1, NORM_X, sum, 0, 0);
    fusion_put_rest(m, 1);
    fusion_costs(m, kept ? 3 : 2);
    return true;
}

/* ---- a mask and the softmax behind it ---- */

/* How many rows what is added has, and how they go round: its dimensions are those of the softmax's rows but for some
 * in the middle, which are 1; `turn` is of those behind. 0: they lie in another way. */
static int64_t bias_rows(const scout_tensor *bias, const scout_tensor *whole, int64_t *turn) {
    const int rows = (int)whole->rank - 1; /* dimensions of rows */
    int64_t count = 1;
    int first = 0, last = rows;
    *turn = 1;
    if (bias->rank != whole->rank || bias->dims[rows] != whole->dims[rows]) return 0;
    for (; last > 0 && bias->dims[last - 1] == whole->dims[last - 1]; last--)
        *turn = checked_mul(*turn, bias->dims[last - 1]);
    while (first < last && bias->dims[first] == whole->dims[first]) first++;
    for (int d = 0; d < rows; d++) {
        if (d >= first && d < last && bias->dims[d] != 1) return 0;
        count = checked_mul(count, bias->dims[d]);
    }
    return count;
}

static bool add_mask(fusion_maker *m) {
    const scout_op *add = &m->ops[0], *softmax = &m->ops[1];
    oprec *to = &m->f->fused.rec;
    int64_t turn = 0;
    const int64_t rows = bias_rows(&add->tensors[1], &add->tensors[2], &turn);
    if (op_number(softmax, "bias", 0) != 0 || op_number(softmax, "inner", 1) != 1)
        return fusion_refuse(m, "epilogue", "a softmax that adds a tensor already, or not along its last dimension");
    if (rows == 0) return fusion_refuse(m, "layout", "the added rows do not repeat with its rows");
    oprec_set_int(to, "bias", 1);
    if (turn < rows) oprec_set_int(to, "inner_broadcast", turn);
    fusion_put(m, 0, 1, "bias", 0, 0);
    fusion_costs(m, 2);
    to->bytes_read = (int64_t)(softmax->tensors[SOFTMAX_X].bytes + add->tensors[1].bytes); /* by which rows are told */
    return true;
}

/* What the model scales by is not told, and changes no time: an eighth, which rounds nothing. */
static bool add_scale(fusion_maker *m) {
    const bool divides = op_is(&m->ops[0], "div");
    if (op_elements(&m->ops[0].tensors[1]) != 1)
        return fusion_refuse(m, "epilogue", "a softmax can be joined to one factor for all alone");
    if (oprec_field(&m->f->fused.rec, "scale"))
        return fusion_refuse(m, "epilogue", "a second factor before a softmax is not covered");
    oprec_set_real(&m->f->fused.rec, "scale", 0.125);
    fusion_put(m, 0, 1, divides ? "=8" : "=0.125", 0, 0);
    fusion_costs(m, 2);
    return true;
}

bool fusion_softmax(fusion_maker *m) {
    const scout_op *before = &m->ops[0], *softmax = &m->ops[1];
    m->f->fused.rec = m->f->ops[1]->rec;
    if (m->f->op_count != 2 || before->kind != SCOUT_ELEMENTWISE || softmax->kind != SCOUT_SOFTMAX)
        return fusion_refuse(m, "feature", "it is not an operation and its softmax");
    const bool adds = op_is(before, "add"), scales = op_is(before, "mul") || op_is(before, "div");
    if ((!adds && !scales) || before->tensor_count != 3)
        return fusion_refuse(m, "epilogue", "a mask or a factor can be joined to a softmax, not %.40s", before->what);
    if (op_elements(&before->tensors[0]) != op_elements(&before->tensors[2]) ||
        op_elements(&before->tensors[2]) != op_elements(&softmax->tensors[SOFTMAX_X]) ||
        before->output != softmax->input)
        return fusion_refuse(m, "type", "the softmax reads another tensor than what is before it writes");
    if (adds ? !add_mask(m) : !add_scale(m)) return false;
    fusion_put(m, 0, 0, "x", 0, 0);
    fusion_put(m, 0, 2, fusion_between(m, 0), 0, 0);
    fusion_put(m, 1, SOFTMAX_X, fusion_between(m, 0), 0, 0);
    fusion_put_rest(m, 1);
    return true;
}
