/* The libFuzzer target of what analyze reads. The first byte says what is asked. 0: that the reader of JSON without
 * trees and the one with them agree on the rest. 1: that the rest, cut at every NUL into reports, is refused or becomes
 * a study whose figures can be true, and of which every format can be written; that it is compared with the last of
 * them. 2: that a folder is read, of which the rest is run.json, ops.json and then the reports, and that every
 * operation in it is explained, and found by its layers.
 */
#include "analyze/compare/comparison_formats.h"
#include "analyze/explain/explain.h"
#include "analyze/study/study_internal.h"
#include "analyze/write/formats.h"
#include "common/plain.h"
#include "tests/unit/common/json_oracle.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_REPORTS = 16, BESIDE = 2, MOST_FILES = BESIDE + 4, PATH_ROOM = 512 };
static char folder[PATH_ROOM], reports[PATH_ROOM + 16], paths[MOST_FILES][PATH_ROOM + 32];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void clean(void) {
    for (int k = 0; k < MOST_FILES; k++) unlink(paths[k]);
    rmdir(reports);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/fuzz_analyze.XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) abort();
    snprintf(reports, sizeof reports, "%s/reports", folder);
    snprintf(paths[0], sizeof paths[0], "%s/run.json", folder);
    snprintf(paths[1], sizeof paths[1], "%s/ops.json", folder);
    for (int k = BESIDE; k < MOST_FILES; k++) snprintf(paths[k], sizeof paths[k], "%s/%d.json", reports, k);
    if (mkdir(reports, 0700) != 0) abort();
    atexit(clean);
    return 0;
}

static bool is_positive(double x) { return isnan(x) || (isfinite(x) && x > 0); }
static bool is_amount(double x) { return isnan(x) || (isfinite(x) && x >= 0); }

static void check_report(const study_report *r) {
    if (!r->operation || !r->op || !r->key || !r->status || r->rank < 0 || r->rank > STUDY_RANK) abort();
    if (!is_positive(r->baseline_us) || !is_positive(r->best_us) || !is_positive(r->ceiling_us) ||
        !is_positive(r->ratio))
        abort();
    if (!is_amount(r->baseline_ci) || !is_amount(r->ratio_ci) || !is_amount(r->flops) || !is_amount(r->ceiling_ci))
        abort();
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
            if (strcmp(line, "next:") == 0) break; /* a word of a command may be longer than a line */
            if (plain_columns(line) > 100 || strpbrk(line, "\x1b\r\x7f")) abort();
            line = end + 1;
        }
        free(text);
    }
}

/* A study of all reports of the text, or of the last one alone. How many it has. */
static size_t make_study(study *s, const char *text, size_t size, bool last) {
    static study_file files[MOST_REPORTS];
    static const char *const folders[] = {"."};
    size_t count = 0;
    *s = (study){.options = {.folders = folders, .folder_count = 1, .thresholds = verdict_defaults, .group = true}};
    guard_init(&s->guard);
    arena_init(&s->arena, &s->guard, (size_t)256 << 20);
    map_init(&s->texts, &s->arena);
    if (!guard_enter(&s->guard)) abort();
    s->beside = arena_array(&s->arena, study_beside, 1);
    read_reports(s, text, size, files, &count);
    if (count > 0) study_make_groups(s, last ? &files[count - 1] : files, last ? 1 : count);
    for (size_t k = 0; k < s->group_count; k++) study_judge(s, &s->groups[k]);
    return count;
}

/* Of a report twice the second one is what became of it. */
static void compare_with_last(const study *before, const char *text, size_t size) {
    const comparison_options how = {.drift = {.alarms = 0.0005, .margin = 0.01}, .margin = verdict_defaults.margin};
    const comparison_shown shown = {.fail = {true, true}};
    study after;
    comparison c;
    status st = {0};
    make_study(&after, text, size, true);
    if (comparison_make(&c, before, &after, &how, &st)) {
        for (int k = 0; comparison_formats[k].name; k++) {
            char *said = NULL;
            size_t n = 0;
            FILE *out = open_memstream(&said, &n);
            if (!out) abort();
            if (!comparison_formats[k].write(&c, &shown, out, &st) && !st.text[0]) abort();
            if (fclose(out) != 0) abort();
            free(said);
        }
        comparison_close(&c);
    } else if (!st.text[0])
        abort();
    study_close(&after);
}

