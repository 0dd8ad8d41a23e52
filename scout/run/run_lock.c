/* One run at a time in a folder and on a device. A lock is a file that its holder has locked (flock) and in which it
 * says what it is at; the system takes the lock from a process that ends. The file goes with the lock, so that nothing
 * is left in a folder; one that was killed leaves it, and then it is the next one's. */
#include "scout/run/run_internal.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

typedef enum attempt {
    ATTEMPT_HELD,
    ATTEMPT_TAKEN,   /* by another one */
    ATTEMPT_NO_LOCKS /* the file cannot be made or locked: errno */
} attempt;

enum { WORDS = 300, REOPENED = 1000 };

/* ---- the file ---- */

static bool is_at(int fd, const char *path) {
    struct stat here, there;
    return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

/* Of another user's file only its lock is wanted. */
static int open_lock(const char *path) {
    struct stat about;
    const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = open(path, O_RDWR | O_CREAT | flags, 0644);
    if (fd < 0 && errno == EACCES) fd = open(path, O_RDONLY | flags);
    if (fd < 0) return -1;
    /* one that has a second name is a file of something else, and must not be written into */
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink <= 1) return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

static void read_words(int fd, char *words) {
    const ssize_t n = pread(fd, words, WORDS - 1, 0);
    words[n > 0 ? n : 0] = 0;
    words[strcspn(words, "\n")] = 0;
    if (!words[0]) snprintf(words, WORDS, "another run");
}

static void write_words(int fd, const char *at) {
    char text[WORDS], since[32];
    run_utc(since, sizeof since);
    const int n = snprintf(text, sizeof text, "process %d (%.200s, since %.19sZ)\n", (int)getpid(), at, since);
    /* without these words the lock holds all the same */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) return;
}

/* words: what holds it. */
static attempt try(run_lock *l, const char *path, const char *at, char *words) {
    for (int k = 0; k < REOPENED; k++) {
        const int fd = open_lock(path);
        if (fd < 0) return ATTEMPT_NO_LOCKS;
        const int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (error == EWOULDBLOCK) read_words(fd, words);
        if (error == 0 && is_at(fd, path)) {
            if (!(l->path = strdup(path))) {
                close(fd);
                errno = ENOMEM;
                return ATTEMPT_NO_LOCKS;
            }
            l->fd = fd;
            write_words(fd, at);
            return ATTEMPT_HELD;
        }
        close(fd);
        errno = error;
        if (error) return error == EWOULDBLOCK ? ATTEMPT_TAKEN : ATTEMPT_NO_LOCKS;
    }
    snprintf(words, WORDS, "other runs");
    return ATTEMPT_TAKEN;
}

void run_lock_end(run_lock *l) {
    if (l->path && is_at(l->fd, l->path)) unlink(l->path);
    if (l->path) close(l->fd);
    free(l->path);
    l->path = NULL;
}

/* ---- waiting ---- */

/* What this run is at, for those that wait for it. */
static void say_what(const options *o, char *text, size_t room) {
    if (o->ops_path)
        snprintf(text, room, "%s", o->ops_path);
    else if (o->op)
        snprintf(text, room, "%s %s", o->op, o->shape);
    else
        snprintf(text, room, "ceilings");
}

typedef struct place { /* what is locked, and where else another run could go */
    const char *path, *name, *at, *instead;
} place;

/* It is taken. False: this run does not wait. */
static bool may_wait(run_wait *w, const place *p, const char *words, status *st) {
    if (w->options->no_wait)
        return status_fail(st, STATUS_ENVIRONMENT, "%s: %s is %s; leave out --no-wait to wait for it, or name %s",
                           p->name, words, p->at, p->instead);
    if (*w->stop)
        return status_fail(st, STATUS_INCOMPLETE, "stopped while it waited for %s: %s is %s; nothing was measured",
                           p->name, words, p->at);
    return true;
}

