/* The CUDA device, function by function: identity without a context, memory, fills, checksums, graphs, runs, telemetry,
 * and last of all a context that is destroyed on purpose. */
#include "tests/gpu/gpu_check.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

enum { BYTES = 1 << 20 };

/* Whether a context is alive on the first device: 1, 0, or -1 where the driver does not say. */
static int context_active(void) {
    int (*state)(int device, unsigned int *flags, int *active) = NULL;
    unsigned int flags = 0;
    int active = 0;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW),
                *symbol = driver ? dlsym(driver, "cuDevicePrimaryCtxGetState") : NULL;
    memcpy(&state, &symbol, sizeof state);
    return state && state(0, &flags, &active) == 0 ? active : -1;
}

static void check_identity(void) {
    scout_identity id = {.size = sizeof id};
    scout_why why = {"", ""};
    const double start = gpu_api->now(NULL);
    GPU_OK(gpu_api->identify(0, &id, &gpu_why));
    printf("%s %s cc %s units %d memory %.1f GiB L2 %.1f MiB limit %.0f W driver %s (%.3f s)\n", id.name, id.uuid,
           id.capability, id.units, (double)id.memory_bytes / 0x1p30, (double)id.cache_bytes / 0x1p20, id.power_limit_w,
           id.driver, gpu_api->now(NULL) - start);
    for (uint32_t k = 0; k < id.library_count; k++)
        printf("  %s %s %s\n", id.libraries[k].name, id.libraries[k].version, id.libraries[k].path);
    printf("  datasheet fp16 %.1f tf32 %.1f fp8 %.1f TFLOP/s, %.2f TB/s\n", gpu_api->datasheet(&id, SCOUT_FP16, 0),
           gpu_api->datasheet(&id, SCOUT_FP32, 1), gpu_api->datasheet(&id, SCOUT_FP8E4M3, 0),
           gpu_api->datasheet(&id, SCOUT_NONE, 0));
    gpu_expect(context_active() == 0, "identify made a context (%d)", context_active());
    gpu_expect(strncmp(id.uuid, "GPU-", 4) == 0 && strlen(id.uuid) == 40, "uuid %s", id.uuid);
    gpu_expect(id.units > 0 && id.cache_bytes > 0 && id.memory_bytes > 0, "an identity with nothing in it");
    gpu_expect(id.library_count > 1, "%u libraries", id.library_count);
    gpu_expect(strcmp(id.libraries[0].name, "cublaslt") == 0 &&
                   strcmp(id.libraries[id.library_count - 1].name, "cudart") == 0,
               "libraries from %s to %s", id.libraries[0].name, id.libraries[id.library_count - 1].name);
    gpu_expect(gpu_api->identify(99, &id, &why) == SCOUT_NO, "a 99th device");
}

static void check_memory(void) {
    uint64_t free_bytes = 0, total = 0;
    void *memory = NULL, *more = NULL;
    scout_why why = {"", ""};
    unsigned char *const here = malloc(BYTES), *const back = malloc(BYTES);
    GPU_OK(gpu_api->memory(gpu, &free_bytes, &total, &gpu_why));
    gpu_expect(gpu_api->alloc(gpu, total * 2, &more, &why) == SCOUT_NO_MEMORY && !more, "twice the memory: %s",
               why.text);
    GPU_OK(gpu_api->alloc(gpu, BYTES, &memory, &gpu_why));
    gpu_expect(((uintptr_t)memory & 511) == 0, "alignment");
    for (int k = 0; k < BYTES; k++) here[k] = (unsigned char)(k * 7 + k / 256);
    GPU_OK(gpu_api->upload(gpu, memory, here, BYTES, &gpu_why));
    GPU_OK(gpu_api->download(gpu, back, memory, BYTES, &gpu_why));
    gpu_expect(memcmp(here, back, BYTES) == 0, "what went up did not come back");
    GPU_OK(gpu_api->fill(gpu, (char *)memory + 3, 1001, SCOUT_NONE, SCOUT_FILL_BYTE, 0x1ff, &gpu_why));
    GPU_OK(gpu_api->download(gpu, back, memory, BYTES, &gpu_why));
    gpu_expect(back[2] == here[2] && back[3] == 0xff && back[1003] == 0xff && back[1004] == here[1004],
               "fill of bytes");
    gpu_api->release(gpu, memory);
    gpu_api->release(gpu, NULL);
    free(here);
    free(back);
}

