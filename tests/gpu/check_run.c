/* libscout_run on a GPU: every entry of dispatch tables launched as the table says, held against the library's default,
 * captured in a graph and replayed; then threads that launch on streams of their own.
 *     check_run scout_cuda.so [TABLE.json…]          LAUNCHES: of each stream (2000)
 * Without a table the operations are some of its own, by their defaults. Other libraries are looked for in
 * CEILING_SCOUT_LIBRARY_PATH. */
#include "runtime/scout_run.h"
#include "tests/gpu/gpu_check.h"

#include <cuda_runtime_api.h>
#include <jansson.h>
#include <pthread.h>

enum { THREADS = 8, STREAMS = 4, MOST_KEYS = 256, MOST_SHARED = 12, POISON = 0xff };

static const uint64_t most_threaded_bytes = 8 << 20; /* of all tensors of an operation that threads launch */
static const double tolerance = 0.01;                /* of what differs, by its norm over the default's */

static const char *const own_keys[] = {
    "gemm;shape=64,256,512;layout=nn;type=fp16;weight=fp16;weight_side=b",
    "norm;what=layer;shape=256,768;type=fp16;weight=fp16;bias=1",
    "softmax;shape=1024,128;type=fp16",
    "attention;shape=1,8,128,64;layout=bhsd;type=fp16;kv_heads=8;kv_len=128",
    "elementwise;what=add;shape=8,128,768;type=fp16;inputs=tensor,vector",
};

/* ---- an operation with memory for it ---- */

typedef struct task {
    const scout_run_op *op;
    scout_run_tensor_info tensors[SCOUT_MAX_TENSORS];
    void *memory[SCOUT_MAX_TENSORS]; /* inputs; outputs are another's */
    int32_t count;
    scout_run_weight *packed;
    uint64_t bytes;
} task;

typedef struct results { /* outputs of one launch */
    void *memory[SCOUT_MAX_TENSORS];
} results;

static bool is_float(int32_t type) {
    return type == SCOUT_RUN_FP32 || type == SCOUT_RUN_FP16 || type == SCOUT_RUN_BF16;
}

static bool reserve(const task *t, results *out) {
    *out = (results){.memory = {NULL}};
    for (int32_t k = 0; k < t->count; k++) {
        if (!t->tensors[k].output) {
            out->memory[k] = t->memory[k];
        } else if (cudaMalloc(&out->memory[k], t->tensors[k].bytes + 1) != cudaSuccess) {
            return gpu_expect(false, "no memory for an output of %llu bytes", (unsigned long long)t->tensors[k].bytes);
        }
    }
    return true;
}

static void release(const task *t, results *of) {
    for (int32_t k = 0; k < t->count; k++)
        if (t->tensors[k].output) cudaFree(of->memory[k]);
}

static void poison_by(const task *t, const results *of, int byte) {
    for (int32_t k = 0; k < t->count; k++)
        if (t->tensors[k].output) cudaMemset(of->memory[k], byte, t->tensors[k].bytes);
    cudaDeviceSynchronize();
}

static void poison(const task *t, const results *of) { poison_by(t, of, POISON); }

/* Inputs are random numbers, or zeros where they are whole (rows, positions, masks that hide nothing). */
static bool make(task *t) {
    for (int32_t k = 0; k < t->count; k++) {
        scout_run_tensor_info *of = &t->tensors[k];
        scout_run_error error = {.text = ""};
        *of = (scout_run_tensor_info){.size = sizeof *of};
        if (!gpu_expect(scout_run_op_tensor(t->op, k, of, &error) == SCOUT_RUN_OK, "tensor %d: %s", (int)k, error.text))
            return false;
        t->bytes += of->bytes;
        if (of->output) continue;
        if (cudaMalloc(&t->memory[k], of->bytes + 1) != cudaSuccess)
            return gpu_expect(false, "no memory for a tensor of %llu bytes", (unsigned long long)of->bytes);
        cudaMemset(t->memory[k], 0, of->bytes);
        cudaDeviceSynchronize();
        if (is_float(of->as.type))
            GPU_OK(gpu_api->fill(gpu, t->memory[k], of->bytes, (uint32_t)of->as.type, SCOUT_FILL_NORMAL,
                                 11 + (uint64_t)k, &gpu_why));
    }
    return true;
}

