/* Candidates for the scripted device that fail, each in its own way, and would be the fastest if they did not. Which of
 * them are there says CEILING_SCOUT_FAULTS ("hang,wrong"); the first ones, up to late_bounds, where it is not set. A
 * name that begins with late_ is right until it is timed; restless is right, and takes longer or shorter by chance;
 * writer is right, and a while after it was timed first, a thread of it writes into an input that it was given, for as
 * long as the process lives; parent is right, and leaves a process behind that changed its session and lost its parent;
 * moved is right until its output lies elsewhere than at first. */
#include "tests/fakes/scripted/scripted.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

struct scout_plan {
    const scout_op *op;
    gemm_problem problem;
    scripted_stream *stream;
    uint64_t random, launches;
    const void *output; /* of its first launch */
    int fault;
};

typedef enum fault {
    HANG,
    CRASH,
    WRONG,
    BOUNDS,
    CANARY,
    INPUT,
    MEMORY,
    HOG,
    EXIT,
    FRAMES,
    LATE_CRASH,
    LATE_HANG,
    LATE_BOUNDS,
    RESTLESS,
    WRITER,
    PARENT,
    MOVED,
    FAULTS
} fault;

static const char *const names[FAULTS] = {
    [HANG] = "fault_hang",
    [CRASH] = "fault_crash",
    [WRONG] = "fault_wrong",
    [BOUNDS] = "fault_bounds",
    [CANARY] = "fault_canary",
    [INPUT] = "fault_input",
    [MEMORY] = "fault_memory",
    [HOG] = "fault_hog",
    [EXIT] = "fault_exit",
    [FRAMES] = "fault_frames",
    [LATE_CRASH] = "fault_late_crash",
    [LATE_HANG] = "fault_late_hang",
    [LATE_BOUNDS] = "fault_late_bounds",
    [RESTLESS] = "fault_restless",
    [WRITER] = "fault_writer",
    [PARENT] = "fault_parent",
    [MOVED] = "fault_moved",
};

static _Noreturn void hang(void) {
    for (;;) pause();
}

static void crash(void) {
    volatile int *volatile nowhere = NULL;
    fprintf(stderr, "about to write to nowhere\n");
    *nowhere = 1;
}

static void garble_all_descriptors(void) {
    static const char garbage[64] = "this is no frame";
    for (int fd = 3; fd < 64; fd++) {
        const ssize_t ignored = write(fd, garbage, sizeof garbage);
        (void)ignored;
    }
}

/* All the memory that there is, touched and kept. */
static void hog(void) {
    enum { PIECE = 1 << 20 };
    struct rlimit limit = {256u << 20, 256u << 20};
    getrlimit(RLIMIT_AS, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) limit.rlim_cur = 2ul << 30;
    setrlimit(RLIMIT_AS, &limit);
    for (size_t piece = PIECE; piece >= 16; piece /= 2)
        for (char *p; (p = malloc(piece)) != NULL;) p[0] = p[piece - 1] = 1;
}

static volatile float *volatile written;

static void *write_on(void *nothing) {
    usleep(20000);
    for (;; usleep(100)) written[0] += 1;
    return nothing;
}

static void begin_to_write(void) {
    static pthread_t thread;
    if (!thread) pthread_create(&thread, NULL, write_on, NULL);
}

static void leave_a_child(void) {
    static int left;
    if (left++ > 0 || fork() > 0) return;
    setsid();
    if (fork() > 0) _exit(0);
    signal(SIGTERM, SIG_IGN);
    sleep(60);
    _exit(0);
}

static float *end_of_output(const scout_plan *p, void *const *tensors) {
    return (float *)tensors[GEMM_C] + p->op->tensors[GEMM_C].bytes / sizeof(float);
}

static void compute(void *plan, void *const *tensors, void *workspace) {
    scout_plan *p = plan;
    float *c = tensors[GEMM_C];
    (void)workspace;
    scripted_multiply(&p->problem, tensors[GEMM_A], tensors[GEMM_B], c);
    switch ((fault)p->fault) {
    case HANG: hang();
    case CRASH: crash(); break;
    case WRONG: c[p->problem.m * p->problem.n / 2] += 1; break; /* one element */
    case BOUNDS:
        for (int k = 0; k < 8; k++) end_of_output(p, tensors)[k] = 1;
        p->stream->poison(p->stream);
        break;
    case CANARY: end_of_output(p, tensors)[0] = 1; break;
    case INPUT: ((float *)tensors[GEMM_A])[0] += 1; break;
    case EXIT: exit(0);
    case FRAMES: garble_all_descriptors(); break;
    case WRITER: written = tensors[GEMM_A]; break;
    case PARENT: leave_a_child(); break;
    default: break;
    }
}

