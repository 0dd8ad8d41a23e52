/* libscout_run on this processor: results of every front against sums in double, written here without any of the code
 * under test but the loads. */
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static scout_run *run;
static scout_run_error error;

static bool launched(int32_t code, const char *what) {
    if (code != SCOUT_RUN_OK) printf("%s: %s\n", what, error.text);
    return UNIT_CHECK(code == SCOUT_RUN_OK);
}

/* Relative to the size and the spread of what is added up. */
static bool near(double got, double want, double spread, double tolerance) {
    return fabs(got - want) <= tolerance * (fabs(want) + spread + 1e-3);
}

static double gelu(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }

/* ---- gemm ---- */

typedef struct product {
    int32_t type, out;
    int64_t batch_a, batch_b, m, n, k;
    bool ta, tb, weight, bias, residual, act;
} product;

static scout_run_tensor matrix(int32_t type, int64_t batch, int64_t rows, int64_t cols, bool turned, uint64_t seed) {
    const int64_t dims[3] = {batch, turned ? cols : rows, turned ? rows : cols};
    scout_run_tensor t = run_tensor(type, batch > 0 ? 3 : 2, dims + (batch == 0), seed);
    const int r = t.rank - 2, c = t.rank - 1;
    if (turned) {
        t.dims[r] = rows, t.dims[c] = cols;
        t.strides[r] = 1, t.strides[c] = rows;
    }
    return t;
}

static double cell(const scout_run_tensor *t, int64_t batch, int64_t row, int64_t col) {
    const int64_t at3[3] = {t->dims[0] == 1 ? 0 : batch, row, col}, at2[2] = {row, col};
    return run_of(t, t->rank == 3 ? at3 : at2);
}

static bool right_product(const product *p, const scout_run_tensor *a, const scout_run_tensor *b,
                          const scout_run_tensor *c, const scout_run_gemm_more *more) {
    const int64_t batch = p->batch_a > p->batch_b ? p->batch_a : p->batch_b > 0 ? p->batch_b : 1;
    const double tolerance = run_tolerance(p->out, p->k) + run_tolerance(p->type, p->k) / 8;
    for (int64_t z = 0; z < batch; z++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0, squares = 0;
                for (int64_t k = 0; k < p->k; k++) {
                    const double term = cell(a, z, i, k) * cell(b, z, k, j);
                    sum += term, squares += term * term;
                }
                if (more->bias) sum += run_at(more->bias->type, more->bias->data, j);
                if (more->residual) sum += cell(more->residual, z, i, j);
                if (more->activation) sum = gelu(sum);
                if (!near(cell(c, z, i, j), sum, sqrt(squares) + 2, tolerance)) {
                    printf("product %lld %lld %lld: %g, want %g\n", (long long)z, (long long)i, (long long)j,
                           cell(c, z, i, j), sum);
                    return false;
                }
            }
    return true;
}

static void products_of_every_layout(void) {
    static const product rows[] = {
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 0, 0, 17, 33, 65, false, false, true, false, false, false},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 0, 0, 1, 64, 96, false, true, true, true, false, true},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 0, 0, 40, 24, 48, true, false, false, false, true, false},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 0, 0, 40, 24, 48, true, true, false, true, true, true},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 3, 3, 12, 20, 28, false, true, false, false, false, false},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 3, 0, 12, 20, 28, false, false, true, true, false, false},
        {SCOUT_RUN_FP32, SCOUT_RUN_FP32, 3, 1, 12, 20, 28, true, false, false, false, false, false},
        {SCOUT_RUN_BF16, SCOUT_RUN_BF16, 0, 0, 16, 32, 64, false, false, true, true, false, false},
        {SCOUT_RUN_FP16, SCOUT_RUN_FP16, 0, 0, 16, 32, 64, false, true, true, false, true, true},
        {SCOUT_RUN_FP64, SCOUT_RUN_FP64, 0, 0, 16, 32, 64, false, false, false, false, false, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const product *p = &rows[k];
        const int64_t batch = p->batch_a > p->batch_b ? p->batch_a : p->batch_b;
        scout_run_tensor a = matrix(p->type, p->batch_a, p->m, p->k, p->ta, 1),
                         b = matrix(p->type, p->batch_b, p->k, p->n, p->tb, 2),
                         c = matrix(p->out, batch, p->m, p->n, false, 3),
                         residual = matrix(p->out, batch, p->m, p->n, false, 4), bias = run_tensor(p->out, 1, &p->n, 5);
        const scout_run_gemm_more more = {.size = sizeof more,
                                          .weight = p->weight ? 'b' : 0,
                                          .activation = p->act ? "gelu" : NULL,
                                          .bias = p->bias ? &bias : NULL,
                                          .residual = p->residual ? &residual : NULL};
        for (int again = 0; again < 2; again++)
            if (launched(scout_run_gemm(run, &a, &b, &c, &more, NULL, &error), "gemm"))
                UNIT_CHECK(right_product(p, &a, &b, &c, &more));
        run_free(&a), run_free(&b), run_free(&c), run_free(&residual), run_free(&bias);
    }
}

