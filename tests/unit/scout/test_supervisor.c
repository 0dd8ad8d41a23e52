/* The supervisor against workers that do whatever the job says (odd_worker.h): this program is its own worker. */
#include "common/json.h"
#include "scout/worker/frames.h"
#include "scout/worker/supervisor.h"
#include "scout/worker/supervisor_internal.h"
#include "scout/worker/worker.h"
#include "tests/fakes/odd_worker.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static status st;

enum { MAX_JOBS = 64 };

typedef struct plan { /* of a run: one job per text */
    const char *const *jobs;
    int count, given, finished, restarts, parts;
    json_t *results[MAX_JOBS]; /* owned */
    status why[MAX_JOBS];
    int device[MAX_JOBS];
    char said[512], all_said[8192];
    volatile int stop;
    int stop_after;
} plan;

static json_t *next(void *context, int device, int *job) {
    plan *p = context;
    (void)device;
    if (p->given == p->count) return NULL;
    json_t *body = json_loads(p->jobs[p->given], 0, NULL);
    UNIT_CHECK(body != NULL);
    *job = p->given++;
    return body;
}

static void finished(void *context, int device, int job, const json_t *result, const status *why) {
    plan *p = context;
    if (json_object_get(result, "parts")) {
        p->parts++;
        UNIT_CHECK(job == 0 && device == 0 && why->code == STATUS_OK && json_get_int(result, "ceilings", 0) == 7);
        return;
    }
    p->finished++;
    p->results[job] = json_deep_copy(result);
    p->why[job] = *why;
    p->device[job] = device;
    if (p->stop_after && p->finished == p->stop_after) p->stop = 1;
}

static void watch(void *context, supervisor_event_kind kind, int device, int job, const char *candidate,
                  const char *variant, const char *text) {
    plan *p = context;
    (void)device, (void)job, (void)candidate, (void)variant;
    if (kind != SUPERVISOR_RESTART) return;
    p->restarts++;
    snprintf(p->said, sizeof p->said, "%s", text);
    const size_t used = strlen(p->all_said);
    snprintf(p->all_said + used, sizeof p->all_said - used, "%s\n", text);
}

static supervisor_options options_for(const char *devices, int plugins) {
    static const char *const files[] = {"/some/file.so"};
    return (supervisor_options){
        .program = "/proc/self/exe", .devices = devices, .plugins = files, .plugin_count = plugins, .start_seconds = 5};
}

static bool run_jobs(plan *p, const char *devices, int plugins) {
    const supervisor_options options = options_for(devices, plugins);
    supervisor *s = supervisor_new(&options, &st);
    if (!UNIT_CHECK(s != NULL)) {
        printf("    %s\n", st.text);
        return false;
    }
    const bool good = supervisor_run(s, next, finished, watch, p, &p->stop, &st);
    supervisor_free(s);
    UNIT_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD); /* nothing is left */
    return good;
}

static void forget(plan *p) {
    for (int k = 0; k < MAX_JOBS; k++) json_decref(p->results[k]);
}

static const json_t *exclusion(const plan *p, int job, size_t k) {
    return json_array_get(json_object_get(p->results[job], "exclusions"), k);
}

