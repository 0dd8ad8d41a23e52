/* report.html without a browser: that figures and places are fit for a page whatever numbers a report holds, that
 * everything that was opened is closed, and that foreign text stays text. tests/page/ looks at it in a real one. */
#include "analyze/page/page.h"
#include "analyze/page/page_assets.h"
#include "analyze/page/page_internal.h"
#include "tests/unit/analyze/study_fixture.h"

static void figures(void) {
    UNIT_TEXT(page_time(18.92).s, "18.92 µs");
    UNIT_TEXT(page_time(30200).s, "30.20 ms");
    UNIT_TEXT(page_time(NAN).s, "–");
    UNIT_TEXT(page_percent(0.034).s, "3.4 %");
    UNIT_TEXT(page_percent(1e-5).s, "&lt; 0.1 %");
    UNIT_TEXT(page_percent(INFINITY).s, "–");
    UNIT_TEXT(page_whole(1234567).s, "1,234,567");
    UNIT_TEXT(page_whole(-1234).s, "-1,234");
    UNIT_TEXT(page_whole(-123).s, "-123");
    UNIT_TEXT(page_whole(0).s, "0");
    UNIT_TEXT(page_whole(1e300).s, "1e+300");
    UNIT_TEXT(page_figure(605.09).s, "605.1");
    UNIT_TEXT(page_figure(12680.4).s, "12,680");
    UNIT_TEXT(page_figure(0.0004).s, "0.0004");
    UNIT_TEXT(page_bytes(90177536).s, "90.2 MB");
    UNIT_TEXT(page_bytes(1e30).s, "1e+15 PB");
    UNIT_TEXT(page_place(37.256).s, "37.26%");
    UNIT_TEXT(page_place(1e300).s, "200.00%");
    UNIT_TEXT(page_place(NAN).s, "0.00%");
    UNIT_TEXT(page_kind("gemm"), "gemm");
    UNIT_TEXT(page_kind("gemm\" onload=\"x"), "other");
    UNIT_TEXT(page_kind(NULL), "other");
}

static void axes(void) {
    const page_axis linear = page_axis_of(1403, 1977, false), flat = page_axis_of(5, 5, false);
    UNIT_CHECK(linear.low <= 1403 && linear.low > 1200 && linear.high >= 1977 && linear.high < 2200);
    UNIT_CHECK(flat.low <= 5 && flat.high > 5);
    const page_chart c = {page_axis_of(1, 1000, true), page_axis_of(0, 10, false), "", ""};
    const double third = (page_chart_x(&c, 1000) - page_chart_x(&c, 1)) / 3;
    UNIT_CHECK(fabs(page_chart_x(&c, 10) - page_chart_x(&c, 1) - third) < 1e-9);
    UNIT_CHECK(page_chart_y(&c, 10) < page_chart_y(&c, 5) && page_chart_y(&c, 5) < page_chart_y(&c, 0));
    const page_axis odd[] = {page_axis_of(0, 0, true), page_axis_of(-1e308, 1e308, false), page_axis_of(NAN, 1, true),
                             page_axis_of(1e-300, 1e300, true)};
    for (size_t k = 0; k < sizeof odd / sizeof odd[0]; k++)
        UNIT_CHECK(isfinite(odd[k].low) && isfinite(odd[k].high) && odd[k].high > odd[k].low);
}

/* What page_variant, or page_advice of a report, writes. */
static char *variant_text(const char *variant, bool on_demand, const study_report *r) {
    char *text = NULL;
    size_t n = 0;
    page p = {.out = open_memstream(&text, &n)};
    if (!p.out) abort();
    guard_init(&p.guard);
    arena_init(&p.arena, &p.guard, PAGE_MEMORY);
    if (!guard_enter(&p.guard))
        UNIT_CHECK(false);
    else if (r)
        page_advice(&p, r);
    else
        page_variant(&p, variant, 2 * PAGE_NAME, on_demand);
    fclose(p.out);
    arena_free(&p.arena);
    return text;
}