/* The keys that reports have of the same operations (extract_ops writes them so). */
static void products_have_the_keys_of_reports(void) {
    run_said said = {0};
    scout_run *listed = run_open(
        run_table(run_entry("gemm;shape=36,20,28;layout=nn;type=fp32;weight=fp32;activation=gelu;bias=n;weight_side=b",
                            "custom", "cpu_tiled", "", NULL),
                  NULL),
        &said);
    scout_run_tensor a = matrix(SCOUT_RUN_FP32, 3, 12, 28, false, 1), b = matrix(SCOUT_RUN_FP32, 0, 28, 20, false, 2),
                     c = matrix(SCOUT_RUN_FP32, 3, 12, 20, false, 3),
                     bias = run_tensor(SCOUT_RUN_FP32, 1, &b.dims[1], 4);
    const scout_run_gemm_more more = {.size = sizeof more, .weight = 'b', .activation = "gelu", .bias = &bias};
    scout_run_counts counts;
    launched(scout_run_gemm(listed, &a, &b, &c, &more, NULL, &error), "gemm");
    scout_run_count(listed, &counts);
    UNIT_INT(counts.listed, 1);
    UNIT_INT(counts.unlisted, 0);
    UNIT_INT(said.lines, 0);
    run_free(&a), run_free(&b), run_free(&c), run_free(&bias);
    scout_run_close(listed);
}

/* ---- attention ---- */

typedef struct attended {
    int64_t batch, heads, kv_heads, queries, keys, dim;
    bool inside, causal, mask;
    double scale;
} attended;

static scout_run_tensor lie(int32_t type, int64_t batch, int64_t heads, int64_t rows, int64_t dim, bool inside,
                            uint64_t seed) {
    const int64_t dims[4] = {batch, heads, rows, dim};
    scout_run_tensor t = run_tensor(type, 4, dims, seed);
    if (inside) t.strides[0] = rows * heads * dim, t.strides[1] = dim, t.strides[2] = heads * dim;
    return t;
}

static double score(const attended *h, const scout_run_tensor *q, const scout_run_tensor *k,
                    const scout_run_tensor *mask, const int64_t *at, int64_t key) {
    double sum = 0;
    for (int64_t d = 0; d < h->dim; d++) {
        const int64_t from[4] = {at[0], at[1], at[2], d}, to[4] = {at[0], at[1] / (h->heads / h->kv_heads), key, d};
        sum += run_of(q, from) * run_of(k, to);
    }
    const int64_t place[4] = {0, 0, at[2], key};
    return sum * (h->scale != 0 ? h->scale : 1 / sqrt((double)h->dim)) + (h->mask ? run_of(mask, place) : 0);
}

static double attend(const attended *h, const scout_run_tensor *const *t, const int64_t *at) {
    const int64_t end = h->causal ? h->keys - h->queries + at[2] + 1 : h->keys;
    double scores[64], largest = -1e300, sum = 0, out = 0;
    for (int64_t k = 0; k < end; k++) {
        scores[k] = score(h, t[0], t[1], t[3], at, k);
        if (scores[k] > largest) largest = scores[k];
    }
    for (int64_t k = 0; k < end; k++) {
        const int64_t place[4] = {at[0], at[1] / (h->heads / h->kv_heads), k, at[3]};
        const double weight = exp(scores[k] - largest);
        sum += weight, out += weight * run_of(t[2], place);
    }
    return out / sum;
}

