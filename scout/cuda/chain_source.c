/* Writing the source of a chain's kernels. The parts that do not depend on the chain are kernels/elementwise_chain.cuh;
 * here stand the steps, and where every operand's elements are. */
#include "scout/cuda/chain_source.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16 }; /* more than 16 steps and 11 operands can fill */

typedef struct writer {
    const chain_source *s;
    char *text;
    size_t used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(w->text + w->used, ROOM - w->used, format, args);
    va_end(args);
    if (n > 0) w->used += (size_t)n < ROOM - w->used ? (size_t)n : ROOM - w->used - 1;
}

/* --- types --- */

/* Of a type: its name in kernels/elementwise_chain.cuh, what it is computed in, bytes of an element. */
typedef struct type_row {
    uint32_t type;
    const char *tag, *value;
    int size;
} type_row;

static const type_row *type_of(uint32_t type) {
    static const type_row rows[] = {
        {SCOUT_FP32, "fp32", "float", 4}, {SCOUT_FP16, "fp16", "float", 2}, {SCOUT_BF16, "bf16", "float", 2},
        {SCOUT_INT64, "int64", "i64", 8}, {SCOUT_INT32, "int32", "int", 4}, {SCOUT_INT8, "int8", "i8", 1},
        {SCOUT_UINT8, "uint8", "u8", 1},  {SCOUT_BOOL, "truth", "bool", 1},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) return &rows[k];
    return NULL;
}

static const type_row *operand_type(const chain_source *s, int k) { return type_of(s->chain.operand[k].type); }

/* --- how operands lie --- */

static int lies_as_output(const elementwise_walk *w, int k) {
    int64_t dense = 1;
    for (int d = 0; d < w->rank; d++) {
        if (w->strides[k][d] != dense) return 0;
        dense *= w->dims[d];
    }
    return 1;
}

static int is_alone(const elementwise_walk *w, int k) {
    for (int d = 0; d < w->rank; d++)
        if (w->strides[k][d] != 0 && w->dims[d] > 1) return 0;
    return 1;
}

static chain_source_way way_of(const elementwise_walk *w, int k, int elements) {
    if (is_alone(w, k)) return CHAIN_SOURCE_ALONE;
    if (lies_as_output(w, k)) return CHAIN_SOURCE_FULL;
    if (w->dims[0] % elements != 0) return CHAIN_SOURCE_EACH;
    if (w->strides[k][0] == 0) return CHAIN_SOURCE_SPLAT;
    if (w->strides[k][0] != 1) return CHAIN_SOURCE_EACH;
    for (int d = 1; d < w->rank; d++)
        if (w->strides[k][d] % elements != 0) return CHAIN_SOURCE_EACH;
    return CHAIN_SOURCE_PIECE;
}

/* The narrowest of what is loaded or stored in pieces has `bytes` of them. */
static int elements_of(const chain_source *s) {
    int narrowest = type_of(s->output)->size;
    for (int k = 0; k < s->chain.operands; k++)
        if (s->walk.strides[k][0] == 1 && operand_type(s, k)->size < narrowest) narrowest = operand_type(s, k)->size;
    return s->config.bytes / narrowest;
}

int chain_source_of(const scout_op *op, chain_source_config config, chain_source *out, scout_why *why) {
    memset(out, 0, sizeof *out);
    if (!elementwise_chain_of(op, &out->chain, why)) return 0;
    out->config = config;
    out->output = op->output;
    out->walk = elementwise_walk_of(op);
    int known = type_of(out->output) != NULL;
    for (int k = 0; k < out->chain.operands; k++) known = known && operand_type(out, k);
    if (!known) {
        (void)scout_say(why, SCOUT_NO, "type", "generated kernels do not have its types");
        return 0;
    }
    out->elements = elements_of(out);
    for (int k = 0; k < out->chain.operands; k++) out->ways[k] = way_of(&out->walk, k, out->elements);
    return 1;
}

int64_t chain_source_tile(const chain_source *s, int threads) {
    return (int64_t)s->elements * s->config.pieces * threads;
}

/* --- the steps --- */

static void put_numbers(writer *w, const elementwise_step *s) {
    const double numbers[2] = {s->numbers.alpha, s->numbers.beta};
    for (int k = 0; k < 2; k++) {
        const float value = (float)numbers[k];
        const double x = numbers[k];
        const int64_t whole = x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (elementwise_class_of(s->type) == ELEMENTWISE_FLOAT)
            put(w, ", __int_as_float(0x%08" PRIx32 ")", bits);
        else
            put(w, ", (i64)0x%016" PRIx64 "ull", (uint64_t)whole);
    }
}

