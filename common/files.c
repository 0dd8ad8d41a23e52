/* Atomic writing: a temporary file in the same folder takes all bytes, is flushed to disk, and then takes the target's
 * name. Whatever goes wrong before leaves the target as it was. */
#include "common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- half-written files and signals ---- */

enum { TICKETS = 4 };
static char *volatile temps[TICKETS];

/* Only calls that are allowed in a handler. */
static void on_signal(int number) {
    for (int k = 0; k < TICKETS; k++) {
        const char *path = temps[k];
        if (path) unlink(path);
    }
    signal(number, SIG_DFL);
    raise(number); /* arrives when the handler returns */
}

void files_on_signals(void (*handler)(int number)) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
        struct sigaction action, old;
        memset(&action, 0, sizeof action);
        action.sa_handler = handler;
        sigemptyset(&action.sa_mask);
        /* a signal that the parent ignores (nohup) stays ignored */
        if (sigaction(numbers[k], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(numbers[k], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN);
}

void files_clean_on_signals(void) { files_on_signals(on_signal); }

/* ---- standard files ---- */

void files_hold_standard(void) {
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
    if (fd >= 0) close(fd);
}

void files_finish_output(status *st, const char *advice) {
    const bool good = fflush(stdout) == 0 && !ferror(stdout);
    if (!good && st->code <= STATUS_INCOMPLETE)
        status_set(st, STATUS_ENVIRONMENT, "standard output cannot be written %s", advice);
}

static int take_ticket(char *temp) {
    for (int k = 0; k < TICKETS; k++) {
        if (temps[k]) continue;
        temps[k] = temp;
        return k;
    }
    return -1;
}

/* ---- the bound ---- */

/* Threads read beside each other. */
static atomic_uint_fast64_t have_read;

void files_have_read(uint64_t bytes) { atomic_fetch_add(&have_read, bytes); }

static uint64_t most_bytes(void) {
    const uint64_t bytes = atomic_load(&have_read);
    return bytes < UINT64_MAX / FILES_PER_BYTE / 2 ? bytes * FILES_PER_BYTE + FILES_ROOM : UINT64_MAX;
}

/* ---- writing ---- */

static void release(files_out *f) {
    if (f->ticket >= 0) temps[f->ticket] = NULL;
    f->ticket = -1;
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
    free(f->target);
    free(f->temp);
    f->target = f->temp = NULL;
}

static bool fail(files_out *f, const char *path, int error, const char *deed, status *st) {
    if (error == FILES_TOO_LONG)
        status_set(
            st, STATUS_INPUT,
            "%s: would be longer than %llu MB, the limit for an input of this size; shorten its names, or split it",
            path, (unsigned long long)(f->most / 1000000));
    else
        status_set(st, STATUS_ENVIRONMENT, "%s: %s: %s", path, deed, strerror(error));
    files_abort(f);
    return false;
}

bool files_lacks_folder(const char *path, status *st) {
    const size_t n = (size_t)(files_base(path) - path);
    char *folder = n > 1 ? strndup(path, n - 1) : NULL;
    const bool lacks = folder && access(folder, F_OK) != 0 && errno == ENOENT;
    if (lacks)
        status_set(st, STATUS_ENVIRONMENT, "%s: there is no folder %s; make it first (mkdir -p), or name another", path,
                   folder);
    free(folder);
    return lacks;
}

/* An unused name beside the target. Sets errno and returns false where none can be made. */
static bool open_temp(files_out *f) {
    static unsigned counter;
    const char *base = files_base(f->target);
    int folder = (int)(base - f->target);
    size_t room = strlen(f->target) + 64;
    f->temp = malloc(room);
    if (!f->temp) return false;
    for (int attempt = 0; attempt < 1000; attempt++) {
        if (f->ticket >= 0) temps[f->ticket] = NULL; /* a signal must not find a name that is half made */
        snprintf(f->temp, room, "%.*s.%.180s.%ld-%u.part", folder, f->target, base, (long)getpid(), counter++);
        f->ticket = take_ticket(f->temp);
        f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (f->fd >= 0) return true;
        if (errno != EEXIST) break;
    }
    int error = errno;
    if (f->ticket >= 0) temps[f->ticket] = NULL;
    f->ticket = -1;
    free(f->temp);
    f->temp = NULL;
    errno = error;
    return false;
}

/* The name that a link to nothing yet stands for, so that the link stays. NULL with errno. */
static char *end_of_links(const char *path) {
    enum { MOST_LINKS = 40 };
    char *at = strdup(path), to[4096];
    for (int k = 0; at && k < MOST_LINKS; k++) {
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n < 0) return at;
        to[n] = 0;
        int folder = to[0] == '/' ? 0 : (int)(files_base(at) - at);
        size_t room = (size_t)folder + (size_t)n + 1;
        char *next = malloc(room);
        if (next) snprintf(next, room, "%.*s%s", folder, at, to);
        free(at);
        at = next;
    }
    errno = at ? ELOOP : ENOMEM;
    free(at);
    return NULL;
}

