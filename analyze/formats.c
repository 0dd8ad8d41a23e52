/* Owns the tables of formats, and how what they write reaches its file. */
#include "analyze/write/formats.h"
#include "analyze/compare/comparison_formats.h"
#include "analyze/page/page.h"
#include "common/files.h"

#include <string.h>
#include <sys/stat.h>

const format formats_all[] = {
    {"text", "summary.txt", write_text},  /* for a terminal */
    {"json", "summary.json", write_json}, /* for programs */
    {"md", "summary.md", write_markdown}, /* for a pull request */
    {"csv", "summary.csv", write_csv},    /* for spreadsheets */
    {"junit", "junit.xml", write_junit},  /* for CI systems */
    {"html", "report.html", page_write},  /* for people, in a browser */
    {NULL, NULL, NULL},
};

const comparison_format comparison_formats[] = {
    {"text", "comparison.txt", comparison_text},
    {"md", "comparison.md", comparison_markdown},
    {"json", "comparison.json", comparison_json},
    {"junit", "comparison.xml", comparison_junit},
    {"csv", "comparison.csv", comparison_csv},
    {"html", "comparison.html", page_comparison},
    {NULL, NULL, NULL},
};

bool formats_is_file(const char *output, const char *file) {
    const char *end = strrchr(output, '.');
    struct stat is;
    return end && strcmp(end, strrchr(file, '.')) == 0 && !(stat(output, &is) == 0 && S_ISDIR(is.st_mode));
}

typedef bool write_to(const void *of, FILE *out, status *st);

static bool put(write_to *write, const void *of, const char *path, status *st) {
    if (!path) return write(of, stdout, st);
    files_out file;
    if (!files_begin(&file, path, st)) return false;
    FILE *out = files_stream(&file);
    if (!out) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    bool good = out && write(of, out, st);
    if (out) good = fclose(out) == 0 && good;
    if (good) return files_commit(&file, st);
    files_abort(&file);
    return false;
}

typedef struct told_summary {
    const format *f;
    const summary *m;
} told_summary;

static bool write_summary(const void *of, FILE *out, status *st) {
    const told_summary *told = of;
    return told->f->write(told->m, out, st);
}

bool formats_put(const format *f, const summary *m, const char *path, status *st) {
    return put(write_summary, &(told_summary){f, m}, path, st);
}

typedef struct told_comparison {
    const comparison_format *f;
    const comparison *c;
    const comparison_shown *shown;
} told_comparison;

static bool write_comparison(const void *of, FILE *out, status *st) {
    const told_comparison *told = of;
    return told->f->write(told->c, told->shown, out, st);
}

bool comparison_formats_put(const comparison_format *f, const comparison *c, const comparison_shown *shown,
                            const char *path, status *st) {
    return put(write_comparison, &(told_comparison){f, c, shown}, path, st);
}
