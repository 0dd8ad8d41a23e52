/* The one ABI between the harness and everything that computes: devices, libraries' candidates, own kernels and
 * plugins. Plain C without another header of the project, so that a kernel can be built against this file alone.
 *
 * Three levels: a device owns handles and knows its identity; a candidate is an immutable descriptor of one way to
 * compute a kind of operation; a plan is a candidate prepared for one operation and one variant.
 *
 * A shared object exports `scout_plugin_entry`. Every struct that crosses the border begins with its own size, as the
 * writer's compiler knew it: the reader looks at no member beyond that (SCOUT_HAS), and new members go to the end. */
#ifndef SCOUT_PLUGIN_H
#define SCOUT_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SCOUT_ABI            3u
#define SCOUT_HAS(p, member) ((p)->size >= offsetof(__typeof__(*(p)), member) + sizeof((p)->member))

typedef enum scout_answer {
    SCOUT_OK = 0,
    SCOUT_NO,        /* not here, not for this operation: UNSUPPORTED */
    SCOUT_NO_MEMORY, /* the device or the host has none left */
    SCOUT_FAILED,    /* this plan failed; the device is fine */
    SCOUT_LOST       /* the device can no longer be used from this process (poisoned context, device gone) */
} scout_answer;

/* Why an answer is not SCOUT_OK: a code of the closed list in scout/terms/reason.h ("type", "shape", "layout",
 * "library", "memory", "error", …) and a sentence for a person. */
typedef struct scout_why {
    char code[24];
    char text[232];
} scout_why;

__attribute__((format(printf, 4, 5))) static inline scout_answer scout_say(scout_why *why, scout_answer answer,
                                                                           const char *code, const char *format, ...) {
    va_list args;
    if (!why) return answer;
    snprintf(why->code, sizeof why->code, "%s", code);
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return answer;
}

/* Numbered as in ONNX; common/dtype.h has the rest. */
enum {
    SCOUT_NONE = 0,
    SCOUT_FP32 = 1,
    SCOUT_UINT8 = 2,
    SCOUT_INT8 = 3,
    SCOUT_UINT16 = 4,
    SCOUT_INT16 = 5,
    SCOUT_INT32 = 6,
    SCOUT_INT64 = 7,
    SCOUT_BOOL = 9, /* a byte, 0 or 1 */
    SCOUT_FP16 = 10,
    SCOUT_FP64 = 11,
    SCOUT_UINT32 = 12,
    SCOUT_UINT64 = 13,
    SCOUT_BF16 = 16,
    SCOUT_FP8E4M3 = 17,
    SCOUT_FP8E4M3FNUZ = 18,
    SCOUT_FP8E5M2 = 19,
    SCOUT_FP8E5M2FNUZ = 20,
    SCOUT_UINT4 = 21, /* of 4 and 2 bits: the lowest bits of a byte first */
    SCOUT_INT4 = 22,
    SCOUT_FP4E2M1 = 23,
    SCOUT_FP8E8M0 = 24, /* a power of two */
    SCOUT_UINT2 = 25,
    SCOUT_INT2 = 26
};

/* Kinds of operations, numbered as op_kind in common/oprec.h. */
enum {
    SCOUT_GEMM = 1,
    SCOUT_CONV,
    SCOUT_ATTENTION,
    SCOUT_NORM,
    SCOUT_SOFTMAX,
    SCOUT_ELEMENTWISE,
    SCOUT_REDUCE,
    SCOUT_POOL,
    SCOUT_EMBEDDING,
    SCOUT_RECURRENT,
    SCOUT_ROTARY,
    SCOUT_MOVE,
    SCOUT_QUANTIZE
};

enum { SCOUT_MAX_RANK = 8, SCOUT_MAX_TENSORS = 72, SCOUT_MAX_PARAMETERS = 8 };

typedef enum scout_role {
    SCOUT_INPUT,  /* an activation: produced just before, as warm as its producer leaves it */
    SCOUT_WEIGHT, /* a constant that a plan may pack */
    SCOUT_SIDE,   /* a small constant: bias, scales */
    SCOUT_OUTPUT
} scout_role;

