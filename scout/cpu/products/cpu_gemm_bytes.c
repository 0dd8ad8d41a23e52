/* Products of int8 and uint8 in any mixture by an own kernel: into int32, with zero points and scales as tensors
 * (dynamic quantising), and between DequantizeLinear and QuantizeLinear. The baseline of what oneDNN lacks: zero
 * points, unsigned weights, processors without dot products of bytes.
 *
 * Bytes become 16 bits when they are packed, and lose their zero points there. Two neighbours along K are multiplied
 * and added at once, which every vector unit can and which is exact. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { PAIRS = 256, BLOCK_M = 96, BLOCK_N = 256, MOST_ROWS = 12, MOST_COLS = 32 };

typedef struct pair { /* neighbours along K */
    int16_t first, second;
} pair;

/* tile[rows][cols] += sum over pairs of a[k][rows] * b[k][cols]. Sums wrap around. */
typedef void tile_kernel(const pair *a, const pair *b, int64_t pairs, int32_t *tile);

typedef struct tile_shape {
    int64_t rows, cols;
    tile_kernel *kernel;
    const char *name;
} tile_shape;

struct scout_plan {
    gemm_problem p;
    const tile_shape *shape;
    int64_t blocks_m, blocks_n;
    int bias; /* its tensor; -1: none */
    uint32_t type_bias;
};

typedef struct bytes_job {
    const scout_plan *plan;
    void *const *tensors;
    uint8_t *scratch;
} bytes_job;

static void tile_portable(const pair *a, const pair *b, int64_t pairs, int32_t *tile) {
    for (int64_t k = 0; k < pairs; k++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++) {
                const pair x = a[k * 4 + i], y = b[k * 8 + j];
                tile[i * 8 + j] =
                    (int32_t)((uint32_t)tile[i * 8 + j] + (uint32_t)(x.first * y.first + x.second * y.second));
            }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void tile_avx2(const pair *a, const pair *b, int64_t pairs, int32_t *tile) {
    __m256i c[6][2];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 2; j++) c[i][j] = _mm256_loadu_si256((const __m256i *)(void *)(tile + i * 16 + j * 8));
    for (int64_t k = 0; k < pairs; k++, a += 6, b += 16) {
        const __m256i b0 = _mm256_loadu_si256((const __m256i *)(const void *)b),
                      b1 = _mm256_loadu_si256((const __m256i *)(const void *)(b + 8));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 6
#endif
        for (int i = 0; i < 6; i++) {
            int32_t both;
            memcpy(&both, a + i, sizeof both);
            const __m256i ai = _mm256_set1_epi32(both);
            c[i][0] = _mm256_add_epi32(c[i][0], _mm256_madd_epi16(ai, b0));
            c[i][1] = _mm256_add_epi32(c[i][1], _mm256_madd_epi16(ai, b1));
        }
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 2; j++) _mm256_storeu_si256((__m256i *)(void *)(tile + i * 16 + j * 8), c[i][j]);
}

__attribute__((target("avx512f,avx512bw"))) static void tile_avx512(const pair *a, const pair *b, int64_t pairs,
                                                                    int32_t *tile) {
    __m512i c[12][2];
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 2; j++) c[i][j] = _mm512_loadu_si512(tile + i * 32 + j * 16);
    for (int64_t k = 0; k < pairs; k++, a += 12, b += 32) {
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 16);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 12
#endif
        for (int i = 0; i < 12; i++) {
            int32_t both;
            memcpy(&both, a + i, sizeof both);
            const __m512i ai = _mm512_set1_epi32(both);
            c[i][0] = _mm512_add_epi32(c[i][0], _mm512_madd_epi16(ai, b0));
            c[i][1] = _mm512_add_epi32(c[i][1], _mm512_madd_epi16(ai, b1));
        }
    }
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 2; j++) _mm512_storeu_si512(tile + i * 32 + j * 16, c[i][j]);
}
#endif

