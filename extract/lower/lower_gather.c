/* Owns what reads or writes by index: rows of a table (embedding), other gathers and scatters. They touch what the
 * indices name, not the whole table. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

static bool is_integer(const tensor *t) { return t && dtype_get(t->info->type)->cls == DTYPE_CLASS_INT; }

static bool is_quantized(const work *w) { return strcmp(w->node->op_type, "GatherBlockQuantized") == 0; }

/* An axis of the data, counted from the front. */
static int64_t axis_of(const work *w, const char *name, int64_t otherwise) {
    const int64_t axis = graph_attr_int(w->node, name, otherwise);
    return axis < 0 && cost_rank(cost_in(w, 0)) > 0 ? axis + cost_rank(cost_in(w, 0)) : axis;
}

/* Rows of a table looked up by data: the table is a weight, is quantised, or at least not integers of shape arithmetic.
 */
static bool is_embedding(const work *w, const cost_weight *table, bool constant) {
    const tensor *data = cost_in(w, 0), *index = cost_in(w, 1);
    const bool quantized = is_quantized(w), whole_rows = quantized || strcmp(w->node->op_type, "Gather") == 0;
    if (!whole_rows || axis_of(w, quantized ? "gather_axis" : "axis", 0) != 0 || cost_rank(data) < 2) return false;
    if (!index || cost_known(index)) return false;
    return quantized || (constant && table->root) || !is_integer(data);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where an index is no int64 the record says so. */
static void set_index_type(work *w, const tensor *index) {
    if (index && index->info->type != DTYPE_INT64 && !cost_known(index))
        oprec_set_text(&w->rec, "index_dtype", dtype_get(index->info->type)->name);
}

/* Bytes hold codes of so many bits, as the weight of a MatMulNBits does. */
static dtype stored_type(const work *w) {
    const dtype type = cost_in(w, 0)->info->type;
    const int64_t bits = graph_attr_int(w->node, "bits", 4);
    return type != DTYPE_UINT8 ? type : bits == 2 ? DTYPE_INT2 : bits == 8 ? DTYPE_INT8 : DTYPE_INT4;
}

/* Rows come with their scales and zero points. Blocks along another axis than the last, or that end where it does, are
 * told by the axis. */
static int64_t gather_set_block(work *w, int64_t rows, int64_t all) {
    const tensor *data = cost_in(w, 0);
    const int rank = cost_rank(data);
    const int64_t block = graph_attr_int(w->node, "block_size", 128), axis = axis_of(w, "quantize_axis", 1);
    oprec_set_int(&w->rec, "block_size", block);
    if (axis != rank - 1 || (rank > 2 && (block < 1 || cost_dim(cost_out(w, 0), -1) % block != 0)))
        oprec_set_int(&w->rec, "quantize_axis", axis);
    w->rec.weight_type = stored_type(w);
    if (cost_in(w, 3)) oprec_set_int(&w->rec, "zero_points", 1);
    const int64_t stored =
        checked_add(cost_bytes(w, data), checked_add(cost_bytes(w, cost_in(w, 2)), cost_bytes(w, cost_in(w, 3))));
    return cost_part(stored, rows, all);
}

/* No row is read twice, so never more of them than the table has. */
static void gather_embedding(work *w, const cost_weight *table, bool constant) {
    const tensor *data = cost_in(w, 0), *index = cost_in(w, 1), *out = cost_out(w, 0);
    const int64_t rows = info_count(index->info), all = cost_dim(data, 0), used = smaller(rows, all);
    const int64_t cols = rows > 0 ? info_count(out->info) / rows : cost_product(data->info->dims, 1, data->info->rank);
    cost_set_rows(w, OP_EMBEDDING, NULL, rows, cols, 0);
    oprec_set_int(&w->rec, "table", all);
    set_index_type(w, index);
    cost_set_types(w, out, out);
    if (constant) {
        w->weight = table->root;
        w->rec.weight_type = table->type;
    }
    int64_t read = cost_part(constant ? table->bytes : cost_bytes(w, data), used, all);
    if (is_quantized(w)) read = gather_set_block(w, used, all);
    w->rec.bytes_read = checked_add(read, cost_bytes(w, index));
    w->rec.bytes_written = cost_bytes(w, out);
}

void lower_gather(work *w) {
    const tensor *data = cost_in(w, 0), *index = cost_in(w, 1), *out = cost_out(w, 0);
    cost_weight table;
    const bool constant = w->node->in_count > 0 && w->node->in[0] && cost_trace(w, w->node->in[0], &table);
    if (cost_shaped(data) && cost_shaped(index) && cost_shaped(out) && is_embedding(w, &table, constant)) {
        gather_embedding(w, &table, constant);
        return;
    }
    w->rec.kind = OP_MOVE;
    w->rec.what = cost_what(w);
    cost_set_types(w, data, out);
    cost_set_shape(w, out);
    if (cost_shaped(data)) oprec_set_ints(&w->rec, w->arena, "input", data->info->rank, data->info->dims);
    if (strcmp(w->node->op_type, "GatherND") != 0)
        oprec_set_int(&w->rec, "axis", axis_of(w, is_quantized(w) ? "gather_axis" : "axis", 0));
    else if (cost_shaped(index))
        oprec_set_ints(&w->rec, w->arena, "indices", index->info->rank, index->info->dims);
    if (is_quantized(w) && cost_shaped(data)) (void)gather_set_block(w, 0, 1);
    set_index_type(w, index);
    w->rec.bytes_written = cost_bytes(w, out);
    const int64_t taken = index && cost_known(index) ? 0 : cost_bytes(w, index);
    w->rec.bytes_read = checked_add(smaller(w->rec.bytes_written, cost_bytes(w, data)), taken);
}

/* A scatter writes a changed copy: the whole tensor moves, and the updates with their indices. */
void lower_scatter(work *w) {
    w->rec.kind = OP_MOVE;
    w->rec.what = cost_what(w);
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_set_shape(w, cost_out(w, 0));
    const bool whole = strcmp(w->node->op_type, "TensorScatter") == 0, nd = strcmp(w->node->op_type, "ScatterND") == 0;
    const tensor *updates = cost_in(w, whole ? 1 : 2), *index = cost_in(w, whole ? 2 : 1);
    if (cost_shaped(updates)) oprec_set_ints(&w->rec, w->arena, "updates", updates->info->rank, updates->info->dims);
    if (nd && cost_shaped(index)) oprec_set_ints(&w->rec, w->arena, "indices", index->info->rank, index->info->dims);
    if (!nd) oprec_set_int(&w->rec, "axis", axis_of(w, "axis", whole ? -2 : 0));
    set_index_type(w, index);
    cost_boundary(w);
}
