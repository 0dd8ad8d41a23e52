/* The device "cpu": its identity, its memory, and its tables of candidates and references. Launches are plain calls, so
 * a sequence is a list of one function and runs where it is called. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_limits.h"
#include "scout/cpu/device/cpu_openblas.h"
#include "scout/cpu/device/cpu_stream.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_telemetry.h"
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/device/cpu.h"
#include "scout/device/libraries.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

struct scout_device {
    cpu_telemetry telemetry;
    cpu_stolen stolen;
    cpu_stream_state stream;
};

struct scout_sequence {
    scout_enqueue enqueue;
    void *context;
    uint32_t launches;
};

/* --- identity --- */

static int32_t count(scout_why *why) {
    (void)why;
    return 1;
}

static void add_library(scout_identity *id, const char *name, const char *version, const char *path) {
    if (id->library_count >= sizeof id->libraries / sizeof id->libraries[0]) return;
    scout_library *l = &id->libraries[id->library_count++];
    snprintf(l->name, sizeof l->name, "%s", name);
    snprintf(l->version, sizeof l->version, "%s", version);
    snprintf(l->path, sizeof l->path, "%s", path);
}

/* Two machines of one model differ by their machine-id. Its manual page calls it confidential, so only a hash of it is
 * reported. */
static void say_uuid(const cpu_info *c, char *text, size_t room) {
    char id[128] = "", all[512];
    if (!cpu_info_line("/etc/machine-id", id, sizeof id) && gethostname(id, sizeof id - 1) != 0) id[0] = 0;
    const int length = snprintf(all, sizeof all, "ceiling scout, cpu|%s|%s|%s", id, c->model, c->microcode);
    snprintf(text, room, "cpu-%016llx", (unsigned long long)XXH3_64bits(all, (size_t)length));
}

static scout_answer identify(int32_t ordinal, scout_identity *out, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    const cpu_onednn *onednn = cpu_onednn_get(NULL);
    const cpu_openblas *openblas = cpu_openblas_get(NULL);
    scout_identity id = {.size = out->size, .ordinal = 0, .units = cpu_team_size(), .cache_bytes = c->cache_bytes};
    struct utsname name;
    uint64_t left;
    char threads[32];
    if (ordinal != 0) return scout_say(why, SCOUT_NO, "hardware", "there is one device cpu: cpu:0");
    snprintf(id.name, sizeof id.name, "%s", c->model);
    snprintf(id.capability, sizeof id.capability, "%s", c->capability);
    say_uuid(c, id.uuid, sizeof id.uuid);
    if (!cpu_limits_memory(&left, &id.memory_bytes)) id.memory_bytes = 0;
    id.power_limit_w = cpu_telemetry_power_limit();
    if (uname(&name) == 0) snprintf(id.driver, sizeof id.driver, "%.47s", name.release);
    if (onednn) add_library(&id, "onednn", onednn->version, onednn->path);
    if (openblas) add_library(&id, "openblas", openblas->version, openblas->path);
    /* not which cores: those may differ from one start to the next, and the class of the device must not */
    snprintf(threads, sizeof threads, "%d%s", cpu_team_size(), cpu_team_pinned() ? " pinned" : " floating");
    add_library(&id, "threads", threads, cpu_team_library());
    memcpy(out, &id, out->size < sizeof id ? out->size : sizeof id);
    return SCOUT_OK;
}

static scout_answer open_device(int32_t ordinal, scout_device **out, scout_why *why) {
    *out = NULL;
    if (ordinal != 0) return scout_say(why, SCOUT_NO, "hardware", "there is one device cpu: cpu:0");
    cpu_team_start();
    *out = calloc(1, sizeof **out);
    return *out ? SCOUT_OK : scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a device");
}

static void close_device(scout_device *device) {
    cpu_stolen_end(&device->stolen);
    free(device);
}

/* --- memory --- */

static scout_answer memory(scout_device *device, uint64_t *free_bytes, uint64_t *total_bytes, scout_why *why) {
    (void)device;
    if (cpu_limits_memory(free_bytes, total_bytes)) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "/proc/meminfo has no MemAvailable");
}

static scout_answer alloc(scout_device *device, uint64_t bytes, void **out, scout_why *why) {
    (void)device;
    return cpu_memory_alloc(bytes, out, why);
}

static void release(scout_device *device, void *pointer) {
    (void)device;
    cpu_memory_release(pointer);
}

static scout_answer copy(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why) {
    (void)device, (void)why;
    if (bytes > 0) memcpy(to, from, (size_t)bytes);
    return SCOUT_OK;
}

static scout_answer fill(scout_device *device, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                         scout_why *why) {
    (void)device;
    return cpu_fill(to, bytes, type, how, seed, why);
}

static scout_answer checksum(scout_device *device, const void *data, uint64_t bytes, uint64_t *sum, scout_why *why) {
    (void)device, (void)why;
    *sum = cpu_fill_checksum(data, bytes);
    return SCOUT_OK;
}

/* --- launches --- */

static scout_answer record(scout_device *device, int graph, uint32_t launches, scout_enqueue enqueue, void *context,
                           scout_sequence **out, scout_why *why) {
    (void)device, (void)graph;
    *out = malloc(sizeof **out);
    if (!*out) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a sequence");
    **out = (scout_sequence){enqueue, context, launches};
    return SCOUT_OK;
}

