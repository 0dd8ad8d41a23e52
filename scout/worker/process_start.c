/* Starting a worker. Each is a group of its own, so that Ctrl-C reaches the supervisor alone and a kill reaches what a
 * plugin has started; the kernel ends it when the supervisor dies; it inherits its end of the connection and nothing
 * else. */
#include "scout/worker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 80 };

typedef struct launch { /* all that the child needs, made before the fork */
    char *arguments[MAX_ARGUMENTS];
    char connection[32];
    int fd, error_fd, null_fd;
    pid_t parent;
} launch;

static bool make_arguments(launch *l, const supervisor_options *o) {
    int n = 0;
    if (o->plugin_count > (MAX_ARGUMENTS - 6) / 2) return false;
    snprintf(l->connection, sizeof l->connection, "%d,%d", l->fd, l->fd);
    l->arguments[n++] = (char *)(uintptr_t)o->program;
    l->arguments[n++] = (char *)(uintptr_t) "--worker";
    l->arguments[n++] = l->connection;
    if (o->library_path) {
        l->arguments[n++] = (char *)(uintptr_t) "--library-path";
        l->arguments[n++] = (char *)(uintptr_t)o->library_path;
    }
    for (int k = 0; k < o->plugin_count; k++) {
        l->arguments[n++] = (char *)(uintptr_t) "--custom-kernel";
        l->arguments[n++] = (char *)(uintptr_t)o->plugins[k];
    }
    l->arguments[n] = NULL;
    return true;
}

/* In the child, between fork and exec: only calls that are safe there. */
static _Noreturn void become_worker(const launch *l) {
    sigset_t none;
    setsid(); /* a group to end as a whole; and where the system shares cores between sessions, a share of its own */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->parent) _exit(127); /* it died before that call */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int k = 1; k < NSIG; k++) signal(k, SIG_DFL);
    dup2(l->null_fd, STDIN_FILENO);
    dup2(l->error_fd, STDOUT_FILENO);
    dup2(l->error_fd, STDERR_FILENO);
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    fcntl(l->fd, F_SETFD, 0);
    execve(l->arguments[0], l->arguments, environ);
    dprintf(STDERR_FILENO, "%s: cannot be started: %s\n", l->arguments[0], strerror(errno));
    _exit(127);
}

static bool fork_worker(process *p, launch *l, const supervisor_options *options, status *st) {
    int pair[2] = {-1, -1}, error_pipe[2] = {-1, -1};
    l->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool good = l->null_fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 &&
                pipe2(error_pipe, O_CLOEXEC) == 0;
    if (good) {
        l->fd = pair[1], l->error_fd = error_pipe[1], l->parent = getpid();
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        fcntl(error_pipe[0], F_SETFL, O_NONBLOCK);
        good = make_arguments(l, options);
        if (!good) errno = E2BIG;
    }
    if (good) prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a worker leaves behind becomes ours, and is ended */
    const pid_t pid = good ? fork() : -1;
    if (pid == 0) become_worker(l);
    if (pid < 0) status_set(st, STATUS_ENVIRONMENT, "no worker can be started: %s", strerror(errno));
    if (pair[1] >= 0) close(pair[1]);
    if (error_pipe[1] >= 0) close(error_pipe[1]);
    if (l->null_fd >= 0) close(l->null_fd);
    if (pid < 0) {
        if (pair[0] >= 0) close(pair[0]);
        if (error_pipe[0] >= 0) close(error_pipe[0]);
        return false;
    }
    process_enlist(pid);
    p->pid = pid, p->fd = pair[0], p->error_fd = error_pipe[0];
    return true;
}

bool process_start(process *p, const supervisor_options *options, const char *label, status *st) {
    launch l = {.null_fd = -1};
    *p = (process){.fd = -1,
                   .error_fd = -1,
                   .verbose = options->verbose || getenv("CEILING_SCOUT_VERBOSE"),
                   .warn = options->warn,
                   .warn_context = options->warn_context};
    snprintf(p->label, sizeof p->label, "%s", label);
    if (!fork_worker(p, &l, options, st)) return false;
    frames_reader_init(&p->reader, p->fd);
    p->state = PROCESS_STARTING;
    p->seconds = options->start_seconds > 0 ? options->start_seconds : 60;
    p->deadline = clock_seconds() + p->seconds;
    return true;
}
