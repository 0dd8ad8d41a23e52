/* Whole models by libscout_run on a GPU, held against the same on the CPU, on the same random numbers; then captured in
 * a graph and replayed on other inputs.
 *     check_plan scout_cuda.so FOLDER…          folders with an ops.json, and a plan.json where there is one
 * Other libraries are looked for in CEILING_SCOUT_LIBRARY_PATH. */
#include "runtime/scout_run.h"
#include "tests/gpu/gpu_check.h"
#include "tests/gpu/gpu_values.h"

#include <cuda_runtime_api.h>
#include <math.h>

enum { MOST = 1024, POISON = 0xff };

static const double tolerance = 1e-3, half_tolerance = 2e-2; /* of what differs, by its norm over the CPU's */

static int compared;       /* outputs */
static char library[4096]; /* the folder of scout_cuda.so, which the library looks for by its name */

typedef struct model {
    scout_run *run;
    scout_run_plan *plan;
    scout_run_plan_info slots[MOST];
    unsigned char *memory[MOST]; /* the host's, or the device's */
    int32_t count;
    bool on_device;
} model;

static void say(void *context, const char *line) {
    (void)context;
    printf("  %s\n", line);
}

static uint64_t size_of(int32_t type) {
    static const uint8_t sizes[] = {[SCOUT_RUN_FP32] = 4, [SCOUT_RUN_INT32] = 4, [SCOUT_RUN_INT64] = 8,
                                    [SCOUT_RUN_FP16] = 2, [SCOUT_RUN_FP64] = 8,  [SCOUT_RUN_BF16] = 2};
    return type > 0 && type <= SCOUT_RUN_BF16 && sizes[type] ? sizes[type] : 1;
}

static uint64_t bytes_of(const scout_run_tensor *t) {
    uint64_t bytes = size_of(t->type);
    for (int32_t d = 0; d < t->rank; d++) bytes *= (uint64_t)t->dims[d];
    return bytes;
}

static bool reserve(model *m, int k) {
    const uint64_t bytes = bytes_of(&m->slots[k].as);
    if (m->on_device) {
        void *memory = NULL;
        if (cudaMalloc(&memory, bytes + 1) == cudaSuccess) m->memory[k] = memory;
        if (memory) cudaMemset(memory, POISON, bytes);
    } else {
        m->memory[k] = aligned_alloc(256, (bytes + 256) / 256 * 256);
        if (m->memory[k]) memset(m->memory[k], POISON, bytes);
    }
    scout_run_error error = {.text = ""};
    scout_run_tensor t = m->slots[k].as;
    t.data = m->memory[k];
    return gpu_expect(t.data && scout_run_plan_bind(m->plan, m->slots[k].name, &t, &error) == SCOUT_RUN_OK, "%s: %s",
                      m->slots[k].name, error.text);
}

/* false: it cannot be run, which is said and no failure. */
static bool open_model(model *m, const char *device, const char *folder) {
    const scout_run_options options = {.size = sizeof options, .device = device, .library_path = library, .say = say};
    scout_run_error error = {.text = ""};
    memset(m, 0, sizeof *m);
    m->on_device = strcmp(device, "cpu") != 0;
    if (!gpu_expect(scout_run_open(&m->run, &options, &error) == SCOUT_RUN_OK, "%s: %s", device, error.text))
        return false;
    if (scout_run_plan_open(m->run, folder, &m->plan, &error) != SCOUT_RUN_OK) {
        printf("  %s: refused on %s: %s\n", folder, device, error.text);
        return false;
    }
    m->count = scout_run_plan_count(m->plan);
    bool good = gpu_expect(m->count <= MOST, "%s: %d tensors", folder, m->count);
    for (int k = 0; k < m->count && good; k++) {
        m->slots[k].size = sizeof m->slots[k];
        good = scout_run_plan_tensor(m->plan, k, &m->slots[k], &error) == SCOUT_RUN_OK && reserve(m, k);
    }
    return good;
}

static void close_model(model *m) {
    scout_run_plan_close(m->plan);
    for (int k = 0; k < m->count && k < MOST; k++)
        if (m->on_device)
            cudaFree(m->memory[k]);
        else
            free(m->memory[k]);
    if (m->run) scout_run_close(m->run);
}

/* ---- numbers ---- */

static bool is_float(int32_t type) {
    return type == SCOUT_RUN_FP32 || type == SCOUT_RUN_FP16 || type == SCOUT_RUN_BF16;
}

/* Weights so that no layer makes its numbers larger; vectors near 1, as scales and variances are. */
static double number(uint64_t *state, const scout_run_plan_info *of) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double u = (double)(*state >> 40) * 0x1p-23 - 1;
    if (of->use == SCOUT_RUN_PLAN_INPUT) return u;
    if (of->as.rank < 2) return 1 + 0.1 * u;
    uint64_t all = 1;
    for (int32_t d = 0; d < of->as.rank; d++) all *= (uint64_t)of->as.dims[d];
    return u * sqrt(3.0 * (double)of->as.dims[0] / (double)all);
}

