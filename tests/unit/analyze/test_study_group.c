/* Several folders: what may stand together, what is told apart, and what happens to an operation of both. */
#include "analyze/study/study.h"
#include "tests/unit/analyze/study_fixture.h"

static void near(double got, double want) {
    if (!UNIT_CHECK(fabs(got - want) <= 1e-9 * fabs(want))) printf("got %.12g, want %.12g\n", got, want);
}

/* A report of a of other members: in place of `what` stands `other`. */
static void write_other(const char *name, const char *what, const char *other) {
    const char *text = LAB_PLAIN("b", "1", "10.0", "9.5"), *at = strstr(text, what);
    char whole[4096];
    if (!UNIT_CHECK(at != NULL)) return;
    snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - text), text, other, at + strlen(what));
    lab_write(name, whole);
}

static bool open_both(study *s, const char *a, const char *b, bool group, status *st) {
    static char paths[2][256];
    static const char *folders[2];
    snprintf(paths[0], sizeof paths[0], "%s", lab_path(a));
    snprintf(paths[1], sizeof paths[1], "%s", lab_path(b));
    folders[0] = paths[0], folders[1] = paths[1];
    *st = (status){0};
    const study_options with = {.folders = folders, .folder_count = 2, .thresholds = verdict_defaults, .group = group};
    return study_open(s, &with, st);
}

static void what_differs_is_refused_or_apart(void) {
    static const struct {
        const char *what, *other, *said;
    } cases[] = {
        {"'class A'", "'class B'", "its device class (GPU A, sustained-model-graph, method 5)"},
        {"sustained-model-graph", "burst-model-graph", "its regime (GPU A, burst-model-graph, method 5)"},
        {"'method':5", "'method':4", "its version of the method (GPU A, sustained-model-graph, method 4)"},
    };
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        study s;
        status st;
        write_other("fusions/b.json", cases[k].what, cases[k].other);
        UNIT_CHECK(!open_both(&s, "reports", "fusions", false, &st));
        UNIT_INT(st.code, STATUS_INPUT);
        if (!UNIT_CHECK(strstr(st.text, cases[k].said) && strstr(st.text, ": keep each in its own folder")))
            printf("%s\n", st.text);
        if (!UNIT_CHECK(open_both(&s, "reports", "fusions", true, &st))) continue;
        UNIT_INT(s.group_count, 2);
        UNIT_INT(s.groups[0].count, 1);
        UNIT_INT(s.groups[1].count, 1);
        UNIT_TEXT(s.groups[1].reports[0].operation, "b");
        UNIT_TEXT(s.groups[1].model, "fusions");
        near(s.groups[0].model_us, 10); /* each has a time of its own */
        study_close(&s);
    }
    lab_end();
}

static void two_instances_are_one_class(void) {
    study s;
    status st;
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    write_other("fusions/b.json", "'A;1'", "'A;2'");
    UNIT_CHECK(open_both(&s, "reports", "fusions", false, &st));
    UNIT_INT(s.group_count, 1);
    UNIT_CHECK(s.groups[0].device_instance == NULL);
    UNIT_TEXT(s.groups[0].driver, "1.2");
    UNIT_INT(s.groups[0].models, 2);
    near(s.groups[0].model_us, 20);
    study_close(&s);
    lab_end();
}

/* It occurs as often as in both; its figures are those of the first folder that has any. */
static void an_operation_of_two_models(void) {
    study s;
    status st;
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "3", "10.0", "9.5"));
    lab_write("reports/c.json", LAB_MISSING("c", "1", "UNSTABLE", "interval", "5.0"));
    lab_write("fusions/a.json", LAB_PLAIN("a", "4", "11.0", "9.5"));
    lab_write("fusions/c.json", LAB_PLAIN("c", "1", "8.0", "7.5"));
    UNIT_CHECK(open_both(&s, "reports", "fusions", false, &st));
    UNIT_INT(s.skipped_count, 0);
    UNIT_INT(s.groups[0].count, 2);
    UNIT_INT(s.groups[0].reports[0].count, 7);
    near(s.groups[0].reports[0].baseline_us, 10);
    UNIT_INT(s.groups[0].reports[1].count, 2);
    near(s.groups[0].reports[1].baseline_us, 8);
    near(s.groups[0].model_us, 7 * 10 + 2 * 8);
    UNIT_CHECK(strstr(s.groups[0].model, "reports") == NULL); /* a folder of reports is called as what it lies in */
    UNIT_INT(s.groups[0].without_baseline, 0);
    study_close(&s);
    /* of the same name, but another operation: it cannot be both */
    write_other("fusions/a.json", "'operation':'b','name':'b'", "'operation':'a','name':'b'");
    UNIT_CHECK(open_both(&s, "reports", "fusions", false, &st));
    UNIT_INT(s.skipped_count, 1);
    UNIT_CHECK(strstr(s.skipped[0].why, "of the same name") != NULL);
    near(s.groups[0].model_us, 3 * 10 + 2 * 8);
    study_close(&s);
    lab_end();
}

static void a_folder_named_twice(void) {
    study s;
    status st;
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "1", "10.0", "9.5"));
    UNIT_CHECK(!open_both(&s, "reports", "./reports/../reports", false, &st));
    UNIT_INT(st.code, STATUS_USAGE);
    UNIT_CHECK(!open_both(&s, ".", "reports", false, &st)); /* as the model's folder, and as that of its reports */
    UNIT_INT(st.code, STATUS_USAGE);
    UNIT_CHECK(strstr(st.text, "name it once") != NULL);
    lab_end();
}

/* More than one thread reads; what comes out is in the order of the names all the same. */
static void many_files(void) {
    enum { MANY = 700 };
    study s;
    status st = {0};
    char text[4096], name[64], id[32];
    lab_begin();
    for (int k = 0; k < MANY; k++) {
        snprintf(name, sizeof name, "reports/%04d.json", (k * 379) % MANY);
        snprintf(id, sizeof id, "op%04d", (k * 379) % MANY);
        const char *plain = LAB_PLAIN("?", "1", "10.0", "9.5"), *at = strchr(plain, '?');
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plain), plain, id, at + 1);
        lab_write(name, k % 10 == 9 ? "{" : text);
    }
    UNIT_CHECK(lab_open(&s, &st));
    UNIT_INT(s.groups[0].count, MANY - MANY / 10);
    UNIT_INT(s.skipped_count, MANY / 10);
    bool sorted = true;
    for (size_t k = 1; k < s.groups[0].count; k++)
        sorted = sorted && strcmp(s.groups[0].reports[k - 1].operation, s.groups[0].reports[k].operation) < 0;
    for (size_t k = 1; k < s.skipped_count; k++)
        sorted = sorted && strcmp(s.skipped[k - 1].path, s.skipped[k].path) < 0;
    UNIT_CHECK(sorted);
    UNIT_CHECK(study_find(&s.groups[0], "op001") == NULL); /* more than one starts so */
    const study_report *found = study_find(&s.groups[0], s.groups[0].reports[77].operation);
    UNIT_CHECK(found == &s.groups[0].reports[77]);
    study_close(&s);
    lab_end();
}

int main(void) {
    UNIT_RUN(what_differs_is_refused_or_apart);
    UNIT_RUN(two_instances_are_one_class);
    UNIT_RUN(an_operation_of_two_models);
    UNIT_RUN(a_folder_named_twice);
    UNIT_RUN(many_files);
    return unit_end();
}
