/* The tensors of a product in the device's memory, each between canaries. */
#include "tests/unit/cpu/cpu_products.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/device/cpu.h"
#include "scout/kinds/kinds.h"
#include "scout/op/gemm.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 256, CANARY_BYTE = 0xA5 };

const scout_device_api *cpu_products_api;
scout_device *cpu_products_device;

bool cpu_products_again(const char *variant) { return strncmp(variant, "threads=all", strlen("threads=all")) == 0; }

bool cpu_products_open(void) {
    scout_why why;
    cpu_products_api = cpu_device_api();
    return cpu_products_api->open(0, &cpu_products_device, &why) == SCOUT_OK;
}

void cpu_products_close(void) { cpu_products_api->close(cpu_products_device); }

static const int64_t shapes[CPU_PRODUCTS_SHAPES][3] = {{1, 1, 1},    {3, 5, 7},    {17, 33, 65}, {128, 128, 128},
                                                       {1, 300, 70}, {300, 1, 40}, {40, 600, 9}, {129, 257, 33}};
static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
static const uint32_t types[CPU_PRODUCTS_TYPES][3] = {
    {SCOUT_FP32, SCOUT_FP32, SCOUT_FP32},       {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16},
    {SCOUT_BF16, SCOUT_BF16, SCOUT_FP32},       {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16},
    {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16}, {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32},
    {SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32}};

product cpu_products_want(size_t shape, size_t layout, size_t type, int64_t batch) {
    return (product){.m = shapes[shape][0],
                     .n = shapes[shape][1],
                     .k = shapes[shape][2],
                     .batch = batch,
                     .layout = layouts[layout],
                     .type_a = types[type][0],
                     .type_b = types[type][1],
                     .type_c = types[type][2]};
}

static uint64_t tensor_bytes(const scout_tensor *t) {
    return ((uint64_t)(t->dims[0] * t->dims[1] * t->dims[2]) * (uint64_t)cpu_number_bits(t->type) + 7) / 8;
}

void *cpu_products_guarded(uint64_t bytes) {
    void *memory = NULL;
    scout_why why;
    if (cpu_products_api->alloc(cpu_products_device, bytes + 2 * CANARY, &memory, &why) != SCOUT_OK) abort();
    memset(memory, CANARY_BYTE, (size_t)bytes + 2 * CANARY);
    return (char *)memory + CANARY;
}

bool cpu_products_guards_hold(const void *data, uint64_t bytes) {
    const unsigned char *d = data;
    for (int k = 0; k < CANARY; k++)
        if (d[-1 - k] != CANARY_BYTE || d[bytes + (uint64_t)k] != CANARY_BYTE) return false;
    return true;
}

void cpu_products_give_back(void *data) {
    if (data) cpu_products_api->release(cpu_products_device, (char *)data - CANARY);
}

static void tensor(problem *p, const char *name, uint32_t role, uint32_t type, int64_t d0, int64_t d1, int64_t d2) {
    scout_tensor *t = &p->tensors[p->op.tensor_count++];
    *t = (scout_tensor){.size = sizeof *t, .role = role, .type = type, .rank = 3};
    t->dims[0] = d0, t->dims[1] = d1, t->dims[2] = d2;
    t->strides[0] = d0 == 1 && p->w.batch > 1 ? 0 : d1 * d2, t->strides[1] = d2, t->strides[2] = 1;
    t->bytes = tensor_bytes(t);
    snprintf(t->name, sizeof t->name, "%s", name);
}

static void fields(problem *p) {
    const product *w = &p->w;
    p->fields[p->op.field_count++] = (scout_field){"batch", w->batch, NULL};
    if (w->bias) p->fields[p->op.field_count++] = (scout_field){"bias", 0, w->bias};
    if (w->residual) p->fields[p->op.field_count++] = (scout_field){"residual", 1, NULL};
    if (w->activation) p->fields[p->op.field_count++] = (scout_field){"activation", 0, w->activation};
    snprintf(p->alpha, sizeof p->alpha, "%.17g", w->alpha);
    if (w->alpha != 0) p->fields[p->op.field_count++] = (scout_field){"activation_alpha", 0, p->alpha};
    const double factors[] = {w->factor, w->bias_factor};
    for (int k = 0; k < 2; k++) {
        snprintf(p->factors[k], sizeof p->factors[k], "%.17g", factors[k]);
        if (factors[k] != 0) p->fields[p->op.field_count++] = (scout_field){k ? "beta" : "alpha", 0, p->factors[k]};
    }
    if (w->block) p->fields[p->op.field_count++] = (scout_field){"block_size", w->block, NULL};
}

