/* The tensors of a product in the device's memory, each between canaries. */
#include "tests/unit/cpu_products.h"

#include "scout/cpu/cpu.h"
#include "scout/cpu/cpu_number.h"
#include "scout/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 256, CANARY_BYTE = 0xA5 };

const scout_device_api *cpu_products_api;
scout_device *cpu_products_device;

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
        const bool cols = strcmp(w->bias, "n") == 0 || strcmp(w->bias, "full") == 0;
        tensor(p, "bias", SCOUT_SIDE, w->type_c, 1, rows ? w->m : 1, cols ? w->n : 1);
    }
    if (w->block) tensor(p, "scales", SCOUT_SIDE, SCOUT_FP16, 1, w->n, (w->k + w->block - 1) / w->block);
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
static double tolerance_of(uint32_t type_c) {
    static const struct {
        uint32_t type;
        double tolerance;
    } rows[] = {{SCOUT_FP32, 3e-6}, {SCOUT_BF16, 0x1.1p-8}, {SCOUT_FP16, 0x1.1p-11}, {SCOUT_INT32, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type_c) return rows[k].tolerance;
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
    return cpu_products_judge_within(check, p, tolerance_of(p->w.type_c));
}

void cpu_products_say(const problem *p, const char *who, const scout_verdict *v) {
    printf("  %s: %lldx%lldx%lld batch %lld %s types %u %u %u%s%s%s%s: worst %g projected %g of %g, wrong %llu\n", who,
           (long long)p->w.m, (long long)p->w.n, (long long)p->w.k, (long long)p->w.batch, p->w.layout,
           (unsigned)p->w.type_a, (unsigned)p->w.type_b, (unsigned)p->w.type_c, p->w.bias ? " bias " : "",
           p->w.bias ? p->w.bias : "", p->w.shared_a ? " shared a" : "", p->w.shared_b ? " shared b" : "", v->worst,
           v->worst_projected, tolerance_of(p->w.type_c), (unsigned long long)v->wrong);
}
