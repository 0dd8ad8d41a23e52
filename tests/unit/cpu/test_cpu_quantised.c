/* Products and convolutions between DequantizeLinear and QuantizeLinear on the CPU device: the reference against plain
 * loops in whole numbers, every candidate against the reference, and what a candidate may get wrong is found. */
#include "scout/kinds/kinds.h"
#include "scout/op/conv.h"
#include "scout/op/gemm.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct quantised {
    guard g;
    arena a;
    operation_list list;
    scout_op op;
    scout_why why;
    void *data[SCOUT_MAX_TENSORS];
    int bias, output;
    int64_t depth;
    double tolerance;
} quantised;

#define CONV     "\"op\": \"conv\", \"weight_dtype\": \"int8\", \"quant\": \"qdq\""
#define UNSIGNED "\"op\": \"conv\", \"weight_dtype\": \"uint8\", \"quant\": \"qdq\""
#define GEMM     "\"op\": \"gemm\", \"weight_dtype\": \"int8\", \"weight_side\": \"b\", \"quant\": \"qdq\""

static const char *const cases[] = {
    CONV ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [2, 16, 9, 7], \"input\": [2, 32, 9, 7], "
         "\"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"bias\": \"channel\", \"weight_scales\": \"channel\"",
    CONV ", \"dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": [1, 6, 5, 64], \"input\": [1, 11, 9, 33], "
         "\"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"stride\": [2, 2], \"layout\": \"nhwc\", "
         "\"bias\": \"channel\", \"activation\": \"relu\"",
    CONV ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [1, 24, 6, 6], \"input\": [1, 24, 8, 8], "
         "\"kernel\": [3, 3], \"group\": 24, \"activation\": \"relu6\"",
    CONV ", \"dtype\": \"uint8\", \"out_dtype\": \"fp32\", \"shape\": [1, 17, 5, 5], \"input\": [1, 65, 5, 5], "
         "\"kernel\": [1, 1], \"bias\": \"channel\"",
    CONV ", \"dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": [2, 10, 9, 7], \"input\": [2, 8, 9, 7], "
         "\"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"group\": 2, \"bias\": \"channel\", \"activation\": \"relu\"",
    UNSIGNED ", \"dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": [2, 10, 9, 7], \"input\": [2, 8, 9, 7], "
             "\"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"group\": 2, \"bias\": \"channel\"",
    UNSIGNED ", \"dtype\": \"uint8\", \"out_dtype\": \"fp32\", \"shape\": [1, 6, 5, 64], \"input\": [1, 11, 9, 33], "
             "\"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"stride\": [2, 2], \"layout\": \"nhwc\"",
    UNSIGNED ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [1, 17, 5, 5], \"input\": [1, 65, 5, 5], "
             "\"kernel\": [1, 1], \"bias\": \"channel\", \"activation\": \"relu\"",
    "\"op\": \"conv\", \"weight_dtype\": \"uint8\", \"quant\": \"dynamic\", \"dtype\": \"uint8\", \"out_dtype\": "
    "\"fp32\", "
    "\"shape\": [2, 10, 9, 7], \"input\": [2, 8, 9, 7], \"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"group\": 2",
    GEMM ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [17, 63, 129], \"bias\": \"n\"",
    GEMM ", \"dtype\": \"uint8\", \"out_dtype\": \"uint8\", \"shape\": [33, 64, 256], \"layout\": \"nt\", "
         "\"bias\": \"n\", \"activation\": \"relu\"",
    GEMM ", \"dtype\": \"uint8\", \"out_dtype\": \"fp32\", \"shape\": [1, 64, 64]",
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* ---- operations ---- */

static bool build(quantised *q, const char *fields) {
    char path[] = "/tmp/test_cpu_quantised.XXXXXX", text[512];
    const int file = mkstemp(path), length = snprintf(text, sizeof text, "{\"q\": {%s}}", fields);
    const bool written = file >= 0 && write(file, text, (size_t)length) == length;
    if (file >= 0) close(file);
    memset(q, 0, sizeof *q);
    guard_init(&q->g);
    arena_init(&q->a, &q->g, (size_t)64 << 20);
    bool good = written && guard_enter(&q->g);
    if (good) operation_read(path, "fp16", &q->a, &q->list);
    unlink(path);
    return good && kinds_build(&q->list.items[0], 32U << 20, &q->a, &q->op, &q->why);
}

static void drop(quantised *q) {
    for (uint32_t k = 0; k < q->op.tensor_count; k++)
        if (q->data[k]) cpu_products_api->release(cpu_products_device, q->data[k]);
    operation_list_free(&q->list);
    arena_free(&q->a);
}

static bool make(quantised *q, const char *fields) {
    if (!UNIT_CHECK(build(q, fields))) {
        printf("%s: %s %s\n", fields, q->g.st.text, q->why.text);
        return false;
    }
    q->bias = op_tensor(&q->op, "bias");
    q->output = op_tensor(&q->op, q->op.kind == SCOUT_CONV ? "output" : "c");
    q->tolerance = kinds_find(q->list.items[0].rec.kind)->tolerance(&q->op);
    for (uint32_t k = 0; k < q->op.tensor_count; k++) {
        const scout_tensor *const t = &q->op.tensors[k];
        const uint64_t seed = t->below > 0 ? SCOUT_FILL_SEED(t->below, 3 + k) : 3 + k;
        if (!UNIT_INT(cpu_products_api->alloc(cpu_products_device, t->bytes, &q->data[k], &q->why), SCOUT_OK) ||
            !UNIT_INT(cpu_products_api->fill(cpu_products_device, q->data[k], t->bytes, t->type,
                                             t->below > 0 ? SCOUT_FILL_BELOW : SCOUT_FILL_NORMAL, seed, &q->why),
                      SCOUT_OK))
            return false;
    }
    return true;
}

/* ---- the plain formula ---- */

static int64_t input_at(const quantised *q, int64_t at) {
    return q->op.input == SCOUT_UINT8 ? (int64_t)((const uint8_t *)q->data[0])[at] - 128
                                      : ((const int8_t *)q->data[0])[at];
}

static int64_t weight_at(const quantised *q, int64_t at) {
    return q->op.weight == SCOUT_UINT8 ? (int64_t)((const uint8_t *)q->data[1])[at] - 128
                                       : ((const int8_t *)q->data[1])[at];
}

static int64_t conv_sum(const quantised *q, const conv_problem *p, int64_t image, int64_t channel, int64_t y,
                        int64_t x) {
    const int64_t inputs = p->cin / p->group, group = channel / (p->cout / p->group);
    const window_axis *const h = &p->w.axes[1], *const w = &p->w.axes[2];
    int64_t sum = 0;
    for (int64_t i = 0; i < inputs; i++)
        for (int64_t ky = 0; ky < h->kernel; ky++)
            for (int64_t kx = 0; kx < w->kernel; kx++) {
                const int64_t in_y = y * h->stride + ky - h->begin, in_x = x * w->stride + kx - w->begin;
                if (in_y < 0 || in_y >= h->in || in_x < 0 || in_x >= w->in) continue;
                sum +=
                    input_at(q, image * p->in_n + (group * inputs + i) * p->in_c + (in_y * w->in + in_x) * p->in_step) *
                    weight_at(q, ((channel * inputs + i) * h->kernel + ky) * w->kernel + kx);
            }
    return sum;
}

static void put(quantised *q, int64_t at, int64_t column, int64_t sum) {
    const requantize r = requantize_of(&q->op, q->depth);
    const char *const activation = op_text(&q->op, "activation");
    double y = r.factor * (double)(sum + (q->bias >= 0 ? ((const int32_t *)q->data[q->bias])[column] : 0));
    if (activation && y < 0) y = 0;
    if (activation && strcmp(activation, "relu6") == 0 && y > 6) y = 6;
    void *const to = q->data[q->output];
    if (q->op.output == SCOUT_FP32)
        ((float *)to)[at] = (float)y;
    else if (q->op.output == SCOUT_UINT8)
        ((uint8_t *)to)[at] = (uint8_t)fmin(255, fmax(0, rint(y) + 128));
    else
        ((int8_t *)to)[at] = (int8_t)fmin(127, fmax(-128, rint(y)));
}

static void write_formula(quantised *q) {
    if (q->op.kind == SCOUT_CONV) {
        const conv_problem p = conv_problem_of(&q->op);
        const int64_t columns = p.w.axes[2].out, places = window_out(&p.w);
        q->depth = conv_depth(&p);
        for (int64_t image = 0; image < p.n; image++)
            for (int64_t c = 0; c < p.cout; c++)
                for (int64_t at = 0; at < places; at++)
                    put(q, image * p.out_n + c * p.out_c + at * p.out_step, c,
                        conv_sum(q, &p, image, c, at / columns, at % columns));
        return;
    }
    const gemm_problem p = gemm_problem_of(&q->op);
    q->depth = p.k;
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            int64_t sum = 0;
            for (int64_t k = 0; k < p.k; k++)
                sum += input_at(q, i * p.lda + k) * weight_at(q, p.trans_b ? j * p.ldb + k : k * p.ldb + j);
            put(q, i * p.ldc + j, j, sum);
        }
}