static const tile_shape *best_shape(void) {
    static const tile_shape shapes[] = {
#if defined(__x86_64__)
        {12, 32, tile_avx512, "avx512"},
        {6, 16, tile_avx2, "avx2"},
#endif
        {4, 8, tile_portable, "portable"},
    };
    const cpu_info *c = cpu_info_get();
    const size_t count = sizeof shapes / sizeof shapes[0];
    return c->avx512 ? &shapes[0] : c->avx2 ? &shapes[count > 1 ? 1 : 0] : &shapes[count - 1];
}

/* --- packing: strips of `width` lines, pair by pair, zeros beyond the edge --- */

typedef struct source { /* element (line, k) lies at data[line * line_step + k * k_step] */
    const uint8_t *data;
    bool is_signed;
    int64_t line_step, k_step;
    const int16_t *zeros; /* of each line */
} source;

static inline int16_t number_at(const source *s, int64_t line, int64_t k) {
    const uint8_t x = s->data[line * s->line_step + k * s->k_step];
    return (int16_t)((s->is_signed ? (int8_t)x : x) - s->zeros[line]);
}

FAST static void pack_strip(const source *s, int64_t line, int64_t lines, int64_t width, int64_t k, int64_t depth,
                            pair *out) {
    for (int64_t i = 0; i < width; i++)
        for (int64_t d = 0; d < depth; d += 2) {
            pair *const to = &out[d / 2 * width + i];
            to->first = i < lines ? number_at(s, line + i, k + d) : (int16_t)0;
            to->second = i < lines && d + 1 < depth ? number_at(s, line + i, k + d + 1) : (int16_t)0;
        }
}

static void pack_block(const source *s, int64_t line, int64_t lines, int64_t width, int64_t k, int64_t depth,
                       pair *out) {
    for (int64_t at = 0; at < lines; at += width, out += width * PAIRS)
        pack_strip(s, line + at, lines - at < width ? lines - at : width, width, k, depth, out);
}

/* --- the epilogue --- */

FAST static void scale_row(const int32_t *sums, int64_t count, const float *scales, bool each, float *out) {
    if (each)
        for (int64_t k = 0; k < count; k++) out[k] = (float)sums[k] * scales[k];
    else
        for (int64_t k = 0; k < count; k++) out[k] = (float)sums[k] * scales[0];
}

/* Adding 1.5 * 2^23 rounds to a whole number, ties to even. */
FAST static void quantise_row(const requantize *q, const op_activation *a, int64_t count, float *row) {
    double low = -INFINITY, high = INFINITY;
    const float magic = 0x1.8p23f, factor = (float)q->factor,
                slope = a->function == ACTIVATION_RELU ? (float)a->alpha : 1;
    if (a->function == ACTIVATION_CLIP) low = a->alpha, high = a->beta;
    if (q->rounds) low = fmin(fmax(low, q->least - q->zero_out), q->most - q->zero_out);
    if (q->rounds) high = fmin(fmax(high, q->least - q->zero_out), q->most - q->zero_out);
    const float least = (float)low, most = (float)high, zero = (float)q->zero_out;
    for (int64_t k = 0; k < count; k++) {
        float x = row[k] * factor;
        x = x < 0 ? x * slope : x;
        row[k] = x < least ? least : x > most ? most : x;
    }
    for (int64_t k = 0; k < count && q->rounds; k++) row[k] = (row[k] + magic) - magic + zero;
}

FAST static void store_bytes(const float *row, int64_t count, uint8_t *out) {
    for (int64_t k = 0; k < count; k++) out[k] = (uint8_t)(int32_t)row[k];
}

static void add_bias(const scout_plan *plan, const void *bias, int64_t row, int64_t column, int64_t count, float *out) {
    const char form = plan->p.bias[0];
    const bool by_row = form == 'm' || form == 'f', by_column = form == 'n' || form == 'f';
    const int64_t from = (by_row ? row * (by_column ? plan->p.n : 1) : 0) + (by_column ? column : 0);
    float values[BLOCK_N];
    const char *const at = (const char *)bias + from * cpu_convert_size(plan->type_bias);
    cpu_convert_load(plan->type_bias, at, by_column ? count : 1, values);
    for (int64_t k = 0; k < count; k++) out[k] += values[by_column ? k : 0];
}