static void variants(void) {
    static const char *const told[][2] = {
        {"threads=256,bytes=16", "<span title=\"threads=256,bytes=16\">256 threads, 16-byte loads</span>"},
        {"algo=6,weight=as_is", "<span title=\"algo=6,weight=as_is\">algorithm 6</span>"},
        {"algo=6,weight=transposed",
         "<span title=\"algo=6,weight=transposed\">algorithm 6, weight transposed once</span>"},
        {"my_knob=3", "<span title=\"my_knob=3\">my knob 3</span>"},
        {"\"><b>=1", "<span title=\"&#34;&#62;&#60;b&#62;=1\">&#34;&#62;&#60;b&#62; 1</span>"},
        {"weight=as_is", "weight=as_is"}, /* all that there is goes without saying */
        {"no list", "no list"},
        {"=,=", "=,<wbr>="},
        {"", ""},
    };
    for (size_t k = 0; k < sizeof told / sizeof told[0]; k++) {
        char *text = variant_text(told[k][0], false, NULL);
        UNIT_TEXT(text, told[k][1]);
        free(text);
    }
    char *text = variant_text("threads=64", true, NULL);
    UNIT_TEXT(text, "<details class=\"raw\"><summary>64 threads</summary><code>threads=64</code></details>");
    free(text);
    study_report r = {.best_variant = "algo=1"};
    snprintf(r.verdict.recommendation, sizeof r.verdict.recommendation, "Use lt algo=1: faster than lt algo=12.");
    text = variant_text(NULL, false, &r);
    UNIT_TEXT(text, "Use lt (algorithm 1): faster than lt algo=12.");
    free(text);
    snprintf(r.verdict.recommendation, sizeof r.verdict.recommendation, "Use lt: lt algo=12 may be faster.");
    text = variant_text(NULL, false, &r);
    UNIT_TEXT(text, "Use lt: lt algo=12 may be faster.");
    free(text);
}

static void columns_of_times(void) {
    UNIT_TEXT(page_time_in(amount_unit_of(43270), 917.5).s, "0.92 ms");
    UNIT_TEXT(page_time_in(amount_unit_of(43270), 1).s, "&lt; 0.01 ms");
    UNIT_TEXT(page_time_in(amount_unit_of(20), 1.5).s, "1.50 µs");
    UNIT_TEXT(page_time_in(amount_unit_of(20), NAN).s, "–");
}

static char *page_text_of(study *s) {
    summary m;
    status st = {0};
    char *text = NULL;
    size_t n = 0;
    if (!UNIT_CHECK(lab_open(s, &st) && summary_make(s, 0, &m, &st))) {
        printf("%s\n", st.text);
        abort();
    }
    FILE *out = open_memstream(&text, &n);
    if (!out) abort();
    if (!UNIT_CHECK(page_write(&m, out, &st))) printf("%s\n", st.text);
    fclose(out);
    return text;
}

static int times(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) count++;
    return count;
}

static void all_is_closed(const char *text) {
    static const char *const names[] = {"svg",    "a",     "details", "summary", "section", "table", "tbody",  "tr",
                                        "figure", "ul",    "ol",      "li",      "dl",      "dt",    "dd",     "p",
                                        "td",     "title", "form",    "select",  "option",  "div",   "header", "main"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        char open[16], with[16], close[16];
        snprintf(open, sizeof open, "<%s>", names[k]);
        snprintf(with, sizeof with, "<%s ", names[k]);
        snprintf(close, sizeof close, "</%s>", names[k]);
        const int opened = times(text, open) + times(text, with);
        if (!UNIT_CHECK(opened == times(text, close))) printf("%s: %d opened\n", names[k], opened);
    }
}

/* What is shown, without the sheet and the script, whose own words are no figures. */
static char *body_of(char *text) {
    char *body = strstr(text, "<body>"), *script = strstr(text, "<script>");
    if (script) *script = 0;
    return body ? body : text;
}

