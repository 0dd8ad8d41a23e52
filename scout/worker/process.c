/* Worker processes: what they say, what they print, how long they are silent, and how they end. What foreign code
 * prints goes to a pipe: the last line of it is the best reason for a crash there is. */
#include "scout/worker/process.h"

#include "common/json.h"
#include "scout/worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCESSES = 256, REAP_MS = 5000, DEATH_MS = 500, POLITE_MS = 2000 };

static void sleep_ms(int ms) {
    const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* ---- what it prints ---- */

static void take_line(process *p) {
    p->line[p->line_used] = 0;
    if (p->line_used > 0) {
        snprintf(p->last_line, sizeof p->last_line, "%.250s", p->line);
        if (p->verbose) status_print(stderr, p->label, NULL, p->line);
    }
    p->line_used = 0;
}

static void read_errors(process *p) {
    char bytes[4096];
    for (int round = 0; round < 64 && p->error_fd >= 0; round++) {
        const ssize_t k = read(p->error_fd, bytes, sizeof bytes);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno == EAGAIN) return;
        if (k <= 0) {
            take_line(p);
            close(p->error_fd);
            p->error_fd = -1;
            return;
        }
        for (ssize_t i = 0; i < k; i++) {
            if (bytes[i] == '\n' || p->line_used == sizeof p->line - 1) take_line(p);
            /* printable: it goes into JSON and onto terminals */
            if (bytes[i] != '\n') p->line[p->line_used++] = bytes[i] < 0x20 || bytes[i] > 0x7e ? '?' : bytes[i];
        }
    }
}

/* ---- ending ---- */

static bool reap(process *p, int ms, int *how) {
    for (int waited = 0;; waited += 2) {
        const pid_t pid = waitpid(p->pid, how, WNOHANG);
        if (pid == p->pid) return true;
        if (pid < 0 && errno != EINTR) {
            *how = 0;
            return true;
        }
        if (waited >= ms) return false;
        sleep_ms(2);
    }
}

/* All workers that are there. What else became a child of this process after the first of them was started by one that
 * is no more. */
static pid_t alive[MAX_PROCESSES];
static int alive_count;
static unsigned long long first_started; /* in the system's ticks; 0: there was none yet */

typedef struct process_facts {
    pid_t parent;
    unsigned long long started;
    bool ending; /* its memory is given back; it may take seconds until it is dead */
} process_facts;

/* Of /proc/PID/stat: "PID (NAME) STATE PARENT GROUP SESSION TERMINAL ITS_GROUP FLAGS …", and a name may hold anything.
 */
static process_facts facts_of(pid_t pid) {
    enum { PARENT = 2, FLAGS = 7, STARTED = 20, EXITING = 4 };
    process_facts facts = {.parent = 0};
    char path[64], text[512], *rest = NULL;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    char *end = strrchr(text, ')');
    int k = 0;
    for (const char *word = end ? strtok_r(end, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest), k++) {
        if (k == PARENT) facts.parent = (pid_t)strtol(word, NULL, 10);
        if (k == FLAGS) facts.ending = (strtoul(word, NULL, 10) & EXITING) != 0;
        if (k == STARTED) facts.started = strtoull(word, NULL, 10);
    }
    return facts;
}

void process_enlist(pid_t pid) {
    if (first_started == 0) first_started = facts_of(pid).started;
    if (alive_count < MAX_PROCESSES) alive[alive_count++] = pid;
}

static void strike_off(pid_t pid) {
    for (int k = 0; k < alive_count; k++)
        if (alive[k] == pid) alive[k--] = alive[--alive_count];
}

static bool is_stranger(pid_t pid) {
    for (int k = 0; k < alive_count; k++)
        if (alive[k] == pid) return false;
    const process_facts facts = facts_of(pid);
    return facts.parent == getpid() && facts.started > first_started;
}

/* How many strangers there were. */
static int end_strangers(void) {
    DIR *all = opendir("/proc");
    int count = 0;
    if (!all) return 0;
    for (const struct dirent *e = readdir(all); e; e = readdir(all)) {
        const pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (pid <= 0 || !is_stranger(pid)) continue;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, WNOHANG);
        count++;
    }
    closedir(all);
    return count;
}

