/* Owns which of an operation's own tensors (docs/kinds_tensors.md) each tensor of the model is: a table by kind and
 * operator for plain works. Patterns tell those of what they join. */
#include "extract/ops/work.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

/* Names by slot; "-": no tensor of the operation; "x!": of its tensors, and none of the model's; "x*": this slot and
 * all behind it. What is left out is not there. The first row that fits counts; op_type NULL: any.
 */
static const struct {
    op_kind kind;
    const char *op_type, *in, *out;
} rows[] = {
    {OP_CONV, "ConvInteger", "input weight", "output"},
    {OP_CONV, "FusedConv", "input weight bias residual", "output"},
    {OP_CONV, "NhwcFusedConv", "input weight bias residual", "output"},
    {OP_CONV, "QLinearConv", "input - - weight - - - - bias", "output"},
    {OP_CONV, NULL, "input weight bias", "output"},
    {OP_EMBEDDING, "GatherBlockQuantized", "table indices scales! zero_points!", "out"},
    {OP_EMBEDDING, NULL, "table indices", "out"},
    {OP_GEMM, "MatMulInteger", "a b a_zero b_zero", "c"},
    {OP_GEMM, "MatMulInteger16", "a b a_zero b_zero", "c"},
    {OP_GEMM, "MatMulIntegerToFloat", "a b scales! - a_zero b_zero bias", "c"},
    {OP_GEMM, "MatMulNBits", "a b scales zeros - bias", "c"},
    {OP_GEMM, "QGemm", "a - - b - - bias", "c"},
    {OP_GEMM, "QLinearMatMul", "a - - b", "c"},
    {OP_GEMM, NULL, "a b bias", "c"},
    {OP_MOVE, "Concat", "x*", "y"},
    {OP_MOVE, "Gather", "x indices", "y"},
    {OP_MOVE, "GatherElements", "x indices", "y"},
    {OP_MOVE, "GatherND", "x indices", "y"},
    {OP_MOVE, "OneHot", "indices", "y"},
    {OP_MOVE, "Scatter", "x indices updates", "y"},
    {OP_MOVE, "ScatterElements", "x indices updates", "y"},
    {OP_MOVE, "ScatterND", "x indices updates", "y"},
    {OP_MOVE, "Split", "x", "y*"},
    {OP_MOVE, "TensorScatter", "x updates indices", "y"},
    {OP_MOVE, NULL, "x", "y"},
    {OP_NORM, "BatchNormalization", "x scale bias mean variance", "y"},
    {OP_NORM, "SkipGroupNorm", "x scale bias residual input_bias", "y sum"},
    {OP_NORM, "SkipLayerNormalization", "x residual scale bias input_bias", "y - - sum"},
    {OP_NORM, "SkipSimplifiedLayerNormalization", "x residual scale input_bias", "y - - sum"},
    {OP_NORM, NULL, "x scale bias", "y"},
    {OP_POOL, "CropAndResize", "input rois batches", "output"},
    {OP_POOL, "GridSample", "input grid", "output"},
    {OP_POOL, "RoiAlign", "input rois batches", "output"},
    {OP_POOL, NULL, "input", "output indices"},
    {OP_QUANTIZE, "DynamicQuantizeLinear", "x", "y scale zero"},
    {OP_QUANTIZE, NULL, "x scales zero_points", "y"},
    {OP_RECURRENT, NULL, "x w r bias lengths h0 c0 peephole", "y y_h y_c"},
    {OP_REDUCE, "TopK", "x", "y places"},
    {OP_REDUCE, NULL, "x", "y"},
    {OP_SOFTMAX, "BiasSoftmax", "x bias", "y"},
    {OP_SOFTMAX, NULL, "x", "y"},
};

/* As scout/kinds has them; "zeros" is the b_zero of a weight in blocks, which stands elsewhere. */
enum { MOST_NAMES = 12 };
static const struct {
    op_kind kind;
    const char *names[MOST_NAMES];
} orders[] = {
    {OP_ATTENTION, {"q", "k", "v", "out", "mask", "lengths"}},
    {OP_CONV, {"input", "weight", "output", "bias", "residual"}},
    {OP_ELEMENTWISE, {"operand", "y"}},
    {OP_EMBEDDING, {"table", "indices", "out", "scales", "zero_points"}},
    {OP_GEMM, {"a", "b", "c", "bias", "residual", "a_zero", "b_zero", "scales", "zeros"}},
    {OP_MOVE, {"x", "indices", "updates", "y"}},
    {OP_NORM, {"x", "y", "scale", "bias", "mean", "variance", "residual", "input_bias", "sum"}},
    {OP_POOL, {"input", "grid", "rois", "batches", "output", "indices"}},
    {OP_QUANTIZE, {"x", "scales", "zero_points", "y", "scale", "zero"}},
    {OP_RECURRENT, {"x", "w", "r", "bias", "lengths", "h0", "c0", "peephole", "y", "y_h", "y_c"}},
    {OP_REDUCE, {"x", "scores", "y", "places"}},
    {OP_ROTARY, {"x", "cos", "sin", "y"}},
    {OP_SOFTMAX, {"x", "y", "bias"}},
};

