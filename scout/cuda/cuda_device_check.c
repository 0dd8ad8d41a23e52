/* The reference of matrix products: chooses how finely an output is covered, keeps the right values on the device, and
 * makes a verdict of the kernels' counts. kernels/harness/check_gemm.cu computes. Every output of a quantised product
 * is compared, as of other kinds: cuda_whole_gemm.c. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/own/own_activate.h"
#include "scout/cuda/reference/cuda_whole.h"
#include "scout/op/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scout_check {
    scout_device *device;
    scout_check *whole; /* of a quantised product: nothing else is set then */
    kernels_gemm gemm;  /* its inputs' pointers are used by begin alone */
    double *want;       /* on the device, and so are the next three */
    float *spread;
    kernels_found *found;
    kernels_sample *samples;
    kernels_sample *copies; /* of the samples, here */
    int sample_count;
};

enum { CHECK_SAMPLES = 4096, CHECK_WIDTH = 64, CHECK_WIDE = 256, CHECK_WIDEST = 2048 };

/* How many columns may be projected together so that one wrong element shows in any place: as widest_segment in
 * scout/cpu/device/cpu_cover.c, where it is argued. */
static int64_t check_widest(const kernels_gemm *g) {
    const bool coarse = g->scales && g->type_a == SCOUT_BF16;
    if (coarse || g->type_a == SCOUT_FP8E4M3 || g->type_a == SCOUT_FP8E5M2) return KERNELS_FINE_WIDTH;
    const bool integer = g->type_c == SCOUT_INT32, fine = g->type_c == SCOUT_FP16 || g->type_a == SCOUT_FP64;
    return (integer || fine) && !g->scales ? CHECK_WIDEST : CHECK_WIDE;
}

/* Segments of 64 columns, narrower where results are coarse; they become wider where the work (multiply-adds of m x k x
 * segments) or the memory would be out of proportion, but never so wide that a wrong element is missed: of fp8 the work
 * is a sixteenth of the product's and the memory about that of its tensors (12 bytes for 16 elements). */
static void check_cover(kernels_gemm *g) {
    const double work = 6e10, entries = 3.2e7;
    const double own = (double)g->m * (double)g->batch, folds = (double)g->k * (g->stride_b ? (double)g->batch : 1);
    const int64_t widest = g->activation == ACTIVATE_PLAIN ? check_widest(g) : KERNELS_FINE_WIDTH;
    for (g->width = widest < CHECK_WIDTH ? widest : CHECK_WIDTH;; g->width *= 2) {
        g->segments = (g->n + g->width - 1) / g->width;
        const double s = (double)g->segments;
        if (g->segments == 1 || g->width >= widest) return;
        if (own * (double)g->k * s <= work && own * s <= entries && folds * s <= entries) return;
    }
}

static scout_answer check_bias(kernels_gemm *g, const scout_op *op, const gemm_problem *p, void *const *tensors,
                               scout_why *why) {
    static const struct {
        const char *name;
        int by_row, by_column, by_product;
    } kinds[] = {{"n", 0, 1, 0}, {"m", 1, 0, 0}, {"scalar", 0, 0, 0}, {"full", 1, 1, 0}, {"each", 0, 1, 1}};
    if (!p->bias) return SCOUT_OK;
    const int at = op_tensor(op, "bias");
    for (size_t k = 0; at >= 0 && k < sizeof kinds / sizeof kinds[0]; k++) {
        if (strcmp(kinds[k].name, p->bias) != 0) continue;
        const scout_tensor *const t = &op->tensors[at];
        g->bias = tensors[at];
        g->type_bias = t->type;
        g->bias_i = kinds[k].by_row && kinds[k].by_column ? g->n : kinds[k].by_row;
        g->bias_j = kinds[k].by_column;
        g->bias_p = kinds[k].by_product ? g->n : t->rank == 3 ? t->strides[0] : 0;
        if (t->rank == 3 && kinds[k].by_row && kinds[k].by_column) g->bias_i = t->strides[1];
        return SCOUT_OK;
    }
    return scout_say(why, SCOUT_NO, "epilogue", "no reference for a bias of kind %s", p->bias);
}

