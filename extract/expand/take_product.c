/* Products that quantise their input by themselves. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

void take_dynamic_product(expansion *x) {
    tensor *const *found =
        part_make(x, &(step){.op_type = "DynamicQuantizeLinear", .in = {part_in(x, 0)}, .outputs = 3});
    part_end(x,
             &(step){.domain = "com.microsoft",
                     .op_type = "MatMulIntegerToFloat",
                     .in = {found[0], part_in(x, 1), found[1], part_in(x, 2), found[2], part_in(x, 3), part_in(x, 4)}});
}
