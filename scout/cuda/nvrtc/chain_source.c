/* Writing the source of a chain's kernels. The parts that do not depend on the chain are
 * kernels/pass/elementwise_chain.cuh, the steps are chain_steps.c; this file computes where every operand's elements
 * are. */
#include "scout/cuda/nvrtc/chain_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const chain_type *operand_type(const chain_source *s, int k) {
    return chain_steps_type(s->chain.operand[k].type);
}

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
    int narrowest = chain_steps_type(s->output)->size;
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
    int known = chain_steps_type(out->output) != NULL;
    for (int k = 0; k < out->chain.operands; k++) known = known && operand_type(out, k);
    if (!known) {
        (void)scout_say(why, SCOUT_NO, "type", "generated kernels do not support its types");
        return 0;
    }
    out->elements = elements_of(out);
    for (int k = 0; k < out->chain.operands; k++) out->ways[k] = way_of(&out->walk, k, out->elements);
    return 1;
}

int64_t chain_source_tile(const chain_source *s, int threads) {
    return (int64_t)s->elements * s->config.pieces * threads;
}

/* --- operands --- */

/* The places of element `at` in the dimensions that any operand of such a way steps along. */
static void put_places(chain_writer *w, int single, int each) {
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
    chain_steps_put(w, "    offset left = place;\n");
    for (int d = 0; d <= last; d++) {
        if (d + 1 == walk->rank)
            chain_steps_put(w, "    const offset d%d = left;\n", d);
        else
            chain_steps_put(w, "    const offset d%d = left %% %" PRId64 "u; left /= %" PRId64 "u;\n", d, walk->dims[d],
                            walk->dims[d]);
    }
    chain_steps_put(w, "    (void)left;\n");
    for (int d = 0; d <= last; d++) chain_steps_put(w, "    (void)d%d;\n", d);
}

/* "(d0 * 1u + d1 * 128u)" */
static void put_offset(chain_writer *w, int k) {
    const elementwise_walk *walk = &w->s->walk;
    const char *between = "(";
    for (int d = 0; d < walk->rank; d++) {
        if (walk->strides[k][d] == 0) continue;
        chain_steps_put(w, "%sd%d * %" PRId64 "u", between, d, walk->strides[k][d]);
        between = " + ";
    }
    chain_steps_put(w, ")");
}

static void put_structs(chain_writer *w) {
    const chain_source *s = w->s;
    chain_steps_put(w, "struct operands {\n    void *out;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        chain_steps_put(w, "    const void *p%d;\n", k);
        if (s->ways[k] == CHAIN_SOURCE_ALONE) chain_steps_put(w, "    %s c%d;\n", operand_type(s, k)->value, k);
    }
    chain_steps_put(w, "};\n\nstruct piece {\n    int unused;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        const chain_type *t = operand_type(s, k);
        if (s->ways[k] == CHAIN_SOURCE_FULL || s->ways[k] == CHAIN_SOURCE_PIECE)
            chain_steps_put(w, "    raw<%d> r%d;\n", s->elements * t->size, k);
        if (s->ways[k] == CHAIN_SOURCE_SPLAT) chain_steps_put(w, "    %s s%d;\n", t->value, k);
        if (s->ways[k] == CHAIN_SOURCE_EACH) chain_steps_put(w, "    %s e%d[%d];\n", t->value, k, s->elements);
    }
    chain_steps_put(w, "};\n\n");
}

/* Operands that are found element by element. */
static void put_each(chain_writer *w) {
    const chain_source *s = w->s;
    int some = 0;
    for (int k = 0; k < s->chain.operands; k++) some = some || s->ways[k] == CHAIN_SOURCE_EACH;
    if (!some) return;
    chain_steps_put(w, "#pragma unroll\n    for (int i = 0; i < %d; i++) {\n    const offset place = at + i;\n",
                    s->elements);
    put_places(w, 0, 1);
    for (int k = 0; k < s->chain.operands; k++) {
        if (s->ways[k] != CHAIN_SOURCE_EACH) continue;
        chain_steps_put(w, "    x.e%d[i] = one<%s>(g.p%d, ", k, operand_type(s, k)->tag, k);
        put_offset(w, k);
        chain_steps_put(w, ");\n");
    }
    chain_steps_put(w, "    }\n");
}

