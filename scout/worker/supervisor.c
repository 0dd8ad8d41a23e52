/* The supervisor's loop: jobs from the caller to the workers, frames from the workers to the caller, and what becomes
 * of a job whose worker is lost. The candidate whose step it was is blamed if it is lost again alone. Two losses at no
 * candidate's step fail the job; a device that cannot be opened twice in a row is out, and its job goes to another one.
 * What was ended from outside is done again. */
#include "scout/worker/supervisor.h"

#include "common/json.h"
#include "scout/worker/supervisor_internal.h"
#include "scout/worker/worker.h"

#include <stdlib.h>
#include <string.h>

/* ENDS_TOLD: workers ended from outside, after which that is told. MOST_FAILURES: beside others, of a candidate that
 * does well alone each time. */
enum { MOST_LOSSES = 256, ENDS_TOLD = 3, MOST_FAILURES = 3 };

typedef struct run { /* what supervisor_run was given */
    supervisor_next *next;
    supervisor_done *done;
    supervisor_watch *watch;
    void *context;
} run;

/* ---- a job's way ---- */

static void tell(const supervisor *s, const run *r, supervisor_event_kind kind, const supervisor_slot *at,
                 const char *candidate, const char *variant, const char *text) {
    if (r->watch)
        r->watch(r->context, kind, (int)(at - s->slots), at->task ? at->task->job : -1, candidate, variant, text);
}

static void finish(const supervisor *s, const run *r, supervisor_slot *at, const json_t *result, const status *st) {
    supervisor_task *t = at->task;
    at->task = NULL;
    r->done(r->context, (int)(at - s->slots), t->job, result, st);
    supervisor_task_free(t);
}

static void finish_if_done(const supervisor *s, const run *r, supervisor_slot *at) {
    const status good = {.code = STATUS_OK};
    if (at->task->result && !supervisor_task_alone(at->task)) finish(s, r, at, at->task->result, &good);
}

__attribute__((format(printf, 4, 5))) static void give_up(const supervisor *s, const run *r, supervisor_slot *at,
                                                          const char *format, ...) {
    status st;
    va_list args;
    va_start(args, format);
    status_setv(&st, STATUS_ENVIRONMENT, format, args);
    va_end(args);
    finish(s, r, at, NULL, &st);
}

/* Its job goes to another device; if the last worker was lost just before, then that was the device's fault too. */
static void put_out(supervisor *s, const run *r, supervisor_slot *at, const char *why) {
    process *both[2] = {&at->main, &at->guest};
    at->out = true;
    snprintf(at->out_why, sizeof at->out_why, "%s", why);
    tell(s, r, SUPERVISOR_RESTART, at, NULL, NULL, why);
    process_end(both, 2);
    if (!at->task) return;
    supervisor_task_acquit(at->task);
    at->task->next = s->returned;
    s->returned = at->task;
    at->task = NULL;
}

static process *active_process(supervisor_slot *at) { return supervisor_task_alone(at->task) ? &at->guest : &at->main; }

static void end_guest(supervisor_slot *at) {
    process *guest = &at->guest;
    at->guest_of[0] = 0;
    process_end(&guest, 1);
}

static void open_failed(supervisor *s, const run *r, supervisor_slot *at, const char *why) {
    if (++at->open_failures >= 2) {
        put_out(s, r, at, why);
    } else {
        tell(s, r, SUPERVISOR_RESTART, at, NULL, NULL, why);
    }
}

/* Moves the job of a slot on: starts the process that it needs next, or sends it what to do. */
static void advance(supervisor *s, const run *r, supervisor_slot *at) {
    status st;
    if (!at->task || at->out) return;
    process *p = active_process(at);
    const char *alone = supervisor_task_alone(at->task);
    if (alone && strcmp(at->guest_of, alone) != 0) {
        end_guest(at);
        snprintf(at->guest_of, sizeof at->guest_of, "%s", alone);
    }
    if (at->alone) supervisor_task_announce_nothing(at->task);
    if (p->state == PROCESS_NONE) {
        if (p == &at->main) at->ahead = false;
        if (!process_start(p, &s->options, at->device.name, &st)) open_failed(s, r, at, st.text);
    } else if (p->state == PROCESS_IDLE) {
        json_t *request = supervisor_task_request(at->task);
        if (!request) {
            give_up(s, r, at, "out of memory");
            return;
        }
        at->ahead = at->ahead || json_array_size(json_object_get(request, "ahead")) > 0;
        at->opens = json_is_true(json_object_get(request, "ahead"));
        p->state = PROCESS_BUSY;
        process_send(p, FRAMES_JOB, request, supervisor_start_seconds(&s->options));
    }
}

