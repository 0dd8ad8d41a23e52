/* What is refused of a plugin before anything of it is used: every function that must be there taken away, every size,
 * name and list bent. */
#include "scout/device/plugins.h"
#include "tests/unit/unit.h"

static scout_why why;

/* ---- a candidate, a reference and a device in which nothing is amiss ---- */

static scout_answer supports(const scout_op *op, scout_device *d, scout_why *w) {
    (void)op, (void)d, (void)w;
    return SCOUT_OK;
}
static scout_answer prepare(const scout_op *op, scout_device *d, const int64_t *v, scout_plan **p, scout_plan_needs *n,
                            scout_why *w) {
    (void)op, (void)d, (void)v, (void)p, (void)n, (void)w;
    return SCOUT_OK;
}
static scout_answer launch(scout_plan *p, const scout_args *a, scout_why *w) {
    (void)p, (void)a, (void)w;
    return SCOUT_OK;
}
static int describe(const scout_plan *p, char *json, size_t room) {
    (void)p, (void)json, (void)room;
    return 0;
}
static void destroy(scout_plan *p) { (void)p; }

static const char *const precisions[] = {"fp32", NULL};
static const scout_candidate right = {.size = sizeof right,
                                      .kind = SCOUT_GEMM,
                                      .name = "right_one-1.0",
                                      .about = "about",
                                      .approach = "CUSTOM_KERNEL",
                                      .precisions = precisions,
                                      .supports = supports,
                                      .prepare = prepare,
                                      .launch = launch,
                                      .describe = describe,
                                      .destroy = destroy};
static const scout_candidate *const rights[] = {&right};

static bool refused(const scout_candidate *c, const char *says) {
    why = (scout_why){.code = ""};
    return !plugins_check_candidate(c, &why) && strcmp(why.code, "library") == 0 && strstr(why.text, says) != NULL;
}

static void candidates(void) {
    static char long_name[100];
    scout_candidate c = right;
    UNIT_CHECK(plugins_check_candidate(&c, &why));
    UNIT_CHECK(refused(NULL, "missing"));
#define WITH(change, says) (c = right, change, UNIT_CHECK(refused(&c, says)))
    WITH(c.size = 0, "size");
    WITH(c.size = 8, "size");
    WITH(c.size = 1u << 30, "size");
    WITH(c.kind = 0, "kind");
    WITH(c.kind = 4000, "kind");
    WITH(c.name = NULL, "name");
    WITH(c.name = "", "name");
    WITH(c.name = "a b", "name");
    WITH(c.name = "../x", "name");
    WITH(c.name = "-x", "name");
    memset(long_name, 'x', sizeof long_name - 1);
    WITH(c.name = long_name, "name");
    WITH(c.about = NULL, "about");
    WITH(c.precisions = NULL, "precisions");
    static const char *const odd[] = {"fp32", "\xff", NULL};
    WITH(c.precisions = odd, "ASCII");
    WITH(c.about = "\x1b[2J", "ASCII");
    WITH(c.library = "\xff", "ASCII");
    WITH(c.approach = NULL, "approach");
    WITH(c.approach = "MAGIC", "approach");
    WITH(c.supports = NULL, "supports");
    WITH(c.prepare = NULL, "prepare");
    WITH(c.launch = NULL, "launch");
    WITH(c.destroy = NULL, "destroy");
    WITH((c.destroy = NULL, c.plan_bytes = 64, c.size = offsetof(scout_candidate, plan_bytes)), "destroy");
#undef WITH
    c = right; /* what may be missing: domain, allows, pack are; and a struct that ends before newer members */
    c.size = offsetof(scout_candidate, destroy) + sizeof c.destroy;
    UNIT_CHECK(plugins_check_candidate(&c, &why));
    c = right;
    c.plan_bytes = 1, c.describe = NULL, c.destroy = NULL;
    UNIT_CHECK(plugins_check_candidate(&c, &why));
}

/* ---- plans: the harness's memory, or the candidate's own ---- */

struct scout_plan {
    char bytes[100];
};
static scout_plan *seen, own;
static int destroyed;

static scout_answer fill(const scout_op *op, scout_device *d, const int64_t *v, scout_plan **p, scout_plan_needs *n,
                         scout_why *w) {
    (void)op, (void)d, (void)n, (void)w;
    seen = *p;
    if (!*p) *p = &own;
    for (size_t k = 0; k < sizeof own.bytes; k++) UNIT_CHECK((*p)->bytes[k] == 0);
    (*p)->bytes[99] = seen ? 1 : 0;
    return (scout_answer)v[0];
}
static void count(scout_plan *p) { destroyed += p != NULL; }

