/* Owns what reads or writes by index: rows of a table (embedding), other gathers and scatters. They touch what the
 * indices name, not the whole table. */
#include "extract/ops/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

static bool is_integer(const tensor *t) { return t && dtype_get(t->info->type)->cls == DTYPE_CLASS_INT; }

/* Rows of a table looked up by data: the table is a weight, or at least not integers of shape arithmetic. */
static bool is_embedding(const work *w, const cost_weight *table, bool constant) {
    const tensor *data = cost_in(w, 0), *index = cost_in(w, 1);
    const bool whole_rows =
        strcmp(w->node->op_type, "Gather") == 0 || strcmp(w->node->op_type, "GatherBlockQuantized") == 0;
    int64_t axis = graph_attr_int(w->node, strcmp(w->node->op_type, "Gather") == 0 ? "axis" : "gather_axis", 0);
    if (axis < 0) axis += cost_rank(data) > 0 ? cost_rank(data) : 0;
    if (!whole_rows || axis != 0 || cost_rank(data) < 2 || !index || cost_known(index)) return false;
    return (constant && table->root) || !is_integer(data);
}

static void gather_set_block(work *w) {
    const tensor *data = cost_in(w, 0);
    if (strcmp(w->node->op_type, "GatherBlockQuantized") != 0) return;
    const int64_t bits = graph_attr_int(w->node, "bits", 4);
    oprec_set_int(&w->rec, "block_size", graph_attr_int(w->node, "block_size", 128));
    w->rec.weight_type = bits == 4 ? DTYPE_INT4 : data ? data->info->type : DTYPE_NONE;
    const dtype stored = w->rec.weight_type;
    const int64_t elements = info_count(cost_out(w, 0)->info);
    w->rec.bytes_read = checked_add(dtype_bytes(stored, elements), cost_bytes(w, cost_in(w, 1)));
}

static void gather_embedding(work *w, const cost_weight *table, bool constant) {
    const tensor *data = cost_in(w, 0), *index = cost_in(w, 1), *out = cost_out(w, 0);
    const int64_t rows = info_count(index->info);
    const int64_t cols = rows > 0 ? info_count(out->info) / rows : cost_product(data->info->dims, 1, data->info->rank);
    cost_set_rows(w, OP_EMBEDDING, NULL, rows, cols, 0);
    oprec_set_int(&w->rec, "table", cost_dim(data, 0));
    cost_set_types(w, out, out);
    w->rec.bytes_read = checked_add(dtype_bytes(constant ? table->type : cost_type(w, data), info_count(out->info)),
                                    cost_bytes(w, index));
    w->rec.bytes_written = cost_bytes(w, out);
    if (constant) {
        w->weight = table->root;
        w->rec.weight_type = table->type;
    }
    gather_set_block(w);
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
    if (graph_attr(w->node, "axis")) oprec_set_int(&w->rec, "axis", graph_attr_int(w->node, "axis", 0));
    w->rec.bytes_written = cost_bytes(w, out);
    const int64_t taken = cost_bytes(w, index);
    w->rec.bytes_read = checked_add(w->rec.bytes_written, index && cost_known(index) ? 0 : taken);
}

/* A scatter writes a changed copy: the whole tensor moves, and the updates with their indices. */
void lower_scatter(work *w) {
    w->rec.kind = OP_MOVE;
    w->rec.what = cost_what(w);
    cost_set_types(w, cost_in(w, 0), cost_out(w, 0));
    cost_set_shape(w, cost_out(w, 0));
    const tensor *updates = cost_in(w, strcmp(w->node->op_type, "TensorScatter") == 0 ? 1 : 2);
    if (cost_shaped(updates)) oprec_set_ints(&w->rec, w->arena, "updates", updates->info->rank, updates->info->dims);
    if (graph_attr(w->node, "axis")) oprec_set_int(&w->rec, "axis", graph_attr_int(w->node, "axis", 0));
    cost_boundary(w);
}

/* Three tables (words, positions, kinds), summed and normalised: one pass. */
void lower_embed_norm(work *w) {
    const tensor *ids = cost_in(w, 0), *out = cost_out(w, 0), *words = cost_in(w, 2);
    const int64_t rows = ids ? info_count(ids->info) : 0, cols = cost_dim(out, -1);
    cost_set_rows(w, OP_EMBEDDING, "embed_norm", rows, cols, COST_LAYER_NORM + 2);
    cost_set_types(w, out, out);
    oprec_set_int(&w->rec, "table", cost_dim(words, 0));
    cost_weight table;
    if (words && cost_trace(w, w->node->in[2], &table)) {
        w->weight = table.root;
        w->rec.weight_type = table.type;
    }
    const int tables = cost_in(w, 4) ? 3 : 2;
    const int64_t ids_bytes =
        checked_add(cost_bytes(w, ids), checked_add(cost_bytes(w, cost_in(w, 1)), cost_bytes(w, cost_in(w, 7))));
    w->rec.bytes_read = checked_add(checked_mul(tables, cost_bytes(w, out)), ids_bytes);
    for (int k = 0; k < w->node->out_count; k++)
        w->rec.bytes_written = checked_add(w->rec.bytes_written, cost_bytes(w, w->node->out[k]));
}
