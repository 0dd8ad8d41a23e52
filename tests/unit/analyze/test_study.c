/* Studies: what is read of reports, what is skipped and why, which of them may be compared. */
#include "analyze/study/study.h"
#include "tests/unit/analyze/study_fixture.h"

#include <fcntl.h>

static void near(double got, double want) {
    if (!UNIT_CHECK(fabs(got - want) <= 1e-9 * fabs(want))) printf("got %.12g, want %.12g\n", got, want);
}

static void figures_of_a_report(void) {
    study s;
    status st = {0};
    char text[32];
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("a", "3", "40.0", "32.0", "0.8", "20.0"));
    lab_write("reports/b.json", LAB_MISSING("b", "2", "UNSTABLE", "interval", "7.5"));
    lab_write("reports/c.json", LAB_MISSING("c", "5", "SKIPPED", "no_work", "1.0"));
    if (!UNIT_CHECK(lab_open(&s, &st))) printf("%s\n", st.text);
    UNIT_INT(s.group_count, 1);
    UNIT_INT(s.skipped_count, 0);
    const study_group *g = &s.groups[0];
    UNIT_INT(g->count, 3);
    UNIT_TEXT(g->device, "GPU A");
    UNIT_TEXT(g->model, files_base(lab_folder));
    UNIT_TEXT(g->device_instance, "A;1");
    UNIT_INT(g->without_baseline, 1);
    near(g->model_us, 3 * 40 + 2 * 7.5);
    const study_report *r = study_find(g, "a");
    UNIT_CHECK(r == &g->reports[0]);
    UNIT_TEXT(r->best, "own");
    UNIT_TEXT(r->device, "cuda:0");
    near(r->ratio, 0.8);
    near(r->baseline_ci, 0.002);
    near(r->best_ci, 0.002);
    near(r->ceiling_ci, 0.01);
    near(r->clock_mhz, 1500);
    UNIT_CHECK(isnan(r->power_w) && isnan(r->rival_ratio) && r->reason_code == NULL);
    UNIT_INT(r->candidates, 2);
    UNIT_TEXT(study_shape(r, text, sizeof text), "64x64x64");
    UNIT_TEXT(study_shape(r, text, 4), "64x");
    UNIT_TEXT(r->verdict.approach, "CUSTOM_KERNEL");
    near(r->verdict.proven_gain_us, 3 * 40 * 0.2);
    UNIT_CHECK(r->op == g->reports[1].op); /* the same text once */
    UNIT_TEXT(g->reports[1].reason_code, "interval");
    UNIT_CHECK(study_find(g, "nobody") == NULL);
    json_t *detail = study_detail(r, &st);
    UNIT_INT(json_array_size(json_object_get(detail, "candidates")), 2);
    json_decref(detail);
    UNIT_CHECK(study_beside_report(r->path, "run", &st) == NULL);
    lab_write("run.json", "{'schema':'ceiling-scout/run/1'}");
    json_t *run = study_beside_report(r->path, "run", &st);
    UNIT_CHECK(run != NULL);
    json_decref(run);
    study_close(&s);
    lab_end();
}

