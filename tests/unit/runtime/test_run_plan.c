/* A whole model by libscout_run: r = x w, y = c - x w, where c stands in ops.json and r is another view of the product.
 */
#include "scout/device/cpu.h"
#include "scout/device/identity.h"
#include "scout/fusion/fusion.h"
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static scout_run *run;
static run_said said;
static scout_run_error error;
static scout_run_plan *plan;
static char folder[64], class_text[IDENTITY_CLASS_ROOM];
static float x[6], w[9], y[6], r[6], c[6];

#define OPERATIONS                                                                                                     \
    "{\"schema\": \"ceiling-scout/ops/1\", \"model\": {\"name\": \"m\"}, \"ops\": ["                                   \
    "{\"id\": \"product\", \"op\": \"gemm\", \"shape\": [2, 3, 3], \"layout\": \"nn\", \"dtype\": \"fp32\", "          \
    "\"weight_dtype\": \"fp32\", \"weight_side\": \"b\", \"nodes\": [\"times\"]},"                                     \
    "{\"id\": \"difference\", \"op\": \"elementwise\", \"what\": \"sub\", \"shape\": [2, 3], \"dtype\": \"fp32\", "    \
    "\"inputs\": \"tensor,tensor\", \"nodes\": [\"minus\"]}],"

static const char ops[] = OPERATIONS
    "\"graph\": {\"memory\": {\"weights\": 60, \"activations\": 48, \"at\": 0, \"unsized\": 0}, \"tensors\": ["
    "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 1], [\"w\", \"weight\", \"fp32\", [3, 3], -1, 0, 0, 1],"
    "[\"p\", \"activation\", \"fp32\", [2, 3], 0, 0, 1, 1], [\"c\", \"constant\", \"fp32\", [2, 3], -1, 0, 1, 1],"
    "[\"y\", \"output\", \"fp32\", [2, 3], 1, 1, 1, 0], [\"r\", \"output\", \"fp32\", [6], -1, 0, 1, 0, 2]],"
    "\"occurrences\": [[0, 0, 0, 1, [0, 1], [2], [0, 1, 2]], [1, 0, 0, 1, [3, 2], [4], [3, 2, 4]]], \"cuts\": [],"
    "\"numbers\": [], \"values\": [[3, \"000020410000204100002041000020410000204100002041\"]]}}";

static void write_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

/* ops.json, in which one text is another one. */
static int32_t open_with(const char *from, const char *to) {
    char text[4096];
    const char *at = from ? strstr(ops, from) : NULL;
    if (from && !at) abort();
    if (at)
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - ops), ops, to, at + strlen(from));
    else
        snprintf(text, sizeof text, "%s", ops);
    write_file("ops.json", text);
    scout_run_plan_close(plan);
    return scout_run_plan_open(run, folder, &plan, &error);
}

static int32_t bind(const char *name, void *data, int rank, const int64_t *dims) {
    const scout_run_tensor t = scout_run_dense(data, SCOUT_RUN_FP32, rank, dims);
    return scout_run_plan_bind(plan, name, &t, &error);
}

static bool bind_all(void) {
    static const int64_t rows[] = {2, 3}, square[] = {3, 3}, flat[] = {6};
    for (int k = 0; k < 6; k++) x[k] = (float)(k - 2), y[k] = r[k] = -77;
    for (int k = 0; k < 9; k++) w[k] = (float)(k * k) / 4;
    return bind("x", x, 2, rows) == 0 && bind("w", w, 2, square) == 0 && bind("y", y, 2, rows) == 0 &&
           bind("r", r, 1, flat) == 0;
}

static float beside = 10; /* what y is the difference to */

static void check_outputs(void) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            float sum = 0;
            for (int k = 0; k < 3; k++) sum += x[3 * i + k] * w[3 * k + j];
            UNIT_CHECK(fabsf(r[3 * i + j] - sum) < 1e-5F && fabsf(y[3 * i + j] - (beside - sum)) < 1e-5F);
        }
}

