/* The generated kernels of chains, as far as a machine without a GPU can tell: what way every operand is read, that no
 * text of an operation is in the source, and that NVRTC, where a toolkit is installed, compiles every operator in every
 * type for the GPUs that we build for. */
#include "scout/cuda/nvrtc/chain_source.h"
#include "scout/device/libraries.h"
#include "tests/unit/unit.h"

#include "common/arena.h"
#include "scout/kinds/kinds.h"

#include <stdlib.h>

static const chain_source_config plain = {.bytes = 16, .pieces = 2, .stream = 0};

typedef struct made {
    guard guard;
    arena arena;
    operation o;
    scout_op op;
    scout_why why;
    chain_source source;
} made;

static bool make(made *m, const char *chain, dtype type, int rank, const int64_t *shape, chain_source_config config) {
    memset(m, 0, sizeof *m);
    guard_init(&m->guard);
    arena_init(&m->arena, &m->guard, (size_t)1 << 20);
    m->o.rec = (oprec){.kind = OP_ELEMENTWISE, .what = "chain", .type = type, .flops = 1};
    oprec_set_shape(&m->o.rec, &m->arena, rank, shape);
    oprec_set_text(&m->o.rec, "chain", chain);
    return kinds_build(&m->o, 0, &m->arena, &m->op, &m->why) && chain_source_of(&m->op, config, &m->source, &m->why);
}

static void drop(made *m) { arena_free(&m->arena); }

/* --- how operands are read --- */

static void ways(void) {
    static const struct {
        const char *operand;
        int64_t shape[4];
        chain_source_way way;
    } cases[] = {
        {"tensor", {2, 3, 5, 64}, CHAIN_SOURCE_FULL},    {"tensor", {2, 3, 5, 7}, CHAIN_SOURCE_FULL},
        {"scalar", {2, 3, 5, 64}, CHAIN_SOURCE_ALONE},   {"vector", {2, 3, 5, 64}, CHAIN_SOURCE_PIECE},
        {"vector", {2, 3, 5, 63}, CHAIN_SOURCE_EACH},    {"2x3x5x1", {2, 3, 5, 64}, CHAIN_SOURCE_SPLAT},
        {"2x3x5x1", {2, 3, 5, 63}, CHAIN_SOURCE_EACH},   {"3x1x1", {2, 3, 5, 8}, CHAIN_SOURCE_SPLAT},
        {"2x1x5x64", {2, 3, 5, 64}, CHAIN_SOURCE_PIECE}, {"2x1x1x4", {2, 3, 5, 4}, CHAIN_SOURCE_EACH},
        {"1x1x1x64", {1, 1, 1, 64}, CHAIN_SOURCE_FULL},  {"3x5x12", {2, 3, 5, 12}, CHAIN_SOURCE_EACH},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char text[64];
        made m;
        snprintf(text, sizeof text, "add(tensor,%s)", cases[k].operand);
        const bool good = make(&m, text, DTYPE_FP16, 4, cases[k].shape, plain);
        UNIT_CHECK(good);
        if (good) UNIT_INT(m.source.ways[1], cases[k].way);
        if (good) UNIT_INT(m.source.elements, 8);
        drop(&m);
    }
}

/* The narrowest tensor decides how many elements a piece has. */
static void pieces(void) {
    static const int64_t shape[] = {4, 64};
    made m;
    UNIT_CHECK(make(&m, "where(tensor:bool,tensor,tensor)", DTYPE_FP32, 2, shape, plain));
    UNIT_INT(m.source.elements, 16);
    UNIT_INT(chain_source_tile(&m.source, 256), 16 * 2 * 256);
    drop(&m);
    UNIT_CHECK(make(&m, "where(scalar:bool,tensor,tensor)", DTYPE_FP32, 2, shape, (chain_source_config){8, 1, 0}));
    UNIT_INT(m.source.elements, 2);
    drop(&m);
}

/* Nothing but what the tables name and numbers as bits gets into what is compiled. */
static void no_text_of_an_operation(void) {
    static const int64_t shape[] = {4, 64};
    static const scout_field more[] = {{"name", 0, "MARK*/"}, {"chain", 0, "elu[alpha=0.5000](tensor);add(v,vector)"}};
    made plain_one, marked;
    UNIT_CHECK(make(&plain_one, "elu[alpha=0.5](tensor);add(v,1x64)", DTYPE_FP16, 2, shape, plain));
    UNIT_CHECK(make(&marked, "elu[alpha=0.5000](tensor);add(v,vector)", DTYPE_FP16, 2, shape, plain));
    marked.op.key = "MARK", marked.op.layout = "MARK", marked.op.fields = more, marked.op.field_count = 2;
    UNIT_CHECK(chain_source_of(&marked.op, plain, &marked.source, &marked.why));
    char *const one = chain_source_text(&plain_one.source), *const other = chain_source_text(&marked.source);
    if (UNIT_CHECK(one && other)) UNIT_TEXT(one, other);
    UNIT_CHECK(one && strstr(one, "__int_as_float(0x3f000000)"));
    free(one), free(other);
    drop(&plain_one), drop(&marked);
}

