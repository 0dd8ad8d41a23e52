/* What a launch costs beside calling the plan that it launches: the plan alone, by its handle (scout_run_launch), and
 * by tensors (scout_run_gemm, …). All three in turn, in short blocks, and the median over the blocks. The work is as
 * small as can be: what is compared is what stands before it. Usage: bench_run [BLOCKS [DEVICE]] */
#include "runtime/runtime_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAUNCHES = 2000, MOST_BLOCKS = 1001, BYTES = 1024 };

static scout_run *run;
static void *data[4]; /* on the device */

/* Made once, as a caller does whose sizes stay what they are. */
static scout_run_tensor row_in, row_out, left, right, product, bias;

static void make_tensors(void) {
    const int64_t row[2] = {1, 16}, eight[2] = {1, 8}, square[2] = {8, 8};
    row_in = scout_run_dense(data[0], SCOUT_RUN_FP32, 2, row),
    row_out = scout_run_dense(data[2], SCOUT_RUN_FP32, 2, row);
    left = scout_run_dense(data[0], SCOUT_RUN_FP32, 2, eight),
    right = scout_run_dense(data[1], SCOUT_RUN_FP32, 2, square);
    product = scout_run_dense(data[2], SCOUT_RUN_FP32, 2, eight),
    bias = scout_run_dense(data[3], SCOUT_RUN_FP32, 1, &square[1]);
}

static int32_t norm(void) { return scout_run_norm(run, "rms", &row_in, &row_out, NULL, NULL, NULL); }

static int32_t gemm(void) { return scout_run_gemm(run, &left, &right, &product, NULL, NULL, NULL); }

static int32_t gemm_with_all(void) {
    const scout_run_gemm_more more = {.size = sizeof more, .weight = 'b', .activation = "relu", .bias = &bias};
    return scout_run_gemm(run, &left, &right, &product, &more, NULL, NULL);
}

static int32_t softmax(void) { return scout_run_softmax(run, &row_in, &row_out, -1, 0, NULL, NULL); }

static const struct {
    const char *name, *key;
    int32_t (*front)(void);
    int places[4]; /* of data, for each of its tensors */
} rows[] = {
    {"rms norm 1x16", "norm;what=rms;shape=1,16;type=fp32", norm, {0, 2}},
    {"softmax 1x16", "softmax;shape=1,16;type=fp32", softmax, {0, 2}},
    {"gemm 1x8x8", "gemm;shape=1,8,8;layout=nn;type=fp32", gemm, {0, 1, 2}},
    {"gemm 1x8x8, bias, relu",
     "gemm;shape=1,8,8;layout=nn;type=fp32;weight=fp32;activation=relu;bias=n;weight_side=b",
     gemm_with_all,
     {0, 1, 2, 3}},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int count) {
    qsort(x, (size_t)count, sizeof *x, by_size);
    return x[count / 2];
}

static void one_row(size_t k, int blocks) {
    static double times[3][MOST_BLOCKS];
    const scout_run_op *op;
    void *tensors[4];
    runtime_why counted;
    scout_answer answer;
    scout_why why;
    scout_run_error error = {.text = ""};
    if (scout_run_find(run, rows[k].key, &op, &error) != SCOUT_RUN_OK || rows[k].front() != SCOUT_RUN_OK) {
        printf("%-26s %s\n", rows[k].name, error.text);
        return;
    }
    for (uint32_t n = 0; n < op->op.tensor_count; n++) tensors[n] = data[rows[k].places[n]];
    runtime_way *way = runtime_op_plain(op, &counted);
    runtime_lane *lane = runtime_lane_take(op, way, NULL, &answer, &why);
    scout_plan *plan = atomic_load(&way->plans[lane - run->lanes]);
    const scout_args args = {sizeof args, tensors, lane->workspace, NULL};
    runtime_lane_give(lane, RUNTIME_WHYS);
    for (int block = 0; block < blocks; block++)
        for (int way_of = 0; way_of < 3; way_of++) {
            const double start = now();
            for (int n = 0; n < LAUNCHES; n++) {
                if (way_of == 0) (void)way->candidate->launch(plan, &args, &why);
                if (way_of == 1) (void)scout_run_launch(op, tensors, (int32_t)op->op.tensor_count, NULL, NULL, NULL);
                if (way_of == 2) (void)rows[k].front();
            }
            times[way_of][block] = (now() - start) / LAUNCHES * 1e9;
        }
    const double plain = median(times[0], blocks), handle = median(times[1], blocks), front = median(times[2], blocks);
    printf("%-26s %9.0f ns %+9.0f ns %+9.0f ns\n", rows[k].name, plain, handle - plain, front - plain);
}

int main(int argc, char **argv) {
    const int asked = argc > 1 ? atoi(argv[1]) : 51, blocks = asked > 0 && asked < MOST_BLOCKS ? asked : 51;
    const scout_run_options options = {.size = sizeof options, .device = argc > 2 ? argv[2] : NULL};
    scout_run_error error;
    scout_why why;
    if (scout_run_open(&run, &options, &error) != SCOUT_RUN_OK) {
        fprintf(stderr, "bench_run: %s\n", error.text);
        return 4;
    }
    for (int k = 0; k < 4; k++)
        if (run->api->alloc(run->device, BYTES, &data[k], &why) != SCOUT_OK) {
            fprintf(stderr, "bench_run: %s\n", why.text);
            return 4;
        }
    make_tensors();
    printf("%-26s %12s %12s %12s   (median of %d blocks of %d)\n", "", "the plan", "by handle", "by tensors", blocks,
           (int)LAUNCHES);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) one_row(k, blocks);
    for (int k = 0; k < 4; k++) run->api->release(run->device, data[k]);
    scout_run_close(run);
    return 0;
}
