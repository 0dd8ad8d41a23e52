/* Convolutions and padded rows by products of cuBLASLt's, on machines without a GPU: its product and the kernels around
 * it are plain loops here (lt_fake.h), memory is the host's, and everything between them is the real thing: which form
 * exists, what is copied where, what stands behind. Needs the toolkit's headers. */
#include "kernels/pass/activate.h"
#include "kernels/pass/pass_kernels.h"
#include "kernels/product/padded_rows.h"
#include "kernels/product/tail.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/op/conv.h"
#include "tests/fakes/lt_fake.h"
#include "tests/unit/cuda/cuda_fixture.h"

#include <cuda_runtime_api.h>

static int copies, tails; /* launches */

/* ---- the kernels, as loops ---- */

int __wrap_move_copy_launch(const move_copy *c, const void *from, void *to, void *stream);
int __wrap_move_copy_launch(const move_copy *c, const void *from, void *to, void *stream) {
    int64_t all = 1;
    (void)stream;
    copies++;
    if (!move_copy_fits(c)) return cudaErrorInvalidValue;
    for (int d = 0; d < c->rank; d++) all *= c->dims[d];
    for (int64_t n = 0; n < all; n++) {
        int64_t rest = n, read = c->from_at, written = c->to_at;
        for (int d = 0; d < c->rank; rest /= c->dims[d++])
            read += rest % c->dims[d] * c->from_strides[d], written += rest % c->dims[d] * c->to_strides[d];
        memcpy((uint8_t *)to + written * c->size, (const uint8_t *)from + read * c->size, (size_t)c->size);
    }
    return cudaSuccess;
}

int __wrap_padded_rows_launch(const padded_rows *p, const void *from, void *to, void *stream);
int __wrap_padded_rows_launch(const padded_rows *p, const void *from, void *to, void *stream) {
    const size_t size = (size_t)p->element;
    (void)stream;
    copies++;
    if ((uintptr_t)to % 16 || p->ld < p->cols) return cudaErrorInvalidValue;
    memset(to, 0, (size_t)(p->rows_to * p->cols_to) * size);
    for (int64_t r = 0; r < p->rows && r < p->rows_to; r++)
        memcpy((uint8_t *)to + (size_t)(r * p->cols_to) * size, (const uint8_t *)from + (size_t)(r * p->ld) * size,
               (size_t)(p->cols < p->cols_to ? p->cols : p->cols_to) * size);
    return cudaSuccess;
}

static float act(int function, float x) {
    return function == ACTIVATE_RELU ? fmaxf(x, 0) : function == ACTIVATE_TANH ? tanhf(x) : x;
}

int __wrap_tail_launch(const tail *t, void *data, const void *bias, const void *residual, void *stream);
int __wrap_tail_launch(const tail *t, void *data, const void *bias, const void *residual, void *stream) {
    float *const x = data;
    (void)stream;
    tails++;
    if (t->type != TAIL_FP32) return cudaErrorInvalidValue;
    for (int64_t k = 0; k < t->elements; k++) {
        if (bias) x[k] += ((const float *)bias)[k / t->step % t->channels];
        if (residual) x[k] += ((const float *)residual)[k];
        x[k] = act(t->function, x[k]);
    }
    return cudaSuccess;
}

/* ---- what is right ---- */

static void fill(lab *l) {
    uint32_t state = 7;
    for (uint32_t k = 0; k < l->op.tensor_count; k++) {
        const scout_tensor *const t = &l->op.tensors[k];
        l->data[k] = room(t->bytes, 0xff);
        for (uint64_t n = 0; n < t->bytes / sizeof(float) && t->role != SCOUT_OUTPUT; n++) {
            state = state * 1664525u + 1013904223u;
            const float x = (float)(int32_t)state * 0x1p-31F;
            memcpy(l->data[k] + n * sizeof x, &x, sizeof x);
        }
    }
}

static double number(const lab *l, int tensor, int64_t at) {
    float x = 0;
    memcpy(&x, l->data[tensor] + at * (int64_t)sizeof x, sizeof x);
    return (double)x;
}