static double half_at(const unsigned char *data, int at) {
    const unsigned bits = data[2 * at] | (unsigned)data[2 * at + 1] << 8, e = bits >> 10 & 31, f = bits & 1023;
    const double x = e ? ldexp(1024 + f, (int)e - 25) : ldexp(f, -24);
    return bits >> 15 ? -x : x;
}

static double float_at(const unsigned char *data, int at) {
    float x = 0;
    memcpy(&x, data + sizeof x * (size_t)at, sizeof x);
    return x;
}

static double byte_at(const unsigned char *data, int at) { return (signed char)data[at]; }

static double nibble_at(const unsigned char *data, int at) {
    const int x = at & 1 ? data[at / 2] >> 4 : data[at / 2] & 15;
    return x < 8 ? x : x - 16;
}

static void check_fill_type(uint32_t type, uint32_t how, int elements, double (*at)(const unsigned char *, int),
                            double mean, double deviation, double fourth) {
    void *memory = NULL;
    unsigned char *const x = malloc(BYTES), *const y = malloc(BYTES);
    GPU_OK(gpu_api->alloc(gpu, BYTES, &memory, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, memory, BYTES, type, how, 7, &gpu_why));
    GPU_OK(gpu_api->download(gpu, x, memory, BYTES, &gpu_why));
    double sum = 0, square = 0, fours = 0, twin = 0;
    for (int k = 0; k < elements; k++) sum += at(x, k);
    sum /= elements;
    for (int k = 0; k < elements; k++) {
        const double d = at(x, k) - sum;
        square += d * d;
        fours += d * d * d * d;
        if (k) twin += d * (at(x, k - 1) - sum);
    }
    square /= elements, fours /= elements, twin /= elements;
    printf("  type %u how %u: mean %.4f deviation %.4f kurtosis %.3f neighbours %.4f\n", type, how, sum, sqrt(square),
           fours / square / square, twin / square);
    gpu_expect(fabs(sum - mean) < 0.02 * deviation, "mean of type %u: %g", type, sum);
    gpu_expect(fabs(sqrt(square) / deviation - 1) < 0.02, "deviation of type %u: %g", type, sqrt(square));
    gpu_expect(fabs(fours / square / square / fourth - 1) < 0.1, "kurtosis of type %u", type);
    gpu_expect(fabs(twin / square) < 0.01, "neighbours of type %u are related", type);
    memset(y, 0, BYTES); /* the same seed again, at an odd place and length */
    GPU_OK(gpu_api->upload(gpu, memory, y, BYTES, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, (char *)memory + 5, 1003, type, how, 7, &gpu_why));
    GPU_OK(gpu_api->download(gpu, y, memory, BYTES, &gpu_why));
    gpu_expect(memcmp(x, y + 5, 1003) == 0 && y[4] == 0 && y[1008] == 0, "type %u at an odd place", type);
    GPU_OK(gpu_api->fill(gpu, memory, BYTES, type, how, 8, &gpu_why));
    GPU_OK(gpu_api->download(gpu, y, memory, BYTES, &gpu_why));
    int same = 0;
    for (int k = 0; k < BYTES; k++) same += x[k] == y[k];
    gpu_expect(same < BYTES / 2, "seeds 7 and 8 give %d equal bytes of type %u", same, type);
    gpu_api->release(gpu, memory);
    free(x);
    free(y);
}

static void check_fill(void) {
    const double half_normal = sqrt(2 / 3.14159265358979), width = sqrt(1 - half_normal * half_normal);
    check_fill_type(SCOUT_FP32, SCOUT_FILL_NORMAL, BYTES / 4, float_at, 0, 1, 3);
    check_fill_type(SCOUT_FP16, SCOUT_FILL_NORMAL, BYTES / 2, half_at, 0, 1, 3);
    check_fill_type(SCOUT_FP16, SCOUT_FILL_SCALE, BYTES / 2, half_at, (half_normal + 1) / 64, width / 64, 3.87);
    check_fill_type(SCOUT_INT8, SCOUT_FILL_NORMAL, BYTES, byte_at, 0, 32, 3);
    check_fill_type(SCOUT_INT4, SCOUT_FILL_NORMAL, BYTES * 2, nibble_at, -0.5, 4.61, 1.79);
}

