/* The rows of a measurement beside each other, for a terminal: those with a time first, the fastest on top, and how
 * many times as fast that is as the others; then all others by the reason why they have none. */
#pragma once

#include "common/arena.h"

#include <jansson.h>
#include <stdio.h>

/* The status of a row, or of a whole report. UNSTABLE, of older ones, is SKIPPED: they have no figure. */
const char *rows_table_status(const char *name);

/* Whether a row is of that candidate and variant; NULL is no name, and a variant without text. */
bool rows_table_is(const json_t *row, const char *name, const char *variant);
json_t *rows_table_find(const json_t *report, const char *name, const char *variant); /* borrowed; NULL: none */
const char *rows_table_name(arena *a, const json_t *row);                             /* with its variant */

typedef struct rows_table {
    const json_t *rows;
    const char *baseline, *baseline_variant; /* NULL: there is none */
    double baseline_us;                      /* of rows that do not tell their ratio; not-a-number: none is told */
    size_t most;                             /* that are listed of those without a time; 0: all */
    int columns;                             /* that a line may have; 0: as many as it needs */
    /* What stands behind a row with a time; NULL: nothing does. */
    const char *(*note)(const void *context, const json_t *row, double us);
    const void *context;
} rows_table;

/* What a row's blocks took: "min 82.1, 5 % 83.0, quartiles 83.5, 83.9, 84.6, 95 % 88.0 us; 3 of 91 blocks are
 * outliers". NULL: its report does not tell. */
const char *rows_table_blocks(arena *a, const json_t *row);

/* What Nsight Compute counted while a row ran: "memory: DRAM works at 75 % of its peak; warps active 41 %, tensor cores
 * 3 %, DRAM 75 %, L2 60 %; 2 kernels, the slowest NAME". NULL: nothing was counted. */
const char *rows_table_counted(arena *a, const json_t *row);

/* Memory comes from the arena, whose guard takes what fails. How many rows have a time. */
size_t rows_table_timed(const json_t *rows);
void rows_table_print(FILE *out, arena *a, const rows_table *t);