static void finish_row(const bytes_job *job, int64_t product, int64_t row, int64_t column, int64_t count,
                       int32_t *sums) {
    const gemm_problem *p = &job->plan->p;
    const int64_t size = cpu_number_bits(p->type_c) / 8;
    char *const to = (char *)job->tensors[GEMM_C] + (product * p->stride_c + row * p->ldc + column) * size;
    const void *const bias = job->plan->bias >= 0 ? job->tensors[job->plan->bias] : NULL;
    static const float one = 1;
    float values[BLOCK_N];
    if (p->type_c == SCOUT_INT32) {
        memcpy(to, sums, (size_t)count * sizeof *sums);
        return;
    }
    if (p->quant.is) {
        const int32_t *const whole = bias;
        for (int64_t k = 0; k < count && whole; k++)
            sums[k] = (int32_t)((uint32_t)sums[k] + (uint32_t)whole[p->bias[0] == 'm' ? row : column + k]);
        scale_row(sums, count, &one, false, values);
        quantise_row(&p->quant, &p->activation, count, values);
    } else {
        const float *const scales = job->tensors[p->scales];
        scale_row(sums, count, scales + (p->scales_each ? column : 0), p->scales_each, values);
        if (bias) add_bias(job->plan, bias, row, column, count, values);
    }
    if (size == 1)
        store_bytes(values, count, (uint8_t *)to);
    else
        cpu_convert_store(p->type_c, values, count, to);
}

/* --- one block of C --- */

static void multiply_packed(const tile_shape *shape, const pair *a, const pair *b, int64_t rows, int64_t cols,
                            int64_t pairs, int32_t *sums) {
    for (int64_t j = 0; j < cols; j += shape->cols)
        for (int64_t i = 0; i < rows; i += shape->rows) {
            int32_t tile[MOST_ROWS * MOST_COLS] = {0};
            const int64_t high = rows - i < shape->rows ? rows - i : shape->rows;
            const int64_t wide = cols - j < shape->cols ? cols - j : shape->cols;
            shape->kernel(a + i * PAIRS, b + j * PAIRS, pairs, tile);
            for (int64_t y = 0; y < high; y++)
                for (int64_t x = 0; x < wide; x++) {
                    int32_t *const to = &sums[(i + y) * BLOCK_N + j + x];
                    *to = (int32_t)((uint32_t)*to + (uint32_t)tile[y * shape->cols + x]);
                }
        }
}

typedef struct room { /* of a thread */
    pair a[(BLOCK_M + MOST_ROWS) * PAIRS], b[(BLOCK_N + MOST_COLS) * PAIRS];
    int32_t sums[BLOCK_M * BLOCK_N];
    int16_t zeros_a[BLOCK_M], zeros_b[BLOCK_N];
} room;

/* Zero points of `count` lines: from tensors, or by convention (scout/op/requantize.h). */
static void load_zeros(const bytes_job *job, int tensor, uint32_t type, bool each, int64_t first, int64_t count,
                       int otherwise, int16_t *out) {
    for (int64_t k = 0; k < count; k++) {
        double zero = otherwise;
        if (tensor >= 0) cpu_number_load(type, job->tensors[tensor], each ? first + k : 0, 1, 1, &zero);
        out[k] = (int16_t)zero;
    }
}

static source source_of(const bytes_job *job, int tensor, uint32_t type, int64_t at, int64_t line_step, int64_t k_step,
                        const int16_t *zeros) {
    return (source){(const uint8_t *)job->tensors[tensor] + at, type == SCOUT_INT8, line_step, k_step, zeros};
}