static void put_fetch(chain_writer *w) {
    const chain_source *s = w->s;
    chain_steps_put(w, "template <bool STREAM> __device__ __forceinline__ void fetch(piece &x, const operands &g, "
                       "offset at) {\n    const offset place = at;\n    (void)place;\n");
    put_places(w, 0, 0);
    for (int k = 0; k < s->chain.operands; k++) {
        const chain_type *t = operand_type(s, k);
        const int splat = s->ways[k] == CHAIN_SOURCE_SPLAT;
        if (s->ways[k] == CHAIN_SOURCE_FULL)
            chain_steps_put(w, "    load<STREAM>(x.r%d, g.p%d, (u64)at * %d);\n", k, k, t->size);
        if (s->ways[k] == CHAIN_SOURCE_PIECE) chain_steps_put(w, "    load<false>(x.r%d, g.p%d, (u64)", k, k);
        if (splat) chain_steps_put(w, "    x.s%d = one<%s>(g.p%d, ", k, t->tag, k);
        if (splat || s->ways[k] == CHAIN_SOURCE_PIECE) put_offset(w, k);
        if (s->ways[k] == CHAIN_SOURCE_PIECE) chain_steps_put(w, " * %d);\n", t->size);
        if (splat) chain_steps_put(w, ");\n");
    }
    put_each(w);
    chain_steps_put(w, "}\n\n");
}

/* Element i of an operand, out of a piece. */
static void put_element(chain_writer *w, int k) {
    switch (w->s->ways[k]) {
    case CHAIN_SOURCE_FULL:
    case CHAIN_SOURCE_PIECE: chain_steps_put(w, "get<%s>(x.r%d, i)", operand_type(w->s, k)->tag, k); break;
    case CHAIN_SOURCE_ALONE: chain_steps_put(w, "g.c%d", k); break;
    case CHAIN_SOURCE_SPLAT: chain_steps_put(w, "x.s%d", k); break;
    case CHAIN_SOURCE_EACH: chain_steps_put(w, "x.e%d[i]", k); break;
    }
}

static void put_finish(chain_writer *w) {
    const chain_source *s = w->s;
    const chain_type *t = chain_steps_type(s->output);
    chain_steps_put(w,
                    "template <bool STREAM> __device__ __forceinline__ void finish(const piece &x, const operands &g, "
                    "offset at) {\n    %s v[%d];\n",
                    t->value, s->elements);
    chain_steps_put(w, "#pragma unroll\n    for (int i = 0; i < %d; i++) v[i] = compute(", s->elements);
    for (int k = 0; k < s->chain.operands; k++) {
        chain_steps_put(w, "%s", k ? ", " : "");
        put_element(w, k);
    }
    chain_steps_put(w, ");\n    raw<%d> y;\n    pack<%s, %d>(v, y);\n    store<STREAM>(g.out, (u64)at * %d, y);\n}\n\n",
                    s->elements * t->size, t->tag, s->elements, t->size);
}

/* A single element: at the end, and where a tensor is not aligned to pieces. */
static void put_single(chain_writer *w) {
    const chain_source *s = w->s;
    chain_steps_put(
        w, "__device__ __forceinline__ void single(const operands &g, offset at) {\n    const offset place = at;\n");
    chain_steps_put(w, "    (void)place;\n");
    put_places(w, 1, 0);
    chain_steps_put(w, "    put_one<%s>(g.out, at, compute(", chain_steps_type(s->output)->tag);
    for (int k = 0; k < s->chain.operands; k++) {
        chain_steps_put(w, "%s", k ? ", " : "");
        if (s->ways[k] == CHAIN_SOURCE_ALONE) {
            chain_steps_put(w, "g.c%d", k);
            continue;
        }
        chain_steps_put(w, "one<%s>(g.p%d, ", operand_type(s, k)->tag, k);
        if (s->ways[k] == CHAIN_SOURCE_FULL)
            chain_steps_put(w, "at");
        else
            put_offset(w, k);
        chain_steps_put(w, ")");
    }
    chain_steps_put(w, "));\n}\n\n");
}

/* --- the kernels --- */

static void put_head(chain_writer *w, const char *name) {
    const chain_source *s = w->s;
    chain_steps_put(w, "extern \"C\" __global__ void __launch_bounds__(%d) %s(", CHAIN_SOURCE_MOST_THREADS, name);
    for (int k = 0; k < s->chain.operands; k++) chain_steps_put(w, "const void *__restrict__ p%d, ", k);
    chain_steps_put(w, "void *__restrict__ out) {\n    operands g;\n    g.out = out;\n");
    for (int k = 0; k < s->chain.operands; k++) {
        chain_steps_put(w, "    g.p%d = p%d;\n", k, k);
        if (s->ways[k] == CHAIN_SOURCE_ALONE)
            chain_steps_put(w, "    g.c%d = one<%s>(p%d, 0);\n", k, operand_type(s, k)->tag, k);
    }
}

/* What costs time to compile is code. So where all blocks are whole, by any number of threads, there is none for parts
 * of them, elements alone are there only where pieces may be cut off, and none of that is unrolled. */
