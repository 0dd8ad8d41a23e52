/* The cost of a launch depends on the process's history. Once several of its streams have had work, each launch takes a
 * third longer, on every graph, stream and thread, until the GPU switches to another context. Preparing plans on a
 * second thread does this. So the cost is measured before and after a run. Where it is not the least seen, a launch in
 * a second context makes the GPU switch away and back, to the channel of one stream.
 *
 * The same empty launches tell what an interval takes beside its launches: its events, and a graph's beginning and end.
 */
#include "scout/cuda/device/cuda_device.h"

#include "kernels/harness/kernels.h"

#include <cuda.h>
#include <math.h>
#include <stdlib.h>

enum { LAUNCHES = 24, TIMES = 10, LOOKS = 2, MANY_LOOKS = 15, WARM_LOOKS = 60, TURNS = 3 };
static const uint32_t ahead_ns = 300000; /* long enough for a slow host to enqueue what is looked at */
static const double dearer = 1.17;       /* half of the third */
static const double dear_now = 1.25;     /* a clock that falls meanwhile adds some, too */

typedef struct driver_calls {
    CUresult (*create)(CUcontext *out, unsigned flags, CUdevice device);
    CUresult (*push)(CUcontext context);
    CUresult (*pop)(CUcontext *out);
    CUresult (*destroy)(CUcontext context);
} driver_calls;

struct cuda_channels {
    cudaGraphExec_t graph; /* empty launches; NULL: nothing is measured */
    cudaEvent_t events[2];
    driver_calls calls;
    CUcontext other; /* NULL: the cost stays */
    double least_s;  /* that the graph has taken */
    double beside_s; /* what an interval takes beside its launches */
};

static bool find_calls(driver_calls *calls) {
    const struct {
        const char *name;
        void **to;
        unsigned version;
    } all[] = {{"cuCtxCreate", (void **)&calls->create, 3020},
               {"cuCtxPushCurrent", (void **)&calls->push, 4000},
               {"cuCtxPopCurrent", (void **)&calls->pop, 4000},
               {"cuCtxDestroy", (void **)&calls->destroy, 4000}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        const cudaError_t asked =
            cudaGetDriverEntryPointByVersion(all[k].name, all[k].to, all[k].version, cudaEnableDefault, &found);
        if (asked != cudaSuccess || found != cudaDriverEntryPointSuccess) return false;
    }
    return true;
}

static void leave_and_return(const struct cuda_channels *c) {
    CUcontext was;
    if (!c->other || c->calls.push(c->other) != CUDA_SUCCESS) return;
    if (kernels_empty(NULL) != cudaSuccess || cudaStreamSynchronize(NULL) != cudaSuccess) cudaGetLastError();
    c->calls.pop(&was);
}

static cudaGraphExec_t graph_of(scout_device *device, int launches) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    bool good = cudaStreamBeginCapture(device->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (!good) return NULL;
    for (int k = 0; k < launches; k++) good = kernels_empty(device->stream) == cudaSuccess && good;
    good = cudaStreamEndCapture(device->stream, &graph) == cudaSuccess && good;
    if (good && cudaGraphInstantiate(&made, graph, 0) != cudaSuccess) made = NULL;
    if (graph) cudaGraphDestroy(graph);
    return made;
}

static bool make_graph(struct cuda_channels *c, scout_device *device) {
    c->graph = graph_of(device, LAUNCHES);
    bool good = c->graph != NULL;
    for (int k = 0; good && k < 2; k++) good = cudaEventCreate(&c->events[k]) == cudaSuccess;
    return good;
}