/* Where a regular file is, or would be; owned. NULL: it is another kind of file, or nothing can be there. */
static char *place_of(const char *path) {
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) return NULL;
    char *end = end_of_links(path), *folder = NULL, *real = NULL, *place = NULL;
    if (end) folder = strndup(end, (size_t)(files_base(end) - end));
    if (folder) real = realpath(*folder ? folder : ".", NULL);
    const size_t room = real ? strlen(real) + strlen(files_base(end)) + 2 : 0;
    if (room > 0) place = malloc(room);
    if (place) snprintf(place, room, "%s/%s", real, files_base(end));
    free(end);
    free(folder);
    free(real);
    return place;
}

bool files_same(const char *a, const char *b) {
    if (strcmp(a, b) == 0) return true;
    char *x = place_of(a), *y = place_of(b);
    const bool same = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* The standard output or error that a path leads to (/dev/stdout), -1 where it is neither. What else goes there must
 * not be overwritten, so that neither a new file nor a second opening of the same one will do. */
static int standard_stream(const struct stat *file) {
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat s;
        if (fstat(fd, &s) != 0 || s.st_dev != file->st_dev || s.st_ino != file->st_ino) continue;
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return fd;
    }
    return -1;
}

static bool open_directly(files_out *f, const char *path, const struct stat *about, status *st) {
    int standard = standard_stream(about);
    f->direct = true;
    f->fd = standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return f->fd >= 0 ? true : fail(f, path, errno, "cannot be written", st);
}

bool files_begin(files_out *f, const char *path, status *st) {
    f->fd = f->ticket = -1;
    f->error = 0;
    f->direct = false;
    f->target = f->temp = NULL;
    f->used = 0;
    f->written = 0;
    f->most = most_bytes();
    if (!*path) return fail(f, "''", ENOENT, "cannot be written", st);
    struct stat about;
    bool exists = stat(path, &about) == 0;
    if (!exists && errno != ENOENT) return fail(f, path, errno, "cannot be written", st);
    if (exists && S_ISDIR(about.st_mode)) return fail(f, path, EISDIR, "cannot be written", st);
    /* what a link points to is replaced, not the link */
    f->target = exists ? realpath(path, NULL) : end_of_links(path);
    if (!f->target && exists) f->target = strdup(path); /* such as /proc/self/fd/1, a pipe without a path */
    if (!f->target) return fail(f, path, exists ? ENOMEM : errno, "cannot be written", st);
    if (exists && (!S_ISREG(about.st_mode) || standard_stream(&about) >= 0)) return open_directly(f, path, &about, st);
    if (exists && access(path, W_OK) != 0) return fail(f, path, errno, "cannot be written", st);
    if (!open_temp(f)) {
        fail(f, path, errno, "no file can be made beside it", st);
        (void)files_lacks_folder(path, st);
        return false;
    }
    if (exists && fchmod(f->fd, about.st_mode & 0777) != 0) return fail(f, path, errno, "cannot keep its mode", st);
    return true;
}

static void write_all(files_out *f, const char *data, size_t n) {
    while (n > 0 && f->error == 0) {
        ssize_t k = write(f->fd, data, n);
        if (k < 0) {
            if (errno != EINTR) f->error = errno;
            continue;
        }
        data += k;
        n -= (size_t)k;
    }
}

static void flush(files_out *f) {
    write_all(f, f->buffer, f->used);
    f->used = 0;
}

void files_append(files_out *f, const void *data, size_t n) {
    if (n > f->most - f->written && f->error == 0) f->error = FILES_TOO_LONG;
    if (n == 0 || f->error) return;
    f->written += n;
    if (f->used + n > sizeof f->buffer) flush(f);
    if (n > sizeof f->buffer) {
        write_all(f, data, n);
        return;
    }
    memcpy(f->buffer + f->used, data, n);
    f->used += n;
}

static ssize_t append_some(void *cookie, const char *data, size_t n) {
    files_append(cookie, data, n);
    return (ssize_t)n; /* a failure is remembered by the file, and told when it is committed */
}

FILE *files_stream(files_out *f) { return fopencookie(f, "w", (cookie_io_functions_t){.write = append_some}); }

static int sync_fd(int fd) {
    while (fsync(fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0; /* a file system that has no such thing */
        if (errno != EINTR) return errno;
    }
    return 0;
}

/* The new name itself must survive a crash too. The file is in place by then: a failure here is none of the target's.
 */
static void sync_folder(const char *target) {
    size_t n = (size_t)(files_base(target) - target);
    char *folder = n > 0 ? strndup(target, n) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        sync_fd(fd);
        close(fd);
    }
    free(folder);
}