static void check_checksum(void) {
    const uint64_t big = (uint64_t)4 << 30;
    uint64_t first = 0, again = 0;
    void *memory = NULL;
    unsigned char byte = 0;
    GPU_OK(gpu_api->alloc(gpu, big, &memory, &gpu_why));
    double start = gpu_api->now(gpu);
    GPU_OK(gpu_api->fill(gpu, memory, big, SCOUT_FP16, SCOUT_FILL_NORMAL, 3, &gpu_why));
    const double filled = gpu_api->now(gpu) - start;
    start = gpu_api->now(gpu);
    GPU_OK(gpu_api->checksum(gpu, memory, big, &first, &gpu_why));
    printf("  4 GiB: fill %.2f TB/s, checksum %.2f TB/s\n", (double)big / filled * 1e-12,
           (double)big / (gpu_api->now(gpu) - start) * 1e-12);
    for (int k = 0; k < 40; k++) {
        const uint64_t length = k < 20 ? 100003 : big, at = (uint64_t)k * 2654435761u % length;
        char *const from = (char *)memory + (k % 3 == 2 && k < 20 ? 1 : 0);
        GPU_OK(gpu_api->checksum(gpu, from, length, &first, &gpu_why));
        GPU_OK(gpu_api->download(gpu, &byte, from + at, 1, &gpu_why));
        byte ^= (unsigned char)(1u << k % 8);
        GPU_OK(gpu_api->upload(gpu, from + at, &byte, 1, &gpu_why));
        GPU_OK(gpu_api->checksum(gpu, from, length, &again, &gpu_why));
        gpu_expect(first != again, "a changed bit at %llu of %llu", (unsigned long long)at, (unsigned long long)length);
    }
    gpu_api->release(gpu, memory);
}

/* --- sequences --- */

typedef struct doing {
    int what; /* 0 nothing, 1 fails at the third, 2 waits for the stream, 3 allocates */
    uint32_t calls;
    void *memory;
} doing;

static scout_answer enqueue_doing(void *context, uint32_t number, void *stream, scout_why *why) {
    doing *const d = context;
    d->calls++;
    if (d->what == 1 && number == 2) return scout_say(why, SCOUT_FAILED, "error", "on purpose");
    if (d->what == 2 || d->what == 4) cudaStreamSynchronize(stream);
    if (d->what == 4) return scout_say(why, SCOUT_FAILED, "error", "on purpose, anywhere");
    if (d->what == 3) cudaMallocAsync(&d->memory, 1 << 20, 0);
    return gpu_api->empty(gpu, stream, why);
}

/* The first interval of a run is one like the others: it holds neither the host's pace nor a start. */
static double check_first(uint32_t launches) {
    enum { REPEATS = 20 };
    doing d = {0, 0, NULL};
    scout_sequence *sequence = NULL;
    double seconds[REPEATS], sum = 0;
    GPU_OK(gpu_api->record(gpu, 1, launches, enqueue_doing, &d, &sequence, &gpu_why));
    for (int run = 0; run < 2; run++) {
        GPU_OK(gpu_api->run(gpu, sequence, REPEATS, seconds, &gpu_why));
        sum = 0;
        for (int k = 1; k < REPEATS; k++) sum += seconds[k] / (REPEATS - 1);
        printf("  graph of %u, run %d: first %.2f us, the others %.2f us\n", launches, run, seconds[0] * 1e6,
               sum * 1e6);
    }
    gpu_expect(seconds[0] < sum * 1.1, "the first interval takes %.3g of the others", seconds[0] / sum);
    gpu_api->drop(gpu, sequence);
    return sum / launches;
}

