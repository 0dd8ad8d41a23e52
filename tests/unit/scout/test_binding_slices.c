/* A batch of products at one of its places: which tensors of the dataflow are slices of its own, and what cannot be. */
#include "scout/op/gemm.h"
#include "tests/unit/scout/fusion_fixture.h"

#include "scout/kinds/kinds.h"
#include "scout/plan/binding.h"

enum { X, W0, W1, Y0, Y1, Z0, Z1, BIAS0, BIAS1, TENSORS, PARTS = 4 };

static operation_tensor tensors[TENSORS];
static operation_occurrence occurrences[PARTS];
static int edges[] = {X, W0, Y0, X, W1, Y1, Y0, BIAS0, Z0, Y1, BIAS1, Z1};
static const int usual[] = {X, W0, Y0, X, W1, Y1, Y0, BIAS0, Z0, Y1, BIAS1, Z1};
static operation_flow flow;
static scout_op fused, parts[PARTS];
static const scout_op *ops[PARTS];
static binding_site site;
static scout_why why;

static void set(int tensor, int64_t elements, int producer, bool constant) {
    tensors[tensor] = (operation_tensor){.bytes = 4 * elements,
                                         .source = -1,
                                         .producer = producer,
                                         .constant = constant,
                                         .type = DTYPE_FP32,
                                         .kept = tensor == Z0 || tensor == Z1};
}

static bool build(const operation *o, scout_op *to) { return kinds_build(o, 1 << 20, &a, to, &why); }

static bool built(const fusion *f) {
    if (!guard_enter(&g)) return false;
    bool good = build(&f->fused, &fused);
    for (int k = 0; good && k < f->op_count; k++) {
        good = build(f->parts[k].operation, &parts[k]);
        ops[k] = &parts[k];
    }
    return good;
}

/* Two products of the same rows, 12 x 128 by 24, with a bias behind each. */
static const fusion *at_its_place(void) {
    memcpy(edges, usual, sizeof edges);
    set(X, 12 * 24, -1, false);
    for (int k = 0; k < 2; k++) {
        set(W0 + k, 24 * 128, -1, true);
        set(Y0 + k, 12 * 128, k, false);
        set(Z0 + k, 12 * 128, 2 + k, false);
        set(BIAS0 + k, 128, -1, true);
    }
    for (int k = 0; k < PARTS; k++)
        occurrences[k] = (operation_occurrence){
            .times = 1, .read = 3 * k, .made = 3 * k + 2, .after = 3 * k + 3, .operands = 3 * k, .operand_count = 3};
    flow = (operation_flow){.tensors = tensors,
                            .occurrences = occurrences,
                            .edges = edges,
                            .operands = edges,
                            .tensor_count = TENSORS,
                            .occurrence_count = PARTS,
                            .edge_count = 3 * PARTS,
                            .operand_count = 3 * PARTS};
    const char *const asked = "{\"pattern\":\"gemm+gemm shared input+bias\",\"ops\":[\"gq\",\"gq\",\"addq\",\"addq\"],"
                              "\"count\":1,\"selected\":1,\"saved_bytes\":8}";
    if (!UNIT_CHECK(fusion_make_of("fp32", 4, asked) && built(&fusions.items[0]))) return NULL;
    return &fusions.items[0];
}

static bool bind(const fusion *f) {
    static const int all[] = {0, 1, 2, 3};
    if (!guard_enter(&g)) return false;
    const binding_fusion about = {&fused, f->parts, ops, f->op_count, binding_reads(&flow, &a)};
    return binding_fused(&flow, all, &about, &site, &why);
}

static void check_slice(int k, int part, int tensor, uint64_t offset, bool copied) {
    const binding_slice *s = &site.slices[k];
    UNIT_INT(site.parts[s->part][s->tensor], tensor);
    UNIT_INT(s->part, part);
    UNIT_INT(s->offset, offset);
    UNIT_INT(s->copied, copied);
}

static void results_and_weights_are_slices(void) {
    const fusion *f = at_its_place();
    if (!f || !UNIT_CHECK(bind(f))) return;
    UNIT_INT(site.slice_count, 6);
    UNIT_INT(site.fused[GEMM_B], W0);
    UNIT_INT(site.fused[GEMM_C], Z0);
    check_slice(0, 0, W0, 0, false);
    check_slice(1, 1, W1, 4 * 24 * 128, false);
    check_slice(2, 2, BIAS0, 0, false);
    check_slice(3, 2, Z0, 0, false);
    check_slice(4, 3, BIAS1, 4 * 128, false);
    check_slice(5, 3, Z1, 4 * 12 * 128, false);
    end();
}

static void a_bias_of_others_is_copied(void) {
    const fusion *f = at_its_place();
    edges[10] = BIAS0; /* one for both */
    if (!f || !UNIT_CHECK(bind(f))) return;
    const int bias = op_tensor(&fused, "bias");
    UNIT_INT(site.fused[bias], -1);
    check_slice(2, 2, BIAS0, 0, true);
    check_slice(4, 3, BIAS0, 4 * 128, true);
    end();
    f = at_its_place();
    edges[4] = W0; /* a weight is not */
    UNIT_CHECK(f && !bind(f) && strstr(why.text, "would have to be copied"));
    end();
}

/* What is changed, and what is said of it then. */
static void is_refused(void (*change)(const fusion *f), const char *text) {
    const fusion *f = at_its_place();
    if (!f) return;
    change(f);
    if (!UNIT_CHECK(!bind(f) && strstr(why.text, text))) printf("it says: %s\n", why.text);
    end();
}

static void make_view(const fusion *f) {
    (void)f;
    tensors[Z1].source = Y0;
}
static void make_variable(const fusion *f) {
    (void)f;
    tensors[W1].constant = false;
}
static void make_strided(const fusion *f) {
    (void)f;
    tensors[BIAS1].lie = 5;
}
static void make_overlap(const fusion *f) { f->parts[3].places[2].offset = 0; }
static void make_gap(const fusion *f) { f->parts[3].places[2].offset = 13 * 128; }
static void make_negative(const fusion *f) { f->parts[3].places[2].offset = -64; }
static void make_odd(const fusion *f) { f->parts[3].places[1].offset = 1; }
static void make_smaller(const fusion *f) {
    (void)f;
    ((scout_tensor *)fused.tensors)[GEMM_C].bytes += 512;
}

static void what_is_no_slice(void) {
    static const char nowhere[] = "nowhere whole";
    is_refused(make_view, nowhere);
    is_refused(make_variable, "has not");
    is_refused(make_strided, "has not");
    is_refused(make_overlap, nowhere);
    is_refused(make_gap, nowhere);
    is_refused(make_negative, nowhere);
    is_refused(make_odd, nowhere);
    is_refused(make_smaller, "have some of");
}

int main(void) {
    UNIT_RUN(results_and_weights_are_slices);
    UNIT_RUN(a_bias_of_others_is_copied);
    UNIT_RUN(what_is_no_slice);
    return unit_end();
}
