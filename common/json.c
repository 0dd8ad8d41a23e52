/* JSON trees: limits before parsing, builders that fail once, and saving through the stream that formats. */
#include "common/json.h"

#include "common/files.h"
#include "common/json_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BYTES = 128 << 20, DEFAULT_DEPTH = 64, MOST_MEMORY = 224 << 20 };

/* ---- reading ---- */

/* What a tree takes, from its text: brackets, commas and quotes say how many values there are. Two bytes of text may be
 * a container of a hundred times as many, so that a file's size says little. These are the parser's own, with what the
 * allocator adds; while it reads a text, it has three more of it. */
enum { ARRAY_TAKES = 144, OBJECT_TAKES = 256, VALUE_TAKES = 48, TEXT_TAKES = 80, TEXT_COPIES = 3 };

typedef struct weighed {
    size_t line, column; /* of the bracket that is too deep; 0: none is */
    size_t memory;
} weighed;

/* The parser's own limit of depth cannot be chosen, and it recurses: brackets outside of texts are counted before. */
static weighed weigh(const char *text, size_t n, int limit) {
    weighed w = {.line = 1};
    int depth = 0;
    size_t line_start = 0, longest = 0;
    for (size_t k = 0; k < n; k++) {
        const char c = text[k];
        if (c == '"') {
            const size_t from = k + 1;
            for (k++; k < n && text[k] != '"'; k++) {
                if (text[k] == '\\') k++;
            }
            const size_t length = k - from;
            longest = length > longest ? length : longest;
            w.memory += TEXT_TAKES + length;
        } else if (c == '[' || c == '{') {
            w.memory += c == '[' ? ARRAY_TAKES : OBJECT_TAKES;
            w.column = k - line_start + 1;
            if (++depth > limit) return w;
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == ',') {
            w.memory += VALUE_TAKES;
        } else if (c == '\n') {
            w.line++;
            line_start = k + 1;
        }
    }
    w.memory += TEXT_COPIES * longest;
    w.line = w.column = 0;
    return w;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Where the object lies that is this member of the root; false: there is none. Brackets in texts are no brackets. */
static bool find_member(const char *text, size_t n, const char *member, size_t *from, size_t *to) {
    const size_t length = strlen(member);
    bool found = false;
    int depth = 0;
    for (size_t k = 0; k < n; k++) {
        if (text[k] == '"') {
            const size_t begin = k + 1;
            for (k++; k < n && text[k] != '"'; k++) {
                if (text[k] == '\\') k++;
            }
            if (depth != 1 || found || k >= n || k - begin != length || memcmp(text + begin, member, length) != 0)
                continue;
            size_t at = k + 1;
            while (at < n && is_space(text[at])) at++;
            if (at == n || text[at] != ':') continue;
            for (at++; at < n && is_space(text[at]);) at++;
            found = at < n && text[at] == '{';
            *from = at;
        } else if (text[k] == '[' || text[k] == '{') {
            depth++;
        } else if ((text[k] == ']' || text[k] == '}') && --depth == 1 && found) {
            *to = k + 1;
            return true;
        }
    }
    return false;
}

/* A copy of the member, in the place of which the text says null; lines stay where they are. Where there is no room for
 * that, or no memory, the member goes into the tree. */
static char *cut_member(char *text, size_t n, const char *member, size_t *length) {
    static const char null[] = "null";
    enum { ROOM = sizeof null - 1 };
    size_t from = 0, to = 0, room = 0, at;
    if (!find_member(text, n, member, &from, &to)) return NULL;
    for (at = from; at < to && room < ROOM; at++) room = text[at] == '\n' ? 0 : room + 1;
    char *copy = room == ROOM ? malloc(to - from + 1) : NULL;
    if (!copy) return NULL;
    *length = to - from;
    memcpy(copy, text + from, *length);
    copy[*length] = '\0';
    for (size_t k = from; k < to; k++)
        if (text[k] != '\n') text[k] = ' ';
    memcpy(text + at - ROOM, null, ROOM);
    return copy;
}

json_t *json_read_apart(const char *path, const json_limits *limits, const char *member, char **apart, size_t *length,
                        status *st) {
    size_t bytes = limits && limits->bytes ? limits->bytes : (size_t)DEFAULT_BYTES;
    int depth = limits && limits->depth ? limits->depth : DEFAULT_DEPTH;
    size_t n = 0;
    char *text = files_read(path, bytes, &n, st);
    if (!text) return NULL;
    json_t *root = NULL;
    json_error_t error;
    *length = 0;
    *apart = member ? cut_member(text, n, member, length) : NULL;
    const weighed w = weigh(text, n, depth);
    if (w.line > 0) {
        status_set(st, STATUS_INPUT, "%s: line %zu, column %zu: nested deeper than %d", path, w.line, w.column, depth);
    } else if (w.memory + n + *length > MOST_MEMORY) {
        status_set(st, STATUS_INPUT, "%s: its values would take %zu MB of memory; %d MB is the most", path,
                   (w.memory + n + *length) >> 20, MOST_MEMORY >> 20);
    } else {
        root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
        if (!root) {
            status_code code = json_error_code(&error) == json_error_out_of_memory ? STATUS_ENVIRONMENT : STATUS_INPUT;
            status_set(st, code, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
        }
    }
    free(text);
    if (!root) free(*apart);
    if (!root) *apart = NULL;
    return root;
}

json_t *json_read(const char *path, const json_limits *limits, status *st) {
    char *apart;
    size_t length;
    return json_read_apart(path, limits, NULL, &apart, &length, st);
}

bool json_check_schema(const json_t *root, const char *kind, int major, const char *path, status *st) {
    char wanted[128];
    snprintf(wanted, sizeof wanted, "ceiling-scout/%s/%d", kind, major);
    const char *found = json_string_value(json_object_get(root, "schema"));
    if (found && strcmp(found, wanted) == 0) return true;
    if (found) return status_fail(st, STATUS_INPUT, "%s: its schema is %s; %s is needed", path, found, wanted);
    return status_fail(st, STATUS_INPUT, "%s: it has no schema; %s is needed", path, wanted);
}

/* ---- building ---- */

static json_t *made(json_builder *b, json_t *value, const char *why) {
    if (!value && !b->why) b->why = why;
    return value;
}

json_t *json_new_object(json_builder *b) { return b->why ? NULL : made(b, json_object(), "out of memory"); }
json_t *json_new_array(json_builder *b) { return b->why ? NULL : made(b, json_array(), "out of memory"); }

json_t *json_new_ints(json_builder *b, int64_t n, const int64_t *x) {
    json_t *array = json_new_array(b);
    for (int64_t k = 0; k < n; k++) json_push_int(b, array, x[k]);
    return array;
}

void json_put(json_builder *b, json_t *object, const char *key, json_t *value) {
    if (b->why || !object || !value) {
        json_decref(value);
        made(b, value, "out of memory");
        return;
    }
    if (json_object_set_new(object, key, value) != 0 && !b->why) b->why = "a name is not UTF-8, or out of memory";
}

void json_push(json_builder *b, json_t *array, json_t *value) {
    if (b->why || !array || !value) {
        json_decref(value);
        made(b, value, "out of memory");
        return;
    }
    if (json_array_append_new(array, value) != 0 && !b->why) b->why = "out of memory";
}

static json_t *new_text(json_builder *b, const char *text) {
    return text ? made(b, json_string(text), "a string is not UTF-8, or out of memory") : json_null();
}

void json_put_int(json_builder *b, json_t *object, const char *key, int64_t x) {
    if (!b->why) json_put(b, object, key, json_integer(x));
}

void json_put_real(json_builder *b, json_t *object, const char *key, double x) {
    if (!b->why) json_put(b, object, key, made(b, json_real(x), "a number is not finite, or out of memory"));
}

void json_put_known(json_builder *b, json_t *object, const char *key, double x) {
    if (isfinite(x)) json_put_real(b, object, key, x);
}

void json_put_bool(json_builder *b, json_t *object, const char *key, bool x) {
    if (!b->why) json_put(b, object, key, json_boolean(x));
}

void json_put_text(json_builder *b, json_t *object, const char *key, const char *text) {
    if (!b->why) json_put(b, object, key, new_text(b, text));
}

void json_push_int(json_builder *b, json_t *array, int64_t x) {
    if (!b->why) json_push(b, array, json_integer(x));
}

void json_push_text(json_builder *b, json_t *array, const char *text) {
    if (!b->why) json_push(b, array, new_text(b, text));
}

json_t *json_finish(json_builder *b, json_t *root, status *st) {
    if (!b->why && root) return root;
    json_decref(root);
    status_set(st, STATUS_ENVIRONMENT, "JSON could not be built: %s", b->why ? b->why : "out of memory");
    return NULL;
}

/* ---- saving ---- */

static bool is_container(const json_t *x) { return json_is_object(x) || json_is_array(x); }

static bool holds_container(const json_t *array) {
    for (size_t k = 0; k < json_array_size(array); k++)
        if (is_container(json_array_get(array, k))) return true;
    return false;
}

/* The stream's own limit of depth ends the recursion: what it refuses is not entered. */
static void save_value(json_stream *s, const char *key, const json_t *x) {
    if (s->why || s->file.error) return;
    switch (json_typeof(x)) {
    case JSON_OBJECT: {
        const char *name;
        json_t *member;
        json_stream_open(s, key, '{', json_object_size(x) == 0);
        json_object_foreach((json_t *)(uintptr_t)x, name, member) save_value(s, name, member);
        json_stream_close(s);
        break;
    }
    case JSON_ARRAY:
        json_stream_open(s, key, '[', !holds_container(x));
        for (size_t k = 0; k < json_array_size(x); k++) save_value(s, NULL, json_array_get(x, k));
        json_stream_close(s);
        break;
    case JSON_STRING: json_stream_text(s, key, json_string_value(x)); break;
    case JSON_INTEGER: json_stream_int(s, key, json_integer_value(x)); break;
    case JSON_REAL: json_stream_real(s, key, json_real_value(x)); break;
    case JSON_TRUE: json_stream_bool(s, key, true); break;
    case JSON_FALSE: json_stream_bool(s, key, false); break;
    case JSON_NULL: json_stream_null(s, key); break;
    }
}

bool json_save(const char *path, const json_t *root, status *st) {
    json_stream s;
    if (!json_stream_begin(&s, path, st)) return false;
    save_value(&s, NULL, root);
    return json_stream_commit(&s, st);
}

char *json_text(const json_t *root, size_t *size, status *st) {
    char *text = NULL;
    json_stream s;
    FILE *out = open_memstream(&text, size);
    bool good = out != NULL;
    if (good) {
        json_stream_begin_on(&s, out);
        save_value(&s, NULL, root);
        good = json_stream_end(&s, st);
        if (fclose(out) != 0 && good) good = false;
    }
    if (good) return text;
    if (st->code == STATUS_OK) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    free(text);
    return NULL;
}

enum { SAVED_AT_ONCE = 32 };

static bool save_some(json_stream *streams, const char *const *paths, json_t *const *roots, int count, status *st) {
    files_out *files[SAVED_AT_ONCE];
    status first = {0};
    int ready = 0;
    for (int k = 0; k < count; k++) {
        status bad = {0};
        json_stream *s = &streams[k];
        bool good = json_stream_begin(s, paths[k], &bad);
        if (good) save_value(s, NULL, roots[k]);
        good = good && json_stream_end(s, &bad);
        if (good) files[ready++] = &s->file;
        if (!good && first.code == STATUS_OK) first = bad;
    }
    status late = {0};
    if (!files_commit_all(files, ready, &late) && first.code == STATUS_OK) first = late;
    if (first.code != STATUS_OK) *st = first;
    return first.code == STATUS_OK;
}

bool json_save_all(const char *const *paths, json_t *const *roots, int count, status *st) {
    json_stream *streams = calloc(SAVED_AT_ONCE, sizeof *streams);
    bool good = streams != NULL;
    if (!good) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    for (int k = 0; streams && k < count; k += SAVED_AT_ONCE) {
        const int some = count - k < SAVED_AT_ONCE ? count - k : SAVED_AT_ONCE;
        status bad = {0};
        if (save_some(streams, paths + k, roots + k, some, &bad)) continue;
        if (good) *st = bad;
        good = false;
    }
    free(streams);
    return good;
}

const char *json_get_text_or_null(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *json_get_text(const json_t *object, const char *key) {
    const char *text = json_get_text_or_null(object, key);
    return text ? text : "";
}

double json_get_number(const json_t *object, const char *key) {
    const json_t *x = json_object_get(object, key);
    const double value = json_is_number(x) ? json_number_value(x) : NAN;
    return isfinite(value) ? value : NAN;
}

double json_get_positive(const json_t *object, const char *key) {
    const double value = json_get_number(object, key);
    return value > 0 ? value : NAN;
}

int64_t json_get_int(const json_t *object, const char *key, int64_t missing) {
    const json_t *x = json_object_get(object, key);
    return json_is_integer(x) ? json_integer_value(x) : missing;
}
