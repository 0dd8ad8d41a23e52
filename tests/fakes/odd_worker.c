/* A worker that does whatever its jobs say. */
#include "tests/fakes/odd_worker.h"

#include "scout/worker/frames.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wire;
static status st;

static void answer(frames_type type, json_t *body) {
    if (!frames_send(wire, type, body, &st)) _exit(9);
    json_decref(body);
}

static void step(const char *candidate, const char *variant, const char *what, double seconds) {
    answer(FRAMES_STEP, json_pack("{s:s?, s:s, s:s, s:f}", "candidate", candidate, "variant", variant, "what", what,
                                  "seconds", seconds));
}

static void done(json_t *result) { answer(FRAMES_DONE, json_pack("{s:o}", "result", result)); }

static void failed(const char *how, const char *text) {
    answer(FRAMES_FAILED, json_pack("{s:s, s:s, s:s, s:i}", "answer", how, "code", "error", "text", text, "status", 0));
}

static bool excluded(const json_t *body, const char *name, const char *variant) {
    const json_t *list = json_object_get(body, "exclusions");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const char *form = json_string_value(json_object_get(one, "variant"));
        if (strcmp(json_string_value(json_object_get(one, "name")), name) != 0) continue;
        if (form[0] == 0 || strcmp(form, variant) == 0) return true;
    }
    return false;
}

static void crash(void) {
    fprintf(stderr, "a line before\nthe last words\n");
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
    raise(SIGSEGV);
}

static void garbage(void) {
    static const char text[] = "this is not a frame, and never was one";
    if (write(wire, text, sizeof text) < 0) _exit(9);
    for (;;) pause();
}

/* A child that holds the connection open, as a plugin's might. */
static void forked(void) {
    if (fork() == 0)
        for (;;) pause();
    _exit(7);
}

static void alive(void) { /* longer than a step may take, with signs of life */
    for (int k = 0; k < 6; k++) {
        usleep(250000);
        step("x", "", "slow", 1);
    }
}

static void flood(void) { /* more than a pipe holds */
    for (int k = 0; k < 20000; k++) fprintf(stderr, "noise noise noise %d\n", k);
}

static void hang(void) {
    for (;;) pause();
}
static void leave(void) { _exit(3); }
static void killed(void) { kill(getpid(), SIGKILL); }
static void stopped(void) { kill(getpid(), SIGSTOP); }
static void let_go(void) { /* closes its connection, and lives on */
    close(wire);
    hang();
}
static void lose(void) {
    failed("lost", "the device is poisoned");
    hang();
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {{"crash", crash},     {"hang", hang},     {"leave", leave},  {"lose", lose},
            {"garbage", garbage}, {"forked", forked}, {"alive", alive},  {"flood", flood},
            {"kill", killed},     {"stop", stopped},  {"let_go", let_go}};

/* Whether an act is due: as often as "times" says, of which a file has a byte each; without it, always. */
static bool is_due(const json_t *body) {
    const json_t *times = json_object_get(body, "times");
    const char *path = getenv("FAKE_COUNT");
    if (!times || !path) return true;
    const int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0666);
    const bool due = lseek(fd, 0, SEEK_END) < json_integer_value(times) && write(fd, "x", 1) == 1;
    close(fd);
    return due;
}

static void do_measure(const json_t *body, const char *what) {
    static const char *const variants[] = {"v=1", "v=2", "v=3"};
    const bool nobody = json_is_true(json_object_get(body, "nobody")), all = json_is_true(json_object_get(body, "all"));
    for (int v = 0; v < (all ? 3 : 1); v++)
        for (size_t k = 0; k < sizeof acts / sizeof acts[0]; k++) {
            if (strcmp(acts[k].name, what) != 0 || excluded(body, "x", variants[v]) || !is_due(body)) continue;
            step(nobody ? NULL : "x", nobody ? "" : variants[v], nobody ? "idling" : "running", 1);
            acts[k].act();
        }
    json_t *copy = json_deep_copy(json_object_get(body, "exclusions"));
    done(json_pack("{s:o, s:i, s:s, s:i}", "exclusions", copy, "pid", (int)getpid(), "spin",
                   getenv("GOMP_SPINCOUNT") ? getenv("GOMP_SPINCOUNT") : "", "announced",
                   (int)json_array_size(json_object_get(body, "ahead"))));
}

static json_t *row(const char *name, const char *how, double us) {
    return strcmp(how, "OK") == 0 ? json_pack("{s:s, s:s, s:s, s:n, s:{s:i, s:f}}", "name", name, "variant", "t=1",
                                              "status", how, "reason", "pass", "pass", 1, "time_us", us)
                                  : json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "name", name, "variant", "t=1", "status",
                                              how, "reason", "code", "samples", "text", "one is off");
}

