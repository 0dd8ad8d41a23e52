/* Why a row carries no time: statuses and the closed list of reason codes that reports may hold. Whatever ran and was
 * right is OK and has a time, however wide its interval is. */
#pragma once

#include <stdbool.h>

typedef enum row_status {
    ROW_OK,
    ROW_SKIPPED,     /* could have run, was not: outraced, early exit, excluded, budget */
    ROW_UNSUPPORTED, /* cannot run this operation here */
    ROW_WRONG,
    ROW_TIMEOUT,
    ROW_CRASHED,
    ROW_ERROR,
    ROW_STATUS_COUNT
} row_status;

const char *reason_status_name(row_status status);                  /* "OK", … */
bool reason_status_from_name(const char *name, row_status *status); /* UNSTABLE, of older reports, is SKIPPED */
bool reason_status_bad(row_status status); /* makes the program end with 1: WRONG, TIMEOUT, CRASHED, ERROR */

/* Codes: the table in reason.c says each with the status that it goes with. NULL where the code is not in the list. */
const char *reason_about(const char *code);
bool reason_known(const char *code);
bool reason_bad(const char *code); /* it goes with a bad status */