/* Operand i of a step by name: one of the function's parameters, or the step before. */
static void put_operand(writer *w, int step, int i) {
    const int from = w->s->chain.steps[step].from[i];
    put(w, from < 0 ? "v%d" : "a%d", from < 0 ? step - 1 : from);
}

static void put_cast(writer *w, int step) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const int from_truth = s->type == SCOUT_BOOL, to_truth = s->result == SCOUT_BOOL;
    put(w, "(%s)(", type_of(s->result)->value);
    put_operand(w, step, 0);
    put(w, "%s)", to_truth && !from_truth ? " != 0" : from_truth && !to_truth ? " ? 1 : 0" : "");
}

/* "f_max(f_max(a0, a1), a2)" for what takes any number; of one it is itself. */
static void put_call(writer *w, int step, const char *name, const char *prefix, int nested) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const int groups = nested ? s->inputs - 1 : 1;
    for (int g = 0; g < groups; g++) put(w, "%s%s(", prefix, name);
    for (int i = 0; i < s->inputs; i++) {
        put(w, "%s", i ? ", " : "");
        put_operand(w, step, i);
        if (nested ? i > 0 : i + 1 == s->inputs) {
            put_numbers(w, s);
            put(w, ")");
        }
    }
}

static void put_expression(writer *w, int step) {
    const elementwise_step *s = &w->s->chain.steps[step];
    const elementwise_operator *is = elementwise_operator_at(s->id);
    const int class = elementwise_class_of(s->type);
    if (!is) {
        put_cast(w, step);
    } else if (s->id == ELEMENTWISE_where) {
        put_operand(w, step, 0);
        put(w, " ? ");
        put_operand(w, step, 1);
        put(w, " : ");
        put_operand(w, step, 2);
    } else if (s->id == ELEMENTWISE_mean) {
        put_call(w, step, "sum", "f_", 1);
        put(w, " * (1.0f / %d)", s->inputs);
    } else if (class == ELEMENTWISE_WHOLE) {
        char name[48];
        snprintf(name, sizeof name, "%s<%s>", is->what, s->type == SCOUT_INT64 ? "i64" : "int");
        put(w, "(%s)", type_of(s->result)->value);
        put_call(w, step, name, "i_", is->most > 2);
    } else {
        put_call(w, step, is->what, class == ELEMENTWISE_FLOAT ? "f_" : "b_",
                 is->most > 2 && s->id != ELEMENTWISE_biasadd);
    }
}

static void put_steps(writer *w) {
    const elementwise_chain *c = &w->s->chain;
    put(w, "__device__ __forceinline__ %s compute(", type_of(w->s->output)->value);
    for (int k = 0; k < c->operands; k++) put(w, "%s%s a%d", k ? ", " : "", operand_type(w->s, k)->value, k);
    put(w, ") {\n");
    for (int k = 0; k < c->count; k++) {
        put(w, "    const %s v%d = ", type_of(c->steps[k].result)->value, k);
        put_expression(w, k);
        put(w, ";\n");
    }
    put(w, "    return v%d;\n}\n\n", c->count - 1);
}

/* --- operands --- */

/* The places of element `at` in the dimensions that any operand of such a way steps along. */
static void put_places(writer *w, int single, int each) {
    const elementwise_walk *walk = &w->s->walk;
    int last = -1;
    for (int k = 0; k < walk->inputs; k++) {
        const chain_source_way way = w->s->ways[k];
        const int here = single ? way != CHAIN_SOURCE_FULL && way != CHAIN_SOURCE_ALONE
                                : (way == CHAIN_SOURCE_EACH) == each && way >= CHAIN_SOURCE_PIECE;
        for (int d = 0; here && d < walk->rank; d++)
            if (walk->strides[k][d] != 0 && d > last) last = d;
    }
    if (last < 0) return;
    put(w, "    index left = place;\n");
    for (int d = 0; d <= last; d++) {
        if (d + 1 == walk->rank)
            put(w, "    const index d%d = left;\n", d);
        else
            put(w, "    const index d%d = left %% %" PRId64 "u; left /= %" PRId64 "u;\n", d, walk->dims[d],
                walk->dims[d]);
    }
    put(w, "    (void)left;\n");
    for (int d = 0; d <= last; d++) put(w, "    (void)d%d;\n", d);
}

/* "(d0 * 1u + d1 * 128u)" */
static void put_offset(writer *w, int k) {
    const elementwise_walk *walk = &w->s->walk;
    const char *between = "(";
    for (int d = 0; d < walk->rank; d++) {
        if (walk->strides[k][d] == 0) continue;
        put(w, "%sd%d * %" PRId64 "u", between, d, walk->strides[k][d]);
        between = " + ";
    }
    put(w, ")");
}

