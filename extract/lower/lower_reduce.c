/* Owns what brings many elements down to few: reductions, running sums, searches (top-k, unique), and the operators
 * that fit no other kind and read all of their input. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

static void mark_axis(bool *reduced, int rank, int64_t axis) {
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) reduced[axis] = true;
}

/* Which dimensions go. Axes come as attributes, or, in later opsets, as an input. False: they are not known. */
static bool find_axes(const work *w, bool *reduced, int rank) {
    const node *n = w->node;
    const attr *axes = graph_attr(n, "axes", ATTR_INTS), *axis = graph_attr(n, "axis", ATTR_INT);
    const tensor *given =
        strncmp(n->op_type, "Reduce", 6) == 0 || strncmp(n->op_type, "Cum", 3) == 0 ? cost_in(w, 1) : NULL;
    const bool single = strncmp(n->op_type, "Arg", 3) == 0 || strcmp(n->op_type, "TopK") == 0;
    const value *known = cost_values(w, given);
    if (given && !known) return false;
    for (int64_t k = 0; known && k < known->n; k++) mark_axis(reduced, rank, checked_from_double(value_at(known, k)));
    for (int64_t k = 0; axes && axes->ints && k < axes->n; k++) mark_axis(reduced, rank, axes->ints[k]);
    if (single) mark_axis(reduced, rank, axis ? axis->i : strcmp(n->op_type, "TopK") == 0 ? -1 : 0);
    const bool none = !single && !(axes && axes->n > 0) && !(known && known->n > 0);
    if (none && graph_attr_int(n, "noop_with_empty_axes", 0)) return true;
    for (int k = 0; none && k < rank; k++) reduced[k] = true;
    return true;
}

static void set_rows(work *w, const tensor *in, const bool *reduced) {
    const int rank = in->info->rank;
    int64_t rows = 1, cols = 1, axes[INFO_MAX_RANK];
    int count = 0;
    for (int k = 0; k < rank; k++) {
        if (reduced[k]) axes[count++] = k;
        if (reduced[k])
            cols = checked_mul(cols, in->info->dims[k]);
        else
            rows = checked_mul(rows, in->info->dims[k]);
    }
    cost_set_rows(w, OP_REDUCE, w->rec.what, rows, cols, 1);
    if (count == 0 || axes[0] == rank - count) return; /* the last ones, as rows and columns say */
    oprec_set_ints(&w->rec, w->arena, "input", rank, in->info->dims);
    oprec_set_ints(&w->rec, w->arena, "axes", count, axes);
}

void lower_reduce(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    const char *what = cost_what(w);
    w->rec.kind = OP_REDUCE;
    w->rec.what = strncmp(what, "reduce", 6) == 0 ? what + 6 : what;
    cost_set_types(w, in, out);
    cost_boundary(w);
    bool reduced[INFO_MAX_RANK] = {false};
    const int rank = cost_rank(in);
    if (rank < 0 || rank > INFO_MAX_RANK) return;
    if (find_axes(w, reduced, rank)) {
        set_rows(w, in, reduced);
    } else {
        cost_set_shape(w, out);
        oprec_set_ints(&w->rec, w->arena, "input", rank, in->info->dims);
    }
    const double each = n->def->cost > 0 ? n->def->cost : 1;
    w->rec.flops = checked_from_double((double)info_count(in->info) * each);
}

static double log2_of(int64_t n) {
    double steps = 0;
    for (; n > 1; n = (n + 1) / 2) steps++;
    return steps > 0 ? steps : 1;
}

/* The dimension that a search or transform goes along, counted from the front; the last one is not written. */
static void other_set_axis(work *w, int rank) {
    const node *n = w->node;
    const bool dft = strcmp(n->op_type, "DFT") == 0;
    const value *given = dft && n->opset >= 20 ? cost_values(w, cost_in(w, 2)) : NULL;
    if (!dft && strcmp(n->op_type, "TopK") != 0) return;
    int64_t axis = given && given->n == 1 ? checked_from_double(value_at(given, 0))
                                          : graph_attr_int(n, "axis",
                                                           !dft             ? -1
                                                           : n->opset >= 20 ? -2
                                                                            : 1);
    if (axis < 0) axis += rank;
    const int64_t customary = dft ? rank - 2 : rank - 1;
    if (axis != customary) oprec_set_int(&w->rec, "axis", axis);
}

static void other_set_frames(work *w) {
    if (strcmp(w->node->op_type, "STFT") != 0) return;
    static const char *const names[] = {NULL, "frame_step", NULL, "frame_length"};
    for (int k = 1; k < 4; k += 2) {
        const value *known = cost_values(w, cost_in(w, k));
        if (known && known->n == 1) oprec_set_int(&w->rec, names[k], checked_from_double(value_at(known, 0)));
    }
    const tensor *window = cost_in(w, 2);
    if (cost_rank(window) == 1) oprec_set_int(&w->rec, "window_length", cost_dim(window, 0));
}

/* How many classes have scores, and from where on boxes are kept or given up. A threshold that is no constant is not
 * there: all scores count, and whatever overlaps is given up. */
