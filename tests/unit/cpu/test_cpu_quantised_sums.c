/* Sums, products and relus of bytes, and averages over windows of them, between DequantizeLinear and QuantizeLinear on
 * the CPU device: the reference against the formula in plain loops, every candidate against the reference, and what
 * cannot be told is refused. */
#include "scout/op/pool.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#define ELEMENTS "{\"op\": \"elementwise\", \"quant\": \"qdq\", "
#define AVERAGE  "{\"op\": \"pool\", \"what\": \"average\", \"quant\": \"qdq\", "
#define INT8     "\"dtype\": \"int8\", "
#define UINT8    "\"dtype\": \"uint8\", "

/* How many variants at least run beside the own loop's: oneDNN takes most of them. */
static const struct {
    const char *text;
    int least;
} cases[] = {
    {ELEMENTS INT8 "\"what\": \"add\", \"shape\": [3, 65, 7, 9], \"inputs\": \"tensor,tensor\"}", 2},
    {ELEMENTS INT8 "\"what\": \"add\", \"shape\": [1, 1], \"inputs\": \"tensor,tensor\", \"out_dtype\": \"int8\"}", 2},
    {ELEMENTS UINT8 "\"what\": \"add\", \"shape\": [3, 65, 7, 9], \"inputs\": \"tensor,1x65x1x1\", \"out_dtype\": "
                    "\"uint8\", \"activation\": \"relu\"}",
     2},
    {ELEMENTS UINT8 "\"what\": \"add\", \"shape\": [17, 1001], \"inputs\": \"tensor,same\"}", 2},
    {ELEMENTS INT8 "\"what\": \"add\", \"shape\": [17, 1001], \"inputs\": \"tensor,vector\", \"out_dtype\": "
                   "\"uint8\", \"activation\": \"relu6\"}",
     2},
    {ELEMENTS UINT8 "\"what\": \"add\", \"shape\": [17, 1001], \"inputs\": \"tensor,scalar\", \"out_dtype\": "
                    "\"int8\", \"activation\": \"clip\", \"activation_min\": \"-3.5\", \"activation_max\": \"40\"}",
     2},
    {ELEMENTS INT8 "\"what\": \"mul\", \"shape\": [63, 129], \"inputs\": \"tensor,tensor\"}", 2},
    {ELEMENTS UINT8 "\"what\": \"mul\", \"shape\": [63, 129], \"inputs\": \"tensor,63x1\"}", 1},
    {ELEMENTS INT8 "\"what\": \"relu\", \"shape\": [63, 129], \"inputs\": \"tensor\"}", 2},
    {ELEMENTS UINT8 "\"what\": \"relu\", \"shape\": [63, 129], \"inputs\": \"tensor\", \"out_dtype\": \"int8\"}", 1},
    {AVERAGE INT8 "\"shape\": [1, 512, 1, 1], \"input\": [1, 512, 7, 7], \"kernel\": [7, 7], \"global\": 1}", 1},
    {AVERAGE UINT8 "\"shape\": [2, 1, 1, 129], \"input\": [2, 7, 9, 129], \"kernel\": [7, 9], \"layout\": \"nhwc\"}",
     2},
    {AVERAGE UINT8 "\"shape\": [2, 17, 8, 8], \"input\": [2, 17, 15, 15], \"kernel\": [3, 3], \"stride\": [2, 2], "
                   "\"pads\": [1, 1, 1, 1], \"activation\": \"relu\"}",
     1},
    {AVERAGE INT8 "\"shape\": [2, 8, 8, 33], \"input\": [2, 15, 15, 33], \"kernel\": [3, 3], \"stride\": [2, 2], "
                  "\"pads\": [1, 1, 1, 1], \"layout\": \"nhwc\", \"count_include_pad\": 1}",
     2},
    {AVERAGE UINT8 "\"shape\": [2, 8, 8, 33], \"input\": [2, 15, 15, 33], \"kernel\": [3, 3], \"stride\": [2, 2], "
                   "\"pads\": [1, 1, 1, 1], \"layout\": \"nhwc\", \"count_include_pad\": 1}",
     1},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void nothing_failed(void) {
    UNIT_INT(cpu_built_failures, 0);
    cpu_built_failures = 0;
}

/* ---- the formula ---- */

static double zero_of(uint32_t type) { return type == SCOUT_UINT8 ? 128 : 0; }

static double operand(const cpu_built *b, int tensor, int64_t position) {
    return cpu_built_at(b, b->op.tensors[tensor].name, position) - zero_of(b->op.input);
}

/* What a number becomes behind the factor: bounds that the cases name, rounding, what stands for 0, a byte's range. */
static double rounded(const cpu_built *b, double y) {
    const char *const activation = op_text(&b->op, "activation");
    const double zero = zero_of(b->op.output);
    if (activation && strcmp(activation, "relu") == 0) y = fmax(y, 0);
    if (activation && strcmp(activation, "relu6") == 0) y = fmin(fmax(y, 0), 6);
    if (activation && strcmp(activation, "clip") == 0) y = fmin(fmax(y, -3.5), 40);
    return fmin(fmax(rint(y) + zero, zero - 128), zero + 127);
}

static double element(const cpu_built *b, int64_t at) {
    const scout_op *const op = &b->op;
    const scout_tensor *const out = &op->tensors[op->tensor_count - 1];
    double x[2] = {0, 0};
    for (int k = 0; k < (int)op->tensor_count - 1; k++) {
        int64_t rest = at, from = 0;
        for (uint32_t d = out->rank; d-- > 0; rest /= out->dims[d])
            from += rest % out->dims[d] * op->tensors[k].strides[d];
        x[k] = operand(b, k, from);
    }
    if (op_is(op, "relu")) return fmax(x[0], 0);
    if (op_is(op, "mul")) return x[0] * x[1] / 32;
    return (x[0] + (op->tensor_count == 2 ? x[0] : x[1])) / 2;
}

static double average(const cpu_built *b, const pool_problem *p, int64_t at) {
    const window_axis *const h = &p->w.axes[1], *const w = &p->w.axes[2];
    const int64_t taps = h->kernel * w->kernel, places = h->out * w->out;
    const int64_t channel = p->w.last ? at % p->channels : at / places % p->channels;
    const int64_t place = p->w.last ? at / p->channels % places : at % places;
    const int64_t from = at / places / p->channels * p->in_n + channel * p->in_c;
    const double factor = taps == 9 ? 4 : 8; /* the powers of 2 next to the roots of 9, 49 and 63 */
    double sum = 0;
    int inside = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t y = place / w->out * h->stride + t / w->kernel - h->begin;
        const int64_t x = place % w->out * w->stride + t % w->kernel - w->begin;
        if (y < 0 || y >= h->in || x < 0 || x >= w->in) continue;
        sum += operand(b, POOL_INPUT, from + (y * w->in + x) * p->in_step);
        inside++;
    }
    return factor * sum / (p->padded ? (double)taps : inside);
}

