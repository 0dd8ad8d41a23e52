/* Laying out tensors: dense, checked against overflow. */
#include "scout/kinds/kind_tensors.h"

#include "common/checked.h"
#include "common/dtype.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool kind_tensors_refuse(scout_why *why, const char *code, const char *format, ...) {
    va_list args;
    snprintf(why->code, sizeof why->code, "%s", code);
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}

kind_tensors kind_tensors_of(scout_op *op, arena *a, scout_why *why) {
    kind_tensors k = {.op = op, .tensors = arena_array(a, scout_tensor, SCOUT_MAX_TENSORS), .why = why};
    op->tensors = k.tensors;
    op->tensor_count = 0;
    return k;
}

/* Storage ends behind the last element that the strides reach. */
bool kind_tensors_close(kind_tensors *k, scout_tensor *t) {
    int64_t last = 0;
    for (uint32_t d = 0; d < t->rank; d++) last = checked_add(last, checked_mul(t->dims[d] - 1, t->strides[d]));
    const int64_t bytes = dtype_bytes((dtype)t->type, checked_add(last, 1));
    if (bytes >= (int64_t)1 << 50)
        return kind_tensors_refuse(k->why, "shape", "its tensors are larger than any memory");
    t->bytes = (uint64_t)bytes;
    return true;
}

scout_tensor *kind_tensors_add(kind_tensors *k, const char *name, scout_role role, uint32_t type, int rank,
                               const int64_t *dims) {
    int64_t stride = 1;
    if (k->op->tensor_count == SCOUT_MAX_TENSORS || rank > SCOUT_MAX_RANK) {
        kind_tensors_refuse(k->why, "feature", "more than %d tensors or %d dimensions are not covered",
                            (int)SCOUT_MAX_TENSORS, (int)SCOUT_MAX_RANK);
        return NULL;
    }
    scout_tensor *t = &k->tensors[k->op->tensor_count++];
    *t = (scout_tensor){.size = sizeof *t, .role = (uint32_t)role, .type = type, .rank = (uint32_t)rank};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int d = rank - 1; d >= 0; d--) {
        if (dims[d] < 1) {
            kind_tensors_refuse(k->why, "shape", "a dimension of %s is %lld", name, (long long)dims[d]);
            return NULL;
        }
        t->dims[d] = dims[d];
        t->strides[d] = stride;
        stride = checked_mul(stride, dims[d]);
    }
    return kind_tensors_close(k, t) ? t : NULL;
}

scout_tensor *kind_tensors_add_vector(kind_tensors *k, const char *name, scout_role role, uint32_t type,
                                      int64_t count) {
    return kind_tensors_add(k, name, role, type, 1, &count);
}

double kind_rounding(uint32_t type) {
    static const struct {
        uint32_t type;
        double half;
    } rows[] = {{SCOUT_FP64, 0x1p-53}, {SCOUT_FP32, 0x1p-24},   {SCOUT_FP16, 0x1p-11},
                {SCOUT_BF16, 0x1p-8},  {SCOUT_FP8E4M3, 0x1p-4}, {SCOUT_FP8E5M2, 0x1p-3}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) return rows[k].half;
    return 0;
}

int kind_behind(const scout_op *op) {
    return (op_field(op, "bias") != NULL) + (op_number(op, "residual", 0) != 0) + (op_field(op, "activation") != NULL);
}

double kind_in_parts(const scout_op *op) {
    if (op->kind != SCOUT_GEMM && op->kind != SCOUT_CONV) return 0;
    const int roundings = 1 + kind_behind(op);
    return (roundings - sqrt(roundings)) * kind_rounding(op->output);
}

int64_t kind_small(int64_t depth, uint32_t type) {
    const bool wide = type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16 || type == SCOUT_FP64;
    return wide && depth > 1 ? -(int64_t)lround(log2((double)depth) / 2) : 0;
}

bool kind_fields_only(const scout_op *op, const char *const *known, scout_why *why) {
    for (uint32_t k = 0; k < op->field_count; k++) {
        const scout_field *f = &op->fields[k];
        const char *const *name = known;
        while (*name && strcmp(*name, f->name) != 0) name++;
        if (*name || (!f->text && f->number == 0)) continue;
        return kind_tensors_refuse(why, "feature", "\"%.40s\" of this operation is not covered", f->name);
    }
    return true;
}