/* How a run of the model leaves a tensor's memory for this operation. */
enum {
    SCOUT_LEFT_ALIKE,   /* as its own last launch does, which read or made it; or it is not known */
    SCOUT_LEFT_WRITTEN, /* an operation not long before has made it, and none has read it since */
    SCOUT_LEFT_DISTANT  /* so much else was used since that a cache has lost it */
};

typedef struct scout_tensor {
    uint32_t size;
    uint32_t role;
    uint32_t type;
    uint32_t rank;
    int64_t dims[SCOUT_MAX_RANK];
    int64_t strides[SCOUT_MAX_RANK]; /* in elements; 0: the same for all of that dimension */
    uint64_t bytes;                  /* of storage */
    char name[16];                   /* "a", "b", "c", "bias", "scales"; docs/kinds_tensors.md lists them */
    /* Its values. 0: any; above: whole numbers from 0 to below - 1 (rows, positions), of floating
     * types boxes within a square of that side (x, y, x, y); under: numbers of about 2 to this
     * power (a weight, so that sums are about 1, where an activation bends). */
    int64_t below;
    uint32_t left; /* SCOUT_LEFT_… */
} scout_tensor;

typedef struct scout_field {
    const char *name;
    int64_t number; /* where text is NULL */
    const char *text;
} scout_field;

/* An operation as candidates see it. Everything is borrowed for the life of the plans made from it. */
typedef struct scout_op {
    uint32_t size;
    uint32_t kind;
    const char *key;                  /* canonical text: two operations are the same where these are */
    const char *what, *layout, *mask; /* NULL where the kind has none */
    uint32_t rank;
    int64_t shape[SCOUT_MAX_RANK];
    uint32_t input, weight, accumulate, output; /* types; weight as stored */
    uint32_t tf32;                              /* fp32 products may be rounded to tf32 */
    uint64_t workspace_limit;                   /* bytes a plan may ask for */
    uint32_t field_count, tensor_count;
    const scout_field
        *fields; /* the other dimensions by name: batch, batch_stride_a, bias, activation, block_size, … */
    const scout_tensor *tensors;
    double flops;                     /* really required */
    double bytes_read, bytes_written; /* compulsory */
    double crowd_written; /* of what a run of the model has in the cache in the place of distant tensors, the share that
                             it has written there */
} scout_op;

typedef struct scout_device scout_device;     /* a device's own */
typedef struct scout_plan scout_plan;         /* a candidate's own */
typedef struct scout_sequence scout_sequence; /* a device's own: recorded launches */
typedef struct scout_check scout_check;       /* a reference's own: what a right output looks like */

/* --- candidates --- */

/* One named parameter of a candidate's domain. The first value is the default. */
typedef struct scout_parameter {
    char name[24];
    uint32_t count;
    int64_t values[512];
    const char *const *labels; /* `count` texts instead of numbers, or NULL */
} scout_parameter;

typedef struct scout_domain {
    uint32_t count; /* 0: the candidate has one variant */
    scout_parameter parameters[SCOUT_MAX_PARAMETERS];
} scout_domain; /* "name=value,name=value" is the name of a variant: the longest has room in 159 characters */

typedef struct scout_plan_needs {
    uint32_t size;
    uint32_t packs;      /* index of the tensor that pack() replaces, plus 1; 0: none */
    uint64_t pack_bytes; /* of its replacement */
    uint64_t workspace_bytes;
    /* 1: the library says of this plan that its sums may be less exact than the operation asks for. Where its results
     * are too far off, the plan is UNSUPPORTED ("precision") and not WRONG. */
    uint32_t coarse;
} scout_plan_needs;

/* What a launch gets: `tensors[k]` belongs to op->tensors[k] (the packed one where the plan packs it). */
typedef struct scout_args {
    uint32_t size;
    void *const *tensors;
    void *workspace;
    void *stream; /* CUDA: a cudaStream_t; CPU: NULL */
} scout_args;

enum {
    SCOUT_BASELINE = 1, /* its first variant is the library's default */
    SCOUT_OWN = 2,      /* a kernel of the project or of a plugin, not of a library */
    SCOUT_LAST = 4      /* runs only while the best so far is below the early-exit fraction of the ceiling */
};