/* Of a convolution without padding: `at` are places of the output along the axes. */
static double wanted(const lab *l, const conv_problem *p, int64_t image, int64_t channel, const int64_t *at,
                     int64_t place) {
    const int64_t taps = window_kernel(&p->w);
    double sum = 0;
    for (int64_t n = 0; n < p->cin * taps; n++) {
        const int64_t c = n / taps;
        int64_t tap = n % taps, from = 0, step = p->in_step;
        for (int k = WINDOW_AXES - 1; k >= 0; k--) {
            const window_axis *const a = &p->w.axes[k];
            from += (at[k] * a->stride + tap % a->kernel * a->dilation) * step;
            tap /= a->kernel, step *= a->in;
        }
        sum += number(l, CONV_INPUT, image * p->in_n + c * p->in_c + from) *
               number(l, CONV_WEIGHT, channel * p->w_o + c * p->w_i + n % taps);
    }
    if (p->bias >= 0) sum += number(l, p->bias, channel);
    if (p->residual >= 0) sum += number(l, p->residual, image * p->out_n + channel * p->out_c + place * p->out_step);
    return p->activation.function == ACTIVATION_RELU   ? fmax(sum, 0)
           : p->activation.function == ACTIVATION_TANH ? tanh(sum)
                                                       : sum;
}

static bool is_right(const lab *l) {
    const conv_problem p = conv_problem_of(&l->op);
    const window_axis *const a = p.w.axes;
    const int64_t places = window_out(&p.w);
    for (int64_t n = 0; n < p.n * p.cout * places; n++) {
        const int64_t place = n % places, channel = n / places % p.cout, image = n / places / p.cout;
        const int64_t at[] = {place / a[2].out / a[1].out, place / a[2].out % a[1].out, place % a[2].out};
        const double want = wanted(l, &p, image, channel, at, place),
                     got = number(l, CONV_OUTPUT, image * p.out_n + channel * p.out_c + place * p.out_step);
        if (fabs(got - want) <= 1e-4) continue;
        printf("image %lld, channel %lld, place %lld: %g instead of %g\n", (long long)image, (long long)channel,
               (long long)place, got, want);
        return false;
    }
    return true;
}

/* All variants, whose forms and what is behind are as wanted ("rows,turned within,apart"); of each how many copies and
 * tails the last one took. */
static void run_all(const char *fields, const char *forms) {
    static scout_domain domain;
    char said[80] = "";
    lab l;
    if (read_op(&l, fields, SMALL) && UNIT_INT(own_conv_product.supports(&l.op, &device, &why), SCOUT_OK) &&
        UNIT_INT(own_conv_product.domain(&l.op, &device, 0, &domain, &why), SCOUT_OK) && UNIT_INT(domain.count, 3)) {
        const scout_parameter *const form = &domain.parameters[1], *const behind = &domain.parameters[2];
        fill(&l);
        UNIT_INT(domain.parameters[0].count, ALGORITHMS);
        for (uint32_t k = 0; k < form->count * behind->count; k++) {
            const int64_t values[SCOUT_MAX_PARAMETERS] = {1, form->values[k / behind->count],
                                                          behind->values[k % behind->count]};
            if (!own_conv_product.allows(&l.op, &device, values)) continue;
            const size_t used = strlen(said);
            snprintf(said + used, sizeof said - used, "%s%s-%s", used ? " " : "", form->labels[k / behind->count],
                     behind->labels[k % behind->count]);
            copies = tails = 0;
            if (!run_lab(&l, &own_conv_product, CONV_OUTPUT, values) || !UNIT_CHECK(is_right(&l)))
                printf("%s: %s\n", fields, said);
        }
        if (!UNIT_TEXT(said, forms)) printf("%s\n", fields);
    } else {
        printf("%s: %s %s\n", fields, why.code, why.text);
    }
    drop(&l);
}

/* ---- padded rows ---- */

static bool is_product(const lab *l) {
    const gemm_problem p = gemm_problem_of(&l->op);
    const int bias = op_tensor(&l->op, "bias");
    for (int64_t at = 0; at < p.m * p.batch * p.n; at++) {
        const int64_t i = at / p.n, j = at % p.n;
        double sum = bias >= 0 ? number(l, bias, j) : 0;
        for (int64_t k = 0; k < p.k; k++)
            sum += number(l, GEMM_A, i * p.lda + k) * number(l, GEMM_B, p.trans_b ? j * p.ldb + k : k * p.ldb + j);
        if (p.activation.function == ACTIVATION_RELU) sum = fmax(sum, 0);
        if (fabs(number(l, GEMM_C, at) - sum) <= 1e-4) continue;
        printf("row %lld, column %lld: %g instead of %g\n", (long long)i, (long long)j, number(l, GEMM_C, at), sum);
        return false;
    }
    return true;
}

