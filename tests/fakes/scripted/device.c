/* The scripted device's own half: memory, clock, sequences, probes. The clock moves by what work says that it takes,
 * plus a launch; memory that was touched within the last CACHE_BYTES of traffic is moved faster. So every figure of a
 * measurement is known beforehand, and a whole one takes milliseconds.
 *
 * Environment, for the tests: CEILING_SCOUT_SCRIPTED_LOST=FILE (the devices whose numbers stand in that file are lost
 * from the moment it is there), CEILING_SCOUT_SCRIPTED_SLOW_US=N (every run really takes so long),
 * CEILING_SCOUT_SCRIPTED_DISTURBED=FILE (while it is there, intervals are longer than they are, by chance),
 * CEILING_SCOUT_SCRIPTED_REFUSES=FILE (while it is there, the library prepares nothing),
 * CEILING_SCOUT_SCRIPTED_BESIDE=FILE (other threads prepare beside the one that measures; it gets a line for each of
 * their plans), CEILING_SCOUT_SCRIPTED_SLOW_BESIDE=M:US (a plan for M rows takes them so long),
 * CEILING_SCOUT_SCRIPTED_SLOW_PLANS=US (any plan takes the first thread so long),
 * CEILING_SCOUT_SCRIPTED_PROFILE=FILE (gets a line for what a profiler would have seen: how many
 * launches, and the time of the last one), CEILING_SCOUT_SCRIPTED_TIMER=X:N (from the Nth on, a run is said to have
 * taken X seconds), CEILING_SCOUT_SCRIPTED_ADDRESSES=X (with memory anew, everything takes up to that part longer, by
 * chance), CEILING_SCOUT_SCRIPTED_CLOCK=X:N (from the Nth question on, it is X o'clock). */
#include "tests/fakes/scripted/device.h"

#include <string.h>
#include <unistd.h>

enum { DEVICES = 4, MEMORY_BYTES = 64 << 20, CACHE_BYTES = 1 << 20, TOUCHED = 1 << 14 };

static const double launch_s = 20e-6, cold_bytes_per_s = 1e9, warm_bytes_per_s = 4e9, special_per_s = 1e9;
static const double arithmetic_per_s = 1.3 * SCRIPTED_FLOPS_PER_S;

struct scout_device {
    scripted_stream stream; /* first: a stream is its device */
    int32_t ordinal;
    bool poisoned;
    double now_s;
    uint64_t used_bytes, random, runs, asked; /* asked: for the time */
    uint64_t places;                          /* what chance says of the last ones */
    double slower;                            /* by this part, there */
    scout_sequence *recording;
    bool watched; /* by a profiler */
    int seen;
    double seen_s;
    uint64_t traffic_bytes;
    struct {
        const void *memory;
        uint64_t at_bytes;
    } touched[TOUCHED];
};

struct scout_sequence {
    bool graph;
    uint32_t launches;
    scout_enqueue enqueue;
    void *context;
    scripted_work *work; /* owned */
    size_t count, room;
};

static bool is_lost(int32_t ordinal) {
    const char *path = getenv("CEILING_SCOUT_SCRIPTED_LOST");
    char text[64] = "", number[12];
    FILE *f = path ? fopen(path, "re") : NULL;
    if (!f) return false;
    const bool read = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    snprintf(number, sizeof number, "%d", (int)ordinal);
    return read && strstr(text, number) != NULL;
}

static scout_answer check(const scout_device *d, scout_why *why) {
    if (is_lost(d->ordinal)) return scout_say(why, SCOUT_LOST, "device_lost", "the scripted device is gone");
    if (d->poisoned) return scout_say(why, SCOUT_LOST, "poisoned", "the scripted device is poisoned");
    return SCOUT_OK;
}

/* ---- identity and life ---- */

static int32_t count(scout_why *why) {
    (void)why;
    return DEVICES;
}

static scout_answer identify(int32_t ordinal, scout_identity *out, scout_why *why) {
    if (is_lost(ordinal)) return scout_say(why, SCOUT_NO, "device_lost", "the scripted device is gone");
    out->ordinal = ordinal;
    snprintf(out->name, sizeof out->name, "Scripted One");
    snprintf(out->uuid, sizeof out->uuid, "scripted-%d", (int)ordinal);
    snprintf(out->capability, sizeof out->capability, "1.0");
    snprintf(out->driver, sizeof out->driver, "7.1");
    out->units = 4;
    out->memory_bytes = MEMORY_BYTES;
    out->cache_bytes = CACHE_BYTES;
    out->power_limit_w = 100;
    out->library_count = 1;
    snprintf(out->libraries[0].name, sizeof out->libraries[0].name, "scriptlib");
    snprintf(out->libraries[0].version, sizeof out->libraries[0].version, "1.2.3");
    return SCOUT_OK;
}