/* Lost by what it was at, and not from outside; or from outside so often at the same step that it may as well be. */
static void on_failure(supervisor *s, const run *r, supervisor_slot *at, const process *p, const process_loss *loss) {
    supervisor_task *t = at->task;
    const char *alone = supervisor_task_alone(t), *candidate = p->step.candidate;
    const bool apart = alone && !t->trial[0];
    if (apart || (alone && !candidate[0])) candidate = alone; /* whatever it was at, nothing else was there */
    const char *variant = strcmp(candidate, p->step.candidate) == 0 && !apart ? p->step.variant : "";
    const bool tried = t->trial[0] && strcmp(candidate, t->trial) == 0;
    t->trial[0] = 0;
    tell(s, r, SUPERVISOR_RESTART, at, candidate[0] ? candidate : NULL, variant, loss->text);
    if (!candidate[0]) {
        at->alone = false;
        t->nameless++;
        return;
    }
    const int failures = supervisor_task_count_failure(t, candidate);
    if (apart ? failures < 2 : !tried && failures <= MOST_FAILURES) {
        if (!apart) snprintf(t->trial, sizeof t->trial, "%s", candidate);
        return;
    }
    if (!apart) at->alone = false;
    supervisor_task_exclude(t, candidate, variant, loss->status, loss->code, loss->text);
    if (apart) t->next_apart++;
}

/* Whether it is done again, and nothing more is said of it. */
static bool on_end(supervisor *s, const run *r, supervisor_slot *at, const process *p, bool opening,
                   const process_loss *loss) {
    char text[sizeof loss->text + 48];
    const char *variant = opening ? WORKER_STEP_OPEN : p->step.variant;
    if (supervisor_task_count_end(at->task, p->step.candidate, variant) >= SUPERVISOR_MOST_ENDS) return false;
    snprintf(text, sizeof text, "%s; it is measured again", loss->text);
    tell(s, r, SUPERVISOR_RESTART, at, NULL, NULL, text);
    return true;
}

static void on_loss(supervisor *s, const run *r, supervisor_slot *at, process *p, process_state state,
                    const process_loss *loss) {
    supervisor_task *t = at->task;
    s->ends += loss->by_others;
    if (loss->by_others && s->ends == ENDS_TOLD)
        tell(s, r, SUPERVISOR_RESTART, at, NULL, NULL,
             "something kills the workers of this run: three were ended from outside so far, as the system does when "
             "memory runs out");
    if (!t || p != active_process(at)) return; /* an idle one: the next job starts another */
    const bool opening = state != PROCESS_BUSY || strcmp(p->step.what, WORKER_STEP_OPEN) == 0;
    t->losses++;
    if (t->losses > MOST_LOSSES) {
        give_up(s, r, at, "%s: a worker was lost more than once: %s", at->device.name, loss->text);
    } else if (loss->by_others && on_end(s, r, at, p, opening, loss)) {
        return;
    } else if (opening) {
        open_failed(s, r, at, loss->text);
    } else if (p == &at->main && (at->ahead || at->opens)) { /* or what was prepared beside: that shows alone */
        char text[sizeof loss->text + 48];
        snprintf(text, sizeof text, "%s; it is repeated alone", loss->text);
        tell(s, r, SUPERVISOR_RESTART, at, NULL, NULL, text);
        at->alone = true;
    } else {
        on_failure(s, r, at, p, loss);
        if (t->nameless >= 2)
            give_up(s, r, at, "%s: a worker was lost more than once: %s", at->device.name, loss->text);
        else
            finish_if_done(s, r, at);
    }
}

/* ---- frames ---- */