static void what_is_known_is_shown(void) {
    study s;
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("a", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("reports/b.json", LAB_PLAIN("b", "10", "40.0", "20.0"));
    lab_write("reports/c.json", LAB_MISSING("c", "4", "UNSTABLE", "interval", "15.0"));
    char *text = page_text_of(&s);
    study_close(&s);
    char *again = page_text_of(&s);
    UNIT_TEXT(again, text);
    UNIT_CHECK(strstr(text, page_css) && strstr(text, page_js) && strstr(text, page_css_hash) &&
               strstr(text, page_js_hash));
    UNIT_INT(strlen(page_css_hash), 44);
    UNIT_CHECK(!strstr(page_css, "</") && !strstr(page_js, "</"));
    all_is_closed(text);
    UNIT_CHECK(strstr(text, "80.00 µs <small>a run") != NULL);
    const char *best = strstr(text, "own<div"), *other = strstr(text, "lib<div");
    UNIT_CHECK(best && other && best < other); /* the fastest first */
    UNIT_CHECK(strstr(text, ">0.800<br><span class=\"soft\">± 0.3 %") && strstr(text, "<strong>chosen</strong>"));
    UNIT_CHECK(strstr(text, "120.0 µs <span class=\"soft\">± ") == NULL);
    UNIT_CHECK(strstr(text, "SKIPPED</span> interval") && !strstr(text, "UNSTABLE"));
    free(text);
    free(again);
    study_close(&s);
    lab_end();
}

#define ODD_ROW                                                                                                        \
    "{'name':'own','variant':'','status':'OK','reason':null,'time_us':{'median':1e12,'p05':-1e300,'p95':1e308,"        \
    "'rel_ci95':1e9},'tflops':1e300,'pack_us':1e300},{'name':'x','status':'WRONG','reason':null}"
#define ODD_MORE                                                                                                       \
    "'taken':'2026-99-99T99:99:99Z','sweep':{'points':[{'shape':[1,1,1e308],'tflops':1e308},{'shape':[1,1,-1],"        \
    "'tflops':1e-308},{'shape':[0,0,5],'tflops':1e308},7]},'weight':{'rows':-1,'cols':1e300,'zeros':5,"                \
    "'blocks':{'16':-3,'32':1e300},'pieces':7},'probe':[],'config':{'a':'</script>'},"

static void odd_numbers(void) {
    study s;
    lab_begin();
    lab_write(
        "reports/a.json",
        "{" LAB_HEAD("a", "10") "," ODD_MORE "'status':'OK','reason':null,'baseline':'lib','best':'lib','flops':1e30,"
                                "'bytes_read':1e-300,'bytes_written':0.0,'baseline_time_us':1e-200,'best_time_us'"
                                ":1e-200," LAB_CEILING("1e-290") ",'candidates':[" LAB_ROW("lib", "1e-200") "," ODD_ROW
                                                                                                            "]}");
    lab_write(
        "reports/b.json",
        "{" LAB_HEAD("b", "10") "," ODD_MORE "'status':'OK','reason':null,'baseline':'lib','best':'lib','flops':1e12,"
                                "'bytes_read':1e9,'bytes_written':0.0,'baseline_time_us':4000.0,'best_time_us':4000.0,"
                                "'peak_tflops':1e9," LAB_CEILING("3000.0") ",'candidates':[" LAB_ROW(
                                    "lib", "4000.0") "," ODD_ROW "]}");
    lab_write(
        "run.json",
        "{'schema':'ceiling-scout/run/1','seconds':-1,'devices':[{'class':'class A','libraries':7,'ceilings':{"
        "'read_tbps':1e-300,'peaks':[{'tflops':-5},{'precision':'fp16','tflops':1e8,'shape':[1e300,0]}],"
        "'bandwidths':[{'bytes':1e300,'read_fraction':1,'resident':false,'tbps':1e300},{'bytes':1,"
        "'read_fraction':1,'resident':false,'tbps':1e-300}]}}],'crossovers':[7,{'points':[{'zeros':0.5,"
        "'dense_us':1e300},{'zeros':0.5,'dense_us':1e11},{'zeros':0.5,'dense_us':1.0}]}],'along':{'axes':['<i>',7],"
        "'points':[{'at':['1',null],'efficiency':1e-300,'baseline_ci':-1},{'at':['1'],'efficiency':0.5},"
        "{'at':['1e14','</script>'],'efficiency':0.5},{'at':['1e14','</script>'],'efficiency':999}]}}");
    char *text = page_text_of(&s), *body = body_of(text);
    all_is_closed(text);
    UNIT_CHECK(strstr(body, "Each operation") != NULL);
    static const char *const never[] = {"\"nan", "\"-nan", "\"inf", "\"-inf",   "nan%",
                                        "inf%",  ">nan",   ">inf",  "</script>"};
    for (size_t k = 0; k < sizeof never / sizeof never[0]; k++)
        if (!UNIT_CHECK(!strstr(body, never[k]))) printf("%.80s\n", strstr(body, never[k]));
    free(text);
    study_close(&s);
    lab_end();
}

/* A picture for each combination of the other axes, over the first one of numbers. */
static void shapes_along_an_axis(void) {
    study s;
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("a", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("run.json", "{'schema':'ceiling-scout/run/1','seconds':1,'along':{'axes':['precision','M'],'points':["
                          "{'at':['fp32','1'],'efficiency':0.25},{'at':['fp32','64'],'efficiency':0.5},"
                          "{'at':['bf16','1'],'efficiency':0.75,'baseline_ci':0.1},{'at':['bf16','64'],'efficiency':"
                          "0.5},{'at':['fp16','1'],'efficiency':0.5}]}}");
    char *text = page_text_of(&s), *body = body_of(text);
    all_is_closed(text);
    UNIT_CHECK(strstr(body, "How near to the ceiling, shape by shape") != NULL);
    UNIT_CHECK(strstr(body, "precision = fp32, over M") != NULL && strstr(body, "precision = bf16, over M") != NULL);
    UNIT_CHECK(!strstr(body, "precision = fp16")); /* one point is no curve */
    UNIT_CHECK(strstr(body, "class=\"whisker\"") != NULL);
    free(text);
    study_close(&s);
    lab_end();
}

/* Where each line begins is where the one before it ends, to the right of where that began. */
static void shapes_are_in_order_however_they_were_typed(void) {
    study s;
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("a", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("run.json", "{'schema':'ceiling-scout/run/1','seconds':1,'along':{'axes':['M'],'points':["
                          "{'at':['64'],'efficiency':0.5},{'at':['1'],'efficiency':0.25},"
                          "{'at':['16'],'efficiency':0.3}]}}");
    char *text = page_text_of(&s), *body = body_of(text), *at = strstr(body, "over M");
    int lines = 0;
    while ((at = strstr(at, "<line class=\"line ")) && lines++ < 2) {
        const double from = strtod(strstr(at, "x1=\"") + 4, NULL), to = strtod(strstr(at, "x2=\"") + 4, NULL);
        UNIT_CHECK(from < to);
        at += 6;
    }
    UNIT_CHECK(lines == 2);
    free(text);
    study_close(&s);
    lab_end();
}

static void foreign_text_stays_text(void) {
    study s;
    lab_begin();
    lab_write("reports/a.json", LAB_BEATEN("<script>a</script>", "10", "40.0", "32.0", "0.8", "30.0"));
    lab_write("reports/b.json", LAB_MISSING("\\\" autofocus x=\\\"", "4", "UNSTABLE", "<img src=x>\\u202e", "15.0"));
    char *text = page_text_of(&s);
    all_is_closed(text);
    UNIT_INT(times(text, "<script"), 1);
    UNIT_INT(times(text, "<img"), 0);
    UNIT_INT(times(text, "\" autofocus"), 0);
    UNIT_INT(times(text, "\xe2\x80\xae"), 0);
    UNIT_CHECK(strstr(text, "&#60;script&#62;a&#60;/script&#62;") != NULL);
    free(text);
    study_close(&s);
    lab_end();
}

/* What was read may be gone when it is read again. */
static void a_report_that_went_away(void) {
    study s;
    summary m;
    status st = {0};
    char *text = NULL;
    size_t n = 0;
    lab_begin();
    lab_write("reports/a.json", LAB_PLAIN("a", "10", "40.0", "20.0"));
    UNIT_CHECK(lab_open(&s, &st) && summary_make(&s, 0, &m, &st));
    UNIT_INT(unlink(lab_path("reports/a.json")), 0);
    FILE *out = open_memstream(&text, &n);
    if (!out) abort();
    UNIT_CHECK(page_write(&m, out, &st));
    fclose(out);
    UNIT_CHECK(strstr(text, "Its report cannot be read again") != NULL);
    all_is_closed(text);
    free(text);
    study_close(&s);
    lab_end();
}

int main(void) {
    UNIT_RUN(figures);
    UNIT_RUN(variants);
    UNIT_RUN(columns_of_times);
    UNIT_RUN(axes);
    UNIT_RUN(what_is_known_is_shown);
    UNIT_RUN(odd_numbers);
    UNIT_RUN(shapes_along_an_axis);
    UNIT_RUN(shapes_are_in_order_however_they_were_typed);
    UNIT_RUN(foreign_text_stays_text);
    UNIT_RUN(a_report_that_went_away);
    return unit_end();
}
