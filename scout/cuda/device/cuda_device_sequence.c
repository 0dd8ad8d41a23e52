/* Recorded launches and their timing. A sequence is a graph of n launches, or n calls made anew at each run. Runs are
 * enqueued back to back, each between two events; nothing waits until the last one is done. */
#include "scout/cuda/device/cuda_device.h"

#include "kernels/harness/kernels.h"

#include <cuda_profiler_api.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

struct scout_sequence {
    cudaGraphExec_t graph; /* NULL: direct */
    uint32_t launches;
    scout_composition made_of; /* of a graph; size 0: not known */
    scout_enqueue enqueue;
    void *context;
    double enqueue_s; /* that the host took for the first interval of the last run; 0: not run yet */
};

/* The stream is held before the first event, so that the host is ahead from the first interval on and no interval
 * includes the host's own time: twice what enqueueing one interval took the last time, or a guess. */
static uint32_t sequence_head_start_ns(const scout_sequence *sequence) {
    const double guess_s = sequence->enqueue_s > 0 ? sequence->enqueue_s : 0.3e-6 * sequence->launches;
    const double held_s = 40e-6 + 2 * guess_s, most_s = 2e-3;
    return (uint32_t)((held_s < most_s ? held_s : most_s) * 1e9);
}

static scout_answer sequence_enqueue(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context,
                                     scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < launches && answer == SCOUT_OK; k++) answer = enqueue(context, k, device->stream, why);
    return answer;
}

/* Ends a failed capture, so that the stream works again. */
static scout_answer sequence_recover(scout_device *device, scout_why *why) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGetLastError();
    if (cudaStreamIsCapturing(device->stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusNone)
        return SCOUT_OK;
    cudaGetLastError();
    cudaStreamDestroy(device->stream);
    device->stream = NULL;
    return cuda_device_answer(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), "opening a new stream",
                              why);
}

/* The capture is ended in every case; *graph is the caller's where the answer is SCOUT_OK. */
static scout_answer sequence_capture(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context,
                                     cudaGraph_t *graph, scout_why *why) {
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    *graph = NULL;
    const cudaError_t begun = cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal);
    if (begun != cudaSuccess) return cuda_device_answer(begun, "beginning a graph", why);
    scout_answer answer = sequence_enqueue(device, launches, enqueue, context, why);
    const bool broken =
        cudaStreamIsCapturing(device->stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusActive;
    const cudaError_t ended = cudaStreamEndCapture(device->stream, graph);
    if (answer == SCOUT_OK && ended == cudaSuccess && *graph) return SCOUT_OK;
    if (*graph) cudaGraphDestroy(*graph);
    *graph = NULL;
    if (sequence_recover(device, why) != SCOUT_OK) return SCOUT_LOST;
    if (answer == SCOUT_LOST || (answer != SCOUT_OK && !broken)) return answer;
    const bool refused = answer != SCOUT_OK;
    if (ended != cudaSuccess) answer = cuda_device_answer(ended, "ending a graph", why);
    if (answer == SCOUT_LOST) return answer;
    if (refused) { /* a failed launch also invalidates the capture, and its error is all that is reported */
        answer = sequence_enqueue(device, 1, enqueue, context, why);
        if (answer == SCOUT_OK) answer = cuda_device_wait(device, "a launch outside of a graph", why);
        cudaGetLastError();
        if (answer != SCOUT_OK) return answer;
    }
    return scout_say(why, SCOUT_NO, "capture", "its launches cannot be captured in a graph: %s",
                     cudaGetErrorString(ended));
}

static scout_answer sequence_instantiate(scout_device *device, scout_sequence *sequence, cudaGraph_t graph,
                                         scout_why *why) {
    scout_answer answer =
        cuda_device_answer(cudaGraphInstantiate(&sequence->graph, graph, 0), "making a graph ready", why);
    if (answer == SCOUT_OK) /* its first run is enqueued behind it */
        answer = cuda_device_answer(cudaGraphUpload(sequence->graph, device->stream), "uploading a graph", why);
    return answer;
}

