/* One optional member of an object: what is missing, of another type or out of range reads as
 * "not known" and nothing fails. The object may be NULL. A caller that must refuse a bad member checks it itself. */
#ifndef COMMON_JSON_GET_H
#define COMMON_JSON_GET_H

#include "common/json.h"

/* Borrowed from the object. */
const char *json_get_text(const json_t *object, const char *key);         /* "" where it is no text */
const char *json_get_text_or_null(const json_t *object, const char *key); /* NULL where it is no text */
double json_get_number(const json_t *object, const char *key);            /* not-a-number where it is no finite one */
double json_get_positive(const json_t *object, const char *key);          /* the same where it is not above 0 */
int64_t json_get_int(const json_t *object, const char *key, int64_t missing);

#endif
