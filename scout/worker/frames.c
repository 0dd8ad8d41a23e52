/* Frames. The header holds numbers in the machine's own order: both ends are the same program on the same machine. The
 * checksum is there because foreign code runs in the worker's process and may write wherever it likes. */
#include "scout/worker/frames.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

typedef struct header {
    uint32_t magic;
    uint16_t version, type;
    uint32_t length, checksum;
} header;
_Static_assert(sizeof(header) == FRAMES_HEADER_BYTES, "no padding in a header");

static const uint32_t magic = 0x52465343; /* "CSFR" */

static uint32_t checksum_of(const header *h, const char *bytes) {
    const uint64_t seed = (uint64_t)h->type << 32 | h->length;
    return (uint32_t)XXH3_64bits_withSeed(bytes, h->length, seed);
}

/* ---- sending ---- */

/* A pipe has no MSG_NOSIGNAL: the signal is held back while we write, and taken away where we caused it. */
static ssize_t write_quietly(int fd, const char *data, size_t n) {
    sigset_t pipe_only, old, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    ssize_t k = write(fd, data, n);
    const int error = errno;
    if (k < 0 && error == EPIPE && !was_pending) {
        const struct timespec at_once = {0, 0};
        while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return k;
}

static bool wait_until_writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int n;
    do {
        n = poll(&p, 1, FRAMES_SEND_SECONDS * 1000);
    } while (n < 0 && errno == EINTR);
    if (n == 0) errno = ETIMEDOUT;
    return n > 0;
}

static bool send_all(int fd, const char *data, size_t n) {
    while (n > 0) {
        ssize_t k = send(fd, data, n, MSG_NOSIGNAL);
        if (k < 0 && errno == ENOTSOCK) k = write_quietly(fd, data, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!wait_until_writable(fd)) return false;
            continue;
        }
        if (k < 0) return false;
        data += k;
        n -= (size_t)k;
    }
    return true;
}

bool frames_send(int fd, frames_type type, const json_t *body, status *st) {
    static const char empty[] = "{}";
    const size_t size = body ? json_dumpb(body, NULL, 0, JSON_COMPACT) : sizeof empty - 1;
    if (size == 0 || size > FRAMES_MAX_BYTES)
        return status_fail(st, STATUS_ENVIRONMENT, "a message cannot be sent: %s",
                           size == 0 ? "it cannot be written as JSON" : "it is too long");
    char *frame = malloc(sizeof(header) + size);
    if (!frame) return status_fail(st, STATUS_ENVIRONMENT, "a message cannot be sent: out of memory");
    char *text = frame + sizeof(header);
    if (body) {
        json_dumpb(body, text, size, JSON_COMPACT);
    } else {
        memcpy(text, empty, size);
    }
    header h = {.magic = magic, .version = FRAMES_VERSION, .type = (uint16_t)type, .length = (uint32_t)size};
    h.checksum = checksum_of(&h, text);
    memcpy(frame, &h, sizeof h);
    const bool good = send_all(fd, frame, sizeof h + size);
    if (!good) status_set(st, STATUS_ENVIRONMENT, "a message cannot be sent: %s", strerror(errno));
    free(frame);
    return good;
}

/* ---- receiving ---- */

void frames_reader_init(frames_reader *r, int fd) { *r = (frames_reader){.fd = fd}; }

void frames_reader_free(frames_reader *r) {
    free(r->bytes);
    r->bytes = NULL;
    r->start = r->used = r->room = 0;
}

/* What was taken makes room first; then the buffer doubles. It never grows beyond one frame and one read. */
static bool make_room(frames_reader *r, size_t n) {
    if (r->start > 0) {
        memmove(r->bytes, r->bytes + r->start, r->used - r->start);
        r->used -= r->start;
        r->start = 0;
    }
    if (r->room - r->used >= n) return true;
    const size_t room = r->room * 2 > r->used + n ? r->room * 2 : r->used + n;
    char *bigger = realloc(r->bytes, room);
    if (!bigger) return false;
    r->bytes = bigger;
    r->room = room;
    return true;
}

bool frames_feed(frames_reader *r, status *st) {
    enum { CHUNK = 64 << 10 };
    if (r->ended) return true;
    if (!make_room(r, CHUNK)) return status_fail(st, STATUS_ENVIRONMENT, "a message cannot be read: out of memory");
    ssize_t k;
    do {
        k = read(r->fd, r->bytes + r->used, r->room - r->used);
    } while (k < 0 && errno == EINTR);
    if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (k < 0 && errno != ECONNRESET)
        return status_fail(st, STATUS_ENVIRONMENT, "a message cannot be read: %s", strerror(errno));
    if (k <= 0) {
        r->ended = true;
    } else {
        r->used += (size_t)k;
    }
    return true;
}

static int damaged(status *st, const char *what) {
    status_set(st, STATUS_ENVIRONMENT, "a damaged message: %s", what);
    return -1;
}

static const char *header_mistake(const header *h) {
    if (h->magic != magic) return "it does not begin like one";
    if (h->version != FRAMES_VERSION) return "of another version";
    if (h->type < FRAMES_HELLO || h->type >= FRAMES_TYPE_END) return "of an unknown type";
    if (h->length > FRAMES_MAX_BYTES) return "too long";
    return NULL;
}

int frames_next(frames_reader *r, frames_frame *frame, status *st) {
    const size_t there = r->used - r->start;
    header h;
    if (there < sizeof h) return r->ended && there > 0 ? damaged(st, "it is cut short") : 0;
    memcpy(&h, r->bytes + r->start, sizeof h);
    const char *mistake = header_mistake(&h);
    if (mistake) return damaged(st, mistake);
    if (there - sizeof h < h.length) return r->ended ? damaged(st, "it is cut short") : 0;
    const char *text = r->bytes + r->start + sizeof h;
    if (checksum_of(&h, text) != h.checksum) return damaged(st, "its checksum differs");
    json_t *body = json_loadb(text, h.length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        return damaged(st, "not a JSON object");
    }
    *frame = (frames_frame){.type = (frames_type)h.type, .body = body};
    r->start += sizeof h + h.length;
    if (r->start == r->used) r->start = r->used = 0;
    return 1;
}

bool frames_receive(frames_reader *r, frames_frame *frame, status *st) {
    for (;;) {
        const int n = frames_next(r, frame, st);
        if (n != 0) return n > 0;
        if (r->ended) {
            *st = (status){.code = STATUS_OK, .text = "the connection has ended"};
            return false;
        }
        if (!frames_feed(r, st)) return false;
    }
}