static void do_block(const bytes_job *job, int64_t index, room *r) {
    const scout_plan *plan = job->plan;
    const gemm_problem *p = &plan->p;
    const int64_t product = index / (plan->blocks_m * plan->blocks_n), rest = index % (plan->blocks_m * plan->blocks_n);
    const int64_t row = rest % plan->blocks_m * BLOCK_M, column = rest / plan->blocks_m * BLOCK_N;
    const int64_t rows = p->m - row < BLOCK_M ? p->m - row : BLOCK_M;
    const int64_t cols = p->n - column < BLOCK_N ? p->n - column : BLOCK_N;
    const int64_t line_a = p->trans_a ? 1 : p->lda, line_b = p->trans_b ? p->ldb : 1;
    const source a = source_of(job, GEMM_A, p->type_a, product * p->stride_a + row * line_a, line_a,
                               p->trans_a ? p->lda : 1, r->zeros_a);
    const source b = source_of(job, GEMM_B, p->type_b, product * p->stride_b + column * line_b, line_b,
                               p->trans_b ? 1 : p->ldb, r->zeros_b);
    load_zeros(job, p->a_zero, p->type_a, false, row, rows, p->quant.zero_in, r->zeros_a);
    load_zeros(job, p->b_zero, p->type_b, p->b_zero_each, column, cols, p->quant.zero_weight, r->zeros_b);
    memset(r->sums, 0, sizeof r->sums);
    for (int64_t k = 0; k < p->k; k += 2 * PAIRS) {
        const int64_t depth = p->k - k < 2 * PAIRS ? p->k - k : 2 * PAIRS;
        pack_block(&a, 0, rows, plan->shape->rows, k, depth, r->a);
        pack_block(&b, 0, cols, plan->shape->cols, k, depth, r->b);
        multiply_packed(plan->shape, r->a, r->b, rows, cols, (depth + 1) / 2, r->sums);
    }
    for (int64_t i = 0; i < rows; i++) finish_row(job, product, row + i, column, cols, r->sums + i * BLOCK_N);
}

static void bytes_share(void *context, int thread, int threads) {
    const bytes_job *job = context;
    int64_t from, to;
    cpu_team_share(job->plan->blocks_m * job->plan->blocks_n * job->plan->p.batch, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) do_block(job, k, (room *)(void *)job->scratch + thread);
}

/* --- the candidate --- */

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const int bias = op_tensor(op, "bias");
    (void)device;
    if (!is_byte(p.type_a) || !is_byte(p.type_b))
        return scout_say(why, SCOUT_NO, "type", "multiplies bytes with bytes");
    if (p.residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "adds no residual to products of bytes");
    if (bias >= 0 && p.bias && p.quant.is &&
        ((strcmp(p.bias, "n") != 0 && strcmp(p.bias, "m") != 0) || op->tensors[bias].type != SCOUT_INT32))
        return scout_say(why, SCOUT_NO, "epilogue", "a quantised product's bias is int32 along M or N");
    if (p.bias && strcmp(p.bias, "each") == 0)
        return scout_say(why, SCOUT_NO, "epilogue", "products of bytes have one bias for all of a batch");
    if (bias >= 0 && !p.quant.is && !cpu_convert_known(op->tensors[bias].type))
        return scout_say(why, SCOUT_NO, "type", "adds a bias of fp32, fp16 or bf16");
    if (p.quant.is ? !requantize_activation(&p.activation) : p.activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "no such activation");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    plan->p = gemm_problem_of(op);
    plan->shape = best_shape();
    plan->blocks_m = (plan->p.m + BLOCK_M - 1) / BLOCK_M;
    plan->blocks_n = (plan->p.n + BLOCK_N - 1) / BLOCK_N;
    plan->bias = op_tensor(op, "bias");
    if (plan->bias >= 0) plan->type_bias = op->tensors[plan->bias].type;
    needs->workspace_bytes = (uint64_t)cpu_team_size() * sizeof(room);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    bytes_job job = {plan, args->tensors, args->workspace};
    (void)why;
    cpu_team_run(bytes_share, &job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room_left) {
    return snprintf(json, room_left,
                    "{\"kernel\": \"bytes\", \"registers\": \"%lldx%lld %s\", \"block\": \"%dx%dx%d\", "
                    "\"threads\": \"%s\"}",
                    (long long)plan->shape->rows, (long long)plan->shape->cols, plan->shape->name, BLOCK_M, BLOCK_N,
                    2 * PAIRS, cpu_team_about());
}

const scout_candidate cpu_gemm_bytes = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 20,
    .name = "cpu_bytes",
    .about = "own product of int8 and uint8 in any mixture, zero points, scales and requantising fused",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
