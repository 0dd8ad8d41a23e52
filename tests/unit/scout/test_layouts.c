/* Regions with their channels last: which there are, what they become, and on random models that a rewritten run does
 * everything once, on tensors that were made before, and that operations of regions have turned ones. */
#include "scout/plan/layouts.h"
#include "tests/unit/scout/operation_fixture.h"

enum { WORKSPACE = 1 << 20 };

static const char block[] =
    "{\"c1\": {\"op\": \"conv\", \"shape\": [2, 8, 6, 6], \"input\": [2, 3, 6, 6], \"kernel\": [3, 3], \"pads\": [1, "
    "1, 1, 1],"
    "  \"inputs\": [\"x\"]},"
    " \"r1\": {\"op\": \"elementwise\", \"what\": \"relu\", \"shape\": [2, 8, 6, 6], \"inputs\": [\"c1\"]},"
    " \"c2\": {\"op\": \"conv\", \"shape\": [2, 8, 6, 6], \"input\": [2, 8, 6, 6], \"kernel\": [3, 3], \"pads\": [1, "
    "1, 1, 1],"
    "  \"group\": 8, \"inputs\": [\"r1\"]},"
    " \"a1\": {\"op\": \"elementwise\", \"what\": \"add\", \"shape\": [2, 8, 6, 6], \"inputs\": [\"c2\", \"r1\"]},"
    " \"m1\": {\"op\": \"reduce\", \"what\": \"mean\", \"shape\": [16, 36], \"inputs\": [\"a1\"]},"
    " \"p1\": {\"op\": \"pool\", \"what\": \"max\", \"shape\": [2, 8, 3, 3], \"input\": [2, 8, 6, 6], \"kernel\": [2, "
    "2],"
    "  \"stride\": [2, 2], \"inputs\": [\"a1\"]},"
    " \"s1\": {\"op\": \"softmax\", \"shape\": [96, 6], \"inputs\": [\"a1\"]}}";

/* ---- the dataflow of such a list: x is tensor 0, entry k makes tensor k + 1, and what is not read is an output ----
 */

enum { MOST = 24, READS = 2 };
typedef struct reads {
    int of[READS]; /* entries; -1: x */
    int count;
} reads;

static int64_t bytes_of(const operation *o) {
    int64_t bytes = 4;
    const bool rows = o->rec.kind == OP_REDUCE; /* one number a row */
    for (int d = 0; d < (rows ? 1 : o->rec.rank); d++) bytes *= o->rec.shape[d];
    return bytes;
}

static void make_flow(const reads *of, int64_t x_bytes) {
    operation_flow *f = list.flow = arena_array(&a, operation_flow, 1);
    f->tensors = arena_array(&a, operation_tensor, list.count + 1);
    f->occurrences = arena_array(&a, operation_occurrence, list.count);
    f->edges = arena_array(&a, int, (int64_t)list.count *(READS + 1));
    f->tensor_count = list.count + 1;
    f->occurrence_count = list.count;
    for (int k = 0; k <= list.count; k++)
        f->tensors[k] = (operation_tensor){.bytes = k > 0 ? bytes_of(&list.items[k - 1]) : x_bytes,
                                           .source = -1,
                                           .producer = k - 1,
                                           .kept = k > 0,
                                           .type = DTYPE_FP32};
    for (int k = 0; k < list.count; k++) {
        operation_occurrence *at = &f->occurrences[k];
        *at = (operation_occurrence){.operation = k, .times = 1, .read = f->edge_count};
        for (int n = 0; n < of[k].count; n++) {
            f->edges[f->edge_count++] = of[k].of[n] + 1;
            f->tensors[of[k].of[n] + 1].kept = false;
        }
        at->made = f->edge_count;
        f->edges[f->edge_count++] = k + 1;
        at->after = f->edge_count;
        set_operands(f, at);
    }
}

static const operation *turned_of(const layouts *l, const char *name) {
    for (int k = 0; k < list.flow->occurrence_count; k++)
        if (strcmp(list.items[list.flow->occurrences[k].operation].name, name) == 0)
            return l->turned[k] >= 0 ? &list.items[l->turned[k]] : NULL;
    abort();
}

