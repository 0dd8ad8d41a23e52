/* The table that `ncu --csv` prints, kernel by kernel. */
#ifndef SCOUT_REPORT_COUNTERS_TABLE_H
#define SCOUT_REPORT_COUNTERS_TABLE_H

#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Texts are borrowed for the call. A value that ncu does not tell ("n/a") is not-a-number. */
typedef struct counters_table_reader {
    void *context;
    void (*metric)(void *context, const char *name, const char *unit, double value);
    void (*end)(void *context, const char *kernel); /* all metrics of this kernel's launch were told */
} counters_table_reader;

bool counters_table_read(char *text, size_t size, const char *name, const counters_table_reader *reader, status *st);

#endif