static void check_sequences(void) {
    scout_why why = {"", ""};
    scout_answer answer = SCOUT_OK;
    doing d = {0, 0, NULL};
    const double in_graph = gpu_time(enqueue_doing, &d, 1, 1000, 20, &why, &answer);
    gpu_expect(answer == SCOUT_OK && d.calls == 1000, "a graph of 1000: %s", why.text);
    const double direct = gpu_time(enqueue_doing, &d, 0, 1000, 20, &why, &answer);
    gpu_expect(answer == SCOUT_OK && d.calls == 21000, "20 runs of 1000 direct launches: %u", d.calls);
    const double few = check_first(50), more = check_first(500), many = check_first(4000);
    gpu_expect(fabs(few / many - 1) < 0.03 && fabs(more / many - 1) < 0.01,
               "a launch takes %.4g ns of 50, %.4g of 500, %.4g of 4000", few * 1e9, more * 1e9, many * 1e9);
    const double single = gpu_time(enqueue_doing, &d, 1, 1, 1000, &why, &answer);
    printf("  empty launch: graph %.3f us, direct %.3f us, a graph each %.3f us\n", in_graph * 1e6, direct * 1e6,
           single * 1e6);
    gpu_expect(in_graph > 0.2e-6 && in_graph < direct * 1.2, "graphs are no faster than direct launches");
    for (int graph = 0; graph < 2; graph++) {
        d = (doing){1, 0, NULL};
        gpu_time(enqueue_doing, &d, graph, 5, 1, &why, &answer);
        gpu_expect(answer == SCOUT_FAILED && strcmp(why.text, "on purpose") == 0, "a launch that fails: %d %s", answer,
                   why.text);
    }
    d = (doing){2, 0, NULL};
    gpu_time(enqueue_doing, &d, 1, 1, 1, &why, &answer);
    gpu_expect(answer == SCOUT_NO && strcmp(why.code, "capture") == 0, "a launch that waits: %d %s", answer, why.text);
    d = (doing){3, 0, NULL};
    gpu_time(enqueue_doing, &d, 1, 1, 1, &why, &answer);
    gpu_expect(answer == SCOUT_NO && strcmp(why.code, "capture") == 0, "the wrong stream: %d %s", answer, why.text);
    d = (doing){4, 0, NULL};
    gpu_time(enqueue_doing, &d, 1, 1, 1, &why, &answer);
    gpu_expect(answer == SCOUT_FAILED && strcmp(why.text, "on purpose, anywhere") == 0,
               "a launch that fails in a graph and without: %d %s", answer, why.text);
    d = (doing){0, 0, NULL};
    gpu_expect(gpu_time(enqueue_doing, &d, 1, 10, 3, &why, &answer) > 0, "after failures nothing works: %s", why.text);
}

/* What an empty launch takes in a graph that nothing looks after: the second of two. */
static double launch_seconds(cudaStream_t stream) {
    enum { LAUNCHES = 256 };
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    cudaEvent_t events[2];
    float milliseconds = NAN;
    scout_why why;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int k = 0; k < LAUNCHES; k++) gpu_api->empty(gpu, stream, &why);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&made, graph, 0);
    for (int k = 0; k < 2; k++) {
        cudaEventCreate(&events[k]);
        cudaGraphLaunch(made, stream);
        cudaEventRecord(events[k], stream);
    }
    cudaStreamSynchronize(stream);
    cudaEventElapsedTime(&milliseconds, events[0], events[1]);
    for (int k = 0; k < 2; k++) cudaEventDestroy(events[k]);
    cudaGraphExecDestroy(made);
    cudaGraphDestroy(graph);
    return milliseconds / 1000.0 / LAUNCHES;
}

/* Streams that had work make every launch dearer; those of a run are not. */
static void check_channels(void) {
    enum { STREAMS = 4, LAUNCHES = 2000 };
    cudaStream_t streams[STREAMS];
    scout_why why = {"", ""};
    scout_answer answer = SCOUT_OK;
    doing d = {0, 0, NULL};
    const double before_s = gpu_time(enqueue_doing, &d, 1, 1000, 20, &why, &answer);
    for (int k = 0; k < STREAMS; k++) cudaStreamCreateWithFlags(&streams[k], cudaStreamNonBlocking);
    const double cheap_s = launch_seconds(streams[0]);
    for (int k = 0; k < LAUNCHES; k++) gpu_api->empty(gpu, streams[k % STREAMS], &why);
    cudaDeviceSynchronize();
    const double dear_s = launch_seconds(streams[0]);
    const double after_s = gpu_time(enqueue_doing, &d, 1, 1000, 20, &why, &answer);
    for (int k = 0; k < STREAMS; k++) cudaStreamDestroy(streams[k]);
    printf("  empty launch beside others: %.0f ns, once %d streams had work %.0f ns; of a run %.0f and %.0f ns\n",
           cheap_s * 1e9, STREAMS, dear_s * 1e9, before_s * 1e9, after_s * 1e9);
    gpu_expect(after_s < 1.03 * before_s && after_s < 1.03 * cheap_s, "launches of a run were left dear: %.3g",
               after_s / fmin(before_s, cheap_s));
}

static scout_answer enqueue_empty(void *context, uint32_t number, void *stream, scout_why *why) {
    (void)context, (void)number;
    return gpu_api->empty(gpu, stream, why);
}

typedef struct forgotten {
    scout_forget what;
    const char *name;
    double least_s, most_s;
    bool behind; /* with a launch behind it that does nothing */
} forgotten;