static scout_answer check_describe(kernels_gemm *g, const scout_op *op, void *const *tensors, uint64_t seed,
                                   scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const int scales = op_tensor(op, "scales");
    const bool widens = gemm_widens(p.type_a, p.type_b);
    memset(g, 0, sizeof *g);
    g->m = p.m, g->n = p.n, g->k = p.k, g->batch = p.batch;
    g->stride_a = p.stride_a, g->stride_b = p.stride_b, g->stride_c = p.stride_c;
    g->lda = p.lda, g->ldb = p.ldb, g->ldc = p.ldc;
    g->trans_a = p.trans_a, g->trans_b = p.trans_b;
    g->type_a = p.type_a, g->type_b = p.type_b, g->type_c = p.type_c;
    g->a = tensors[GEMM_A], g->b = tensors[GEMM_B];
    g->alpha = p.alpha, g->beta = p.beta;
    g->seed = seed;
    g->block = p.block_size > 0 ? p.block_size : p.k;
    if (scales >= 0) g->scales = tensors[scales], g->type_scales = op->tensors[scales].type;
    if (p.b_zero >= 0) g->zeros = tensors[p.b_zero];
    g->residual = p.residual >= 0 ? tensors[p.residual] : NULL;
    g->activation = own_activate(p.activation.function);
    g->activation_alpha = p.activation.alpha, g->activation_beta = p.activation.beta;
    g->steepest = activation_steepest(&p.activation);
    if (g->activation < 0) return scout_say(why, SCOUT_NO, "epilogue", "no reference for this activation of a product");
    if (widens != (g->scales != NULL) || g->k % g->block)
        return scout_say(why, SCOUT_NO, "feature", "a weight of few bits has a scale for each block, and no other has");
    if (p.m < 1 || p.n < 1 || p.k < 1 || p.batch < 1) return scout_say(why, SCOUT_NO, "shape", "an empty product");
    check_cover(g);
    return check_bias(g, op, &p, tensors, why);
}

/* The corners first, where tiles end, then anywhere; all of them where there are few. */
static void check_places(scout_check *c) {
    const kernels_gemm *const g = &c->gemm;
    const uint64_t n = (uint64_t)g->n, total = (uint64_t)g->batch * (uint64_t)g->m * n;
    const uint64_t corners[] = {0, n - 1, total - n, total - 1};
    uint64_t state = g->seed ^ 0x5a3b1e5u;
    c->sample_count = total < CHECK_SAMPLES ? (int)total : CHECK_SAMPLES;
    for (int k = 0; k < c->sample_count; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t bits = (state ^ state >> 29) * 0xbf58476d1ce4e5b9u;
        c->copies[k].at = total <= CHECK_SAMPLES ? (uint64_t)k : k < 4 ? corners[k] : (bits ^ bits >> 32) % total;
    }
}

static scout_answer check_room(scout_check *c, double **folded, float **squares, scout_why *why) {
    const kernels_gemm *const g = &c->gemm;
    const uint64_t outputs = (uint64_t)g->batch * (uint64_t)g->m * (uint64_t)g->segments;
    const uint64_t folds = (g->stride_b ? (uint64_t)g->batch : 1) * (uint64_t)g->k * (uint64_t)g->segments;
    const struct {
        void **to;
        uint64_t bytes;
    } wanted[] = {
        {(void **)&c->want, outputs * sizeof(double)}, {(void **)&c->spread, outputs * sizeof(float)},
        {(void **)&c->found, sizeof(kernels_found)},   {(void **)&c->samples, CHECK_SAMPLES * sizeof(kernels_sample)},
        {(void **)folded, folds * sizeof(double)},     {(void **)squares, folds * sizeof(float)}};
    scout_answer answer = SCOUT_OK;
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0] && answer == SCOUT_OK; k++)
        answer = cuda_device_alloc(c->device, wanted[k].bytes, wanted[k].to, why);
    return answer;
}

static scout_answer check_fold(scout_check *c, double *folded, float *squares, scout_why *why) {
    cudaStream_t stream = c->device->stream;
    const scout_answer answer =
        cuda_device_answer(kernels_gemm_fold(&c->gemm, folded, squares, stream), "folding B", why);
    if (answer != SCOUT_OK) return answer;
    return cuda_device_answer(kernels_gemm_project(&c->gemm, folded, squares, c->want, c->spread, stream), "projecting",
                              why);
}

static scout_answer check_compute(scout_check *c, double *folded, float *squares, scout_why *why) {
    cudaStream_t stream = c->device->stream;
    const uint64_t bytes = (uint64_t)c->sample_count * sizeof(kernels_sample);
    scout_answer answer = cuda_device_upload(c->device, c->samples, c->copies, bytes, why);
    if (answer == SCOUT_OK && c->gemm.activation != ACTIVATE_PLAIN)
        answer = cuda_device_answer(kernels_gemm_activated(&c->gemm, c->want, c->spread, stream), "projecting", why);
    else if (answer == SCOUT_OK)
        answer = check_fold(c, folded, squares, why);
    if (answer == SCOUT_OK)
        answer =
            cuda_device_answer(kernels_gemm_samples(&c->gemm, c->samples, c->sample_count, stream), "sampling", why);
    return answer == SCOUT_OK ? cuda_device_wait(c->device, "computing the reference", why) : answer;
}