static void put_pieces(chain_writer *w) {
    chain_steps_put(w, "template <int PIECES, bool STREAM> __device__ __forceinline__ void whole_tile("
                       "const operands &g, offset first, offset step) {\n"
                       "    piece x[PIECES];\n"
                       "#pragma unroll\n"
                       "    for (int j = 0; j < PIECES; j++) fetch<STREAM>(x[j], g, first + j * step);\n"
                       "#pragma unroll\n"
                       "    for (int j = 0; j < PIECES; j++) finish<STREAM>(x[j], g, first + j * step);\n}\n\n"
                       "template <int PIECES, bool STREAM> __device__ __forceinline__ void last_tile("
                       "const operands &g, offset first, offset step) {\n"
                       "#pragma unroll 1\n"
                       "    for (int j = 0; j < PIECES; j++) {\n"
                       "        const offset at = first + j * step;\n"
                       "        piece x;\n"
                       "        if (at + VEC <= COUNT) {\n"
                       "            fetch<STREAM>(x, g, at);\n"
                       "            finish<STREAM>(x, g, at);\n"
                       "        } else if constexpr (COUNT %% VEC != 0)\n"
                       "#pragma unroll 1\n"
                       "            for (offset i = at; i < COUNT; i++) single(g, i);\n"
                       "    }\n}\n\n"
                       "template <int PIECES, bool STREAM> __device__ __forceinline__ void pieces("
                       "const operands &g) {\n"
                       "    const offset tile = (offset)VEC * PIECES * blockDim.x;\n"
                       "    for (offset begin = blockIdx.x * tile; begin < COUNT; begin += gridDim.x * tile) {\n"
                       "        const offset first = begin + threadIdx.x * VEC, step = blockDim.x * VEC;\n"
                       "        if constexpr (COUNT %% (VEC * PIECES * THREADS) == 0)\n"
                       "            whole_tile<PIECES, STREAM>(g, first, step);\n"
                       "        else if (PIECES > 1 && COUNT - begin >= tile)\n"
                       "            whole_tile<PIECES, STREAM>(g, first, step);\n"
                       "        else\n"
                       "            last_tile<PIECES, STREAM>(g, first, step);\n"
                       "    }\n}\n\n");
}

static void put_name(const chain_source_config *c, char name[CHAIN_SOURCE_NAME]) {
    snprintf(name, CHAIN_SOURCE_NAME, "chain_pieces_%d%s", c->pieces, c->stream ? "_stream" : "");
}

static void put_kernel(chain_writer *w, int pieces, int stream) {
    char name[CHAIN_SOURCE_NAME];
    put_name(&(chain_source_config){.pieces = pieces, .stream = stream}, name);
    put_head(w, name);
    chain_steps_put(w, "    pieces<%d, %s>(g);\n}\n\n", pieces, stream ? "true" : "false");
}

const int chain_source_pieces[CHAIN_SOURCE_PIECES] = {2, 4, 1};

/* The first kernel is compiled alone: it is needed first, and mostly there is time for no other. Starting the compiler
 * and parsing the chain cost as much as a kernel, so all others are compiled together. */
static void put_kernels(chain_writer *w) {
    const chain_source_config *c = &w->s->config;
    const int first = c->pieces == chain_source_pieces[0] && c->stream == 0;
    put_pieces(w);
    chain_steps_put(w, "} // namespace\n\n");
    for (int k = first ? 0 : 1; k < (first ? 1 : CHAIN_SOURCE_PIECES * 2); k++)
        put_kernel(w, chain_source_pieces[k / 2], k % 2);
    put_head(w, "chain_single");
    chain_steps_put(
        w, "#pragma unroll 1\n"
           "    for (offset at = blockIdx.x * blockDim.x + threadIdx.x; at < COUNT; at += gridDim.x * blockDim.x)\n"
           "        single(g, at);\n}\n");
}

void chain_source_kernel(const chain_source *s, char name[CHAIN_SOURCE_NAME]) { put_name(&s->config, name); }

char *chain_source_text(const chain_source *s) {
    chain_writer w = {.s = s, .text = malloc(CHAIN_STEPS_ROOM)};
    if (!w.text) return NULL;
    /* places are numbers of 32 bits where all of them are far below 2^32: what lies beyond the end is counted as well
     */
    chain_steps_put(&w, "#include \"%s\"\nusing namespace chain;\n\ntypedef %s offset;\n",
                    chain_source_include_names[0], s->walk.count < (int64_t)1 << 31 ? "u32" : "u64");
    chain_steps_put(&w, "enum { VEC = %d, THREADS = %d };\n#define COUNT ((offset)%" PRId64 "ull)\n\nnamespace {\n\n",
                    s->elements, CHAIN_SOURCE_MOST_THREADS, s->walk.count);
    chain_steps_function(&w);
    put_structs(&w);
    put_fetch(&w);
    put_finish(&w);
    put_single(&w);
    put_kernels(&w);
    return w.text;
}

/* --- what it includes --- */

const char *const chain_source_include_names[CHAIN_SOURCE_INCLUDES] = {"kernels/pass/elementwise_chain.cuh",
                                                                       "kernels/pass/elementwise_functions.cuh"};

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
