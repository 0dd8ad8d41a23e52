/* What to run a product with: opens a table that `analyze dispatch` wrote, for the device that this process has, and
 * looks up one product after the other. Usage: lookup dispatch.json M… */
#include <dispatch/scout_dispatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A serving engine asks CUDA, NVML and the libraries themselves (cudaGetDeviceProperties, nvmlSystemGetDriverVersion,
 * cublasLtGetVersion, …). Here it stands in the environment, so that the example runs anywhere. */
static const char *told(const char *name, const char *otherwise) {
    const char *text = getenv(name);
    return text ? text : otherwise;
}

/* What an engine does with an entry: the default where there is none or it says so, else what was proven. */
static void show(int64_t m, const scout_dispatch_entry *e, const scout_dispatch_ends *between) {
    if (e && e->choice == SCOUT_DISPATCH_DEFAULT)
        printf("%5" PRId64 " rows: %s as it is by default, %.2f us: nothing was proven to be faster\n", m,
               e->implementation, e->default_us);
    else if (e)
        printf("%5" PRId64 " rows: %s %s, %.2f us instead of %.2f; %" PRIu32 " bytes for cublasLtMatmulAlgoCheck%s%s\n",
               m, e->implementation, e->variant, e->expected_us, e->default_us, e->algo_bytes,
               e->packing ? "; its weight is " : "", e->packing ? e->packing : "");
    else if (between)
        printf("%5" PRId64 " rows: not measured, but between two that agree on %s: %.2f to %.2f us\n", m,
               between->lower->implementation, between->lower->expected_us, between->upper->expected_us);
    else
        printf("%5" PRId64 " rows: not measured: the default\n", m);
}

int main(int argc, char **argv) {
    const scout_dispatch_library libraries[] = {{"cublaslt", told("CUBLASLT", "13.1.0")},
                                                {"cudnn", told("CUDNN", "9.19.0")}};
    const scout_dispatch_device device = {.name = told("DEVICE", "NVIDIA H200"),
                                          .capability = told("CAPABILITY", "9.0"),
                                          .driver = told("DRIVER", "580.159.04"),
                                          .libraries = libraries,
                                          .library_count = 2};
    if (argc < 2) {
        fprintf(stderr, "usage: lookup dispatch.json M...\n");
        return 2;
    }
    scout_dispatch *table;
    scout_dispatch_note note;
    const char *signers = told("SIGNERS", NULL); /* public keys: a table that none of them has signed is not used */
    const scout_dispatch_status status = signers ? scout_dispatch_open_signed(&table, argv[1], signers, &device, &note)
                                                 : scout_dispatch_open(&table, argv[1], &device, &note);
    if (status != SCOUT_DISPATCH_OK) fprintf(stderr, "lookup: %s\n", note.text);
    if (!table) return 3; /* an engine goes on with the defaults */

    /* Once: the operation as this layer has it. Only the number of rows changes from call to call. */
    const int64_t shape[] = {0, 4096, 4096};
    const scout_dispatch_op op = {.kind = "gemm",
                                  .shape = shape,
                                  .rank = 3,
                                  .layout = "nn",
                                  .type = "fp16",
                                  .weight_type = "fp16",
                                  .weight_side = "b"};
    scout_dispatch_key key;
    if (!scout_dispatch_key_make(&key, &op)) return 1;
    const int rows = scout_dispatch_key_place(&key, "shape", 0);

    /* Once a step: a view, which keeps its table while another one may be loaded. */
    scout_dispatch_view view = scout_dispatch_begin(table);
    for (int k = 2; k < argc; k++) {
        scout_dispatch_ends between;
        key.numbers[rows] = strtoll(argv[k], NULL, 10);
        const scout_dispatch_entry *e = scout_dispatch_find(&view, &key);
        const int near = !e && scout_dispatch_near(&view, &key, &between);
        show(key.numbers[rows], e, near ? &between : NULL);
    }
    scout_dispatch_end(&view);
    scout_dispatch_close(table);
    return 0;
}