static void one_fault(const char *what, const char *want_status, const char *want_code, const char *want_text) {
    char first[128];
    snprintf(first, sizeof first, "{\"what\": \"measure\", \"do\": \"%s\"}", what);
    const char *jobs[] = {first, "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 2};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.finished, 2);
    UNIT_INT(p.restarts, 2); /* and once more alone */
    UNIT_INT(json_array_size(json_object_get(p.results[0], "exclusions")), 1);
    UNIT_INT(json_array_size(json_object_get(p.results[1], "exclusions")), 0);
    const json_t *e = exclusion(&p, 0, 0);
    UNIT_TEXT(json_get_text(e, "name"), "x");
    UNIT_TEXT(json_get_text(e, "variant"), "v=1");
    UNIT_TEXT(json_get_text(e, "status"), want_status);
    UNIT_TEXT(json_get_text(e, "code"), want_code);
    if (!UNIT_CHECK(strstr(json_get_text(e, "text"), want_text) != NULL)) printf("    %s\n", json_get_text(e, "text"));
    forget(&p);
}

static void faults(void) {
    one_fault("crash", "CRASHED", "signal",
              "signal 11 (Segmentation fault) (running); its last message: the last words");
    one_fault("hang", "TIMEOUT", "deadline", "no heartbeat for 1 s and was ended (running)");
    one_fault("leave", "CRASHED", "exit", "code 3 (running)");
    one_fault("lose", "CRASHED", "poisoned", "the device is poisoned (running)");
    one_fault("garbage", "CRASHED", "exit", "damaged");
    one_fault("forked", "CRASHED", "exit", "code 7");
    one_fault("let_go", "CRASHED", "exit", "closed its connection and did not end (running)");
}

/* A job that goes wrong so many times, and how many exclusions it ends with. */
static void some_times(const char *what, int times, int want_restarts, size_t want_exclusions, const char *want_said) {
    char job[128], path[] = "/tmp/unit_supervisor_XXXXXX";
    close(mkstemp(path));
    setenv("FAKE_COUNT", path, 1);
    snprintf(job, sizeof job, "{\"what\": \"measure\", \"do\": \"%s\", \"times\": %d}", what, times);
    const char *jobs[] = {job};
    plan p = {.jobs = jobs, .count = 1};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    if (!UNIT_INT(p.restarts, want_restarts)) printf("    %s, %d times: %s\n", what, times, p.said);
    UNIT_INT(json_array_size(json_object_get(p.results[0], "exclusions")), want_exclusions);
    if (!UNIT_CHECK(strstr(p.all_said, want_said) != NULL)) printf("    %s\n", p.all_said);
    if (want_exclusions > 0 && strcmp(what, "crash") != 0)
        UNIT_TEXT(json_get_text(exclusion(&p, 0, 0), "code"), "killed");
    forget(&p);
    unsetenv("FAKE_COUNT");
    unlink(path);
}

/* What fails once and does well alone is not to blame; nor what was ended or stopped from outside, if that has an end.
 */
static void blamed_only_alone(void) {
    some_times("crash", 1, 1, 0, "signal 11");
    some_times("crash", 2, 2, 1, "signal 11");
    some_times("kill", 1, 1, 0, "signal 9 (Killed) (running); it is measured again");
    some_times("stop", 2, 2, 0, "its process was stopped from outside and was ended (running); it is measured again");
    some_times("kill", 4, 5, 0, "something kills the workers of this run");
    some_times("kill", 100, 7, 1, "something kills the workers of this run");
}

/* What was lost beside others is done again alone: then nothing is at fault, and from there on all is done so. */
static void what_is_prepared_beside_blames_nobody(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"ahead\": [{}, {}]}",
                                       "{\"what\": \"measure\", \"do\": \"beside\", \"ahead\": [{}]}",
                                       "{\"what\": \"measure\", \"ahead\": [{}]}"};
    plan p = {.jobs = jobs, .count = 3};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.finished, 3);
    UNIT_INT(p.restarts, 1);
    UNIT_CHECK(strstr(p.said, "repeated alone") != NULL);
    UNIT_INT(json_get_int(p.results[0], "announced", -1), 2);
    UNIT_INT(json_get_int(p.results[1], "announced", -1), 0);
    UNIT_INT(json_get_int(p.results[2], "announced", -1), 0);
    UNIT_INT(json_array_size(json_object_get(p.results[1], "exclusions")), 0);
    forget(&p);
}

/* Where it is lost alone, too, that one is at fault, and what comes behind is announced as before. */
static void what_fails_alone_is_to_blame(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"crash\", \"ahead\": [{}]}",
                                       "{\"what\": \"measure\", \"ahead\": [{}]}"};
    plan p = {.jobs = jobs, .count = 2};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.finished, 2);
    UNIT_INT(p.restarts, 3); /* beside others, with nothing beside it, and alone */
    UNIT_INT(json_array_size(json_object_get(p.results[0], "exclusions")), 1);
    UNIT_TEXT(json_get_text(exclusion(&p, 0, 0), "variant"), "v=1");
    UNIT_INT(json_get_int(p.results[1], "announced", -1), 1);
    forget(&p);
}