/* ---- tests ---- */

static const scout_reference *reference_of(const quantised *q) {
    for (uint32_t k = 0; k < cpu_products_api->reference_count; k++)
        if (cpu_products_api->references[k]->kind == q->op.kind) return cpu_products_api->references[k];
    abort();
}

static scout_check *begin(quantised *q) {
    scout_check *check = NULL;
    UNIT_INT(reference_of(q)->begin(cpu_products_device, &q->op, q->data, 1, &check, &q->why), SCOUT_OK);
    return check;
}

static scout_verdict judge(quantised *q, scout_check *check) {
    scout_verdict v = {.size = sizeof v};
    UNIT_INT(reference_of(q)->compare(check, q->data[q->output], q->tolerance, &v, &q->why), SCOUT_OK);
    return v;
}

static bool is_right(const quantised *q, const scout_verdict *v) {
    return v->compared > 0 && v->wrong == 0 && v->worst <= q->tolerance && v->worst_projected <= q->tolerance;
}

static void the_reference_is_the_formula(void) {
    for (size_t k = 0; k < CASES; k++) {
        quantised q;
        if (make(&q, cases[k])) {
            scout_check *const check = begin(&q);
            write_formula(&q);
            scout_verdict v = judge(&q, check);
            if (!UNIT_CHECK(is_right(&q, &v)))
                printf("%s: at %llu %g instead of %g\n", cases[k], (unsigned long long)v.at, v.got, v.want);
            unsigned char *const wrong = q.data[q.output];
            const uint64_t bytes = q.op.tensors[q.output].bytes;
            wrong[bytes / 8 * 4 + (q.op.output == SCOUT_FP32 ? 2 : 0)] ^= 0x02; /* two steps of a byte */
            v = judge(&q, check);
            UNIT_CHECK(!is_right(&q, &v));
            reference_of(&q)->end(check);
        }
        drop(&q);
    }
}

