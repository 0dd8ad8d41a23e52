/* The one place that formats JSON: punctuation, indentation, numbers and escapes. */
#include "common/json_stream.h"

#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void append(json_stream *s, const void *data, size_t n) {
    if (s->out)
        fwrite(data, 1, n, s->out); /* its opener checks it for failures */
    else
        files_append(&s->file, data, n);
}

static void put(json_stream *s, const char *text) { append(s, text, strlen(text)); }

static void fail(json_stream *s, const char *why) {
    if (!s->why) s->why = why;
}

static void new_line(json_stream *s) {
    put(s, "\n");
    for (int k = 0; k < s->depth; k++) put(s, "  ");
}

static void put_escaped(json_stream *s, uint32_t c) {
    char code[16];
    switch (c) {
    case '"': put(s, "\\\""); return;
    case '\\': put(s, "\\\\"); return;
    case '\n': put(s, "\\n"); return;
    case '\t': put(s, "\\t"); return;
    default: append(s, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)c));
    }
}

/* Files are printed to terminals: what would drive one is escaped, also where JSON does not need it. */
static void put_text(json_stream *s, const char *text) {
    put(s, "\"");
    const char *from = text, *at = text;
    while (*at) {
        uint32_t code = 0;
        const int n = plain_character(at, &code);
        if (n == 0) fail(s, "a string is not UTF-8");
        if (n == 0) return;
        if (code == '"' || code == '\\' || plain_controls(code)) {
            append(s, from, (size_t)(at - from));
            put_escaped(s, code);
            from = at + n;
        }
        at += n;
    }
    append(s, from, (size_t)(at - from));
    put(s, "\"");
}

/* What can no longer be written is not formatted either. */
static bool is_over(const json_stream *s) { return s->why || (!s->out && s->file.error); }

/* Comma, line and key before a value. */
static bool begin_value(json_stream *s, const char *key) {
    if (is_over(s)) return false;
    if (s->depth > 0) {
        bool in_object = s->level[s->depth - 1].closer == '}', flat = s->level[s->depth - 1].flat;
        if (in_object != (key != NULL))
            fail(s, "a value in an object has no key, or a value outside an object has one");
        if (s->why) return false;
        if (!s->level[s->depth - 1].empty) put(s, flat ? ", " : ",");
        s->level[s->depth - 1].empty = false;
        if (!flat) new_line(s);
    } else if (key) {
        fail(s, "the root has a key");
        return false;
    }
    if (key) {
        put_text(s, key);
        put(s, ": ");
    }
    return s->why == NULL;
}

void json_stream_open(json_stream *s, const char *key, char bracket, bool flat) {
    if (!begin_value(s, key)) return;
    if (s->depth == JSON_STREAM_DEPTH) {
        fail(s, "it is nested too deeply");
        return;
    }
    put(s, bracket == '{' ? "{" : "[");
    s->level[s->depth].closer = bracket == '{' ? '}' : ']';
    s->level[s->depth].flat = flat || (s->depth > 0 && s->level[s->depth - 1].flat);
    s->level[s->depth].empty = true;
    s->depth++;
}

void json_stream_close(json_stream *s) {
    if (is_over(s)) return;
    if (s->depth == 0) {
        fail(s, "more was closed than opened");
        return;
    }
    s->depth--;
    if (!s->level[s->depth].empty && !s->level[s->depth].flat) new_line(s);
    append(s, &s->level[s->depth].closer, 1);
}

void json_stream_int(json_stream *s, const char *key, int64_t x) {
    if (!begin_value(s, key)) return;
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, x);
    put(s, digits);
}

void json_stream_real(json_stream *s, const char *key, double x) {
    if (!isfinite(x)) fail(s, "a number is not finite");
    if (!begin_value(s, key)) return;
    char digits[320]; /* the compiler cannot know that %g needs 25 of them */
    /* The fewest digits that read back as the same number; more always do where fewer did. What was measured needs
     * nearly all of them, and what was chosen few. */
    int least = 6, most = 17, tried = 15, printed = 0;
    while (least < most) {
        snprintf(digits, sizeof digits, "%.*g", printed = tried, x);
        if (strtod(digits, NULL) == x)
            most = tried;
        else
            least = tried + 1;
        tried = (least + most) / 2;
    }
    if (printed != most) snprintf(digits, sizeof digits, "%.*g", most, x);
    if (!strpbrk(digits, ".e")) memcpy(digits + strlen(digits), ".0", 3); /* a real stays one for every reader */
    put(s, digits);
}

void json_stream_bool(json_stream *s, const char *key, bool x) {
    if (begin_value(s, key)) put(s, x ? "true" : "false");
}

void json_stream_null(json_stream *s, const char *key) {
    if (begin_value(s, key)) put(s, "null");
}

void json_stream_text(json_stream *s, const char *key, const char *text) {
    if (!begin_value(s, key)) return;
    if (text)
        put_text(s, text);
    else
        put(s, "null");
}

void json_stream_ints(json_stream *s, const char *key, int64_t n, const int64_t *x) {
    json_stream_open(s, key, '[', true);
    for (int64_t k = 0; k < n; k++) json_stream_int(s, NULL, x[k]);
    json_stream_close(s);
}

void json_stream_begin_on(json_stream *s, FILE *out) { *s = (json_stream){.file.fd = -1, .out = out}; }

bool json_stream_begin(json_stream *s, const char *path, status *st) {
    s->why = NULL;
    s->out = NULL;
    s->depth = 0;
    return files_begin(&s->file, path, st);
}

bool json_stream_end(json_stream *s, status *st) {
    if (!is_over(s) && s->depth > 0) fail(s, "not everything that was opened is closed");
    if (s->why) {
        const char *name = !s->out && s->file.target ? s->file.target : "the output";
        status_set(st, STATUS_INPUT, "%s: cannot be written as JSON: %s", name, s->why);
        if (!s->out) files_abort(&s->file);
        return false;
    }
    put(s, "\n");
    return true;
}

bool json_stream_commit(json_stream *s, status *st) { return json_stream_end(s, st) && files_commit(&s->file, st); }

void json_stream_abort(json_stream *s) { files_abort(&s->file); }