static bool commit(files_out *f, bool with_folder, status *st) {
    flush(f);
    if (f->error) return fail(f, f->target, f->error, "cannot be written", st);
    int error = f->direct ? 0 : sync_fd(f->fd);
    int fd = f->fd;
    f->fd = -1;
    if (close(fd) != 0 && errno != EINTR && error == 0) error = errno;
    if (error) return fail(f, f->target, error, "cannot be written", st);
    if (!f->direct) {
        if (rename(f->temp, f->target) != 0) return fail(f, f->target, errno, "cannot be put in place", st);
        if (with_folder) sync_folder(f->target);
    }
    release(f);
    return true;
}

bool files_commit(files_out *f, status *st) { return commit(f, true, st); }

/* All are on their way to the disk before the first is waited for, and the folder is waited for once. */
bool files_commit_all(files_out *const *files, int count, status *st) {
    bool good = true;
    for (int k = 0; k < count; k++) {
        flush(files[k]);
        if (!files[k]->direct && !files[k]->error) sync_file_range(files[k]->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    for (int k = 0; k < count; k++) {
        status bad = {0};
        if (commit(files[k], k == count - 1, &bad)) continue;
        if (good) *st = bad;
        good = false;
    }
    return good;
}

void files_abort(files_out *f) {
    if (f->temp) unlink(f->temp);
    release(f);
}

bool files_write(const char *path, const void *data, size_t n, status *st) {
    files_out f;
    if (!files_begin(&f, path, st)) return false;
    files_append(&f, data, n);
    return files_commit(&f, st);
}

void files_remove(const char *path) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || standard_stream(&about) >= 0) return;
    char *target = realpath(path, NULL); /* the link itself is not ours */
    if (target) unlink(target);
    free(target);
}

bool files_is_link(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

/* ---- reading ---- */

/* Reads what the descriptor has, up to limit bytes; one byte more is a failure. */
static char *read_all(int fd, size_t hint, size_t limit, size_t *size, int *error) {
    size_t room = hint < limit ? hint : limit;
    char *bytes = malloc(room + 1);
    *size = 0;
    *error = bytes ? 0 : ENOMEM;
    while (*error == 0) {
        ssize_t k = read(fd, bytes + *size, room + 1 - *size); /* the place of the NUL notices a file that grows */
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) *error = errno;
        if (k <= 0) break;
        *size += (size_t)k;
        if (*size <= room) continue;
        if (*size > limit) *error = EFBIG;
        room = room < limit / 2 ? room * 2 + 64 : limit;
        char *bigger = *error ? NULL : realloc(bytes, room + 1);
        if (bigger) bytes = bigger;
        if (!bigger && *error == 0) *error = ENOMEM;
    }
    if (*error == 0) {
        bytes[*size] = 0;
        return bytes;
    }
    free(bytes);
    return NULL;
}

bool files_machines_fault(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO; }

char *files_read(const char *path, size_t limit, size_t *size, status *st) {
    /* without waiting: a pipe without a writer must not hold the program */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        status_set(st, files_machines_fault(errno) ? STATUS_ENVIRONMENT : STATUS_INPUT, "%s: cannot be opened: %s",
                   path, strerror(errno));
        return NULL;
    }
    struct stat about;
    char *bytes = NULL;
    int error = 0;
    if (fstat(fd, &about) != 0) {
        error = errno;
    } else if (!S_ISREG(about.st_mode)) {
        status_set(st, STATUS_INPUT, "%s: is not a regular file", path);
    } else if (about.st_size < 0 || (size_t)about.st_size > limit) {
        error = EFBIG;
    } else {
        bytes = read_all(fd, (size_t)about.st_size, limit, size, &error);
    }
    if (error == EFBIG) {
        status_set(st, STATUS_INPUT, "%s: is larger than %zu bytes, the most that is read", path, limit);
    } else if (error) {
        status_set(st, STATUS_ENVIRONMENT, "%s: cannot be read: %s", path, strerror(error));
    }
    close(fd);
    if (bytes) files_have_read(*size);
    return bytes;
}

/* ---- folders and names ---- */

static bool make_folder(const char *path) {
    if (mkdir(path, 0755) == 0) return true;
    struct stat about;
    int error = errno;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return true;
    errno = error == EEXIST ? ENOTDIR : error;
    return false;
}

bool files_make_folders(const char *path, status *st) {
    char *copy = strdup(path);
    bool good = copy != NULL;
    for (char *s = copy; good && s && *s;) {
        s += strspn(s, "/");
        s += strcspn(s, "/");
        char kept = *s;
        *s = 0;
        good = make_folder(copy);
        *s = kept;
    }
    if (!good) status_set(st, STATUS_ENVIRONMENT, "%s: the folder cannot be made: %s", path, strerror(errno));
    free(copy);
    return good;
}

const char *files_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