static scout_answer enqueue_forget(void *context, uint32_t number, void *stream, scout_why *why) {
    const forgotten *f = context;
    const scout_answer answer = gpu_api->forget(gpu, f->what, NULL, NULL, stream, why);
    return answer == SCOUT_OK && f->behind ? enqueue_empty(NULL, number, stream, why) : answer;
}

/* A program that does nothing is fetched as well. */
static void check_forget(void) {
    enum { LAUNCHES = 8, REPEATS = 16 };
    static const forgotten kinds[] = {{SCOUT_FORGET_PROGRAM, "empties the caches of programs", 5e-6, 2e-4, false},
                                      {SCOUT_FORGET_NOTHING, "changes the kernel alone", 1e-7, 5e-6, false}};
    scout_why why = {"", ""};
    scout_answer answer;
    const double empty_s = gpu_time(enqueue_empty, NULL, 1, 100, REPEATS, &why, &answer);
    gpu_expect(answer == SCOUT_OK, "a launch that does nothing: %s", why.text);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        forgotten f = kinds[k];
        double seconds[2] = {0};
        for (int behind = 0; behind < 2; behind++) {
            f.behind = behind;
            seconds[behind] = gpu_time(enqueue_forget, &f, 1, LAUNCHES, REPEATS, &why, &answer);
            gpu_expect(answer == SCOUT_OK, "a launch that %s: %s", f.name, why.text);
        }
        const double behind_s = seconds[1] - seconds[0];
        printf("  a launch that %s: %.2f us; one that does nothing: %.3f us, behind it %.3f us\n", f.name,
               seconds[0] * 1e6, empty_s * 1e6, behind_s * 1e6);
        gpu_expect(seconds[0] > f.least_s && seconds[0] < f.most_s, "a launch that %s takes %.3g s", f.name,
                   seconds[0]);
        gpu_expect(fabs(behind_s - empty_s) < 2e-6, "a launch behind one that %s takes %.3g s", f.name, behind_s);
    }
}

typedef struct handed { /* a read of one tensor, behind `forget` of it */
    scout_tensor tensor;
    scout_op op;
    void *memory;
    bool alone; /* without the read */
} handed;

static scout_answer enqueue_handed(void *context, uint32_t number, void *stream, scout_why *why) {
    handed *h = context;
    (void)number;
    scout_answer answer = gpu_api->forget(gpu, SCOUT_FORGET_TENSORS, &h->op, &h->memory, stream, why);
    if (answer == SCOUT_OK && !h->alone)
        answer = gpu_api->stream(gpu, h->memory, h->tensor.bytes, NULL, 0, stream, why);
    return answer;
}

/* What was written just before is in the cache, and what is distant is not. All bytes stay what they were. */
static void check_hand_over(void) {
    enum { LAUNCHES = 8, REPEATS = 16, MOST = 12 << 20, OFFSET = 48 };
    void *memory = NULL;
    double read_s[4] = {0};
    uint64_t sums[2] = {0, 1};
    handed h = {.op = {.size = sizeof h.op, .tensor_count = 1}};
    GPU_OK(gpu_api->alloc(gpu, MOST, &memory, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, memory, MOST, SCOUT_FP32, SCOUT_FILL_NORMAL, 7, &gpu_why));
    GPU_OK(gpu_api->checksum(gpu, memory, MOST, &sums[0], &gpu_why));
    h.tensor =
        (scout_tensor){.size = sizeof h.tensor, .role = SCOUT_INPUT, .type = SCOUT_FP32, .bytes = MOST - OFFSET - 4};
    h.op.tensors = &h.tensor;
    h.memory = (char *)memory + OFFSET;
    for (int distant = 0; distant < 4; distant++) {
        double seconds[2] = {0};
        h.tensor.left = distant ? SCOUT_LEFT_DISTANT : SCOUT_LEFT_WRITTEN;
        h.op.crowd_written = distant > 1 ? 0.5 * (distant - 1) : 0;
        for (int alone = 0; alone < 2; alone++) {
            scout_answer answer = SCOUT_OK;
            h.alone = alone;
            seconds[alone] = gpu_time(enqueue_handed, &h, 1, LAUNCHES, REPEATS, &gpu_why, &answer);
            gpu_expect(answer == SCOUT_OK, "handing over: %s", gpu_why.text);
        }
        read_s[distant] = seconds[0] - seconds[1];
    }
    GPU_OK(gpu_api->checksum(gpu, memory, MOST, &sums[1], &gpu_why));
    printf("  %.1f MB are read in %.2f us behind what wrote them, in %.2f us long after, in %.2f and %.2f where half "
           "or all "
           "of what was used since was written\n",
           (double)MOST / 1e6, read_s[0] * 1e6, read_s[1] * 1e6, read_s[2] * 1e6, read_s[3] * 1e6);
    gpu_expect(sums[0] == sums[1], "handing over changed what it hands over");
    for (int k = 1; k < 4; k++)
        gpu_expect(read_s[k] > 1.2 * read_s[0], "long after, reading takes %.3g s instead of %.3g", read_s[k],
                   read_s[0]);
    gpu_api->release(gpu, memory);
}