/* The outputs use most of their range, and do not stick at its ends. */
static void outputs_are_worth_looking_at(void) {
    for (size_t k = 0; k < CASES; k++) {
        quantised q;
        if (make(&q, cases[k]) && q.op.output != SCOUT_FP32) {
            const int64_t count = op_elements(&q.op.tensors[q.output]);
            int64_t ends = 0;
            bool seen[256] = {false};
            int different = 0;
            write_formula(&q);
            for (int64_t n = 0; n < count; n++) {
                const unsigned char y = ((const unsigned char *)q.data[q.output])[n];
                ends += q.op.output == SCOUT_UINT8 ? y == 255 : y == 127 || y == 128;
                different += !seen[y];
                seen[y] = true;
            }
            UNIT_CHECK(ends * 20 < count);
            UNIT_CHECK(different > 60 || strstr(cases[k], "relu6"));
        }
        drop(&q);
    }
}

static bool run_variant(quantised *q, const scout_candidate *c, const int64_t *values) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    void *tensors[SCOUT_MAX_TENSORS], *packed = NULL, *workspace = NULL;
    scout_answer answer = scout_prepare(c, &q->op, cpu_products_device, values, &plan, &needs, &q->why);
    if (answer == SCOUT_NO) return false;
    UNIT_INT(answer, SCOUT_OK);
    memcpy(tensors, q->data, sizeof tensors);
    if (needs.packs) {
        packed = cpu_products_guarded(needs.pack_bytes);
        UNIT_INT(c->pack(plan, tensors[needs.packs - 1], packed, NULL, &q->why), SCOUT_OK);
        tensors[needs.packs - 1] = packed;
    }
    if (needs.workspace_bytes) workspace = cpu_products_guarded(needs.workspace_bytes);
    memset(q->data[q->output], 0xff, q->op.tensors[q->output].bytes);
    const scout_args args = {.size = sizeof args, .tensors = tensors, .workspace = workspace};
    UNIT_INT(c->launch(plan, &args, &q->why), SCOUT_OK);
    if (packed) cpu_products_give_back(packed);
    if (workspace) cpu_products_give_back(workspace);
    scout_destroy(c, plan);
    return true;
}