/* Once for each that it waits for, and on a terminal all the time. */
static void say_wait(run_wait *w, const place *p, char *words, char *told) {
    static const struct timespec pause = {0, 100000000};
    char text[2 * WORDS];
    const bool news = strcmp(words, told) != 0;
    snprintf(text, sizeof text, "%s: waiting for %s, which is %s (--no-wait refuses)", p->name, words, p->at);
    if (news) show_progress_line(w->progress, text);
    if (news) memcpy(told, words, WORDS);
    show_progress_set(w->progress,
                      &(show_progress_state){.left_s = NAN, .phases = "waiting", .phase = "waiting", .what = text});
    nanosleep(&pause, NULL);
}

/* ATTEMPT_TAKEN: st says why it is not waited for. */
static attempt take(run_wait *w, const place *p, run_lock *l, status *st) {
    char what[WORDS], words[WORDS], told[WORDS] = "";
    const double began = clock_seconds();
    say_what(w->options, what, sizeof what);
    for (;;) {
        const attempt how = try(l, p->path, what, words);
        const int error = errno;
        if (how == ATTEMPT_TAKEN && may_wait(w, p, words, st)) {
            say_wait(w, p, words, told);
            continue;
        }
        if (*told) {
            w->waited_s += clock_seconds() - began;
            show_progress_end(w->progress);
        }
        errno = error;
        return how;
    }
}

/* ---- what is locked ---- */

bool run_lock_folder(run_wait *w, const char *folder, run_lock *l, status *st) {
    char path[4096];
    const place p = {path, folder, "writing there", "another folder"};
    if (snprintf(path, sizeof path, "%s/.scout_lock", folder) >= (int)sizeof path)
        return status_fail(st, STATUS_USAGE, "--output: the folder's name is too long");
    if (run_files_refuse_link(path, st)) return false;
    const attempt how = take(w, &p, l, st);
    if (how == ATTEMPT_HELD || how == ATTEMPT_TAKEN) return how == ATTEMPT_HELD;
    if (errno == EEXIST) return status_fail(st, STATUS_ENVIRONMENT, "%s: is not a file of a run; move it away", path);
    if (errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EBADF)
        return status_fail(st, STATUS_ENVIRONMENT, "%s: cannot be written: %s", path, strerror(errno));
    /* Each file is whole even so; which of two runs wrote it is open. */
    if (!w->options->quiet)
        status_print(stderr, "scout_batch", "warning: ",
                     "the output folder's file system has no locks: a second run there would not be noticed");
    return true;
}

/* Where locks of devices are: the same for all runs of a user, whatever --cache-dir says. */
static bool lock_folder(int k, char *path, size_t room) {
    status ignored = {0};
    struct stat about;
    char own[3072];
    if (k == 0) {
        return cache_default_folder(own, sizeof own) && snprintf(path, room, "%s/.locks", own) < (int)room &&
               files_make_folders(path, &ignored);
    }
    snprintf(path, room, "/tmp/ceiling-scout-%u", (unsigned)getuid());
    return (mkdir(path, 0700) == 0 || errno == EEXIST) && lstat(path, &about) == 0 && S_ISDIR(about.st_mode) &&
           about.st_uid == getuid();
}

bool run_lock_device(run_wait *w, const supervisor_device *d, run_lock *l, status *st) {
    const char *const which = d->identity.uuid[0] ? d->identity.uuid : d->device_instance;
    char folder[4096 - 32], path[4096];
    const place p = {path, d->name, "measuring on it", "another device"};
    for (int k = 0; k < 2; k++) {
        if (!lock_folder(k, folder, sizeof folder)) continue;
        snprintf(path, sizeof path, "%s/%016" PRIx64, folder, (uint64_t)XXH3_64bits(which, strlen(which)));
        const attempt how = take(w, &p, l, st);
        if (how != ATTEMPT_NO_LOCKS) return how == ATTEMPT_HELD;
    }
    if (!w->options->quiet)
        status_print(
            stderr, "scout_batch", "warning: ",
            "no lock can be kept in the cache or in /tmp: make sure that nothing else measures on this device, "
            "for both would be wrong");
    return true;
}