static void attentions(void) {
    static const attended rows[] = {
        {1, 2, 2, 9, 9, 16, false, false, false, 0},  {2, 4, 4, 12, 12, 32, true, true, false, 0},
        {2, 4, 2, 7, 7, 16, true, true, false, 0.3},  {1, 4, 1, 1, 33, 32, false, true, false, 0},
        {1, 2, 2, 10, 10, 16, false, false, true, 0},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const attended *h = &rows[r];
        const int64_t mask_dims[4] = {1, 1, h->queries, h->keys};
        scout_run_tensor q = lie(SCOUT_RUN_FP32, h->batch, h->heads, h->queries, h->dim, h->inside, 1),
                         k = lie(SCOUT_RUN_FP32, h->batch, h->kv_heads, h->keys, h->dim, h->inside, 2),
                         v = lie(SCOUT_RUN_FP32, h->batch, h->kv_heads, h->keys, h->dim, h->inside, 3),
                         out = lie(SCOUT_RUN_FP32, h->batch, h->heads, h->queries, h->dim, h->inside, 4),
                         mask = run_tensor(SCOUT_RUN_FP32, 4, mask_dims, 5);
        const scout_run_tensor *const t[4] = {&q, &k, &v, &mask};
        const scout_run_attention_more more = {
            .size = sizeof more, .causal = h->causal, .scale = h->scale, .mask = h->mask ? &mask : NULL};
        if (launched(scout_run_attention(run, &q, &k, &v, &out, &more, NULL, &error), "attention")) {
            int64_t at[4];
            bool good = true;
            for (at[0] = 0; at[0] < h->batch; at[0]++)
                for (at[1] = 0; at[1] < h->heads; at[1]++)
                    for (at[2] = 0; at[2] < h->queries; at[2]++)
                        for (at[3] = 0; at[3] < h->dim; at[3]++)
                            good = good && near(run_of(&out, at), attend(h, t, at), 1, 1e-5);
            UNIT_CHECK(good);
        }
        run_free(&q), run_free(&k), run_free(&v), run_free(&out), run_free(&mask);
    }
}

/* ---- conv ---- */

typedef struct slide {
    int64_t n, cin, cout, size, kernel, stride, pad, group;
    bool last, transposed, bias;
} slide;

static scout_run_tensor image(int64_t n, int64_t channels, int64_t size, bool last, uint64_t seed) {
    const int64_t dims[4] = {n, channels, size, size};
    scout_run_tensor t = run_tensor(SCOUT_RUN_FP32, 4, dims, seed);
    if (last) t.strides[1] = 1, t.strides[3] = channels, t.strides[2] = size * channels;
    return t;
}

/* Adds what a tap brings; plain or transposed alike: input place and output place differ by stride and pad. */
static double convolve(const slide *s, const scout_run_tensor *x, const scout_run_tensor *w, const int64_t *at,
                       double *squares) {
    const int64_t each_in = s->cin / s->group, each_out = s->cout / s->group, group = at[1] / each_out;
    double sum = 0;
    for (int64_t c = 0; c < each_in; c++)
        for (int64_t y = 0; y < s->kernel; y++)
            for (int64_t z = 0; z < s->kernel; z++) {
                int64_t from[4] = {at[0], group * each_in + c, at[2] * s->stride - s->pad + y,
                                   at[3] * s->stride - s->pad + z};
                int64_t tap[4] = {at[1], c, y, z};
                if (s->transposed) {
                    from[2] = at[2] + s->pad - y, from[3] = at[3] + s->pad - z;
                    if (from[2] % s->stride != 0 || from[3] % s->stride != 0) continue;
                    from[2] /= s->stride, from[3] /= s->stride;
                    tap[0] = group * each_in + c, tap[1] = at[1] - group * each_out;
                }
                if (from[2] < 0 || from[3] < 0 || from[2] >= s->size || from[3] >= s->size) continue;
                const double term = run_of(x, from) * run_of(w, tap);
                sum += term, *squares += term * term;
            }
    return sum;
}