/* Its place in its kind's order, and the name there, which stays. MOST_NAMES: it has none. */
static int place_of(op_kind kind, const char *name, size_t length, const char **kept) {
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (int n = 0; orders[k].kind == kind && n < MOST_NAMES && orders[k].names[n]; n++) {
            *kept = orders[k].names[n];
            if (strlen(*kept) == length && memcmp(*kept, name, length) == 0) return n;
        }
    *kept = NULL;
    return MOST_NAMES;
}

/* ---- telling ---- */

/* Twice as many places each time: a split may have as many outputs as a file has room for. */
static void add(work *w, work_operand operand) {
    enum { FIRST = 2 };
    const int count = w->operand_count;
    if (count == 0 || (count >= FIRST && (count & (count - 1)) == 0)) {
        work_operand *grown = arena_array(w->arena, work_operand, count > 0 ? 2 * count : FIRST);
        if (w->operand_count > 0) memcpy(grown, w->operands, (size_t)w->operand_count * sizeof *grown);
        w->operands = grown;
    }
    w->operands[w->operand_count++] = operand;
}

void work_tell(work *w, const char *name, tensor *t) { add(w, (work_operand){name, t, false}); }
void work_tell_made(work *w, const char *name, tensor *t) { add(w, (work_operand){name, t, true}); }

static work_beside *beside(work *w) {
    if (!w->beside) w->beside = arena_zalloc(w->arena, sizeof *w->beside);
    return w->beside;
}

void work_tell_formed(work *w, const work_formed *formed) {
    work_tell(w, formed->name, NULL);
    work_formed *kept = arena_array(w->arena, work_formed, 1);
    *kept = *formed;
    beside(w)->formed = kept;
}

static void add_number(work *w, work_number number) {
    work_beside *to = beside(w);
    work_number *grown = arena_array(w->arena, work_number, to->number_count + 1);
    if (to->number_count > 0) memcpy(grown, to->numbers, (size_t)to->number_count * sizeof *grown);
    grown[to->number_count++] = number;
    to->numbers = grown;
}

void work_tell_number(work *w, const char *name, double x) { add_number(w, (work_number){name, x, true}); }
void work_tell_unknown(work *w, const char *name) { add_number(w, (work_number){name, 0, false}); }

void work_take_operands(work *w, const work *from) {
    if (w == from) return;
    w->operands = NULL;
    w->operand_count = 0;
    w->beside = NULL;
    for (int k = 0; k < from->operand_count; k++) add(w, from->operands[k]);
    for (int k = 0; from->beside && k < from->beside->number_count; k++) add_number(w, from->beside->numbers[k]);
    if (from->beside && from->beside->formed) beside(w)->formed = from->beside->formed;
}

tensor *work_told(const work *w, const char *name) {
    for (int k = 0; k < w->operand_count; k++)
        if (strcmp(w->operands[k].name, name) == 0) return w->operands[k].t;
    return NULL;
}

/* ---- plain works ---- */

/* What is made is there whether anything takes it or not, but for what a recurrent layer need not make. */
static void tell_slot(work *w, const char *name, size_t length, int slot, bool made) {
    const node *n = w->node;
    const int count = made ? n->out_count : n->in_count;
    const bool nothing = name[length - 1] == '!';
    tensor *t = slot >= count ? NULL : made ? n->out[slot] : n->in[slot];
    if (name[0] == '-' || (!t && !made)) return;
    if (made && w->rec.kind == OP_RECURRENT && !cost_wanted(n, slot)) return;
    const char *kept;
    (void)place_of(w->rec.kind, name, length - nothing, &kept);
    if (kept) add(w, (work_operand){kept, nothing ? NULL : t, made});
}

static void tell_slots(work *w, const char *names, bool made) {
    const int count = made ? w->node->out_count : w->node->in_count;
    int slot = 0;
    for (const char *at = names; *at; slot++) {
        const size_t length = strcspn(at, " ");
        for (; at[length - 1] == '*' && slot < count; slot++) tell_slot(w, at, length - 1, slot, made);
        if (at[length - 1] != '*') tell_slot(w, at, length, slot, made);
        at += length + (at[length] == ' ');
    }
}

static bool goes_along(const cost_weight *found, int from_end) {
    const int64_t axis = graph_attr_int(found->dequantize, "axis", 1);
    return axis == -from_end || axis == cost_rank(found->dequantize->in[0]) - from_end;
}