/* The usual kernel comes alone, all others in one program; every one is in its program under its name. */
static void two_programs(void) {
    static const int64_t shape[] = {4, 64};
    char *texts[CHAIN_SOURCE_PIECES * 2];
    for (int k = 0; k < CHAIN_SOURCE_PIECES * 2; k++) {
        made m;
        char name[CHAIN_SOURCE_NAME], head[CHAIN_SOURCE_NAME + 8];
        const chain_source_config config = {16, chain_source_pieces[k / 2], k % 2};
        UNIT_CHECK(make(&m, "add(tensor,vector);relu(v)", DTYPE_FP16, 2, shape, config));
        texts[k] = chain_source_text(&m.source);
        chain_source_kernel(&m.source, name);
        snprintf(head, sizeof head, " %s(const", name);
        UNIT_CHECK(texts[k] && strstr(texts[k], head) && strstr(texts[k], " chain_single(const"));
        drop(&m);
    }
    if (texts[0] && texts[1]) UNIT_CHECK(strlen(texts[0]) < strlen(texts[1]));
    for (int k = 2; k < CHAIN_SOURCE_PIECES * 2; k++)
        if (texts[1] && texts[k]) UNIT_TEXT(texts[k], texts[1]);
    for (int k = 0; k < CHAIN_SOURCE_PIECES * 2; k++) free(texts[k]);
}

/* --- compiling --- */

typedef struct nvrtc_table {
    int (*create)(void **program, const char *source, const char *name, int count, const char *const *headers,
                  const char *const *names);
    int (*compile)(void *program, int count, const char *const *options);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *text);
    int (*destroy)(void **program);
} nvrtc_table;

static bool open_nvrtc(nvrtc_table *to) {
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    static const libraries_place places[] = {
        {"nvrtcCreateProgram", offsetof(nvrtc_table, create)},
        {"nvrtcCompileProgram", offsetof(nvrtc_table, compile)},
        {"nvrtcGetProgramLogSize", offsetof(nvrtc_table, log_size)},
        {"nvrtcGetProgramLog", offsetof(nvrtc_table, log)},
        {"nvrtcDestroyProgram", offsetof(nvrtc_table, destroy)},
    };
    scout_why why;
    void *const handle = libraries_open(files, false, NULL, 0, &why);
    return handle && libraries_bind(handle, places, sizeof places / sizeof places[0], to, &why);
}

static bool compiles(const nvrtc_table *nvrtc, const char *text, const char *arch) {
    const char *const options[] = {arch, "--std=c++17"}; /* what it warns of is in its log */
    char *headers[CHAIN_SOURCE_INCLUDES], log[4096] = "";
    void *program = NULL;
    size_t size = 0;
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) headers[k] = chain_source_include(k);
    bool good = nvrtc->create(&program, text, "chain.cu", CHAIN_SOURCE_INCLUDES, (const char *const *)headers,
                              chain_source_include_names) == 0 &&
                nvrtc->compile(program, 2, options) == 0;
    if (program && nvrtc->log_size(program, &size) == 0 && size > 1 && size < sizeof log &&
        nvrtc->log(program, log) == 0) {
        printf("%s\n%s\n", log, text);
        good = false;
    }
    if (program) (void)nvrtc->destroy(&program);
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) free(headers[k]);
    return good;
}

static void compile_chain(const nvrtc_table *nvrtc, const char *chain, dtype type, int rank, const int64_t *shape,
                          chain_source_config config, const char *arch) {
    made m;
    const bool good = make(&m, chain, type, rank, shape, config);
    if (!good) printf("%s: %s\n", chain, m.why.text);
    UNIT_CHECK(good);
    char *const text = good ? chain_source_text(&m.source) : NULL;
    UNIT_CHECK(!good || text);
    if (text) UNIT_CHECK(compiles(nvrtc, text, arch));
    free(text);
    drop(&m);
}