static void convolutions(void) {
    static const slide rows[] = {
        {2, 3, 8, 9, 3, 1, 1, 1, false, false, true},     {1, 8, 8, 8, 3, 2, 1, 1, true, false, false},
        {1, 16, 16, 7, 3, 1, 1, 16, false, false, false}, {1, 8, 12, 6, 1, 1, 0, 4, true, false, true},
        {1, 6, 4, 5, 3, 2, 1, 1, false, true, true},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const slide *s = &rows[r];
        const int64_t plain = (s->size + 2 * s->pad - s->kernel) / s->stride + 1,
                      wide = (s->size - 1) * s->stride + s->kernel - 2 * s->pad, made = s->transposed ? wide : plain;
        const int64_t w_plain[4] = {s->cout, s->cin / s->group, s->kernel, s->kernel},
                      w_turned[4] = {s->cin, s->cout / s->group, s->kernel, s->kernel};
        scout_run_tensor x = image(s->n, s->cin, s->size, s->last, 1), y = image(s->n, s->cout, made, s->last, 2),
                         w = run_tensor(SCOUT_RUN_FP32, 4, s->transposed ? w_turned : w_plain, 3),
                         bias = run_tensor(SCOUT_RUN_FP32, 1, &s->cout, 4);
        const scout_run_conv_more more = {.size = sizeof more,
                                          .transposed = s->transposed,
                                          .group = s->group,
                                          .stride = {s->stride, s->stride},
                                          .pads = {s->pad, s->pad, s->pad, s->pad},
                                          .bias = s->bias ? &bias : NULL,
                                          .constant = 1};
        if (launched(scout_run_conv(run, &x, &w, &y, &more, NULL, &error), "conv")) {
            int64_t at[4];
            bool good = true;
            for (at[0] = 0; at[0] < s->n; at[0]++)
                for (at[1] = 0; at[1] < s->cout; at[1]++)
                    for (at[2] = 0; at[2] < made; at[2]++)
                        for (at[3] = 0; at[3] < made; at[3]++) {
                            double squares = 0, want = convolve(s, &x, &w, at, &squares);
                            if (s->bias) want += run_at(SCOUT_RUN_FP32, bias.data, at[1]);
                            good = good && near(run_of(&y, at), want, sqrt(squares) + 1, 1e-5);
                        }
            UNIT_CHECK(good);
        }
        run_free(&x), run_free(&y), run_free(&w), run_free(&bias);
    }
}

/* ---- rows ---- */

static void norms(void) {
    static const struct {
        const char *what;
        double epsilon;
        bool scale, bias, residual;
    } rows[] = {{"layer", 0, true, true, false},
                {"layer", 0.5, true, true, false},
                {"rms", 0, true, false, true},
                {"rms", 1e-6, true, false, false},
                {"layer", 1e-12, false, false, false}};
    const int64_t dims[3] = {2, 5, 48}, cols = 48;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const bool rms = strcmp(rows[r].what, "rms") == 0;
        scout_run_tensor x = run_tensor(SCOUT_RUN_FP32, 3, dims, 1), y = run_tensor(SCOUT_RUN_FP32, 3, dims, 2),
                         scale = run_tensor(SCOUT_RUN_FP32, 1, &cols, 3),
                         bias = run_tensor(SCOUT_RUN_FP32, 1, &cols, 4),
                         more_x = run_tensor(SCOUT_RUN_FP32, 3, dims, 5), sum = run_tensor(SCOUT_RUN_FP32, 3, dims, 6);
        const scout_run_norm_more more = {.size = sizeof more,
                                          .epsilon = rows[r].epsilon,
                                          .scale = rows[r].scale ? &scale : NULL,
                                          .bias = rows[r].bias ? &bias : NULL,
                                          .residual = rows[r].residual ? &more_x : NULL,
                                          .sum = rows[r].residual ? &sum : NULL};
        if (launched(scout_run_norm(run, rows[r].what, &x, &y, &more, NULL, &error), rows[r].what)) {
            bool good = true;
            for (int64_t row = 0; row < 10; row++) {
                double in[48], mean = 0, squares = 0;
                for (int64_t k = 0; k < cols; k++) {
                    in[k] = run_at(x.type, x.data, row * cols + k);
                    if (rows[r].residual) in[k] += run_at(x.type, more_x.data, row * cols + k);
                    if (rows[r].residual) good = good && near(run_at(x.type, sum.data, row * cols + k), in[k], 1, 1e-6);
                    mean += rms ? 0 : in[k] / (double)cols;
                }
                for (int64_t k = 0; k < cols; k++) squares += (in[k] - mean) * (in[k] - mean) / (double)cols;
                const double by = 1 / sqrt(squares + (rows[r].epsilon > 0 ? rows[r].epsilon : 1e-5));
                for (int64_t k = 0; k < cols; k++) {
                    double want = (in[k] - mean) * by;
                    if (rows[r].scale) want *= run_at(x.type, scale.data, k);
                    if (rows[r].bias) want += run_at(x.type, bias.data, k);
                    good = good && near(run_at(y.type, y.data, row * cols + k), want, 1, 1e-5);
                }
            }
            UNIT_CHECK(good);
        }
        run_free(&x), run_free(&y), run_free(&scale), run_free(&bias), run_free(&more_x), run_free(&sum);
    }
}