/* Whether scales lie as the product takes them: [N, K/block], or one for each column. Their number does not tell it: a
 * square weight has as many along the other axis. Where they lie otherwise, the record has `block_size` or
 * `weight_scales` all the same: as much is read and computed, so that it is timed rightly, but no values fit. */
static bool scales_lie(const work *w, const cost_weight *found) {
    const opfield *side = oprec_field(&w->rec, "weight_side");
    const tensor *in = found->dequantize->in[0], *scales = found->scales;
    if (w->rec.rank != 3 || !w->rec.layout || found->rearranged || !side || strcmp(side->text, "b") != 0) return false;
    if (!cost_shaped(in) || !cost_shaped(scales) || in->info->type != found->root->info->type) return false;
    const bool n_first = ((w->rec.layout[1] == 't') != found->transposed) != found->swapped;
    const int64_t n = w->rec.shape[1], k = w->rec.shape[2], count = info_count(scales->info);
    const int n_axis = n_first ? 2 : 1, k_axis = 3 - n_axis; /* from the end */
    if (cost_dim(in, -n_axis) != n || cost_dim(in, -k_axis) != k || info_count(in->info) != checked_mul(n, k))
        return false;
    if (count == 1) return !cost_has_zero(w, found->zero_points); /* the record has no single zero point */
    if (found->block_size == 0) return goes_along(found, n_axis) && count == n;
    const int64_t blocks = k / found->block_size;
    return goes_along(found, k_axis) && count == checked_mul(n, blocks) && (n_first || n == 1 || blocks == 1);
}

/* Scales of a weight of few bits that floats are multiplied with. */
static void tell_scales(work *w) {
    const int slots = w->rec.kind == OP_GEMM ? w->node->in_count : 0;
    cost_weight found;
    for (int k = 0; k < slots; k++) {
        if (!w->node->in[k] || !cost_trace(w, w->node->in[k], &found) || found.root != w->weight) continue;
        const bool lie = found.scales && scales_lie(w, &found);
        if (found.scales) work_tell(w, "scales", lie ? found.scales : NULL);
        if (found.zero_points) work_tell(w, "zeros", lie ? found.zero_points : NULL);
        return;
    }
}

void work_add_operands(work *w) {
    if (w->free || w->operand_count > 0) return;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (rows[k].kind != w->rec.kind || (rows[k].op_type && strcmp(rows[k].op_type, w->node->op_type) != 0))
            continue;
        tell_slots(w, rows[k].in, false);
        tell_slots(w, rows[k].out, true);
        if (!work_told(w, "scales")) tell_scales(w);
        return;
    }
}

/* ---- in order ---- */

/* Operands that a field of the record stands for: without it the operation has none. */
static const struct {
    op_kind kind;
    const char *name, *field;
} told[] = {
    {OP_GEMM, "a_zero", "a_zero"},    {OP_GEMM, "b_zero", "b_zero"},       {OP_GEMM, "zeros", "zero_points"},
    {OP_NORM, "sum", "residual_out"}, {OP_POOL, "indices", "indices_out"},
};

static bool is_there(const work *w, const char *name) {
    const opfield *quant = oprec_field(&w->rec, "quant");
    if (w->rec.kind == OP_GEMM && strcmp(name, "scales") == 0) /* of quantised work they are in no tensor */
        return dtype_get(w->rec.type)->cls == DTYPE_CLASS_FLOAT || (quant && strcmp(quant->text, "dynamic") == 0);
    for (size_t k = 0; k < sizeof told / sizeof *told; k++)
        if (told[k].kind == w->rec.kind && strcmp(told[k].name, name) == 0)
            return oprec_field(&w->rec, told[k].field) != NULL;
    return true;
}

static int place_in(const work *w, const work_operand *o) {
    const char *ignored;
    return place_of(w->rec.kind, o->name, strlen(o->name), &ignored);
}

/* As they were told they mostly are in order. */
static bool are_in_order(const work *w) {
    int last = 0;
    for (int k = 0; k < w->operand_count; k++) {
        const int place = place_in(w, &w->operands[k]);
        if (place < last || !is_there(w, w->operands[k].name)) return false;
        last = place;
    }
    return true;
}

/* What was told first stands first where the place is the same. */
int work_operands(const work *w, work_operand **out) {
    int count = 0;
    *out = w->operands;
    if (are_in_order(w)) return w->operand_count;
    *out = arena_array(w->arena, work_operand, w->operand_count);
    for (int k = 0; k < w->operand_count; k++) {
        if (!is_there(w, w->operands[k].name)) continue;
        int at = count++;
        for (const int place = place_in(w, &w->operands[k]); at > 0 && place_in(w, &(*out)[at - 1]) > place; at--)
            (*out)[at] = (*out)[at - 1];
        (*out)[at] = w->operands[k];
    }
    return count;
}
