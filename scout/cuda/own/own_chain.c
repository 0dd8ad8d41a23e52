/* Elementwise operations by a kernel that is generated and compiled for each (chain_source.h, nvrtc.h): chains of
 * steps, which have no other kernel in one pass, and single operators where elementwise_pass is below the ceiling: with
 * constants known, more loads are in flight. */
#include "scout/cuda/nvrtc/chain_source.h"
#include "scout/cuda/nvrtc/nvrtc.h"
#include "scout/cuda/own/own.h"

#include <stdbool.h>
#include <stdlib.h>

enum { PIECES, STREAM, BYTES, THREADS, RESIDENT, PARAMETERS };

struct scout_plan {
    chain_source source;
    cudaLibrary_t library;
    cudaKernel_t pieces, single;
    int threads, resident, units;
    int output; /* its tensor */
};

static const int widths[] = {16, 8};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static chain_source_config config_of(const int64_t *values) {
    chain_source_config c = {.bytes = 16, .pieces = 2, .stream = 0};
    if (values) c = (chain_source_config){(int)values[BYTES], (int)values[PIECES], (int)values[STREAM]};
    return c;
}

static scout_answer generates(const scout_op *op, scout_why *why) {
    chain_source s;
    if (op_field(op, "quant")) return scout_say(why, SCOUT_NO, "feature", "generated kernels do not quantise");
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
    out->parameters[PIECES] = (scout_parameter){.name = "pieces", .count = CHAIN_SOURCE_PIECES};
    for (int k = 0; k < CHAIN_SOURCE_PIECES; k++) out->parameters[PIECES].values[k] = chain_source_pieces[k];
    out->parameters[STREAM] = (scout_parameter){.name = "stream", .count = 2, .values = {0, 1}};
    out->parameters[BYTES] = (scout_parameter){.name = "bytes", .count = exhaustive ? WIDTHS : 1};
    for (int k = 0; k < WIDTHS; k++) out->parameters[BYTES].values[k] = widths[k];
    out->parameters[THREADS] = (scout_parameter){
        .name = "threads", .count = exhaustive ? 3 : 2, .values = {256, CHAIN_SOURCE_MOST_THREADS, 128}};
    out->parameters[RESIDENT] = (scout_parameter){.name = "resident", .count = exhaustive ? 3 : 1, .values = {0, 4, 8}};
    return SCOUT_OK;
}

/* --- preparing --- */

/* Borrowed: nvrtc_return. */
static scout_answer code_of(const chain_source *s, const scout_device *device, const nvrtc_code **out, scout_why *why) {
    char *includes[CHAIN_SOURCE_INCLUDES], *const text = chain_source_text(s);
    bool good = text != NULL;
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) {
        includes[k] = chain_source_include(k);
        good = good && includes[k];
    }
    const nvrtc_source source = {text, CHAIN_SOURCE_INCLUDES, (const char *const *)includes,
                                 chain_source_include_names};
    const scout_answer answer =
        good ? nvrtc_borrow(&source, device->capability_major, device->capability_minor, out, why)
             : scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a kernel's source");
    for (int k = 0; k < CHAIN_SOURCE_INCLUDES; k++) free(includes[k]);
    free(text);
    return answer;
}

/* Querying attributes loads the code onto the device before any launch, which may be captured. */
static scout_answer load(scout_plan *p, const nvrtc_code *code, scout_why *why) {
    struct cudaFuncAttributes attributes;
    char name[CHAIN_SOURCE_NAME];
    chain_source_kernel(&p->source, name);
    cudaError_t error = cudaLibraryLoadData(&p->library, code->cubin, NULL, NULL, 0, NULL, NULL, 0);
    if (error != cudaSuccess) p->library = NULL;
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&p->pieces, p->library, name);
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&p->single, p->library, "chain_single");
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)p->pieces);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)p->single);
    return error == cudaSuccess ? SCOUT_OK : cuda_device_answer(error, "loading a generated kernel", why);
}

static void destroy(scout_plan *plan) {
    if (plan->library) (void)cudaLibraryUnload(plan->library);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)needs;
    scout_plan *const p = *out;
    p->threads = values ? (int)values[THREADS] : 256;
    p->resident = values ? (int)values[RESIDENT] : 0;
    p->units = device->multiprocessors;
    p->output = (int)op->tensor_count - 1;
    scout_answer answer = chain_source_of(op, config_of(values), &p->source, why) ? SCOUT_OK : SCOUT_NO;
    const nvrtc_code *code = NULL;
    if (answer == SCOUT_OK) answer = code_of(&p->source, device, &code, why);
    if (code) {
        answer = load(p, code, why);
        nvrtc_return(code);
    }
    return answer;
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
    .plan_bytes = sizeof(scout_plan),
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
    .plan_bytes = sizeof(scout_plan),
};
