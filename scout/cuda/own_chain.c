/* Elementwise operations by a kernel that is generated and compiled for each (chain_source.h, nvrtc.h): chains of
 * steps, which have no other kernel in one pass, and single operators where elementwise_pass leaves something of the
 * ceiling: with everything known, more is in flight. */
#include "scout/cuda/chain_source.h"
#include "scout/cuda/nvrtc.h"
#include "scout/cuda/own_pass.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES, STREAM, BYTES, THREADS, RESIDENT, PARAMETERS };

struct scout_plan {
    chain_source source;
    cudaLibrary_t library;
    cudaKernel_t pieces, single;
    int threads, resident, units;
    int output; /* its tensor */
};

/* Code by its source. A compilation takes a tenth of a second and more, and an operation's variants want several: they
 * are made at once, a thread each, when the first one is asked for, and kept until another operation asks. Variants
 * that differ in threads and blocks alone share them. */
static const int piece_counts[] = {2, 4, 1}, widths[] = {16, 8};
enum { PIECE_COUNTS = sizeof piece_counts / sizeof piece_counts[0], WIDTHS = sizeof widths / sizeof widths[0] };
enum { STREAMS = 2, CODES = PIECE_COUNTS * STREAMS };

typedef struct generated {
    char *text;
    nvrtc_code code;
    scout_answer answer;
    scout_why why;
    int major, minor;
    pthread_t thread;
    bool begun;
} generated;

static _Thread_local generated codes[WIDTHS][CODES]; /* of the thread that asks */

static chain_source_config config_of(const int64_t *values) {
    chain_source_config c = {.bytes = 16, .pieces = 2, .stream = 0};
    if (values) c = (chain_source_config){(int)values[BYTES], (int)values[PIECES], (int)values[STREAM]};
    return c;
}

static scout_answer generates(const scout_op *op, scout_why *why) {
    chain_source s;
    if (op_field(op, "quant")) return scout_say(why, SCOUT_NO, "feature", "generated kernels do no quantised work");
    if (!chain_source_of(op, config_of(NULL), &s, why)) return SCOUT_NO;
    return nvrtc_open(why) ? SCOUT_OK : SCOUT_NO;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op_is(op, "chain")) return generates(op, why);
    return scout_say(why, SCOUT_NO, "feature", "this is one operator, not a chain");
}

static scout_answer supports_one(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op_is(op, "chain")) return scout_say(why, SCOUT_NO, "feature", "this is a chain, not one operator");
    if (op->bytes_read + op->bytes_written < 1 << 20)
        return scout_say(why, SCOUT_NO, "shape", "below 1 MiB a launch costs more than a better kernel could save");
    return generates(op, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)why;
    out->count = PARAMETERS;
    out->parameters[PIECES] = (scout_parameter){.name = "pieces", .count = PIECE_COUNTS};
    for (int k = 0; k < PIECE_COUNTS; k++) out->parameters[PIECES].values[k] = piece_counts[k];
    out->parameters[STREAM] = (scout_parameter){.name = "stream", .count = STREAMS, .values = {0, 1}};
    out->parameters[BYTES] = (scout_parameter){.name = "bytes", .count = exhaustive ? WIDTHS : 1};
    for (int k = 0; k < WIDTHS; k++) out->parameters[BYTES].values[k] = widths[k];
    out->parameters[THREADS] = (scout_parameter){
        .name = "threads", .count = exhaustive ? 3 : 2, .values = {256, CHAIN_SOURCE_MOST_THREADS, 128}};
    out->parameters[RESIDENT] = (scout_parameter){.name = "resident", .count = exhaustive ? 3 : 1, .values = {0, 4, 8}};
    return SCOUT_OK;
}

/* --- preparing --- */

static void *compile(void *context) {
    generated *const g = context;
    char *includes[CHAIN_SOURCE_INCLUDES];
    nvrtc_source source = {.text = g->text, .include_count = CHAIN_SOURCE_INCLUDES};
    g->answer = SCOUT_OK;
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) {
        includes[k] = chain_source_include(k);
        if (!includes[k]) g->answer = scout_say(&g->why, SCOUT_NO_MEMORY, "memory", "no memory for a kernel's source");
    }
    source.includes = (const char *const *)includes;
    source.include_names = chain_source_include_names;
    if (g->answer == SCOUT_OK) g->answer = nvrtc_compile(&source, g->major, g->minor, &g->code, &g->why);
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) free(includes[k]);
    return NULL;
}

static void forget(generated *all) {
    for (int k = 0; k < CODES; k++) {
        free(all[k].text);
        nvrtc_code_free(&all[k].code);
        all[k] = (generated){.text = NULL};
    }
}

/* All that the operation's variants may ask for, in pieces of that many bytes. What cannot have a thread is compiled
 * without one. */
static void compile_all(const scout_op *op, int bytes, const scout_device *device, generated *all) {
    scout_why unopened;
    (void)nvrtc_open(&unopened); /* by one thread; those that compile say it if it is not there */
    forget(all);
    for (int k = 0; k < CODES; k++) {
        generated *const g = &all[k];
        chain_source source;
        scout_why ignored;
        const chain_source_config config = {bytes, piece_counts[k / STREAMS], k % STREAMS};
        if (!chain_source_of(op, config, &source, &ignored) || !(g->text = chain_source_text(&source))) continue;
        g->major = device->capability_major, g->minor = device->capability_minor;
        g->begun = pthread_create(&g->thread, NULL, compile, g) == 0;
    }
    for (int k = 0; k < CODES; k++) {
        if (all[k].begun)
            (void)pthread_join(all[k].thread, NULL);
        else if (all[k].text)
            (void)compile(&all[k]);
    }
}

