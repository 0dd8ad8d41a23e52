/* Owns convolutions of all ranks and kinds: the record has the output as shape, and input, kernel, stride, pads,
 * dilation and group by name, with auto_pad already resolved to numbers. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/infer/shape_window.h"
#include "extract/ops/cost.h"

#include <string.h>

typedef struct conv_dims {
    int spatial; /* dimensions of space */
    int first;   /* where space begins in input and output */
    int channel; /* where their channels are */
    const tensor *in, *out, *weight;
    int64_t kernel[INFO_MAX_RANK], stride[INFO_MAX_RANK], dilation[INFO_MAX_RANK], extra[INFO_MAX_RANK],
        pads[2 * INFO_MAX_RANK];
    bool transposed;
} conv_dims;

static void read_ints(const work *w, const char *name, int n, int64_t otherwise, int64_t *out) {
    const attr *a = graph_attr(w->node, name, ATTR_INTS);
    for (int k = 0; k < n; k++) out[k] = a && k < a->n && a->ints ? a->ints[k] : otherwise;
}

/* How much padding an automatic one comes to along one dimension; negative where a transposed one adds to its end. */
static int64_t automatic_total(const conv_dims *c, int k) {
    const int64_t in = cost_dim(c->in, c->first + k), out = cost_dim(c->out, c->first + k);
    const int64_t reach = checked_add(checked_mul(checked_sub(c->kernel[k], 1), c->dilation[k]), 1);
    const int64_t small = c->transposed ? in : out, large = c->transposed ? checked_sub(out, c->extra[k]) : in;
    const int64_t total = checked_sub(checked_add(checked_mul(checked_sub(small, 1), c->stride[k]), reach), large);
    return total > 0 || c->transposed ? total : 0;
}

static void read_pads(const work *w, conv_dims *c) {
    const char *mode = graph_attr_string(w->node, "auto_pad", "NOTSET");
    const bool upper = strcmp(mode, "SAME_UPPER") == 0, lower = strcmp(mode, "SAME_LOWER") == 0;
    const bool by_output = c->transposed && graph_attr(w->node, "output_shape", ATTR_INTS);
    read_ints(w, "pads", 2 * c->spatial, 0, c->pads);
    if (strcmp(mode, "VALID") == 0) memset(c->pads, 0, sizeof c->pads);
    if (!upper && !lower && !by_output) return;
    for (int k = 0; k < c->spatial; k++) {
        int64_t total = automatic_total(c, k);
        if (total < 0) c->extra[k] = checked_sub(c->extra[k], total); /* larger than the products reach */
        if (total < 0) total = 0;
        const int64_t less = total / 2;
        c->pads[k] = upper ? less : total - less;
        c->pads[k + c->spatial] = total - c->pads[k];
    }
}

static bool all_are(const int64_t *x, int n, int64_t wanted) {
    for (int k = 0; k < n; k++) {
        if (x[k] != wanted) return false;
    }
    return true;
}

static void set_unless(work *w, const char *name, int n, const int64_t *x, int64_t customary) {
    if (!all_are(x, n, customary)) oprec_set_ints(&w->rec, w->arena, name, n, x);
}

static void conv_set_dims(work *w, conv_dims *c) {
    const int n = c->spatial;
    const int at = shape_window_kernel_at(w->node, c->in->info, c->weight->info);
    for (int k = 0; k < n; k++) c->kernel[k] = cost_dim(c->weight, at + k);
    read_ints(w, "strides", n, 1, c->stride);
    read_ints(w, "dilations", n, 1, c->dilation);
    if (graph_attr(w->node, "dilation", ATTR_INT) && n > 0) c->dilation[0] = graph_attr_int(w->node, "dilation", 1);
    read_ints(w, "output_padding", n, 0, c->extra);
    read_pads(w, c);
    oprec_set_ints(&w->rec, w->arena, "input", c->in->info->rank, c->in->info->dims);
    oprec_set_ints(&w->rec, w->arena, "kernel", n, c->kernel);
    set_unless(w, "stride", n, c->stride, 1);
    set_unless(w, "dilation", n, c->dilation, 1);
    set_unless(w, "pads", 2 * n, c->pads, 0);
    if (c->transposed) {
        oprec_set_int(&w->rec, "transposed", 1);
        set_unless(w, "output_padding", n, c->extra, 0);
    }
}

