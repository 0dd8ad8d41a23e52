/* Keep, revert, or undecided: what a measurement says, at both sides of every limit; and whose names are meant. */
#include "scout/report/compare.h"
#include "scout/terms/variants.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static const int64_t shape[] = {64, 64, 64};
static const operation product = {
    .id = "gemm_1",
    .name = "ffn",
    .rec = {.kind = OP_GEMM, .rank = 3, .shape = shape, .layout = "nn", .type = DTYPE_FP32, .flops = 524288},
    .count = 1,
    .pattern = "DENSE"};
static const regime rules = {REGIME_SUSTAINED, REGIME_COLD, REGIME_GRAPH};
static const report_search search = {.candidate = "mine,other", .early_exit = 0.97, .compare = true};
static json_t *measurement; /* that `c` borrows from */
static compare c;

__attribute__((format(printf, 1, 2))) static compare_decision decide(const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *s = text; *s; s++)
        if (*s == '\'') *s = '"';
    json_decref(measurement);
    measurement = json_loads(text, 0, NULL);
    if (!UNIT_CHECK(measurement != NULL)) printf("%s\n", text);
    const report_input in = {.operation = &product,
                             .key = "key",
                             .regime = &rules,
                             .search = &search,
                             .measurement = measurement,
                             .model_us = -1};
    report_figures f;
    report_read(&in, &f);
    compare_read(&in, &f, &c);
    return c.decision;
}

#define OK_ROW(name, us)                                                                                               \
    "{'name':'" name "','variant':'','status':'OK','reason':null,'time_us':{'median':" us ",'rel_ci95':0.002}}"
#define BAD_ROW(name, status, code)                                                                                    \
    "{'name':'" name "','variant':'','status':'" status "','reason':{'code':'" code "','text':'for a reason'}}"
#define BEFORE_LIB "'baseline':'lib','baseline_variant':'',"
#define WINS                                                                                                           \
    "{" BEFORE_LIB "'best':'mine','best_variant':'','best_approach':'CUSTOM_KERNEL','ratio':%g,'ratio_ci':%g,"         \
    "'candidates':[" OK_ROW("lib", "100.0") "," OK_ROW("mine", "90.0") "]}"
#define RIVALS(row)                                                                                                    \
    "{" BEFORE_LIB "'best':'lib','best_variant':'','rival':{'name':'mine','variant':'','approach':'CUSTOM_KERNEL',"    \
    "'ratio':%g,'ratio_ci':%g},'candidates':[" OK_ROW("lib", "100.0") "," row "]}"
#define FAILS(status, code)                                                                                            \
    "{" BEFORE_LIB "'best':'lib','best_variant':'','candidates':[" OK_ROW("lib", "100.0") "," BAD_ROW(                 \
        "other", "UNSUPPORTED", "type") "," BAD_ROW("mine", status, code) "]}"

static void by_the_ratio(void) {
    UNIT_INT(decide(WINS, 0.9, 0.01), COMPARE_KEEP);
    UNIT_TEXT(json_string_value(json_object_get(c.after, "name")), "mine");
    UNIT_CHECK(c.before_us == 100 && c.after_us == 90 && c.ratio == 0.9 && c.ratio_ci == 0.01);
    UNIT_CHECK(strstr(c.text, "10.0 % less time"));
    UNIT_INT(decide(WINS, 0.97, 0.01), COMPARE_KEEP);                                 /* to 0.9797 */
    UNIT_INT(decide(WINS, 0.97, 0.011), COMPARE_UNDECIDED);                           /* to 0.9807 */
    UNIT_INT(decide(RIVALS(OK_ROW("mine", "99.0")), 0.985, 0.01), COMPARE_UNDECIDED); /* from 0.9752 */
    UNIT_INT(decide(RIVALS(OK_ROW("mine", "99.0")), 0.99, 0.01), COMPARE_REVERT);     /* from 0.9801 */
    UNIT_CHECK(strstr(c.text, "save more than 2 %"));
    UNIT_INT(decide(RIVALS(OK_ROW("mine", "150.0")), 1.5, 0.01), COMPARE_REVERT);
    UNIT_CHECK(strstr(c.text, "50.0 % more time") && strstr(c.text, "slower"));
    UNIT_INT(decide(RIVALS(OK_ROW("mine", "150.0")), 1.5, 1.0), COMPARE_UNDECIDED); /* 1: it may be anything */
}

#define OWN_RATIO(ratio, ci)                                                                                           \
    "{" BEFORE_LIB "'best':'lib','best_variant':'','candidates':[" OK_ROW(                                             \
        "lib", "100.0") ",{'name':'other','variant':"                                                                  \
                        "'','status':'OK','reason':null,'ratio':1.5,'ratio_ci':0.01,'time_us':{'median':150.0,'rel_"   \
                        "ci95':0.002}},{'name':"                                                                       \
                        "'mine','variant':'','status':'OK','reason':null,'ratio':" ratio ci                            \
                        ",'time_us':{'median':90.0}}]}"

/* Every row that ran has its ratio: the fastest of those that were asked for comes after. Seen in one pass alone it is
 * neither kept nor reverted, however fast or slow it looked. */