static void parts_come_before_the_end(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"part\"}", "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 2};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.parts, 1);
    UNIT_INT(p.finished, 2);
    UNIT_CHECK(!p.results[0] && p.results[1]);
    UNIT_CHECK(strstr(p.why[0].text, "the rest cannot be done") != NULL);
    forget(&p);
}

static void no_faults(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"alive\"}",
                                       "{\"what\": \"measure\", \"do\": \"flood\"}",
                                       "{\"what\": \"measure\", \"do\": \"failed\"}", "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 4};
    unsetenv("GOMP_SPINCOUNT");
    UNIT_CHECK(run_jobs(&p, "fake:1", 0));
    UNIT_INT(p.finished, 4);
    UNIT_INT(p.restarts, 0);
    UNIT_CHECK(p.results[0] && p.results[1] && !p.results[2] && p.results[3]);
    UNIT_INT(p.why[2].code, STATUS_ENVIRONMENT);
    UNIT_CHECK(strstr(p.why[2].text, "this job cannot be done") != NULL);
    UNIT_CHECK(json_equal(json_object_get(p.results[0], "pid"), json_object_get(p.results[3], "pid")));
    UNIT_TEXT(json_get_text(p.results[3], "spin"), ""); /* only a device says what its threads do */
    forget(&p);
}

/* Its worker ends well, and nothing is said of it. */
static void a_job_may_ask_for_another_worker(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\"}", "{\"what\": \"measure\", \"anew\": true}",
                                       "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 3};
    UNIT_CHECK(run_jobs(&p, "fake:1", 0));
    UNIT_INT(p.finished, 3);
    UNIT_INT(p.restarts, 0);
    UNIT_CHECK(!json_equal(json_object_get(p.results[0], "pid"), json_object_get(p.results[1], "pid")));
    UNIT_CHECK(json_equal(json_object_get(p.results[1], "pid"), json_object_get(p.results[2], "pid")));
    forget(&p);
}

/* The first loss excludes the variant, the second one the candidate. */
static void variants(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"crash\", \"all\": true}"};
    plan p = {.jobs = jobs, .count = 1};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.restarts, 4);
    UNIT_INT(json_array_size(json_object_get(p.results[0], "exclusions")), 1);
    UNIT_TEXT(json_get_text(exclusion(&p, 0, 0), "variant"), "");
    forget(&p);
}

static void nobody_to_blame(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"crash\", \"nobody\": true}",
                                       "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 2};
    UNIT_CHECK(run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.restarts, 2);
    UNIT_CHECK(!p.results[0] && p.why[0].code == STATUS_ENVIRONMENT && strstr(p.why[0].text, "the last words"));
    UNIT_CHECK(p.results[1] != NULL); /* the device is none the worse */
    forget(&p);
}

static void row_is(const plan *p, int job, const char *name, const char *want_status, const char *want_code,
                   const char *want_text) {
    const json_t *rows = json_object_get(p->results[job], "candidates"), *row = NULL;
    int seen = 0;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        if (strcmp(json_get_text(json_array_get(rows, k), "name"), name) != 0) continue;
        row = json_array_get(rows, k);
        seen++;
    }
    if (!UNIT_INT(seen, 1)) printf("    %s\n", name);
    const json_t *reason = json_object_get(row, "reason");
    UNIT_TEXT(json_get_text(row, "status"), want_status);
    UNIT_TEXT(json_get_text(reason, "code"), want_code);
    if (!UNIT_CHECK(strstr(json_get_text(reason, "text"), want_text) != NULL))
        printf("    %s\n", json_get_text(reason, "text"));
    UNIT_CHECK(!json_object_get(row, "pass") == (strcmp(want_status, "OK") != 0));
}

static double time_of(const plan *p, int job, size_t k) {
    const json_t *row = json_array_get(json_object_get(p->results[job], "candidates"), k);
    return json_get_number(json_object_get(row, "pass"), "time_us");
}