static void check_end(scout_check *check) {
    if (!check) return;
    cuda_whole_end(check->whole);
    cuda_device_release(check->device, check->want);
    cuda_device_release(check->device, check->spread);
    cuda_device_release(check->device, check->found);
    cuda_device_release(check->device, check->samples);
    free(check->copies);
    free(check);
}

/* By samples and projections. */
static scout_answer check_cover_all(scout_check *c, const scout_op *op, void *const *tensors, uint64_t seed,
                                    scout_why *why) {
    double *folded = NULL;
    float *squares = NULL;
    scout_answer answer = check_describe(&c->gemm, op, tensors, seed, why);
    if (answer == SCOUT_OK) answer = check_room(c, &folded, &squares, why);
    if (answer == SCOUT_OK) {
        check_places(c);
        answer = check_compute(c, folded, squares, why);
    }
    cuda_device_release(c->device, folded);
    cuda_device_release(c->device, squares);
    return answer;
}

static scout_answer check_begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                                scout_check **check, scout_why *why) {
    *check = NULL;
    scout_check *const c = calloc(1, sizeof *c);
    if (!c || !(c->copies = calloc(CHECK_SAMPLES, sizeof *c->copies))) {
        free(c);
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    }
    c->device = device;
    const gemm_problem p = gemm_problem_of(op);
    const bool bytes = p.quant.is || (gemm_has_zeros(&p) && !gemm_widens(p.type_a, p.type_b));
    const scout_answer answer = bytes ? cuda_whole_begin(cuda_whole_gemm, device, op, tensors, &c->whole, why)
                                      : check_cover_all(c, op, tensors, seed, why);
    if (answer != SCOUT_OK) {
        check_end(c);
        return answer;
    }
    *check = c;
    return SCOUT_OK;
}

static void check_judge(const scout_check *c, const kernels_found *found, double tolerance, scout_verdict *verdict) {
    float projected = 0;
    const uint32_t size = verdict->size;
    memset(verdict, 0, sizeof *verdict);
    verdict->size = size;
    memcpy(&projected, &found->worst_bits, sizeof projected);
    verdict->worst_projected = projected;
    verdict->wrong = found->wrong;
    verdict->compared = (uint64_t)c->sample_count;
    for (int k = 0; k < c->sample_count; k++) {
        const kernels_sample *const s = &c->copies[k];
        const double off = fabs(s->got - s->want);
        double error = off == 0 ? 0 : off / (fabs(s->want) + s->spread);
        if (!isfinite(error)) error = INFINITY;
        verdict->wrong += error > tolerance;
        if (k > 0 && error <= verdict->worst) continue;
        verdict->worst = error;
        verdict->at = s->at;
        verdict->got = s->got;
        verdict->want = s->want;
    }
}

static scout_answer check_compare(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                                  scout_why *why) {
    scout_device *const d = check->device;
    kernels_found found;
    if (check->whole) return cuda_whole_compare(check->whole, output, tolerance, verdict, why);
    const uint64_t bytes = (uint64_t)check->sample_count * sizeof(kernels_sample);
    scout_answer answer =
        cuda_device_answer(cudaMemsetAsync(check->found, 0, sizeof found, d->stream), "comparing", why);
    if (answer == SCOUT_OK)
        answer = cuda_device_answer(kernels_gemm_compare(&check->gemm, output, check->want, check->spread, tolerance,
                                                         check->found, check->samples, check->sample_count, d->stream),
                                    "comparing", why);
    if (answer == SCOUT_OK) answer = cuda_device_download(d, &found, check->found, sizeof found, why);
    if (answer == SCOUT_OK) answer = cuda_device_download(d, check->copies, check->samples, bytes, why);
    if (answer != SCOUT_OK) return answer;
    check_judge(check, &found, tolerance, verdict);
    return SCOUT_OK;
}

const scout_reference cuda_device_gemm_reference = {
    .size = sizeof(scout_reference),
    .kind = SCOUT_GEMM,
    .begin = check_begin,
    .compare = check_compare,
    .end = check_end,
};
