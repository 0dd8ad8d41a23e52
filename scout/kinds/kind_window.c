/* Sliding windows: lists as long as the space has dimensions, numbers within what can be computed with. */
#include "scout/kinds/kind_window.h"

#include "scout/op/window.h"

#include <string.h>

static const int64_t LARGEST = (int64_t)1 << 40; /* as of dimensions in files */

static bool check_list(const scout_op *op, const char *name, int wanted, bool optional, int64_t least, scout_why *why) {
    int64_t list[SCOUT_MAX_RANK];
    const int count = op_ints(op, name, list, SCOUT_MAX_RANK);
    if (count == 0 && optional && !op_field(op, name)) return true;
    if (count != wanted)
        return kind_tensors_refuse(why, "shape", "%s has %d numbers, a shape of %u dimensions needs %d", name, count,
                                   (unsigned)op->rank, wanted);
    for (int k = 0; k < count; k++)
        if (list[k] < least || list[k] > LARGEST)
            return kind_tensors_refuse(why, "shape", "a number of %s is %lld", name, (long long)list[k]);
    return true;
}

bool kind_window_check(scout_op *op, bool global, scout_why *why) {
    if (op->rank < 3 || op->rank > 2 + WINDOW_AXES)
        return kind_tensors_refuse(why, "shape", "a window needs 1 to 3 dimensions of space, the shape has rank %u",
                                   (unsigned)op->rank);
    if (!op->layout) op->layout = "nchw";
    if (strcmp(op->layout, "nchw") != 0 && strcmp(op->layout, "nhwc") != 0)
        return kind_tensors_refuse(why, "layout", "layout %.40s is neither nchw nor nhwc", op->layout);
    for (uint32_t d = 0; d < op->rank; d++)
        if (op->shape[d] < 1 || op->shape[d] > LARGEST)
            return kind_tensors_refuse(why, "shape", "a dimension is %lld", (long long)op->shape[d]);
    const int spatial = (int)op->rank - 2;
    return check_list(op, "input", (int)op->rank, false, 1, why) && check_list(op, "kernel", spatial, global, 1, why) &&
           check_list(op, "stride", spatial, true, 1, why) && check_list(op, "dilation", spatial, true, 1, why) &&
           check_list(op, "pads", 2 * spatial, true, 0, why);
}

void kind_window_input(const scout_op *op, int64_t *dims) { (void)op_ints(op, "input", dims, SCOUT_MAX_RANK); }

int64_t kind_window_channels(const scout_op *op, const int64_t *dims) {
    return dims[strcmp(op->layout, "nhwc") == 0 ? op->rank - 1 : 1];
}