/* Fills the output; returns how many different bytes there are, and how many lie at the ends of their range. */
static int write_formula(cpu_built *b, int *ends) {
    const scout_tensor *const out = &b->op.tensors[b->op.tensor_count - 1];
    const bool pool = b->op.kind == SCOUT_POOL;
    bool seen[256] = {false};
    int different = 0;
    *ends = 0;
    for (int64_t k = 0; k < op_elements(out); k++) {
        const pool_problem p = pool ? pool_problem_of(&b->op) : (pool_problem){.n = 0};
        const double y = rounded(b, pool ? average(b, &p, k) : element(b, k));
        const int at = (int)(y - zero_of(out->type)) + 128;
        cpu_built_put(b, out->name, k, y);
        different += !seen[at], *ends += at == 0 || at == 255;
        seen[at] = true;
    }
    return different;
}

static void the_reference_is_the_formula(void) {
    for (size_t k = 0; k < CASES; k++) {
        cpu_built b;
        int ends;
        cpu_built_make(&b, cases[k].text, 32 << 20);
        if (UNIT_CHECK(b.built)) {
            const char *const out = b.op.tensors[b.op.tensor_count - 1].name;
            const int64_t count = op_elements(&b.op.tensors[b.op.tensor_count - 1]);
            cpu_built_fill(&b, 3);
            const int different = write_formula(&b, &ends);
            if (!UNIT_CHECK(cpu_built_accepts(&b))) printf("%s\n", cases[k].text);
            const double y = cpu_built_at(&b, out, count / 2);
            cpu_built_put(&b, out, count / 2, y > 0 ? y - 2 : y + 2);
            UNIT_CHECK(!cpu_built_accepts(&b));
            /* outputs are worth looking at: they use their range, and do not stick at its ends */
            UNIT_CHECK(ends * 20 <= count);
            if (!UNIT_CHECK(different > 40 || count == 1 || strstr(cases[k].text, "relu6")))
                printf("%s: %d\n", cases[k].text, different);
        }
        cpu_built_end(&b);
    }
    nothing_failed();
}

static void candidates_are_right(void) {
    for (size_t k = 0; k < CASES; k++) cpu_built_check(cases[k].text, cases[k].least);
    nothing_failed();
}

static void what_cannot_be_told_is_refused(void) {
#define TWO "\"shape\": [4], \"inputs\": \"tensor,tensor\""
#define ALL "\"shape\": [1, 4, 1, 1], \"input\": [1, 4, 2, 2], \"global\": 1"
    cpu_built_refused("{\"op\": \"elementwise\", \"what\": \"add\", \"quant\": \"dynamic\", " INT8 TWO "}", "feature");
    cpu_built_refused(ELEMENTS INT8 "\"what\": \"sub\", " TWO "}", "feature");
    cpu_built_refused(ELEMENTS "\"dtype\": \"fp16\", \"what\": \"add\", " TWO "}", "type");
    cpu_built_refused(ELEMENTS INT8 "\"what\": \"add\", \"out_dtype\": \"fp32\", " TWO "}", "type");
    cpu_built_refused(ELEMENTS INT8 "\"what\": \"add\", \"activation\": \"leakyrelu\", " TWO "}", "epilogue");
    cpu_built_refused(ELEMENTS INT8 "\"what\": \"chain\", \"chain\": \"add(tensor,tensor);relu(v)\", \"shape\": [4]}",
                      "feature");
    cpu_built_refused(AVERAGE "\"dtype\": \"fp32\", " ALL "}", "type");
    cpu_built_refused(AVERAGE INT8 "\"activation\": \"gelu\", " ALL "}", "epilogue");
    cpu_built_refused("{\"op\": \"pool\", \"what\": \"average\", " INT8 ALL "}", "type");
    cpu_built_refused("{\"op\": \"pool\", \"what\": \"average\", \"quant\": \"dynamic\", " INT8 ALL "}", "type");
    cpu_built_refused(
        "{\"op\": \"pool\", \"what\": \"max\", \"quant\": \"qdq\", \"activation\": \"relu\", " INT8 ALL "}", "feature");
    nothing_failed();
}

int main(void) {
    if (!UNIT_CHECK(cpu_built_open())) return unit_end();
    UNIT_RUN(the_reference_is_the_formula);
    UNIT_RUN(candidates_are_right);
    UNIT_RUN(what_cannot_be_told_is_refused);
    cpu_built_close();
    return unit_end();
}