/* As threads do that prepare plans: the driver is asked all the time. */
static void *keep_busy(void *stop) {
    enum { LAUNCHES = 64 };
    cudaStream_t stream = NULL;
    scout_why why;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return NULL;
    while (!atomic_load((atomic_bool *)stop)) {
        cudaGraph_t graph = NULL;
        cudaGraphExec_t made = NULL;
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int k = 0; k < LAUNCHES; k++) gpu_api->empty(NULL, stream, &why);
        cudaStreamEndCapture(stream, &graph);
        if (graph && cudaGraphInstantiate(&made, graph, 0) == cudaSuccess) cudaGraphExecDestroy(made);
        if (graph) cudaGraphDestroy(graph);
    }
    cudaStreamDestroy(stream);
    return NULL;
}

/* What an interval takes beside its launches is measured when a device has been opened and taken from all that it
 * times: a host that was slow just then must not show. What is left of an interval that has no launches is nothing. */
static void check_beside(void) {
    enum { DEVICES = 16, FEW = 24, TIMES = 10, REPEATS = 32, THREADS = 16 };
    static const double most_s = 1.5e-6;
    pthread_t threads[THREADS];
    atomic_bool stop = false;
    scout_device *const first = gpu;
    int busy = 0;
    printf("  left of an interval without launches, us:");
    for (int k = 0; k < DEVICES; k++) {
        scout_why why = {"", ""};
        scout_answer answers[2];
        if (k == DEVICES / 2)
            for (; busy < THREADS && pthread_create(&threads[busy], NULL, keep_busy, &stop) == 0; busy++) continue;
        if (gpu_api->open(0, &gpu, &why) != SCOUT_OK) {
            gpu_expect(false, "a device more: %s", why.text);
            break;
        }
        const double few_s = FEW * gpu_time(enqueue_empty, NULL, 1, FEW, REPEATS, &why, &answers[0]);
        const double many_s = FEW * TIMES * gpu_time(enqueue_empty, NULL, 1, FEW * TIMES, REPEATS, &why, &answers[1]);
        const double left_s = (TIMES * few_s - many_s) / (TIMES - 1);
        printf("%s %.2f", k == DEVICES / 2 ? "; beside busy threads:" : "", left_s * 1e6);
        gpu_expect(answers[0] == SCOUT_OK && answers[1] == SCOUT_OK && fabs(left_s) <= most_s,
                   "device %d: %.2f us are left of an interval without launches: %s", k, left_s * 1e6, why.text);
        gpu_api->close(gpu);
    }
    printf("\n");
    atomic_store(&stop, true);
    for (int k = 0; k < busy; k++) pthread_join(threads[k], NULL);
    gpu = first;
}

typedef struct special {
    uint64_t wanted, done;
} special;

static scout_answer enqueue_special(void *context, uint32_t number, void *stream, scout_why *why) {
    special *const s = context;
    (void)number;
    return gpu_api->special(gpu, s->wanted, &s->done, stream, why);
}

/* --- traces --- */

typedef struct copying {
    char *from, *to;
    bool fails;
} copying;

/* Launch k copies k + 1 pieces; the last one in two kernels. */
enum { PIECE_BYTES = 16 << 20, COPIES = 4 };
static scout_answer enqueue_copy(void *context, uint32_t launch, void *stream, scout_why *why) {
    const copying *c = context;
    const uint64_t bytes = (uint64_t)(launch + 1) * PIECE_BYTES;
    if (c->fails && launch == 1) return scout_say(why, SCOUT_FAILED, "error", "on purpose");
    const scout_answer answer = gpu_api->stream(gpu, c->from, bytes, c->to, bytes, stream, why);
    if (answer != SCOUT_OK || launch + 1 < COPIES) return answer;
    return gpu_api->stream(gpu, c->from, PIECE_BYTES, c->to, PIECE_BYTES, stream, why);
}