typedef struct scout_candidate {
    uint32_t size;
    uint32_t kind;
    uint32_t flags;
    int32_t priority;              /* high ones run first */
    const char *name;              /* "cublaslt", "gemm_stream"; unique within a device's list */
    const char *about;             /* one line for --list-candidates */
    const char *library;           /* its version is this candidate's version; NULL: own code */
    const char *approach;          /* the approach of a verdict for it: LIBRARY_TUNE, CUSTOM_KERNEL, SPARSE_24, … */
    const char *const *precisions; /* for --list-candidates, ends with NULL */
    /* Cheap and pure; SCOUT_NO says why. device may be NULL: there is no context yet. The other functions are called
     * only for what is supported. */
    scout_answer (*supports)(const scout_op *op, scout_device *device, scout_why *why);
    /* The variants worth trying for this operation; NULL: one variant without parameters. `exhaustive`: all there are.
     */
    scout_answer (*domain)(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out, scout_why *why);
    /* Whether this combination (values[k] of parameter k) exists; NULL: all do. */
    int (*allows)(const scout_op *op, scout_device *device, const int64_t *values);
    scout_answer (*prepare)(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why);
    scout_answer (*pack)(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why);
    /* Enqueues only: no allocation, no waiting, capturable. All side tensors (scales) come through args. */
    scout_answer (*launch)(scout_plan *plan, const scout_args *args, scout_why *why);
    /* A JSON object of what the dispatch table needs to run this again; returns its length as snprintf does. NULL: its
     * name is all. */
    int (*describe)(const scout_plan *plan, char *json, size_t room);
    void (*destroy)(scout_plan *plan); /* may be NULL where plan_bytes is not 0 */
    /* As pack, for a weight that cannot be repacked without its side tensors (scales): `tensors` as in scout_args,
     * unpacked. Used instead of pack where it is there; may be NULL. */
    scout_answer (*pack_tensors)(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why);
    /* Above 0: the harness allocates the plan. prepare finds it in *plan, so many bytes, all zero. destroy releases
     * what the plan holds, also after a prepare that failed halfway; then the harness frees the plan. 0: prepare
     * allocates the plan, where it succeeds, and destroy frees it. */
    size_t plan_bytes;
} scout_candidate;

/* Plans are made, described and ended through these three. `needs` is zero, its size apart; *plan is NULL where it
 * fails. On a lost device nothing is released. */
static inline int scout_allocates(const scout_candidate *c) { return SCOUT_HAS(c, plan_bytes) && c->plan_bytes > 0; }

static inline void scout_destroy(const scout_candidate *c, scout_plan *plan) {
    if (plan && c->destroy) c->destroy(plan);
    if (scout_allocates(c)) free(plan);
}

static inline scout_answer scout_prepare(const scout_candidate *c, const scout_op *op, scout_device *device,
                                         const int64_t *values, scout_plan **plan, scout_plan_needs *needs,
                                         scout_why *why) {
    const int allocates = scout_allocates(c);
    *plan = allocates ? (scout_plan *)calloc(1, c->plan_bytes) : NULL;
    if (allocates && !*plan) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    const scout_answer answer = c->prepare(op, device, values, plan, needs, why);
    if (answer == SCOUT_OK) return answer;
    if (answer != SCOUT_LOST) scout_destroy(c, *plan);
    *plan = NULL;
    return answer;
}

static inline int scout_describe(const scout_candidate *c, const scout_plan *plan, char *json, size_t room) {
    return c->describe ? c->describe(plan, json, room) : snprintf(json, room, "{\"kernel\":\"%s\"}", c->name);
}

/* --- devices --- */

typedef struct scout_library {
    char name[32];
    char version[48];
    char path[256];
} scout_library;

/* A device, as far as it can be described without a context on it. */
typedef struct scout_identity {
    uint32_t size;
    int32_t ordinal;
    char name[96];
    char uuid[64];       /* which one of its class */
    char capability[48]; /* "9.0"; of a CPU its vector extensions */
    int32_t units;       /* multiprocessors; cores that are used */
    uint64_t memory_bytes;
    uint64_t cache_bytes; /* last level */
    double power_limit_w; /* 0: not known */
    char driver[48];      /* full version; its branch is what stands before the first dot */
    uint32_t library_count;
    scout_library libraries[8];
} scout_identity;

