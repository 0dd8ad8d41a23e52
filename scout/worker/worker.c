/* The worker's side of the connection: what arrives, what is answered, and the opening of the device. What is foreign
 * runs from here, so everything that can go wrong in it does so in this process and in no other. */
#include "scout/worker/worker.h"

#include "common/clock.h"
#include "scout/device/identity.h"
#include "scout/device/libraries.h"
#include "scout/device/others.h"
#include "scout/device/plugins.h"
#include "scout/worker/worker_jobs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What the devices have to say of what they found, before the answer that it may explain. */
static void send_notes(worker *w) {
    enum { NOTES_EACH = 64 };
    status st;
    for (int d = 0; d < plugins_device_count(); d++) {
        const scout_device_api *api = plugins_device(d);
        const char *text = NULL;
        if (!SCOUT_HAS(api, note) || !api->note) continue;
        while (!w->gone && w->told[d] < NOTES_EACH && (text = api->note(w->told[d]))) {
            json_t *body = json_pack("{s:s, s:b}", "text", text, "warning", 1);
            w->told[d]++;
            if (body && !frames_send(w->out, FRAMES_SAY, body, &st)) w->gone = true;
            json_decref(body);
        }
    }
}

void worker_send(worker *w, frames_type type, json_t *body) {
    status st = {0};
    if (type == FRAMES_OPENED || type == FRAMES_DONE || type == FRAMES_FAILED) send_notes(w);
    if (!w->gone && !frames_send(w->out, type, body, &st)) w->gone = true;
    json_decref(body);
}

/* How long steps may take, as a factor: CEILING_SCOUT_PATIENCE, for a machine that is slower than expected,
 * and for tests that do not want to wait. */
static double patience(void) {
    const char *text = getenv("CEILING_SCOUT_PATIENCE");
    const double factor = text ? strtod(text, NULL) : 1;
    return factor > 0 && factor < 1e6 ? factor : 1;
}

static bool same_step(const worker *w, const char *candidate, const char *variant, const char *what) {
    return strncmp(w->step.candidate, candidate, sizeof w->step.candidate - 1) == 0 &&
           strncmp(w->step.variant, variant, sizeof w->step.variant - 1) == 0 &&
           strncmp(w->step.what, what, sizeof w->step.what - 1) == 0;
}

/* Heartbeats may come every few microseconds. One that says what the last one said is left out for a twentieth of a
 * second, and for that long more each of them holds. */
void worker_step(void *context, const char *candidate, const char *variant, const char *what, double seconds) {
    static const double quiet_s = 0.05, longest_s = 1e5;
    worker *w = context;
    const double now = clock_seconds();
    if (!(seconds > 0 && seconds < longest_s)) seconds = longest_s;
    const char *name = candidate ? candidate : "", *form = variant ? variant : "", *doing = what ? what : "";
    if (same_step(w, name, form, doing) && now - w->step.at < quiet_s && seconds <= w->step.seconds) return;
    snprintf(w->step.candidate, sizeof w->step.candidate, "%s", name);
    snprintf(w->step.variant, sizeof w->step.variant, "%s", form);
    snprintf(w->step.what, sizeof w->step.what, "%s", doing);
    w->step.at = now;
    w->step.seconds = seconds;
    json_builder b = {0};
    status st;
    json_t *body = json_new_object(&b);
    json_put_text(&b, body, "candidate", candidate);
    json_put_text(&b, body, "variant", form);
    json_put_text(&b, body, "what", doing);
    json_put_real(&b, body, "seconds", seconds * patience() + quiet_s);
    body = json_finish(&b, body, &st);
    if (body) worker_send(w, FRAMES_STEP, body);
}

/* ---- answers ---- */

static const char *const answer_names[] = {
    [SCOUT_OK] = "ok",         [SCOUT_NO] = "no",     [SCOUT_NO_MEMORY] = "no_memory",
    [SCOUT_FAILED] = "failed", [SCOUT_LOST] = "lost",
};

static void send_failed(worker *w, const worker_end *end) {
    const bool wrong_job = end->st.code != STATUS_OK;
    const scout_answer answer = wrong_job || (unsigned)end->answer > SCOUT_LOST ? SCOUT_FAILED : end->answer;
    const char *text = wrong_job ? end->st.text : end->why.text;
    json_t *body = json_pack("{s:s, s:s, s:s, s:i}", "answer", answer_names[answer], "code",
                             end->why.code[0] ? end->why.code : "error", "text", text, "status", (int)end->st.code);
    if (!body) /* a reason that is no UTF-8 */
        body = json_pack("{s:s, s:s, s:s, s:i}", "answer", answer_names[answer], "code", "error", "text",
                         "for a reason that cannot be printed", "status", (int)end->st.code);
    worker_send(w, FRAMES_FAILED, body);
}

static void send_result(worker *w, json_t *result) {
    json_t *body = json_object();
    worker_end end = {.answer = SCOUT_NO_MEMORY};
    if (json_object_set_new(body, "result", result) == 0) {
        worker_send(w, FRAMES_DONE, body);
        return;
    }
    json_decref(body);
    scout_say(&end.why, SCOUT_NO_MEMORY, "memory", "out of memory");
    send_failed(w, &end);
}

/* ---- devices ---- */

