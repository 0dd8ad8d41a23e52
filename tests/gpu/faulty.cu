// Candidates for the CUDA device that fail, each in its own way: one hangs, one crashes, one writes out of bounds and so
// poisons its context, one returns wrong numbers, one takes all memory. For tests/gpu/run.sh: each must get its status,
// and no other row may change. CEILING_SCOUT_FAULTS names those that are wanted ("hang,wrong"); all where it is not set.
#include "scout/op/gemm.h"
#include "scout/plugin.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdlib.h>
#include <string.h>

enum fault { HANG, CRASH, BOUNDS, WRONG, HOG, FAULTS };
static const char *const fault_names[FAULTS] = {"faulty_hang", "faulty_crash", "faulty_bounds", "faulty_wrong",
                                                "faulty_hog"};

struct scout_plan {
    gemm_problem problem;
    int fault;
};

static __global__ void multiply(const __half *a, const __half *b, __half *c, int m, int n, int k, int wrong) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (col >= n || row >= m) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += __half2float(a[(size_t)row * k + i]) * __half2float(b[(size_t)i * n + col]);
    // one element of all
    if (wrong && row == m / 2 && col == n / 3) sum += 8 * sqrtf((float)k);
    c[(size_t)row * n + col] = __float2half(sum);
}

// Ends by itself after ten minutes: longer than any watchdog waits, and no GPU is lost for good if nothing ends it.
static __global__ void spin() {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < 600000000000ull);
}

static __global__ void write_far(char *from) { from[(1ull << 44) + threadIdx.x] = 1; }

static void take_all_memory(void) {
    for (size_t piece = (size_t)1 << 32; piece >= 1 << 16; piece /= 2) {
        void *memory = NULL; // kept: this is what is wrong with it
        while (cudaMalloc(&memory, piece) == cudaSuccess) memory = NULL;
        (void)cudaGetLastError();
    }
}

static scout_answer fault_supports(const scout_op *op, scout_device *, scout_why *why) {
    if (op->kind != SCOUT_GEMM || op->input != SCOUT_FP16 || op->output != SCOUT_FP16 || !op->layout ||
        strcmp(op->layout, "nn") != 0 || op->tensor_count != 3)
        return scout_say(why, SCOUT_NO, "type", "plain fp16 products only");
    return SCOUT_OK;
}

static scout_answer fault_prepare(int fault, const scout_op *op, scout_plan **plan, scout_plan_needs *needs,
                                  scout_why *why) {
    scout_plan *p = (scout_plan *)calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory on the host");
    p->problem = gemm_problem_of(op);
    p->fault = fault;
    needs->workspace_bytes = 0;
    if (fault == HOG) {
        take_all_memory();
        needs->workspace_bytes = 32 << 20; // which is no longer to be had
    }
    *plan = p;
    return SCOUT_OK;
}

static scout_answer fault_launch(scout_plan *p, const scout_args *args, scout_why *why) {
    const gemm_problem *g = &p->problem;
    cudaStream_t stream = (cudaStream_t)args->stream;
    dim3 grid((unsigned)((g->n + 127) / 128), (unsigned)g->m);
    if (p->fault == CRASH) abort();
    if (p->fault == HANG) spin<<<1, 1, 0, stream>>>();
    if (p->fault == BOUNDS) write_far<<<1, 32, 0, stream>>>((char *)args->tensors[GEMM_C]);
    multiply<<<grid, 128, 0, stream>>>((const __half *)args->tensors[GEMM_A], (const __half *)args->tensors[GEMM_B],
                                       (__half *)args->tensors[GEMM_C], (int)g->m, (int)g->n, (int)g->k,
                                       p->fault == WRONG);
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "%s", cudaGetErrorString(error));
}

static int fault_describe(const scout_plan *, char *json, size_t room) { return snprintf(json, room, "{}"); }
static void fault_destroy(scout_plan *p) { free(p); }

template <int F>
static scout_answer prepare_of(const scout_op *op, scout_device *, const int64_t *, scout_plan **plan,
                               scout_plan_needs *needs, scout_why *why) {
    return fault_prepare(F, op, plan, needs, why);
}

template <int F> static scout_candidate candidate_of() {
    scout_candidate c;
    memset(&c, 0, sizeof c);
    c.size = sizeof c;
    c.kind = SCOUT_GEMM;
    c.flags = SCOUT_OWN;
    c.priority = 60;
    c.name = fault_names[F];
    c.about = "fails on purpose";
    static const char *const precisions[] = {"fp16", NULL};
    c.precisions = precisions;
    c.approach = "CUSTOM_KERNEL";
    c.supports = fault_supports;
    c.prepare = prepare_of<F>;
    c.launch = fault_launch;
    c.describe = fault_describe;
    c.destroy = fault_destroy;
    return c;
}

extern "C" __attribute__((visibility("default"))) const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static scout_candidate all[FAULTS];
    static const scout_candidate *wanted[FAULTS];
    static scout_plugin plugin;
    if (abi != SCOUT_ABI) return NULL;
    all[HANG] = candidate_of<HANG>();
    all[CRASH] = candidate_of<CRASH>();
    all[BOUNDS] = candidate_of<BOUNDS>();
    all[WRONG] = candidate_of<WRONG>();
    all[HOG] = candidate_of<HOG>();
    const char *names = getenv("CEILING_SCOUT_FAULTS");
    memset(&plugin, 0, sizeof plugin);
    for (int k = 0; k < FAULTS; k++)
        if (!names || strstr(names, fault_names[k] + strlen("faulty_"))) wanted[plugin.candidate_count++] = &all[k];
    plugin.size = sizeof plugin;
    plugin.abi = SCOUT_ABI;
    plugin.name = "faulty";
    plugin.version = "1";
    plugin.for_device = "cuda";
    plugin.candidates = wanted;
    return &plugin;
}
