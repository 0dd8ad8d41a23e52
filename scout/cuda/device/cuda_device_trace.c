/* What the device did of a graph, kernel by kernel, as CUPTI records it. The library is opened when it is first
 * asked for, and records are on only while a sequence is traced: they stretch what lies between kernels. */
#include "scout/cuda/device/cuda_device.h"

#include "scout/device/libraries.h"

#include <stdlib.h>
#include <string.h>

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <pthread.h>

enum { BUFFER_BYTES = 4 << 20, ALIGNMENT = 8 };

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                           CUPTI_ACTIVITY_KIND_MEMSET};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Of the process: CUPTI calls back from threads of its own, and one sequence is traced at a time. */
static struct {
    pthread_mutex_t lock;
    bool opened;
    CUptiResult (*enable)(CUpti_ActivityKind kind);
    CUptiResult (*disable)(CUpti_ActivityKind kind);
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed);
    CUptiResult (*flush)(uint32_t flag);
    CUptiResult (*next)(uint8_t *buffer, size_t valid, CUpti_Activity **record);
    scout_trace_event *events; /* borrowed; NULL: what is recorded is not asked for */
    uint32_t count, most;      /* count: also of those that found no room */
    uint64_t origin_ns;        /* where the first one began: of the time since 1970, a double has quarters of us */
} cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double since_origin(uint64_t ns) { return 1e-9 * (double)(int64_t)(ns - cupti.origin_ns); }

/* Of a graph; what the device does around it is of none. The graphs of empty launches are its own. */
static void add(const char *name, uint64_t node, uint64_t start, uint64_t end) {
    if (!cupti.events || node == 0 || strstr(name, "stream_empty")) return;
    if (cupti.count == 0) cupti.origin_ns = start;
    if (cupti.count < cupti.most) {
        scout_trace_event *e = &cupti.events[cupti.count];
        e->start_s = since_origin(start), e->end_s = since_origin(end);
        snprintf(e->name, sizeof e->name, "%s", name);
    }
    cupti.count++;
}

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *most = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid > 0 && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        const void *const as = record;
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const kernel_record *k = as;
            add(k->name ? k->name : "kernel", k->graphNodeId, k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const copy_record *c = as;
            add("copy", c->graphNodeId, c->start, c->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const CUpti_ActivityMemset4 *m = as;
            add("fill", m->graphNodeId, m->start, m->end);
        }
    }
    free(buffer);
}

static scout_answer open_records(scout_why *why) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so", NULL};
    static const libraries_place functions[] = {
        {"cuptiActivityEnable", offsetof(__typeof__(cupti), enable)},
        {"cuptiActivityDisable", offsetof(__typeof__(cupti), disable)},
        {"cuptiActivityRegisterCallbacks", offsetof(__typeof__(cupti), callbacks)},
        {"cuptiActivityFlushAll", offsetof(__typeof__(cupti), flush)},
        {"cuptiActivityGetNextRecord", offsetof(__typeof__(cupti), next)}};
    char path[4096];
    if (cupti.opened) return SCOUT_OK;
    void *const library = libraries_open(names, false, path, sizeof path, why);
    if (!library || !libraries_bind(library, functions, sizeof functions / sizeof functions[0], &cupti, why))
        return SCOUT_NO;
    if (cupti.callbacks(requested, completed) != CUPTI_SUCCESS)
        return scout_say(why, SCOUT_NO, "library", "CUPTI takes no records here");
    cupti.opened = true;
    return SCOUT_OK;
}

static scout_answer set_on(scout_why *why) {
    for (size_t k = 0; k < KINDS; k++)
        if (cupti.enable(kinds[k]) != CUPTI_SUCCESS)
            return scout_say(why, SCOUT_NO, "library", "CUPTI records no kernels here");
    return SCOUT_OK;
}

static int by_start(const void *a, const void *b) {
    const scout_trace_event *x = a, *y = b;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* ---- which launch a record is of: the nodes that each call of `enqueue` adds run one after another ---- */

typedef struct noted {
    scout_device *device;
    uint32_t launches;
    scout_enqueue enqueue;
    void *context;
    size_t *ends; /* by launch: nodes of the graph behind it */
} noted;

static scout_answer count_nodes(cudaStream_t stream, size_t *count, scout_why *why) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = NULL;
#if CUDART_VERSION >= 13000
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
#else
    cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, NULL, NULL);