void cpu_products_make(problem *p, const product *w, uint64_t seed) {
    memset(p, 0, sizeof *p);
    p->w = *w;
    scout_op *op = &p->op;
    *op = (scout_op){.size = sizeof *op, .kind = SCOUT_GEMM, .key = "test", .layout = w->layout, .rank = 3};
    op->shape[0] = w->m, op->shape[1] = w->n, op->shape[2] = w->k;
    op->input = w->type_a, op->weight = w->type_b, op->output = w->type_c;
    op->workspace_limit = w->workspace ? w->workspace : 32 << 20;
    op->fields = p->fields, op->tensors = p->tensors;
    const bool ta = w->layout[0] == 't', tb = w->layout[1] == 't';
    tensor(p, "a", SCOUT_INPUT, w->type_a, w->shared_a ? 1 : w->batch, ta ? w->k : w->m, ta ? w->m : w->k);
    tensor(p, "b", SCOUT_WEIGHT, w->type_b, w->shared_b ? 1 : w->batch, tb ? w->n : w->k, tb ? w->k : w->n);
    tensor(p, "c", SCOUT_OUTPUT, w->type_c, w->batch, w->m, w->n);
    if (w->bias) {
        const bool rows = strcmp(w->bias, "m") == 0 || strcmp(w->bias, "full") == 0;
        const bool each = strcmp(w->bias, "each") == 0;
        const bool cols = strcmp(w->bias, "n") == 0 || strcmp(w->bias, "full") == 0 || each;
        tensor(p, "bias", SCOUT_SIDE, w->type_c, 1, each ? w->batch : rows ? w->m : 1, cols ? w->n : 1);
    }
    if (w->residual) tensor(p, "residual", SCOUT_INPUT, w->type_c, w->batch, w->m, w->n);
    const int64_t columns = w->batch * w->n, blocks = w->block ? (w->k + w->block - 1) / w->block : 0;
    if (w->block) tensor(p, "scales", SCOUT_SIDE, w->type_a, 1, columns, blocks);
    if (w->zeros) tensor(p, "b_zero", SCOUT_SIDE, w->type_b, 1, columns, blocks);
    fields(p);
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const bool scales = strcmp(p->tensors[k].name, "scales") == 0;
        scout_why why = {"", ""};
        p->data[k] = cpu_products_guarded(p->tensors[k].bytes);
        if (k != GEMM_C &&
            cpu_products_api->fill(cpu_products_device, p->data[k], p->tensors[k].bytes, p->tensors[k].type,
                                   scales ? SCOUT_FILL_SCALE : SCOUT_FILL_NORMAL, seed + k, &why) != SCOUT_OK)
            abort();
    }
}

void cpu_products_drop(problem *p) {
    for (uint32_t k = 0; k < p->op.tensor_count; k++) cpu_products_give_back(p->data[k]);
}

double cpu_products_at(const problem *p, int index, int64_t position) {
    double value;
    cpu_number_load(p->tensors[index].type, p->data[index], position, 1, 1, &value);
    return value;
}

/* Of rounding an output, and of summing in fp32. */
static double tolerance_of(const problem *p) {
    static const struct {
        uint32_t type;
        double tolerance;
    } rows[] = {{SCOUT_FP32, 3e-6}, {SCOUT_BF16, 0x1.1p-8}, {SCOUT_FP16, 0x1.1p-11}, {SCOUT_INT32, 0}};
    if (p->w.residual || p->w.activation || p->w.factor != 0) return kind_gemm.tolerance(&p->op);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == p->w.type_c) return rows[k].tolerance;
    return NAN;
}

scout_check *cpu_products_begin(const problem *p) {
    scout_check *check = NULL;
    scout_why why = {"", ""};
    if (cpu_products_api->references[0]->begin(cpu_products_device, &p->op, p->data, 7, &check, &why) != SCOUT_OK)
        printf("%s: %s\n", why.code, why.text);
    return check;
}

scout_verdict cpu_products_judge_within(scout_check *check, const problem *p, double tolerance) {
    scout_verdict v = {.size = sizeof v};
    scout_why why;
    if (cpu_products_api->references[0]->compare(check, p->data[GEMM_C], tolerance, &v, &why) != SCOUT_OK) abort();
    return v;
}

scout_verdict cpu_products_judge(scout_check *check, const problem *p) {
    return cpu_products_judge_within(check, p, tolerance_of(p));
}

void cpu_products_say(const problem *p, const char *subject, const scout_verdict *v) {
    printf("  %s: %lldx%lldx%lld batch %lld %s types %u %u %u%s%s%s%s %s: worst %g projected %g of %g, wrong %llu\n",
           subject, (long long)p->w.m, (long long)p->w.n, (long long)p->w.k, (long long)p->w.batch, p->w.layout,
           (unsigned)p->w.type_a, (unsigned)p->w.type_b, (unsigned)p->w.type_c, p->w.bias ? " bias " : "",
           p->w.bias ? p->w.bias : "", p->w.shared_a ? " shared a" : "", p->w.shared_b ? " shared b" : "",
           p->w.activation ? p->w.activation : "", v->worst, v->worst_projected, tolerance_of(p),
           (unsigned long long)v->wrong);
}