/* Every weight is used once for each output position (each input position, where transposed). */
static void conv_set_macs(work *w, const conv_dims *c) {
    const tensor *side = c->transposed ? c->in : c->out;
    const int64_t channels = cost_dim(c->weight, 0), weights = info_count(c->weight->info);
    opcost_macs(&w->rec, channels > 0 ? checked_mul(info_count(side->info), weights / channels) : 0);
}

static void conv_set_epilogue(work *w, int bias) {
    const node *n = w->node;
    if (cost_in(w, bias)) oprec_set_text(&w->rec, "bias", "channel");
    const bool fused =
        strcmp(n->op_type, "FusedConv") == 0 || strcmp(n->op_type, "NhwcFusedConv") == 0 || graph_is_blocked(n);
    if (fused && cost_in(w, 3)) oprec_set_int(&w->rec, "residual", 1);
    const char *activation = graph_attr_string(n, "activation", "");
    if (!*activation || strcmp(activation, "none") == 0) return;
    oprec_set_text(&w->rec, "activation", cost_text(w, activation, true));
}

/* As of a weight behind a DequantizeLinear (work_constants.c). */
static void conv_set_quant(work *w) {
    static const struct {
        const char *op_type;
        int scales, zero_points; /* of the weight; 0: it has none */
    } rows[] = {{"QLinearConv", 4, 5}, {"ConvInteger", 0, 3}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (strcmp(rows[k].op_type, w->node->op_type) != 0) continue;
        const tensor *const scales = rows[k].scales ? cost_in(w, rows[k].scales) : NULL;
        const tensor *const zeros = cost_in(w, rows[k].zero_points);
        if (cost_is_each(scales)) oprec_set_text(&w->rec, "weight_scales", "channel");
        if (!rows[k].scales && (cost_has_zero(w, cost_in(w, 2)) || cost_has_zero(w, zeros)))
            work_tell_unknown(w, "zero points"); /* the record has none of the input, and no single one */
        if (cost_is_each(zeros) && cost_has_zero(w, zeros)) oprec_set_int(&w->rec, "zero_points", 1);
    }
}

static void conv_set_kind(work *w) {
    const char *op_type = w->node->op_type;
    if (strcmp(op_type, "DeformConv") == 0) w->rec.what = "deform";
    if (strcmp(op_type, "DeformConv") == 0 && cost_in(w, 4)) oprec_set_int(&w->rec, "offset_mask", 1);
    if (strcmp(op_type, "CausalConvWithState") == 0) w->rec.what = "causal";
}

void lower_conv(work *w) {
    const node *n = w->node;
    const bool quantized = strcmp(n->op_type, "QLinearConv") == 0,
               causal = strcmp(n->op_type, "CausalConvWithState") == 0;
    const bool last = strncmp(n->op_type, "Nhwc", 4) == 0 || graph_attr_int(n, "channels_last", 0) != 0;
    const int slot = quantized ? 3 : 1;
    conv_dims c = {.in = cost_in(w, 0), .out = cost_out(w, 0), .weight = cost_in(w, slot)};
    c.transposed = strcmp(n->op_type, "ConvTranspose") == 0;
    w->rec.kind = OP_CONV;
    w->rec.layout = last ? "nhwc" : "nchw";
    conv_set_kind(w);
    cost_set_types(w, c.in, c.out);
    cost_boundary(w);
    cost_weight found;
    if (c.weight && cost_trace(w, n->in[slot], &found)) {
        w->weight = found.root;
        w->rec.weight_type = found.type;
    }
    cost_set_shape(w, c.out);
    const int rank = cost_rank(c.in);
    if (!c.in || !c.weight || rank < 3 || cost_rank(c.out) != rank || cost_rank(c.weight) < 3) return;
    c.spatial = (cost_rank(c.weight) < rank ? cost_rank(c.weight) : rank) - 2;
    c.first = last ? rank - 1 - c.spatial : rank - c.spatial;
    c.channel = last ? rank - 1 : 1;
    conv_set_dims(w, &c);
    const int64_t group = causal ? cost_dim(c.in, c.channel) : graph_attr_int(n, "group", 1);
    if (group != 1) oprec_set_int(&w->rec, "group", group);
    conv_set_macs(w, &c);
    if (causal) opcost_macs(&w->rec, checked_mul(info_count(c.out->info), cost_product(c.kernel, 0, c.spatial)));
    conv_set_quant(w);
    conv_set_epilogue(w, quantized                                ? 8
                         : strcmp(n->op_type, "ConvInteger") == 0 ? -1
                         : strcmp(n->op_type, "DeformConv") == 0  ? 3
                                                                  : 2);
}