/* A child graph counts by its nodes. Empty nodes and events do not count. */
static bool sequence_count(cudaGraph_t graph, int depth, scout_composition *out) {
    size_t count = 0;
    if (depth == 0 || cudaGraphGetNodes(graph, NULL, &count) != cudaSuccess) return false;
    cudaGraphNode_t *const nodes = malloc((count + 1) * sizeof *nodes);
    bool good = nodes && cudaGraphGetNodes(graph, nodes, &count) == cudaSuccess;
    for (size_t k = 0; good && k < count; k++) {
        enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
        cudaGraph_t within = NULL;
        good = cudaGraphNodeGetType(nodes[k], &type) == cudaSuccess;
        if (!good) break;
        switch (type) {
        case cudaGraphNodeTypeKernel: out->kernels++; break;
        case cudaGraphNodeTypeMemcpy:
        case cudaGraphNodeTypeMemset: out->copies++; break;
        case cudaGraphNodeTypeGraph:
            good = cudaGraphChildGraphNodeGetGraph(nodes[k], &within) == cudaSuccess &&
                   sequence_count(within, depth - 1, out);
            break;
        case cudaGraphNodeTypeEmpty:
        case cudaGraphNodeTypeWaitEvent:
        case cudaGraphNodeTypeEventRecord: break;
        default: out->others++; break;
        }
    }
    free(nodes);
    return good;
}

/* Counted while the graph is there: what is made ready of it does not tell its nodes. */
static void sequence_compose(scout_sequence *sequence, cudaGraph_t graph) {
    enum { DEEPEST = 8 };
    sequence->made_of = (scout_composition){.size = sizeof sequence->made_of};
    if (sequence_count(graph, DEEPEST, &sequence->made_of)) return;
    cudaGetLastError();
    sequence->made_of.size = 0;
}

scout_answer cuda_device_made_of(scout_device *device, scout_sequence *sequence, scout_composition *out,
                                 scout_why *why) {
    (void)device;
    if (sequence->made_of.size == 0)
        return scout_say(why, SCOUT_NO, "capture", "the sequence is no graph, so its nodes cannot be counted");
    out->kernels = sequence->made_of.kernels;
    out->copies = sequence->made_of.copies;
    out->others = sequence->made_of.others;
    return SCOUT_OK;
}

scout_answer cuda_device_record(scout_device *device, int graph, uint32_t launches, scout_enqueue enqueue,
                                void *context, scout_sequence **out, scout_why *why) {
    cudaGraph_t captured = NULL;
    *out = NULL;
    /* now, as no memory is asked for while launches are captured; without it forget refuses distant tensors */
    if (graph && !device->crowd && cudaMalloc(&device->crowd, device->cache_bytes + 1) != cudaSuccess)
        cudaGetLastError();
    scout_sequence *const sequence = calloc(1, sizeof *sequence);
    if (!sequence) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    sequence->launches = launches;
    sequence->enqueue = enqueue;
    sequence->context = context;
    scout_answer answer = SCOUT_OK;
    if (graph) answer = sequence_capture(device, launches, enqueue, context, &captured, why);
    if (captured) {
        answer = sequence_instantiate(device, sequence, captured, why);
        sequence_compose(sequence, captured);
        cudaGraphDestroy(captured);
    }
    if (answer != SCOUT_OK) {
        cuda_device_drop(device, sequence);
        return answer;
    }
    *out = sequence;
    return SCOUT_OK;
}