static void unmake(task *t) {
    scout_run_weight_free(t->packed);
    for (int32_t k = 0; k < t->count; k++) cudaFree(t->memory[k]);
}

static int32_t launch(const task *t, const results *out, void *stream, scout_run_error *error) {
    return scout_run_launch(t->op, out->memory, t->count, t->packed, stream, error);
}

/* ---- holding results against each other ---- */

static double half(const unsigned char *at) {
    const unsigned bits = at[0] | (unsigned)at[1] << 8, e = bits >> 10 & 31, f = bits & 1023;
    const double x = e == 31 ? (f ? NAN : INFINITY) : e ? ldexp(1024 + f, (int)e - 25) : ldexp(f, -24);
    return bits >> 15 ? -x : x;
}

static double number_at(const unsigned char *data, int32_t type, uint64_t k) {
    const size_t at = (size_t)k;
    float x = 0;
    if (type == SCOUT_RUN_FP16) return half(data + 2 * at);
    if (type == SCOUT_RUN_BF16)
        memcpy((char *)&x + 2, data + 2 * at, 2);
    else if (type == SCOUT_RUN_FP32)
        memcpy(&x, data + 4 * at, 4);
    else
        return data[at];
    return (double)x;
}

static bool is_poison(const unsigned char *data, uint64_t size, uint64_t k) {
    for (uint64_t n = 0; n < size; n++)
        if (data[k * size + n] != POISON) return false;
    return true;
}

/* Roots of what is below 0 are alike. The norm of what differs over the norm of `want`; not a number where one of them
 * is none, or was not written. */
static double difference(const task *t, const results *got, const results *want) {
    double off = 0, all = 0;
    for (int32_t k = 0; k < t->count; k++) {
        const scout_run_tensor_info *of = &t->tensors[k];
        const uint64_t size = of->as.type == SCOUT_RUN_FP32 ? 4 : is_float(of->as.type) ? 2 : 1;
        if (!of->output) continue;
        unsigned char *const x = malloc(of->bytes + 1), *const y = malloc(of->bytes + 1);
        if (x && y && cudaMemcpy(x, got->memory[k], of->bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
            cudaMemcpy(y, want->memory[k], of->bytes, cudaMemcpyDeviceToHost) == cudaSuccess)
            for (uint64_t n = 0; n < of->bytes / size; n++) {
                const double a = number_at(x, of->as.type, n), b = number_at(y, of->as.type, n);
                const bool alike = (isinf(a) && a == b) || (isnan(a) && isnan(b) && !is_poison(x, size, n));
                off += alike ? 0 : (a - b) * (a - b);
                all += alike ? 0 : b * b;
            }
        else
            off = NAN;
        free(x), free(y);
    }
    return all > 0 ? sqrt(off / all) : sqrt(off);
}

/* ---- every entry ---- */

static void replayed(const task *t, const results *out, const results *want, cudaStream_t stream, const char *key) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    scout_run_error error = {.text = ""};
    poison(t, out);
    bool good = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    const bool launched = good && launch(t, out, stream, &error) == SCOUT_RUN_OK;
    good = good && cudaStreamEndCapture(stream, &graph) == cudaSuccess && launched;
    good = good && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess;
    good = good && cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess;
    (void)cudaGetLastError();
    gpu_expect(good, "captured: %.150s: %s", key, error.text);
    const double off = good ? difference(t, out, want) : NAN;
    gpu_expect(!good || off <= tolerance, "captured: %.150s: %.3g off", key, off);
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
}