static scout_answer push(scripted_stream *s, const scripted_work *work, scout_why *why) {
    scout_sequence *q = ((scout_device *)s)->recording;
    if (!q) return scout_say(why, SCOUT_FAILED, "error", "work outside of a sequence");
    if (q->count == q->room) {
        const size_t room = q->room ? q->room * 2 : 16;
        scripted_work *bigger = realloc(q->work, room * sizeof *bigger);
        if (!bigger) return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
        q->work = bigger;
        q->room = room;
    }
    q->work[q->count++] = *work;
    return SCOUT_OK;
}

static void poison(scripted_stream *s) { ((scout_device *)s)->poisoned = true; }

static scout_answer open_device(int32_t ordinal, scout_device **out, scout_why *why) {
    if (is_lost(ordinal)) return scout_say(why, SCOUT_NO, "device_lost", "the scripted device is gone");
    scout_device *d = calloc(1, sizeof *d);
    if (!d) return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
    d->stream = (scripted_stream){push, poison};
    d->ordinal = ordinal;
    *out = d;
    return SCOUT_OK;
}

static void close_device(scout_device *d) { free(d); }

/* ---- memory ---- */

static double chance(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / 9007199254740992.0;
}

typedef struct block { /* in front of what is handed out, a page before it */
    uint64_t bytes;
} block;
enum { FRONT = 4096 };

static scout_answer memory(scout_device *d, uint64_t *free_bytes, uint64_t *total_bytes, scout_why *why) {
    *total_bytes = MEMORY_BYTES;
    *free_bytes = MEMORY_BYTES - d->used_bytes;
    return check(d, why);
}

static scout_answer alloc(scout_device *d, uint64_t bytes, void **out, scout_why *why) {
    const scout_answer answer = check(d, why);
    if (answer != SCOUT_OK) return answer;
    if (bytes > MEMORY_BYTES - d->used_bytes)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "%llu bytes are more than the scripted device has left",
                         (unsigned long long)bytes);
    char *memory_block = aligned_alloc(FRONT, FRONT + (bytes + FRONT - 1) / FRONT * FRONT);
    if (!memory_block) return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
    ((block *)(void *)memory_block)->bytes = bytes;
    d->used_bytes += bytes;
    *out = memory_block + FRONT;
    const char *most = getenv("CEILING_SCOUT_SCRIPTED_ADDRESSES");
    if (most) d->slower = strtod(most, NULL) * chance(&d->places);
    return SCOUT_OK;
}

static void release(scout_device *d, void *p) {
    if (!p) return;
    char *front = (char *)p - FRONT;
    d->used_bytes -= ((block *)(void *)front)->bytes;
    free(front);
}

static scout_answer copy(scout_device *d, void *to, const void *from, uint64_t bytes, scout_why *why) {
    const scout_answer answer = check(d, why);
    if (answer == SCOUT_OK) memcpy(to, from, bytes);
    return answer;
}

static scout_answer fill(scout_device *d, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                         scout_why *why) {
    const scout_answer answer = check(d, why);
    (void)type; /* only bandwidth probes use others, and they are not read */
    if (answer == SCOUT_OK) scripted_fill(to, bytes, how, seed);
    return answer;
}