/* Plugins' candidates, each in a worker of its own: what one does there to the baseline it did to itself. */
static void measured_apart(void) {
    static const char *const jobs[] = {
        "{\"what\": \"measure\", \"operation\": {\"op\": \"gemm\"}, \"times\": 1}",
        "{\"what\": \"measure\", \"operation\": {\"op\": \"gemm\"}, \"only\": \"q_wrong\"}",
        "{\"what\": \"measure\", \"operation\": {\"op\": \"norm\"}}",
        ("{\"what\": \"measure\", \"operation\": {\"op\": \"gemm\"}, \"pass\": 2, \"rows\": [{\"name\": \"library\"},"
         " {\"name\": \"q_fine\"}]}")};
    char path[] = "/tmp/unit_supervisor_XXXXXX";
    close(mkstemp(path));
    setenv("FAKE_COUNT", path, 1);
    plan p = {.jobs = jobs, .count = 4};
    UNIT_CHECK(run_jobs(&p, "fake:0", 1));
    UNIT_INT(json_array_size(json_object_get(p.results[0], "candidates")), 6);
    row_is(&p, 0, "library", "OK", "", "");
    row_is(&p, 0, "q_fine", "OK", "", "");
    UNIT_CHECK(fabs(time_of(&p, 0, 1) - 7.5) < 1e-9); /* at the baseline's time in the device's own worker */
    row_is(&p, 0, "q_crash", "CRASHED", "signal", "signal 11");
    row_is(&p, 0, "q_wrong", "WRONG", "samples", "one is off");
    row_is(&p, 0, "q_spoils", "WRONG", "samples", "beside it the default came out wrong");
    row_is(&p, 0, "q_once", "OK", "", "");
    UNIT_INT(p.restarts, 3); /* q_crash twice, q_once once */
    UNIT_INT(json_array_size(json_object_get(p.results[1], "candidates")), 2);
    row_is(&p, 1, "q_wrong", "WRONG", "samples", "one is off");
    UNIT_INT(json_array_size(json_object_get(p.results[2], "candidates")), 1);
    UNIT_INT(json_array_size(json_object_get(p.results[3], "candidates")), 2);
    row_is(&p, 3, "q_fine", "OK", "", "");
    forget(&p);
    unsetenv("FAKE_COUNT");
    unlink(path);
}

static void two_devices(void) {
    static const char *const job = "{\"what\": \"measure\", \"do\": \"alive\"}";
    const char *jobs[6];
    plan p = {.jobs = jobs, .count = 6};
    int used[2] = {0, 0};
    for (int k = 0; k < 6; k++) jobs[k] = job;
    UNIT_CHECK(run_jobs(&p, "fake:0,1", 0));
    for (int k = 0; k < 6; k++) used[p.device[k]]++;
    UNIT_INT(p.finished, 6);
    UNIT_INT(used[0], 3);
    UNIT_INT(used[1], 3);
    forget(&p);
}

/* A device that goes away: what it had in hand goes to the other one, and nothing is blamed for it. */
static void device_lost(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\", \"do\": \"open\"}", "{\"what\": \"measure\"}",
                                       "{\"what\": \"measure\"}"};
    char flag[64] = "/tmp/unit_supervisor_XXXXXX";
    const int fd = mkstemp(flag);
    close(fd);
    unlink(flag);
    setenv("FAKE_OUT", flag, 1);
    plan p = {.jobs = jobs, .count = 3};
    UNIT_CHECK(run_jobs(&p, "fake:0,fake:1", 0));
    UNIT_INT(p.finished, 3);
    for (int k = 0; k < 3; k++) UNIT_INT(json_array_size(json_object_get(p.results[k], "exclusions")), 0);
    UNIT_INT(p.device[0], 1);
    UNIT_CHECK(strstr(p.said, "fallen off") != NULL);
    forget(&p);

    unlink(flag);
    plan alone = {.jobs = jobs, .count = 3};
    st = (status){0};
    UNIT_CHECK(!run_jobs(&alone, "fake:0", 0));
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
    UNIT_CHECK(strstr(st.text, "fake:0 was lost: the device has fallen off") != NULL);
    UNIT_INT(alone.finished, 1);
    UNIT_CHECK(!alone.results[0] && alone.why[0].code == STATUS_ENVIRONMENT);
    unlink(flag);
    unsetenv("FAKE_OUT");
}

