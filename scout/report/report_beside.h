/* What a report makes of the probe that ran in blocks beside an operation's. */
#ifndef SCOUT_REPORT_REPORT_BESIDE_H
#define SCOUT_REPORT_REPORT_BESIDE_H

#include "scout/report/report.h"

/* Whether the operation is faster than a ceiling by more than all intervals. */
bool report_beside_outruns(const report_figures *f, double ceiling_us, double ceiling_ci);

/* Of measurement m: puts what its probe saw into *t, what was stored into out->stored_ceiling_us, and whose word it is
 * into out->ceiling_from; nothing where there was no such probe. out has its times already. */
void report_beside_read(const json_t *m, ceilings_time *t, report_figures *out);

#endif