static scout_answer checksum(scout_device *d, const void *data, uint64_t bytes, uint64_t *sum, scout_why *why) {
    const unsigned char *b = data;
    uint64_t h = bytes, word;
    for (uint64_t k = 0; k < bytes; k += sizeof word) {
        word = 0;
        memcpy(&word, b + k, bytes - k < sizeof word ? bytes - k : sizeof word);
        h = (h ^ word) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    *sum = h;
    return check(d, why);
}

/* ---- sequences ---- */

static scout_answer capture(scout_device *d, scout_sequence *q, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    q->count = 0;
    d->recording = q;
    for (uint32_t k = 0; k < q->launches && answer == SCOUT_OK; k++)
        answer = q->enqueue(q->context, k, &d->stream, why);
    d->recording = NULL;
    return answer;
}

static void drop(scout_device *d, scout_sequence *q) {
    (void)d;
    if (!q) return;
    free(q->work);
    free(q);
}

static scout_answer record(scout_device *d, int graph, uint32_t launches, scout_enqueue enqueue, void *context,
                           scout_sequence **out, scout_why *why) {
    scout_answer answer = check(d, why);
    if (answer != SCOUT_OK) return answer;
    scout_sequence *q = calloc(1, sizeof *q);
    if (!q) return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
    *q = (scout_sequence){.graph = graph != 0, .launches = launches, .enqueue = enqueue, .context = context};
    if (q->graph) answer = capture(d, q, why);
    if (answer == SCOUT_OK) {
        *out = q;
    } else {
        drop(d, q);
    }
    return answer;
}

/* Seconds to move it, and remembers that it was there. */
static double touch(scout_device *d, const void *p, uint64_t bytes) {
    const size_t place = (size_t)(((uintptr_t)p >> 9) * 0x9e3779b97f4a7c15u >> 50);
    const bool warm = d->touched[place].memory == p && d->traffic_bytes - d->touched[place].at_bytes <= CACHE_BYTES;
    d->traffic_bytes += bytes;
    d->touched[place].memory = p;
    d->touched[place].at_bytes = d->traffic_bytes - bytes;
    return (double)bytes / (warm ? warm_bytes_per_s : cold_bytes_per_s);
}

static double take(scout_device *d, const scripted_work *w) {
    double moving_s = 0, noise = 0;
    for (int k = 0; k < SCOUT_MAX_TENSORS; k++)
        if (w->bytes[k] > 0) moving_s += touch(d, w->tensors[k], w->bytes[k]);
    if (w->random) noise = w->noise * ((double)(scripted_random(w->random) >> 11) * 0x1p-52 - 1);
    return launch_s + fmax(moving_s, w->compute_s) * w->factor * (1 + noise) * (1 + d->slower);
}

/* What the variable says from the Nth time on, else what is so. */
static double said(const char *variable, uint64_t times, double really) {
    const char *text = getenv(variable), *colon = text ? strchr(text, ':') : NULL;
    return colon && times >= strtoull(colon + 1, NULL, 10) ? strtod(text, NULL) : really;
}

/* What other work adds to an interval: from nothing to three times as much. */
static double stray(uint64_t *state) { return 3 * chance(state); }

static scout_answer run(scout_device *d, scout_sequence *q, uint32_t repeats, double *seconds, scout_why *why) {
    const char *slow = getenv("CEILING_SCOUT_SCRIPTED_SLOW_US");
    const char *noise = getenv("CEILING_SCOUT_SCRIPTED_DISTURBED");
    const bool disturbed = noise && access(noise, F_OK) == 0;
    const bool real = q->launches == 1 && repeats == 1;
    scout_answer answer = check(d, why);
    d->runs++;
    if (slow) usleep((useconds_t)strtoul(slow, NULL, 10));
    for (uint32_t r = 0; r < repeats && answer == SCOUT_OK; r++) {
        const double began_s = d->now_s;
        if (!q->graph) answer = capture(d, q, why);
        for (size_t k = 0; k < q->count && answer == SCOUT_OK; k++) {
            const scripted_work *w = &q->work[k];
            if (real && w->compute) w->compute(w->plan, w->tensors, w->workspace);
            if (!real && w->timed) w->timed(w->plan);
            d->seen_s = take(d, w);
            d->seen += d->watched;
            d->now_s += d->seen_s;
        }
        if (disturbed) d->now_s += stray(&d->random) * (d->now_s - began_s);
        seconds[r] = said("CEILING_SCOUT_SCRIPTED_TIMER", d->runs, d->now_s - began_s);
        if (answer == SCOUT_OK) answer = check(d, why);
    }
    return answer;
}

static scout_answer made_of(scout_device *d, scout_sequence *q, scout_composition *out, scout_why *why) {
    (void)d;
    if (!q->graph) return scout_say(why, SCOUT_NO, "capture", "it is no graph");
    out->kernels = (uint32_t)q->count;
    return SCOUT_OK;
}

static double now(scout_device *d) { return said("CEILING_SCOUT_SCRIPTED_CLOCK", ++d->asked, d->now_s); }
static void pause_device(scout_device *d, double seconds) { d->now_s += seconds; }

static void telemetry(scout_device *d, scout_telemetry *out) {
    (void)d;
    out->clock_mhz = 1000;
    out->memory_clock_mhz = 500;
    out->power_w = 90;
    out->temperature_c = 50;
    out->throttle = 0;
    out->throttle_text[0] = 0;
}

/* ---- probes ---- */

static scout_answer probe(void *stream, const scripted_work *w, scout_why *why) {
    scripted_stream *s = stream;
    return s->push(s, w, why);
}

static scout_answer stream_probe(scout_device *d, const void *from, uint64_t read_bytes, void *to,
                                 uint64_t written_bytes, void *stream, scout_why *why) {
    scripted_work w = {.factor = 1, .bytes = {read_bytes, written_bytes}};
    (void)d;
    w.tensors[0] = (void *)(uintptr_t)from;
    w.tensors[1] = to;
    return probe(stream, &w, why);
}

static scout_answer empty_probe(scout_device *d, void *stream, scout_why *why) {
    const scripted_work w = {.factor = 1};
    (void)d;
    return probe(stream, &w, why);
}

static scout_answer special_probe(scout_device *d, uint64_t operations, uint64_t *done, void *stream, scout_why *why) {
    const scripted_work w = {.factor = 1, .compute_s = (double)operations / special_per_s};
    (void)d;
    *done = operations;
    return probe(stream, &w, why);
}

static scout_answer arithmetic_probe(scout_device *d, uint32_t type, uint64_t flops, uint64_t *done, void *stream,
                                     scout_why *why) {
    const scripted_work w = {.factor = 1, .compute_s = (double)flops / arithmetic_per_s};
    (void)d;
    if (type != SCOUT_FP32) return scout_say(why, SCOUT_NO, "type", "the scripted device computes in fp32 only");
    *done = flops;
    return probe(stream, &w, why);
}

static double datasheet(const scout_identity *identity, uint32_t type, int tf32) {
    (void)identity;
    if (type == SCOUT_NONE) return cold_bytes_per_s * 1e-12;
    return type == SCOUT_FP32 && !tf32 ? arithmetic_per_s * 1e-12 : 0;
}

static const scout_reference *const references[] = {&scripted_reference};
static const scout_candidate *const candidates[] = {&scripted_blas, &scripted_stream_k, &scripted_sparse,
                                                    &scripted_absent};

/* What a run of it takes, work by work. CEILING_SCOUT_SCRIPTED_UNTRACED: there is no tracer. */
static scout_answer trace(scout_device *d, uint32_t launches, scout_enqueue enqueue, void *context, uint32_t most,
                          scout_trace_event *events, uint32_t *seen, scout_why *why) {
    scout_sequence q = {.graph = true, .launches = 1, .enqueue = enqueue, .context = context};
    scout_answer answer = check(d, why);
    if (getenv("CEILING_SCOUT_SCRIPTED_UNTRACED")) return scout_say(why, SCOUT_NO, "library", "it has no tracer");
    *seen = 0;
    for (uint32_t k = 0; k < launches && answer == SCOUT_OK; k++) {
        q.count = 0;
        d->recording = &q;
        answer = enqueue(context, k, &d->stream, why);
        d->recording = NULL;
        for (size_t n = 0; n < q.count && answer == SCOUT_OK && *seen < most; n++) {
            scout_trace_event *e = &events[(*seen)++];
            e->start_s = d->now_s, e->launch = k;
            snprintf(e->name, sizeof e->name, "work %zu", n);
            d->now_s += take(d, &q.work[n]) - launch_s;
            e->end_s = d->now_s;
            d->now_s += launch_s;
        }
    }
    free(q.work);
    return answer;
}

static void profile(scout_device *d, int on) {
    const char *path = getenv("CEILING_SCOUT_SCRIPTED_PROFILE");
    FILE *f = path && !on ? fopen(path, "ae") : NULL;
    if (f) fprintf(f, "%d launches, %.0f us\n", d->seen, 1e6 * d->seen_s);
    if (f) fclose(f);
    d->watched = on;
    d->seen = 0;
}

static scout_answer beside(scout_device *d, scout_why *why) { return check(d, why); }

/* A worker's first thread is the one that measures. */
void scripted_prepares(const scout_op *op) {
    const char *path = getenv("CEILING_SCOUT_SCRIPTED_BESIDE");
    const char *slow = getenv("CEILING_SCOUT_SCRIPTED_SLOW_BESIDE"), *colon = slow ? strchr(slow, ':') : NULL;
    if (gettid() == getpid()) {
        const char *each = getenv("CEILING_SCOUT_SCRIPTED_SLOW_PLANS");
        if (each) usleep((useconds_t)strtoul(each, NULL, 10));
        return;
    }
    if (colon && op->shape[0] == strtol(slow, NULL, 10)) usleep((useconds_t)strtoul(colon + 1, NULL, 10));
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (f) fprintf(f, "%lld,%lld,%lld\n", (long long)op->shape[0], (long long)op->shape[1], (long long)op->shape[2]);
    if (f) fclose(f);
}

scout_device_api scripted_device = {
    .size = sizeof(scout_device_api),
    .name = "scripted",
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
    .has_graphs = 1,
    .resolution_s = 1e-8,
    .now = now,
    .pause = pause_device,
    .telemetry = telemetry,
    .stream = stream_probe,
    .empty = empty_probe,
    .special = special_probe,
    .arithmetic = arithmetic_probe,
    .datasheet = datasheet,
    .reference_count = 1,
    .candidate_count = sizeof candidates / sizeof candidates[0],
    .references = references,
    .candidates = candidates,
    .profile = profile,
    .made_of = made_of,
    .beside = beside,
    .trace = trace,
};