static void stopped(void) {
    static const char *const jobs[] = {"{\"what\": \"measure\"}", "{\"what\": \"measure\", \"do\": \"alive\"}",
                                       "{\"what\": \"measure\"}"};
    plan p = {.jobs = jobs, .count = 3, .stop_after = 1};
    UNIT_CHECK(!run_jobs(&p, "fake:0", 0));
    UNIT_INT(p.finished, 1);
    UNIT_CHECK(p.results[0] != NULL);
    forget(&p);
}

static void asked(void) {
    const supervisor_options options = options_for(NULL, 0);
    json_t *list = supervisor_ask(&options, "devices", NULL, &st);
    UNIT_INT(json_array_size(list), 3);
    json_decref(list);
    setenv("FAKE_MUTE", "1", 1); /* a library that never returns from loading */
    supervisor_options hasty = options;
    hasty.start_seconds = 1;
    UNIT_CHECK(!supervisor_ask(&hasty, "devices", NULL, &st));
    UNIT_CHECK(strstr(st.text, "no heartbeat for 1 s") && strstr(st.text, "what libraries print"));
    unsetenv("FAKE_MUTE");
    hasty.program = "/nonexistent/program";
    UNIT_CHECK(!supervisor_ask(&hasty, "devices", NULL, &st));
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
    UNIT_CHECK(strstr(st.text, "cannot be started") != NULL);
}