static scout_answer run(scout_device *device, scout_sequence *s, uint32_t repeats, double *seconds, scout_why *why) {
    (void)device;
    double start = cpu_telemetry_now();
    for (uint32_t r = 0; r < repeats; r++) {
        for (uint32_t k = 0; k < s->launches; k++) {
            const scout_answer answer = s->enqueue(s->context, k, NULL, why);
            if (answer != SCOUT_OK) return answer;
        }
        const double end = cpu_telemetry_now();
        seconds[r] = end - start;
        start = end;
    }
    return SCOUT_OK;
}

static scout_answer trace_run(uint32_t launches, scout_enqueue enqueue, void *context, scout_trace_event *events,
                              scout_why *why) {
    for (uint32_t k = 0; k < launches; k++) {
        events[k] = (scout_trace_event){.start_s = cpu_telemetry_now(), .launch = k};
        const scout_answer answer = enqueue(context, k, NULL, why);
        events[k].end_s = cpu_telemetry_now();
        if (answer != SCOUT_OK) return answer;
    }
    return SCOUT_OK;
}

/* Each launch by the clock, for it is done when it returns. Of several runs the shortest: what disturbs only adds. */
static scout_answer trace(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context, uint32_t most,
                          scout_trace_event *events, uint32_t *count, scout_why *why) {
    enum { RUNS = 5 };
    double shortest_s = INFINITY;
    scout_answer answer = SCOUT_OK;
    (void)device;
    *count = 0;
    if (launches > most) return scout_say(why, SCOUT_NO, "feature", "there is no room for %u launches", launches);
    scout_trace_event *one = calloc((size_t)launches + 1, sizeof *one);
    if (!one) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a trace");
    for (int run = 0; run < RUNS && launches > 0 && answer == SCOUT_OK; run++) {
        answer = trace_run(launches, enqueue, context, one, why);
        const double took_s = one[launches - 1].end_s - one[0].start_s;
        if (answer != SCOUT_OK || !(took_s < shortest_s)) continue;
        shortest_s = took_s;
        memcpy(events, one, launches * sizeof *one);
    }
    free(one);
    *count = answer == SCOUT_OK ? launches : 0;
    return answer;
}

static void drop(scout_device *device, scout_sequence *s) {
    (void)device;
    free(s);
}

static double now(scout_device *device) {
    (void)device;
    return cpu_telemetry_now();
}

static void pause_device(scout_device *device, double seconds) {
    struct timespec left;
    (void)device;
    if (!(seconds > 0)) return;
    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0) {
    }
}

static double stolen(scout_device *device) { return cpu_stolen_seconds(&device->stolen); }

static void telemetry(scout_device *device, scout_telemetry *out) { cpu_telemetry_read(&device->telemetry, out); }

/* --- ceilings --- */

static scout_answer stream(scout_device *device, const void *read, uint64_t read_bytes, void *written,
                           uint64_t written_bytes, void *queue, scout_why *why) {
    (void)queue, (void)why;
    cpu_stream_run(&device->stream, read, read_bytes, written, written_bytes);
    return SCOUT_OK;
}

static scout_answer forget(scout_device *device, scout_forget what, const scout_op *op, void *const *tensors,
                           void *queue, scout_why *why) {
    (void)device, (void)queue, (void)why;
    /* What makes and reads the tensors of small work is mostly small as well, and on the same core. */
    if (what == SCOUT_FORGET_TENSORS && !cpu_small_is(op)) cpu_stream_hand_over(op, tensors);
    return SCOUT_OK;
}

/* A call and no more: small work on one thread need not wake the team. */
static scout_answer empty(scout_device *device, void *queue, scout_why *why) {
    (void)device, (void)queue, (void)why;
    return SCOUT_OK;
}

static scout_answer special(scout_device *device, uint64_t operations, uint64_t *done, void *queue, scout_why *why) {
    (void)device, (void)queue, (void)why;
    *done = cpu_stream_special(operations);
    return SCOUT_OK;
}

static scout_answer arithmetic(scout_device *device, uint32_t type, uint64_t flops, uint64_t *done, void *queue,
                               scout_why *why) {
    (void)device, (void)queue;
    return cpu_arithmetic_run(type, flops, done, why);
}

static double datasheet(const scout_identity *identity, uint32_t type, int tf32) {
    (void)identity, (void)type, (void)tf32;
    return 0; /* makers of processors do not publish such figures */
}

/* --- the tables --- */

#define ADDRESS(name) &(name),
static const scout_reference *const references[] = {CPU_REFERENCES(ADDRESS)};

static scout_device_api the_api = {
    /* written once, for the resolution that is measured and the candidates */
    .size = sizeof(scout_device_api),
    .name = "cpu",
    .count = count,
    .identify = identify,
    .open = open_device,
    .close = close_device,
    .memory = memory,
    .alloc = alloc,
    .release = release,
    .upload = copy,
    .download = copy,
    .fill = fill,
    .checksum = checksum,
    .record = record,
    .run = run,
    .drop = drop,
    .now = now,
    .pause = pause_device,
    .telemetry = telemetry,
    .stream = stream,
    .empty = empty,
    .special = special,
    .arithmetic = arithmetic,
    .datasheet = datasheet,
    .reference_count = sizeof references / sizeof references[0],
    .references = references,
    .note = libraries_note,
    .stolen = stolen,
    .trace = trace,
    .forget = forget,
};
static pthread_once_t the_once = PTHREAD_ONCE_INIT;

static void complete(void) {
    the_api.resolution_s = cpu_telemetry_resolution();
    the_api.candidates = cpu_small_candidates(&the_api.candidate_count);
}

void cpu_device_prepare(void) { cpu_team_prepare(); }

const scout_device_api *cpu_device_api(void) {
    (void)pthread_once(&the_once, complete);
    return &the_api;
}
