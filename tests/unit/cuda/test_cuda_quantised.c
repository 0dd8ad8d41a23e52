/* Quantised products of the CUDA device on machines without a GPU: cuBLASLt's product and the kernels around it are
 * plain loops here (quantised_fakes.h), memory is the host's, and everything between them is the real thing: which
 * candidate takes what, how it is divided, where each piece lies. Needs the toolkit's headers. */
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/own/own_gemm_quantised.h"
#include "scout/cuda/reference/cuda_whole.h"
#include "tests/fakes/quantised_fakes.h"
#include "tests/unit/cuda/cuda_fixture.h"

#define GEMM "\"op\": \"gemm\", \"weight_dtype\": \"int8\", \"weight_side\": \"b\", \"quant\": \"qdq\", "

static void fill(lab *l) {
    uint32_t state = 7;
    const int bias = op_tensor(&l->op, "bias");
    for (uint32_t k = 0; k < l->op.tensor_count; k++) {
        const scout_tensor *const t = &l->op.tensors[k];
        l->data[k] = room(t->bytes, 0xff);
        for (uint64_t n = 0; n < t->bytes && t->role != SCOUT_OUTPUT; n++) {
            state = state * 1664525u + 1013904223u;
            l->data[k][n] = (uint8_t)(state >> 24);
            if ((int)k == bias && n % 4 > 1) l->data[k][n] = 0; /* below 65,536 */
        }
        float *const numbers = (float *)(void *)l->data[k];
        for (uint64_t n = 0; t->type == SCOUT_FP32 && t->role != SCOUT_OUTPUT && n < t->bytes / sizeof(float); n++)
            numbers[n] = (float)(n % 7 + 1) / 8;
    }
}

static double output_at(const lab *l, int64_t at) {
    const uint8_t *const c = l->data[GEMM_C];
    float y = 0;
    if (l->op.output == SCOUT_INT8) return (double)(int8_t)c[at];
    if (l->op.output == SCOUT_UINT8) return (double)c[at];
    if (l->op.output == SCOUT_INT32) return (double)((const int32_t *)(const void *)c)[at];
    memcpy(&y, c + at * (int64_t)sizeof y, sizeof y);
    return (double)y;
}

/* By the formula of scout/op/requantize.h; the rows of a batch follow one another. */
static int zero_at(const lab *l, int tensor, uint32_t type, int64_t at, int otherwise) {
    if (tensor < 0) return otherwise;
    return type == SCOUT_UINT8 ? l->data[tensor][at] : (int8_t)l->data[tensor][at];
}

static double told_at(const lab *l, const gemm_problem *p, int64_t j, int64_t sum) {
    const int at = op_tensor(&l->op, "bias");
    const float *const scales = p->scales >= 0 ? (const float *)(const void *)l->data[p->scales] : NULL,
                       *const bias = at >= 0 ? (const float *)(const void *)l->data[at] : NULL;
    return (scales ? (double)scales[p->scales_each ? j : 0] : 1) * (double)sum + (bias ? (double)bias[j] : 0);
}

static double wanted_at(const lab *l, const gemm_problem *p, int64_t i, int64_t j) {
    const int bias = op_tensor(&l->op, "bias");
    const bool whole = bias >= 0 && p->quant.is;
    int64_t sum = whole ? ((const int32_t *)(const void *)l->data[bias])[j] : 0;
    const int a_zero = zero_at(l, p->a_zero, p->type_a, 0, p->quant.zero_in),
              b_zero = zero_at(l, p->b_zero, p->type_b, p->b_zero_each ? j : 0, p->quant.zero_weight);
    for (int64_t k = 0; k < p->k; k++) {
        const uint8_t x = l->data[GEMM_A][i * p->lda + k];
        const uint8_t w = l->data[GEMM_B][p->trans_b ? j * p->ldb + k : k * p->ldb + j];
        sum += ((p->type_a == SCOUT_UINT8 ? x : (int8_t)x) - a_zero) *
               ((p->type_b == SCOUT_UINT8 ? w : (int8_t)w) - b_zero);
    }
    if (!p->quant.is) return told_at(l, p, j, sum);
    return requantize_apply(&p->quant, &p->activation, (double)sum);
}

