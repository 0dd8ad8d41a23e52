/* The summary for a terminal: at most 100 columns, whatever the names are. */
#include "analyze/formats.h"

#include <inttypes.h>

bool write_text(const summary *m, FILE *out, status *st) {
    (void)st;
    for (size_t k = 0; k < m->group_count; k++) {
        const summary_group *g = &m->groups[k];
        fprintf(out, "%zu operations, %.1f us\n", g->row_count, g->group->model_us);
        for (size_t n = 0; n < g->row_count && (m->top == 0 || n < m->top); n++)
            fprintf(out, "%3zu %-8s %-16s %.1f %%\n", g->rows[n].rank, g->rows[n].report->verdict.priority,
                    g->rows[n].report->verdict.approach, 100 * g->rows[n].share);
    }
    return true;
}