static void on_opened(supervisor *s, const run *r, supervisor_slot *at, process *p, const json_t *body) {
    supervisor_device now = at->device;
    process_rest(p, PROCESS_IDLE);
    if (supervisor_read_opened(body, &now) && strcmp(now.device_instance, at->device.device_instance) == 0) return;
    char text[128];
    snprintf(text, sizeof text, "%s is another device than before", at->device.name);
    process_end(&p, 1);
    open_failed(s, r, at, text);
}

static bool went_wrong(const json_t *result) {
    const json_t *rows = json_object_get(result, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        row_status how = ROW_OK;
        reason_status_from_name(json_get_text(json_array_get(rows, k), "status"), &how);
        if (reason_status_bad(how)) return true;
    }
    return false;
}

static void on_done(supervisor *s, const run *r, supervisor_slot *at, process *p, const json_t *body) {
    const json_t *result = json_object_get(body, "result");
    supervisor_task *t = at->task;
    process_rest(p, PROCESS_IDLE);
    if (!t || p != active_process(at)) return;
    at->open_failures = 0;
    t->ended.ends = 0;
    const char *alone = supervisor_task_alone(t);
    if (t->trial[0]) { /* it does well alone: once more with the others */
        t->trial[0] = 0;
        end_guest(at);
    } else if (alone) {
        supervisor_task_join(t, alone, result);
        /* a process in which something went wrong is not one in which anything else should be judged */
        if (went_wrong(result)) end_guest(at);
        t->next_apart++;
    } else {
        t->result = json_incref((json_t *)(uintptr_t)result);
    }
    t->fresh = NULL;
    finish_if_done(s, r, at);
}

/* Handed on at once: what is lost later does not take it along. */
static void on_part(const supervisor *s, const run *r, supervisor_slot *at, const process *p, const json_t *body) {
    const status good = {.code = STATUS_OK};
    if (!at->task || p != active_process(at) || supervisor_task_alone(at->task)) return;
    r->done(r->context, (int)(at - s->slots), at->task->job, body, &good);
}

static void on_failed(supervisor *s, const run *r, supervisor_slot *at, process *p, process_state state,
                      const json_t *body) {
    const char *answer = json_string_value(json_object_get(body, "answer"));
    const char *code = json_string_value(json_object_get(body, "code"));
    const char *said = json_string_value(json_object_get(body, "text"));
    const char *text = said && *said ? said : "a call failed";
    if (state == PROCESS_STARTING || state == PROCESS_OPENING) {
        process_end(&p, 1);
        open_failed(s, r, at, text);
    } else if (answer && strcmp(answer, "lost") == 0) {
        process_loss loss;
        process_condemn(p, ROW_CRASHED, "poisoned", text, &loss);
        on_loss(s, r, at, p, state, &loss);
    } else if (at->task) {
        const char *alone = supervisor_task_alone(at->task);
        process_rest(p, PROCESS_IDLE);
        if (alone) {
            if (!at->task->trial[0]) {
                supervisor_task_exclude(at->task, alone, "", ROW_ERROR, code && reason_known(code) ? code : "error",
                                        text);
                at->task->next_apart++;
            }
            at->task->trial[0] = 0;
            end_guest(at);
            finish_if_done(s, r, at);
        } else {
            give_up(s, r, at, "%s: %s", at->device.name, text);
        }
    }
}

static void on_frame(supervisor *s, const run *r, supervisor_slot *at, process *p, const frames_frame *frame) {
    const process_state state = p->state;
    const char *said = json_string_value(json_object_get(frame->body, "text"));
    switch (frame->type) {
    case FRAMES_HELLO:
        if (state != PROCESS_STARTING) break;
        p->state = PROCESS_OPENING;
        process_send(p, FRAMES_OPEN, supervisor_open_request(at->device.name), supervisor_start_seconds(&s->options));
        break;
    case FRAMES_OPENED:
        if (state == PROCESS_OPENING) on_opened(s, r, at, p, frame->body);
        break;
    case FRAMES_STEP:
        if (state == PROCESS_BUSY && strcmp(p->step.what, WORKER_STEP_OPEN) != 0) at->open_failures = 0;
        tell(s, r, SUPERVISOR_STEP, at, p->step.candidate[0] ? p->step.candidate : NULL, p->step.variant, p->step.what);
        break;
    case FRAMES_SAY:
        if (!json_is_true(json_object_get(frame->body, "warning"))) /* else process.c has told it */
            tell(s, r, SUPERVISOR_SAY, at, NULL, NULL, said ? said : "");
        break;
    case FRAMES_PART:
        if (state == PROCESS_BUSY) on_part(s, r, at, p, frame->body);
        break;
    case FRAMES_DONE:
        if (state == PROCESS_BUSY) on_done(s, r, at, p, frame->body);
        break;
    case FRAMES_FAILED: on_failed(s, r, at, p, state, frame->body); break;
    default: break;
    }
}

