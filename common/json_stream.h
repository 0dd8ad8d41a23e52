/* Writing JSON as it comes, without a tree in memory, into a file that appears whole or not at all. The first failure
 * is remembered and everything after it ignored, so that one look at the end is enough.
 *
 *     json_stream s;
 *     if (!json_stream_begin(&s, path, &st)) return;
 *     json_stream_open(&s, NULL, '{', false);          the root has no key
 *     json_stream_text(&s, "schema", "ceiling-scout/ops/1");
 *     json_stream_ints(&s, "shape", 3, dims);
 *     json_stream_close(&s);
 *     good = json_stream_commit(&s, &st);               or json_stream_abort(&s)
 *
 * In an object every value has a key, in an array none has (NULL). Two spaces of indentation, one member a line; what
 * is opened `flat` stays on one line with everything in it. */
#pragma once

#include "common/files.h"

#include <stdint.h>

enum { JSON_STREAM_DEPTH = 128 };

typedef struct json_stream {
    files_out file;
    FILE *out;       /* NULL: to the file */
    const char *why; /* first mistake of the caller's data; NULL: none */
    int depth;
    struct {
        char closer;
        bool flat;
        bool empty;
    } level[JSON_STREAM_DEPTH];
} json_stream;

bool json_stream_begin(json_stream *s, const char *path, status *st);
/* To a stream that the caller opened, and checks for failures: ended by json_stream_end. */
void json_stream_begin_on(json_stream *s, FILE *out);
bool json_stream_commit(json_stream *s, status *st); /* false: st says why, and there is no file */
/* Half of a commit, to commit several files at once: true: all is said, and `file` waits for its commit. */
bool json_stream_end(json_stream *s, status *st);
void json_stream_abort(json_stream *s);

void json_stream_open(json_stream *s, const char *key, char bracket, bool flat); /* '{' or '[' */
void json_stream_close(json_stream *s);
void json_stream_int(json_stream *s, const char *key, int64_t x);
void json_stream_real(json_stream *s, const char *key, double x); /* infinities and not-a-number are refused */
void json_stream_bool(json_stream *s, const char *key, bool x);
void json_stream_null(json_stream *s, const char *key);
void json_stream_text(json_stream *s, const char *key, const char *text); /* UTF-8, else refused; NULL: null */
void json_stream_ints(json_stream *s, const char *key, int64_t n, const int64_t *x); /* a flat array */