static void softmaxes(void) {
    const int64_t dims[3] = {3, 11, 4};
    for (int32_t axis = -1; axis < 2; axis++)
        for (int32_t logarithm = 0; logarithm < 2; logarithm++) {
            const int along = axis < 0 ? 2 : axis;
            scout_run_tensor x = run_tensor(SCOUT_RUN_FP32, 3, dims, 1), y = run_tensor(SCOUT_RUN_FP32, 3, dims, 2);
            if (launched(scout_run_softmax(run, &x, &y, axis, logarithm, NULL, &error), "softmax")) {
                bool good = true;
                int64_t at[3];
                for (at[0] = 0; at[0] < dims[0]; at[0]++)
                    for (at[1] = 0; at[1] < dims[1]; at[1]++)
                        for (at[2] = 0; at[2] < dims[2]; at[2]++) {
                            double sum = 0;
                            int64_t other[3] = {at[0], at[1], at[2]};
                            for (other[along] = 0; other[along] < dims[along]; other[along]++)
                                sum += exp(run_of(&x, other));
                            const double want = logarithm ? run_of(&x, at) - log(sum) : exp(run_of(&x, at)) / sum;
                            good = good && near(run_of(&y, at), want, logarithm, 1e-5);
                        }
                UNIT_CHECK(good);
            }
            run_free(&x), run_free(&y);
        }
}

/* ---- elementwise ---- */

static double one_of(const scout_run_tensor *t, const int64_t *at, int rank) {
    int64_t own[8];
    for (int d = 0; d < t->rank; d++) own[d] = t->dims[d] == 1 ? 0 : at[rank - t->rank + d];
    return run_of(t, own);
}

static double apply(const char *what, double a, double b) {
    if (strcmp(what, "add") == 0) return a + b;
    if (strcmp(what, "sub") == 0) return a - b;
    if (strcmp(what, "mul") == 0) return a * b;
    return gelu(a);
}

static void elementwise(void) {
    static const struct {
        const char *what;
        int count, rank[2];
        int64_t dims[2][3];
        bool same;
    } rows[] = {{"add", 2, {3, 3}, {{2, 5, 8}, {2, 5, 8}}, false}, {"sub", 2, {1, 3}, {{8}, {2, 5, 8}}, false},
                {"add", 2, {1, 3}, {{8}, {2, 5, 8}}, false},       {"mul", 2, {3, 2}, {{2, 5, 8}, {5, 1}}, false},
                {"mul", 2, {3, 3}, {{2, 5, 8}, {2, 5, 8}}, true},  {"mul", 2, {3, 0}, {{2, 5, 8}, {0}}, false},
                {"gelu", 1, {3, 0}, {{2, 5, 8}, {0}}, false}};
    const int64_t dims[3] = {2, 5, 8};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        scout_run_tensor a = run_tensor(SCOUT_RUN_FP32, rows[r].rank[0], rows[r].dims[0], 1),
                         b = run_tensor(SCOUT_RUN_FP32, rows[r].rank[1], rows[r].dims[1], 2),
                         y = run_tensor(SCOUT_RUN_FP32, 3, dims, 3);
        const scout_run_tensor *const inputs[2] = {&a, rows[r].same ? &a : &b};
        if (launched(scout_run_elementwise(run, rows[r].what, inputs, rows[r].count, &y, NULL, &error), rows[r].what)) {
            bool good = true;
            int64_t at[3];
            for (at[0] = 0; at[0] < 2; at[0]++)
                for (at[1] = 0; at[1] < 5; at[1]++)
                    for (at[2] = 0; at[2] < 8; at[2]++)
                        good = good &&
                               near(run_of(&y, at),
                                    apply(rows[r].what, one_of(inputs[0], at, 3), one_of(inputs[1], at, 3)), 1, 1e-6);
            UNIT_CHECK(good);
        }
        run_free(&a), run_free(&b), run_free(&y);
    }
}