static void candidates_are_right(void) {
    for (size_t k = 0; k < CASES; k++) {
        static scout_domain domain;
        quantised q;
        int ran = 0, without_dots = 0;
        scout_check *const check = make(&q, cases[k]) ? begin(&q) : NULL;
        for (uint32_t n = 0; check && n < cpu_products_api->candidate_count; n++) {
            const scout_candidate *const c = cpu_products_api->candidates[n];
            if (c->kind != q.op.kind || c->supports(&q.op, cpu_products_device, &q.why) != SCOUT_OK) {
                without_dots += c->kind == q.op.kind && strcmp(q.why.code, "hardware") == 0;
                continue;
            }
            memset(&domain, 0, sizeof domain);
            if (c->domain) UNIT_INT(c->domain(&q.op, cpu_products_device, 0, &domain, &q.why), SCOUT_OK);
            uint32_t all = 1;
            for (uint32_t d = 0; d < domain.count; d++) all *= domain.parameters[d].count;
            for (uint32_t v = 0; v < all; v++) {
                int64_t values[SCOUT_MAX_PARAMETERS] = {0};
                uint32_t rest = v;
                for (uint32_t d = 0; d < domain.count; d++, rest /= domain.parameters[d - 1].count)
                    values[d] = domain.parameters[d].values[rest % domain.parameters[d].count];
                if ((c->allows && !c->allows(&q.op, cpu_products_device, values)) || !run_variant(&q, c, values))
                    continue;
                const scout_verdict said = judge(&q, check);
                if (!UNIT_CHECK(is_right(&q, &said)))
                    printf("%s %s: at %llu %g instead of %g\n", cases[k], c->name, (unsigned long long)said.at,
                           said.got, said.want);
                ran++;
            }
        }
        if (check) UNIT_CHECK(ran > 0 || without_dots > 0); /* bytes need a processor with dot products of them */
        if (check) reference_of(&q)->end(check);
        drop(&q);
    }
}

static void what_cannot_be_told_is_refused(void) {
    static const struct {
        const char *fields, *code;
    } rows[] = {
        {CONV ", \"dtype\": \"fp16\", \"shape\": [1, 4, 2, 2], \"input\": [1, 4, 2, 2], \"kernel\": [1, 1]", "type"},
        {CONV ", \"dtype\": \"int8\", \"out_dtype\": \"int32\", \"shape\": [1, 4, 2, 2], \"input\": [1, 4, 2, 2], "
              "\"kernel\": [1, 1]",
         "type"},
        {CONV ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [1, 4, 2, 2], \"input\": [1, 4, 2, 2], "
              "\"kernel\": [1, 1], \"residual\": 1",
         "epilogue"},
        {CONV ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [1, 4, 2, 2], \"input\": [1, 4, 2, 2], "
              "\"kernel\": [1, 1], \"activation\": \"gelu\"",
         "epilogue"},
        {GEMM ", \"dtype\": \"int8\", \"out_dtype\": \"int8\", \"shape\": [4, 4, 4], \"bias\": \"m\"", "feature"},
        {"\"op\": \"gemm\", \"dtype\": \"int8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"int8\", \"quant\": "
         "\"qdq\", \"weight_side\": \"a\", \"shape\": [4, 4, 4]",
         "feature"},
        {"\"op\": \"gemm\", \"dtype\": \"int8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"int32\", \"quant\": "
         "\"dynamic\", \"weight_side\": \"b\", \"shape\": [4, 4, 4]",
         "type"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        quantised q;
        UNIT_CHECK(!build(&q, rows[k].fields));
        UNIT_TEXT(q.why.code, rows[k].code);
        drop(&q);
    }
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(the_reference_is_the_formula);
    UNIT_RUN(outputs_are_worth_looking_at);
    UNIT_RUN(candidates_are_right);
    UNIT_RUN(what_cannot_be_told_is_refused);
    cpu_products_close();
    return unit_end();
}