/* --- the oracle --- */

static double bias_at(const problem *p, int64_t batch, int64_t row, int64_t column) {
    const int index = op_tensor(&p->op, "bias");
    if (index < 0) return 0;
    const bool rows = strcmp(p->w.bias, "m") == 0 || strcmp(p->w.bias, "full") == 0;
    const bool cols = strcmp(p->w.bias, "n") == 0 || strcmp(p->w.bias, "full") == 0;
    if (strcmp(p->w.bias, "each") == 0) return cpu_products_at(p, index, batch * p->w.n + column);
    return cpu_products_at(p, index, (rows ? row * (cols ? p->w.n : 1) : 0) + (cols ? column : 0));
}

static long double activated(const product *w, long double x) {
    const char *name = w->activation;
    const long double root = 0.7978845608028653559L; /* of 2 / pi */
    const long double slope = strcmp(name, "silu") == 0 ? 1 : strcmp(name, "quickgelu") == 0 ? 1.702L : w->alpha;
    if (strcmp(name, "relu") == 0) return x > 0 ? x : 0;
    if (strcmp(name, "leakyrelu") == 0) return x > 0 ? x : w->alpha * x;
    if (strcmp(name, "gelu") == 0) return x / 2 * (1 + erfl(x / sqrtl(2)));
    if (strcmp(name, "gelu_tanh") == 0) return x / 2 * (1 + tanhl(root * (x + 0.044715L * x * x * x)));
    if (strcmp(name, "sigmoid") == 0) return 1 / (1 + expl(-x));
    if (strcmp(name, "tanh") == 0) return tanhl(x);
    if (strcmp(name, "hardswish") == 0) return x * fminl(fmaxl(x / 6 + 0.5L, 0), 1);
    return x / (1 + expl(-slope * x)); /* silu, quickgelu, swish */
}

/* The oracle: no blocks, no threads, nothing shared with the code under test but the loads. */
void cpu_products_triple_loop(const problem *p) {
    const product *w = &p->w;
    const int scales = op_tensor(&p->op, "scales"), zeros = op_tensor(&p->op, "b_zero");
    const bool ta = w->layout[0] == 't', tb = w->layout[1] == 't';
    for (int64_t g = 0; g < w->batch; g++)
        for (int64_t i = 0; i < w->m; i++)
            for (int64_t j = 0; j < w->n; j++) {
                const int64_t a0 = w->shared_a ? 0 : g * w->m * w->k, b0 = w->shared_b ? 0 : g * w->k * w->n;
                long double sum = 0;
                for (int64_t k = 0; k < w->k; k++) {
                    long double b = cpu_products_at(p, GEMM_B, b0 + (tb ? j * w->k + k : k * w->n + j));
                    const int64_t block =
                        scales >= 0 ? (g * w->n + j) * ((w->k + w->block - 1) / w->block) + k / w->block : 0;
                    if (zeros >= 0) b -= cpu_products_at(p, zeros, block);
                    if (scales >= 0) b *= cpu_products_at(p, scales, block);
                    sum += cpu_products_at(p, GEMM_A, a0 + (ta ? k * w->m + i : i * w->k + k)) * b;
                }
                if (w->factor != 0) sum *= w->factor;
                sum += bias_at(p, g, i, j) * (w->bias_factor != 0 ? w->bias_factor : 1);
                const int residual = op_tensor(&p->op, "residual");
                if (residual >= 0) sum += cpu_products_at(p, residual, (g * w->m + i) * w->n + j);
                if (w->activation) sum = activated(w, sum);
                cpu_number_store(w->type_c, p->data[GEMM_C], (g * w->m + i) * w->n + j, (double)sum);
            }
}

void cpu_products_check_reference(const product *w, uint64_t seed) {
    problem p;
    cpu_products_make(&p, w, seed);
    cpu_products_triple_loop(&p);
    scout_check *check = cpu_products_begin(&p);
    if (check) {
        scout_verdict v = cpu_products_judge(check, &p);
        const int64_t all = w->m * w->n * w->batch;
        if (!UNIT_CHECK(v.wrong == 0) || !UNIT_CHECK((int64_t)v.compared >= (all < 4096 ? all : 4096)))
            cpu_products_say(&p, "reference", &v);
        cpu_products_api->references[0]->end(check);
    }
    cpu_products_drop(&p);
}
