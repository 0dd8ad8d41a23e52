/* Embeddings: a table, and whole numbers below its length. What comes out is what the table holds. */
#include "scout/kinds/kinds.h"

#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/embedding.h"

static const char *const known_fields[] = {"table", "index_dtype", NULL};

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    const char *index = op_text(out, "index_dtype");
    const uint32_t index_type = index ? (uint32_t)dtype_from_name(index) : (uint32_t)SCOUT_INT64;
    const int64_t rows = op_number(out, "table", 0);
    out->input = out->output = (uint32_t)o->rec.type;
    out->weight = (uint32_t)o->rec.weight_type;
    if (out->what) return kind_tensors_refuse(why, "feature", "an embedding of kind %.40s is not covered", out->what);
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (out->rank != 2) return kind_tensors_refuse(why, "shape", "an embedding needs [rows, columns]");
    if (rows < 1 || rows > INT32_MAX) return kind_tensors_refuse(why, "shape", "a table of %lld rows", (long long)rows);
    if ((out->weight != SCOUT_NONE && out->weight != out->input) || dtype_get(o->rec.type)->bits % 8 != 0 ||
        dtype_get(o->rec.type)->bits > 64 || dtype_get(o->rec.type)->bits == 0 ||
        (o->rec.out_type != DTYPE_NONE && o->rec.out_type != o->rec.type))
        return kind_tensors_refuse(why, "type", "a table whose values are stored otherwise is not covered");
    if (index_type != SCOUT_INT64 && index_type != SCOUT_INT32)
        return kind_tensors_refuse(why, "type", "indices are int32 or int64");
    const int64_t table[2] = {rows, out->shape[1]};
    const scout_role stored = out->weight != SCOUT_NONE ? SCOUT_WEIGHT : SCOUT_INPUT; /* or made by another operation */
    kind_tensors to = kind_tensors_of(out, a, why);
    if (!kind_tensors_add(&to, "table", stored, out->input, 2, table)) return false;
    scout_tensor *indices = kind_tensors_add_vector(&to, "indices", SCOUT_INPUT, index_type, out->shape[0]);
    if (!indices) return false;
    indices->below = rows;
    return kind_tensors_add(&to, "out", SCOUT_OUTPUT, out->input, 2, out->shape) != NULL;
}

static double tolerance(const scout_op *op) {
    (void)op;
    return 0; /* a copy */
}

const kind kind_embedding = {.op = OP_EMBEDDING, .build = build, .tolerance = tolerance, .light = true};
