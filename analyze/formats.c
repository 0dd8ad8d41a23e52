/* Owns the tables of formats, and how what they write reaches its file. */
#include "analyze/write/formats.h"
#include "analyze/compare/comparison_formats.h"
#include "analyze/export/export.h"
#include "analyze/history/index.h"
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

const history_format history_formats[] = {
    {"text", "history.txt", history_write_text},
    {"json", "index.json", history_write_json},
    {"html", "index.html", page_index},
    {"junit", "night.xml", history_write_junit},
    {"metrics", "night.prom", history_write_metrics},
    {"csv", "history.csv", history_write_csv},
    {NULL, NULL, NULL},
};

const export_format export_formats[] = {
    {"tunableop", "PyTorch", tunableop_row, tunableop_write},
    {"inductor", NULL, inductor_row, inductor_write},
    {"triton", NULL, triton_row, triton_write},
    {NULL, NULL, NULL, NULL},
};

/* What a path ends as, with its point: a file's name. NULL: it is a folder, or would be one. */
static const char *ending_of(const char *path) {
    enum { MOST = 6 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strrchr(name, '.');
    const size_t length = end ? strlen(end) : 0;
    struct stat is;
    if (length < 2 || length > MOST || end == name || (stat(path, &is) == 0 && S_ISDIR(is.st_mode))) return NULL;
    return strspn(end + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == length - 1 ? end : NULL;
}

bool formats_settle(const char *const *first, size_t size, const char *output, uint32_t *formats, bool *file,
                    status *st) {
    const char *const end = output ? ending_of(output) : NULL, *const * line;
    char endings[80] = "";
    uint32_t ends = 0, bit = 1;
    for (const char *at = (const char *)first; *(line = (const char *const *)at); at += size, bit <<= 1) {
        const char *const own = strrchr(line[1], '.');
        const size_t used = strlen(endings);
        if (end && strcmp(end, own) == 0) ends = bit;
        if (!*formats || *formats & bit)
            snprintf(endings + used, sizeof endings - used, "%s%s", used ? " or " : "", own);
    }
    if (!*formats) *formats = ends ? ends : output ? UINT32_MAX : 1;
    *file = ends && *formats == ends;
    if (end && !*file)
        return status_fail(st, STATUS_USAGE, "-o %s: a file of one format ends with %s; for a folder type %s/", output,
                           endings, output);
    if (output || (*formats & (*formats - 1)) == 0) return true;
    return status_fail(st, STATUS_USAGE, "--format: several formats need a folder; give it with -o");
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

typedef struct told_history {
    const history_format *f;
    const history_shown *shown;
} told_history;

static bool write_history(const void *of, FILE *out, status *st) {
    const told_history *told = of;
    return told->f->write(told->shown, out, st);
}

bool history_formats_put(const history_format *f, const history_shown *shown, const char *path, status *st) {
    return put(write_history, &(told_history){f, shown}, path, st);
}

typedef struct told_export {
    const export_format *f;
    const export_all *x;
} told_export;

static bool write_export(const void *of, FILE *out, status *st) {
    const told_export *told = of;
    return told->f->write(told->x, out, st);
}

bool export_formats_put(const export_format *f, const export_all *x, const char *path, status *st) {
    return put(write_export, &(told_export){f, x}, path, st);
}
