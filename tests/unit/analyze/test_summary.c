/* Summaries: every operation comes out as one thing, sums add up, what is proven and what is only potential stay apart,
 * and the order is what should be done first. And what is printed of it, whatever the names are. */
#include "analyze/write/formats.h"
#include "common/plain.h"
#include "tests/unit/analyze/study_fixture.h"

static void near(double got, double want) {
    if (!UNIT_CHECK(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) printf("got %.12g, want %.12g\n", got, want);
}

#define LAB_FUSION(id, count, selected, speedup, ci, worth)                                                            \
    "{" LAB_HEAD(                                                                                                      \
        id, count) ",'status':'OK','reason':null,'baseline':'parts','best':'one','flops':1e9,"                         \
                   "'bytes_read':1e6,'bytes_written':1e6,'baseline_time_us':10.0,'best_time_us':8.0," LAB_CEILING(     \
                       "2.0") ",'baseline_variant':'','best_variant':'','best_approach':'FUSION','ratio':0.8,'ratio_"  \
                              "ci':0.01,'fusion':{"                                                                    \
                              "'pattern':'gemm+bias','ops':[],'count':" count ",'selected':" selected                  \
                              ",'how':'sequence','parts_time_us':10.0,"                                                \
                              "'fused_time_us':8.0,'speedup':" speedup ",'speedup_ci':" ci ",'worth':'" worth          \
                              "','saved_us':1.0},'candidates':[" LAB_ROW("parts", "10.0") "," LAB_ROW("one",           \
                                                                                                      "8.0") "]}"

static void set_up(void) {
    lab_begin();
    lab_write("reports/proven.json", LAB_BEATEN("proven", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("reports/open.json", LAB_PLAIN("open", "10", "40.0", "20.0"));
    lab_write("reports/optimal.json", LAB_PLAIN("optimal", "5", "20.0", "19.5"));
    lab_write("reports/lost.json", LAB_MISSING("lost", "4", "UNSTABLE", "interval", "15.0"));
    lab_write("reports/more.json", LAB_MISSING("more", "1", "UNSTABLE", "interval", "5.0"));
    lab_write("reports/none.json", LAB_MISSING("none", "1", "SKIPPED", "no_candidate", "3.0"));
    lab_write("reports/view.json", LAB_MISSING("view", "9", "SKIPPED", "no_work", "3.0"));
    lab_write("reports/part.json", LAB_PLAIN("part", "0", "500.0", "19.5"));
    lab_write("fusions/f1.json", LAB_FUSION("f1", "4", "2", "1.25", "0.01", "yes"));
    lab_write("fusions/f2.json", LAB_FUSION("f2", "40", "0", "1.25", "0.01", "yes"));
    lab_write("fusions/f3.json", LAB_FUSION("f3", "40", "40", "1.02", "0.01", "borderline"));
}

static const summary_row *row_of(const summary_group *g, const char *operation) {
    for (size_t k = 0; k < g->row_count; k++)
        if (strcmp(g->rows[k].report->operation, operation) == 0) return &g->rows[k];
    return NULL;
}

static void outcomes_and_sums(void) {
    study s;
    summary m;
    status st = {0};
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    UNIT_INT(s.skipped_count, 0);
    const summary_group *g = &m.groups[0];
    static const struct {
        const char *operation;
        summary_outcome outcome;
    } wanted[] = {{"proven", SUMMARY_PROVEN}, {"open", SUMMARY_OPEN},    {"optimal", SUMMARY_OPTIMAL},
                  {"lost", SUMMARY_MISSING},  {"more", SUMMARY_MISSING}, {"none", SUMMARY_MISSING},
                  {"view", SUMMARY_OUTSIDE},  {"part", SUMMARY_OUTSIDE}};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        const summary_row *row = row_of(g, wanted[k].operation);
        if (UNIT_CHECK(row != NULL)) UNIT_INT(row->outcome, wanted[k].outcome);
    }
    const double model = 10 * 40 + 10 * 40 + 5 * 20 + 4 * 15 + 5 + 3;
    near(g->group->model_us, model);
    near(g->missing_us, 68);
    near(g->group->measured_us, 900);
    near(g->all.baseline_us, model);
    near(g->all.share, 1);
    UNIT_INT(g->all.operations, 6);
    UNIT_INT(g->all.occurrences, 31);
    near(g->all.proven_us, 80);
    near(g->all.proven_share, 80 / model);
    near(g->outcomes[SUMMARY_PROVEN].potential_us, 100 - 80); /* what its ceiling leaves beyond that */
    near(g->outcomes[SUMMARY_OPEN].potential_us, 200);
    near(g->outcomes[SUMMARY_OPEN].proven_us, 0);
    near(g->outcomes[SUMMARY_OPTIMAL].share, 100 / model);
    near(g->all.best_us, model - 80);
    UNIT_INT(g->outcomes[SUMMARY_OUTSIDE].operations, 2);
    near(g->outcomes[SUMMARY_OUTSIDE].baseline_us, 0);
    UNIT_CHECK(m.incomplete);
    double share = 0;
    for (int k = 0; k < SUMMARY_OUTCOMES; k++) share += g->outcomes[k].share;
    near(share, 1);
    study_close(&s);
    lab_end();
}

static void what_to_do_first(void) {
    static const char *const order[] = {"proven", "open", "lost", "more", "none", "optimal", "part", "view"};
    study s;
    summary m;
    status st = {0};
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    for (size_t k = 0; k < m.groups[0].row_count; k++) {
        UNIT_TEXT(m.groups[0].rows[k].report->operation, order[k]);
        UNIT_INT(m.groups[0].rows[k].rank, k + 1);
    }
    study_close(&s);
    lab_end();
}

static void what_is_not_in_it(void) {
    study s;
    summary m;
    status st = {0};
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    const summary_group *g = &m.groups[0];
    UNIT_INT(g->missing_count, 2);
    UNIT_TEXT(g->missing[0].code, "interval");
    UNIT_INT(g->missing[0].operations, 2);
    UNIT_INT(g->missing[0].occurrences, 5);
    UNIT_TEXT(g->missing[1].code, "no_candidate");
    study_close(&s);
    lab_end();
}

/* Two that join the same operation do not both save: only what goes together is added up. */
static void fusions_are_in_no_sum(void) {
    study s;
    summary m;
    status st = {0};
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    const summary_fusions *f = &m.groups[0].fusions;
    UNIT_INT(f->all, 3);
    UNIT_INT(f->worth, 2);
    UNIT_INT(f->borderline, 1);
    UNIT_INT(f->count, 3);
    UNIT_TEXT(f->rows[0]->operation, "f2");
    near(f->saved_us, 2 * 10 * 0.2); /* of f1, twice of its four times; f2 is not selected */
    near(m.groups[0].group->model_us, 968);
    study_close(&s);
    lab_end();
}

static void categories_share_the_time(void) {
    study s;
    summary m;
    status st = {0};
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    const summary_group *g = &m.groups[0];
    UNIT_INT(g->category_count, 1);
    UNIT_TEXT(g->categories[0].op, "gemm");
    near(g->categories[0].sum.share, 1);
    near(g->categories[0].optimal.baseline_us, 100);
    study_close(&s);
    lab_end();
}

static char *written(formats_write *write, const summary *m) {
    char *text = NULL;
    size_t n = 0;
    status st = {0};
    FILE *out = open_memstream(&text, &n);
    if (!out) abort();
    if (!UNIT_CHECK(write(m, out, &st))) printf("%s\n", st.text);
    fclose(out);
    return text;
}

/* Names may hold whatever JSON can: no line is longer than 100 columns, and nothing in them drives a terminal. */
static void hostile_names(void) {
    study s;
    summary m;
    status st = {0};
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("\\u001b[31m<script>\\u0000", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("reports/b.json", LAB_BEATEN("\\u001b[31m\\n\\r\\u202e=1+1,|`$(rm)\\u001b]0;x\\u0007 \\ud83d\\ude00",
                                           "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("reports/c.json", LAB_MISSING("c\\u009b1m", "4", "UNSTABLE", "\\u001b[2J", "15.0"));
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    UNIT_INT(s.skipped_count, 1); /* no text holds a NUL */
    char *text = written(write_text, &m);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!UNIT_CHECK(end != NULL)) break;
        *end = 0;
        if (!UNIT_CHECK(plain_columns(line) <= 100)) printf("%s\n", line);
        for (const unsigned char *c = (const unsigned char *)line; *c; c++)
            UNIT_CHECK(*c >= 0x20 && *c != 0x7f && !(c[0] == 0xc2 && c[1] < 0xa0));
        UNIT_CHECK(strstr(line, "\xe2\x80\xae") == NULL);
    }
    free(text);
    char *json = written(write_json, &m), *again = written(write_json, &m);
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    UNIT_CHECK(root != NULL);
    UNIT_TEXT(again, json);
    json_decref(root);
    free(json);
    free(again);
    study_close(&s);
    lab_end();
}

static void a_format_goes_to_its_file(void) {
    study s;
    summary m;
    status st = {0};
    size_t n = 0;
    set_up();
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    const format *const as_text = &formats_all[0], *const as_json = &formats_all[1];
    UNIT_TEXT(as_json->file, "summary.json");
    UNIT_CHECK(formats_put(as_json, &m, lab_path(as_json->file), &st));
    char *file = files_read(lab_path("summary.json"), 1 << 20, &n, &st), *text = written(write_json, &m);
    UNIT_TEXT(file, text);
    free(file);
    free(text);
    UNIT_CHECK(!formats_put(as_json, &m, lab_path("no/where.json"), &st));
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
    UNIT_CHECK(!formats_put(as_text, &m, "/dev/full", &st));
    study_close(&s);
    lab_end();
}

int main(void) {
    UNIT_RUN(outcomes_and_sums);
    UNIT_RUN(what_to_do_first);
    UNIT_RUN(what_is_not_in_it);
    UNIT_RUN(fusions_are_in_no_sum);
    UNIT_RUN(categories_share_the_time);
    UNIT_RUN(hostile_names);
    UNIT_RUN(a_format_goes_to_its_file);
    return unit_end();
}