static void entry(scout_run *run, scout_run *plain, const char *key, cudaStream_t stream) {
    task t = {NULL}, of_default;
    scout_run_error error = {.text = ""};
    scout_run_op_info info = {.size = sizeof info}, usual = {.size = sizeof usual};
    results got, want;
    if (!gpu_expect(scout_run_find(run, key, &t.op, &error) == SCOUT_RUN_OK, "%.150s: %s", key, error.text)) return;
    scout_run_op_describe(t.op, &info);
    t.count = info.tensor_count;
    if (!make(&t)) {
        unmake(&t);
        return;
    }
    of_default = t;
    of_default.packed = NULL;
    if (!gpu_expect(scout_run_find(plain, key, &of_default.op, &error) == SCOUT_RUN_OK, "default: %.150s: %s", key,
                    error.text)) {
        unmake(&t);
        return;
    }
    scout_run_op_describe(of_default.op, &usual);
    if (info.packs >= 0)
        gpu_expect(scout_pack_weight(t.op, t.memory, t.count, &t.packed, &error) == SCOUT_RUN_OK, "packing: %.150s: %s",
                   key, error.text);
    if (usual.packs >= 0)
        gpu_expect(scout_pack_weight(of_default.op, t.memory, t.count, &of_default.packed, &error) == SCOUT_RUN_OK,
                   "packing: %.150s: %s", key, error.text);
    if (reserve(&t, &got) && reserve(&t, &want)) {
        poison(&t, &got), poison_by(&t, &want, POISON - 1); /* what neither writes differs */
        const int32_t first = launch(&t, &got, stream, &error), second = launch(&of_default, &want, stream, &error);
        if (gpu_expect(first == SCOUT_RUN_OK && second == SCOUT_RUN_OK && cudaStreamSynchronize(stream) == cudaSuccess,
                       "%.150s: %s", key, error.text)) {
            const double off = difference(&t, &got, &want);
            printf("  %-9s %-40.40s %-34.34s off %.2g%s%s\n", info.listed ? "listed" : "default", key,
                   info.implementation, off, info.note[0] ? ": " : "", info.note);
            gpu_expect(off <= tolerance, "%.150s: %.3g off by %s %s", key, off, info.implementation, info.variant);
            replayed(&t, &got, &want, stream, key);
        }
    }
    release(&t, &got), release(&t, &want);
    scout_run_weight_free(of_default.packed);
    unmake(&t);
}

/* ---- threads ---- */

typedef struct shared { /* what all threads launch */
    task tasks[MOST_SHARED];
    results want[MOST_SHARED];
    int count, launches;
} shared;

typedef struct one_thread {
    pthread_t thread;
    const shared *of;
    int number, launched;
    char text[512];
    double worst;
} one_thread;

static void *launches(void *context) {
    one_thread *me = context;
    const shared *of = me->of;
    cudaStream_t streams[STREAMS] = {NULL};
    static results out[THREADS][STREAMS][MOST_SHARED];
    scout_run_error error = {.text = ""};
    if (cudaSetDevice(0) != cudaSuccess) return me;
    for (int s = 0; s < STREAMS; s++) {
        if (cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking) != cudaSuccess) return me;
        for (int k = 0; k < of->count; k++) {
            if (!reserve(&of->tasks[k], &out[me->number][s][k])) return me;
            poison(&of->tasks[k], &out[me->number][s][k]);
        }
    }
    for (int n = 0; n < of->launches; n++)
        for (int s = 0; s < STREAMS; s++) {
            const int k = (n + s + me->number) % of->count;
            if (launch(&of->tasks[k], &out[me->number][s][k], streams[s], &error) == SCOUT_RUN_OK)
                me->launched++;
            else
                memcpy(me->text, error.text, sizeof error.text);
        }
    for (int s = 0; s < STREAMS; s++) {
        cudaStreamSynchronize(streams[s]);
        for (int k = 0; k < of->count; k++) {
            const double off = difference(&of->tasks[k], &out[me->number][s][k], &of->want[k]);
            if (!(off <= me->worst)) me->worst = off;
            release(&of->tasks[k], &out[me->number][s][k]);
        }
        cudaStreamDestroy(streams[s]);
    }
    return NULL;
}