/* Whole numbers choose rows, or, of masks, hide nothing. */
static void fill(const scout_run_plan_info *of, unsigned char *to, uint64_t seed) {
    const uint64_t bytes = bytes_of(&of->as), each = size_of(of->as.type);
    uint64_t state = seed;
    memset(to, 0, bytes);
    for (uint64_t k = 0; is_float(of->as.type) && k < bytes / each; k++)
        put_value(to, (uint32_t)of->as.type, (int64_t)k, number(&state, of));
    const bool mask = !is_float(of->as.type) && (of->as.type == SCOUT_RUN_BOOL || strstr(of->name, "mask"));
    for (uint64_t at = 0; mask && at < bytes; at += each) to[at] = 1;
}

/* Those of one use, the same for both; an output is poisoned. */
static void bring(const model *device, const model *host, bool inputs_alone, uint64_t seed) {
    for (int k = 0; k < host->count; k++) {
        const scout_run_plan_info *of = &host->slots[k];
        const uint64_t bytes = bytes_of(&of->as);
        if (of->use == SCOUT_RUN_PLAN_OUTPUT) {
            memset(host->memory[k], POISON, bytes);
            cudaMemset(device->memory[k], POISON, bytes);
        } else if (!inputs_alone || of->use == SCOUT_RUN_PLAN_INPUT) {
            fill(of, host->memory[k], seed + (uint64_t)k);
            cudaMemcpy(device->memory[k], host->memory[k], bytes, cudaMemcpyHostToDevice);
        }
    }
    cudaDeviceSynchronize();
}

static void compare(const model *device, const model *host, const char *folder, const char *how) {
    for (int k = 0; k < host->count; k++) {
        const scout_run_plan_info *of = &host->slots[k];
        const uint64_t bytes = bytes_of(&of->as);
        if (of->use != SCOUT_RUN_PLAN_OUTPUT || !is_float(of->as.type)) continue;
        unsigned char *got = malloc(bytes);
        const bool full = of->as.type == SCOUT_RUN_FP32;
        double off = 0, all = 0;
        if (!got || cudaMemcpy(got, device->memory[k], bytes, cudaMemcpyDeviceToHost) != cudaSuccess) abort();
        for (uint64_t n = 0; n < bytes / size_of(of->as.type); n++) {
            const double want = value_at(host->memory[k], (uint32_t)of->as.type, (int64_t)n),
                         is = value_at(got, (uint32_t)of->as.type, (int64_t)n);
            off += (is - want) * (is - want), all += want * want;
        }
        const double error = sqrt(off / all);
        compared++;
        gpu_expect(all > 0 && error <= (full ? tolerance : half_tolerance), "%s, %s, %s: %.3g off", folder, of->name,
                   how, error);
        printf("  %s, %s, %s: %.3g of the norm off\n", folder, of->name, how, error);
        free(got);
    }
}

/* ---- a model ---- */

static bool launch(const model *m, void *stream) {
    scout_run_error error = {.text = ""};
    const bool good = scout_run_plan_launch(m->plan, stream, &error) == SCOUT_RUN_OK;
    return gpu_expect(good, "a launch: %s", error.text);
}

static void in_a_graph(const model *device, const model *host, const char *folder, cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    bool good = gpu_expect(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess, "capture");
    good = good && launch(device, stream);
    good = gpu_expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "%s: it is not captured", folder) && good;
    good = good && gpu_expect(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess, "%s: no graph", folder);
    bring(device, host, true, 7777);
    if (good && gpu_expect(cudaGraphLaunch(ready, stream) == cudaSuccess, "%s: a graph's launch", folder) &&
        gpu_expect(cudaStreamSynchronize(stream) == cudaSuccess, "%s: a graph's end", folder) && launch(host, NULL))
        compare(device, host, folder, "in a graph");
    if (ready) cudaGraphExecDestroy(ready);
    if (graph) cudaGraphDestroy(graph);
}

static void check(const char *folder) {
    cudaStream_t stream = NULL;
    static model host, device;
    memset(&device, 0, sizeof device);
    const bool there = open_model(&host, "cpu", folder);
    const int before = compared;
    if (there && open_model(&device, "cuda", folder) && gpu_expect(device.count == host.count, "as many tensors") &&
        gpu_expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a stream")) {
        bring(&device, &host, false, 1);
        if (launch(&host, NULL) && launch(&device, stream) &&
            gpu_expect(cudaStreamSynchronize(stream) == cudaSuccess, "%s: its end", folder)) {
            compare(&device, &host, folder, "launched");
            in_a_graph(&device, &host, folder, stream);
        }
        cudaStreamDestroy(stream);
        gpu_expect(compared > before, "%s: nothing was compared", folder);
    }
    close_model(&device);
    close_model(&host);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was checked before a crash is told */
    gpu_begin(argc, argv, true);
    (void)gpu_why; /* what other checks call the device itself for */
    const char *const slash = strrchr(argv[1], '/');
    snprintf(library, sizeof library, "%.*s", slash ? (int)(slash - argv[1]) : 1, slash ? argv[1] : ".");
    for (int n = 2; n < argc; n++) check(argv[n]);
    gpu_expect(compared > 0, "no model ran");
    return gpu_end();
}
