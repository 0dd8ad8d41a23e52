/* Reading a weight. The model's path is the user's word; the name of a file beside it is the model's, and must not lead
 * out of the model's folder: no absolute name, no "..", no link (but the model itself may be one). */
#include "scout/input/weights.h"

#include "common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool stays_inside(const char *file) {
    if (!*file || *file == '/') return false;
    for (const char *at = file; at; at = strchr(at, '/')) {
        if (*at == '/') at++;
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return false;
    }
    return true;
}

/* Each folder on the way is opened without following links. */
static int open_inside(int folder, const char *file) {
    char part[NAME_MAX + 1];
    int at = dup(folder);
    while (at >= 0) {
        const char *slash = strchr(file, '/');
        const size_t n = slash ? (size_t)(slash - file) : strlen(file);
        int next = -1;
        if (n < sizeof part) {
            memcpy(part, file, n);
            part[n] = 0;
            next =
                openat(at, n ? part : ".", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (slash ? O_DIRECTORY : 0));
        } else {
            errno = ENAMETOOLONG;
        }
        const int error = errno;
        close(at);
        errno = error;
        if (!slash) return next;
        at = next;
        file = slash + 1;
    }
    return -1;
}

static int open_place(const weights_place *at) {
    char folder[PATH_MAX];
    const char *base = files_base(at->model);
    if (strcmp(base, at->file) == 0) return open(at->model, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!stays_inside(at->file) || (size_t)(base - at->model) >= sizeof folder - 2) {
        errno = EXDEV;
        return -1;
    }
    snprintf(folder, sizeof folder, "%.*s.", (int)(base - at->model), at->model);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -1;
    const int file = open_inside(fd, at->file);
    const int error = errno;
    close(fd);
    errno = error;
    return file;
}

static bool refuse(const weights_place *at, scout_why *why, const char *what) {
    scout_say(why, SCOUT_NO, "weight", "weight %.60s cannot be read from %.80s: %s", at->name, at->file, what);
    return false;
}

bool weights_file_part(const weights_place *at, uint64_t from, void *to, uint64_t bytes, scout_why *why) {
    struct stat found;
    if (at->offset < 0 || at->length < 0 || from > (uint64_t)at->length || bytes > (uint64_t)at->length - from ||
        at->offset > INT64_MAX - at->length)
        return refuse(at, why, "its offset or length is invalid");
    const int fd = open_place(at);
    if (fd < 0) return refuse(at, why, errno == EXDEV ? "it lies outside of the model's folder" : strerror(errno));
    bool good = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size >= at->offset + at->length;
    const char *what = good ? NULL : "it is not a file of that size";
    for (uint64_t done = 0; good && done < bytes;) {
        const ssize_t n =
            pread(fd, (char *)to + done, (size_t)(bytes - done), (off_t)((uint64_t)at->offset + from + done));
        if (n < 0 && errno == EINTR) continue;
        good = n > 0;
        if (n < 0) what = strerror(errno);
        if (n == 0) what = "it became shorter";
        if (n > 0) done += (uint64_t)n;
    }
    close(fd);
    return good || refuse(at, why, what);
}

bool weights_file_read(const weights_place *at, void *to, uint64_t bytes, scout_why *why) {
    if ((uint64_t)at->length != bytes) return refuse(at, why, "its length does not fit its shape");
    return weights_file_part(at, 0, to, bytes, why);
}