static void a_region_and_its_edges(void) {
    static const reads of[] = {{{-1}, 1}, {{0}, 1}, {{1}, 1}, {{2, 1}, 2}, {{3}, 1}, {{3}, 1}, {{3}, 1}};
    UNIT_CHECK(read_text(block, NULL));
    make_flow(of, 2 * 3 * 36 * 4);
    const int own = list.count;
    const layouts *l = layouts_find(&list, WORKSPACE, &a);
    UNIT_INT(l->own, own);
    UNIT_INT(l->region_count, 1);
    UNIT_INT(l->begins[1], 6);
    UNIT_CHECK(turned_of(l, "s1") == NULL);
    const operation *c1 = turned_of(l, "c1"), *m1 = turned_of(l, "m1"), *p1 = turned_of(l, "p1");
    UNIT_TEXT(c1->rec.layout, "nhwc");
    UNIT_INT(c1->rec.shape[3], 8);
    UNIT_INT(oprec_field(&c1->rec, "input")->ints[3], 3);
    UNIT_INT(c1->count, 0);
    UNIT_CHECK(turned_of(l, "r1") == named("r1")); /* the same whatever the order */
    UNIT_TEXT(p1->rec.layout, "nhwc");
    UNIT_INT(oprec_field(&m1->rec, "axes")->ints[1], 2);
    UNIT_INT(oprec_field(&m1->rec, "input")->ints[3], 8);
    int there = 0, back = 0;
    for (int k = 0; k < list.flow->tensor_count; k++) {
        there += l->images[k].turns && l->images[k].there >= 0;
        back += l->images[k].turns && l->images[k].back >= 0;
    }
    UNIT_INT(there, 1); /* x */
    UNIT_INT(back, 2);  /* a1 for the softmax, p1 for the model's output; 16 means are the same in both */
    end();
}

static bool turns_to(const char *shape, const char *inputs, const char *want) {
    oprec from = {.kind = OP_ELEMENTWISE, .what = "mul", .type = DTYPE_FP32}, to;
    int64_t dims[8];
    int rank = 0;
    for (const char *at = shape; *at; rank++) {
        char *rest;
        dims[rank] = strtoll(at, &rest, 10);
        at = *rest ? rest + 1 : rest;
    }
    oprec_set_shape(&from, &a, rank, dims);
    oprec_set_text(&from, "inputs", inputs);
    if (!layouts_turn(&from, NULL, &a, &to)) return want == NULL;
    return want && strcmp(oprec_field(&to, "inputs")->text, want) == 0;
}

static void operands(void) {
    begin();
    UNIT_CHECK(guard_enter(&g));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,8x1x1", "tensor,vector"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,vector", "tensor,5x1"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,6x1", "tensor,6x1x1"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,2x1x1x1", "tensor,2x1x1x1"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,2x8x1x1,scalar", "tensor,2x1x1x8,scalar"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,same", "tensor,same"));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,1x2x8x6x5", NULL));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,3 more", NULL));
    UNIT_CHECK(turns_to("2,8,6,5", "tensor,8x", NULL));
    UNIT_CHECK(turns_to("8,6", "tensor,vector", NULL));
    end();
}

static bool key_becomes(const char *key, const char *want) {
    static const layouts_dims image = {.rank = 4, .of = {2, 8, 6, 5}};
    operation from;
    oprec to;
    operation_from_key(key, &a, &from);
    if (!layouts_turn(&from.rec, &image, &a, &to)) return want == NULL;
    const char *is = oprec_key(&to, &a);
    if (want && strcmp(is, want) == 0) return true;
    fprintf(stderr, "%s\n", is);
    return false;
}