/* ---- by key ---- */

static void any_kind_by_its_key(void) {
    const scout_run_op *op;
    scout_run_op_info info = {.size = sizeof info};
    scout_run_tensor_info tensor = {.size = sizeof tensor};
    float in[6] = {1, 2, 3, 4, 5, 7}, out[2] = {0, 0};
    void *const tensors[2] = {in, out};
    if (!launched(scout_run_find(run, "reduce;what=sum;shape=2,1;type=fp32;axes=1;input=2,3", &op, &error), "reduce"))
        return;
    scout_run_op_describe(op, &info);
    UNIT_INT(info.tensor_count, 2);
    UNIT_INT(info.packs, -1);
    UNIT_CHECK(scout_run_op_tensor(op, 1, &tensor, &error) == SCOUT_RUN_OK);
    UNIT_INT(tensor.output, 1);
    UNIT_INT(tensor.bytes, 8);
    UNIT_CHECK(scout_run_op_tensor(op, 2, &tensor, &error) == SCOUT_RUN_INVALID);
    launched(scout_run_launch(op, tensors, 2, NULL, NULL, &error), "reduce");
    UNIT_CHECK(out[0] == 6 && out[1] == 16);
    UNIT_CHECK(scout_run_launch(op, tensors, 1, NULL, NULL, &error) == SCOUT_RUN_INVALID);
}

/* Places may count from the end; those beyond either end mark nothing, and nothing beside the output. */
static void places_of_one_hot(void) {
    const scout_run_op *op;
    const int64_t places[4] = {2, -1, 3, -4};
    int64_t marks[14];
    void *const tensors[2] = {(void *)(uintptr_t)places, &marks[1]};
    for (int k = 0; k < 14; k++) marks[k] = 77;
    if (!launched(scout_run_find(run, "move;what=onehot;shape=4,3;type=int64;axis=1;input=4", &op, &error), "onehot"))
        return;
    launched(scout_run_launch(op, tensors, 2, NULL, NULL, &error), "onehot");
    for (int k = 0; k < 12; k++) UNIT_INT(marks[k + 1], k == 2 || k == 5);
    UNIT_CHECK(marks[0] == 77 && marks[13] == 77);
}

/* ---- at once ---- */

enum { AT_ONCE = 4, ROUNDS = 50 };

static int cores; /* of this thread, before anything was opened */

typedef struct one_of_many {
    pthread_t id;
    int bad;
} one_of_many;

/* The same work again and again, held against what it gave at first. */
static void *work(void *context) {
    one_of_many *me = context;
    const int64_t a_dims[2] = {24, 64}, b_dims[2] = {64, 32}, c_dims[2] = {24, 32};
    scout_run_tensor a = run_tensor(SCOUT_RUN_FP32, 2, a_dims, 1), b = run_tensor(SCOUT_RUN_FP32, 2, b_dims, 2),
                     c = run_tensor(SCOUT_RUN_FP32, 2, c_dims, 3), y = run_tensor(SCOUT_RUN_FP32, 2, c_dims, 4);
    float first[24 * 32];
    for (int k = 0; k < ROUNDS; k++) {
        memset(y.data, 0, sizeof first);
        if (scout_run_gemm(run, &a, &b, &c, NULL, NULL, NULL) != SCOUT_RUN_OK) me->bad++;
        if (scout_run_softmax(run, &c, &y, -1, 0, NULL, NULL) != SCOUT_RUN_OK) me->bad++;
        if (k == 0) memcpy(first, y.data, sizeof first);
        for (int n = 0; n < 24 * 32; n++)
            if (!near(run_at(SCOUT_RUN_FP32, y.data, n), (double)first[n], 0, 1e-5)) me->bad++;
    }
    run_free(&a), run_free(&b), run_free(&c), run_free(&y);
    return NULL;
}