/* Each kernel is told with its launch, in order, and takes what it takes without a tracer. */
static void check_trace(void) {
    scout_trace_event events[COPIES + 2];
    uint32_t count = 0;
    copying c = {NULL, NULL, false};
    void *from = NULL, *to = NULL;
    scout_why why = {"", ""};
    if (!gpu_expect(SCOUT_HAS(gpu_api, trace) && gpu_api->trace, "it does not trace")) return;
    GPU_OK(gpu_api->alloc(gpu, (uint64_t)COPIES * PIECE_BYTES, &from, &gpu_why));
    GPU_OK(gpu_api->alloc(gpu, (uint64_t)COPIES * PIECE_BYTES, &to, &gpu_why));
    c.from = from, c.to = to;
    const scout_answer answer = gpu_api->trace(gpu, COPIES, enqueue_copy, &c, COPIES + 2, events, &count, &why);
    if (answer == SCOUT_NO && strcmp(why.code, "library") == 0) {
        printf("  no trace: %s\n", why.text);
    } else if (gpu_expect(answer == SCOUT_OK && count == COPIES + 1, "%u events: %s", count, why.text)) {
        for (uint32_t k = 0; k < count; k++) {
            const scout_trace_event *e = &events[k];
            printf("  launch %u: %.2f us, %.60s\n", e->launch, 1e6 * (e->end_s - e->start_s), e->name);
            gpu_expect(e->launch == (k < COPIES ? k : COPIES - 1), "event %u is of launch %u", k, e->launch);
            gpu_expect(e->end_s > e->start_s && (k == 0 || e->start_s > events[k - 1].end_s - 1e-6),
                       "event %u overlaps", k);
        }
        const double alone = gpu_time(enqueue_copy, &c, 1, COPIES, 20, &why, &(scout_answer){SCOUT_OK}) * COPIES;
        double traced = 0;
        for (uint32_t k = 0; k < count; k++) traced += events[k].end_s - events[k].start_s;
        gpu_expect(traced < 1.05 * alone && traced > 0.7 * alone, "its kernels take %.1f us, and %.1f without a tracer",
                   1e6 * traced, 1e6 * alone);
        gpu_expect(gpu_api->trace(gpu, COPIES, enqueue_copy, &c, 2, events, &count, &why) == SCOUT_NO, "no room");
        c.fails = true;
        gpu_expect(gpu_api->trace(gpu, COPIES, enqueue_copy, &c, COPIES + 2, events, &count, &why) == SCOUT_FAILED,
                   "a launch that fails: %s", why.text);
    }
    gpu_api->release(gpu, from);
    gpu_api->release(gpu, to);
}

static void check_rest(void) {
    scout_telemetry t = {.size = sizeof t};
    scout_why why = {"", ""};
    scout_answer answer = SCOUT_OK;
    special s = {1000000000000u, 0};
    const double seconds = gpu_time(enqueue_special, &s, 1, 1, 5, &why, &answer);
    gpu_expect(answer == SCOUT_OK && s.done >= s.wanted, "special functions: %s", why.text);
    double start = gpu_api->now(gpu);
    gpu_api->telemetry(gpu, &t);
    printf("  special %.2f T/s; clock %.0f MHz, memory %.0f MHz, %.0f W, %.0f C, reasons %llx %s (%.2f ms)\n",
           (double)s.done / seconds * 1e-12, t.clock_mhz, t.memory_clock_mhz, t.power_w, t.temperature_c,
           (unsigned long long)t.throttle, t.throttle_text, (gpu_api->now(gpu) - start) * 1e3);
    gpu_expect(t.clock_mhz > 100 && t.power_w > 10 && t.temperature_c > 5, "no telemetry");
    start = gpu_api->now(gpu);
    gpu_api->pause(gpu, 0.25);
    gpu_expect(fabs(gpu_api->now(gpu) - start - 0.25) < 0.05, "a pause of a quarter of a second");
    uint64_t done = 1;
    gpu_expect(gpu_api->arithmetic(gpu, SCOUT_FP16, 1, &done, NULL, &why) == SCOUT_NO && done == 0, "arithmetic");
}

