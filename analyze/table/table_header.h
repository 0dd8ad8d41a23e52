/* A dispatch table as a C header. */
#ifndef ANALYZE_TABLE_HEADER_H
#define ANALYZE_TABLE_HEADER_H

#include "common/files.h"
#include "dispatch/dispatch_table.h"

/* Appends all of it. `prefix` begins every name that it defines, `models` (which may be anything) stands in its first
 * comment. */
void table_header_write(files_out *out, const dispatch_table *t, const char *prefix, const char *models);

#endif