static bool is_right(const lab *l) {
    const gemm_problem p = gemm_problem_of(&l->op);
    for (int64_t i = 0; i < p.m * p.batch; i++)
        for (int64_t j = 0; j < p.n; j++) {
            const double want = wanted_at(l, &p, i, j), got = output_at(l, i * p.n + j);
            const double off = p.quant.is
                                   ? requantize_tolerance(&p.quant) * (fabs(want) + requantize_spread(&p.quant, want))
                               : l->op.output == SCOUT_INT32 ? 0
                                                             : 0x1p-20 * (fabs(want) + 1);
            if (fabs(got - want) <= off) continue;
            printf("row %lld, column %lld: %g instead of %g\n", (long long)i, (long long)j, got, want);
            return false;
        }
    return true;
}

/* Every variant; returns how many products the last one took. */
static int run_all(const char *fields, uint64_t workspace, uint32_t variants) {
    static scout_domain domain;
    lab l;
    if (read_op(&l, fields, workspace) && UNIT_INT(own_gemm_quantised.supports(&l.op, &device, &why), SCOUT_OK) &&
        UNIT_INT(own_gemm_quantised.domain(&l.op, &device, 0, &domain, &why), SCOUT_OK)) {
        uint32_t ran = 0;
        const bool rows = domain.count > 1;
        fill(&l);
        for (uint32_t n = 0; n < domain.parameters[0].count; n++)
            for (uint32_t k = 0; k < (rows ? domain.parameters[1].count : 1); k++) {
                const int64_t values[SCOUT_MAX_PARAMETERS] = {domain.parameters[0].values[n],
                                                              rows ? domain.parameters[1].values[k] : 0};
                if (!own_gemm_quantised.allows(&l.op, &device, values)) continue;
                products = wide = 0;
                run_lab(&l, &own_gemm_quantised, GEMM_C, values);
                UNIT_CHECK(is_right(&l));
                ran++;
            }
        if (!UNIT_INT(ran, variants) || !unit_ok) printf("%s\n", fields);
    } else {
        printf("%s: %s %s\n", fields, why.code, why.text);
    }
    drop(&l);
    return products;
}

/* ---- tests ---- */

static void all_sides_and_types_are_right(void) {
    static const char *const types[] = {"\"dtype\": \"int8\"", "\"dtype\": \"uint8\""},
                             *const outs[] = {"int8", "uint8", "fp32"},
                             *const behind[] = {"", ", \"bias\": \"n\"", ", \"bias\": \"n\", \"activation\": \"relu\""},
                             *const shapes[] = {"1, 48, 64", "7, 63, 129", "17, 64, 32", "129, 20, 17", "1, 1, 1"};
    fewest = 1;
    for (int k = 0; k < 2 * 3 * 3 * 5 * 2; k++) {
        char text[400];
        const char *const shape = shapes[k / 18 % 5];
        snprintf(text, sizeof text, GEMM "%s, \"out_dtype\": \"%s\", \"shape\": [%s], \"layout\": \"%s\"%s",
                 types[k % 2], outs[k / 2 % 3], shape, k / 90 ? "nt" : "nn", behind[k / 6 % 3]);
        const bool few = shape[1] == ',';
        UNIT_INT(run_all(text, SMALL, ALGORITHMS * (few ? 2 : 1)), 1);
        if (!unit_ok) return;
    }
}

#define GEMM_ANY "\"op\": \"gemm\", \"weight_side\": \"b\", \"quant\": \"qdq\", "
#define TOLD     "\"op\": \"gemm\", \"weight_side\": \"b\", "