/* A thread that launches keeps its cores, whatever the team does. */
static void threads_keep_their_cores(void) {
    cpu_set_t before, after;
    one_of_many here = {.bad = 0};
    UNIT_INT(sched_getaffinity(0, sizeof before, &before), 0);
    (void)work(&here);
    UNIT_INT(here.bad, 0);
    UNIT_INT(sched_getaffinity(0, sizeof after, &after), 0);
    UNIT_CHECK(CPU_EQUAL(&before, &after));
    UNIT_INT(CPU_COUNT(&after), cores);
}

typedef struct late_team {
    scout_run_tensor x, y, a, c;
    cpu_set_t after;
} late_team;

/* The first launch of this thread needs no team, and the next one does. Filling a tensor does, too. */
static void *small_then_large(void *context) {
    late_team *t = context;
    if (scout_run_softmax(run, &t->x, &t->y, -1, 0, NULL, NULL) != SCOUT_RUN_OK ||
        scout_run_gemm(run, &t->a, &t->a, &t->c, NULL, NULL, NULL) != SCOUT_RUN_OK ||
        sched_getaffinity(0, sizeof t->after, &t->after) != 0)
        CPU_ZERO(&t->after);
    return NULL;
}

static void a_team_that_starts_late_pins_nothing(void) {
    const int64_t small[2] = {1, 16}, large[2] = {256, 256};
    late_team t = {.x = run_tensor(SCOUT_RUN_FP32, 2, small, 1), .y = run_tensor(SCOUT_RUN_FP32, 2, small, 2)};
    t.a = run_tensor(SCOUT_RUN_FP32, 2, large, 3), t.c = run_tensor(SCOUT_RUN_FP32, 2, large, 4);
    pthread_t other;
    (void)small_then_large(&t); /* what this thread finds is ready for the next one */
    UNIT_INT(CPU_COUNT(&t.after), cores);
    if (pthread_create(&other, NULL, small_then_large, &t) != 0) abort();
    pthread_join(other, NULL);
    UNIT_INT(CPU_COUNT(&t.after), cores);
    run_free(&t.x), run_free(&t.y), run_free(&t.a), run_free(&t.c);
}

static void variables_stay(void) {
    UNIT_TEXT(getenv("OMP_NUM_THREADS"), "7");
    UNIT_CHECK(!getenv("OMP_PROC_BIND") && !getenv("OMP_PLACES") && !getenv("OPENBLAS_NUM_THREADS"));
}

static void several_threads_launch_at_once(void) {
    one_of_many all[AT_ONCE] = {{.bad = 0}};
    for (int k = 0; k < AT_ONCE; k++)
        if (pthread_create(&all[k].id, NULL, work, &all[k]) != 0) abort();
    for (int k = 0; k < AT_ONCE; k++) {
        pthread_join(all[k].id, NULL);
        UNIT_INT(all[k].bad, 0);
    }
}

int main(void) {
    cpu_set_t set;
    cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
    static const char *const others[] = {"OMP_PROC_BIND", "OMP_PLACES", "OPENBLAS_NUM_THREADS"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) (void)unsetenv(others[k]);
    (void)setenv("OMP_NUM_THREADS", "7", 1);
    run = run_open(NULL, NULL);
    UNIT_RUN(variables_stay);
    UNIT_RUN(products_of_every_layout);
    UNIT_RUN(products_have_the_keys_of_reports);
    UNIT_RUN(attentions);
    UNIT_RUN(convolutions);
    UNIT_RUN(norms);
    UNIT_RUN(softmaxes);
    UNIT_RUN(elementwise);
    UNIT_RUN(any_kind_by_its_key);
    UNIT_RUN(places_of_one_hot);
    UNIT_RUN(threads_keep_their_cores);
    UNIT_RUN(a_team_that_starts_late_pins_nothing);
    UNIT_RUN(several_threads_launch_at_once);
    scout_run_close(run);
    return unit_end();
}