/* The kernel ends a worker whose supervisor was killed, even one that hangs. */
static void no_orphans(void) {
    int ends[2];
    int worker = 0, how;
    UNIT_INT(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        static const char *const jobs[] = {"{\"what\": \"measure\"}", "{\"what\": \"measure\", \"do\": \"hang\"}"};
        plan p = {.jobs = jobs, .count = 1};
        const supervisor_options options = options_for("fake:0", 0);
        supervisor *s = supervisor_new(&options, &st);
        if (!s || !supervisor_run(s, next, finished, NULL, &p, NULL, &st)) _exit(1);
        worker = (int)json_integer_value(json_object_get(p.results[0], "pid"));
        if (write(ends[1], &worker, sizeof worker) < 0) _exit(1);
        for (;;) pause();
    }
    UNIT_INT(read(ends[0], &worker, sizeof worker), sizeof worker);
    UNIT_CHECK(worker > 0 && kill(worker, 0) == 0);
    kill(pid, SIGKILL);
    waitpid(pid, &how, 0);
    char path[64], state[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", worker);
    bool gone = false;
    for (int k = 0; k < 2000 && !gone; k++) {
        FILE *f = fopen(path, "re");
        gone = !f || !fgets(state, sizeof state, f) || strstr(state, ") Z ");
        if (f) fclose(f);
        usleep(10000);
    }
    UNIT_CHECK(gone);
    close(ends[0]);
    close(ends[1]);
}

static void resolve(const char *text, const json_t *list, status_code want, const char *names) {
    supervisor_words words;
    char got[256] = "";
    st = (status){0};
    const bool good = supervisor_words_resolve(text, list, &words, &st);
    for (int k = 0; good && k < words.count; k++) {
        const size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%s", k ? " " : "", words.names[k]);
    }
    if (UNIT_INT(st.code, want) && want == STATUS_OK) UNIT_TEXT(got, names);
}

static void words(void) {
    json_t *bare = json_pack("[{s:s}, {s:s, s:s}]", "device", "cpu", "device", "cuda", "why", "no driver");
    json_t *full = json_pack("[{s:s}, {s:s}, {s:s}, {s:s}]", "device", "cpu", "device", "cuda:0", "device", "cuda:1",
                             "device", "scripted:0");
    resolve("auto", bare, STATUS_OK, "cpu");
    resolve(NULL, bare, STATUS_OK, "cpu");
    resolve("all", bare, STATUS_OK, "cpu");
    resolve("cpu", full, STATUS_OK, "cpu");
    resolve("cpu:0", full, STATUS_OK, "cpu");
    resolve("auto", full, STATUS_OK, "cuda:0");
    resolve("all", full, STATUS_OK, "cuda:0 cuda:1");
    resolve("cuda", full, STATUS_OK, "cuda:0");
    resolve("cuda:1,0", full, STATUS_OK, "cuda:1 cuda:0");
    resolve("cuda:0,cuda:1", full, STATUS_OK, "cuda:0 cuda:1");
    resolve("scripted:0", full, STATUS_OK, "scripted:0");
    resolve("cuda:0", bare, STATUS_ENVIRONMENT, NULL);
    UNIT_CHECK(strstr(st.text, "cuda:0: no driver") != NULL);
    resolve("cuda:2", full, STATUS_ENVIRONMENT, NULL);
    UNIT_CHECK(strstr(st.text, "the last one is cuda:1") != NULL);
    resolve("tpu:0", full, STATUS_USAGE, NULL); /* nowhere is there such a thing */
    static const char *const wrong[] = {
        "",         ",",        "0",      "cuda:",      ":0",      "cuda:0,",      "cuda:x",
        "cuda:0:1", "cuda:0,0", "cuda 0", "cpu,cuda:0", "cuda:-1", "cuda:1234567", "averyveryverylongnameofadevice:0"};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        resolve(wrong[k], full, STATUS_USAGE, NULL);
        if (!unit_ok) printf("    \"%s\"\n", wrong[k]);
    }
    json_t *called = json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s}]", "device", "cpu", "name",
                               "AMD EPYC 9654", "device", "cuda:0", "name", "NVIDIA H200", "device", "cuda:1", "name",
                               "NVIDIA H200", "device", "cuda:2", "name", "NVIDIA H100", "why", "lost");
    resolve("h200", called, STATUS_OK, "cuda:0");
    resolve("H200:1", called, STATUS_OK, "cuda:1");
    resolve("h200:1,0", called, STATUS_OK, "cuda:1 cuda:0");
    resolve("gpu", called, STATUS_OK, "cuda:0");
    resolve("epyc", called, STATUS_OK, "cpu");
    resolve("CUDA", called, STATUS_USAGE, NULL);
    UNIT_CHECK(strstr(st.text, "say cuda:0") != NULL);
    resolve("h200:2", called, STATUS_ENVIRONMENT, NULL);
    resolve("h100", called, STATUS_USAGE, NULL); /* it is not there */
    resolve("h2", called, STATUS_USAGE, NULL);   /* too short to be a name */
    resolve("h200,h200", called, STATUS_USAGE, NULL);
    resolve("h200,cuda:1", called, STATUS_USAGE, NULL);
    json_object_del(json_array_get(called, 3), "why");
    resolve("h100", called, STATUS_OK, "cuda:2");
    resolve("nvidia", called, STATUS_USAGE, NULL);
    UNIT_CHECK(strstr(st.text, "may be NVIDIA H200 or NVIDIA H100") != NULL);
    json_decref(bare);
    json_decref(full);
    json_decref(called);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--worker") == 0) return odd_worker_run(argv[2]);
    alarm(120);
    UNIT_RUN(words);
    UNIT_RUN(what_is_prepared_beside_blames_nobody);
    UNIT_RUN(what_fails_alone_is_to_blame);
    UNIT_RUN(parts_come_before_the_end);
    UNIT_RUN(no_faults);
    UNIT_RUN(a_job_may_ask_for_another_worker);
    UNIT_RUN(faults);
    UNIT_RUN(blamed_only_alone);
    UNIT_RUN(variants);
    UNIT_RUN(nobody_to_blame);
    UNIT_RUN(measured_apart);
    UNIT_RUN(two_devices);
    UNIT_RUN(device_lost);
    UNIT_RUN(stopped);
    UNIT_RUN(asked);
    UNIT_RUN(no_orphans);
    return unit_end();
}