/* One of each sort. */
static void records(void) {
    begin();
    if (!guard_enter(&g)) UNIT_TEXT(g.st.text, "");
    UNIT_CHECK(key_becomes("conv;shape=2,8,6,5;layout=nchw;type=fp32;weight=fp32;input=2,3,6,5;kernel=1,1",
                           "conv;shape=2,6,5,8;layout=nhwc;type=fp32;weight=fp32;input=2,6,5,3;kernel=1,1"));
    UNIT_CHECK(key_becomes("conv;shape=2,8,5;layout=nchw;type=fp32;weight=fp32;input=2,3,5;kernel=1",
                           "conv;shape=2,5,8;layout=nhwc;type=fp32;weight=fp32;input=2,5,3;kernel=1"));
    UNIT_CHECK(key_becomes("conv;shape=2,6,5,8;layout=nhwc;type=fp32;weight=fp32;input=2,6,5,3;kernel=1,1", NULL));
    UNIT_CHECK(key_becomes("pool;what=max;shape=2,8,3,5;layout=nchw;type=fp32;input=2,8,6,5;kernel=2,1;stride=2,1",
                           "pool;what=max;shape=2,3,5,8;layout=nhwc;type=fp32;input=2,6,5,8;kernel=2,1;stride=2,1"));
    UNIT_CHECK(key_becomes("pool;what=resize;shape=2,8,12,5;type=fp32;input=2,8,6,5;mode=linear",
                           "pool;what=resize;shape=2,12,5,8;type=fp32;input=2,6,5,8;mode=linear"));
    UNIT_CHECK(key_becomes("pool;what=roi_align;shape=2,8,3,3;type=fp32;input=2,8,6,5", NULL));
    UNIT_CHECK(key_becomes("reduce;what=mean;shape=16,30;type=fp32",
                           "reduce;what=mean;shape=16,30;type=fp32;axes=1,2;input=2,6,5,8"));
    UNIT_CHECK(key_becomes("reduce;what=mean;shape=30,16;type=fp32", NULL));
    UNIT_CHECK(key_becomes("norm;what=batch;shape=16,30;type=fp32;weight=fp32;bias=1;channels=8",
                           "norm;what=batch;shape=480,1;type=fp32;weight=fp32;bias=1;channels=8"));
    UNIT_CHECK(key_becomes("norm;what=group;shape=16,30;type=fp32;weight=fp32;bias=1;channels=8",
                           "norm;what=group;shape=16,30;layout=nhwc;type=fp32;weight=fp32;bias=1;channels=8"));
    UNIT_CHECK(
        key_becomes("norm;what=group;shape=4,120;type=fp32;weight=fp32;bias=1;channels=8", NULL)); /* of one image */
    UNIT_CHECK(
        key_becomes("norm;what=batch;shape=8,60;type=fp32;weight=fp32;bias=1;channels=8", NULL)); /* of one image */
    UNIT_CHECK(key_becomes("norm;what=batch;shape=32,15;type=fp32;weight=fp32;bias=1;channels=16", NULL));
    UNIT_CHECK(key_becomes("norm;what=layer;shape=16,30;type=fp32;weight=fp32;bias=1", NULL));
    UNIT_CHECK(key_becomes("move;what=concat;shape=2,8,6,5;type=fp32;axis=1;inputs=2;sizes=3,5",
                           "move;what=concat;shape=2,6,5,8;type=fp32;axis=3;inputs=2;sizes=3,5"));
    UNIT_CHECK(key_becomes("move;what=concat;shape=2,8,6,5;type=fp32;axis=2;inputs=2", NULL));
    UNIT_CHECK(key_becomes("move;what=split;shape=2,8,6,5;type=fp32;axis=1;outputs=2",
                           "move;what=split;shape=2,6,5,8;type=fp32;axis=3;outputs=2"));
    UNIT_CHECK(key_becomes("move;what=slice;shape=2,4,6,5;type=fp32;input=2,8,6,5",
                           "move;what=slice;shape=2,6,5,4;type=fp32;input=2,6,5,8"));
    UNIT_CHECK(key_becomes("move;what=slice;shape=2,4,6,5;type=fp32;axes=1;input=2,8,6,5;steps=2", NULL));
    UNIT_CHECK(key_becomes("move;what=repeat;shape=2,8,12,10;type=fp32;input=2,8,6,5",
                           "move;what=repeat;shape=2,12,10,8;type=fp32;input=2,6,5,8"));
    UNIT_CHECK(key_becomes("move;what=pad;shape=2,8,9,12;type=fp32;input=2,8,6,5;pads=0,0,1,3,0,0,2,4",
                           "move;what=pad;shape=2,9,12,8;type=fp32;input=2,6,5,8;pads=0,1,3,0,0,2,4,0"));
    UNIT_CHECK(key_becomes("move;what=transpose;shape=2,4,2,6,5;type=fp32;input=2,2,4,6,5;perm=0,2,1,3,4",
                           "move;what=transpose;shape=60,4,2;type=fp32;input=60,2,4;perm=0,2,1"));
    UNIT_CHECK(key_becomes("move;what=transpose;shape=2,4,3,6,5;type=fp32;input=2,3,4,6,5;perm=0,2,1,3,4", NULL));
    UNIT_CHECK(key_becomes("gemm;shape=4,4,4;layout=nn;type=fp32", NULL));
    end();
}