/* The baseline takes 10 us, and twice that in a worker that measures one candidate alone, which takes 15 us there. */
static void do_rows(const json_t *body) {
    const char *only = json_string_value(json_object_get(body, "only"));
    const json_t *left_out = json_object_get(body, "exclusions");
    const bool alone = only && !excluded(body, only, ""), spoils = alone && strcmp(only, "q_spoils") == 0;
    json_t *rows = json_array();
    step("library", "t=1", "time", 1);
    json_array_append_new(rows, row("library", spoils ? "WRONG" : "OK", alone ? 20 : 10));
    if (alone) {
        step(only, "t=1", "time", 1);
        if (strcmp(only, "q_crash") == 0) crash();
        if (strcmp(only, "q_once") == 0 && is_due(body)) crash();
        json_array_append_new(rows, row(only, strcmp(only, "q_wrong") == 0 ? "WRONG" : "OK", 15));
    }
    for (size_t k = 0; k < json_array_size(left_out); k++)
        json_array_append_new(
            rows, row(json_string_value(json_object_get(json_array_get(left_out, k), "name")), "SKIPPED", 0));
    done(json_pack("{s:s, s:s, s:o, s:i}", "baseline", "library", "baseline_variant", "t=1", "candidates", rows, "pid",
                   (int)getpid()));
}

static json_t *device_entry(int k) {
    char name[16];
    snprintf(name, sizeof name, "fake:%d", k);
    return json_pack("{s:s, s:s}", "device", name, "name", "Fake");
}

static void do_job(const json_t *body) {
    const char *what = json_string_value(json_object_get(body, "what"));
    const char *act = json_string_value(json_object_get(body, "do"));
    if (strcmp(what, "devices") == 0) {
        done(json_pack("[o, o, {s:s, s:s}]", device_entry(0), device_entry(1), "device", "cuda", "why", "no driver"));
    } else if (strcmp(what, "candidates") == 0) {
        json_t *list = json_array();
        static const char *const names[] = {"q_fine", "q_crash", "q_wrong", "q_spoils", "q_once"};
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", names[k], "kind", "gemm", "device",
                                                  "fake", "plugin", "/some/file.so"));
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", "other_kind", "kind", "conv", "device",
                                              "fake", "plugin", "/some/file.so"));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:n}", "name", "built_in", "kind", "gemm", "device", "fake", "plugin"));
        done(list);
    } else if (json_object_get(body, "operation")) {
        do_rows(body);
    } else if (act && strcmp(act, "part") == 0) { /* one is done, and then nothing more */
        answer(FRAMES_PART, json_pack("{s:[s], s:i}", "parts", "one", "ceilings", 7));
        failed("failed", "the rest cannot be done");
    } else if (act && strcmp(act, "failed") == 0) {
        failed("failed", "this job cannot be done");
    } else if (act && strcmp(act, "open") == 0 && access(getenv("FAKE_OUT"), F_OK) != 0) {
        close(open(getenv("FAKE_OUT"), O_CREAT | O_WRONLY, 0666)); /* from now on device 0 is out */
        step("x", "", "running", 1);
        lose();
    } else if (act && strcmp(act, "beside") == 0 && json_array_size(json_object_get(body, "ahead")) > 0) {
        step("x", "v=1", "running", 1); /* and meanwhile what was announced is prepared */
        crash();
    } else {
        do_measure(body, act ? act : "");
    }
}

static void do_open(const json_t *body) {
    const char *name = json_string_value(json_object_get(body, "device")), *out = getenv("FAKE_OUT");
    char instance[32];
    if (strcmp(name, "fake:0") == 0 && out && access(out, F_OK) == 0) {
        failed("no", "the device has fallen off");
        return;
    }
    snprintf(instance, sizeof instance, "class;uuid=%s", name);
    answer(FRAMES_OPENED, json_pack("{s:s, s:{s:s}, s:s, s:s, s:s, s:s, s:i}", "device", name, "identity", "name",
                                    "Fake", "class", "class", "instance", instance, "class_folder", "fake-0",
                                    "candidates_hash", "00000000000000ff", "kinds", 2));
}

/* Every descriptor of ours but the connection: there must be none. */
static int strangers(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));) {
        const int fd = (int)strtol(e->d_name, NULL, 10);
        n += fd > 2 && fd != wire && fd != dirfd(d);
    }
    if (d) closedir(d);
    return n;
}

int odd_worker_run(const char *connection) {
    frames_reader r;
    frames_frame frame;
    wire = (int)strtol(connection, NULL, 10);
    frames_reader_init(&r, wire);
    printf("what libraries print\n");
    fflush(stdout);
    if (getenv("FAKE_MUTE")) hang();
    if (strangers() > 0 || getpgrp() != getpid()) return 5;
    answer(FRAMES_HELLO, json_pack("{s:i}", "version", FRAMES_VERSION));
    while (frames_receive(&r, &frame, &st) && frame.type != FRAMES_QUIT) {
        if (frame.type == FRAMES_OPEN) do_open(frame.body);
        if (frame.type == FRAMES_JOB) do_job(frame.body);
        json_decref(frame.body);
    }
    return 0;
}