static const generated *find_code(const generated *all, const char *text, const scout_device *device) {
    for (int k = 0; k < CODES; k++)
        if (all[k].text && all[k].major == device->capability_major && all[k].minor == device->capability_minor &&
            strcmp(all[k].text, text) == 0)
            return &all[k];
    return NULL;
}

/* Borrowed, until other code of that width is asked for. */
static scout_answer code_of(const scout_plan *p, const scout_op *op, const scout_device *device, nvrtc_code *out,
                            scout_why *why) {
    const int bytes = p->source.config.bytes;
    generated *const all = codes[bytes == widths[0] ? 0 : 1];
    char *const text = chain_source_text(&p->source);
    const generated *found = text ? find_code(all, text, device) : NULL;
    if (text && !found) {
        compile_all(op, bytes, device, all);
        found = find_code(all, text, device);
    }
    free(text);
    if (!found) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a kernel's source");
    if (found->answer != SCOUT_OK) *why = found->why;
    *out = found->code;
    return found->answer;
}

/* Attributes are asked for so that the code is on the device before any launch, which may be captured. */
static scout_answer load(scout_plan *p, const nvrtc_code *code, scout_why *why) {
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaLibraryLoadData(&p->library, code->cubin, NULL, NULL, 0, NULL, NULL, 0);
    if (error != cudaSuccess) p->library = NULL;
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&p->pieces, p->library, "chain_pieces");
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&p->single, p->library, "chain_single");
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)p->pieces);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)p->single);
    return error == cudaSuccess ? SCOUT_OK : cuda_device_answer(error, "loading a generated kernel", why);
}

static void destroy(scout_plan *plan) {
    if (plan && plan->library) (void)cudaLibraryUnload(plan->library);
    free(plan);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    *out = NULL;
    scout_plan *const p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    p->threads = values ? (int)values[THREADS] : 256;
    p->resident = values ? (int)values[RESIDENT] : 0;
    p->units = device->multiprocessors;
    p->output = (int)op->tensor_count - 1;
    scout_answer answer = chain_source_of(op, config_of(values), &p->source, why) ? SCOUT_OK : SCOUT_NO;
    nvrtc_code code = {NULL, 0};
    if (answer == SCOUT_OK) answer = code_of(p, op, device, &code, why);
    if (answer == SCOUT_OK) answer = load(p, &code, why);
    if (answer != SCOUT_OK) {
        destroy(p);
        return answer;
    }
    *out = p;
    return SCOUT_OK;
}

/* --- running --- */

static int aligned(const void *pointer) { return ((uintptr_t)pointer & 15) == 0; }

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const elementwise_walk *const w = &plan->source.walk;
    const void *pointers[ELEMENTWISE_MAX_OPERANDS + 1];
    void *parameters[ELEMENTWISE_MAX_OPERANDS + 1];
    int whole = aligned(args->tensors[plan->output]);
    for (int k = 0; k < w->inputs; k++) {
        pointers[k] = args->tensors[w->source[k]];
        whole = whole && aligned(pointers[k]);
    }
    pointers[w->inputs] = args->tensors[plan->output];
    for (int k = 0; k <= w->inputs; k++) parameters[k] = (void *)&pointers[k];
    const int64_t tile = whole ? chain_source_tile(&plan->source, plan->threads) : plan->threads;
    int64_t blocks = (w->count + tile - 1) / tile;
    const int64_t most = plan->resident > 0 ? (int64_t)plan->resident * plan->units : whole ? 0x7fffffff : 0xffff;
    if (blocks > most) blocks = most; /* kernels go on by the size of the grid */
    const cudaError_t error =
        cudaLaunchKernel((const void *)(whole ? plan->pieces : plan->single), (struct dim3){(unsigned)blocks, 1, 1},
                         (struct dim3){(unsigned)plan->threads, 1, 1}, parameters, 0, (cudaStream_t)args->stream);
    return error == cudaSuccess ? SCOUT_OK : cuda_device_answer(error, "launching a generated kernel", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const chain_source_config *c = &plan->source.config;
    return snprintf(json, room,
                    "{\"kernel\":\"chain_pieces\",\"steps\":%d,\"bytes\":%d,\"pieces\":%d,\"stream\":%d,\"threads\":%d,"
                    "\"resident\":%d}",
                    plan->source.chain.count, c->bytes, c->pieces, c->stream, plan->threads, plan->resident);
}

static const char *const precisions[] = {"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", "bool", NULL};

const scout_candidate own_chain = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "elementwise_chain",
    .about = "own kernel, generated for a chain of elementwise steps and compiled by NVRTC",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};

const scout_candidate own_generated = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_LAST,
    .priority = 10,
    .name = "elementwise_generated",
    .about = "own kernel, generated for one elementwise operator and its shape and compiled by NVRTC",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports_one,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
