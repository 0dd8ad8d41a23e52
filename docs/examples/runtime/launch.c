/* Launches a product by a dispatch table, and says what ran. Usage: launch TABLE.json ROWS
 * The table is of this machine's processor (scout_batch --device cpu, then analyze dispatch). */
#include <runtime/scout_run.h>

#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 256, DEPTH = 512 };

static void say(void *context, const char *line) {
    (void)context;
    printf("  %s\n", line);
}

static float *numbers(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t k = 0; x && k < count; k++) x[k] = (float)(k * 7 % 13 - 6) / 8;
    return x;
}

/* Packs the weight where what runs here wants that; the whole first row is held against sums in double. */
static int multiply(scout_run *run, int64_t rows) {
    const int64_t a_dims[2] = {rows, DEPTH}, b_dims[2] = {DEPTH, COLUMNS}, c_dims[2] = {rows, COLUMNS};
    float *a_data = numbers(rows * DEPTH), *b_data = numbers(DEPTH * COLUMNS), *c_data = numbers(rows * COLUMNS);
    const scout_run_tensor a = scout_run_dense(a_data, SCOUT_RUN_FP32, 2, a_dims),
                           b = scout_run_dense(b_data, SCOUT_RUN_FP32, 2, b_dims),
                           c = scout_run_dense(c_data, SCOUT_RUN_FP32, 2, c_dims);
    scout_run_gemm_more more = {.size = sizeof more, .weight = 'b'};
    scout_run_weight *packed = NULL;
    scout_run_error error;
    int wrong = 0;
    if (!a_data || !b_data || !c_data) return 1;
    if (scout_pack_weight_gemm(run, &a, &b, &c, &more, &packed, &error) == SCOUT_RUN_OK) {
        printf("  the weight is packed: %llu bytes\n", (unsigned long long)scout_run_weight_bytes(packed));
        more.packed = packed;
    }
    if (scout_run_gemm(run, &a, &b, &c, &more, NULL, &error) != SCOUT_RUN_OK) {
        printf("  %s\n", error.text);
        wrong = COLUMNS;
    }
    for (int n = 0; n < COLUMNS && wrong < COLUMNS; n++) {
        double sum = 0;
        for (int k = 0; k < DEPTH; k++) sum += (double)a_data[k] * (double)b_data[k * COLUMNS + n];
        const double off = sum - (double)c_data[n];
        if (off > 1e-3 || off < -1e-3) wrong++;
    }
    printf("  %lld x %d x %d: %d of %d wrong\n", (long long)rows, COLUMNS, DEPTH, wrong, COLUMNS);
    scout_run_weight_free(packed);
    free(a_data), free(b_data), free(c_data);
    return wrong != 0;
}

int main(int argc, char **argv) {
    scout_run_options options = {.size = sizeof options, .device = "cpu", .say = say};
    scout_run_counts counts;
    scout_run_error error;
    scout_run *run;
    if (argc != 3 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: launch TABLE.json ROWS\n");
        return 2;
    }
    options.table = argv[1];
    if (scout_run_open(&run, &options, &error) != SCOUT_RUN_OK) {
        fprintf(stderr, "launch: %s\n", error.text);
        return 4;
    }
    printf("%s\n", scout_run_device(run));
    const int bad = multiply(run, atoi(argv[2]));
    scout_run_count(run, &counts);
    printf("launches: %llu as listed, %llu not listed, %llu refused, %llu on a plain weight\n",
           (unsigned long long)counts.listed, (unsigned long long)counts.unlisted, (unsigned long long)counts.refused,
           (unsigned long long)counts.unpacked);
    scout_run_close(run);
    return bad;
}
