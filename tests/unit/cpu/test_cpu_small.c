/* How many threads work has on the CPU device: small work one, unless a variant says otherwise. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/device/cpu.h"
#include "scout/input/operation.h"
#include "scout/terms/variants.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <string.h>

typedef struct work {
    const char *text;
    bool small;
} work;

static const work works[] = {
    {"{\"op\": \"gemm\", \"shape\": [64, 64, 64], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"gemm\", \"shape\": [128, 128, 128], \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"gemm\", \"shape\": [32, 32, 32], \"batch\": 64, \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"conv\", \"shape\": [1, 8, 14, 14], \"input\": [1, 8, 14, 14], \"kernel\": [3, 3], "
     "\"pads\": [1, 1, 1, 1], \"dtype\": \"fp32\", \"weight_dtype\": \"fp32\"}",
     true},
    {"{\"op\": \"conv\", \"shape\": [1, 64, 28, 28], \"input\": [1, 64, 28, 28], \"kernel\": [3, 3], "
     "\"pads\": [1, 1, 1, 1], \"dtype\": \"fp32\", \"weight_dtype\": \"fp32\"}",
     false},
    {"{\"op\": \"attention\", \"shape\": [1, 2, 32, 16], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"attention\", \"shape\": [1, 2, 256, 16], \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"softmax\", \"shape\": [64, 128], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"softmax\", \"shape\": [1024, 128], \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"layernorm\", \"shape\": [32, 768], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"norm\", \"what\": \"lrn\", \"shape\": [784, 64], \"size\": 5, \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"elementwise\", \"what\": \"gelu\", \"shape\": [1, 16384], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"elementwise\", \"what\": \"gelu\", \"shape\": [1, 60000], \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"elementwise\", \"what\": \"randomnormal\", \"shape\": [16384], \"dtype\": \"fp32\"}", false},
    {"{\"op\": \"reduce\", \"what\": \"sum\", \"shape\": [64, 256], \"dtype\": \"fp32\"}", true},
    {"{\"op\": \"reduce\", \"what\": \"nonmaxsuppression\", \"shape\": [480, 3], \"input\": [1, 600, 4], \"channels\": "
     "8, "
     "\"iou_threshold\": 0.5, \"dtype\": \"fp32\"}",
     false},
    {"{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [256, 256], \"input\": \"256,256\", \"perm\": \"1,0\", "
     "\"dtype\": \"fp32\"}",
     false},
    {"{\"op\": \"embedding\", \"shape\": [16, 64], \"table\": 50000, \"dtype\": \"fp32\"}", true},
};
enum { WORKS = sizeof works / sizeof works[0] };

/* Returns how many threads the description of a plan names. */
static int threads_of(const scout_candidate *c, const scout_op *op, scout_device *device, const variants_one *one) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    scout_why why;
    char json[1024] = "";
    if (scout_prepare(c, op, device, one->values, &plan, &needs, &why) != SCOUT_OK) return 0;
    (void)scout_describe(c, plan, json, sizeof json);
    scout_destroy(c, plan);
    const char *said = strstr(json, "\"threads\": \"");
    return said ? (int)strtol(said + strlen("\"threads\": \""), NULL, 10) : 0;
}

static void small_work_has_one_thread(void) {
    const scout_device_api *api = cpu_device_api();
    const int cores = cpu_team_size();
    scout_device *device = NULL;
    scout_why why;
    if (!UNIT_INT(api->open(0, &device, &why), SCOUT_OK)) return;
    for (size_t k = 0; k < WORKS; k++) {
        static scout_domain room;
        cpu_built b;
        int seen = 0;
        cpu_built_make(&b, works[k].text, 32 << 20);
        if (!UNIT_CHECK(b.built)) {
            printf("  %s: %s\n", works[k].text, b.why.text);
            cpu_built_end(&b);
            continue;
        }
        if (!UNIT_CHECK(cpu_small_is(&b.op) == works[k].small)) printf("  %s\n", works[k].text);
        for (uint32_t n = 0; n < api->candidate_count; n++) {
            const scout_candidate *c = api->candidates[n];
            variants v;
            variants_one one;
            if (c->kind != b.op.kind || c->supports(&b.op, device, &why) != SCOUT_OK) continue;
            UNIT_INT(variants_open(&v, c, &b.op, device, false, &room, &why), SCOUT_OK);
            const bool choice = works[k].small && cores > 1;
            while (variants_next(&v, &one)) {
                const bool all = strncmp(one.text, "threads=all", strlen("threads=all")) == 0;
                const int threads = threads_of(c, &b.op, device, &one);
                UNIT_CHECK((strncmp(one.text, "threads=", strlen("threads=")) == 0) == choice);
                UNIT_CHECK(!one.first || !all);
                if (threads == 0) continue; /* refused, with little memory */
                if (!UNIT_INT(threads, choice && !all ? 1 : cores)) printf("  %s %s\n", c->name, one.text);
                seen++;
            }
        }
        UNIT_CHECK(seen > 0);
        UNIT_INT(cpu_team_size(), cores);
        cpu_built_end(&b);
    }
    api->close(device);
}

/* What a deployed table looks up has the variants that were measured. */
static void a_key_tells_the_same(void) {
    for (size_t k = 0; k < WORKS; k++) {
        cpu_built b;
        operation told;
        scout_op op;
        scout_why why;
        cpu_built_make(&b, works[k].text, 32 << 20);
        if (!UNIT_CHECK(b.built && guard_enter(&b.g))) continue;
        operation_from_key(b.op.key, &b.a, &told);
        UNIT_CHECK(kinds_build(&told, 32 << 20, &b.a, &op, &why) && cpu_small_is(&op) == works[k].small);
        cpu_built_end(&b);
    }
}

int main(void) {
    if (!UNIT_CHECK(cpu_built_open())) return 1;
    UNIT_RUN(small_work_has_one_thread);
    UNIT_RUN(a_key_tells_the_same);
    cpu_built_close();
    return unit_end();
}