static void put_structs(writer *w) {
    const chain_source *s = w->s;
    put(w, "struct operands {\n    void *out;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        put(w, "    const void *p%d;\n", k);
        if (s->ways[k] == CHAIN_SOURCE_ALONE) put(w, "    %s c%d;\n", operand_type(s, k)->value, k);
    }
    put(w, "};\n\nstruct piece {\n    int unused;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        const type_row *t = operand_type(s, k);
        if (s->ways[k] == CHAIN_SOURCE_FULL || s->ways[k] == CHAIN_SOURCE_PIECE)
            put(w, "    raw<%d> r%d;\n", s->elements * t->size, k);
        if (s->ways[k] == CHAIN_SOURCE_SPLAT) put(w, "    %s s%d;\n", t->value, k);
        if (s->ways[k] == CHAIN_SOURCE_EACH) put(w, "    %s e%d[%d];\n", t->value, k, s->elements);
    }
    put(w, "};\n\n");
}

/* Operands that are found element by element. */
static void put_each(writer *w) {
    const chain_source *s = w->s;
    int some = 0;
    for (int k = 0; k < s->chain.operands; k++) some = some || s->ways[k] == CHAIN_SOURCE_EACH;
    if (!some) return;
    put(w, "#pragma unroll\n    for (int i = 0; i < %d; i++) {\n    const index place = at + i;\n", s->elements);
    put_places(w, 0, 1);
    for (int k = 0; k < s->chain.operands; k++) {
        if (s->ways[k] != CHAIN_SOURCE_EACH) continue;
        put(w, "    x.e%d[i] = one<%s>(g.p%d, ", k, operand_type(s, k)->tag, k);
        put_offset(w, k);
        put(w, ");\n");
    }
    put(w, "    }\n");
}

static void put_fetch(writer *w) {
    const chain_source *s = w->s;
    put(w, "__device__ __forceinline__ void fetch(piece &x, const operands &g, index at) {\n");
    put(w, "    const index place = at;\n    (void)place;\n");
    put_places(w, 0, 0);
    for (int k = 0; k < s->chain.operands; k++) {
        const type_row *t = operand_type(s, k);
        const int splat = s->ways[k] == CHAIN_SOURCE_SPLAT;
        if (s->ways[k] == CHAIN_SOURCE_FULL)
            put(w, "    load<%s>(x.r%d, g.p%d, (u64)at * %d);\n", s->config.stream ? "true" : "false", k, k, t->size);
        if (s->ways[k] == CHAIN_SOURCE_PIECE) put(w, "    load<false>(x.r%d, g.p%d, (u64)", k, k);
        if (splat) put(w, "    x.s%d = one<%s>(g.p%d, ", k, t->tag, k);
        if (splat || s->ways[k] == CHAIN_SOURCE_PIECE) put_offset(w, k);
        if (s->ways[k] == CHAIN_SOURCE_PIECE) put(w, " * %d);\n", t->size);
        if (splat) put(w, ");\n");
    }
    put_each(w);
    put(w, "}\n\n");
}

/* Element i of an operand, out of a piece. */
static void put_element(writer *w, int k) {
    switch (w->s->ways[k]) {
    case CHAIN_SOURCE_FULL:
    case CHAIN_SOURCE_PIECE: put(w, "get<%s>(x.r%d, i)", operand_type(w->s, k)->tag, k); break;
    case CHAIN_SOURCE_ALONE: put(w, "g.c%d", k); break;
    case CHAIN_SOURCE_SPLAT: put(w, "x.s%d", k); break;
    case CHAIN_SOURCE_EACH: put(w, "x.e%d[i]", k); break;
    }
}

static void put_finish(writer *w) {
    const chain_source *s = w->s;
    const type_row *t = type_of(s->output);
    put(w, "__device__ __forceinline__ void finish(const piece &x, const operands &g, index at) {\n    %s v[%d];\n",
        t->value, s->elements);
    put(w, "#pragma unroll\n    for (int i = 0; i < %d; i++) v[i] = compute(", s->elements);
    for (int k = 0; k < s->chain.operands; k++) {
        put(w, "%s", k ? ", " : "");
        put_element(w, k);
    }
    put(w, ");\n    raw<%d> y;\n    pack<%s, %d>(v, y);\n    store<%s>(g.out, (u64)at * %d, y);\n}\n\n",
        s->elements * t->size, t->tag, s->elements, s->config.stream ? "true" : "false", t->size);
}