static void plans(void) {
    scout_plan_needs needs = {.size = sizeof needs};
    scout_plan *plan = NULL;
    char json[64];
    for (int old = 0; old < 2; old++) {
        scout_candidate c = right;
        c.prepare = fill, c.destroy = count, c.describe = NULL, c.plan_bytes = sizeof own;
        if (old) c.size = offsetof(scout_candidate, plan_bytes);
        for (int64_t answer = SCOUT_OK; answer <= SCOUT_LOST; answer++) {
            destroyed = 0;
            UNIT_INT(scout_prepare(&c, NULL, NULL, &answer, &plan, &needs, &why), answer);
            UNIT_CHECK(old ? !seen : seen != NULL);
            UNIT_CHECK(answer == SCOUT_OK ? plan == (old ? &own : seen) : !plan);
            UNIT_INT(destroyed, answer != SCOUT_OK && answer != SCOUT_LOST);
            if (answer == SCOUT_OK) scout_destroy(&c, plan);
            if (answer == SCOUT_LOST && !old) free(seen); /* what the device was left with */
        }
        UNIT_CHECK(scout_describe(&c, NULL, json, sizeof json) == 26 &&
                   !strcmp(json, "{\"kernel\":\"right_one-1.0\"}"));
    }
}

static void plugins(void) {
    const scout_plugin good = {.size = sizeof good,
                               .abi = SCOUT_ABI,
                               .name = "name",
                               .version = "1",
                               .for_device = "cuda",
                               .candidate_count = 1,
                               .candidates = rights};
    scout_candidate bad = right;
    const scout_candidate *const bads[] = {&right, &bad}, *const holes[] = {&right, NULL};
    scout_plugin p = good;
    UNIT_CHECK(plugins_check_plugin(&p, &why));
#define WITH(change) (p = good, change, UNIT_CHECK(!plugins_check_plugin(&p, &why)))
    WITH(p.size = 0);
    WITH(p.size = 1u << 30);
    WITH(p.abi = SCOUT_ABI + 1);
    WITH(p.name = NULL);
    WITH(p.name = "a/b");
    WITH(p.version = NULL);
    WITH(p.for_device = NULL);
    WITH(p.candidates = NULL);
    WITH(p.candidate_count = 0);
    WITH(p.candidate_count = 1u << 31);
    WITH((p.candidates = holes, p.candidate_count = 2));
    bad.launch = NULL;
    WITH((p.candidates = bads, p.candidate_count = 2));
    bad = right;
    bad.flags = SCOUT_BASELINE; /* of another plugin's device */
    WITH((p.candidates = bads, p.candidate_count = 2));
    scout_device_api api = {.size = sizeof api, .name = "other"};
    WITH((p.candidates = bads, p.candidate_count = 2, p.device = &api));
    api.name = "cuda";
    UNIT_CHECK(plugins_check_plugin(&p, &why));
#undef WITH
}

/* Every function pointer of a device, one after the other: each of them is missed. */
static void devices(void) {
    scout_device_api api, good;
    void *something = &good;
    memset(&good, 0, sizeof good);
    char *from = (char *)&good.count, *end = (char *)&good.has_graphs;
    for (char *at = from; at + sizeof something <= end; at += sizeof something)
        memcpy(at, &something, sizeof something);
    from = (char *)&good.now, end = (char *)&good.reference_count;
    for (char *at = from; at + sizeof something <= end; at += sizeof something)
        memcpy(at, &something, sizeof something);
    good.size = sizeof good;
    good.name = "fake";
    good.resolution_s = 1e-9;
    good.has_graphs = 1;
    good.candidates = rights;
    good.candidate_count = 1;
    UNIT_CHECK(plugins_check_device(&good, &why));
    int functions = 0;
    for (size_t at = offsetof(scout_device_api, count); at < offsetof(scout_device_api, reference_count);
         at += sizeof something) {
        if (at == offsetof(scout_device_api, has_graphs)) continue;
        memcpy(&api, &good, sizeof api);
        memset((char *)&api + at, 0, sizeof something);
        if (!UNIT_CHECK(!plugins_check_device(&api, &why))) printf("    at %zu\n", at);
        functions++;
    }
    UNIT_CHECK(functions > 20);
#define WITH(change) (api = good, change, UNIT_CHECK(!plugins_check_device(&api, &why)))
    WITH(api.size = 16);
    WITH(api.name = NULL);
    WITH(api.name = "auto");
    WITH(api.name = "all");
    WITH(api.name = "cuda:0");
    WITH(api.resolution_s = 0);
    WITH(api.resolution_s = -1);
    WITH(api.resolution_s = 1.0 / 0.0);
    WITH(api.candidates = NULL);
    WITH(api.reference_count = 1);
    const scout_reference empty = {.size = sizeof empty, .kind = SCOUT_GEMM}, *const references[] = {&empty};
    WITH((api.reference_count = 1, api.references = references));
#undef WITH
}

int main(void) {
    UNIT_RUN(candidates);
    UNIT_RUN(plans);
    UNIT_RUN(plugins);
    UNIT_RUN(devices);
    return unit_end();
}
