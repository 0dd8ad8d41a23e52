/* The libFuzzer target of what analyze reads: reports. The first byte says what is asked. Even: that the reader of JSON
 * without trees and the one with them agree on the rest. Odd: that the rest, cut at every NUL into reports, is refused
 * or becomes a study whose figures can be true, and of which every format can be written. */
#include "analyze/formats.h"
#include "analyze/study_internal.h"
#include "common/plain.h"
#include "tests/unit/json_oracle.h"

#include <math.h>
#include <stdio.h>

enum { MOST_REPORTS = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool positive(double x) { return isnan(x) || (isfinite(x) && x > 0); }
static bool amount(double x) { return isnan(x) || (isfinite(x) && x >= 0); }

static void check_report(const study_report *r) {
    if (!r->operation || !r->op || !r->key || !r->status || r->rank < 0 || r->rank > STUDY_RANK) abort();
    if (!positive(r->baseline_us) || !positive(r->best_us) || !positive(r->ceiling_us) || !positive(r->ratio)) abort();
    if (!amount(r->baseline_ci) || !amount(r->ratio_ci) || !amount(r->flops) || !amount(r->ceiling_ci)) abort();
    if (r->count < 0 || r->batch < 0 || r->candidates < r->bad_rows) abort();
    if (isnan(r->baseline_us) != (strcmp(r->status, "OK") != 0)) abort();
    if (!isfinite(r->verdict.proven_gain_us) || !isfinite(r->verdict.potential_gain_us)) abort();
    if (r->verdict.proven_gain_us < 0 || r->verdict.potential_gain_us < 0) abort();
}

static void read_reports(study *s, const char *text, size_t size, study_file *files, size_t *count) {
    study_scanner scanner = {.rows = NULL};
    while (size > 0 && *count < MOST_REPORTS) {
        const size_t n = strnlen(text, size);
        char *bytes = malloc(n + 1);
        study_file *f = &files[*count];
        *f = (study_file){.report.path = "/nowhere/a.json"};
        if (!bytes) abort();
        memcpy(bytes, text, n);
        bytes[n] = 0;
        study_scan(&scanner, bytes, n, f);
        if (f->is == STUDY_REPORT) {
            study_scan_texts(&s->texts, f);
            ++*count;
        } else if (!scanner.why[0]) {
            abort();
        }
        free(bytes);
        text += n + (n < size);
        size -= n + (n < size);
    }
    study_scan_free(&scanner);
}

static void write_formats(const summary *m) {
    for (int k = 0; formats_all[k].name; k++) {
        char *text = NULL;
        size_t n = 0;
        status st = {0};
        FILE *out = open_memstream(&text, &n);
        if (!out) abort();
        const bool good = formats_all[k].write(m, out, &st);
        if (fclose(out) != 0 || (!good && !st.text[0])) abort();
        if (good && strcmp(formats_all[k].name, "json") == 0) {
            json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
            if (!root) abort();
            json_decref(root);
        }
        for (char *line = text; good && strcmp(formats_all[k].name, "text") == 0 && *line;) {
            char *end = strchr(line, '\n');
            if (!end) abort();
            *end = 0;
            if (plain_columns(line) > 100 || strpbrk(line, "\x1b\r\x7f")) abort();
            line = end + 1;
        }
        free(text);
    }
}

static void fuzz_reports(const char *text, size_t size) {
    static study_file files[MOST_REPORTS];
    static const char *const folders[] = {"."};
    study s = {.options = {.folders = folders, .folder_count = 1, .thresholds = verdict_defaults, .group = true}};
    size_t count = 0;
    summary m;
    status st = {0};
    guard_init(&s.guard);
    arena_init(&s.arena, &s.guard, (size_t)256 << 20);
    map_init(&s.texts, &s.arena);
    if (!guard_enter(&s.guard)) abort();
    read_reports(&s, text, size, files, &count);
    if (count > 0) {
        study_make_groups(&s, files, count);
        for (size_t k = 0; k < s.group_count; k++) {
            study_judge(&s, &s.groups[k]);
            for (size_t n = 0; n < s.groups[k].count; n++) check_report(&s.groups[k].reports[n]);
            for (size_t n = 0; n < s.groups[k].fusion_count; n++) check_report(&s.groups[k].fusions[n]);
        }
        if (!summary_make(&s, 0, &m, &st)) abort();
        write_formats(&m);
    }
    study_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (data[0] % 2)
        fuzz_reports((const char *)data + 1, size - 1);
    else if (!json_oracle_agree((const char *)data + 1, size - 1))
        abort();
    return 0;
}