/* One element by itself: at the end, and where a tensor does not begin where pieces may. */
static void put_single(writer *w) {
    const chain_source *s = w->s;
    put(w, "__device__ __forceinline__ void single(const operands &g, index at) {\n    const index place = at;\n");
    put(w, "    (void)place;\n");
    put_places(w, 1, 0);
    put(w, "    put_one<%s>(g.out, at, compute(", type_of(s->output)->tag);
    for (int k = 0; k < s->chain.operands; k++) {
        put(w, "%s", k ? ", " : "");
        if (s->ways[k] == CHAIN_SOURCE_ALONE) {
            put(w, "g.c%d", k);
            continue;
        }
        put(w, "one<%s>(g.p%d, ", operand_type(s, k)->tag, k);
        if (s->ways[k] == CHAIN_SOURCE_FULL)
            put(w, "at");
        else
            put_offset(w, k);
        put(w, ")");
    }
    put(w, "));\n}\n\n");
}

/* --- the kernels --- */

static void put_head(writer *w, const char *name) {
    const chain_source *s = w->s;
    put(w, "extern \"C\" __global__ void %s(", name);
    for (int k = 0; k < s->chain.operands; k++) put(w, "const void *__restrict__ p%d, ", k);
    put(w, "void *__restrict__ out) {\n    operands g;\n    g.out = out;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        put(w, "    g.p%d = p%d;\n", k, k);
        if (s->ways[k] == CHAIN_SOURCE_ALONE) put(w, "    g.c%d = one<%s>(p%d, 0);\n", k, operand_type(s, k)->tag, k);
    }
}

static void put_kernels(writer *w) {
    put_head(w, "chain_pieces");
    put(w, "    const index tile = (index)VEC * PIECES * blockDim.x;\n"
           "    for (index begin = blockIdx.x * tile; begin < COUNT; begin += gridDim.x * tile) {\n"
           "        const index first = begin + threadIdx.x * VEC, step = blockDim.x * VEC;\n"
           "        if (COUNT - begin >= tile) {\n"
           "            piece x[PIECES];\n"
           "#pragma unroll\n"
           "            for (int j = 0; j < PIECES; j++) fetch(x[j], g, first + j * step);\n"
           "#pragma unroll\n"
           "            for (int j = 0; j < PIECES; j++) finish(x[j], g, first + j * step);\n"
           "            continue;\n"
           "        }\n"
           "        for (int j = 0; j < PIECES; j++) {\n"
           "            const index at = first + j * step;\n"
           "            piece x;\n"
           "            if (at + VEC <= COUNT) {\n"
           "                fetch(x, g, at);\n"
           "                finish(x, g, at);\n"
           "            } else\n"
           "                for (index i = at; i < COUNT; i++) single(g, i);\n"
           "        }\n"
           "    }\n}\n\n");
    put_head(w, "chain_single");
    put(w, "    for (index at = blockIdx.x * blockDim.x + threadIdx.x; at < COUNT; at += gridDim.x * blockDim.x)\n"
           "        single(g, at);\n}\n");
}

char *chain_source_text(const chain_source *s) {
    writer w = {.s = s, .text = malloc(ROOM)};
    if (!w.text) return NULL;
    /* places are numbers of 32 bits where all of them are far below 2^32: what lies beyond the end is counted as well
     */
    put(&w, "#include \"%s\"\nusing namespace chain;\n\ntypedef %s index;\n", chain_source_include_names[0],
        s->walk.count < (int64_t)1 << 31 ? "u32" : "u64");
    put(&w, "enum { VEC = %d, PIECES = %d };\n#define COUNT ((index)%" PRId64 "ull)\n\nnamespace {\n\n", s->elements,
        s->config.pieces, s->walk.count);
    put_steps(&w);
    put_structs(&w);
    put_fetch(&w);
    put_finish(&w);
    put_single(&w);
    put(&w, "} // namespace\n\n");
    put_kernels(&w);
    return w.text;
}

/* --- what it includes --- */

const char *const chain_source_include_names[CHAIN_SOURCE_INCLUDES] = {"kernels/elementwise_chain.cuh",
                                                                       "kernels/elementwise_functions.cuh"};

/* Lines, as the build wrote them from these files; each ends with NULL. */
static const char *const chain_lines[] = {
#include "elementwise_chain.inc"
    NULL};
static const char *const function_lines[] = {
#include "elementwise_functions.inc"
    NULL};

char *chain_source_include(int include) {
    const char *const *lines = include == 0 ? chain_lines : function_lines;
    size_t length = 1, used = 0;
    for (int k = 0; lines[k]; k++) length += strlen(lines[k]);
    char *text = malloc(length);
    if (!text) return NULL;
    for (int k = 0; lines[k]; k++) {
        const size_t n = strlen(lines[k]);
        memcpy(text + used, lines[k], n);
        used += n;
    }
    text[used] = 0;
    return text;
}