void cuda_device_load(scout_device *device, scout_enqueue enqueue, void *context) {
    cudaGraph_t graph = NULL;
    scout_why ignored;
    if (cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {
        (void)enqueue(context, 0, device->stream, &ignored);
        if (cudaStreamEndCapture(device->stream, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
        (void)sequence_recover(device, &ignored);
    }
    cudaGetLastError();
}

/* Room for so many intervals: two events each, and an instant of the cycle counters between any two. */
static scout_answer sequence_room(scout_device *device, uint32_t count, scout_why *why) {
    const uint32_t wanted = 2 * count;
    if (device->stamp_count < count + 1) {
        double *const clocks = realloc(device->clocks, count * sizeof *clocks);
        if (!clocks) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
        device->clocks = clocks;
        cudaFree(device->stamps);
        device->stamps = NULL, device->stamp_count = 0;
        const size_t bytes = (count + 1) * sizeof *device->stamps;
        const scout_answer answer = cuda_device_answer(cudaMalloc((void **)&device->stamps, bytes), "a clock", why);
        if (answer != SCOUT_OK) return answer;
        device->stamp_count = count + 1;
    }
    if (device->event_count >= wanted) return SCOUT_OK;
    cudaEvent_t *const more = realloc(device->events, wanted * sizeof(cudaEvent_t));
    if (!more) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    device->events = more;
    while (device->event_count < wanted) {
        const scout_answer answer =
            cuda_device_answer(cudaEventCreate(&device->events[device->event_count]), "making an event", why);
        if (answer != SCOUT_OK) return answer;
        device->event_count++;
    }
    return SCOUT_OK;
}

static scout_answer sequence_launch(scout_device *device, scout_sequence *sequence, scout_why *why) {
    const double start = cuda_device_now(device);
    const scout_answer answer =
        sequence->graph ? cuda_device_answer(cudaGraphLaunch(sequence->graph, device->stream), "launching a graph", why)
                        : sequence_enqueue(device, sequence->launches, sequence->enqueue, sequence->context, why);
    sequence->enqueue_s = cuda_device_now(device) - start;
    return answer;
}

static scout_answer sequence_mark(scout_device *device, uint32_t at, scout_why *why) {
    return cuda_device_answer(kernels_stamp(&device->stamps[at], device->multiprocessors, device->stream),
                              "reading the clock", why);
}

static scout_answer sequence_event(scout_device *device, uint32_t at, scout_why *why) {
    return cuda_device_answer(cudaEventRecord(device->events[at], device->stream), "recording an event", why);
}

/* The counters are read between the intervals, outside of what is timed. */
static scout_answer sequence_all(scout_device *device, scout_sequence *const *sequences, uint32_t count,
                                 scout_why *why) {
    const size_t bytes = (count + 1) * sizeof *device->stamps;
    scout_answer answer =
        cuda_device_answer(cudaMemsetAsync(device->stamps, 0, bytes, device->stream), "starting a run", why);
    if (answer == SCOUT_OK)
        answer = cuda_device_answer(kernels_delay(sequence_head_start_ns(sequences[0]), device->stream),
                                    "starting a run", why);
    if (answer == SCOUT_OK) answer = sequence_mark(device, 0, why);
    for (uint32_t k = 0; k < count && answer == SCOUT_OK; k++) {
        answer = sequence_event(device, 2 * k, why);
        if (answer == SCOUT_OK) answer = sequence_launch(device, sequences[k], why);
        if (answer == SCOUT_OK) answer = sequence_event(device, 2 * k + 1, why);
        if (answer == SCOUT_OK) answer = sequence_mark(device, k + 1, why);
    }
    return answer;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between two instants, of the multiprocessors that were seen at both: the middle one. */
static double clock_between(const kernels_stamps *from, const kernels_stamps *to) {
    double hz[KERNELS_STAMPED];
    int n = 0;
    for (int k = 0; k < KERNELS_STAMPED; k++) {
        const bool seen = from->nanoseconds[k] && to->nanoseconds[k] > from->nanoseconds[k];
        if (seen && to->cycles[k] > from->cycles[k])
            hz[n++] =
                1e9 * (double)(to->cycles[k] - from->cycles[k]) / (double)(to->nanoseconds[k] - from->nanoseconds[k]);
    }
    qsort(hz, (size_t)n, sizeof hz[0], by_value);
    return n > 0 ? hz[n / 2] : 0;
}

static scout_answer sequence_clocks(scout_device *device, uint32_t count, scout_why *why) {
    const size_t bytes = (count + 1) * sizeof(kernels_stamps);
    kernels_stamps *const all = malloc(bytes);
    if (!all) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    const scout_answer answer = cuda_device_download(device, all, device->stamps, bytes, why);
    for (uint32_t k = 0; answer == SCOUT_OK && k < count; k++) device->clocks[k] = clock_between(&all[k], &all[k + 1]);
    free(all);
    if (answer == SCOUT_OK) device->clock_count = count;
    return answer;
}

uint32_t cuda_device_clocks(scout_device *device, double *hz, uint32_t most) {
    const uint32_t count = device->clock_count < most ? device->clock_count : most;
    for (uint32_t k = 0; k < count; k++) hz[k] = device->clocks[k];
    return count;
}

static scout_answer sequence_play(scout_device *device, scout_sequence *const *sequences, uint32_t count,
                                  scout_why *why) {
    const scout_answer enqueued = sequence_all(device, sequences, count, why);
    if (enqueued == SCOUT_LOST) return enqueued;
    const scout_answer done = cuda_device_wait(device, "running", why); /* also what a failed run had enqueued */
    return enqueued == SCOUT_OK || done == SCOUT_LOST ? done : enqueued;
}

/* Of a graph's launches alone; of one that is all but empty, a part at least. */
static double sequence_seconds(const scout_device *device, const scout_sequence *sequence, float milliseconds) {
    const double seconds = milliseconds / 1000.0, least = 0.1;
    return sequence->graph ? fmax(seconds - cuda_channels_beside(device), least * seconds) : seconds;
}

/* Once more where launches cost more now, because another thread has prepared a plan. A sequence of one launch is a
 * look or takes long, and needs no such care. */
scout_answer cuda_device_play(scout_device *device, scout_sequence *const *sequences, uint32_t count, double *seconds,
                              scout_why *why) {
    enum { ATTEMPTS = 2 };
    device->clock_count = 0;
    if (count == 0) return SCOUT_OK;
    if (count > 1u << 20) return scout_say(why, SCOUT_FAILED, "error", "%u runs at once are too many", count);
    scout_answer answer = sequence_room(device, count, why);
    bool many = !device->channels, dear = true; /* the first run finds out what an interval takes beside its launches */
    for (uint32_t k = 0; k < count; k++) many = many || sequences[k]->launches > 1;
    for (int k = 0; k < ATTEMPTS && dear && answer == SCOUT_OK; k++) {
        const double settled_s = many ? cuda_channels_settle(device) : (double)INFINITY;
        answer = sequence_play(device, sequences, count, why);
        dear = answer == SCOUT_OK && cuda_channels_dear(device, settled_s);
    }
    for (uint32_t k = 0; k < count && answer == SCOUT_OK; k++) {
        float milliseconds = NAN;
        const cudaError_t read = cudaEventElapsedTime(&milliseconds, device->events[2 * k], device->events[2 * k + 1]);
        answer = cuda_device_answer(read, "reading an event", why);
        seconds[k] = sequence_seconds(device, sequences[k], milliseconds);
    }
    return answer == SCOUT_OK ? sequence_clocks(device, count, why) : answer;
}

/* The same again and again. */
scout_answer cuda_device_run(scout_device *device, scout_sequence *sequence, uint32_t repeats, double *seconds,
                             scout_why *why) {
    enum { AT_ONCE = 256 };
    scout_sequence *same[AT_ONCE];
    scout_answer answer = SCOUT_OK;
    for (uint32_t k = 0; k < AT_ONCE; k++) same[k] = sequence;
    for (uint32_t done = 0; done < repeats && answer == SCOUT_OK; done += AT_ONCE)
        answer =
            cuda_device_play(device, same, repeats - done < AT_ONCE ? repeats - done : AT_ONCE, seconds + done, why);
    return answer;
}

void cuda_device_profile(scout_device *device, int on) {
    (void)device;
    if ((on ? cudaProfilerStart() : cudaProfilerStop()) != cudaSuccess) cudaGetLastError();
}

void cuda_device_drop(scout_device *device, scout_sequence *sequence) {
    (void)device;
    if (!sequence) return;
    if (sequence->graph && cudaGraphExecDestroy(sequence->graph) != cudaSuccess) cudaGetLastError();
    free(sequence);
}

double cuda_device_now(scout_device *device) {
    struct timespec t;
    (void)device;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void cuda_device_pause(scout_device *device, double seconds) {
    if (!(seconds > 0)) return;
    struct timespec left = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    (void)device;
    while (nanosleep(&left, &left) != 0) {
    }
}