/* Reading where nothing is ends the context; from then on every answer is SCOUT_LOST, and nothing hangs. */
static void check_lost(void) {
    uint64_t sum = 0;
    scout_why why = {"", ""};
    void *memory = NULL;
    const scout_answer bad = gpu_api->checksum(gpu, (void *)4096, BYTES, &sum, &why);
    gpu_expect(bad == SCOUT_LOST && strcmp(why.code, "poisoned") == 0, "reading nowhere: %d %s", bad, why.text);
    printf("  %s\n", why.text);
    gpu_expect(gpu_api->alloc(gpu, 100, &memory, &why) == SCOUT_LOST, "an allocation afterwards: %s", why.text);
    gpu_api->close(gpu);
}

/* Two types on the device beside the same sums here, at odd lengths, with numbers that are none. */
static void check_distance(void) {
    enum { MOST = 300000 };
    void *want = NULL, *got = NULL;
    unsigned char *const x = malloc(BYTES), *const y = malloc(2 * BYTES);
    GPU_OK(gpu_api->alloc(gpu, BYTES, &want, &gpu_why));
    GPU_OK(gpu_api->alloc(gpu, 2 * BYTES, &got, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, want, BYTES, SCOUT_FP16, SCOUT_FILL_NORMAL, 3, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, got, 2 * BYTES, SCOUT_FP32, SCOUT_FILL_NORMAL, 3, &gpu_why));
    GPU_OK(gpu_api->download(gpu, x, want, BYTES, &gpu_why));
    GPU_OK(gpu_api->download(gpu, y, got, 2 * BYTES, &gpu_why));
    const uint64_t counts[] = {1, 255, 2048, 262145, MOST};
    const uint64_t none[] = {100, 2000, 262144};
    const float nan = NAN;
    const uint16_t infinite = 0x7c00;
    for (int odd = 0; odd < 3; odd++) {
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            scout_distance d = {.size = sizeof d}, again = d;
            double off = 0, all = 0;
            uint64_t apart = 0, left = 0;
            for (uint64_t k = 0; k < counts[n]; k++) {
                const double a = half_at(x, (int)k), b = float_at(y, (int)k);
                const bool a_is = (x[2 * k + 1] & 0x7c) != 0x7c, b_is = isfinite(b);
                left += !b_is, apart += a_is != b_is;
                if (a_is && b_is) off += (a - b) * (a - b), all += a * a;
            }
            GPU_OK(gpu_api->distance(gpu, SCOUT_FP16, want, SCOUT_FP32, got, counts[n], &d, &gpu_why));
            GPU_OK(gpu_api->distance(gpu, SCOUT_FP16, want, SCOUT_FP32, got, counts[n], &again, &gpu_why));
            gpu_expect(fabs(d.off - off) <= 1e-9 * off && fabs(d.all - all) <= 1e-9 * all && d.apart == apart &&
                           d.infinite == left,
                       "%" PRIu64 " numbers: off %g instead of %g, all %g instead of %g, apart %" PRIu64
                       " instead of %" PRIu64 ", infinite %" PRIu64 " instead of %" PRIu64,
                       counts[n], d.off, off, d.all, all, d.apart, apart, d.infinite, left);
            gpu_expect(d.off == again.off && d.all == again.all, "the same numbers have another distance");
        }
        for (size_t k = 0; k < sizeof none / sizeof *none; k++) { /* in one, then in both */
            if (odd == 0) memcpy(y + 4 * none[k], &nan, sizeof nan);
            if (odd == 1) memcpy(x + 2 * none[k], &infinite, sizeof infinite);
        }
        GPU_OK(gpu_api->upload(gpu, want, x, BYTES, &gpu_why));
        GPU_OK(gpu_api->upload(gpu, got, y, 2 * BYTES, &gpu_why));
    }
    GPU_OK(gpu_api->upload(gpu, got, want, BYTES, &gpu_why)); /* within the device */
    GPU_OK(gpu_api->download(gpu, y, got, BYTES, &gpu_why));
    gpu_expect(memcmp(x, y, BYTES) == 0, "a copy within the device");
    gpu_api->release(gpu, want);
    gpu_api->release(gpu, got);
    free(x);
    free(y);
}

int main(int argc, char **argv) {
    gpu_begin(argc, argv, false);
    check_identity();
    const double start = gpu_api->now(NULL);
    GPU_OK(gpu_api->open(0, &gpu, &gpu_why));
    if (!gpu) return gpu_end();
    printf("  opened in %.3f s\n", gpu_api->now(NULL) - start);
    check_memory();
    check_fill();
    check_checksum();
    check_distance();
    check_sequences();
    check_channels();
    check_beside();
    check_forget();
    check_hand_over();
    check_trace();
    check_rest();
    check_lost();
    return gpu_end();
}
