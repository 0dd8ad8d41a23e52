/* Frames over pipes and sockets: in one piece, byte by byte, many at once, damaged everywhere, cut short, without a
 * reader. */
#include "scout/worker/frames.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static status st;

static json_t *some_body(int number, size_t text_bytes) {
    char *text = malloc(text_bytes + 1);
    memset(text, 'x', text_bytes);
    text[text_bytes] = 0;
    json_t *body = json_pack("{s:i, s:s, s:f}", "number", number, "text", text, "third", 1.0 / 3);
    free(text);
    return body;
}

static void open_pair(int *pair) { UNIT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0); }

/* What a frame looks like on the wire. */
static size_t frame_bytes(frames_type type, json_t *body, char *out, size_t room) {
    int ends[2];
    size_t n = 0;
    UNIT_INT(pipe(ends), 0);
    UNIT_CHECK(frames_send(ends[1], type, body, &st));
    close(ends[1]);
    for (ssize_t k; n < room && (k = read(ends[0], out + n, room - n)) > 0;) n += (size_t)k;
    close(ends[0]);
    return n;
}

static void there_and_back(void) {
    int pair[2];
    frames_reader r;
    frames_frame frame;
    open_pair(pair);
    frames_reader_init(&r, pair[0]);
    json_t *body = some_body(7, 100);
    UNIT_CHECK(frames_send(pair[1], FRAMES_JOB, body, &st));
    UNIT_CHECK(frames_send(pair[1], FRAMES_QUIT, NULL, &st));
    UNIT_CHECK(frames_receive(&r, &frame, &st));
    UNIT_INT(frame.type, FRAMES_JOB);
    UNIT_CHECK(json_equal(frame.body, body));
    json_decref(frame.body);
    UNIT_CHECK(frames_receive(&r, &frame, &st));
    UNIT_INT(frame.type, FRAMES_QUIT);
    UNIT_INT(json_object_size(frame.body), 0);
    json_decref(frame.body);
    close(pair[1]);
    st = (status){.code = STATUS_INPUT};
    UNIT_CHECK(!frames_receive(&r, &frame, &st));
    UNIT_INT(st.code, STATUS_OK); /* an end between two frames is no mistake */
    json_decref(body);
    frames_reader_free(&r);
    close(pair[0]);
}

static void byte_by_byte(void) {
    static char bytes[4096];
    int ends[2];
    frames_reader r;
    frames_frame frame;
    json_t *body = some_body(1, 10);
    const size_t n = frame_bytes(FRAMES_STEP, body, bytes, sizeof bytes);
    UNIT_INT(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    frames_reader_init(&r, ends[0]);
    for (size_t k = 0; k < n; k++) {
        UNIT_INT(frames_next(&r, &frame, &st), 0);
        UNIT_INT(write(ends[1], bytes + k, 1), 1);
        UNIT_CHECK(frames_feed(&r, &st));
        UNIT_CHECK(frames_feed(&r, &st)); /* nothing there: no mistake either */
    }
    UNIT_INT(frames_next(&r, &frame, &st), 1);
    UNIT_CHECK(json_equal(frame.body, body));
    json_decref(frame.body);
    json_decref(body);
    frames_reader_free(&r);
    close(ends[0]);
    close(ends[1]);
}

/* More than a socket holds, in both directions of its patience: the writer must wait, the reader must put together. */
static void large_and_many(void) {
    enum { COUNT = 50, LARGE = 3 << 20 };
    int pair[2];
    open_pair(pair);
    fcntl(pair[1], F_SETFL, O_NONBLOCK);
    const pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        bool good = true;
        for (int k = 0; k < COUNT; k++) {
            json_t *body = some_body(k, k == 10 ? LARGE : 1000);
            good = frames_send(pair[1], FRAMES_SAY, body, &st) && good;
            json_decref(body);
        }
        _exit(good ? 0 : 1);
    }
    close(pair[1]);
    frames_reader r;
    frames_frame frame;
    int how = 1, seen = 0;
    frames_reader_init(&r, pair[0]);
    while (frames_receive(&r, &frame, &st)) {
        UNIT_INT(json_integer_value(json_object_get(frame.body, "number")), seen);
        UNIT_INT(json_string_length(json_object_get(frame.body, "text")), seen == 10 ? LARGE : 1000);
        json_decref(frame.body);
        seen++;
    }
    UNIT_INT(seen, COUNT);
    waitpid(child, &how, 0);
    UNIT_INT(how, 0);
    frames_reader_free(&r);
    close(pair[0]);
}

