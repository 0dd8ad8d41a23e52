/* Frames between the supervisor and its workers: a header (magic, version, type, length, checksum) and a JSON object.
 * Either side may die at any byte; a frame that is cut short or damaged is an error of the connection, never of the
 * reader. */
#pragma once

#include "common/json.h"

enum { FRAMES_VERSION = 1, FRAMES_MAX_BYTES = 64 << 20, FRAMES_HEADER_BYTES = 16 };

typedef enum frames_type {
    FRAMES_HELLO = 1, /* worker: {version, pid} */
    FRAMES_OPEN,      /* supervisor: {device} */
    FRAMES_OPENED,    /* worker: {device, identity, class, instance, class_folder, candidates_hash, kinds} */
    FRAMES_JOB,       /* supervisor: {what: "measure" | "qualify" | "ceilings" | "candidates" | "devices", …};
                       ceilings: true where they are those of the last job that had any */
    FRAMES_STEP,      /* worker: {candidate, variant, what, seconds}: heartbeat; silence beyond `seconds` is a hang;
                       also before its hello: then variant is the file of the plugin that is being loaded */
    FRAMES_SAY,       /* worker: {text}: progress for a person; with warning: true what went wrong on the way */
    FRAMES_PART,   /* worker: {ceilings, parts: [name, …]}: those of a job that are done, and what is known by then;
                      {ready: [session, …]}: of jobs that were announced, those that are prepared now */
    FRAMES_DONE,   /* worker: {result} */
    FRAMES_FAILED, /* worker: {answer, code, text, status}; it goes on unless answer is "lost" */
    FRAMES_QUIT,   /* supervisor: end */
    FRAMES_TYPE_END
} frames_type;

typedef struct frames_frame {
    frames_type type;
    json_t *body; /* an object, owned by the reader: json_decref */
} frames_frame;

/* Sends all of it. EINTR is retried and SIGPIPE is not raised. Blocks; on a descriptor that does not block, for at most
 * FRAMES_SEND_SECONDS without progress. body NULL: an empty object. */
enum { FRAMES_SEND_SECONDS = 10 };
bool frames_send(int fd, frames_type type, const json_t *body, status *st);

/* Frames as bytes arrive: frames_feed reads what is there (at most once) and frames_next takes the next whole frame. */
typedef struct frames_reader {
    int fd;
    char *bytes;              /* owned: frames_reader_free */
    size_t start, used, room; /* what was not taken yet lies in [start, used) */
    bool ended;
} frames_reader;
void frames_reader_init(frames_reader *r, int fd);
void frames_reader_free(frames_reader *r);
bool frames_feed(frames_reader *r, status *st);                     /* false: failed; end of file sets `ended` */
int frames_next(frames_reader *r, frames_frame *frame, status *st); /* 1: a frame; 0: none yet; -1: damaged */
/* Blocks until a frame is there; false: ended (STATUS_OK in st where that was between two frames) or damaged. */
bool frames_receive(frames_reader *r, frames_frame *frame, status *st);