static bool is_turn(const char *name, int64_t channels, bool back) {
    const layouts_dims image = {.rank = 4, .of = {2, channels, 6, 5}};
    return layouts_is_turn(&named(name)->rec, &image, back);
}

static void transpositions(void) {
    UNIT_CHECK(read_text(
        "{\"a\": {\"op\": \"transpose\", \"shape\": [2, 6, 5, 8], \"input\": [2, 8, 6, 5], \"perm\": [0, 2, 3, 1]},"
        " \"b\": {\"op\": \"transpose\", \"shape\": [2, 30, 8], \"input\": [2, 8, 30], \"perm\": [0, 2, 1]},"
        " \"c\": {\"op\": \"transpose\", \"shape\": [2, 8, 6, 5], \"input\": [2, 6, 5, 8], \"perm\": [0, 3, 1, 2]},"
        " \"d\": {\"op\": \"transpose\", \"shape\": [2, 8, 5, 6], \"input\": [2, 8, 6, 5], \"perm\": [0, 1, 3, 2]},"
        " \"e\": {\"op\": \"transpose\", \"shape\": [2, 5, 6, 8], \"input\": [2, 8, 6, 5], \"perm\": [0, 3, 2, 1]},"
        " \"f\": {\"op\": \"transpose\", \"shape\": [60, 8], \"input\": [8, 60], \"perm\": [1, 0]}}",
        NULL));
    UNIT_CHECK(is_turn("a", 8, false) && !is_turn("a", 8, true) && !is_turn("a", 6, false));
    UNIT_CHECK(is_turn("b", 8, false) && !is_turn("b", 4, false));
    UNIT_CHECK(is_turn("c", 8, true) && !is_turn("c", 8, false));
    UNIT_CHECK(!is_turn("d", 8, false) && !is_turn("d", 8, true));
    UNIT_CHECK(!is_turn("e", 8, false) && !is_turn("e", 8, true));
    UNIT_CHECK(!is_turn("f", 8, false)); /* two images are no single one */
    end();
}

static bool finds_none(const char *text, int64_t x_bytes) {
    static const reads of[] = {{{-1}, 1}};
    const bool read = read_text(text, NULL);
    if (read && x_bytes > 0) make_flow(of, x_bytes);
    const int own = list.count;
    const layouts *l = read ? layouts_find(&list, WORKSPACE, &a) : NULL;
    const bool none = l && l->region_count == 0 && list.count == own;
    end();
    return none;
}

static void what_is_no_region(void) {
    UNIT_CHECK(finds_none("{\"g\": {\"op\": \"gemm\", \"shape\": [4, 4, 4], \"inputs\": [\"x\"]}}", 64));
    UNIT_CHECK(finds_none(
        "{\"c\": {\"op\": \"conv\", \"shape\": [1, 4, 4, 4], \"input\": [1, 4, 4, 4], \"kernel\": [1, 1]}}", 0));
    UNIT_CHECK(finds_none(
        "{\"r\": {\"op\": \"elementwise\", \"what\": \"relu\", \"shape\": [1, 4, 4, 4], \"inputs\": [\"x\"]}}", 256));
    UNIT_CHECK(
        finds_none("{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 1, 1], \"input\": [1, 4, 1, 1], \"kernel\": [1, 1],"
                   " \"inputs\": [\"x\"]}}",
                   16));
    UNIT_CHECK(
        finds_none("{\"c\": {\"op\": \"conv\", \"layout\": \"nhwc\", \"shape\": [1, 4, 4, 8], \"input\": [1, 4, 4, 4],"
                   " \"kernel\": [1, 1], \"inputs\": [\"x\"]}}",
                   256));
}