/* All outputs, as wanted ("direct exact"), each with rows that begin at `lines` bytes; how many products the last one
 * took. */
static int pad_all(const char *fields, uint64_t workspace, const char *outputs, const int *lines) {
    static scout_domain domain;
    char said[80] = "";
    lab l;
    if (read_op(&l, fields, workspace) && UNIT_INT(own_gemm_padded.supports(&l.op, &device, &why), SCOUT_OK) &&
        UNIT_INT(own_gemm_padded.domain(&l.op, &device, 0, &domain, &why), SCOUT_OK) && UNIT_INT(domain.count, 2)) {
        const scout_parameter *const output = &domain.parameters[1];
        fill(&l);
        for (uint32_t k = 0; k < output->count; k++) {
            const int64_t values[SCOUT_MAX_PARAMETERS] = {1, output->values[k]};
            const size_t used = strlen(said);
            if (!own_gemm_padded.allows(&l.op, &device, values)) continue;
            snprintf(said + used, sizeof said - used, "%s%s", used ? " " : "", output->labels[k]);
            products = 0;
            if (!run_lab(&l, &own_gemm_padded, GEMM_C, values) || !UNIT_CHECK(is_product(&l)) ||
                !UNIT_INT(narrow_line, lines[k]))
                printf("%s: %s\n", fields, said);
        }
        if (!UNIT_TEXT(said, outputs)) printf("%s\n", fields);
    } else {
        printf("%s: %s %s\n", fields, why.code, why.text);
    }
    drop(&l);
    return products;
}

#define CONV    "\"op\": \"conv\", \"dtype\": \"fp32\", "
#define PATCHES CONV "\"shape\": [3, 6, 2, 3], \"input\": [3, 5, 9, 13], \"kernel\": [4, 4], \"stride\": [4, 4]"
#define PATCHES_LAST                                                                                                   \
    CONV "\"shape\": [3, 2, 3, 6], \"input\": [3, 9, 13, 5], \"kernel\": [4, 4], \"stride\": [4, 4], \"layout\": "     \
         "\"nhwc\""

/* ---- tests ---- */

static void windows_beside_each_other_are_rows(void) {
    run_all(PATCHES, "rows-within turned-within");
    UNIT_INT(copies, 2);
    run_all(PATCHES ", \"bias\": \"channel\"", "rows-apart turned-within turned-apart");
    run_all(PATCHES ", \"activation\": \"relu\"", "rows-within rows-apart turned-within turned-apart");
    run_all(PATCHES ", \"bias\": \"channel\", \"residual\": 1, \"activation\": \"relu\"", "rows-apart turned-apart");
    UNIT_INT(tails, 1);
    run_all(PATCHES ", \"residual\": 1", "rows-within rows-apart turned-apart");
    run_all(CONV
            "\"shape\": [2, 7, 5], \"input\": [2, 3, 11], \"kernel\": [2], \"stride\": [2], \"activation\": \"tanh\"",
            "columns-apart rows-apart turned-apart");
    run_all(CONV "\"shape\": [2, 4, 2, 3, 2], \"input\": [2, 3, 5, 9, 8], \"kernel\": [2, 3, 4], \"stride\": [3, 3, 4]",
            "rows-within turned-within");
    run_all(CONV "\"shape\": [2, 4, 2, 2], \"input\": [2, 3, 10, 6], \"kernel\": [2, 2], \"dilation\": [3, 2], "
                 "\"stride\": [6, 3]",
            "columns-within rows-within turned-within");
}

