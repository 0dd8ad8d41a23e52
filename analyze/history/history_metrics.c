/* OpenMetrics text, for a node exporter's folder: the models of the last night, and what became of its operations. */
#include "analyze/history/index.h"

#include "common/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A label's value: a backslash, a quote and a newline have a form of their own, and nothing else has. */
static void label(FILE *out, const char *name, const char *text, bool first) {
    fprintf(out, "%s%s=\"", first ? "{" : ",", name);
    for (const char *c = text; *c; c++) {
        if (*c == '\\' || *c == '"') fputc('\\', out);
        if (*c == '\n')
            fputs("\\n", out);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void family(FILE *out, const char *name, const char *unit, const char *help) {
    fprintf(out, "# TYPE %s gauge\n", name);
    if (unit) fprintf(out, "# UNIT %s %s\n", name, unit);
    fprintf(out, "# HELP %s %s\n", name, help);
}

static const struct {
    const char *name, *unit, *help;
    size_t at; /* in an index_model */
    double scale;
} of_model[] = {
    {"ceiling_scout_model_seconds", "seconds", "Time of a run by the defaults.", offsetof(index_model, us), 1e-6},
    {"ceiling_scout_model_proven_seconds", "seconds", "What measured alternatives save of it.",
     offsetof(index_model, proven_us), 1e-6},
    {"ceiling_scout_model_potential_seconds", "seconds", "The rest of the way to the ceilings.",
     offsetof(index_model, potential_us), 1e-6},
};

enum { LABELS = 3 };
static const char *const label_names[LABELS] = {"model", "device", "regime"};
typedef struct series {
    const char *labels[LABELS];
    const index_model *of;
} series;

static int by_labels(const void *a, const void *b) {
    const series *x = a, *y = b;
    int order = 0;
    for (int k = 0; k < LABELS && order == 0; k++) order = strcmp(x->labels[k], y->labels[k]);
    return order;
}

static int newest_first(const void *a, const void *b) {
    const series *x = a, *y = b;
    const int order = by_labels(a, b);
    return order ? order : (x->of->night < y->of->night) - (x->of->night > y->of->night);
}

/* A series may be there once. Devices of one name, or methods, that a model was measured by are one: the newest. */
static size_t series_of(const history_shown *shown, series **to) {
    const history_index *i = shown->index;
    series *all = arena_array(shown->h->a, series, i->model_count + 1);
    size_t n = 0;
    for (size_t k = 0; k < i->model_count; k++) {
        const index_model *m = &i->models[k];
        const char *const texts[LABELS] = {m->name, m->device, m->regime};
        all[k].of = m;
        for (int l = 0; l < LABELS; l++) all[k].labels[l] = plain_utf8(shown->h->a, texts[l]);
    }
    qsort(all, i->model_count, sizeof *all, newest_first);
    for (size_t k = 0; k < i->model_count; k++)
        if (n == 0 || by_labels(&all[n - 1], &all[k]) != 0) all[n++] = all[k];
    *to = all;
    return n;
}

bool history_write_metrics(const history_shown *shown, FILE *out, status *st) {
    const history_index *i = shown->index;
    series *all;
    const size_t count = series_of(shown, &all);
    (void)st;
    for (size_t f = 0; f < sizeof of_model / sizeof of_model[0]; f++) {
        family(out, of_model[f].name, of_model[f].unit, of_model[f].help);
        for (size_t k = 0; k < count; k++) {
            const double x = *(const double *)(const void *)((const char *)all[k].of + of_model[f].at);
            if (!isfinite(x)) continue;
            fputs(of_model[f].name, out);
            for (int l = 0; l < LABELS; l++) label(out, label_names[l], all[k].labels[l], l == 0);
            fprintf(out, "} %.9g\n", of_model[f].scale * x);
        }
    }
    family(out, "ceiling_scout_operations", NULL, "Operations of the last night by what became of them.");
    for (int k = 0; k < HISTORY_STATES; k++) {
        fputs("ceiling_scout_operations", out);
        label(out, "state", history_states[k], true);
        fprintf(out, "} %zu\n", i->of_last[k]);
    }
    family(out, "ceiling_scout_history_bytes", "bytes", "Size of the history.");
    fprintf(out, "ceiling_scout_history_bytes %" PRId64 "\n", i->bytes);
    family(out, "ceiling_scout_night_timestamp_seconds", "seconds", "When the newest figure was taken.");
    fprintf(out, "ceiling_scout_night_timestamp_seconds %" PRId64 "\n# EOF\n", i->at);
    return true;
}
