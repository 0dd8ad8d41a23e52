/* Owns norms and softmax: rows that are each brought to one scale. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

static void norm_finish(work *w) {
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_boundary(w);
}

static void norm_set_weight(work *w, int slot) {
    cost_weight scale;
    if (!cost_in(w, slot) || !cost_trace(w, w->node->in[slot], &scale)) return;
    w->weight = scale.root;
    w->rec.weight_type = scale.type;
}

static int norm_axis(const work *w, const char *name, int64_t otherwise, int rank) {
    int64_t axis = graph_attr_int(w->node, name, otherwise);
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : (int)axis;
}

/* Layer and RMS norms: everything from `axis` on is one row. */
static void norm_rows(work *w) {
    const tensor *in = cost_in(w, 0);
    const int axis = norm_axis(w, "axis", -1, cost_rank(in));
    const bool rms = strcmp(w->node->op_type, "LayerNormalization") != 0;
    const char *what = rms ? "rms" : "layer";
    const int64_t rows = cost_product(in->info->dims, 0, axis),
                  cols = cost_product(in->info->dims, axis, in->info->rank);
    cost_set_rows(w, OP_NORM, what, rows, cols, opcost_per_element(OP_NORM, what));
    if (!rms && cost_in(w, 2)) oprec_set_int(&w->rec, "bias", 1);
    norm_set_weight(w, 1);
}

static void norm_skip(work *w) {
    const tensor *in = cost_in(w, 0);
    const bool rms = strcmp(w->node->op_type, "SkipLayerNormalization") != 0;
    const char *what = rms ? "rms" : "layer";
    const int64_t cols = cost_dim(in, -1), rows = cost_product(in->info->dims, 0, in->info->rank - 1);
    const bool extra = cost_in(w, rms ? 3 : 4);
    cost_set_rows(w, OP_NORM, what, rows, cols, opcost_per_element(OP_NORM, what) + 1 + (extra ? 1 : 0));
    oprec_set_int(&w->rec, "residual", 1);
    if (cost_out(w, 3)) oprec_set_int(&w->rec, "residual_out", 1);
    if (!rms && cost_in(w, 3)) oprec_set_int(&w->rec, "bias", 1);
    if (extra) oprec_set_int(&w->rec, "input_bias", 1);
    norm_set_weight(w, 2);
}

/* Statistics over a group of channels and all of space, per image. */
static void norm_groups(work *w, const char *what, int64_t groups, bool channels_last, int64_t per_element) {
    const tensor *in = cost_in(w, 0);
    const int64_t batch = cost_dim(in, 0), all = info_count(in->info);
    const int64_t rows = checked_mul(batch, groups > 0 ? groups : 1);
    cost_set_rows(w, OP_NORM, what, rows, rows > 0 ? all / rows : 0, per_element);
    oprec_set_int(&w->rec, "channels", cost_dim(in, channels_last ? -1 : 1));
    if (cost_in(w, 2)) oprec_set_int(&w->rec, "bias", 1);
    if (channels_last) w->rec.layout = "nhwc";
}

static void norm_group_ms(work *w) {
    const bool skip = strcmp(w->node->op_type, "SkipGroupNorm") == 0;
    norm_groups(w, "group", graph_attr_int(w->node, "groups", 1), graph_attr_int(w->node, "channels_last", 1) != 0,
                opcost_per_element(OP_NORM, "group") + (skip ? 1 : 0));
    if (graph_attr_int(w->node, "activation", 0)) oprec_set_text(&w->rec, "activation", "silu");
    if (skip) oprec_set_int(&w->rec, "residual", 1);
    if (skip && cost_in(w, 4)) oprec_set_int(&w->rec, "input_bias", 1);
    if (skip && cost_out(w, 1)) oprec_set_int(&w->rec, "residual_out", 1);
    norm_set_weight(w, 1);
}

static void norm_over_axes(work *w, const char *what, const bool *reduced) {
    const tensor *in = cost_in(w, 0);
    int64_t cols = 1, rows = 1;
    for (int k = 0; k < in->info->rank; k++) {
        if (reduced[k])
            cols = checked_mul(cols, in->info->dims[k]);
        else
            rows = checked_mul(rows, in->info->dims[k]);
    }
    cost_set_rows(w, OP_NORM, what, rows, cols, opcost_per_element(OP_NORM, what));
    int64_t axes[INFO_MAX_RANK];
    int count = 0;
    for (int k = 0; k < in->info->rank; k++) {
        if (reduced[k]) axes[count++] = k;
    }
    if (count > 0 && axes[0] == in->info->rank - count) return;
    oprec_set_ints(&w->rec, w->arena, "input", in->info->rank, in->info->dims);
    oprec_set_ints(&w->rec, w->arena, "axes", count, axes);
}

static void norm_lp(work *w) {
    const int rank = cost_rank(cost_in(w, 0));
    bool reduced[INFO_MAX_RANK] = {false};
    const int axis = norm_axis(w, "axis", -1, rank);
    if (axis < rank) reduced[axis] = true;
    norm_over_axes(w, "lp", reduced);
}

