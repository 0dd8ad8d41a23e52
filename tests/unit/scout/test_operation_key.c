/* A key tells all of an operation: what is read back from it has the same key, and the same tensors for candidates. The
 * operations are those of every operator of ONNX (tests/unit/cuda/kinds.json). */
#include "scout/input/operation_internal.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

static guard g;
static arena a;
static operation_list list;

static void begin(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    list = (operation_list){.items = NULL};
}

static void end(void) {
    operation_list_free(&list);
    arena_free(&a);
}

static bool read_file(const char *file) {
    if (!guard_enter(&g)) return false;
    operation_read(file, NULL, &a, &list);
    return true;
}

static bool build(const operation *o, scout_op *op) {
    scout_why why;
    return o->rec.kind != OP_UNKNOWN && kinds_build(o, 1 << 20, &a, op, &why);
}

static bool read_key(const char *key, operation *out) {
    if (!guard_enter(&g)) {
        printf("%s\n", g.st.text);
        return false;
    }
    operation_from_key(key, &a, out);
    return true;
}

static bool same_tensors(const scout_op *x, const scout_op *y) {
    bool same = x->tensor_count == y->tensor_count && x->input == y->input && x->output == y->output &&
                x->weight == y->weight && x->accumulate == y->accumulate && x->tf32 == y->tf32;
    for (uint32_t k = 0; same && k < x->tensor_count; k++) {
        const scout_tensor *t = &x->tensors[k], *u = &y->tensors[k];
        same = t->role == u->role && t->type == u->type && t->bytes == u->bytes && t->rank == u->rank &&
               t->below == u->below && strcmp(t->name, u->name) == 0 && memcmp(t->dims, u->dims, sizeof t->dims) == 0 &&
               memcmp(t->strides, u->strides, sizeof t->strides) == 0;
    }
    return same;
}

/* How large the bias of a softmax is, its bytes tell and not its key. */
static bool is_told(const operation *o) {
    return o->rec.shape && !(o->rec.kind == OP_SOFTMAX && oprec_field(&o->rec, "bias"));
}

static void every_operation_is_read_back_from_its_key(void) {
    int built = 0;
    begin();
    if (!UNIT_CHECK(read_file("tests/unit/cuda/kinds.json"))) return;
    for (int k = 0; k < list.count; k++) {
        const operation *o = &list.items[k];
        operation *back = arena_array(&a, operation, 1);
        scout_op *ops = arena_array(&a, scout_op, 2);
        if (!is_told(o) || !build(o, &ops[0])) continue;
        const char *key = operation_key(o, &a);
        if (!UNIT_CHECK(read_key(key, back)) || !UNIT_TEXT(operation_key(back, &a), key)) break;
        const bool same = build(back, &ops[1]) && same_tensors(&ops[0], &ops[1]);
        if (!UNIT_CHECK(same)) printf("  %s\n", key);
        built++;
    }
    UNIT_CHECK(built > 300);
    end();
}

/* What a changed key tells is what it says, or it is refused; and candidates are asked about no nonsense. */
static bool reads_as_itself(const char *key) {
    operation *back = arena_array(&a, operation, 1);
    scout_op *op = arena_array(&a, scout_op, 1);
    if (!guard_enter(&g)) return true;
    operation_from_key(key, &a, back);
    (void)build(back, op);
    return strcmp(operation_key(back, &a), key) == 0;
}

static void a_changed_key_is_refused_or_means_what_it_says(void) {
    static const char bytes[] = "0123456789,;=%-.xabe \x7f";
    uint64_t state = 1;
    begin();
    if (!UNIT_CHECK(read_file("tests/unit/cuda/kinds.json"))) return;
    for (int k = 0; k < list.count; k++) {
        const char *key = operation_key(&list.items[k], &a);
        const size_t length = strlen(key);
        for (int times = 0; times < 20; times++) {
            const arena_mark mark = arena_save(&a);
            char *changed = arena_strndup(&a, key, length);
            for (int n = 0; n < 1 + times % 3; n++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                changed[(state >> 33) % length] = bytes[(state >> 20) % (sizeof bytes - 1)];
            }
            if (!UNIT_CHECK(reads_as_itself(changed))) printf("  %s\n", changed);
            arena_rewind(&a, mark);
        }
    }
    end();
}

static void a_sparse_weight_is_read_back(void) {
    operation back;
    static const char key[] = "gemm;shape=16,64,64;layout=nn;type=fp32;weight=fp32;weight_side=b;sparsity=0.875;"
                              "sparse_pattern=BLOCK_SPARSE;sparse_block=32;zeros=00ff00ff00ff00ff";
    begin();
    if (UNIT_CHECK(read_key(key, &back))) {
        UNIT_CHECK(back.sparsity == 0.875 && back.sparse_block == 32 && back.zeros_hash == 0x00ff00ff00ff00ffu);
        UNIT_TEXT(back.pattern, "BLOCK_SPARSE");
    }
    end();
}

static void texts_keep_their_punctuation(void) {
    operation back;
    begin();
    if (UNIT_CHECK(read_key("gemm;shape=2,3,4;layout=nn;type=fp32;equation=a%3db%3bc%25;rounding=1.5e-07", &back))) {
        UNIT_TEXT(oprec_field(&back.rec, "equation")->text, "a=b;c%");
        UNIT_CHECK(oprec_field(&back.rec, "rounding")->real == 1.5e-7);
    }
    end();
}

int main(void) {
    UNIT_RUN(every_operation_is_read_back_from_its_key);
    UNIT_RUN(a_changed_key_is_refused_or_means_what_it_says);
    UNIT_RUN(a_sparse_weight_is_read_back);
    UNIT_RUN(texts_keep_their_punctuation);
    return unit_end();
}
