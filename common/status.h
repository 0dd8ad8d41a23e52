/* What a call that can fail says: a code that is also the exit code of the program, and one line of text. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum status_code {
    STATUS_OK = 0,
    STATUS_INCOMPLETE = 1, /* done, but something is unresolved, unknown or unmeasured */
    STATUS_USAGE = 2,
    STATUS_INPUT = 3,
    STATUS_ENVIRONMENT = 4, /* memory, disk, device */
    STATUS_REGRESSION = 5
} status_code;

typedef struct status {
    status_code code;
    char text[1024];
} status;

/* Sets code and text; text that does not fit is cut. Returns the code so that a caller can `return status_set(…)`. */
__attribute__((format(printf, 3, 4))) status_code status_set(status *st, status_code code, const char *format, ...);
__attribute__((format(printf, 3, 0))) status_code status_setv(status *st, status_code code, const char *format,
                                                              va_list args);
/* The same for functions that say whether they succeeded: always false. */
__attribute__((format(printf, 3, 4))) bool status_fail(status *st, status_code code, const char *format, ...);

/* Prints "program: text" as exactly one line: control bytes and broken UTF-8 are escaped, so that a hostile name in a
 * model can neither break a log nor drive a terminal. A line of more than 2000 bytes is cut. `label` goes between (e.g.
 * "warning: "), or NULL. */
void status_print(FILE *out, const char *program, const char *label, const char *text);