/* A worker's children become ours when it ends, and theirs when they do: each round reaches another generation. */
static void sweep(void) {
    for (int waited = 0; end_strangers() > 0 && waited < DEATH_MS; waited++) sleep_ms(1);
}

static void forget(process *p) {
    strike_off(p->pid);
    sweep();
    if (p->fd >= 0) close(p->fd);
    if (p->error_fd >= 0) close(p->error_fd);
    frames_reader_free(&p->reader);
    json_decref(p->ceilings);
    p->ceilings = NULL;
    p->fd = p->error_fd = -1;
    p->state = PROCESS_NONE;
}

/* Whether it is dead; it stays to be reaped. */
static bool died(const process *p) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid;
}

/* One that hangs in the kernel cannot be waited for; it is left to the system. */
static void kill_now(process *p, int *how) {
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL);
    reap(p, REAP_MS, how);
}

void process_quit(process *p) {
    status ignored;
    if (p->state == PROCESS_IDLE || p->state == PROCESS_READY) frames_send(p->fd, FRAMES_QUIT, NULL, &ignored);
}

void process_end(process *const *list, int count) {
    int how;
    for (int k = 0; k < count; k++) {
        process *p = list[k];
        if (p->state == PROCESS_IDLE || p->state == PROCESS_READY) {
            process_quit(p);
        } else if (p->state != PROCESS_NONE) {
            kill(-p->pid, SIGKILL);
        }
    }
    const double until = clock_seconds() + POLITE_MS * 1e-3;
    for (int k = 0; k < count; k++) {
        process *p = list[k];
        if (p->state == PROCESS_NONE) continue;
        p->ended_by_others = false;
        while (!died(p) && clock_seconds() < until) sleep_ms(2);
        kill_now(p, &how); /* also where it went by itself: what it has started goes with it */
        read_errors(p);
        forget(p);
    }
}

/* ---- losses ---- */