static void a_model_runs(void) {
    if (!UNIT_CHECK(open_with(NULL, NULL) == SCOUT_RUN_OK)) printf("%s\n", error.text);
    UNIT_INT(scout_run_plan_count(plan), 4);
    scout_run_plan_info info = {.size = sizeof info};
    UNIT_INT(scout_run_plan_tensor(plan, 1, &info, &error), SCOUT_RUN_OK);
    UNIT_TEXT(info.name, "w");
    UNIT_CHECK(info.use == SCOUT_RUN_PLAN_WEIGHT && info.as.type == SCOUT_RUN_FP32 && info.as.dims[1] == 3);
    UNIT_INT(scout_run_plan_tensor(plan, 4, &info, &error), SCOUT_RUN_INVALID);
    UNIT_CHECK(bind_all());
    for (int k = 0; k < 2; k++) {
        UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
        check_outputs();
    }
    for (int k = 0; k < 9; k++) w[k] = (float)(k - 4); /* another weight is packed again */
    UNIT_INT(bind("w", w, 2, (const int64_t[]){3, 3}), SCOUT_RUN_OK);
    UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
    check_outputs();
}

static void says(int32_t code, int32_t want, const char *text) {
    UNIT_INT(code, want);
    if (!UNIT_CHECK(strstr(error.text, text) != NULL)) printf("it says: %s\n", error.text);
}

static void what_does_not_fit_is_refused(void) {
    static const int64_t rows[] = {2, 3}, others[] = {3, 2};
    UNIT_INT(open_with(NULL, NULL), SCOUT_RUN_OK);
    says(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_INVALID, "x: it is not bound yet");
    says(bind("z", x, 2, rows), SCOUT_RUN_INVALID, "z: the plan has no input, output or weight of that name");
    says(bind("p", x, 2, rows), SCOUT_RUN_INVALID, "p: the plan has no");
    says(bind("x", x, 2, others), SCOUT_RUN_INVALID, "x: expected the sizes [2,3], got [3,2]");
    says(bind("x", NULL, 2, rows), SCOUT_RUN_INVALID, "x: its data is NULL");
    says(bind("x", (char *)x + 2, 2, rows), SCOUT_RUN_INVALID, "x: expected data that begins at a multiple of 4 bytes");
    scout_run_tensor half = scout_run_dense(x, SCOUT_RUN_FP16, 2, rows);
    says(scout_run_plan_bind(plan, "x", &half, &error), SCOUT_RUN_INVALID, "x: expected fp32, got fp16");
    scout_run_tensor turned = scout_run_dense(x, SCOUT_RUN_FP32, 2, rows);
    turned.strides[0] = 1, turned.strides[1] = 2;
    says(scout_run_plan_bind(plan, "x", &turned, &error), SCOUT_RUN_INVALID, "x: expected dense memory");
    UNIT_CHECK(bind_all());
    UNIT_INT(bind("y", x, 2, rows), SCOUT_RUN_OK);
    says(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_INVALID, "y: expected memory of its own");
}

static void a_constant_that_is_not_told_is_the_callers(void) {
    UNIT_INT(open_with("\"values\": [[3, \"000020410000204100002041000020410000204100002041\"]]", "\"later\": 0"),
             SCOUT_RUN_OK);
    UNIT_INT(scout_run_plan_count(plan), 5);
    UNIT_CHECK(bind_all());
    says(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_INVALID,
         "c: it is not bound yet, and ops.json does not tell");
    for (int k = 0; k < 6; k++) c[k] = 10;
    UNIT_INT(bind("c", c, 2, (const int64_t[]){2, 3}), SCOUT_RUN_OK);
    UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
    check_outputs();
}

#define FORMED(what, terms) "[4], [-1, 2, 4]]], \"formed\": [[1, 0, \"" what "\", " terms "]], \"cuts\": [],"
#define PLAIN               "[4], [3, 2, 4]]], \"cuts\": [],"

static void check_formed(int32_t code, float sum) {
    if (!UNIT_INT(code, SCOUT_RUN_OK)) {
        printf("it says: %s\n", error.text);
        return;
    }
    UNIT_INT(scout_run_plan_count(plan), 4);
    UNIT_CHECK(bind_all());
    beside = sum;
    for (int k = 0; k < 2; k++) {
        UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
        check_outputs();
    }
    beside = 10;
}

/* Twice a view of a constant, which has no memory of its own. */
static const char viewed[] = OPERATIONS
    "\"graph\": {\"memory\": {\"weights\": 60, \"activations\": 48, \"at\": 0, \"unsized\": 0}, \"tensors\": ["
    "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 1], [\"w\", \"weight\", \"fp32\", [3, 3], -1, 0, 0, 1],"
    "[\"p\", \"activation\", \"fp32\", [2, 3], 0, 0, 1, 1], [\"c\", \"constant\", \"fp32\", [2, 3], -1, 0, 1, 0],"
    "[\"y\", \"output\", \"fp32\", [2, 3], 1, 1, 1, 0], [\"r\", \"output\", \"fp32\", [6], -1, 0, 1, 0, 2],"
    "[\"v\", \"constant\", \"fp32\", [6], -1, 0, 1, 1, 3]],"
    "\"occurrences\": [[0, 0, 0, 1, [0, 1], [2], [0, 1, 2]], [1, 0, 0, 1, [6, 2], [4], [-1, 2, 4]]], \"cuts\": [],"
    "\"formed\": [[1, 0, \"add\", [2, 3], [6, 2, 3], [6, 2, 3]]],"
    "\"numbers\": [], \"values\": [[3, \"000020410000204100002041000020410000204100002041\"]]}}";