/* -1, 0 or 1 for these bytes and then the end. */
static int read_bytes(const char *bytes, size_t n) {
    int ends[2];
    frames_reader r;
    frames_frame frame;
    UNIT_INT(pipe(ends), 0);
    UNIT_INT(write(ends[1], bytes, n), n);
    close(ends[1]);
    frames_reader_init(&r, ends[0]);
    while (!r.ended) UNIT_CHECK(frames_feed(&r, &st));
    const int what = frames_next(&r, &frame, &st);
    if (what > 0) json_decref(frame.body);
    frames_reader_free(&r);
    close(ends[0]);
    return what;
}

static void damaged(void) {
    static char bytes[4096], bent[4096];
    json_t *body = some_body(1, 20);
    const size_t n = frame_bytes(FRAMES_DONE, body, bytes, sizeof bytes);
    UNIT_INT(read_bytes(bytes, n), 1);
    for (size_t k = 0; k < n; k++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bent, bytes, n);
            bent[k] = (char)(bent[k] ^ 1 << bit);
            UNIT_INT(read_bytes(bent, n), -1);
        }
    for (size_t k = 1; k < n; k++) UNIT_INT(read_bytes(bytes, k), -1);
    UNIT_INT(read_bytes(bytes, 0), 0);
    json_decref(body);
}

/* A length that is too large is refused at once: nothing waits for bytes that never come. */
static void too_long(void) {
    static char bytes[4096];
    const uint32_t length = FRAMES_MAX_BYTES + 1;
    int ends[2];
    frames_reader r;
    frames_frame frame;
    UNIT_CHECK(frame_bytes(FRAMES_QUIT, NULL, bytes, sizeof bytes) == FRAMES_HEADER_BYTES + 2);
    memcpy(bytes + 8, &length, sizeof length);
    UNIT_INT(pipe(ends), 0);
    UNIT_INT(write(ends[1], bytes, FRAMES_HEADER_BYTES), FRAMES_HEADER_BYTES);
    frames_reader_init(&r, ends[0]);
    UNIT_CHECK(frames_feed(&r, &st));
    UNIT_INT(frames_next(&r, &frame, &st), -1);
    UNIT_CHECK(strstr(st.text, "too long") != NULL);
    frames_reader_free(&r);
    close(ends[0]);
    close(ends[1]);
}

/* Writing without a reader is an error and no signal: neither on a socket nor on a pipe. */
static void to_nobody(void) {
    int pair[2], ends[2];
    signal(SIGPIPE, SIG_DFL);
    open_pair(pair);
    UNIT_INT(pipe(ends), 0);
    close(pair[0]);
    close(ends[0]);
    UNIT_CHECK(!frames_send(pair[1], FRAMES_QUIT, NULL, &st));
    UNIT_CHECK(!frames_send(ends[1], FRAMES_QUIT, NULL, &st));
    UNIT_CHECK(strstr(st.text, strerror(EPIPE)) != NULL);
    close(pair[1]);
    close(ends[1]);
}

static void on_alarm(int number) { (void)number; }

/* Signals in the middle of reading and writing change nothing. */
static void interrupted(void) {
    int pair[2];
    open_pair(pair);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL); /* before there is a child that sends one */
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int k = 0; k < 20; k++) {
            usleep(2000);
            kill(parent, SIGALRM);
        }
        json_t *body = some_body(3, 100);
        _exit(frames_send(pair[1], FRAMES_SAY, body, &st) ? 0 : 1);
    }
    frames_reader r;
    frames_frame frame = {0};
    int how = 1;
    frames_reader_init(&r, pair[0]);
    UNIT_CHECK(frames_receive(&r, &frame, &st));
    UNIT_INT(json_integer_value(json_object_get(frame.body, "number")), 3);
    json_decref(frame.body);
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    UNIT_INT(how, 0);
    frames_reader_free(&r);
    close(pair[0]);
    close(pair[1]);
}

static void refused_bodies(void) {
    json_t *list = json_array();
    static char bytes[4096];
    const size_t n = frame_bytes(FRAMES_DONE, list, bytes, sizeof bytes);
    UNIT_INT(read_bytes(bytes, n), -1); /* a body is an object */
    json_decref(list);
}

int main(void) {
    UNIT_RUN(there_and_back);
    UNIT_RUN(byte_by_byte);
    UNIT_RUN(large_and_many);
    UNIT_RUN(damaged);
    UNIT_RUN(too_long);
    UNIT_RUN(to_nobody);
    UNIT_RUN(interrupted);
    UNIT_RUN(refused_bodies);
    return unit_end();
}