__attribute__((format(printf, 3, 4))) static void say_more(char *text, size_t room, const char *format, ...) {
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

/* Whether a plugin's code ran when it was last heard of, before it was ready for anything. Also of one that is lost. */
static bool loads_plugin(const process *p) { return strcmp(p->step.what, WORKER_STEP_LOAD) == 0; }

static void blame_plugin(const process *p, process_loss *loss) {
    char text[sizeof loss->text];
    snprintf(text, sizeof text, "%.250s: %.180s while this plugin was being loaded: correct it, or leave it out",
             p->step.variant, loss->text);
    memcpy(loss->text, text, sizeof text);
}

static void finish_loss(process *p, process_loss *loss) {
    p->ended_by_others = loss->by_others;
    read_errors(p);
    if (p->line_used > 0) take_line(p);
    if (p->state == PROCESS_BUSY && p->step.what[0]) say_more(loss->text, sizeof loss->text, " (%s)", p->step.what);
    if (p->state == PROCESS_STARTING && loads_plugin(p))
        blame_plugin(p, loss);
    else if (p->state == PROCESS_STARTING)
        say_more(loss->text, sizeof loss->text, " before it was ready");
    /* what it said itself needs no second witness */
    if (p->last_line[0] && strcmp(loss->code, "poisoned") != 0)
        say_more(loss->text, sizeof loss->text, "; its last message: %s", p->last_line);
    forget(p);
}

/* Signals from outside, also from the system where memory runs out; all others are a program's own doing. */
static bool is_sent(int number) {
    static const int sent[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    for (size_t k = 0; k < sizeof sent / sizeof sent[0]; k++)
        if (sent[k] == number) return true;
    return false;
}

static void lost_by_end(process *p, process_loss *loss) {
    int how = 0;
    for (int waited = 0; !died(p) && waited < DEATH_MS; waited += 2) sleep_ms(2);
    const bool by_itself = died(p) || facts_of(p->pid).ending;
    kill_now(p, &how);
    *loss = (process_loss){.status = ROW_CRASHED};
    if (!by_itself) {
        snprintf(loss->code, sizeof loss->code, "exit");
        snprintf(loss->text, sizeof loss->text, "its process closed its connection and did not end");
    } else if (WIFSIGNALED(how)) {
        const int number = WTERMSIG(how);
        loss->by_others = is_sent(number);
        snprintf(loss->code, sizeof loss->code, loss->by_others ? "killed" : "signal");
        snprintf(loss->text, sizeof loss->text, "its process was ended by signal %d (%s)", number, strsignal(number));
    } else {
        snprintf(loss->code, sizeof loss->code, "exit");
        snprintf(loss->text, sizeof loss->text, "its process ended by itself with code %d", WEXITSTATUS(how));
    }
    finish_loss(p, loss);
}

void process_condemn(process *p, row_status row, const char *code, const char *text, process_loss *loss) {
    int how;
    *loss = (process_loss){.status = row};
    snprintf(loss->code, sizeof loss->code, "%s", code);
    snprintf(loss->text, sizeof loss->text, "%s", text);
    kill_now(p, &how);
    finish_loss(p, loss);
}

static void lost_by_time(process *p, process_loss *loss) {
    char text[96];
    snprintf(text, sizeof text, "sent no heartbeat for %.3g s and was ended", p->seconds);
    process_condemn(p, ROW_TIMEOUT, "deadline", text, loss);
}

/* Also one that goes on already: what it timed meanwhile has a hole in it. */
static bool was_stopped(const process *p) {
    siginfo_t info = {.si_pid = 0};
    const int what = WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT;
    return waitid(P_PID, (id_t)p->pid, &info, what) == 0 && info.si_pid == p->pid;
}

static void lost_by_stop(process *p, process_loss *loss) {
    int how;
    *loss = (process_loss){.status = ROW_CRASHED,
                           .by_others = true,
                           .code = "killed",
                           .text = "its process was stopped from outside and was ended"};
    kill_now(p, &how);
    finish_loss(p, loss);
}

/* ---- listening ---- */

void process_rest(process *p, process_state state) {
    p->state = state;
    p->deadline = INFINITY;
}

/* Ceilings are long, and most jobs have those of the one before. */
static json_t *without_known(process *p, json_t *body) {
    json_t *const all = json_object_get(body, "ceilings");
    json_t *const copy = all && all == p->ceilings ? json_copy(body) : NULL; /* its members are shared */
    if (copy && json_object_set_new(copy, "ceilings", json_true()) == 0) {
        json_decref(body);
        return copy;
    }
    json_decref(copy);
    if (json_is_object(all)) {
        json_decref(p->ceilings);
        p->ceilings = json_incref(all);
    }
    return body;
}

void process_send(process *p, frames_type type, json_t *body, double seconds) {
    status ignored;
    if (type == FRAMES_JOB) body = without_known(p, body);
    p->seconds = seconds;
    p->deadline = clock_seconds() + seconds;
    p->last_line[0] = p->step.candidate[0] = p->step.variant[0] = p->step.what[0] = 0;
    /* what cannot be sent is not answered: either it is dead, which shows, or its time will be up */
    if (!frames_send(p->fd, type, body, &ignored)) p->deadline = clock_seconds() + 1;
    json_decref(body);
}

/* Time in which the supervisor itself did not run (it was stopped) does not count as silence. */
static void forgive(process *const *list, int count, double began, double seconds) {
    const double over = clock_seconds() - began - seconds;
    if (over > 1)
        for (int k = 0; k < count; k++) list[k]->deadline += over;
}

void process_wait(process *const *list, int count, double seconds) {
    struct pollfd fds[2 * MAX_PROCESSES];
    int n = 0;
    const double began = clock_seconds();
    double wait = seconds;
    for (int k = 0; k < count && k < MAX_PROCESSES; k++) {
        const process *p = list[k];
        if (p->state == PROCESS_NONE) continue;
        if (p->deadline - began < wait) wait = fmax(p->deadline - began, 0);
        if (!p->reader.ended) fds[n++] = (struct pollfd){.fd = p->fd, .events = POLLIN};
        if (p->error_fd >= 0) fds[n++] = (struct pollfd){.fd = p->error_fd, .events = POLLIN};
        if (p->reader.ended || p->dead) wait = 0;
    }
    poll(fds, (nfds_t)n, (int)ceil(wait * 1e3));
    for (int k = 0; k < count; k++) {
        status ignored;
        if (list[k]->state == PROCESS_NONE) continue;
        if (!frames_feed(&list[k]->reader, &ignored)) list[k]->reader.ended = true;
        read_errors(list[k]);
    }
    forgive(list, count, began, wait);
}

static void note_step(process *p, const json_t *body) {
    const char *candidate = json_string_value(json_object_get(body, "candidate"));
    const char *variant = json_string_value(json_object_get(body, "variant"));
    const char *what = json_string_value(json_object_get(body, "what"));
    const double seconds = json_number_value(json_object_get(body, "seconds"));
    snprintf(p->step.candidate, sizeof p->step.candidate, "%s", candidate ? candidate : "");
    snprintf(p->step.variant, sizeof p->step.variant, "%s", variant ? variant : "");
    snprintf(p->step.what, sizeof p->step.what, "%s", what ? what : "");
    if (isfinite(seconds) && seconds > 0) p->seconds = seconds;
}

process_event process_next(process *p, frames_frame *frame, process_loss *loss) {
    status st;
    if (p->state == PROCESS_NONE) return PROCESS_QUIET;
    const int n = frames_next(&p->reader, frame, &st);
    if (n > 0) {
        if (frame->type == FRAMES_STEP) note_step(p, frame->body);
        if (frame->type == FRAMES_SAY && p->warn && json_is_true(json_object_get(frame->body, "warning")))
            p->warn(p->warn_context, json_get_text(frame->body, "text"));
        if (isfinite(p->deadline)) p->deadline = clock_seconds() + p->seconds;
        return PROCESS_FRAME;
    }
    /* a child of a dead worker may hold the connection open: what was still in it is read once more */
    if (p->reader.ended || (n == 0 && p->dead)) {
        lost_by_end(p, loss);
        return PROCESS_LOST;
    }
    if (n < 0) {
        process_condemn(p, ROW_CRASHED, "exit", st.text, loss);
        return PROCESS_LOST;
    }
    p->dead = died(p);
    if (!p->dead && was_stopped(p)) {
        lost_by_stop(p, loss);
        return PROCESS_LOST;
    }
    if (p->dead || clock_seconds() <= p->deadline) return PROCESS_QUIET;
    lost_by_time(p, loss);
    return PROCESS_LOST;
}

/* ---- questions ---- */

static void say_failed(const json_t *body, status *st) {
    const char *text = json_string_value(json_object_get(body, "text"));
    const json_int_t code = json_integer_value(json_object_get(body, "status"));
    const bool known = code > STATUS_OK && code <= STATUS_REGRESSION;
    status_set(st, known ? (status_code)code : STATUS_ENVIRONMENT, "%s", text && *text ? text : "a worker failed");
}

/* A plugin that cannot be loaded is bad input, however that shows. */
static void say_lost(const process *p, const process_loss *loss, status *st) {
    if (loads_plugin(p)) {
        status_set(st, STATUS_INPUT, "%s", loss->text);
    } else {
        status_set(st, STATUS_ENVIRONMENT, "a worker (%s) was lost: %s", p->label, loss->text);
    }
}

/* The next frame that is no heartbeat; false: lost. */
static bool receive(process *p, frames_frame *frame, status *st) {
    process_loss loss;
    for (;;) {
        switch (process_next(p, frame, &loss)) {
        case PROCESS_LOST: say_lost(p, &loss, st); return false;
        case PROCESS_FRAME:
            if (frame->type != FRAMES_STEP && frame->type != FRAMES_SAY && frame->type != FRAMES_PART) return true;
            json_decref(frame->body);
            break;
        case PROCESS_QUIET: process_wait(&p, 1, 1);
        }
    }
}

json_t *process_call(process *p, frames_type type, json_t *body, double seconds, status *st) {
    frames_frame frame;
    if (p->state == PROCESS_STARTING) {
        if (!receive(p, &frame, st)) {
            json_decref(body);
            return NULL;
        }
        if (frame.type == FRAMES_FAILED) say_failed(frame.body, st);
        json_decref(frame.body);
        if (frame.type != FRAMES_HELLO) {
            json_decref(body);
            return NULL;
        }
        process_rest(p, PROCESS_READY);
    }
    const process_state before = p->state;
    p->state = type == FRAMES_OPEN ? PROCESS_OPENING : PROCESS_BUSY;
    process_send(p, type, body, seconds);
    if (!receive(p, &frame, st)) return NULL;
    process_rest(p, frame.type == FRAMES_OPENED ? PROCESS_IDLE : before);
    if (frame.type == FRAMES_OPENED || frame.type == FRAMES_DONE) return frame.body;
    say_failed(frame.body, st);
    json_decref(frame.body);
    return NULL;
}