/* A filter that is computed lies the same in both orders, and would be turned as an image is. */
static void a_computed_filter(void) {
    static const char text[] =
        "{\"i\": {\"op\": \"elementwise\", \"what\": \"relu\", \"shape\": [1, 4, 6, 6], \"inputs\": [\"x\"]},"
        " \"f\": {\"op\": \"softmax\", \"shape\": [96, 3], \"inputs\": [\"x\"]},"
        " \"c\": {\"op\": \"conv\", \"shape\": [1, 8, 6, 6], \"input\": [1, 4, 6, 6], \"kernel\": [3, 3],"
        " \"pads\": [1, 1, 1, 1], \"inputs\": [\"i\"]}}";
    static const reads given[] = {{{-1}, 1}, {{-1}, 1}, {{0}, 1}}, computed[] = {{{-1}, 1}, {{-1}, 1}, {{0, 1}, 2}};
    UNIT_CHECK(read_text(text, NULL));
    make_flow(given, 4 * 36 * 4);
    UNIT_INT(layouts_find(&list, WORKSPACE, &a)->region_count, 1);
    end();
    UNIT_CHECK(read_text(text, NULL));
    make_flow(computed, 4 * 36 * 4);
    list.items[2].rec.weight_type = DTYPE_NONE;
    UNIT_INT(layouts_find(&list, WORKSPACE, &a)->region_count, 0);
    end();
}

/* ---- random models ---- */

static uint32_t state;
static int below(int most) {
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)most);
}

/* Convolutions, passes over elements, softmax and transpositions of what came before: images of two sizes, and the same
 * turned (2 and 3). */
static void random_model(char *text, size_t room, reads *of) {
    static const char *const shapes[] = {"[1, 4, 6, 6]", "[1, 8, 6, 6]", "[1, 6, 6, 4]", "[1, 6, 6, 8]"};
    int size_of[MOST], count = 4 + below(MOST - 4);
    size_t at = (size_t)snprintf(text, room, "{");
    for (int k = 0; k < count; k++) {
        const int from = k > 0 ? below(k) : -1, size = from >= 0 ? size_of[from] : 0, sort = below(6);
        int to = size, other = from;
        char source[16], second[16];
        snprintf(source, sizeof source, from >= 0 ? "o%d" : "x", from);
        for (int n = 0; n < 4 && k > 0; n++) {
            const int tried = below(k);
            if (size_of[tried] == size) other = tried;
        }
        snprintf(second, sizeof second, other >= 0 ? "o%d" : "x", other);
        at += (size_t)snprintf(text + at, room - at, "%s\"o%d\": ", k ? ", " : "", k);
        of[k] = (reads){{from}, 1};
        if (sort < 2 && size < 2) {
            to = below(2);
            at += (size_t)snprintf(
                text + at, room - at,
                "{\"op\": \"conv\", \"shape\": %s, \"input\": %s, \"kernel\": [1, 1], \"inputs\": [\"%s\"]}",
                shapes[to], shapes[size], source);
        } else if (sort < 3) {
            to = (size + 2) % 4;
            at += (size_t)snprintf(
                text + at, room - at,
                "{\"op\": \"transpose\", \"shape\": %s, \"input\": %s, \"perm\": %s, \"inputs\": [\"%s\"]}", shapes[to],
                shapes[size], size < 2 ? "[0, 2, 3, 1]" : "[0, 3, 1, 2]", source);
        } else if (sort < 4) {
            at += (size_t)snprintf(text + at, room - at,
                                   "{\"op\": \"softmax\", \"shape\": [%d, %d], \"inputs\": [\"%s\"]}",
                                   size < 2 ? 24 << size : 36, size < 2 ? 6 : 4 << (size - 2), source);
        } else if (sort < 5) {
            of[k] = (reads){{from, other}, 2};
            at += (size_t)snprintf(
                text + at, room - at,
                "{\"op\": \"elementwise\", \"what\": \"add\", \"shape\": %s, \"inputs\": [\"%s\", \"%s\"]}",
                shapes[size], source, second);
        } else {
            at += (size_t)snprintf(text + at, room - at,
                                   "{\"op\": \"elementwise\", \"what\": \"relu\", \"shape\": %s, \"inputs\": [\"%s\"]}",
                                   shapes[size], source);
        }
        size_of[k] = to;
    }
    snprintf(text + at, room - at, "}");
}