static void norm_mvn(work *w) {
    static const int64_t customary[] = {0, 2, 3};
    const attr *axes = graph_attr(w->node, "axes", ATTR_INTS);
    const int rank = cost_rank(cost_in(w, 0));
    bool reduced[INFO_MAX_RANK] = {false};
    for (int64_t k = 0; k < (axes ? axes->n : 3); k++) {
        int64_t axis = axes ? axes->ints[k] : customary[k];
        if (axis < 0) axis += rank;
        if (axis >= 0 && axis < rank) reduced[axis] = true;
    }
    norm_over_axes(w, "mvn", reduced);
}

static void norm_lrn(work *w) {
    const tensor *in = cost_in(w, 0);
    const int64_t size = graph_attr_int(w->node, "size", 1), channels = cost_dim(in, 1), all = info_count(in->info);
    cost_set_rows(w, OP_NORM, "lrn", channels > 0 ? all / channels : 0, channels,
                  checked_add(20, checked_mul(2, size)));
    oprec_set_int(&w->rec, "size", size);
}

static void norm_batch(work *w) {
    const bool training = graph_attr_int(w->node, "training_mode", 0) != 0;
    norm_groups(w, "batch", cost_dim(cost_in(w, 0), 1), false,
                opcost_per_element(OP_NORM, training ? "layer" : "batch"));
    if (training) oprec_set_int(&w->rec, "training", 1); /* statistics of the batch itself */
    norm_set_weight(w, 1);
}

static void norm_group(work *w) {
    norm_groups(w, "group", graph_attr_int(w->node, "num_groups", 1), false, opcost_per_element(OP_NORM, "group"));
    norm_set_weight(w, 1);
}

static void norm_instance(work *w) {
    norm_groups(w, "instance", cost_dim(cost_in(w, 0), 1), false, opcost_per_element(OP_NORM, "instance"));
    norm_set_weight(w, 1);
}

/* What an operator adds to a variance; what is usual (scout/op/norm.h) is not told. */
static void norm_tell_epsilon(work *w) {
    static const char *const others[] = {"LRN", "LpNormalization", "MeanVarianceNormalization"};
    const bool skips = strncmp(w->node->op_type, "Skip", 4) == 0 && strcmp(w->node->op_type, "SkipGroupNorm") != 0;
    const double epsilon = cost_real(graph_attr_float(w->node, "epsilon", skips ? 1e-12 : 1e-5));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcmp(others[k], w->node->op_type) == 0) return;
    if (epsilon != 1e-5) work_tell_number(w, "epsilon", epsilon);
}

static const struct {
    const char *op_type;
    void (*fill)(work *w);
} norms[] = {
    {"BatchNormalization", norm_batch},
    {"GroupNorm", norm_group_ms},
    {"GroupNormalization", norm_group},
    {"InstanceNormalization", norm_instance},
    {"LRN", norm_lrn},
    {"LayerNormalization", norm_rows},
    {"LpNormalization", norm_lp},
    {"MeanVarianceNormalization", norm_mvn},
    {"RMSNormalization", norm_rows},
    {"SimplifiedLayerNormalization", norm_rows},
    {"SkipGroupNorm", norm_group_ms},
    {"SkipLayerNormalization", norm_skip},
    {"SkipSimplifiedLayerNormalization", norm_skip},
};

void lower_norm(work *w) {
    const int rank = cost_rank(cost_in(w, 0));
    w->rec.kind = OP_NORM;
    w->rec.what = cost_what(w);
    for (size_t k = 0; rank >= 1 && k < sizeof norms / sizeof *norms; k++) {
        if (strcmp(norms[k].op_type, w->node->op_type) == 0) norms[k].fill(w);
    }
    norm_tell_epsilon(w);
    norm_finish(w);
}

/* Up to opset 12 everything from the axis on was one row; since then the axis alone. */
void lower_softmax(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, 0);
    const int rank = cost_rank(in);
    const char *what = strcmp(n->op_type, "LogSoftmax") == 0 ? "log"
                       : strcmp(n->op_type, "Hardmax") == 0  ? "hard"
                                                             : NULL;
    w->rec.kind = OP_SOFTMAX;
    w->rec.what = what;
    if (rank >= 1) {
        const bool flattens = n->opset < 13;
        const int axis = norm_axis(w, "axis", flattens ? 1 : -1, rank);
        const int end = flattens || axis >= rank ? rank : axis + 1;
        const int64_t cols = cost_product(in->info->dims, axis, end), inner = cost_product(in->info->dims, end, rank);
        const int64_t rows = checked_mul(cost_product(in->info->dims, 0, axis), inner);
        cost_set_rows(w, OP_SOFTMAX, what, rows, cols, opcost_per_element(OP_SOFTMAX, what));
        if (inner != 1) oprec_set_int(&w->rec, "inner", inner);
        if (strcmp(n->op_type, "BiasSoftmax") == 0) oprec_set_int(&w->rec, "bias", 1); /* added before */
    }
    cost_set_types(w, in, cost_out(w, 0));
    cost_boundary(w);
}