/* Not-a-number where it is not known. */
typedef struct scout_telemetry {
    uint32_t size;
    double clock_mhz, memory_clock_mhz, power_w, temperature_c;
    uint64_t throttle;      /* bits as the driver has them; 0: none */
    char throttle_text[96]; /* "power cap", "thermal", … */
    double most_clock_mhz;  /* the highest that it may run at */
} scout_telemetry;

/* How an output is compared: every element within tolerance * (|want| + spread), where spread is the root of the sum of
 * the squares of its terms. A projection adds up many roundings; the reference sets its bound (docs/tolerances.md).
 * tolerance 0: equal. */
typedef struct scout_verdict {
    uint32_t size;
    double worst;           /* largest |got - want| / (|want| + spread); infinite for what is not a number */
    double worst_projected; /* of the projections that cover the whole output, in units that `tolerance` bounds */
    uint64_t at;            /* flat position of the worst sampled element */
    double got, want;
    uint64_t compared; /* elements sampled */
    uint64_t wrong;    /* samples and projections beyond the tolerance */
} scout_verdict;

/* The reference of a kind, in fp64. `begin` computes the right outputs from the inputs in `tensors`: at least 4,096
 * samples or all, and a random projection that covers every output. `compare` compares an output with them. */
typedef struct scout_reference {
    uint32_t size;
    uint32_t kind;
    scout_answer (*begin)(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why);
    scout_answer (*compare)(scout_check *check, const void *output, double tolerance, scout_verdict *verdict,
                            scout_why *why);
    void (*end)(scout_check *check);
    /* As compare, for the output that op->tensors[tensor] is; NULL: there is one output. */
    scout_answer (*compare_at)(scout_check *check, uint32_t tensor, const void *output, double tolerance,
                               scout_verdict *verdict, scout_why *why);
} scout_reference;

enum {
    SCOUT_FILL_NORMAL,
    SCOUT_FILL_BYTE,
    SCOUT_FILL_SCALE,
    SCOUT_FILL_BELOW,
    SCOUT_FILL_NEAR,
    SCOUT_FILL_SMALL
}; /* normal: mean 0, deviation 1 (integers: rounded, scaled to their range; scales of quantised weights: positive, near
1/64). below: int32 or int64 from 0 on, all below a bound alike; of fp32, fp16 and
bf16 boxes (x, y, x, y) in a square of that side, a quarter to half as wide and high; near: from the last 64th below it,
lengths that leave almost all to do. The bound (up to 2^31) is the upper half of seed: SCOUT_FILL_SEED. small: normal
numbers over 2 to the power of that half, 64 at most; of types with 16 bits or more. */

#define SCOUT_FILL_SEED(bound, seed) ((uint64_t)(bound) << 32 | ((seed)&0xffffffffu))

/* The nodes of a graph. */
typedef struct scout_composition {
    uint32_t size;
    uint32_t kernels;
    uint32_t copies; /* and fills */
    uint32_t others; /* all other nodes that take time */
} scout_composition;

/* One thing that the device did of a sequence: a kernel, a copy or a fill. */
typedef struct scout_trace_event {
    double start_s, end_s; /* of the device's own clock */
    uint32_t launch;       /* that it is of, from 0 */
    char name[160];        /* the kernel's; "copy", "fill" */
} scout_trace_event;

/* Zeros of a matrix: counts, from which scout/input/sparsity.c derives a pattern. */
typedef struct scout_zeros {
    uint32_t size;
    int64_t nonzeros, fewest, most; /* of the matrix; of the emptiest and of the fullest row */
    int64_t same_rows;              /* that are equal to another one before */
    int64_t blocks[4], pieces[4]; /* of 16, 32, 64 and 128 a side, or 1 by that, with any number: those at edges too */
    int two_of_four_by_row, two_of_four_by_col;
} scout_zeros;

/* Sums over numbers beside those that are wanted, where both are finite: the squares of their differences, and of what
 * is wanted. */