#endif
    if (error == cudaSuccess && status != cudaStreamCaptureStatusActive)
        return scout_say(why, SCOUT_NO, "capture", "a launch ended the graph");
    if (error == cudaSuccess) error = cudaGraphGetNodes(graph, NULL, count);
    return cuda_device_answer(error, "counting a graph's nodes", why);
}

/* All launches are one to the device, which would run more than one twice where empty ones cost more than usual. */
static scout_answer enqueue_noted(void *context, uint32_t number, void *stream, scout_why *why) {
    const noted *n = context;
    scout_answer answer = SCOUT_OK;
    (void)number;
    for (uint32_t k = 0; k < n->launches && answer == SCOUT_OK; k++) {
        answer = n->enqueue(n->context, k, stream, why);
        if (answer == SCOUT_OK) answer = count_nodes(stream, &n->ends[k], why);
    }
    return answer;
}

static scout_answer give_launches(const noted *n, scout_trace_event *events, uint32_t count, scout_why *why) {
    const size_t all = n->ends[n->launches - 1];
    if (count != all) return scout_say(why, SCOUT_NO, "feature", "the tracer saw %u of %zu kernels", count, all);
    for (uint32_t k = 0, launch = 0; k < count; k++) {
        while (n->ends[launch] <= k) launch++;
        events[k].launch = launch;
    }
    return SCOUT_OK;
}

/* ---- the whole ---- */

static scout_answer flush(scout_why *why) {
    return cupti.flush(1) == CUPTI_SUCCESS ? SCOUT_OK : scout_say(why, SCOUT_NO, "library", "CUPTI gives no records");
}

/* It runs so long before the run that is told, as the clock is another one after a rest. */
static const double warm_s = 0.3;

/* The graph is made while records are on: what was made before does not tell its nodes. */
static scout_answer record_and_run(noted *n, scout_why *why) {
    scout_sequence *sequence = NULL;
    double seconds = 0;
    scout_answer answer = cuda_device_record(n->device, 1, 1, enqueue_noted, n, &sequence, why);
    const double begun = cuda_device_now(n->device);
    for (bool last = false, over = false; !over && answer == SCOUT_OK; over = last) {
        last = cuda_device_now(n->device) - begun >= warm_s;
        answer = flush(why);
        cupti.count = 0;
        if (answer == SCOUT_OK) answer = cuda_device_play(n->device, &sequence, 1, &seconds, why);
    }
    if (answer == SCOUT_OK) answer = flush(why);
    cuda_device_drop(n->device, sequence);
    return answer;
}

static scout_answer trace_alone(noted *n, scout_why *why) {
    scout_answer answer = open_records(why);
    if (answer != SCOUT_OK) return answer;
    answer = set_on(why);
    if (answer == SCOUT_OK) answer = record_and_run(n, why);
    for (size_t k = 0; k < KINDS; k++) (void)cupti.disable(kinds[k]);
    return answer;
}

scout_answer cuda_device_trace(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context,
                               uint32_t most, scout_trace_event *events, uint32_t *count, scout_why *why) {
    noted n = {device, launches, enqueue, context, calloc((size_t)launches + 1, sizeof *n.ends)};
    if (!n.ends) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    pthread_mutex_lock(&cupti.lock);
    cupti.events = events, cupti.most = most;
    scout_answer answer =
        launches > 0 ? trace_alone(&n, why) : scout_say(why, SCOUT_NO, "feature", "there is nothing to trace");
    cupti.events = NULL;
    *count = cupti.count;
    pthread_mutex_unlock(&cupti.lock);
    if (answer == SCOUT_OK && *count > most)
        answer = scout_say(why, SCOUT_NO, "feature", "the tracer saw %u kernels, and %u were expected", *count, most);
    if (answer == SCOUT_OK) {
        qsort(events, *count, sizeof events[0], by_start);
        answer = give_launches(&n, events, *count, why);
    }
    free(n.ends);
    return answer;
}

#else

scout_answer cuda_device_trace(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context,
                               uint32_t most, scout_trace_event *events, uint32_t *count, scout_why *why) {
    (void)device, (void)launches, (void)enqueue, (void)context, (void)most, (void)events;
    *count = 0;
    return scout_say(why, SCOUT_NO, "library", "this program was built without CUPTI's headers");
}

#endif