/* What a run as rewritten does wrong; 0: nothing. */
static int idle; /* transpositions of the last one that do nothing */
static int wrongs_of(const layouts *l, const operation_flow *file, const layouts_run *run, const bool *turned) {
    const operation_flow *f = run->flow;
    bool *made = arena_array(&a, bool, f->tensor_count), *met = arena_array(&a, bool, file->occurrence_count);
    int wrong = 0, conversions = 0;
    idle = 0;
    for (int k = 0; k < f->tensor_count; k++) made[k] = k < file->tensor_count && file->tensors[k].producer < 0;
    for (int k = 0; k < f->occurrence_count; k++) {
        const operation_occurrence *is = &f->occurrences[k];
        const int from = run->from[k];
        const bool turns = from >= 0 && l->region[from] >= 0 && turned[l->region[from]];
        for (int e = is->read; e < is->made; e++) wrong += !made[f->edges[e]];
        for (int e = is->made; e < is->after; e++) {
            wrong += made[f->edges[e]] || f->tensors[f->edges[e]].producer != k;
            made[f->edges[e]] = true;
        }
        const int converts = run->converts[k];
        wrong += (from < 0) != (converts >= 0);
        if (from < 0) {
            conversions++;
            const int read = f->edges[is->read], to = f->edges[is->made], turned_one = read == converts ? to : read;
            wrong += is->made - is->read != 1 || is->after - is->made != 1 || (read == converts) == (to == converts);
            wrong += is->operation != (read == converts ? l->images[converts].there : l->images[converts].back);
            wrong += turned_one < file->tensor_count && turned_one != l->images[converts].same;
            continue;
        }
        wrong += met[from] || run->at[from] != k;
        met[from] = true;
        const operation_occurrence *was = &file->occurrences[from];
        if (l->idle[from] >= 0 && turned[l->idle[from]]) {
            wrong += is->operation != -1 || is->after != is->read || list.items[was->operation].rec.kind != OP_MOVE;
            idle++;
            continue;
        }
        wrong += is->operation != (turns ? l->turned[from] : was->operation);
        wrong += is->after - is->read != was->after - was->read;
        for (int e = 0; e < was->after - was->read; e++) {
            const int before = file->edges[was->read + e], now = f->edges[is->read + e];
            const bool image = turns && l->images[before].turns;
            const int same = image ? l->images[before].same : before;
            wrong += same >= 0 ? now != same : now < file->tensor_count;
        }
    }
    for (int k = 0; k < file->occurrence_count; k++) wrong += !met[k];
    for (int k = 0; k < file->tensor_count; k++) wrong += file->tensors[k].kept && !made[k];
    return wrong + (conversions != run->conversions);
}

static void random_models(void) {
    enum { MODELS = 400 };
    static char text[16384];
    int wrong = 0, regions = 0, conversions = 0, neither = 0, free = 0;
    for (int n = 0; n < MODELS; n++) {
        state = (uint32_t)n * 77 + 5;
        reads of[MOST];
        random_model(text, sizeof text, of);
        if (!read_text(text, NULL)) {
            wrong++;
            end();
            continue;
        }
        make_flow(of, 4 * 36 * 4);
        const layouts *l = layouts_find(&list, WORKSPACE, &a);
        bool *turned = arena_array(&a, bool, l->region_count);
        for (int k = 0; k < l->region_count; k++) turned[k] = below(3) > 0;
        if (l->region_count > 0) {
            const layouts_run *run = layouts_rewrite(l, list.flow, turned, &a);
            wrong += wrongs_of(l, list.flow, run, turned);
            conversions += run->conversions;
            free += idle;
        }
        regions += l->region_count;
        neither += l->region_count == 0;
        end();
    }
    UNIT_INT(wrong, 0);
    UNIT_CHECK(regions > MODELS && conversions > MODELS && free > MODELS / 2 && neither < MODELS / 4);
}

int main(void) {
    UNIT_RUN(a_region_and_its_edges);
    UNIT_RUN(operands);
    UNIT_RUN(records);
    UNIT_RUN(transpositions);
    UNIT_RUN(what_is_no_region);
    UNIT_RUN(a_computed_filter);
    UNIT_RUN(random_models);
    return unit_end();
}