static void by_the_rows_own_ratio(void) {
    UNIT_INT(decide(OWN_RATIO("0.99", ",'ratio_ci':0.005")), COMPARE_REVERT);
    UNIT_TEXT(json_string_value(json_object_get(c.after, "name")), "mine");
    UNIT_CHECK(c.after_us == 90 && isnan(c.after_ci) && c.ratio == 0.99);
    UNIT_INT(decide(OWN_RATIO("0.97", ",'ratio_ci':0.02")), COMPARE_UNDECIDED);
    UNIT_INT(decide(OWN_RATIO("0.3", "")), COMPARE_UNDECIDED);
    UNIT_CHECK(strstr(c.text, "70.0 % less time in one pass: it may or may not save 2 %"));
    json_builder b = {NULL};
    json_t *o = compare_json(&c, &b);
    UNIT_CHECK(json_object_get(o, "ratio") && !json_object_get(o, "ratio_ci"));
    json_decref(o);
    UNIT_INT(decide(OWN_RATIO("1.4", "")), COMPARE_UNDECIDED);
}

static void failures(void) {
    static const struct {
        const char *text;
        compare_decision decision;
    } cases[] = {{FAILS("WRONG", "samples"), COMPARE_REVERT},     {FAILS("CRASHED", "signal"), COMPARE_REVERT},
                 {FAILS("TIMEOUT", "deadline"), COMPARE_REVERT},  {FAILS("ERROR", "memory"), COMPARE_REVERT},
                 {FAILS("SKIPPED", "budget"), COMPARE_UNDECIDED}, {FAILS("UNSUPPORTED", "shape"), COMPARE_NONE}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        UNIT_INT(decide("%s", cases[k].text), cases[k].decision);
    decide("%s", cases[0].text);
    UNIT_TEXT(c.text, "mine is WRONG: for a reason");
    /* the one before failing is no reason to revert, and never what comes after */
    UNIT_INT(decide("{'baseline':null,'best':null,'candidates':[" BAD_ROW("lib", "TIMEOUT", "deadline") "]}"),
             COMPARE_NONE);
    UNIT_TEXT(json_string_value(json_object_get(c.before, "name")), "lib");
    UNIT_CHECK(!c.after);
    /* what was left out by name takes no part */
    UNIT_INT(decide("{" BEFORE_LIB "'best':'lib','candidates':[" OK_ROW("lib", "1.0") "," BAD_ROW("third", "SKIPPED",
                                                                                                  "not_asked") "]}"),
             COMPARE_NONE);
    UNIT_INT(decide("{'candidates':[]}"), COMPARE_NONE);
    UNIT_INT(decide("{'candidates':7,'baseline':3,'best':{},'rival':[]}"), COMPARE_NONE);
}

static void in_the_report(void) {
    json_builder b = {NULL};
    decide(WINS, 0.9, 0.01);
    json_t *o = compare_json(&c, &b);
    UNIT_CHECK(!b.why);
    UNIT_TEXT(json_string_value(json_object_get(o, "decision")), "KEEP");
    UNIT_TEXT(json_string_value(json_object_get(json_object_get(o, "after"), "name")), "mine");
    json_decref(o);
    decide("{'candidates':[]}");
    o = compare_json(&c, &b);
    UNIT_CHECK(!b.why && json_is_null(json_object_get(o, "before")) && json_is_null(json_object_get(o, "after")));
    UNIT_CHECK(!json_object_get(o, "ratio"));
    json_decref(o);
}

static void names(void) {
    UNIT_CHECK(filter_takes(NULL, "any"));
    UNIT_CHECK(filter_takes("one", "one"));
    UNIT_CHECK(filter_takes("one,two", "two") && filter_takes("one,two", "one"));
    UNIT_CHECK(!filter_takes("one,two", "on") && !filter_takes("one,two", "one,two") && !filter_takes("onetwo", "two"));
    UNIT_CHECK(!filter_takes("", "one") && !filter_takes(",,one", "on") && filter_takes(",,one", "one"));
    UNIT_CHECK(filter_is_before(NULL, "cublaslt", "cublaslt", true));
    UNIT_CHECK(!filter_is_before(NULL, "own", NULL, false));
    UNIT_CHECK(filter_is_before("own", "own", NULL, false));
    UNIT_CHECK(filter_is_before("cublas", "lt_gemm", "cublaslt", true));
    UNIT_CHECK(!filter_is_before("cublas", "lt_gemm", "cublaslt", false)); /* it is no default */
    UNIT_CHECK(!filter_is_before("cublas", "conv", "cudnn", true));
    UNIT_CHECK(filter_is_before("cudnn", "conv", "cudnn", true));
    UNIT_CHECK(filter_is_before("library", "loops", NULL, true));
    UNIT_CHECK(!filter_is_before("cublas", "loops", NULL, true) && !filter_is_before("onednn", "loops", NULL, true));
}

int main(void) {
    UNIT_RUN(by_the_ratio);
    UNIT_RUN(by_the_rows_own_ratio);
    UNIT_RUN(failures);
    UNIT_RUN(in_the_report);
    UNIT_RUN(names);
    json_decref(measurement);
    return unit_end();
}