typedef struct scout_distance {
    uint32_t size;
    double off, all;
    uint64_t apart;    /* finite in one of both alone */
    uint64_t infinite; /* not finite in what is there */
} scout_distance;

typedef scout_answer (*scout_enqueue)(void *context, uint32_t launch, void *stream, scout_why *why);

typedef enum scout_forget {
    SCOUT_FORGET_PROGRAM, /* it is in no cache of instructions */
    SCOUT_FORGET_TENSORS, /* tensors lie as scout_tensor.left says; on a host where other cores have left them */
    SCOUT_FORGET_NOTHING  /* one small kernel has run, and caches are as they were */
} scout_forget;

typedef struct scout_device_api {
    uint32_t size;
    const char *name; /* "cpu", "cuda": the word before the colon in --device */
    /* Devices that are there; 0 with a reason where there is none (no driver, too old, no memory). No context. */
    int32_t (*count)(scout_why *why);
    scout_answer (*identify)(int32_t ordinal, scout_identity *out, scout_why *why);
    scout_answer (*open)(int32_t ordinal, scout_device **out, scout_why *why);
    void (*close)(scout_device *device); /* not called where has_graphs and the process ends in order */

    scout_answer (*memory)(scout_device *device, uint64_t *free_bytes, uint64_t *total_bytes, scout_why *why);
    scout_answer (*alloc)(scout_device *device, uint64_t bytes, void **out, scout_why *why); /* 512-byte aligned */
    void (*release)(scout_device *device, void *memory);
    scout_answer (*upload)(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why);
    scout_answer (*download)(scout_device *device, void *to, const void *from, uint64_t bytes, scout_why *why);
    scout_answer (*fill)(scout_device *device, void *to, uint64_t bytes, uint32_t type, uint32_t how, uint64_t seed,
                         scout_why *why); /* SCOUT_FILL_BYTE: the lowest byte of seed */
    scout_answer (*checksum)(scout_device *device, const void *data, uint64_t bytes, uint64_t *sum, scout_why *why);

    /* Records `launches` calls of `enqueue` (with 0, 1, …) as one sequence: a graph where `graph` is set and the device
     * has graphs, else called anew at each run. */
    scout_answer (*record)(scout_device *device, int graph, uint32_t launches, scout_enqueue enqueue, void *context,
                           scout_sequence **out, scout_why *why);
    /* Runs the sequence `repeats` times back to back and writes the seconds of each; returns when all are done. */
    scout_answer (*run)(scout_device *device, scout_sequence *sequence, uint32_t repeats, double *seconds,
                        scout_why *why);
    void (*drop)(scout_device *device, scout_sequence *sequence);
    int has_graphs;
    double resolution_s;                                 /* of the timer behind run */
    double (*now)(scout_device *device);                 /* seconds of a steady clock */
    void (*pause)(scout_device *device, double seconds); /* lets the device idle */
    void (*telemetry)(scout_device *device, scout_telemetry *out);

    /* Ceilings. Each enqueues one launch. */
    scout_answer (*stream)(scout_device *device, const void *read, uint64_t read_bytes, void *written,
                           uint64_t written_bytes, void *stream,
                           scout_why *why);                                    /* the fastest way to read and write */
    scout_answer (*empty)(scout_device *device, void *stream, scout_why *why); /* a launch that does nothing */
    /* `operations` exponentials (or rounded up; the number really done comes back). */
    scout_answer (*special)(scout_device *device, uint64_t operations, uint64_t *done, void *stream, scout_why *why);
    /* Multiply-adds in registers at this type, at least `flops`; SCOUT_NO where the device has no such probe. */
    scout_answer (*arithmetic)(scout_device *device, uint32_t type, uint64_t flops, uint64_t *done, void *stream,
                               scout_why *why);
    /* The datasheet's figure, 0 where none is known: TFLOP/s of a type (tf32: fp32 with tf32 set), or TB/s for
     * SCOUT_NONE. */
    double (*datasheet)(const scout_identity *identity, uint32_t type, int tf32);

    uint32_t reference_count, candidate_count;
    const scout_reference *const *references;
    const scout_candidate *const *candidates;

    /* Tells a profiler where to begin (1) and to end (0) looking; nothing else depends on it. May be NULL. */
    void (*profile)(scout_device *device, int on);
    /* What a recorded sequence is made of, of all its launches; SCOUT_NO where it is no graph. NULL: cannot tell. */
    scout_answer (*made_of)(scout_device *device, scout_sequence *sequence, scout_composition *out, scout_why *why);
    /* Counts the zeros of a dense matrix that lies on the device; SCOUT_NO or NULL: the host has to. */
    scout_answer (*zeros)(scout_device *device, const void *matrix, uint32_t type, int64_t rows, int64_t cols,
                          scout_zeros *out, scout_why *why);
    /* What a person should know of what was found on this machine, each once; it may grow with every call of another
     * function. NULL: no more of them. The function may be NULL. */
    const char *(*note)(uint32_t index);
    /* Seconds, ever growing, that the device's threads were ready to run and did not, for other work had their places.
     * NULL: nothing is known of it. */
    double (*stolen)(scout_device *device);
    /* Runs several sequences one after another without a pause and writes the seconds of each; returns when all are
     * done. NULL: `run` is called for each. */
    scout_answer (*play)(scout_device *device, scout_sequence *const *sequences, uint32_t count, double *seconds,
                         scout_why *why);
    /* The mean clock, in Hz, of each interval of the last `run` or `play`, as the device itself counted its cycles.
     * Returns how many of `most` are known. NULL: none. */
    uint32_t (*clocks)(scout_device *device, double *hz, uint32_t most);
    /* Whether other threads may list and prepare the device's own candidates, each on a device of its own (`open`),
     * while this thread measures, and this one may launch, describe and destroy what they have prepared. NULL: one
     * thread does all. Called by the thread that measures, which it makes ready for such launches, before the first of
     * them, and perhaps again; what asks no library is launched without it. SCOUT_NO: what they prepare is not used. */
    scout_answer (*beside)(scout_device *device, scout_why *why);
    /* Has everything loaded that a launch needs, and runs nothing: `enqueue` is called once, on a stream that only
     * notes it. What goes wrong shows in the launch itself. May be NULL. */
    void (*load)(scout_device *device, scout_enqueue enqueue, void *context);
    /* Makes a graph of `launches` calls of `enqueue`, runs it, and hands over what the device did, in the order of its
     * beginning: `*count` of at most `most`. A tracer stretches what lies between kernels. A device without graphs
     * hands over the launches themselves, without names. SCOUT_NO: none is there, or it saw more than that. May be
     * NULL. */
    scout_answer (*trace)(scout_device *device, uint32_t launches, scout_enqueue enqueue, void *context, uint32_t most,
                          scout_trace_event *events, uint32_t *count, scout_why *why);
    /* Enqueues launches, also while a sequence is recorded, behind which a launch of op on these tensors finds the
     * caches as other work in a model leaves them. NULL: what fetching from there takes is not told. */
    scout_answer (*forget)(scout_device *device, scout_forget what, const scout_op *op, void *const *tensors,
                           void *stream, scout_why *why);
    /* `count` numbers on the device held against those that are wanted, of types fp64, fp32, fp16, bf16, int64, int32,
     * int8 and uint8. A device that has it copies within its own memory, too, by `upload`. NULL: the host does it. */
    scout_answer (*distance)(scout_device *device, uint32_t want_type, const void *want, uint32_t got_type,
                             const void *got, uint64_t count, scout_distance *out, scout_why *why);
} scout_device_api;

/* --- plugins --- */

/* What a shared object brings: a device, candidates for a device that is there already, or both. */
typedef struct scout_plugin {
    uint32_t size;
    uint32_t abi; /* SCOUT_ABI */
    const char *name, *version;
    const scout_device_api *device; /* NULL: none */
    const char *for_device;         /* the device's name that `candidates` are for; NULL: none */
    uint32_t candidate_count;
    const scout_candidate *const *candidates;
} scout_plugin;

/* NULL where it cannot serve this ABI. */
typedef const scout_plugin *scout_plugin_entry_fn(uint32_t abi);
#define SCOUT_PLUGIN_ENTRY "scout_plugin_entry"

#endif