static void attend(supervisor *s, const run *r, supervisor_slot *at, process *p) {
    for (;;) {
        frames_frame frame;
        process_loss loss;
        const process_state state = p->state;
        const process_event event = process_next(p, &frame, &loss);
        if (event == PROCESS_QUIET) return;
        if (event == PROCESS_LOST) {
            on_loss(s, r, at, p, state, &loss);
            return;
        }
        on_frame(s, r, at, p, &frame);
        json_decref(frame.body);
    }
}

/* ---- the loop ---- */

static void end_workers(supervisor_slot *at) {
    process *own = &at->main;
    end_guest(at);
    process_end(&own, 1);
}

/* false: there is nothing left for it. */
static bool give_task(supervisor *s, const run *r, supervisor_slot *at) {
    if (at->task) return true;
    if (s->returned) {
        at->task = s->returned;
        s->returned = at->task->next;
        at->task->next = NULL;
        return true;
    }
    int job = 0;
    json_t *body = r->next(r->context, (int)(at - s->slots), &job);
    if (!body) return false;
    if (json_is_true(json_object_get(body, "anew"))) end_workers(at);
    at->task = supervisor_task_new(job, body, s->candidates, at->device.name);
    if (at->task) return true;
    const status st = {.code = STATUS_ENVIRONMENT, .text = "out of memory"};
    r->done(r->context, (int)(at - s->slots), job, NULL, &st);
    return false;
}

/* All devices are out: what they had in hand has failed. */
static bool no_device_left(supervisor *s, const run *r, status *st) {
    status_set(st, STATUS_ENVIRONMENT, "%s was lost: %s; what is finished is kept, --resume does the rest",
               s->slots[0].device.name, s->slots[0].out_why);
    while (s->returned) {
        supervisor_task *t = s->returned;
        s->returned = t->next;
        r->done(r->context, 0, t->job, NULL, st);
        supervisor_task_free(t);
    }
    return false;
}

void supervisor_quit(supervisor *s) {
    process *list[2 * SUPERVISOR_MAX_DEVICES];
    const int count = supervisor_processes(s, list);
    for (int k = 0; k < count; k++) process_quit(list[k]);
}

void supervisor_rest(supervisor *s) {
    process *list[2 * SUPERVISOR_MAX_DEVICES];
    process_end(list, supervisor_processes(s, list));
    supervisor_drop_tasks(s);
}

bool supervisor_run(supervisor *s, supervisor_next *next, supervisor_done *done, supervisor_watch *watch, void *context,
                    const volatile int *stop, status *st) {
    static const double look_up_s = 0.25; /* a signal may come just before the wait */
    const run r = {next, done, watch, context};
    for (;;) {
        process *list[2 * SUPERVISOR_MAX_DEVICES];
        int busy = 0, out = 0;
        if (stop && *stop) {
            supervisor_rest(s);
            return status_fail(st, STATUS_INCOMPLETE, "stopped; what is finished is kept, --resume does the rest");
        }
        for (int k = 0; k < s->count; k++) {
            supervisor_slot *at = &s->slots[k];
            if (!at->out && give_task(s, &r, at)) advance(s, &r, at);
            busy += at->task != NULL;
            out += at->out;
        }
        if (out == s->count) return no_device_left(s, &r, st);
        if (busy == 0 && !s->returned) return true;
        if (watch) watch(context, SUPERVISOR_IDLE, -1, -1, NULL, NULL, NULL);
        process_wait(list, supervisor_processes(s, list), busy > 0 ? look_up_s : 0);
        for (int k = 0; k < s->count; k++) {
            attend(s, &r, &s->slots[k], &s->slots[k].main);
            attend(s, &r, &s->slots[k], &s->slots[k].guest);
        }
    }
}