/* Zero points and scales that are tensors. */
static void what_tensors_tell_is_right(void) {
    static const char *const sides[] = {"int8", "uint8"},
                             *const shapes[] = {"1, 48, 64", "7, 63, 129", "17, 64, 32", "129, 20, 17"},
                             *const zeros[] = {", \"a_zero\": 1", ", \"b_zero\": \"one\"", ", \"b_zero\": \"channel\"",
                                               ", \"a_zero\": 1, \"b_zero\": \"channel\""},
                             *const outs[] = {
                                 "\"int32\"", "\"fp32\", \"quant\": \"dynamic\"",
                                 "\"fp32\", \"quant\": \"dynamic\", \"bias\": \"n\", \"weight_scales\": \"channel\""};
    fewest = 1;
    for (int k = 0; k < 4 * 4 * 4 * 3 * 2; k++) {
        char text[400];
        const char *const shape = shapes[k / 48 % 4];
        snprintf(text, sizeof text,
                 TOLD "\"dtype\": \"%s\", \"weight_dtype\": \"%s\", \"out_dtype\": %s, \"shape\": [%s], "
                      "\"layout\": \"%s\"%s",
                 sides[k % 2], sides[k / 2 % 2], outs[k / 4 % 3], shape, k / 192 ? "nt" : "nn", zeros[k / 12 % 4]);
        UNIT_INT(run_all(text, SMALL, ALGORITHMS * (shape[1] == ',' ? 2 : 1)), 1);
        if (!unit_ok) return;
    }
    UNIT_CHECK(run_all(TOLD "\"dtype\": \"uint8\", \"weight_dtype\": \"uint8\", \"out_dtype\": \"int32\", \"shape\": "
                            "[70, 2500, 20], \"a_zero\": 1, \"b_zero\": \"channel\"",
                       1 << 20, ALGORITHMS) > 1); /* in pieces */
    run_all(GEMM_ANY "\"dtype\": \"uint8\", \"weight_dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": "
                     "[17, 63, 129], \"bias\": \"n\"",
            SMALL, ALGORITHMS);
}

static void a_batch_that_shares_its_weight_is_rows(void) {
    fewest = 1;
    UNIT_INT(run_all(GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"int8\", \"shape\": [19, 20, 33], \"bias\": \"n\", "
                          "\"batch\": 3, \"batch_stride_b\": 0",
                     SMALL, ALGORITHMS),
             1);
}

/* Where the library has nothing for few rows, they are filled up. */
static void few_rows_are_filled_up(void) {
    fewest = 17;
    UNIT_INT(run_all(GEMM "\"dtype\": \"int8\", \"out_dtype\": \"fp32\", \"shape\": [16, 32, 48], \"bias\": \"n\"",
                     SMALL, ALGORITHMS),
             1);
    UNIT_INT(wide, 32 * 32);
    UNIT_INT(run_all(GEMM "\"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [17, 32, 48]", SMALL, ALGORITHMS),
             1);
    UNIT_INT(wide, 17 * 32);
}

/* Half of the workspace is for sums, a quarter for the input: 131,072 sums and 262,144 bytes here. */
static void what_does_not_fit_is_done_in_pieces(void) {
    const uint64_t workspace = 1 << 20;
    fewest = 17;
    UNIT_CHECK(run_all(GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"int8\", \"shape\": [70, 2500, 20], "
                            "\"bias\": \"n\"",
                       workspace, ALGORITHMS) > 1); /* columns, then rows */
    UNIT_CHECK(wide <= 131072);
    UNIT_CHECK(run_all(GEMM "\"dtype\": \"int8\", \"out_dtype\": \"uint8\", \"shape\": [1501, 100, 32], "
                            "\"layout\": \"nt\", \"bias\": \"n\"",
                       workspace, ALGORITHMS) > 1); /* rows */
    UNIT_CHECK(wide <= 131072);
    UNIT_CHECK(run_all(GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"fp32\", \"shape\": [300, 32, 2048]", workspace,
                       ALGORITHMS) > 1); /* the input; sums lie in the output */
}

static void what_it_does_not_do_is_refused(void) {
    static const struct {
        const char *fields, *code;
        uint64_t workspace;
    } rows[] = {
        {"\"op\": \"gemm\", \"dtype\": \"int8\", \"shape\": [32, 32, 32]", "feature", SMALL},
        {"\"op\": \"gemm\", \"dtype\": \"fp16\", \"shape\": [32, 32, 32], \"bias\": \"n\"", "feature", SMALL},
        {GEMM "\"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [32, 32, 32], \"layout\": \"tn\"", "layout",
         SMALL},
        {GEMM "\"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [32, 32, 32], \"batch\": 4", "layout", SMALL},
        {GEMM "\"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [900, 900, 900]", "memory", 4096},
    };
    fewest = 1;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        lab l;
        if (read_op(&l, rows[k].fields, rows[k].workspace)) {
            UNIT_INT(own_gemm_quantised.supports(&l.op, &device, &why), SCOUT_NO);
            UNIT_TEXT(why.code, rows[k].code);
        }
        drop(&l);
    }
}