static void fuzz_reports(const char *text, size_t size) {
    study s;
    summary m;
    status st = {0};
    if (make_study(&s, text, size, false) > 0) {
        for (size_t k = 0; k < s.group_count; k++) {
            for (size_t n = 0; n < s.groups[k].count; n++) check_report(&s.groups[k].reports[n]);
            for (size_t n = 0; n < s.groups[k].fusion_count; n++) check_report(&s.groups[k].fusions[n]);
        }
        if (!guard_enter(&s.guard) || !summary_make(&s, 0, &m, &st)) abort();
        write_formats(&m);
        compare_with_last(&s, text, size);
    }
    study_close(&s);
}

static void write_files(const char *text, size_t size) {
    for (int k = 0; k < MOST_FILES; k++) {
        const size_t n = strnlen(text, size);
        unlink(paths[k]);
        if (size == 0) continue;
        const int fd = open(paths[k], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, n) != (ssize_t)n || close(fd) != 0) abort();
        text += n + (n < size);
        size -= n + (n < size);
    }
}

/* What the scanner took, the reader of trees may still refuse (a name given twice); it says so. */
static void explain_one(study *s, const study_group *g, const study_report *r) {
    status st = {0}, left_out = {0};
    char *text = NULL;
    size_t n = 0;
    json_t *report = study_detail(r, &st), *run = study_beside_report(r->path, "run", &left_out);
    FILE *out = open_memstream(&text, &n);
    const explain e = {.to = {.out = out, .columns = 100},
                       .arena = &s->arena,
                       .group = g,
                       .r = r,
                       .thresholds = &s->options.thresholds,
                       .report = report,
                       .run = run,
                       .most = 30};
    if (!out || (!report && !st.text[0]) || !guard_enter(&s->guard)) abort();
    if (report) explain_write(&e);
    if (fclose(out) != 0 || (report && n == 0) || strpbrk(text, "\x1b\r\x7f")) abort();
    free(text);
    json_decref(report);
    json_decref(run);
}

static void check_layers(const study_group *g, const study_report *r) {
    const study_report *found = NULL;
    char text[STUDY_LAYERS];
    if ((r->layer_count > 0) != (study_layers(r, text)[0] != 0)) abort();
    if (r->layer_count == 0 || !*r->layers[0] || r->count == 0) return;
    if (study_find_layer(g, r->layers[0], &found) == 0 || !found) abort();
}

static void fuzz_folder(const char *text, size_t size) {
    static const char *const folders[] = {folder};
    const study_options how = {
        .folders = folders, .folder_count = 1, .thresholds = verdict_defaults, .layers = true, .group = true};
    study s;
    summary m;
    status st = {0};
    write_files(text, size);
    if (!study_open(&s, &how, &st)) {
        if (!st.text[0]) abort();
        return;
    }
    for (size_t k = 0; k < s.group_count; k++) {
        const study_group *g = &s.groups[k];
        for (size_t n = 0; n < g->count; n++) explain_one(&s, g, &g->reports[n]);
        for (size_t n = 0; n < g->count; n++) check_layers(g, &g->reports[n]);
        for (size_t n = 0; n < g->fusion_count; n++) explain_one(&s, g, &g->fusions[n]);
    }
    if (!guard_enter(&s.guard) || !summary_make(&s, 0, &m, &st)) abort();
    write_formats(&m);
    study_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data + 1;
    if (size == 0) return 0;
    switch (data[0] % 3) {
    case 0:
        if (!json_oracle_agree(text, size - 1)) abort();
        break;
    case 1: fuzz_reports(text, size - 1); break;
    default: fuzz_folder(text, size - 1);
    }
    return 0;
}
