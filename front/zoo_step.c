/* Owns the processes of a zoo. Between it and what it starts stands one more, which leads a group of its own and waits
 * for everything that the step leaves behind: when the zoo ends, however that comes about, it ends the group. It holds
 * the zoo's lock for so long, so that what still measures is never disturbed by the next zoo. */
#include "front/zoo.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_START = 4, LOOKED_AT = 64 << 10 };

/* ---- in the process between ---- */

static void on_end(int number) {
    signal(number, SIG_IGN); /* it reaches this process, too */
    kill(0, SIGTERM);
}

static _Noreturn void become(const zoo_step *s, int out, const sigset_t *mask) {
    status st = {0};
    const int in = open(s->input ? s->input : "/dev/null", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(CANNOT_START);
    if (s->gpu && setenv("CUDA_VISIBLE_DEVICES", s->gpu, 1) != 0) _exit(CANNOT_START);
    if (s->profile) {
        (void)start_script("profile.sh", "extract_ops", "PROFILE", s->profile, &st);
    } else {
        execv(s->words[0], (char **)(uintptr_t)s->words);
        status_set(&st, STATUS_ENVIRONMENT, "%s cannot be started: %s", s->words[0], strerror(errno));
    }
    status_print(stderr, "ceiling-scout", NULL, st.text);
    fflush(stderr);
    _exit(CANNOT_START);
}

static int code_of(int ended) { return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended); }

/* What asks it to end is held back until there is a step to be told. */
static _Noreturn void lead(const zoo_step *s, int out, pid_t zoo_pid, const sigset_t *mask) {
    int code = CANNOT_START, ended;
    setpgid(0, 0);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, on_end);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != zoo_pid) _exit(CANNOT_START);
    const pid_t step = fork();
    if (step == 0) become(s, out, mask);
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (;;) {
        const pid_t one = step < 0 ? -1 : wait(&ended);
        if (one == step && one > 0) code = code_of(ended);
        if (one < 0 && errno != EINTR) _exit(code);
    }
}

/* ---- in the zoo ---- */

int zoo_step_run(zoo *z, const zoo_step *s) {
    sigset_t child, ends, before, waiting;
    const int out = open(s->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out < 0) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "%s: cannot be written: %s", s->log, strerror(errno));
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &child, &before);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &ends, &waiting);
    const pid_t self = getpid(), pid = fork();
    if (pid == 0) lead(s, out, self, &before);
    sigprocmask(SIG_SETMASK, &waiting, NULL);
    close(out);
    int ended = 0, asked = 0;
    bool late = false;
    const double begun = clock_seconds();
    while (pid > 0 && waitpid(pid, &ended, WNOHANG) == 0) {
        const int wish = *s->stop;
        if (wish > asked) kill(asked == 0 ? pid : -pid, asked == 0 ? SIGTERM : SIGKILL);
        asked = wish;
        if (!late && s->most_s > 0 && clock_seconds() - begun > s->most_s) {
            kill(-pid, SIGKILL);
            late = true;
        }
        if (sigtimedwait(&child, NULL, &(struct timespec){.tv_sec = 1}) < 0 && errno == EAGAIN) s->tick(s->context);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "no process can be started: %s", strerror(errno));
    return late ? ZOO_STEP_LATE : code_of(ended);
}

/* ---- what it said ---- */

/* A program says why it ended badly in a line that begins with its name; others may follow, of what went on without. */
static bool tells_why(const char *line) {
    static const char *const programs[] = {"extract_ops: ", "scout_batch: ", "analyze: ", "ceiling-scout: "};
    for (size_t k = 0; k < sizeof programs / sizeof programs[0]; k++) {
        const size_t n = strlen(programs[k]);
        if (strncmp(line, programs[k], n) == 0) return strncmp(line + n, "warning: ", 9) != 0;
    }
    return false;
}

const char *zoo_step_why(zoo *z, const char *log) {
    char *const text = arena_alloc(z->a, LOOKED_AT + 1), *chosen = NULL, *last = NULL, *rest = NULL;
    const int fd = open(log, O_RDONLY | O_CLOEXEC);
    const off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    const ssize_t n = fd < 0 ? 0 : pread(fd, text, LOOKED_AT, size > LOOKED_AT ? size - LOOKED_AT : 0);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        last = line;
        if (tells_why(line)) chosen = line;
    }
    return chosen || last ? zoo_digest_plain(z, chosen ? chosen : last) : "it said nothing";
}

const char *zoo_step_folder(zoo *z, const settings *profile) {
    int ends[2], ended = 0;
    char text[PATH_MAX];
    size_t n = 0;
    ssize_t k;
    settings asking = *profile;
    asking.ask = true;
    if (pipe2(ends, O_CLOEXEC) != 0) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "no pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        status st = {0};
        if (dup2(ends[1], STDOUT_FILENO) >= 0) (void)start_script("profile.sh", "extract_ops", "PROFILE", &asking, &st);
        status_print(stderr, "ceiling-scout", NULL, st.text);
        _exit(CANNOT_START);
    }
    close(ends[1]);
    while (pid > 0 && n < sizeof text - 1 &&
           ((k = read(ends[0], text + n, sizeof text - 1 - n)) > 0 || (k < 0 && errno == EINTR)))
        n += k > 0 ? (size_t)k : 0;
    close(ends[0]);
    const bool ran = pid > 0 && waitpid(pid, &ended, 0) == pid && code_of(ended) == 0;
    while (n > 0 && text[n - 1] == '\n') n--;
    if (!ran || n == 0)
        guard_fail(z->a->guard, STATUS_ENVIRONMENT,
                   "%s: the name of its folder is not to be had; install bash and coreutils", profile->model);
    return arena_strndup(z->a, text, n);
}
