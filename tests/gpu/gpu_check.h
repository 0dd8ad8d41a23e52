/* What the checks of the CUDA device share: opening scout_cuda.so as a worker does, counting, and products to try. Each
 * check is a program for a machine with a GPU: `check_x path/to/scout_cuda.so`; it ends with "N passed, N failed". */
#ifndef TESTS_GPU_GPU_CHECK_H
#define TESTS_GPU_GPU_CHECK_H

#include "scout/op/gemm.h"
#include "scout/plugin.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gpu_passed, gpu_failed;
static const scout_device_api *gpu_api;
static scout_device *gpu;
static scout_why gpu_why;

__attribute__((format(printf, 2, 3))) static inline bool gpu_expect(bool good, const char *format, ...) {
    va_list args;
    if (good) {
        gpu_passed++;
        return true;
    }
    gpu_failed++;
    va_start(args, format);
    printf("FAILED: ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    fflush(stdout);
    return false;
}

/* `call` tells its reasons to &gpu_why. */
#define GPU_OK(call)                                                                                                   \
    do {                                                                                                               \
        const scout_answer gpu_answer = (call);                                                                        \
        gpu_expect(gpu_answer == SCOUT_OK, "line %d: %s: %d, %s", __LINE__, #call, (int)gpu_answer, gpu_why.text);     \
    } while (0)

/* Opens the device's object and, with `open`, the device. Ends the program where that fails: nothing can be checked. */
static inline void gpu_begin(int argc, char **argv, bool open) {
    scout_why why = {"", ""};
    scout_plugin_entry_fn *entry = NULL;
    void *const object = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *const symbol = object ? dlsym(object, SCOUT_PLUGIN_ENTRY) : NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry) {
        printf("usage: %s scout_cuda.so (%s)\n0 passed, 1 failed\n", argv[0], object ? "no entry" : dlerror());
        exit(1);
    }
    gpu_api = entry(SCOUT_ABI)->device;
    if (gpu_api->count(&why) < 1 || (open && gpu_api->open(0, &gpu, &why) != SCOUT_OK)) {
        printf("no device: %s\n0 passed, 1 failed\n", why.text);
        exit(1);
    }
}

static inline int gpu_end(void) {
    printf("%d passed, %d failed\n", gpu_passed, gpu_failed);
    return gpu_failed ? 1 : 0;
}

static inline const scout_candidate *gpu_candidate(const char *name) {
    for (uint32_t k = 0; k < gpu_api->candidate_count; k++)
        if (strcmp(gpu_api->candidates[k]->name, name) == 0) return gpu_api->candidates[k];
    return NULL;
}

/* --- products --- */

typedef struct gpu_product {
    int64_t m, n, k, batch;
    const char *layout;
    uint32_t a, b, c; /* types */
    int tf32;
    const char *bias;       /* NULL: none */
    bool weight;            /* b is constant */
    bool shared;            /* b is the same for the whole batch */
    const char *activation; /* NULL: none */
    bool residual;
} gpu_product;

typedef struct gpu_operation {
    scout_op op;
    scout_tensor tensors[6];
    scout_field fields[5];
} gpu_operation;

static inline uint64_t gpu_bytes(uint32_t type, int64_t elements) {
    static const struct {
        uint32_t type, half_bytes;
    } sizes[] = {{SCOUT_FP32, 8}, {SCOUT_FP64, 16}, {SCOUT_INT32, 8},
                 {SCOUT_FP16, 4}, {SCOUT_BF16, 4},  {SCOUT_INT4, 1}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (sizes[k].type == type) return ((uint64_t)elements * sizes[k].half_bytes + 1) / 2;
    return (uint64_t)elements;
}

static inline void gpu_matrix(scout_tensor *t, const char *name, uint32_t role, uint32_t type, int64_t matrices,
                              int64_t rows, int64_t cols, bool shared) {
    memset(t, 0, sizeof *t);
    t->size = sizeof *t;
    t->role = role;
    t->type = type;
    t->rank = 3;
    t->dims[0] = shared ? 1 : matrices, t->dims[1] = rows, t->dims[2] = cols;
    t->strides[0] = shared && matrices > 1 ? 0 : rows * cols, t->strides[1] = cols, t->strides[2] = 1;
    t->bytes = gpu_bytes(type, t->dims[0] * rows * cols);
    snprintf(t->name, sizeof t->name, "%s", name);
}

/* int4: blocks of 128 along K, or of K where that is less. */
static inline void gpu_operation_of(const gpu_product *p, gpu_operation *o) {
    memset(o, 0, sizeof *o);
    scout_op *const op = &o->op;
    const bool ta = p->layout[0] == 't', tb = p->layout[1] == 't';
    const int64_t block = p->k < 128 ? p->k : 128;
    op->size = sizeof *op;
    op->kind = SCOUT_GEMM;
    op->key = "check";
    op->layout = p->layout;
    op->rank = 3;
    op->shape[0] = p->m, op->shape[1] = p->n, op->shape[2] = p->k;
    op->input = p->a, op->weight = p->b == p->a ? SCOUT_NONE : p->b, op->output = p->c;
    op->accumulate = p->c == SCOUT_INT32 ? SCOUT_INT32 : p->c == SCOUT_FP64 ? SCOUT_FP64 : SCOUT_FP32;
    op->tf32 = (uint32_t)p->tf32;
    op->workspace_limit = 32u << 20;
    op->tensors = o->tensors;
    op->fields = o->fields;
    gpu_matrix(&o->tensors[0], "a", SCOUT_INPUT, p->a, p->batch, ta ? p->k : p->m, ta ? p->m : p->k, p->batch == 1);
    gpu_matrix(&o->tensors[1], "b", p->weight ? SCOUT_WEIGHT : SCOUT_INPUT, p->b, p->batch, tb ? p->n : p->k,
               tb ? p->k : p->n, p->shared || p->batch == 1);
    gpu_matrix(&o->tensors[2], "c", SCOUT_OUTPUT, p->c, p->batch, p->m, p->n, p->batch == 1);
    op->tensor_count = 3;
    if (p->batch > 1) o->fields[op->field_count++] = (scout_field){"batch", p->batch, NULL};
    if (p->bias) {
        const bool full = strcmp(p->bias, "full") == 0;
        scout_tensor *const t = &o->tensors[op->tensor_count++];
        const bool rows = full || strcmp(p->bias, "each") == 0;
        gpu_matrix(t, "bias", full ? SCOUT_INPUT : SCOUT_SIDE, p->c, 1,
                   full   ? p->m
                   : rows ? p->batch
                          : 1,
                   strcmp(p->bias, "m") == 0        ? p->m
                   : strcmp(p->bias, "scalar") == 0 ? 1
                                                    : p->n,
                   true);
        t->rank = rows ? 2 : 1;
        t->strides[0] = rows ? p->n : 1, t->strides[1] = rows;
        o->fields[op->field_count++] = (scout_field){"bias", 0, p->bias};
    }
    if (p->residual) {
        gpu_matrix(&o->tensors[op->tensor_count++], "residual", SCOUT_INPUT, p->c, p->batch, p->m, p->n, p->batch == 1);
        o->fields[op->field_count++] = (scout_field){"residual", 1, NULL};
    }
    if (p->activation) o->fields[op->field_count++] = (scout_field){"activation", 0, p->activation};
    if (p->b == SCOUT_INT4) {
        gpu_matrix(&o->tensors[op->tensor_count++], "scales", SCOUT_SIDE, p->a, 1, p->n, p->k / block, true);
        o->fields[op->field_count++] = (scout_field){"block_size", block, NULL};
    }
    op->flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch;
}

static inline const char *gpu_product_text(const gpu_product *p, char *text, size_t room) {
    snprintf(text, room, "%lldx%lldx%lld b%lld %s types %u %u %u%s%s%s%s%s %s%s", (long long)p->m, (long long)p->n,
             (long long)p->k, (long long)p->batch, p->layout, p->a, p->b, p->c, p->tf32 ? " tf32" : "",
             p->bias ? " bias " : "", p->bias ? p->bias : "", p->weight ? " weight" : "", p->shared ? " shared" : "",
             p->activation ? p->activation : "", p->residual ? " residual" : "");
    return text;
}

/* Buffers of all tensors, filled; the output poisoned. */
static inline bool gpu_tensors(const gpu_operation *o, void **tensors, uint64_t seed) {
    bool good = true;
    scout_why why = {"", ""};
    for (uint32_t k = 0; k < o->op.tensor_count; k++) {
        const scout_tensor *const t = &o->tensors[k];
        const uint32_t how = t->role == SCOUT_OUTPUT          ? SCOUT_FILL_BYTE
                             : strcmp(t->name, "scales") == 0 ? SCOUT_FILL_SCALE
                                                              : SCOUT_FILL_NORMAL;
        tensors[k] = NULL;
        good = good && gpu_api->alloc(gpu, t->bytes, &tensors[k], &why) == SCOUT_OK &&
               gpu_api->fill(gpu, tensors[k], t->bytes, t->type, how, how == SCOUT_FILL_BYTE ? 0xff : seed + k, &why) ==
                   SCOUT_OK;
    }
    return gpu_expect(good, "buffers: %s", why.text);
}

static inline void gpu_release(void **tensors, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) gpu_api->release(gpu, tensors[k]);
}

/* --- one launch of a plan --- */

typedef struct gpu_launch {
    const scout_candidate *candidate;
    scout_plan *plan;
    scout_args args;
} gpu_launch;

static inline scout_answer gpu_enqueue(void *context, uint32_t number, void *stream, scout_why *why) {
    gpu_launch *const l = context;
    (void)number;
    l->args.stream = stream;
    return l->candidate->launch(l->plan, &l->args, why);
}

/* Seconds of one launch: the median-like smallest of `repeats` sequences of `launches`; negative where it failed. */
static inline double gpu_time(scout_enqueue enqueue, void *context, int graph, uint32_t launches, uint32_t repeats,
                              scout_why *why, scout_answer *answer) {
    scout_sequence *sequence = NULL;
    double *const seconds = calloc(repeats, sizeof *seconds), best = -1;
    double smallest = best;
    *answer = gpu_api->record(gpu, graph, launches, enqueue, context, &sequence, why);
    if (*answer == SCOUT_OK) *answer = gpu_api->run(gpu, sequence, repeats, seconds, why);
    for (uint32_t k = 0; *answer == SCOUT_OK && k < repeats; k++)
        if (smallest < 0 || seconds[k] < smallest) smallest = seconds[k];
    gpu_api->drop(gpu, sequence);
    free(seconds);
    return smallest < 0 ? smallest : smallest / launches;
}

#endif