#define NAME(name, least, most, types, truth, specials, grows, positive)                                               \
    {#name, least, most, types, truth, specials, grows, positive},
static const elementwise_operator operators[] = {ELEMENTWISE_OPERATORS(NAME)};

/* One more operator on the value so far, and on tensors of its own; how many of these. */
static int append(char *text, size_t room, const elementwise_operator *is, bool first) {
    static const char *const operands[] = {"v", "v,tensor", "v,tensor,vector"};
    const bool where = strcmp(is->what, "where") == 0;
    const int count = where ? 2 : is->most > 3 ? 3 : is->least;
    char all[64];
    snprintf(all, sizeof all, "%s%s", where ? "tensor:bool," : "", operands[count - 1]);
    if (first) { /* there is no value yet */
        char *const v = strchr(all, 'v');
        char behind[64];
        snprintf(behind, sizeof behind, "%s", v + 1);
        snprintf(v, sizeof all - (size_t)(v - all), "tensor%s", behind);
    }
    snprintf(text, room, "%s%s%s(%s)", first ? "" : ";", is->positive && !first ? "abs;" : "", is->what, all);
    return count - !first + where;
}

/* All operators of a class in chains as long as tensors last; what tells truth ends one. */
static int operators_of(const nvrtc_table *nvrtc, dtype type, int class, const char *arch) {
    static const int64_t shape[] = {3, 64};
    char text[1024] = "";
    int operands = 0, steps = 0, seen = 0;
    for (size_t k = 0; k < ELEMENTWISE_COUNT; k++) {
        const bool last = k + 1 == ELEMENTWISE_COUNT;
        const bool taken = (operators[k].types & class) && operators[k].positive < 2; /* no chain has the others */
        if (taken) {
            const size_t used = strlen(text);
            operands += append(text + used, sizeof text - used, &operators[k], steps == 0);
            steps += 1 + operators[k].positive;
            seen++;
        }
        const bool truth = taken && operators[k].truth && type != DTYPE_BOOL;
        if (steps == 0 || (!last && !truth && operands < 8 && steps < 14)) continue;
        compile_chain(nvrtc, text, type, 2, shape, plain, arch);
        *text = 0, operands = steps = 0;
    }
    return seen;
}

static void every_operator(const nvrtc_table *nvrtc) {
    static const char *const arch = "--gpu-architecture=sm_90a";
    int seen = operators_of(nvrtc, DTYPE_FP16, ELEMENTWISE_FLOAT, arch);
    UNIT_CHECK(operators_of(nvrtc, DTYPE_INT8, ELEMENTWISE_WHOLE, arch) > 10);
    UNIT_CHECK(operators_of(nvrtc, DTYPE_INT64, ELEMENTWISE_WHOLE, arch) > 10);
    seen += operators_of(nvrtc, DTYPE_BOOL, ELEMENTWISE_BOOL, arch);
    /* equal and where are of both; five are of integers alone, and three of numbers below 1 */
    UNIT_INT(seen, ELEMENTWISE_COUNT + 2 - 8);
}

/* Types, ways, widths and what stands between steps, for every GPU. */
static void chains(const nvrtc_table *nvrtc) {
    static const char *const archs[] = {"--gpu-architecture=sm_80", "--gpu-architecture=sm_90a",
                                        "--gpu-architecture=sm_100"};
    static const struct {
        const char *chain;
        dtype type;
        int rank;
        int64_t shape[4];
        chain_source_config config;
    } cases[] = {
        {"add(tensor,vector);gelu(v)", DTYPE_FP16, 2, {127, 1000}, {16, 4, 1}},
        {"mul(tensor,same);sub(v,5x1);greater(v,tensor)", DTYPE_BF16, 3, {3, 5, 1001}, {16, 1, 0}},
        {"cast[to=fp32](2x1x1x129);sub(scalar:fp32,v);add(tensor:fp32,v)", DTYPE_INT64, 4, {2, 1, 63, 129}, {16, 2, 0}},
        {"and(tensor,1x1x128x1);where(v,tensor:fp16,scalar:fp16)", DTYPE_BOOL, 4, {1, 1, 128, 1000}, {16, 2, 1}},
        {"mul(tensor,vector);clip[min=-5](v);cast[to=int32](v);max(v,scalar:int32,tensor:int32)",
         DTYPE_INT8,
         2,
         {7, 1024},
         {8, 2, 0}},
        {"round(tensor);cast[to=int64];cast[to=bool];cast[to=fp16];pow[exponent=2](v);cast[to=bf16]",
         DTYPE_FP32,
         1,
         {1000},
         {8, 2, 1}},
        {"add(tensor,1x4096x1)", DTYPE_FP16, 3, {1 << 12, 1 << 12, 256}, {16, 2, 1}},
        {"mean(tensor,vector,scalar);isinf[detect_positive=0](v);cast[to=uint8](v);abs(v)",
         DTYPE_FP32,
         2,
         {5, 16},
         {16, 2, 0}},
    };
    for (size_t a = 0; a < 3; a++)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
            compile_chain(nvrtc, cases[k].chain, cases[k].type, cases[k].rank, cases[k].shape, cases[k].config,
                          archs[a]);
}

static void compiling(void) {
    nvrtc_table nvrtc;
    if (!open_nvrtc(&nvrtc)) {
        printf("  no NVRTC here: nothing was compiled\n");
        return;
    }
    every_operator(&nvrtc);
    chains(&nvrtc);
}

int main(void) {
    UNIT_RUN(ways);
    UNIT_RUN(pieces);
    UNIT_RUN(no_text_of_an_operation);
    UNIT_RUN(two_programs);
    UNIT_RUN(compiling);
    return unit_end();
}