/* Everything that stands in a folder and is no report that can be true: the rest is read without it, and it is told. */
static void what_is_skipped(void) {
    static const char good[] = LAB_PLAIN("good", "1", "10.0", "9.5");
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "line 1, column 1: it is empty"},
        {"{'schema':'ceiling-scout/report/1','operat", "line 1, column 43: a string without its end"},
        {"[1]", "is not a report: it has no schema"},
        {"{'a':1}", "is not a report: it has no schema"},
        {"{'schema':'other/1'}", "is not a report: it has another schema"},
        {"{'schema':5,'shape':'x'}", "is not a report: it has no schema"},
        {"{'schema':'ceiling-scout/report/2'}", "is a report of another version (ceiling-scout/report/2; "
                                                "ceiling-scout/report/1 is read)"},
        {"{'schema':'ceiling-scout/report/1'}", "'operation' is missing in it"},
        {"{" LAB_HEAD("x", "1") "}", "'status' is missing in it"},
        {"{" LAB_HEAD("x", "1") ",'status':'OK','candidates':[]}",
         "its status and its baseline_time_us contradict each other"},
        {"{" LAB_HEAD("x", "1") ",'status':'FINE','candidates':[]}", "its status is unknown"},
        {"{" LAB_HEAD("x", "1") ",'status':'ERROR','candidates':[]}", "it has neither a baseline nor a reason"},
        {"{" LAB_HEAD("x", "1.5") ",'status':'ERROR','candidates':[]}", "'count' is not a whole number"},
        {"{" LAB_HEAD("x", "-1") ",'status':'ERROR','candidates':[]}", "'count' cannot be true"},
        {"{" LAB_HEAD("x", "1e2") ",'status':'ERROR','candidates':[]}", "'count' is not a whole number"},
        {"{" LAB_HEAD("x", "'1'") ",'status':'ERROR','candidates':[]}", "'count' is not a whole number"},
        {"{" LAB_HEAD("x", "null") ",'status':'ERROR','candidates':[]}", "'count' is not a whole number"},
        {"{" LAB_HEAD("x", "9223372036854775807") ",'status':'ERROR','candidates':[]}", "'count' cannot be true"},
        {"{" LAB_HEAD("x", "1") ",'count':2,'status':'ERROR','candidates':[]}", "'count' is given twice"},
        {LAB_PLAIN("x", "1", "-4.0", "9.5"), "'baseline_time_us' cannot be true"},
        {LAB_PLAIN("x", "1", "0.0", "9.5"), "'baseline_time_us' cannot be true"},
        {LAB_PLAIN("x", "1", "1e300", "9.5"), "'baseline_time_us' cannot be true"},
        {LAB_PLAIN("x", "1", "null", "9.5"), "'baseline_time_us' is not a number"},
        {LAB_PLAIN("x", "1", "'NaN'", "9.5"), "'baseline_time_us' is not a number"},
        {LAB_PLAIN("x", "1", "{}", "9.5"), "'baseline_time_us' is not a number"},
        {LAB_PLAIN("x", "1", "10.0", "-1"), "'ceiling_time_us' cannot be true"},
        {LAB_PLAIN("x", "1", "10.0", "1,'sparsity':2"), "'sparsity' is given twice"},
        {LAB_BEATEN("x", "1", "40.0", "32.0", "-0.8", "20.0"), "'ratio' cannot be true"},
        {"{" LAB_HEAD("x", "1") ",'status':'OK','baseline':'lib','flops':1e16,'baseline_time_us':5.0,'candidates':"
                                "[" LAB_ROW("lib", "5.0") "]}",
         "no device does its flops in its baseline_time_us"},
        {"{" LAB_HEAD("x", "1") ",'status':'OK','baseline':'lib','baseline_time_us':5.0,'candidates':[" LAB_ROW(
             "lib", "6.0") "]}",
         "its baseline_time_us is not the time of any row"},
        {"{" LAB_HEAD("x", "1") ",'status':'OK','baseline':'lib','baseline_time_us':6.0,'best':'no','best_time_us':5.0,"
                                "'candidates':[" LAB_ROW("lib", "6.0") "]}",
         "its best_time_us is not the time of any row"},
        {"{" LAB_HEAD("x", "1") ",'status':'ERROR','reason':{'code':'a','text':'b'},'candidates':[5]}",
         "'candidates' hold a value that is not a row"},
        {"{" LAB_HEAD("x", "1") ",'status':'ERROR','reason':{'code':'a','text':'b'},'candidates':[{}]}",
         "'candidates' hold a row without a known status"},
        {"{" LAB_HEAD("x", "1") ",'status':'ERROR','reason':{'code':'a','text':'b'},'candidates':{}}",
         "'candidates' is not a list"},
        {"{" LAB_HEAD("x", "1") ",'status':'ERROR','reason':{'code':'a','text':'b'},'best_approach':'=1+1',"
                                "'candidates':[]}",
         "its approach is unknown"},
        {LAB_PLAIN("good", "1", "10.0", "9.5"), "is of the same operation as a.json"},
        {LAB_PLAIN("x", "1", "NaN", "9.5"), NULL},
        {LAB_PLAIN("x", "1", "1e999", "9.5"), NULL},
        {LAB_PLAIN("x", "1", "-Infinity", "9.5"), NULL},
    };
    lab_begin();
    lab_write("reports/a.json", good);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        study s;
        status st = {0};
        lab_write("reports/b.json", cases[k].text);
        if (!UNIT_CHECK(lab_open(&s, &st))) continue;
        UNIT_INT(s.groups[0].count, 1);
        near(s.groups[0].model_us, 10);
        if (UNIT_CHECK(s.skipped_count == 1)) {
            UNIT_TEXT(files_base(s.skipped[0].path), "b.json");
            if (cases[k].why)
                UNIT_TEXT(s.skipped[0].why, cases[k].why);
            else
                UNIT_CHECK(strncmp(s.skipped[0].why, "line 1, column ", 15) == 0);
        } else {
            printf("of case %zu\n", k);
        }
        study_close(&s);
    }
    lab_end();
}

