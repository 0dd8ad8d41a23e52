/* How many kernels a launch is made of: what the device counts in a graph, held against the records that CUPTI makes
 * while the graph runs. CUPTI is opened at run time, where the toolkit that this was built with has it. */
#include "tests/gpu/gpu_check.h"

#if __has_include(<cupti.h>)
#include <cupti.h>
enum { HAS_CUPTI = 1 };
#else
enum { HAS_CUPTI = 0 };
#endif

/* ---- records ---- */

#if __has_include(<cupti.h>)
enum { BUFFER = 1 << 20, ALIGNMENT = 8 };
static long kernels, copies;

static struct {
    CUptiResult (*enable)(CUpti_ActivityKind kind);
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed);
    CUptiResult (*flush)(uint32_t flag);
    CUptiResult (*next)(uint8_t *buffer, size_t valid, CUpti_Activity **record);
} cupti;

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

/* The device looks at its own launches and its clock between the runs. */
static bool is_counted(const kernel_record *kernel) {
    static const char *const beside[] = {"stream_empty", "stream_delay", "stream_stamp"};
    for (size_t k = 0; k < sizeof beside / sizeof beside[0]; k++)
        if (kernel->name && strstr(kernel->name, beside[k])) return false;
    return true;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid > 0 && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            kernels += is_counted((const kernel_record *)(const void *)record);
        copies += record->kind == CUPTI_ACTIVITY_KIND_MEMCPY || record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
    }
    free(buffer);
}

static bool find(void *library, const char *name, void *to) {
    void *const symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool open_records(void) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                        "/usr/local/cuda/lib64/libcupti.so",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMSET};
    void *library = NULL;
    for (size_t k = 0; k < sizeof names / sizeof names[0] && !library; k++) library = dlopen(names[k], RTLD_NOW);
    if (!library || !find(library, "cuptiActivityEnable", &cupti.enable) ||
        !find(library, "cuptiActivityRegisterCallbacks", &cupti.callbacks) ||
        !find(library, "cuptiActivityFlushAll", &cupti.flush) ||
        !find(library, "cuptiActivityGetNextRecord", &cupti.next) ||
        cupti.callbacks(requested, completed) != CUPTI_SUCCESS)
        return false;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (cupti.enable(kinds[k]) != CUPTI_SUCCESS) return false;
    return true;
}

/* So many runs of it. What is copied beside them is the same for any number. */
static bool recorded(scout_sequence *sequence, uint32_t runs, long *its_kernels, long *its_copies) {
    double seconds[4];
    if (cupti.flush(1) != CUPTI_SUCCESS) return false;
    const long before = kernels, copies_before = copies;
    if (gpu_api->run(gpu, sequence, runs, seconds, &gpu_why) != SCOUT_OK || cupti.flush(1) != CUPTI_SUCCESS)
        return false;
    *its_kernels = kernels - before;
    *its_copies = copies - copies_before;
    return true;
}
#else
static bool open_records(void) { return false; }
static bool recorded(scout_sequence *sequence, uint32_t runs, long *its_kernels, long *its_copies) {
    (void)sequence, (void)runs, (void)its_kernels, (void)its_copies;
    return false;
}
#endif

/* ---- what is counted ---- */

static void compare(const char *subject, scout_sequence *sequence, bool records) {
    scout_composition counted = {.size = sizeof counted};
    long one[2] = {0, 0}, three[2] = {0, 0};
    GPU_OK(gpu_api->made_of(gpu, sequence, &counted, &gpu_why));
    if (!gpu_expect(counted.kernels + counted.copies > 0, "%s: nothing is counted", subject) || !records) return;
    if (!gpu_expect(recorded(sequence, 1, &one[0], &one[1]) && recorded(sequence, 3, &three[0], &three[1]),
                    "%s: no records", subject))
        return;
    const long kernels_each = (three[0] - one[0]) / 2, copies_each = (three[1] - one[1]) / 2;
    printf("  %-60s %u kernels, %u copies; recorded %ld, %ld\n", subject, counted.kernels, counted.copies, kernels_each,
           copies_each);
    gpu_expect(kernels_each == (long)counted.kernels && copies_each == (long)counted.copies,
               "%s: %u kernels and %u copies are counted, %ld and %ld recorded", subject, counted.kernels,
               counted.copies, kernels_each, copies_each);
}

/* The first variant of a candidate that takes the product and packs nothing. */
static void check_candidate(const scout_candidate *c, const gpu_operation *o, const char *text, void **tensors,
                            void *workspace, bool records) {
    scout_plan_needs needs = {.size = sizeof needs};
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    scout_sequence *sequence = NULL;
    gpu_launch l = {.candidate = c, .args = {.size = sizeof l.args, .tensors = tensors, .workspace = workspace}};
    char subject[160];
    scout_why why = {"", ""};
    scout_domain *const domain = calloc(1, sizeof *domain);
    if (!domain || c->kind != SCOUT_GEMM || c->supports(&o->op, gpu, &why) != SCOUT_OK ||
        (c->domain && c->domain(&o->op, gpu, 0, domain, &why) != SCOUT_OK)) {
        free(domain);
        return;
    }
    for (uint32_t k = 0; k < domain->count; k++) values[k] = domain->parameters[k].values[0];
    free(domain);
    if (scout_prepare(c, &o->op, gpu, values, &l.plan, &needs, &why) != SCOUT_OK) return;
    snprintf(subject, sizeof subject, "%s, %s", c->name, text);
    if (needs.packs == 0 && gpu_api->record(gpu, 1, 1, gpu_enqueue, &l, &sequence, &why) == SCOUT_OK) {
        double seconds = 0;
        GPU_OK(gpu_api->run(gpu, sequence, 1, &seconds, &gpu_why)); /* what is loaded at first is not counted */
        compare(subject, sequence, records);
        gpu_api->drop(gpu, sequence);
    }
    scout_destroy(c, l.plan);
}

int main(int argc, char **argv) {
    static const gpu_product products[] = {
        {256, 512, 384, 1, "nn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, NULL, true, false, NULL, false},
        {256, 512, 384, 1, "nn", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, "n", true, false, "gelu", false},
        {16, 4096, 4096, 1, "nt", SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, "n", true, false, "silu", false},
        {512, 512, 8192, 1, "nn", SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 0, NULL, true, false, NULL, false}};
    const bool records = open_records(); /* before there is a context */
    gpu_begin(argc, argv, true);
    if (!records) printf("CUPTI %s: counts are not compared\n", HAS_CUPTI ? "cannot be opened" : "was not there");
    if (!gpu_expect(SCOUT_HAS(gpu_api, made_of) && gpu_api->made_of, "it does not count")) return gpu_end();
    for (size_t p = 0; p < sizeof products / sizeof products[0]; p++) {
        gpu_operation o;
        void *tensors[SCOUT_MAX_TENSORS], *workspace = NULL;
        char text[96];
        gpu_operation_of(&products[p], &o);
        gpu_product_text(&products[p], text, sizeof text);
        GPU_OK(gpu_api->alloc(gpu, o.op.workspace_limit, &workspace, &gpu_why));
        if (!gpu_tensors(&o, tensors, 17)) break;
        for (uint32_t k = 0; k < gpu_api->candidate_count; k++)
            check_candidate(gpu_api->candidates[k], &o, text, tensors, workspace, records);
        gpu_release(tensors, o.op.tensor_count);
        gpu_api->release(gpu, workspace);
    }
    gpu_api->close(gpu);
    return gpu_end();
}
