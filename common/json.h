/* JSON trees (jansson): reading files within limits, building trees without a check after every step, saving them.
 * For large output that needs no tree see common/json_stream.h. */
#pragma once

#include "common/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct json_limits {
    size_t bytes; /* 0: 128 MiB, which is the most */
    int depth;    /* 0: 64 */
} json_limits;

/* The file's tree, which with its text takes at most 224 MiB, owned by the caller (json_decref); NULL: st says file,
 * line, column and why. limits may be NULL. */
json_t *json_read(const char *path, const json_limits *limits, status *st);

/* The same without one large member of the root, an object, whose text is handed out apart, for json_scan: a tree takes
 * ten times as much. Owned by the caller (free), n bytes and a NUL; NULL: the root has no such object. In the tree it
 * is null. Whether it is JSON is found only when it is scanned. */
json_t *json_read_apart(const char *path, const json_limits *limits, const char *member, char **apart, size_t *n,
                        status *st);

/* That "schema" of a tree is "ceiling-scout/<kind>/<major>"; path is for the message. */
bool json_check_schema(const json_t *root, const char *kind, int major, const char *path, status *st);

/* Building. Every json_put… and json_push… takes over the value that it is given and does nothing once something
 * failed; json_finish says whether anything did. Containers may be NULL, so that a failed json_new… needs no check
 * either. */
typedef struct json_builder {
    const char *why; /* first failure; NULL: none */
} json_builder;

json_t *json_new_object(json_builder *b);
json_t *json_new_array(json_builder *b);
json_t *json_new_ints(json_builder *b, int64_t n, const int64_t *x);
void json_put(json_builder *b, json_t *object, const char *key, json_t *value);
void json_put_int(json_builder *b, json_t *object, const char *key, int64_t x);
void json_put_real(json_builder *b, json_t *object, const char *key, double x);  /* infinities and not-a-number fail */
void json_put_known(json_builder *b, json_t *object, const char *key, double x); /* those put nothing at all */
void json_put_bool(json_builder *b, json_t *object, const char *key, bool x);
void json_put_text(json_builder *b, json_t *object, const char *key,
                   const char *text); /* UTF-8, else fails; NULL: null */
void json_push(json_builder *b, json_t *array, json_t *value);
void json_push_int(json_builder *b, json_t *array, int64_t x);
void json_push_text(json_builder *b, json_t *array, const char *text);
/* The root where all went well. Else it is given back, st says why, and NULL is returned. */
json_t *json_finish(json_builder *b, json_t *root, status *st);

/* Members in the order in which they were put; the same tree gives the same bytes everywhere. */
bool json_save(const char *path, const json_t *root, status *st);
/* The same bytes, with a NUL behind them; the caller's (free). NULL: st says why. */
char *json_text(const json_t *root, size_t *size, status *st);

/* Several files of one folder, which takes the disk little longer than one. false: st has the first failure, and the
 * others are in place. */
bool json_save_all(const char *const *paths, json_t *const *roots, int count, status *st);

/* One optional member of an object: what is missing, of another type or out of range reads as "not known" and nothing
 * fails. The object may be NULL, and texts are borrowed from it. A caller that must refuse a bad member checks it. */
const char *json_get_text(const json_t *object, const char *key);         /* "" where it is no text */
const char *json_get_text_or_null(const json_t *object, const char *key); /* NULL where it is no text */
double json_get_number(const json_t *object, const char *key);            /* not-a-number where it is no finite one */
double json_get_positive(const json_t *object, const char *key);          /* the same where it is not above 0 */
int64_t json_get_int(const json_t *object, const char *key, int64_t missing);
