/* Points and regions of images as pools: their tensors (scout/op/sample.h). */
#include "scout/kinds/kind_sample.h"

#include "common/dtype.h"
#include "scout/op/sample.h"

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16; }

bool kind_sample(const oprec *rec, arena *a, scout_op *out, scout_why *why) {
    static const char *const fields[] = {"input",       "mode",           "padding_mode",  "align_corners",
                                         "coordinates", "sampling_ratio", "spatial_scale", "extrapolation_value",
                                         NULL};
    int64_t input[SCOUT_MAX_RANK];
    const bool crops = sample_crops(out), regions = crops || op_is(out, "roi_align");
    const int rank = op_ints(out, "input", input, SCOUT_MAX_RANK);
    if (!kind_fields_only(out, fields, why)) return false;
    if (!is_float((uint32_t)rec->type) || (rec->out_type != DTYPE_NONE && rec->out_type != rec->type))
        return kind_tensors_refuse(why, "type", "a %s of %s is not covered", out->what, dtype_get(rec->type)->name);
    if (rank != 4 || out->rank != 4) return kind_tensors_refuse(why, "shape", "points are of images with channels");
    for (int d = 0; d < 4; d++)
        if (input[d] < 1 || out->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension is 0");
    if (input[1] != out->shape[1] || (!regions && input[0] != out->shape[0]) || input[0] > INT32_MAX)
        return kind_tensors_refuse(why, "shape", "images or channels of input and output differ");
    const sample_problem p = sample_problem_of(out, input);
    if (p.mode == SAMPLE_MODES || p.beyond == SAMPLE_BEYONDS ||
        (crops     ? p.mode == SAMPLE_CUBIC || p.mode == SAMPLE_MAX
         : regions ? p.mode == SAMPLE_NEAREST || p.mode == SAMPLE_CUBIC
                   : p.mode == SAMPLE_MAX))
        return kind_tensors_refuse(why, "feature", "this way to interpolate is not covered");
    if (p.sampling < 0 || p.sampling > SAMPLE_SAMPLING)
        return kind_tensors_refuse(why, "feature", "a bin has at most %d points along an axis", SAMPLE_SAMPLING);
    if (op_field(out, "extrapolation_value") && !crops)
        return kind_tensors_refuse(why, "feature", "only crops have a value beyond the image");
    if (p.regions && !(p.scale > 0 && sample_side(&p) > 0))
        return kind_tensors_refuse(why, "feature", "the scale leaves no regions of 1 to %d within the image",
                                   SAMPLE_SIDE);
    out->input = out->output = (uint32_t)rec->type;
    out->accumulate = SCOUT_FP32;
    const int64_t grid[] = {out->shape[0], out->shape[2], out->shape[3], 2}, rois[] = {out->shape[0], 4};
    kind_tensors t = kind_tensors_of(out, a, why);
    if (!kind_tensors_add(&t, "input", SCOUT_INPUT, out->input, 4, input)) return false;
    scout_tensor *const where = regions ? kind_tensors_add(&t, "rois", SCOUT_INPUT, out->input, 2, rois)
                                        : kind_tensors_add(&t, "grid", SCOUT_INPUT, out->input, 4, grid);
    if (!where) return false;
    if (regions) {
        scout_tensor *const batches =
            kind_tensors_add_vector(&t, "batches", SCOUT_INPUT, crops ? SCOUT_INT32 : SCOUT_INT64, out->shape[0]);
        if (!batches) return false;
        where->below = crops ? 1 : sample_side(&p), batches->below = input[0]; /* crops are parts of the image */
    }
    return kind_tensors_add(&t, "output", SCOUT_OUTPUT, out->output, 4, out->shape) != NULL;
}

double kind_sample_tolerance(const scout_op *op) {
    const sample_problem p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    const double terms = p.regions && p.mode != SAMPLE_MAX ? 4 * sample_most_points(&p) : 0;
    return p.mode == SAMPLE_NEAREST ? 0 : kind_rounding(op->output) + 0x1p-18 + 6 * 0x1p-24 * sqrt(terms);
}