static void channels_last_are_one_product(void) {
    run_all(PATCHES_LAST, "all-within");
    UNIT_INT(copies, 2); /* the weight, too */
    run_all(PATCHES_LAST ", \"bias\": \"channel\", \"residual\": 1, \"activation\": \"relu\"", "all-within all-apart");
    run_all(PATCHES_LAST ", \"bias\": \"channel\", \"activation\": \"tanh\"", "all-apart");
    run_all(CONV "\"shape\": [2, 4, 4, 6], \"input\": [2, 4, 4, 5], \"kernel\": [1, 1], \"layout\": \"nhwc\"",
            "all-within");
    UNIT_INT(copies, 0);
    run_all(CONV "\"shape\": [2, 2, 2, 6], \"input\": [2, 4, 4, 5], \"kernel\": [1, 1], \"stride\": [2, 2], "
                 "\"layout\": \"nhwc\", \"bias\": \"channel\"",
            "all-within all-apart");
    UNIT_INT(copies, 1);
}

static void windows_of_one_place_are_columns(void) {
    run_all(CONV "\"shape\": [3, 6, 4, 4], \"input\": [3, 5, 4, 4], \"kernel\": [1, 1]", "columns-within");
    UNIT_INT(copies, 0);
    run_all(CONV "\"shape\": [1, 6, 4, 4], \"input\": [1, 5, 4, 4], \"kernel\": [1, 1], \"bias\": \"channel\"",
            "columns-apart");
    run_all(CONV "\"shape\": [3, 6, 2, 2], \"input\": [3, 5, 4, 4], \"kernel\": [1, 1], \"stride\": [2, 2]",
            "columns-within");
    UNIT_INT(copies, 1);
}

static void one_window_an_image_is_a_row(void) {
    run_all(CONV "\"shape\": [5, 6, 1, 1], \"input\": [5, 3, 3, 4], \"kernel\": [3, 4], \"bias\": \"channel\"",
            "all-within all-apart");
    UNIT_INT(copies, 0);
    run_all(CONV "\"shape\": [5, 6, 1, 1], \"input\": [5, 3, 4, 4], \"kernel\": [3, 4], \"stride\": [2, 1]",
            "all-within");
    UNIT_INT(copies, 1);
}

/* Where the library has nothing for a product with its epilogue, the other one is left. */
static void an_epilogue_may_be_missing(void) {
    no_epilogues = true;
    run_all(PATCHES_LAST ", \"bias\": \"channel\", \"activation\": \"relu\"", "all-apart");
    no_epilogues = false;
}

#define GEMM "\"op\": \"gemm\", \"dtype\": \"fp32\", "

static void rows_begin_at_whole_lines(void) {
    static const int every[] = {16, 16, 16}, n_odd[] = {4, 16, 16}, k_odd[] = {16};
    UNIT_INT(pad_all(GEMM "\"shape\": [9, 13, 8], \"layout\": \"nt\"", SMALL, "exact whole", every), 1);
    pad_all(GEMM "\"shape\": [9, 13, 8]", SMALL, "direct exact whole", n_odd);
    pad_all(GEMM "\"shape\": [9, 13, 8], \"bias\": \"n\", \"activation\": \"relu\"", SMALL, "direct exact", n_odd);
    pad_all(GEMM "\"shape\": [9, 12, 7], \"layout\": \"nt\", \"bias\": \"n\"", SMALL, "direct", k_odd);
    pad_all(GEMM "\"shape\": [9, 12, 7]", SMALL, "direct", k_odd);
    pad_all(GEMM "\"shape\": [1, 13, 7], \"layout\": \"nt\", \"activation\": \"relu\"", SMALL, "direct exact whole",
            n_odd);
    pad_all(GEMM "\"shape\": [5, 13, 7], \"batch\": 3, \"batch_stride_b\": 0", SMALL, "direct exact whole", n_odd);
}

static void what_does_not_fit_goes_in_pieces(void) {
    static const int lines[] = {4, 16, 16};
    UNIT_CHECK(pad_all(GEMM "\"shape\": [333, 203, 57], \"layout\": \"nt\"", 1 << 17, "direct exact whole", lines) > 2);
}

