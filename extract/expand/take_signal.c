/* Transforms of signals: products with a matrix of cosines and sines, which is what frameworks without a library of
 * transforms do. A long one is left as it is: its matrix would be larger than any signal. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

enum { MATRIX = 1 << 24 }; /* elements */

/* The last numbers of a signal, `from` of them, become `to` each. */
static tensor *transformed(expansion *x, tensor *in, int64_t from, int64_t to) {
    if (!in || from <= 0 || to <= 0 || from > MATRIX / to || tensor_count(in) % from != 0) x->failed = true;
    if (x->failed) return NULL;
    tensor *rows = part_reshaped(x, in, 2, (int64_t[]){tensor_count(in) / from, from});
    return part_do(x, "MatMul", rows, part_table(x, "waves", in->info->type, 2, (int64_t[]){from, to}));
}

void take_rfft(expansion *x) {
    tensor *in = part_in(x, 0);
    if (graph_attr_int(x->n, "signal_ndim", 1) != 1) x->failed = true;
    part_end_reshaped(x, transformed(x, in, tensor_dim(in, -1), checked_mul(tensor_dim(part_out(x, 0), -2), 2)));
}

void take_irfft(expansion *x) {
    tensor *in = part_in(x, 0);
    if (graph_attr_int(x->n, "signal_ndim", 1) != 1) x->failed = true;
    part_end_reshaped(x, transformed(x, in, checked_mul(tensor_dim(in, -2), 2), tensor_dim(part_out(x, 0), -1)));
}

/* Since opset 20 the axis is an input. Negative: not known. */
static int dft_axis(const expansion *x) {
    enum { AXIS = 2, AXIS_IS_INPUT = 20 };
    const tensor *told = part_in(x, AXIS);
    const bool is_input = x->n->opset >= AXIS_IS_INPUT;
    const value *v = told ? told->info->val : NULL;
    if (is_input && told && !(v && v->n == 1 && v->i)) return -1;
    const int64_t axis = !is_input ? graph_attr_int(x->n, "axis", 1) : told ? v->i[0] : -2;
    const int rank = tensor_rank(part_in(x, 0));
    return axis < -rank || axis >= rank ? -1 : (int)(axis < 0 ? axis + rank : axis);
}

/* Signals of another length are cut, or end in zeros: some rows of the matrix are zero, or it has fewer. */
void take_dft(expansion *x) {
    tensor *in = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    const int rank = tensor_rank(in), axis = dft_axis(x);
    if (rank < 2 || rank != tensor_rank(out) || axis < 0 || axis > rank - 2) x->failed = true;
    if (x->failed) return;
    const int64_t from = checked_mul(tensor_dim(in, axis), tensor_dim(in, -1)),
                  to = checked_mul(tensor_dim(out, axis), tensor_dim(out, -1));
    if (axis == rank - 2) {
        part_end_reshaped(x, transformed(x, in, from, to));
        return;
    }
    int64_t *perm = arena_array(x->e->m->arena, int64_t, rank), dims[INFO_MAX_RANK];
    for (int k = 0; k < rank; k++) perm[k] = k;
    perm[axis] = rank - 2; /* its own inverse */
    perm[rank - 2] = axis;
    for (int k = 0; k < rank; k++) dims[k] = tensor_dim(out, (int)perm[k]);
    const attr turn = ints_attr("perm", rank, perm);
    in = *part_make(x, &(step){.op_type = "Transpose", .in = {in}, .attrs = {turn}});
    tensor *made = transformed(x, in, from, to);
    if (x->failed) return;
    part_end(x, &(step){.op_type = "Transpose", .in = {part_reshaped(x, made, rank, dims)}, .attrs = {turn}});
}

/* Frames of a real signal, which begin a step apart. */
void take_stft(expansion *x) {
    enum { SIGNAL, STEP, WINDOW, LENGTH, OUT_RANK };
    tensor *in = part_in(x, SIGNAL), *const window = part_in(x, WINDOW);
    const tensor *told = part_in(x, LENGTH), *out = part_out(x, 0);
    const value *v = told ? told->info->val : NULL;
    const int64_t length = window ? tensor_dim(window, 0) : v && v->n == 1 ? (int64_t)value_at(v, 0) : 0;
    const bool real = tensor_rank(in) == 2 || (tensor_rank(in) == 3 && tensor_dim(in, 2) == 1);
    if (!real || tensor_rank(out) != OUT_RANK || length <= 0 || length > MATRIX) x->failed = true;
    if (x->failed) return;
    in = part_reshaped(x, in, 2, (int64_t[]){tensor_dim(in, 0), tensor_dim(in, 1)});
    tensor *places = part_table(x, "places", DTYPE_INT64, 2, (int64_t[]){tensor_dim(out, 1), length});
    tensor *frames = *part_make(x, &(step){.op_type = "Gather", .in = {in, places}, .attrs = {int_attr("axis", 1)}});
    if (window) frames = part_do(x, "Mul", frames, window);
    part_end_reshaped(x, transformed(x, frames, length, checked_mul(tensor_dim(out, 2), 2)));
}
