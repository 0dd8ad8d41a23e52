/* Products with sparse weights: shared by all forms of the weight. */
#include "scout/cpu/products/cpu_gemm_sparse.h"

#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"

enum { PIECE = 64 };

scout_answer cpu_gemm_sparse_supports(const scout_op *op, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    if (op_number(op, "weight_nonzeros", -1) < 0)
        return scout_say(why, SCOUT_NO, "pattern", "weight is dense, or its sparsity is unknown");
    if (!cpu_convert_known(p.type_a) || p.type_b != p.type_a || p.type_c != p.type_a)
        return scout_say(why, SCOUT_NO, "type", "multiplies fp32, fp16 or bf16 with its like into the same");
    if (p.weight != GEMM_B || p.batch != 1)
        return scout_say(why, SCOUT_NO, "shape", "multiplies one matrix with a weight on the right");
    if (gemm_has_factors(&p)) return scout_say(why, SCOUT_NO, "feature", "no factors of the product or the bias");
    if ((p.bias && strcmp(p.bias, "n") != 0) || p.residual >= 0 || p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "no activation, no residual, and no bias but one per column");
    return SCOUT_OK;
}

float cpu_gemm_sparse_weight(const gemm_problem *p, const void *weight, int64_t n, int64_t k) {
    double x = 0;
    cpu_number_load(p->type_b, weight, p->trans_b ? n * p->ldb + k : k * p->ldb + n, 1, 1, &x);
    return (float)x;
}

/* Up to PIECE numbers of a row of A; zeros where there are none. */
static void load_piece(const cpu_gemm_sparse_rows *j, int64_t i, int64_t k, float *piece) {
    const gemm_problem *p = j->p;
    const int64_t row = j->row + i, left = i < j->count ? p->k - k : 0, count = left < PIECE ? left : PIECE;
    const char *a = j->a;
    const int64_t size = cpu_convert_size(p->type_a), step = p->trans_a ? p->lda : 1;
    const char *from = a + (p->trans_a ? k * p->lda + row : row * p->lda + k) * size;
    for (int64_t u = 0; step > 1 && u < count; u++) cpu_convert_load(p->type_a, from + u * step * size, 1, piece + u);
    if (step == 1 && count > 0) cpu_convert_load(p->type_a, from, count, piece);
    for (int64_t u = count > 0 ? count : 0; u < PIECE; u++) piece[u] = 0;
}

static void widen(void *context, int thread, int threads) {
    const cpu_gemm_sparse_rows *j = context;
    float piece[PIECE] = {0};
    int64_t from, to;
    cpu_team_share((j->width + PIECE - 1) / PIECE, thread, threads, &from, &to);
    for (int64_t at = from * PIECE; at < to * PIECE && at < j->width; at += PIECE)
        for (int64_t i = 0; i < j->rows; i++) {
            load_piece(j, i, at, piece);
            for (int64_t u = 0; u < PIECE && at + u < j->width; u++)
                j->to[j->across ? (at + u) * j->rows + i : i * j->width + at + u] = piece[u];
        }
}

void cpu_gemm_sparse_widen(const cpu_gemm_sparse_rows *job) {
    cpu_gemm_sparse_rows own = *job;
    cpu_team_run(widen, &own);
}

void cpu_gemm_sparse_store(const gemm_problem *p, const void *bias, void *c, int64_t row, int64_t n, float sum) {
    double x = 0;
    if (bias) cpu_number_load(p->type_c, bias, n, 1, 1, &x);
    cpu_number_store(p->type_c, c, row * p->ldc + n, (double)sum + x);
}
