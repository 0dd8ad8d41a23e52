/* A strict reader of JSON (RFC 8259, UTF-8) for untrusted files: no tree, members go by a table to where
 * they belong, unknown ones are stepped over. The first mistake ends it with one line that says where. */
#ifndef DISPATCH_JSON_H
#define DISPATCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dispatch_memory {
    struct dispatch_piece *pieces; /* newest first */
    size_t used, limit;            /* bytes */
} dispatch_memory;

/* Cleared and aligned for anything; NULL: there is no more, or the limit is reached. */
void *dispatch_memory_take(dispatch_memory *m, size_t size);
/* Room for one more behind `count`: *items moves when it is full. false: no memory. */
bool dispatch_memory_grow(dispatch_memory *m, void **items, size_t *room, size_t count, size_t size);
void dispatch_memory_free(dispatch_memory *m);

typedef struct dispatch_json {
    const char *text, *at, *end;
    dispatch_memory *memory; /* of texts that are kept */
    int depth;
    char *why; /* "" while all is well; `room` bytes */
    size_t room;
} dispatch_json;

typedef struct dispatch_bytes {
    const unsigned char *bytes;
    uint32_t count;
} dispatch_bytes;

typedef bool dispatch_json_call(dispatch_json *j, void *target);

typedef enum dispatch_json_kind {
    DISPATCH_JSON_TEXT,  /* const char *; null: NULL */
    DISPATCH_JSON_COUNT, /* int64_t, 0 and more */
    DISPATCH_JSON_TIME,  /* double, more than 0 */
    DISPATCH_JSON_PART,  /* double, 0 and more */
    DISPATCH_JSON_HEX,   /* dispatch_bytes */
    DISPATCH_JSON_RAW,   /* const char *: an object as it stands, without blanks */
    DISPATCH_JSON_CALL   /* `call` with the target itself reads the value */
} dispatch_json_kind;

typedef struct dispatch_json_member {
    const char *name;
    dispatch_json_kind kind;
    bool required;
    size_t offset;
    dispatch_json_call *call;
} dispatch_json_member;

/* All say false once something is wrong. */
bool dispatch_json_object(dispatch_json *j, const dispatch_json_member *members, int count, void *target);
bool dispatch_json_array(dispatch_json *j, dispatch_json_call *item, void *target);
bool dispatch_json_integer(dispatch_json *j, int64_t *number);
bool dispatch_json_text(dispatch_json *j, const char **text); /* null: NULL */
bool dispatch_json_end(dispatch_json *j);                     /* nothing but blanks may follow */
__attribute__((format(printf, 2, 3))) bool dispatch_json_fail(dispatch_json *j, const char *format, ...);

#endif
