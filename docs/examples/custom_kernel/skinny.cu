// The same for an NVIDIA GPU: C[M,N] = A[M,K] * B[K,N] in fp16 with sums in fp32, for up to 4 rows of A. A thread reads 8
// neighbouring columns at once, the threads of a block that share them take turns going down K, and what they have is
// added up through shared memory. How many columns a block has, is a parameter: few make many blocks, many whole lines.
#include "scout/op/gemm.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

enum { MOST_ROWS = 4, THREADS = 256, EACH = 8 };

struct scout_plan {
    gemm_problem problem;
    int64_t columns; // of a block
};

// Launched with THREADS threads; COLUMNS is a multiple of EACH. n is a multiple of EACH too: no thread stands half outside.
template <int COLUMNS>
static __global__ void multiply(const __half *a, const __half *b, __half *c, int m, int64_t n, int64_t k, int64_t lda,
                                int64_t ldb, int64_t ldc) {
    constexpr int ACROSS = COLUMNS / EACH, DOWN = THREADS / ACROSS;
    __shared__ float parts[DOWN][COLUMNS];
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
    const int64_t first = (int64_t)blockIdx.x * COLUMNS, column = first + tx * EACH;
    float sums[MOST_ROWS][EACH] = {};
    for (int64_t row = ty; row < k && column < n; row += DOWN) {
        const uint4 eight = *reinterpret_cast<const uint4 *>(b + row * ldb + column);
        const __half2 *pairs = reinterpret_cast<const __half2 *>(&eight);
#pragma unroll
        for (int i = 0; i < MOST_ROWS; i++) {
            if (i >= m) break;
            const float x = __half2float(a[i * lda + row]);
#pragma unroll
            for (int j = 0; j < EACH / 2; j++) {
                const float2 y = __half22float2(pairs[j]);
                sums[i][2 * j] += x * y.x;
                sums[i][2 * j + 1] += x * y.y;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < MOST_ROWS; i++) {
        if (i >= m) break; // the same for all threads of the block
        for (int j = 0; j < EACH; j++) parts[ty][tx * EACH + j] = sums[i][j];
        __syncthreads();
        if (threadIdx.x < COLUMNS && first + threadIdx.x < n) {
            float sum = 0;
            for (int d = 0; d < DOWN; d++) sum += parts[d][threadIdx.x];
            c[i * ldc + first + threadIdx.x] = __float2half(sum);
        }
        __syncthreads();
    }
}

static scout_answer skinny_supports(const scout_op *op, scout_device *, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    if (p.type_a != SCOUT_FP16 || p.type_b != SCOUT_FP16 || p.type_c != SCOUT_FP16)
        return scout_say(why, SCOUT_NO, "type", "computes in fp16 only");
    if (p.m > MOST_ROWS || p.batch != 1) return scout_say(why, SCOUT_NO, "shape", "for one product of up to 4 rows");
    if (p.n % EACH || p.ldb % EACH) return scout_say(why, SCOUT_NO, "alignment", "for N of a multiple of 8");
    if (p.trans_a || p.trans_b) return scout_say(why, SCOUT_NO, "layout", "for matrices that lie row by row");
    if (op->tensor_count != 3 || gemm_has_epilogue(&p) || p.alpha != 1)
        return scout_say(why, SCOUT_NO, "epilogue", "a plain product, without bias or activation");
    return SCOUT_OK;
}

static scout_answer skinny_domain(const scout_op *, scout_device *, int, scout_domain *out, scout_why *) {
    scout_parameter *columns = &out->parameters[0];
    out->count = 1;
    snprintf(columns->name, sizeof columns->name, "columns");
    columns->count = 3;
    for (int k = 0; k < 3; k++) columns->values[k] = 32 << k;
    columns->labels = NULL;
    return SCOUT_OK;
}

static scout_answer skinny_prepare(const scout_op *op, scout_device *, const int64_t *values, scout_plan **plan,
                                   scout_plan_needs *needs, scout_why *why) {
    scout_plan *p = (scout_plan *)malloc(sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    p->problem = gemm_problem_of(op);
    p->columns = values[0];
    needs->packs = 0; // B is read as it lies
    needs->pack_bytes = needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

template <int COLUMNS> static void start(const gemm_problem *p, const scout_args *args) {
    const unsigned blocks = (unsigned)((p->n + COLUMNS - 1) / COLUMNS);
    multiply<COLUMNS><<<blocks, THREADS, 0, (cudaStream_t)args->stream>>>(
        (const __half *)args->tensors[GEMM_A], (const __half *)args->tensors[GEMM_B], (__half *)args->tensors[GEMM_C],
        (int)p->m, p->n, p->k, p->lda, p->ldb, p->ldc);
}

// Only enqueues, on the stream that is given: so it can be captured in a graph.
static scout_answer skinny_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    if (plan->columns == 32) start<32>(&plan->problem, args);
    if (plan->columns == 64) start<64>(&plan->problem, args);
    if (plan->columns == 128) start<128>(&plan->problem, args);
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "starting the kernel: %s", cudaGetErrorString(error));
}

static int skinny_describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"columns\": %lld}", (long long)plan->columns);
}

static void skinny_destroy(scout_plan *plan) { free(plan); }

// C++17 has no names in initialisers, so members are set one by one.
extern "C" __attribute__((visibility("default"))) const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static const char *const precisions[] = {"fp16", NULL};
    static scout_candidate skinny;
    static const scout_candidate *const list[] = {&skinny};
    static scout_plugin plugin;
    if (abi != SCOUT_ABI) return NULL; // built against another version of the interface
    memset(&skinny, 0, sizeof skinny);
    skinny.size = sizeof skinny;
    skinny.kind = SCOUT_GEMM;
    skinny.flags = SCOUT_OWN;
    skinny.priority = 60;
    skinny.name = "example_skinny";
    skinny.about = "products of up to 4 rows, an example of a custom kernel";
    skinny.approach = "CUSTOM_KERNEL";
    skinny.precisions = precisions;
    skinny.supports = skinny_supports;
    skinny.domain = skinny_domain;
    skinny.prepare = skinny_prepare;
    skinny.launch = skinny_launch;
    skinny.describe = skinny_describe;
    skinny.destroy = skinny_destroy;
    memset(&plugin, 0, sizeof plugin);
    plugin.size = sizeof plugin;
    plugin.abi = SCOUT_ABI;
    plugin.name = "skinny";
    plugin.version = "1";
    plugin.for_device = "cuda";
    plugin.candidate_count = 1;
    plugin.candidates = list;
    return &plugin;
}
