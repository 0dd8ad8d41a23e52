/* Reading JSON token by token, without a tree and without memory of its own: for many files of which little is wanted.
 * As strict as json_read about syntax, UTF-8, numbers that no type holds, and depth; but for members that stand twice
 * in an object, which only the reader of its keys can tell. Texts are unescaped where they stand: the bytes change.
 *
 *     json_scan s;
 *     json_scan_begin(&s, bytes, n, 64);            bytes[n] is a NUL, as files_read leaves it
 *     while ((token = json_scan_next(&s)) > JSON_SCAN_END) …
 *     if (token == JSON_SCAN_WRONG) … s.why, json_scan_place …
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum json_scan_token {
    JSON_SCAN_WRONG, /* and at every call from then on */
    JSON_SCAN_END,   /* of a whole text, also at every call from then on */
    JSON_SCAN_OBJECT,
    JSON_SCAN_OBJECT_END,
    JSON_SCAN_ARRAY,
    JSON_SCAN_ARRAY_END,
    JSON_SCAN_KEY,  /* text, length; its value comes next */
    JSON_SCAN_TEXT, /* text, length */
    JSON_SCAN_INT,  /* json_scan_int, json_scan_real */
    JSON_SCAN_REAL, /* json_scan_real */
    JSON_SCAN_TRUE,
    JSON_SCAN_FALSE,
    JSON_SCAN_NULL
} json_scan_token;

enum { JSON_SCAN_DEPTH = 128 }; /* the most that may be asked for */

typedef struct json_scan {
    char *at, *start, *end;
    const char *text; /* of the last key or text: UTF-8, without a NUL, not ended by one */
    size_t length;
    const char *number; /* of the last number: where it begins */
    const char *why;    /* NULL: all is well so far */
    int depth, limit;
    unsigned char state;
    bool in_object[JSON_SCAN_DEPTH];
} json_scan;

void json_scan_begin(json_scan *s, char *bytes, size_t n, int depth);
json_scan_token json_scan_next(json_scan *s);

/* Of the number that json_scan_next has just found. */
double json_scan_real(const json_scan *s);
int64_t json_scan_int(const json_scan *s);

/* Past the value that begins with this token, which json_scan_next has just said. false: something in it is wrong. */
bool json_scan_skip(json_scan *s, json_scan_token token);

/* Where it stands, from 1. */
void json_scan_place(const json_scan *s, size_t *line, size_t *column);
