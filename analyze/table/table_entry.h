/* One entry of dispatch.json, as it follows from a report: what to run, and how that was proven. */
#ifndef ANALYZE_TABLE_ENTRY_H
#define ANALYZE_TABLE_ENTRY_H

#include "analyze/study/study.h"
#include "common/json.h"

/* The device of a group, as dispatch.json has it; the caller's. NULL: st says what is wrong with its class. */
json_t *table_entry_device(const study_group *g, status *st);

/* The entry of a report with an OK baseline; the caller's. NULL: st says why it has none, and its code is that of
 * memory (STATUS_ENVIRONMENT), or STATUS_INPUT: the report cannot be used, all others can. */
json_t *table_entry_make(const study_report *r, const json_t *device, status *st);

/* Whether a report has anything to say: its baseline was measured. */
bool table_entry_measured(const study_report *r);

#endif