/* The first launch of the graph puts a quick host ahead for the second, and a delay any host. */
static double look_at(const struct cuda_channels *c, const scout_device *device, cudaGraphExec_t graph,
                      uint32_t delay_ns) {
    float milliseconds = NAN;
    bool good = (delay_ns == 0 || kernels_delay(delay_ns, device->stream) == cudaSuccess) &&
                cudaGraphLaunch(graph, device->stream) == cudaSuccess &&
                cudaEventRecord(c->events[0], device->stream) == cudaSuccess &&
                cudaGraphLaunch(graph, device->stream) == cudaSuccess &&
                cudaEventRecord(c->events[1], device->stream) == cudaSuccess;
    good = cudaStreamSynchronize(device->stream) == cudaSuccess && good;
    good = good && cudaEventElapsedTime(&milliseconds, c->events[0], c->events[1]) == cudaSuccess;
    if (!good) cudaGetLastError(); /* what is lost shows in the run */
    return good && milliseconds > 0 ? milliseconds / 1000.0 : (double)INFINITY;
}

/* Of so many launches, and of many times as many: what does not grow with them. It is taken from every interval of the
 * process, so no time of the host may be in it. An interval always takes something: where it is nothing, the clock has
 * moved between the looks, and they are taken again. */
static double beside_of(const struct cuda_channels *c, scout_device *device) {
    cudaGraphExec_t many = graph_of(device, TIMES * LAUNCHES);
    double beside_s = 0;
    for (int turn = 0; turn < TURNS && many && !(beside_s > 0); turn++) {
        double few_s = INFINITY, many_s = INFINITY;
        for (int k = 0; k < WARM_LOOKS; k++) (void)look_at(c, device, many, 0); /* the clock is there */
        for (int k = 0; k < MANY_LOOKS; k++) {
            few_s = fmin(few_s, look_at(c, device, c->graph, ahead_ns));
            many_s = fmin(many_s, look_at(c, device, many, ahead_ns));
        }
        beside_s = (TIMES * few_s - many_s) / (TIMES - 1);
    }
    if (many) cudaGraphExecDestroy(many);
    return beside_s > 0 && isfinite(beside_s) ? beside_s : 0;
}

void cuda_channels_free(struct cuda_channels *c) {
    if (!c) return;
    if (c->graph) cudaGraphExecDestroy(c->graph);
    for (int k = 0; k < 2; k++)
        if (c->events[k]) cudaEventDestroy(c->events[k]);
    if (c->other) c->calls.destroy(c->other);
    free(c);
}

/* Missing functions are tolerated: figures are then those of a process with several streams. */
static struct cuda_channels *channels_new(scout_device *device) {
    struct cuda_channels *c = calloc(1, sizeof *c);
    CUcontext was;
    if (!c) return NULL;
    c->least_s = INFINITY;
    const bool ready = make_graph(c, device);
    if (ready && find_calls(&c->calls) && c->calls.create(&c->other, 0, device->ordinal) == CUDA_SUCCESS)
        c->calls.pop(&was);
    cudaGetLastError();
    leave_and_return(c);
    if (ready) c->beside_s = beside_of(c, device);
    return c;
}

/* Once at least: before the first look, everything is good enough. */
static double look(const struct cuda_channels *c, const scout_device *device, double good_s) {
    double least_s = INFINITY;
    for (int k = 0; k < LOOKS && (k == 0 || least_s > good_s); k++)
        least_s = fmin(least_s, look_at(c, device, c->graph, 0));
    return least_s;
}

double cuda_channels_beside(const scout_device *device) { return device->channels ? device->channels->beside_s : 0; }

double cuda_channels_settle(scout_device *device) {
    if (!device->channels) device->channels = channels_new(device);
    struct cuda_channels *const c = device->channels;
    if (!c || !c->other) return INFINITY;
    double now_s = look(c, device, dearer * c->least_s);
    if (now_s > dearer * c->least_s) {
        leave_and_return(c);
        now_s = look(c, device, dearer * c->least_s);
    }
    c->least_s = fmin(c->least_s, now_s);
    return now_s;
}

bool cuda_channels_dear(const scout_device *device, double settled_s) {
    return isfinite(settled_s) && look(device->channels, device, dear_now * settled_s) > dear_now * settled_s;
}