static void other_set_thresholds(work *w) {
    static const char *const names[] = {[3] = "iou_threshold", [4] = "threshold"};
    if (strcmp(w->node->op_type, "NonMaxSuppression") != 0) return;
    if (cost_rank(cost_in(w, 1)) == 3) oprec_set_int(&w->rec, "channels", cost_dim(cost_in(w, 1), 1));
    work_tell(w, "x", w->node->in[0]);
    work_tell(w, "scores", w->node->in[1]);
    work_tell_made(w, "y", w->node->out[0]);
    for (int k = 3; k < 5; k++) {
        const value *known = cost_values(w, cost_in(w, k));
        if (known && known->n == 1)
            oprec_set_real(&w->rec, names[k], cost_real(value_at(known, 0)));
        else if (cost_in(w, k))
            work_tell_unknown(w, names[k]);
    }
}

/* Operations per element of input for what fits no other kind. Zero: it only moves (strings, images). `by_row`
 * multiplies with the logarithm of the row's length (transforms, sorting) or with the length itself (determinants), or
 * says that each number of all outputs counts. */
typedef enum other_row { ROW_NONE, ROW_LOG, ROW_LENGTH, ROW_OUTPUTS } other_row;
static const struct {
    const char *op_type;
    double each;
    other_row by_row;
} others[] = {
    {"Adagrad", 6, ROW_OUTPUTS}, {"Adam", 6, ROW_OUTPUTS},    {"Momentum", 3, ROW_OUTPUTS}, {"DFT", 5, ROW_LOG},
    {"STFT", 5, ROW_LOG},        {"TopK", 1, ROW_LOG},        {"Unique", 1, ROW_LOG},       {"Det", 1, ROW_LENGTH},
    {"Inverse", 2, ROW_LENGTH},  {"Normalizer", 4, ROW_NONE}, {"Scaler", 2, ROW_NONE},
};

/* What every right result needs: the boxes of each class in order, and a test of each one. How many tests more, data
 * decide. Zero: its scores are not known. */
static double suppression_flops(const work *w) {
    enum { TEST = 10 };
    const tensor *scores = cost_in(w, 1);
    if (!scores || !cost_shaped(scores)) return 0;
    return (double)info_count(scores->info) * (TEST + log2_of(cost_dim(scores, -1)));
}

void lower_other(work *w) {
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    const bool strings = in && in->info->type == DTYPE_STRING;
    w->rec.kind = strings || strcmp(w->node->op_type, "ImageDecoder") == 0 ? OP_MOVE : OP_REDUCE;
    w->rec.what = cost_what(w);
    cost_set_types(w, in, out);
    cost_boundary(w);
    cost_set_shape(w, out);
    if (!in || !cost_shaped(in)) return;
    oprec_set_ints(&w->rec, w->arena, "input", in->info->rank, in->info->dims);
    other_set_axis(w, in->info->rank);
    other_set_frames(w);
    other_set_thresholds(w);
    if (w->rec.kind == OP_MOVE) return;
    if (strcmp(w->node->op_type, "NonMaxSuppression") == 0) {
        w->rec.flops = checked_from_double(suppression_flops(w));
        return;
    }
    double each = 1;
    int64_t made = out ? info_count(out->info) : 0;
    const int64_t taken = info_count(in->info);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        if (strcmp(others[k].op_type, w->node->op_type) != 0) continue;
        const int64_t length = cost_dim(in, -1);
        each = others[k].each;
        if (others[k].by_row == ROW_LOG) each *= log2_of(length);
        if (others[k].by_row == ROW_LENGTH) each *= (double)length;
        for (int o = 1; others[k].by_row == ROW_OUTPUTS && o < w->node->out_count; o++)
            if (cost_shaped(cost_out(w, o))) made = checked_add(made, info_count(cost_out(w, o)->info));
    }
    w->rec.flops = checked_from_double((double)(taken > made ? taken : made) * each);
}

/* What expand/ has not taken apart; embeddings are not named. */
void lower_whole(work *w) {
    static const struct {
        const char *op_type;
        op_kind kind;
    } kinds[] = {
        {"DynamicQuantizeMatMul", OP_GEMM}, {"NegativeLogLikelihoodLoss", OP_REDUCE},
        {"QLinearConcat", OP_MOVE},         {"QLinearLeakyRelu", OP_ELEMENTWISE},
        {"QLinearReduceMean", OP_REDUCE},   {"QLinearSigmoid", OP_ELEMENTWISE},
        {"QLinearSoftmax", OP_SOFTMAX},     {"QLinearWhere", OP_ELEMENTWISE},
        {"QOrderedGelu", OP_ELEMENTWISE},   {"SoftmaxCrossEntropyLoss", OP_REDUCE},
    };
    const size_t count = sizeof kinds / sizeof *kinds;
    size_t k = 0;
    while (k < count && strcmp(kinds[k].op_type, w->node->op_type) != 0) k++;
    w->rec.kind = k < count ? kinds[k].kind : OP_EMBEDDING;
    if (k < count && w->rec.kind != OP_GEMM) w->rec.what = cost_what(w);
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    if (w->rec.kind != OP_GEMM && w->rec.kind != OP_EMBEDDING) cost_set_shape(w, cost_out(w, 0));
    cost_boundary(w);
}

/* Shapes are known, the work behind them is not modelled: listed as unknown rather than guessed. */
void lower_uncosted(work *w) {
    w->node->unknown = true;
    w->rec.kind = OP_UNKNOWN;
    w->rec.what = graph_operator(w->arena, w->node);
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_boundary(w);
    cost_set_shape(w, cost_out(w, 0));
}
