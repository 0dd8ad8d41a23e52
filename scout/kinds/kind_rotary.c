/* Rotary embeddings: their tensors (scout/op/rotary.h), and how exact a turned pair has to be. */
#include "scout/kinds/kinds.h"

#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/rotary.h"

static const char *const known_fields[] = {"rotary_dim", "angle_dim", "angle_batch", "interleaved", NULL};

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    out->input = (uint32_t)o->rec.type;
    out->output = o->rec.out_type != DTYPE_NONE ? (uint32_t)o->rec.out_type : (uint32_t)o->rec.type;
    out->accumulate = SCOUT_FP32;
    if (out->what) return kind_tensors_refuse(why, "feature", "a rotation of kind %.40s is not covered", out->what);
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (out->rank != 4) return kind_tensors_refuse(why, "shape", "a rotation needs [B, H, S, D]");
    if ((out->input != SCOUT_FP32 && out->input != SCOUT_FP16 && out->input != SCOUT_BF16) || out->output != out->input)
        return kind_tensors_refuse(why, "type", "no rotation of %s into %s is known here",
                                   dtype_get((dtype)out->input)->name, dtype_get((dtype)out->output)->name);
    const int64_t rotated = op_number(out, "rotary_dim", out->shape[3]);
    if (rotated < 2 || rotated % 2 != 0 || rotated > out->shape[3])
        return kind_tensors_refuse(why, "shape", "%lld numbers of a head make no pairs", (long long)rotated);
    const rotary_problem p = rotary_problem_of(out);
    const int64_t angles[3] = {p.tables, p.steps, p.angles}, shared = p.tables == 1;
    if (p.angles != rotated && p.angles != rotated / 2)
        return kind_tensors_refuse(why, "shape", "%lld angles turn no %lld pairs", (long long)p.angles,
                                   (long long)(rotated / 2));
    if (p.tables != 1 && p.tables != p.batch)
        return kind_tensors_refuse(why, "shape", "%lld tables of angles are not of %lld sequences", (long long)p.tables,
                                   (long long)p.batch);
    kind_tensors to = kind_tensors_of(out, a, why);
    return kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, 4, out->shape) &&
           kind_tensors_add(&to, "cos", SCOUT_SIDE, out->input, (uint32_t)(3 - shared), angles + shared) &&
           kind_tensors_add(&to, "sin", SCOUT_SIDE, out->input, (uint32_t)(3 - shared), angles + shared) &&
           kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, 4, out->shape);
}

/* Two products and a sum, each rounded once: in fp32, or (operators in half types, one after the other) in the type. */
static double tolerance(const scout_op *op) { return 4 * kind_rounding(op->output); }

const kind kind_rotary = {.op = OP_ROTARY, .build = build, .tolerance = tolerance, .light = true};