static json_t *opened_body(const worker *w, const char *word, json_builder *b) {
    char text[IDENTITY_INSTANCE_ROOM];
    json_t *body = json_new_object(b);
    json_put_text(b, body, "device", word);
    json_put(b, body, "identity", identity_to_json(&w->identity, b));
    identity_class(&w->identity, text, IDENTITY_CLASS_ROOM);
    json_put_text(b, body, "class", text);
    identity_instance(&w->identity, text, sizeof text);
    json_put_text(b, body, "instance", text);
    identity_class_folder(&w->identity, text, IDENTITY_FOLDER_ROOM);
    json_put_text(b, body, "class_folder", text);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)plugins_candidates_hash(w->api, &w->identity));
    json_put_text(b, body, "candidates_hash", text);
    json_put_int(b, body, "kinds", plugins_kinds(w->api));
    json_put_bool(b, body, "ahead", w->rests_later);
    return body;
}

static void on_open(worker *w, const json_t *request, worker_end *end) {
    const char *word = json_string_value(json_object_get(request, "device"));
    w->api = word ? plugins_device_of(word, &w->ordinal, &end->why) : NULL;
    end->answer = w->api ? SCOUT_OK : SCOUT_NO;
    if (w->api) {
        if (strcmp(w->api->name, "cpu") == 0) others_wait(); /* before its threads begin, for they are as it is */
        memset(&w->identity, 0, sizeof w->identity);
        w->identity.size = sizeof w->identity;
        end->answer = w->api->identify(w->ordinal, &w->identity, &end->why);
        identity_clean(&w->identity);
    }
    if (end->answer != SCOUT_OK) {
        w->api = NULL;
        send_failed(w, end);
        return;
    }
    w->rests_later = worker_ahead_threads(w) > 0;
    json_builder b = {0};
    json_t *body = json_finish(&b, opened_body(w, word, &b), &end->st);
    if (body) {
        worker_send(w, FRAMES_OPENED, body);
    } else {
        send_failed(w, end);
    }
}

static void recall_ceilings(worker *w, json_t *request) {
    json_t *const all = json_object_get(request, "ceilings");
    if (json_is_true(all) && w->ceilings) json_object_set(request, "ceilings", w->ceilings);
    if (!json_is_object(all)) return;
    json_decref(w->ceilings);
    w->ceilings = json_incref(all);
}

static void on_job(worker *w, json_t *request, worker_end *end) {
    const char *what = json_string_value(json_object_get(request, "what"));
    worker_job *job = what ? worker_jobs_find(what) : NULL;
    json_t *result = NULL;
    w->step.at = 0; /* the first step of a job is always told */
    recall_ceilings(w, request);
    if (job) {
        result = job(w, request, end);
    } else {
        status_set(&end->st, STATUS_ENVIRONMENT, "unknown job \"%s\"", what ? what : "");
    }
    if (result) {
        send_result(w, result);
    } else {
        send_failed(w, end);
    }
    worker_jobs_rest(w);
}

/* ---- life ---- */

/* Where memory runs out it shall be this process that the system ends, and no core is left behind by foreign code. */
static void be_expendable(void) {
    const struct rlimit none = {0, 0};
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        const ssize_t ignored = write(fd, "600", 3);
        (void)ignored;
        close(fd);
    }
    setrlimit(RLIMIT_CORE, &none);
}

/* The constructors of a plugin are foreign code as its launches are; all the rest of a start has the time that drivers
 * need. */
static void on_plugin(void *context, const char *file) {
    static const double load_s = 15, start_s = 60;
    worker_step(context, NULL, file, file ? WORKER_STEP_LOAD : "starting", file ? load_s : start_s);
}

static bool say_hello(worker *w, const worker_options *options, worker_end *end) {
    if (!libraries_pass_path(options->library_path)) {
        status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
    } else if (plugins_load(options->plugins, options->plugin_count, on_plugin, w, &end->st)) {
        worker_send(w, FRAMES_HELLO, json_pack("{s:i, s:i}", "version", FRAMES_VERSION, "pid", (int)getpid()));
        return true;
    }
    send_failed(w, end);
    return false;
}

static void serve(worker *w, frames_reader *reader, worker_end *end, status *st) {
    frames_frame frame = {0};
    bool more = true;
    while (more && !w->gone && frames_receive(reader, &frame, st)) {
        *end = (worker_end){.answer = SCOUT_OK};
        switch (frame.type) {
        case FRAMES_OPEN: on_open(w, frame.body, end); break;
        case FRAMES_JOB: on_job(w, frame.body, end); break;
        default: more = false;
        }
        json_decref(frame.body);
        if (end->answer == SCOUT_LOST) {
            status_set(st, STATUS_ENVIRONMENT, "the device was lost: %s", end->why.text);
            more = false;
        }
    }
}

/* Nothing is waited for. */
static void leave(status_code code) {
    fflush(NULL);
    _exit((int)code);
}

status_code worker_run(const worker_options *options, status *st) {
    worker w = {.out = options->out};
    worker_end end = {.answer = SCOUT_OK};
    frames_reader reader;
    *st = (status){0};
    if (sched_getaffinity(0, sizeof w.cores, &w.cores) != 0) CPU_ZERO(&w.cores);
    /* what foreign code starts shall not keep the connection open */
    fcntl(options->in, F_SETFD, FD_CLOEXEC);
    fcntl(options->out, F_SETFD, FD_CLOEXEC);
    be_expendable();
    frames_reader_init(&reader, options->in);
    if (say_hello(&w, options, &end)) {
        serve(&w, &reader, &end, st);
    } else {
        *st = end.st;
    }
    /* a driver gives back all, faster than its libraries do */
    if (w.device && w.api->has_graphs && st->code == STATUS_OK) leave(st->code);
    if (end.answer != SCOUT_LOST) {
        worker_jobs_forget(&w);
        if (!worker_ahead_end(&w)) leave(st->code); /* what a library is at may take a second more */
    }
    if (w.device && end.answer != SCOUT_LOST) w.api->close(w.device);
    frames_reader_free(&reader);
    return st->code;
}