/* Pipes, folders, links and files that cannot be read; and one that is as large as none is. Nothing hangs. */
static void what_is_no_file(void) {
    study s;
    status st = {0};
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    lab_write("elsewhere.json", LAB_PLAIN("b", "1", "10.0", "9.5"));
    UNIT_CHECK(mkfifo(lab_path("reports/fifo.json"), 0600) == 0);
    UNIT_CHECK(mkdir(lab_path("reports/folder.json"), 0700) == 0);
    UNIT_CHECK(symlink("../elsewhere.json", lab_path("reports/link.json")) == 0);
    UNIT_CHECK(symlink("/dev/zero", lab_path("reports/zero.json")) == 0);
    lab_write("reports/.a.json.1-1.part", "{");
    lab_write("reports/.hidden.json", "{");
    lab_write("reports/notes.txt", "notes");
    int fd = open(lab_path("reports/huge.json"), O_CREAT | O_WRONLY, 0600);
    UNIT_CHECK(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0);
    if (fd >= 0) close(fd);
    UNIT_CHECK(lab_open(&s, &st));
    UNIT_INT(s.groups[0].count, 1);
    static const char *const names[] = {"fifo.json", "folder.json", "huge.json", "link.json", "zero.json"};
    UNIT_INT(s.skipped_count, 5);
    for (size_t k = 0; k < 5; k++) {
        bool told = false;
        for (size_t j = 0; j < s.skipped_count; j++)
            told = told || strcmp(files_base(s.skipped[j].path), names[k]) == 0;
        if (!UNIT_CHECK(told)) printf("not told: %s\n", names[k]);
    }
    study_close(&s);
    /* a folder that is a link leads elsewhere too */
    UNIT_CHECK(rmdir(lab_path("fusions")) == 0 && symlink("/", lab_path("fusions")) == 0);
    UNIT_CHECK(lab_open(&s, &st));
    UNIT_INT(s.skipped_count, 6);
    study_close(&s);
    lab_end();
}

static void long_texts_and_deep_lists(void) {
    study s;
    status st = {0};
    const size_t n = (size_t)10 << 20;
    char *text = malloc(n + 4096);
    lab_begin();
    if (!text) abort();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    const int head = snprintf(text, 4096, "{'name':'");
    memset(text + head, 'x', n);
    snprintf(text + (size_t)head + n, 4000, "'," LAB_HEAD("b", "1") "}");
    lab_write("reports/long.json", text);
    memset(text, '[', n);
    text[n] = 0;
    lab_write("reports/deep.json", text);
    free(text);
    UNIT_CHECK(lab_open(&s, &st));
    UNIT_INT(s.groups[0].count, 1);
    UNIT_INT(s.skipped_count, 2);
    UNIT_TEXT(s.skipped[0].why, "line 1, column 65: nested too deeply");
    UNIT_TEXT(s.skipped[1].why, "'name' is longer than any string of a report");
    study_close(&s);
    lab_end();
}

static size_t told;
static char told_first[512];

static void keep_told(const study_skipped *files, size_t count) {
    told = count;
    if (count > 0) snprintf(told_first, sizeof told_first, "%s: %s", files[0].path, files[0].why);
}

static void folders_without_reports(void) {
    study s;
    status st = {0};
    lab_begin();
    UNIT_CHECK(!lab_open(&s, &st));
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_CHECK(strstr(st.text, "holds no report; measure first: ceiling-scout measure") != NULL);
    lab_write("reports/a.json", "{");
    UNIT_CHECK(!lab_open(&s, &st));
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_CHECK(strstr(st.text, "no report can be read, 1 file was left out") != NULL);
    lab_write("reports/b.json", "[]");
    const char *folders[] = {lab_folder, lab_path("reports/none")};
    study_options with = {.folders = folders, .folder_count = 1, .thresholds = verdict_defaults, .told = keep_told};
    told = 0;
    UNIT_CHECK(!study_open(&s, &with, &st));
    UNIT_INT(told, 2);
    UNIT_CHECK(strstr(told_first, "a.json: line 1") != NULL);
    UNIT_CHECK(strstr(st.text, "2 files were left out") != NULL);
    status none = {0};
    UNIT_CHECK(files_make_folders(folders[1], &none));
    with.folder_count = 2;
    UNIT_CHECK(!study_open(&s, &with, &st));
    UNIT_CHECK(strstr(st.text, " and 1 other: no report can be read") != NULL);
    lab_end();
    UNIT_CHECK(!lab_open(&s, &st));
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_CHECK(strstr(st.text, "is not a folder") != NULL);
}

/* A plain folder may hold what this project writes beside reports. */
static void files_of_other_kinds_are_left_alone(void) {
    const char *folder;
    study s;
    status st = {0};
    lab_begin();
    folder = lab_path("reports");
    const study_options with = {.folders = &folder, .folder_count = 1, .thresholds = verdict_defaults};
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    lab_write("reports/summary.json", "{'schema':'ceiling-scout/summary/1','shape':5}");
    lab_write("reports/run.json", "{'schema':'ceiling-scout/run/1'}");
    UNIT_CHECK(study_open(&s, &with, &st));
    UNIT_INT(s.groups[0].count, 1);
    UNIT_INT(s.skipped_count, 0);
    UNIT_TEXT(s.groups[0].model, files_base(lab_folder));
    json_t *run = study_beside_report(s.groups[0].reports[0].path, "run", &st);
    UNIT_CHECK(run != NULL);
    json_decref(run);
    study_close(&s);
    lab_end();
}

int main(void) {
    UNIT_RUN(figures_of_a_report);
    UNIT_RUN(what_is_skipped);
    UNIT_RUN(what_is_no_file);
    UNIT_RUN(long_texts_and_deep_lists);
    UNIT_RUN(folders_without_reports);
    UNIT_RUN(files_of_other_kinds_are_left_alone);
    return unit_end();
}