static void threads(scout_run *run, const char *const *keys, int count, int each) {
    static shared of;
    static one_thread all[THREADS];
    cudaStream_t stream = NULL;
    scout_run_error error = {.text = ""};
    of = (shared){.launches = each};
    GPU_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? SCOUT_OK : SCOUT_FAILED);
    for (int k = 0; k < count && of.count < MOST_SHARED; k++) {
        task *t = &of.tasks[of.count];
        scout_run_op_info info = {.size = sizeof info};
        *t = (task){NULL};
        if (scout_run_find(run, keys[k], &t->op, &error) != SCOUT_RUN_OK) continue;
        scout_run_op_describe(t->op, &info);
        t->count = info.tensor_count;
        bool good = make(t) && t->bytes <= most_threaded_bytes;
        if (good && info.packs >= 0)
            good = scout_pack_weight(t->op, t->memory, t->count, &t->packed, &error) == SCOUT_RUN_OK;
        good = good && reserve(t, &of.want[of.count]);
        if (good) {
            poison(t, &of.want[of.count]);
            good = launch(t, &of.want[of.count], stream, &error) == SCOUT_RUN_OK &&
                   cudaStreamSynchronize(stream) == cudaSuccess;
        }
        if (good)
            of.count++;
        else
            unmake(t);
    }
    if (!gpu_expect(of.count > 0, "no operation is small enough for threads")) return;
    for (int n = 0; n < THREADS; n++) {
        all[n] = (one_thread){.of = &of, .number = n};
        pthread_create(&all[n].thread, NULL, launches, &all[n]);
    }
    for (int n = 0; n < THREADS; n++) {
        void *broken = NULL;
        pthread_join(all[n].thread, &broken);
        gpu_expect(!broken && all[n].launched == each * STREAMS && all[n].worst <= tolerance,
                   "thread %d: %d of %d launched, %.3g off: %.300s", n, all[n].launched, each * STREAMS, all[n].worst,
                   all[n].text);
    }
    printf("  %d threads on %d streams each, %d launches a stream of %d operations\n", (int)THREADS, (int)STREAMS, each,
           of.count);
    for (int k = 0; k < of.count; k++) release(&of.tasks[k], &of.want[k]), unmake(&of.tasks[k]);
    cudaStreamDestroy(stream);
}

/* ---- a table ---- */

static void say(void *context, const char *line) {
    (void)context;
    printf("  %s\n", line);
}

static char folder[4096]; /* of scout_cuda.so, which the library looks for by its name */

static scout_run *opened(const char *table) {
    const scout_run_options options = {
        .size = sizeof options, .device = "cuda", .table = table, .library_path = folder, .say = say};
    scout_run_error error = {.text = ""};
    scout_run *run = NULL;
    gpu_expect(scout_run_open(&run, &options, &error) == SCOUT_RUN_OK, "opening: %s", error.text);
    if (run && table) gpu_expect(scout_run_has_table(run), "%s: %s", table, scout_run_table_note(run));
    return run;
}

static void check(const char *table, const char *const *keys, int count) {
    const char *const each = getenv("LAUNCHES");
    cudaStream_t stream = NULL;
    scout_run *run = opened(table), *plain = opened(NULL);
    printf("%s: %d operations\n", table ? table : "no table", count);
    if (run && plain && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {
        for (int k = 0; k < count; k++) entry(run, plain, keys[k], stream);
        threads(run, keys, count, each ? atoi(each) : 2000);
        cudaStreamDestroy(stream);
    }
    scout_run_counts counts = {0};
    if (run) scout_run_count(run, &counts);
    gpu_expect(!table || (counts.listed > 0 && counts.refused == 0 && counts.unlisted == 0),
               "%llu listed, %llu unlisted, %llu refused", (unsigned long long)counts.listed,
               (unsigned long long)counts.unlisted, (unsigned long long)counts.refused);
    if (run) scout_run_close(run);
    if (plain) scout_run_close(plain);
}

int main(int argc, char **argv) {
    gpu_begin(argc, argv, true);
    const char *const slash = strrchr(argv[1], '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - argv[1]) : 1, slash ? argv[1] : ".");
    if (argc < 3) check(NULL, own_keys, (int)(sizeof own_keys / sizeof *own_keys));
    for (int n = 2; n < argc; n++) {
        const char *keys[MOST_KEYS];
        int count = 0;
        json_t *const root = json_load_file(argv[n], 0, NULL), *const list = json_object_get(root, "entries");
        gpu_expect(json_array_size(list) > 0, "%s is no table", argv[n]);
        for (size_t k = 0; k < json_array_size(list) && count < MOST_KEYS; k++)
            keys[count++] = json_string_value(json_object_get(json_array_get(list, k), "key"));
        check(argv[n], keys, count);
        json_decref(root);
    }
    return gpu_end();
}