static void what_needs_no_padding_is_refused(void) {
    static const struct {
        const char *fields, *code;
        uint64_t workspace;
    } rows[] = {
        {GEMM "\"shape\": [9, 12, 8]", "alignment", SMALL},
        {GEMM "\"shape\": [9, 13, 8], \"layout\": \"tn\"", "layout", SMALL},
        {GEMM "\"shape\": [9, 13, 8], \"weight_side\": \"none\"", "feature", SMALL},
        {GEMM "\"shape\": [9, 13, 8], \"residual\": 1", "epilogue", SMALL},
        {"\"op\": \"gemm\", \"dtype\": \"fp64\", \"shape\": [9, 13, 8]", "type", SMALL},
        {GEMM "\"shape\": [900, 2001, 8], \"layout\": \"nt\"", "memory", 4096},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        lab l;
        if (read_op(&l, rows[k].fields, rows[k].workspace)) {
            UNIT_INT(own_gemm_padded.supports(&l.op, &device, &why), SCOUT_NO);
            if (!UNIT_TEXT(why.code, rows[k].code)) printf("%s\n", rows[k].fields);
        }
        drop(&l);
    }
}

static void what_it_does_not_do_is_refused(void) {
    static const struct {
        const char *fields, *code;
        uint64_t workspace;
    } rows[] = {
        {CONV "\"shape\": [1, 4, 4, 4], \"input\": [1, 4, 4, 4], \"kernel\": [3, 3], \"pads\": [1, 1, 1, 1]", "shape",
         SMALL},
        {CONV "\"shape\": [1, 4, 3, 3], \"input\": [1, 4, 4, 4], \"kernel\": [2, 2]", "shape", SMALL},
        {CONV "\"shape\": [1, 4, 4, 4], \"input\": [1, 4, 4, 4], \"kernel\": [1, 1], \"group\": 2", "feature", SMALL},
        {CONV "\"shape\": [1, 4, 8, 8], \"input\": [1, 4, 4, 4], \"kernel\": [2, 2], \"stride\": [2, 2], "
              "\"transposed\": 1",
         "feature", SMALL},
        {"\"op\": \"conv\", \"dtype\": \"int8\", \"out_dtype\": \"int32\", \"shape\": [1, 4, 4, 4], "
         "\"input\": [1, 4, 4, 4], \"kernel\": [1, 1]",
         "type", SMALL},
        {PATCHES, "memory", 128},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        lab l;
        if (read_op(&l, rows[k].fields, rows[k].workspace)) {
            UNIT_INT(own_conv_product.supports(&l.op, &device, &why), SCOUT_NO);
            if (!UNIT_TEXT(why.code, rows[k].code)) printf("%s\n", rows[k].fields);
        }
        drop(&l);
    }
}

/* The list that is launched on GPUs: it takes all of it. */
static void check_list(const char *path, const scout_candidate *c) {
    guard g;
    arena a;
    operation_list list = {.items = NULL};
    scout_op op;
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    if (guard_enter(&g)) operation_read(path, "fp16", &a, &list);
    UNIT_CHECK(list.count > 0);
    for (int k = 0; k < list.count; k++)
        if (!UNIT_CHECK(kinds_build(&list.items[k], SMALL, &a, &op, &why) &&
                        c->supports(&op, &device, &why) == SCOUT_OK))
            printf("%s: %s %s\n", list.items[k].id, why.code, why.text);
    operation_list_free(&list);
    arena_free(&a);
}

static void the_lists_for_gpus_are_taken(void) {
    device = (struct scout_device){.multiprocessors = 132, .capability_major = 9};
    check_list("tests/gpu/kinds/conv_product.json", &own_conv_product);
    check_list("tests/gpu/kinds/gemm_padded.json", &own_gemm_padded);
    check_list("tests/gpu/kinds/gemm_few_tiles.json", &lt_candidate);
}

int main(void) {
    UNIT_RUN(the_lists_for_gpus_are_taken);
    UNIT_RUN(windows_beside_each_other_are_rows);
    UNIT_RUN(channels_last_are_one_product);
    UNIT_RUN(windows_of_one_place_are_columns);
    UNIT_RUN(one_window_an_image_is_a_row);
    UNIT_RUN(an_epilogue_may_be_missing);
    UNIT_RUN(what_it_does_not_do_is_refused);
    UNIT_RUN(rows_begin_at_whole_lines);
    UNIT_RUN(what_does_not_fit_goes_in_pieces);
    UNIT_RUN(what_needs_no_padding_is_refused);
    return unit_end();
}
