/* Reading operands of a product line by line. */
#include "scout/cpu/reference/cpu_lines.h"

#include "scout/cpu/device/cpu_number.h"

#include <string.h>

static scout_answer find_bias(const scout_op *op, void *const *tensors, cpu_lines *l, scout_why *why) {
    const gemm_problem *p = &l->p;
    static const struct {
        const char *kind;
        bool by_row, by_column, by_product;
    } kinds[] = {{"n", false, true, false},
                 {"m", true, false, false},
                 {"scalar", false, false, false},
                 {"full", true, true, false},
                 {"each", false, true, true}};
    const int index = op_tensor(op, "bias");
    if (!p->bias) return SCOUT_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && index >= 0; k++) {
        if (strcmp(kinds[k].kind, p->bias) != 0) continue;
        const scout_tensor *t = &op->tensors[index];
        l->bias = tensors[index], l->bias_type = t->type;
        l->bias_column = kinds[k].by_column;
        l->bias_row = !kinds[k].by_row ? 0 : kinds[k].by_column ? p->n : 1;
        l->bias_batch = kinds[k].by_product                                     ? p->n
                        : kinds[k].by_row && kinds[k].by_column && t->rank == 3 ? t->strides[0]
                                                                                : 0;
        return SCOUT_OK;
    }
    return scout_say(why, SCOUT_NO, "epilogue", "no reference for a bias of kind \"%.30s\"", p->bias);
}

/* Products have no bool and no 64-bit integers: a double would not hold their sums. */
static bool readable(uint32_t type) { return cpu_number_bits(type) > 0 && type != SCOUT_BOOL && type != SCOUT_INT64; }

scout_answer cpu_lines_of(const scout_op *op, void *const *tensors, cpu_lines *out, scout_why *why) {
    memset(out, 0, sizeof *out);
    out->p = gemm_problem_of(op);
    const gemm_problem *p = &out->p;
    out->a = tensors[GEMM_A], out->b = tensors[GEMM_B];
    if (!readable(p->type_a) || !readable(p->type_b) || !readable(p->type_c))
        return scout_say(why, SCOUT_NO, "type", "no reference for types %u, %u and %u", (unsigned)p->type_a,
                         (unsigned)p->type_b, (unsigned)p->type_c);
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->batch < 1)
        return scout_say(why, SCOUT_NO, "shape", "no reference for an empty product");
    if (p->residual >= 0) out->residual = tensors[p->residual];
    const int scales = op_tensor(op, "scales");
    if (scales >= 0 && p->block_size > 0) {
        out->scales = tensors[scales], out->scales_type = op->tensors[scales].type;
        out->scale_blocks = (p->k + p->block_size - 1) / p->block_size;
    }
    if (p->a_zero >= 0) out->a_zero = tensors[p->a_zero];
    if (p->b_zero >= 0) out->b_zero = tensors[p->b_zero];
    if (p->scales >= 0) out->factors = tensors[p->scales];
    return find_bias(op, tensors, out, why);
}

static double single(uint32_t type, const void *data, int64_t at) {
    double x;
    cpu_number_load(type, data, at, 1, 1, &x);
    return x;
}

void cpu_lines_a_row(const cpu_lines *l, int64_t product, int64_t row, double *out) {
    const gemm_problem *p = &l->p;
    const int64_t at = product * p->stride_a + row * (p->trans_a ? 1 : p->lda);
    cpu_number_load(p->type_a, l->a, at, p->trans_a ? p->lda : 1, p->k, out);
    const double zero = l->a_zero ? single(p->type_a, l->a_zero, 0) : p->quant.zero_in;
    for (int64_t k = 0; k < p->k && zero != 0; k++) out[k] -= zero;
}

/* Of a weight in blocks, that of a column of one product of the batch. */
static int64_t block_at(const cpu_lines *l, int64_t product, int64_t column, int64_t block) {
    return (product * l->p.n + column) * l->scale_blocks + block;
}

static double zero_of(const cpu_lines *l, int64_t product, int64_t column, int64_t block) {
    const gemm_problem *p = &l->p;
    const int64_t at = l->scales ? block_at(l, product, column, block) : p->b_zero_each ? column : 0;
    return l->b_zero ? single(p->type_b, l->b_zero, at) : p->quant.zero_weight;
}

static double factor_of(const cpu_lines *l, int64_t product, int64_t column, int64_t block) {
    if (l->scales) return single(l->scales_type, l->scales, block_at(l, product, column, block));
    return l->factors ? single(SCOUT_FP32, l->factors, l->p.scales_each ? column : 0) : 1;
}

void cpu_lines_b_column(const cpu_lines *l, int64_t product, int64_t column, double *out) {
    const gemm_problem *p = &l->p;
    const int64_t at = product * p->stride_b + column * (p->trans_b ? p->ldb : 1);
    const int64_t size = l->scales ? p->block_size : p->k;
    cpu_number_load(p->type_b, l->b, at, p->trans_b ? 1 : p->ldb, p->k, out);
    for (int64_t block = 0; block * size < p->k; block++) {
        const double zero = zero_of(l, product, column, block), factor = factor_of(l, product, column, block);
        const int64_t end = (block + 1) * size;
        for (int64_t k = block * size; k < end && k < p->k && (zero != 0 || factor != 1); k++)
            out[k] = (out[k] - zero) * factor;
    }
}

void cpu_lines_b_row(const cpu_lines *l, int64_t product, int64_t row, double *out) {
    const gemm_problem *p = &l->p;
    const int64_t at = product * p->stride_b + row * (p->trans_b ? 1 : p->ldb);
    const int64_t block = l->scales ? row / p->block_size : 0;
    const bool plain = !l->b_zero && !l->factors && !l->scales && p->quant.zero_weight == 0;
    cpu_number_load(p->type_b, l->b, at, p->trans_b ? p->ldb : 1, p->n, out);
    for (int64_t column = 0; column < p->n && !plain; column++)
        out[column] = (out[column] - zero_of(l, product, column, block)) * factor_of(l, product, column, block);
}

double cpu_lines_bias(const cpu_lines *l, int64_t product, int64_t row, int64_t column) {
    double value = 0;
    if (!l->bias) return 0;
    const int64_t at = product * l->bias_batch + row * l->bias_row + column * l->bias_column;
    cpu_number_load(l->bias_type, l->bias, at, 1, 1, &value);
    return value;
}

double cpu_lines_residual(const cpu_lines *l, int64_t product, int64_t row, int64_t column) {
    double value = 0;
    if (!l->residual) return 0;
    cpu_number_load(l->p.type_c, l->residual, product * l->p.stride_c + row * l->p.ldc + column, 1, 1, &value);
    return value;
}

double cpu_lines_finish(const cpu_lines *l, int64_t product, int64_t row, int64_t column, double total,
                        double *squares) {
    const gemm_problem *p = &l->p;
    const double bias = p->beta * cpu_lines_bias(l, product, row, column);
    const double residual = cpu_lines_residual(l, product, row, column);
    const double steepest = activation_steepest(&p->activation);
    if (p->quant.is) {
        const double want = requantize_apply(&p->quant, &p->activation, total + bias);
        const double spread = requantize_spread(&p->quant, want);
        *squares = spread * spread;
        return want;
    }
    *squares = steepest * steepest * (p->alpha * p->alpha * *squares + bias * bias + residual * residual);
    return activation_apply(&p->activation, p->alpha * total + bias + residual);
}