static void an_operand_is_formed(void) {
    check_formed(open_with(PLAIN, FORMED("add", "[2, 3], [3, 2, 3], [3, 1, 2, 3]")), 20);
    check_formed(open_with(PLAIN, FORMED("add", "[1, 2, 3], [3, 2, 3], [3, 2, 3]")), 20);
    write_file("ops.json", viewed);
    scout_run_plan_close(plan);
    check_formed(scout_run_plan_open(run, folder, &plan, &error), 20);
}

static void what_is_formed_otherwise_is_refused(void) {
    static const char apart[] = "node minus: its a is no tensor of the model";
    static const struct {
        const char *to;
        int32_t code;
        const char *says;
    } rows[] = {
        {FORMED("add", "[2, 3], [3, 3, 2], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[2, 3], [3, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[2, 3], [3, 2, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[2, 3], [0, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[3, 2], [3, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[3], [3, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("add", "[2, 2, 3], [3, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("where", "[2, 3], [3, 2, 3], [3, 2, 3], [3, 2, 3]"), SCOUT_RUN_UNSUPPORTED, apart},
        {FORMED("sub", "[2, 3], [3, 2, 3], [3, 2, 3]"), SCOUT_RUN_INVALID, "its operator is none that is known"},
        {FORMED("add", "[2, 3], [3, 2, 3]"), SCOUT_RUN_INVALID, "one of its tensors is not in a list"},
        {FORMED("add", "[2, 3], [3, 2, 3], [3, 2, 3], [3]"), SCOUT_RUN_INVALID, "more behind it than its operator has"},
        {FORMED("add", "[2, 3], [3, 1, 1, 1, 1, 1, 1, 1, 2, 3]"), SCOUT_RUN_INVALID, "it has more than 8 dimensions"},
        {FORMED("add", "[2, 3], [6, 2, 3]"), SCOUT_RUN_INVALID, "its tensor is 6"},
        {FORMED("add", "[2, 3], [3, 0, 3]"), SCOUT_RUN_INVALID, "its dimension is 0"},
        {FORMED("add", "2"), SCOUT_RUN_INVALID, "its dimensions are not in a list"},
        {"[4], [-1, 2, 4]]], \"formed\": [[1, 0, \"add\", [2, 3], [3, 2, 3], [3, 2, 3]], [0, 0, \"add\", [2, 3], "
         "[0, 2, 3], [0, 2, 3]]], \"cuts\": [],",
         SCOUT_RUN_INVALID, "it stands behind one of a later occurrence"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        says(open_with(PLAIN, rows[k].to), rows[k].code, rows[k].says);
}

static void what_is_not_told_is_refused(void) {
    static const struct {
        const char *from, *to;
        int32_t code;
        const char *says;
    } rows[] = {
        {"\"numbers\": []", "\"numbers\": [[1, \"scale\", null]]", SCOUT_RUN_UNSUPPORTED,
         "node minus: ops.json does not tell its scale"},
        {"\"numbers\": []", "\"numbers\": [[1, \"speed\", 3]]", SCOUT_RUN_UNSUPPORTED,
         "node minus: it has a number that is not known"},
        {"\"numbers\": []", "\"numbers\": [[2, \"scale\", 1]]", SCOUT_RUN_INVALID, "its occurrence is 2"},
        {"[4], [3, 2, 4]]", "[4]]", SCOUT_RUN_UNSUPPORTED, "node minus: ops.json does not tell its operands"},
        {"[4], [3, 2, 4]]", "[4], [-1, 2, 4]]", SCOUT_RUN_UNSUPPORTED, "node minus: its a is no tensor of the model"},
        {"[4], [3, 2, 4]]", "[4], [3, 2, 1]]", SCOUT_RUN_INVALID, "its operand 1 is no tensor that it reads or makes"},
        {"[2], [0, 1, 2]]", "[2], [0, 1, -1]]", SCOUT_RUN_UNSUPPORTED, "tensor p: no operation here makes it"},
        {"[3, \"0000", "[3, \"00", SCOUT_RUN_INVALID, "its value is not as long as tensor 3"},
        {"[3, \"0000", "[3, \"00x0", SCOUT_RUN_INVALID, "its value is not of the digits"},
        {"[3, \"0000", "[0, \"0000", SCOUT_RUN_INVALID, "tensor 0 is no constant"},
        {"\"what\": \"sub\"", "\"what\": \"rise\"", SCOUT_RUN_UNSUPPORTED,
         "node minus: the operator rise is not covered"},
        {"\"what\": \"sub\"", "\"what\": \"randomnormallike\"", SCOUT_RUN_UNSUPPORTED,
         "node minus: only chance decides what it makes"},
        {"\"cuts\": []", "\"cuts\": [], \"unmade\": [\"x\", \"w\"]", SCOUT_RUN_UNSUPPORTED,
         "tensor x: it is an output that no operation makes"},
        {"\"cuts\": []", "\"cuts\": [], \"unmade\": [3]", SCOUT_RUN_INVALID, "an output is not a name"},
        {"\"x\", \"input\"", "\"x\", \"assumed\"", SCOUT_RUN_UNSUPPORTED,
         "tensor x: only data decide what it holds, and ops.json just assumes it"},
        {"\"cuts\": []", "\"cuts\": [0]", SCOUT_RUN_UNSUPPORTED, "sizes or operators are not all known"},
        {"\"graph\"", "\"other\"", SCOUT_RUN_INVALID, "tells no dataflow"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        says(open_with(rows[k].from, rows[k].to), rows[k].code, rows[k].says);
        UNIT_CHECK(plan == NULL);
    }
    says(scout_run_plan_open(run, "/nowhere", &plan, &error), SCOUT_RUN_INVALID, "/nowhere/ops.json");
}

static void write_plan(const char *device, const char *candidate) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"schema\": \"ceiling-scout/plan/1\", \"device\": {\"class\": \"%s\"}, \"implementations\": ["
             "{\"operation\": \"product\", \"candidate\": \"%s\", \"variant\": \"\"}], "
             "\"groups\": [[0, 0], [-1, 1], [7, 9], [0, 0, 1], \"x\"]}",
             device, candidate);
    write_file("plan.json", text);
    said.lines = 0;
}

static void a_plan_names_what_runs(void) {
    write_plan(class_text, "openblas");
    UNIT_CHECK(open_with(NULL, NULL) == SCOUT_RUN_OK && bind_all());
    if (!UNIT_INT(said.lines, 0)) printf("it says: %s\n", said.last);
    UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
    check_outputs();
    write_plan(class_text, "none");
    UNIT_CHECK(open_with(NULL, NULL) == SCOUT_RUN_OK && bind_all());
    UNIT_CHECK(said.lines == 1 && strstr(said.last, "of the plan cannot run here"));
    UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
    check_outputs();
    write_plan("Other", "onednn");
    UNIT_INT(open_with(NULL, NULL), SCOUT_RUN_OK);
    UNIT_CHECK(strstr(said.last, "is of another device (Other)") != NULL);
    write_file("plan.json", "{\"schema\": \"ceiling-scout/plan/2\"}");
    says(open_with(NULL, NULL), SCOUT_RUN_INVALID, "is no ceiling-scout/plan/1");
    write_file("plan.json", "[");
    UNIT_INT(open_with(NULL, NULL), SCOUT_RUN_INVALID);
}

/* ---- a group ---- */

static const char pair[] =
    "{\"schema\": \"ceiling-scout/ops/1\", \"model\": {\"name\": \"m\"}, \"ops\": ["
    "{\"id\": \"product\", \"op\": \"gemm\", \"shape\": [2, 3, 3], \"layout\": \"nn\", \"dtype\": \"fp32\", "
    "\"weight_dtype\": \"fp32\", \"weight_side\": \"b\", \"macs\": 18, \"flops\": 36, \"bytes_read\": 60, "
    "\"bytes_written\": 24, \"nodes\": [\"times\"]},"
    "{\"id\": \"sum\", \"op\": \"elementwise\", \"what\": \"add\", \"shape\": [2, 3], \"dtype\": \"fp32\", "
    "\"inputs\": \"tensor,vector\", \"flops\": 6, \"bytes_read\": 36, \"bytes_written\": 24, \"nodes\": [\"plus\"]}],"
    "\"fusions\": [{\"pattern\": \"gemm+bias\", \"ops\": [\"product\", \"sum\"], \"count\": 1, \"selected\": 1, "
    "\"saved_bytes\": 48, \"sites\": [[0, 1]]}],"
    "\"graph\": {\"memory\": {\"weights\": 48, \"activations\": 48, \"at\": 0, \"unsized\": 0}, \"tensors\": ["
    "[\"x\", \"input\", \"fp32\", [2, 3], -1, 0, 0, 1], [\"w\", \"weight\", \"fp32\", [3, 3], -1, 0, 0, 1],"
    "[\"p\", \"activation\", \"fp32\", [2, 3], 0, 0, 1, 1], [\"c\", \"weight\", \"fp32\", [3], -1, 0, 1, 1],"
    "[\"y\", \"output\", \"fp32\", [2, 3], 1, 1, 1, 0]],"
    "\"occurrences\": [[0, 0, 0, 1, [0, 1], [2], [0, 1, 2]], [1, 0, 0, 1, [2, 3], [4], [2, 3, 4]]], \"cuts\": []}}";

/* Its id, as scout_batch names it. */
static const char *fusion_id(void) {
    static char id[200];
    guard g;
    arena a;
    operation_list list;
    fusion_list fusions;
    char path[128];
    snprintf(path, sizeof path, "%s/ops.json", folder);
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    if (!guard_enter(&g)) return "";
    operation_read(path, NULL, &a, &list);
    fusion_read(&list, path, &a, &fusions);
    snprintf(id, sizeof id, "%s", fusions.items[0].id);
    operation_list_free(&list);
    arena_free(&a);
    return id;
}

static void launch_pair(uint64_t launches) {
    scout_run_counts before, after;
    scout_run_plan_close(plan);
    if (!UNIT_CHECK(scout_run_plan_open(run, folder, &plan, &error) == SCOUT_RUN_OK)) printf("%s\n", error.text);
    UNIT_INT(scout_run_plan_count(plan), 4);
    for (int k = 0; k < 3; k++) c[k] = (float)(10 * k);
    (void)bind_all(); /* all but c, and r, which it has not */
    UNIT_INT(bind("c", c, 1, (const int64_t[]){3}), SCOUT_RUN_OK);
    scout_run_count(run, &before);
    UNIT_INT(scout_run_plan_launch(plan, NULL, &error), SCOUT_RUN_OK);
    scout_run_count(run, &after);
    UNIT_INT(after.listed + after.unlisted - before.listed - before.unlisted, launches);
    for (int i = 0; i < 6; i++) {
        float sum = c[i % 3];
        for (int k = 0; k < 3; k++) sum += x[i / 3 * 3 + k] * w[3 * k + i % 3];
        UNIT_CHECK(fabsf(y[i] - sum) < 1e-5F);
    }
}

static void a_group_runs_as_one(void) {
    char text[1024];
    write_file("ops.json", pair);
    write_file("plan.json", "{\"schema\": \"ceiling-scout/plan/1\"}");
    launch_pair(2);
    snprintf(text, sizeof text,
             "{\"schema\": \"ceiling-scout/plan/1\", \"device\": {\"class\": \"%s\"}, \"implementations\": ["
             "{\"fusion\": \"%s\", \"candidate\": \"onednn\", \"variant\": \"weight=as_is,epilogue=fused\"}], "
             "\"groups\": [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1]]}",
             class_text, fusion_id());
    write_file("plan.json", text);
    launch_pair(1);
}

int main(void) {
    char path[128];
    snprintf(folder, sizeof folder, "/tmp/test_run_plan.%d", (int)getpid());
    if (mkdir(folder, 0700) != 0) abort();
    run = run_open(NULL, &said);
    scout_identity id = {.size = sizeof id};
    scout_why why;
    if (cpu_device_api()->identify(0, &id, &why) != SCOUT_OK) abort();
    identity_clean(&id);
    identity_class(&id, class_text, sizeof class_text);
    UNIT_RUN(a_model_runs);
    UNIT_RUN(what_does_not_fit_is_refused);
    UNIT_RUN(a_constant_that_is_not_told_is_the_callers);
    UNIT_RUN(an_operand_is_formed);
    UNIT_RUN(what_is_formed_otherwise_is_refused);
    UNIT_RUN(what_is_not_told_is_refused);
    UNIT_RUN(a_plan_names_what_runs);
    UNIT_RUN(a_group_runs_as_one);
    scout_run_plan_close(plan);
    scout_run_close(run);
    static const char *const names[] = {"ops.json", "plan.json", ""};
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        remove(path);
    }
    return unit_end();
}
