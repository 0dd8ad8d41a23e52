/* Every pattern on the CPU, in its types: the parts in sequence come out as the one operation does. In fp32 all of them
 * run; in a half type those whose parts have a baseline on this processor each. */
#include "tests/unit/scout/fusion_fixture.h"

#include "scout/device/cpu.h"
#include "scout/kinds/kinds.h"
#include "scout/measure/measure.h"

static scout_device *device;

static bool has_baseline(const operation *o) {
    scout_op op;
    scout_why why;
    const scout_device_api *api = cpu_device_api();
    bool found = false;
    if (!kinds_build(o, 32 << 20, &a, &op, &why)) return false;
    for (uint32_t k = 0; k < api->candidate_count && !found; k++) {
        const scout_candidate *c = api->candidates[k];
        found = c->kind == op.kind && c->flags & SCOUT_BASELINE && c->supports(&op, device, &why) == SCOUT_OK;
    }
    return found;
}

static bool can_run(const fusion *f, const char *type) {
    bool all = true;
    for (int k = 0; k < f->op_count; k++) all = all && has_baseline(f->parts[k].operation);
    return all || strcmp(type, "fp32") == 0;
}

static void try_one(const char *type, int size, const char *asked) {
    const bool good = fusion_make_of(type, size, asked) && fusions.count == 1;
    scout_answer answer = SCOUT_NO;
    scout_why why = {.code = ""};
    if (!UNIT_CHECK(good)) printf("%s\n", g.st.text);
    if (good) {
        const fusion *f = &fusions.items[0];
        if (f->how == FUSION_SKIPPED) printf("%s %s: %s\n", type, asked, f->skip_text);
        const measure_request request = {.operation = &f->fused,
                                         .regime = {REGIME_BURST, REGIME_HOT, REGIME_DIRECT},
                                         .workspace_limit = 32 << 20,
                                         .launches = 1, /* which has the row told where it is OK, too */
                                         .parts = {.count = f->op_count, .items = f->parts}};
        json_t *rows = measure_qualify(cpu_device_api(), device, &request, "parts", NULL, &answer, &why);
        const char *said = json_string_value(json_object_get(json_array_get(rows, 0), "status"));
        if (!UNIT_CHECK(said && strcmp(said, can_run(f, type) ? "OK" : "UNSUPPORTED") == 0)) {
            char *text = rows ? json_dumps(rows, JSON_INDENT(1)) : NULL;
            printf("%s %s: %s %s\n", type, asked, text ? text : "", why.text);
            free(text);
        }
        UNIT_INT(answer, SCOUT_OK);
        UNIT_TEXT(why.text, "");
        json_decref(rows);
    }
    end();
}

static void try_all(const char *type, int size, const char *const *asked) {
    for (; *asked; asked++) {
        char text[256];
        snprintf(text, sizeof text, "{\"pattern\":%s,\"count\":1,\"selected\":1}", *asked);
        try_one(type, size, text);
    }
}

static const char *const products[] = {"\"gemm+bias\",\"ops\":[\"g\",\"bias\"],\"saved_bytes\":8",
                                       "\"gemm+gelu\",\"ops\":[\"g\",\"bias\",\"gelu\"],\"saved_bytes\":8",
                                       "\"gemm+gelu\",\"ops\":[\"g\",\"biasgelu\"],\"saved_bytes\":8",
                                       "\"gemm+silu\",\"ops\":[\"g\",\"silu\"],\"saved_bytes\":8",
                                       "\"gemm+residual\",\"ops\":[\"g\",\"bias\",\"res\"],\"saved_bytes\":8",
                                       "\"gemm+residual\",\"ops\":[\"g1\",\"add1\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gq\",\"gq\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gv\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input\",\"ops\":[\"gt\",\"gu\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input\",\"ops\":[\"z4\",\"y4\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input\",\"ops\":[\"z8\",\"y8\"],\"saved_bytes\":8",
                                       "\"gemm+gemm shared input+bias\",\"ops\":[\"gq\",\"gq\",\"addq\",\"addq\"],"
                                       "\"saved_bytes\":8",
                                       "\"gemm+gemm shared input+bias\",\"ops\":[\"g1\",\"g1\",\"add1\",\"add1\"],"
                                       "\"saved_bytes\":8",
                                       "\"conv+bn+activation\",\"ops\":[\"cb\",\"bn\",\"crelu\"],\"saved_bytes\":8",
                                       "\"conv+activation\",\"ops\":[\"c\",\"hard\"],\"saved_bytes\":8",
                                       "\"conv+residual+activation\",\"ops\":[\"c\",\"bn\",\"cadd\",\"crelu\"],"
                                       "\"saved_bytes\":8",
                                       NULL};
static const char *const passes[] = {"\"norm+residual\",\"ops\":[\"res\",\"ln\"],\"saved_bytes\":8000",
                                     "\"norm+residual\",\"ops\":[\"res\",\"ln\"],\"saved_bytes\":8",
                                     "\"elementwise chain\",\"ops\":[\"bias\",\"silu\",\"mul\"],\"saved_bytes\":8",
                                     "\"softmax+mask\",\"ops\":[\"mask\",\"sm\"],\"saved_bytes\":8",
                                     "\"softmax+mask\",\"ops\":[\"pad\",\"sm\"],\"saved_bytes\":8",
                                     "\"softmax+mask\",\"ops\":[\"inside\",\"sm\"],\"saved_bytes\":8",
                                     "\"softmax+mask\",\"ops\":[\"scale\",\"sm\"],\"saved_bytes\":8",
                                     NULL};

static void products_are_right(void) {
    try_all("fp32", 4, products);
    try_all("bf16", 2, products); /* not every processor multiplies fp16 */
}

static void passes_are_right(void) {
    try_all("fp32", 4, passes);
    try_all("bf16", 2, passes);
    try_all("fp16", 2, passes);
}

int main(void) {
    scout_why why = {.code = ""};
    if (cpu_device_api()->open(0, &device, &why) != SCOUT_OK) {
        printf("%s\n0 passed, 1 failed\n", why.text);
        return 1;
    }
    UNIT_RUN(products_are_right);
    UNIT_RUN(passes_are_right);
    cpu_device_api()->close(device);
    return unit_end();
}
