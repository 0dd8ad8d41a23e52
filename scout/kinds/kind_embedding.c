/* Embeddings: a table, and whole numbers below its length. What comes out is what the table holds, or, where it holds
 * few bits, these less their zero points and times their scales. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/embedding.h"

static const char *const known_fields[] = {"table", "index_dtype", "block_size", "zero_points", NULL};

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16; }
static bool is_nibble(uint32_t type) { return type == SCOUT_INT4 || type == SCOUT_UINT4; }

static bool check_copied(const operation *o, const scout_op *op, scout_why *why) {
    if (op_number(op, "zero_points", 0) != 0)
        return kind_tensors_refuse(why, "feature", "zero points without a block size are not covered");
    if ((op->weight != SCOUT_NONE && op->weight != op->input) || dtype_get(o->rec.type)->bits % 8 != 0 ||
        dtype_get(o->rec.type)->bits > 64 || dtype_get(o->rec.type)->bits == 0)
        return kind_tensors_refuse(why, "type", "a table whose values are stored otherwise is not covered");
    return true;
}

static bool check_blocks(const scout_op *op, int64_t block, scout_why *why) {
    if (!is_float(op->input) || !(is_nibble(op->weight) || op->weight == SCOUT_INT8 || op->weight == SCOUT_UINT8))
        return kind_tensors_refuse(why, "type", "tables in blocks are of 4 or 8 bits, and become fp32, fp16 or bf16");
    if (block < 0) return kind_tensors_refuse(why, "shape", "there are no such blocks");
    if (is_nibble(op->weight) && op->shape[1] % 2 != 0)
        return kind_tensors_refuse(why, "shape", "rows of 4 bits are covered where they fill their bytes");
    return true;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    const char *index = op_text(out, "index_dtype");
    const uint32_t index_type = index ? (uint32_t)dtype_from_name(index) : (uint32_t)SCOUT_INT64;
    const int64_t rows = op_number(out, "table", 0), block = op_number(out, "block_size", 0);
    out->input = out->output = (uint32_t)o->rec.type;
    out->weight = (uint32_t)o->rec.weight_type;
    if (out->what) return kind_tensors_refuse(why, "feature", "an embedding of kind %.40s is not covered", out->what);
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (out->rank != 2) return kind_tensors_refuse(why, "shape", "an embedding needs [rows, columns]");
    if (rows < 1 || rows > INT32_MAX) return kind_tensors_refuse(why, "shape", "a table of %lld rows", (long long)rows);
    if (o->rec.out_type != DTYPE_NONE && o->rec.out_type != o->rec.type)
        return kind_tensors_refuse(why, "type", "what comes out has the type of the operation");
    if (block != 0 ? !check_blocks(out, block, why) : !check_copied(o, out, why)) return false;
    if (index_type != SCOUT_INT64 && index_type != SCOUT_INT32)
        return kind_tensors_refuse(why, "type", "indices are int32 or int64");
    const int64_t table[2] = {rows, out->shape[1]},
                  sides[2] = {rows, block > 0 ? checked_ceil_div(table[1], block) : 1};
    const scout_role stored = out->weight != SCOUT_NONE ? SCOUT_WEIGHT : SCOUT_INPUT; /* or made by another operation */
    kind_tensors to = kind_tensors_of(out, a, why);
    if (!kind_tensors_add(&to, "table", stored, block > 0 ? out->weight : out->input, 2, table)) return false;
    scout_tensor *indices = kind_tensors_add_vector(&to, "indices", SCOUT_INPUT, index_type, out->shape[0]);
    if (!indices) return false;
    indices->below = rows;
    if (!kind_tensors_add(&to, "out", SCOUT_OUTPUT, out->input, 2, out->shape)) return false;
    if (block == 0) return true;
    return kind_tensors_add(&to, "scales", SCOUT_SIDE, out->input, 2, sides) &&
           (op_number(out, "zero_points", 0) == 0 ||
            kind_tensors_add(&to, "zero_points", SCOUT_SIDE, out->weight, 2, sides));
}

/* A copy, or one product in fp32 and one rounding to the type. */
static double tolerance(const scout_op *op) {
    return op_number(op, "block_size", 0) > 0 ? kind_rounding(op->output) + 3 * 0x1p-24 : 0;
}

const kind kind_embedding = {.op = OP_EMBEDDING, .build = build, .tolerance = tolerance, .light = true};
