/* Owns the table of formats, and how what they write reaches its file. */
#include "analyze/write/formats.h"

#include "analyze/page/page.h"
#include "common/files.h"

const format formats_all[] = {
    {"text", "summary.txt", write_text},  /* for a terminal */
    {"json", "summary.json", write_json}, /* for programs */
    {"md", "summary.md", write_markdown}, /* for a pull request */
    {"csv", "summary.csv", write_csv},    /* for spreadsheets */
    {"junit", "junit.xml", write_junit},  /* for CI systems */
    {"html", "report.html", page_write},  /* for people, in a browser */
    {NULL, NULL, NULL},
};

bool formats_put(const format *f, const summary *m, const char *path, status *st) {
    if (!path) return f->write(m, stdout, st);
    files_out file;
    if (!files_begin(&file, path, st)) return false;
    FILE *out = files_stream(&file);
    if (!out) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    bool good = out && f->write(m, out, st);
    if (out) good = fclose(out) == 0 && good;
    if (good) return files_commit(&file, st);
    files_abort(&file);
    return false;
}
