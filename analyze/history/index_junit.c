/* A night for CI systems: a test for each model, and one for each device that got slower as a whole. It failed where
 * something of it got slower; that something is faster, or was so by chance, is no failure. */
#include "analyze/history/index.h"

#include "analyze/write/escape.h"

#include <math.h>
#include <string.h>

static escape_line cut(const char *text) { return escape_text(ESCAPE_MARKUP, text, ESCAPE_MOST); }

static bool is_slower(const index_change *c) { return c->last && c->state == HISTORY_SLOWER; }

static void write_cause(const index_change *c, FILE *out) {
    fprintf(out, "%s: %s; %s\n", c->operation ? cut(c->operation).s : "the device as a whole",
            index_change_of(c->change).s, cut(c->cause).s);
}

static void write_model(const history_index *i, const index_model *m, FILE *out) {
    fprintf(out, "    <testcase classname=\"%s\" name=\"%s", cut(m->device).s, cut(m->name).s);
    fprintf(out, " (%s)\" time=\"%.9f\">\n", cut(m->regime).s, isfinite(m->us) ? 1e-6 * m->us : 0);
    if (m->slower > 0) {
        fprintf(out, "      <failure type=\"slower\" message=\"%zu of its operations got slower\">", m->slower);
        for (size_t k = 0; k < i->change_count; k++)
            if (is_slower(&i->changes[k]) && i->changes[k].model && strcmp(i->changes[k].model, m->name) == 0)
                write_cause(&i->changes[k], out);
        fputs("</failure>\n", out);
    }
    fputs("    </testcase>\n", out);
}

bool history_write_junit(const history_shown *shown, FILE *out, status *st) {
    const history_index *i = shown->index;
    size_t failed = i->machines_slower;
    char sum[96];
    double seconds = 0;
    (void)st;
    for (size_t k = 0; k < i->model_count; k++) {
        failed += i->models[k].slower > 0;
        seconds += isfinite(i->models[k].us) ? 1e-6 * i->models[k].us : 0;
    }
    snprintf(sum, sizeof sum, "tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%.3f\"",
             i->model_count + i->machines_slower, failed, seconds);
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"analyze history\" %s>\n", sum);
    fprintf(out, "  <testsuite name=\"last night\" %s skipped=\"0\">\n", sum);
    for (size_t k = 0; k < i->change_count; k++) {
        const index_change *c = &i->changes[k];
        if (c->operation || !is_slower(c)) continue;
        fprintf(out, "    <testcase classname=\"%s\" name=\"the device as a whole (%s)\" time=\"0\">\n",
                cut(c->device).s, cut(c->regime).s);
        fputs("      <failure type=\"slower\" message=\"all of its operations got slower\">", out);
        write_cause(c, out);
        fputs("</failure>\n    </testcase>\n", out);
    }
    for (size_t k = 0; k < i->model_count; k++) write_model(i, &i->models[k], out);
    fputs("  </testsuite>\n</testsuites>\n", out);
    return true;
}