/* Those alone that know of zero points take it. */
static void check_takers(const char *fields) {
    scout_plugin_entry_fn scout_plugin_entry;
    const scout_device_api *const api = scout_plugin_entry(SCOUT_ABI)->device;
    lab l;
    if (read_op(&l, fields, SMALL))
        for (uint32_t k = 0; k < api->candidate_count; k++) {
            const scout_candidate *const c = api->candidates[k];
            const bool takes = c == &own_gemm_quantised || c == &own_gemm_bytes;
            if (c->kind != SCOUT_GEMM) continue;
            if (!UNIT_INT(c->supports(&l.op, &device, &why), takes ? SCOUT_OK : SCOUT_NO))
                printf("%s: %s\n", fields, c->name);
        }
    drop(&l);
}

static void no_other_takes_quantised_products(void) {
    static const char *const outs[] = {"int8", "uint8", "fp32"}, *const ins[] = {"int8", "uint8"},
                             *const forms[] = {"\"int32\", \"a_zero\": 1", "\"int32\", \"b_zero\": \"one\"",
                                               "\"fp32\", \"quant\": \"dynamic\"",
                                               "\"fp16\", \"quant\": \"dynamic\", \"bias\": \"n\""};
    char text[300];
    for (int n = 0; n < 12; n++) {
        snprintf(text, sizeof text, GEMM "\"dtype\": \"%s\", \"out_dtype\": \"%s\", \"shape\": [64, 64, 64]%s",
                 ins[n % 2], outs[n / 2 % 3], n / 6 ? ", \"activation\": \"relu\"" : "");
        check_takers(text);
    }
    for (int n = 0; n < 8; n++) {
        snprintf(text, sizeof text,
                 TOLD "\"dtype\": \"%s\", \"weight_dtype\": \"%s\", \"shape\": [64, 64, 64], \"layout\": \"nt\", "
                      "\"out_dtype\": %s",
                 ins[n % 2], ins[n % 2], forms[n / 2]);
        check_takers(text);
    }
}

/* What the device's reference is forms. */
static void the_reference_is_the_formula(void) {
    static const char *const rows[] = {
        GEMM "\"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [17, 20, 33], \"layout\": \"nn\"",
        GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": [7, 33, 20], \"layout\": \"nt\", "
             "\"bias\": \"n\", \"activation\": \"relu\"",
        GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"fp32\", \"shape\": [5, 6, 7], \"layout\": \"nt\", "
             "\"bias\": \"n\", \"activation\": \"relu6\"",
        GEMM "\"dtype\": \"uint8\", \"out_dtype\": \"int8\", \"shape\": [5, 6, 7], \"layout\": \"nn\", "
             "\"bias\": \"n\", \"batch\": 3, \"batch_stride_b\": 0",
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        lab l;
        double want[17 * 20];
        float spread[17 * 20];
        if (read_op(&l, rows[k], SMALL)) {
            const gemm_problem p = gemm_problem_of(&l.op);
            void *tensors[SCOUT_MAX_TENSORS];
            fill(&l);
            for (uint32_t t = 0; t < l.op.tensor_count; t++) tensors[t] = l.data[t];
            UNIT_INT(cuda_whole_gemm(&device, &l.op, tensors, GEMM_C, want, spread, &why), SCOUT_OK);
            for (int64_t at = 0; at < p.m * p.batch * p.n; at++)
                if (!UNIT_CHECK(want[at] == wanted_at(&l, &p, at / p.n, at % p.n))) {
                    printf("%s: at %lld %g\n", rows[k], (long long)at, want[at]);
                    break;
                }
        }
        drop(&l);
    }
}

int main(void) {
    UNIT_RUN(all_sides_and_types_are_right);
    UNIT_RUN(what_tensors_tell_is_right);
    UNIT_RUN(a_batch_that_shares_its_weight_is_rows);
    UNIT_RUN(few_rows_are_filled_up);
    UNIT_RUN(what_does_not_fit_is_done_in_pieces);
    UNIT_RUN(what_it_does_not_do_is_refused);
    UNIT_RUN(no_other_takes_quantised_products);
    UNIT_RUN(the_reference_is_the_formula);
    return unit_end();
}