static void timed(void *plan) {
    scout_plan *p = plan;
    if (p->fault == LATE_CRASH) crash();
    if (p->fault == LATE_HANG) hang();
    if (p->fault == WRITER) begin_to_write();
    if (p->fault == LATE_BOUNDS) p->stream->poison(p->stream);
    if (p->fault == RESTLESS)
        p->random = (p->launches++ / 2000 + 1) * UINT64_C(0x9e3779b97f4a7c15); /* alike for a while */
}

static scout_answer prepare(int which, const scout_op *op, scout_plan **plan, scout_plan_needs *needs, scout_why *why) {
    if (which == HOG) hog();
    scout_plan *p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    *p = (scout_plan){.op = op, .problem = gemm_problem_of(op), .random = 12345, .fault = which};
    needs->packs = which == MEMORY ? GEMM_B + 1 : 0;
    needs->pack_bytes = which == MEMORY ? (uint64_t)1 << 40 : 0;
    needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    (void)plan, (void)weight, (void)packed, (void)stream;
    return scout_say(why, SCOUT_FAILED, "error", "no device has so much memory");
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scripted_work w = scripted_work_of(plan->op, args);
    plan->stream = args->stream;
    if (!plan->output) plan->output = args->tensors[GEMM_C];
    if (plan->fault == MOVED && plan->output != args->tensors[GEMM_C])
        return scout_say(why, SCOUT_FAILED, "error", "its output lies elsewhere than at first");
    w.compute = compute;
    w.timed = timed;
    w.plan = plan;
    w.factor = plan->fault == RESTLESS ? 0.7 : 1.01;
    w.noise = plan->fault == RESTLESS ? 0.2 : 0.002;
    w.random = &plan->random;
    return plan->stream->push(plan->stream, &w, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"fault\": \"%s\"}", names[plan->fault]);
}

static void destroy(scout_plan *plan) { free(plan); }

/* prepare is not told which candidate it is: one function each. */
#define PREPARE(which, name)                                                                                           \
    static scout_answer name(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,       \
                             scout_plan_needs *needs, scout_why *why) {                                                \
        (void)device, (void)values;                                                                                    \
        return prepare(which, op, plan, needs, why);                                                                   \
    }
PREPARE(HANG, prepare_hang)
PREPARE(CRASH, prepare_crash)
PREPARE(WRONG, prepare_wrong)
PREPARE(BOUNDS, prepare_bounds)
PREPARE(CANARY, prepare_canary)
PREPARE(INPUT, prepare_input)
PREPARE(MEMORY, prepare_memory)
PREPARE(HOG, prepare_hog)
PREPARE(EXIT, prepare_exit)
PREPARE(FRAMES, prepare_frames)
PREPARE(LATE_CRASH, prepare_late_crash)
PREPARE(LATE_HANG, prepare_late_hang)
PREPARE(LATE_BOUNDS, prepare_late_bounds)
PREPARE(RESTLESS, prepare_restless)
PREPARE(WRITER, prepare_writer)
PREPARE(PARENT, prepare_parent)
PREPARE(MOVED, prepare_moved)

typedef scout_answer prepare_fn(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why);
static prepare_fn *const prepares[FAULTS] = {
    prepare_hang,        prepare_crash,    prepare_wrong,  prepare_bounds, prepare_canary,     prepare_input,
    prepare_memory,      prepare_hog,      prepare_exit,   prepare_frames, prepare_late_crash, prepare_late_hang,
    prepare_late_bounds, prepare_restless, prepare_writer, prepare_parent, prepare_moved};

/* Whether "crash" stands in "hang,crash". */
static int wanted(const char *list, const char *name, int otherwise) {
    const size_t n = strlen(name);
    if (!list) return otherwise;
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0) return 1;
    return 0;
}

scout_plugin_entry_fn scout_plugin_entry;
const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static const char *const precisions[] = {"fp32", NULL};
    static scout_candidate all[FAULTS];
    static const scout_candidate *list[FAULTS];
    static scout_plugin plugin = {.size = sizeof plugin, .abi = SCOUT_ABI, .name = "faults", .version = "1"};
    plugin.for_device = "scripted";
    plugin.candidates = list;
    plugin.candidate_count = 0;
    for (int k = 0; k < FAULTS; k++) {
        if (!wanted(getenv("CEILING_SCOUT_FAULTS"), names[k] + strlen("fault_"), k < RESTLESS)) continue;
        all[k] = (scout_candidate){.size = sizeof all[k],
                                   .kind = SCOUT_GEMM,
                                   .flags = SCOUT_OWN,
                                   .priority = 80,
                                   .name = names[k],
                                   .about = "fails on purpose",
                                   .approach = "CUSTOM_KERNEL",
                                   .precisions = precisions,
                                   .supports = scripted_supports,
                                   .prepare = prepares[k],
                                   .pack = pack,
                                   .launch = launch,
                                   .describe = describe,
                                   .destroy = destroy};
        list[plugin.candidate_count++] = &all[k];
    }
    return abi == SCOUT_ABI && plugin.candidate_count > 0 ? &plugin : NULL;
}
