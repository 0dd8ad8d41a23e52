/* Symbols to numbers: by option, by customary name, by expression and by default; and what is warned of. */
#include "extract/read/bind.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

typedef struct fixture {
    guard guard;
    arena arena;
    model model;
    bind bind;
} fixture;

static fixture f;

static void bind_all(const read_options *options, const char *const *texts) {
    bind_init(&f.bind, &f.model, options);
    for (; *texts; texts++) bind_see(&f.bind, *texts, 1, false);
    bind_finish(&f.bind);
}

/* Sees the texts (NULL at the end) and binds them; false where that is refused. */
static bool bound(const read_options *options, const char *const *texts) {
    guard_init(&f.guard);
    arena_init(&f.arena, &f.guard, 1 << 24);
    f.model = (model){.arena = &f.arena, .guard = &f.guard};
    if (!guard_enter(&f.guard)) return false;
    bind_all(options, texts);
    return true;
}

/* The number of a text; -1 where it has none, -2 where asking is refused. */
static int64_t size(const char *text) {
    int64_t x = -1;
    if (!guard_enter(&f.guard)) return -2;
    return bind_lookup(&f.bind, text, &x) ? x : -1;
}

static bool warned(const char *what) {
    for (size_t k = 0; k < f.model.warning_count; k++)
        if (strstr(f.model.warnings[k], what)) return true;
    return false;
}

static void customary_names(void) {
    static const char *const batches[] = {"batch", "Batch_Size", "N", "b", "bs", "batch-size", "batch size"};
    static const char *const sequences[] = {"seq", "sequence_length", "S",      "T",
                                            "L",   "seq_len",         "tokens", "Sequence-Length"};
    for (size_t k = 0; k < sizeof batches / sizeof *batches; k++)
        UNIT_CHECK(bind_is_batch(batches[k]) && !bind_is_seq(batches[k]));
    for (size_t k = 0; k < sizeof sequences / sizeof *sequences; k++)
        UNIT_CHECK(bind_is_seq(sequences[k]) && !bind_is_batch(sequences[k]));
    UNIT_CHECK(!bind_is_batch("channels") && !bind_is_seq("past_sequence_length") && !bind_is_batch("") &&
               !bind_is_batch("batches_of_9"));
}

static void options_bind(void) {
    const read_dim dims[] = {{"width", 640}, {"batch", 3}, {"nowhere", 1}};
    const read_options o = {dims, 3, 8, 128};
    const char *const texts[] = {"batch", "N", "seq", "width", "width", NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_INT(size("batch"), 3); /* --dim goes before --batch */
    UNIT_INT(size("N"), 8);
    UNIT_INT(size("seq"), 128);
    UNIT_INT(size("width"), 640);
    UNIT_INT(size("nowhere"), -1);
    UNIT_INT(f.model.dim_count, 4);
    UNIT_TEXT(f.model.dims[0].how, "--dim");
    UNIT_TEXT(f.model.dims[1].how, "--batch");
    UNIT_TEXT(f.model.dims[2].how, "--seq");
    UNIT_CHECK(warned("--dim nowhere=1 binds nothing"));
    UNIT_INT(f.model.warning_count, 1);
    arena_free(&f.arena);
}

static void what_has_no_name_and_stands_first_is_the_batch(void) {
    const read_options o = {NULL, 0, 8, 0};
    static const struct {
        const char *name;
        size_t axis;
        bool made;
        int64_t size;
    } rows[] = {{"X.0", 0, true, 8},  {"X.1", 1, true, 1},    {"unk__616", 0, false, 8}, {"s77", 0, false, 8},
                {"s77", 1, false, 1}, {"boxes", 0, false, 1}, {"s7x", 0, false, 1}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int named = 0; named < 2; named++) { /* beside one that has a usual name */
            const char *const none[] = {named ? "batch" : NULL, NULL};
            guard_init(&f.guard);
            arena_init(&f.arena, &f.guard, 1 << 24);
            f.model = (model){.arena = &f.arena, .guard = &f.guard};
            if (!guard_enter(&f.guard)) abort();
            bind_init(&f.bind, &f.model, &o);
            bind_see(&f.bind, rows[k].name, rows[k].axis, rows[k].made);
            if (none[0]) bind_see(&f.bind, none[0], 0, false);
            bind_finish(&f.bind);
            UNIT_INT(size(rows[k].name), named ? 1 : rows[k].size);
            arena_free(&f.arena);
        }
}

/* The positions of a sequence are a vector of its length. */
static void what_stands_behind_another_is_no_batch(void) {
    const read_options o = {NULL, 0, 8, 0};
    guard_init(&f.guard);
    arena_init(&f.arena, &f.guard, 1 << 24);
    f.model = (model){.arena = &f.arena, .guard = &f.guard};
    if (!guard_enter(&f.guard)) abort();
    bind_init(&f.bind, &f.model, &o);
    bind_see(&f.bind, "s12", 0, false);
    bind_see(&f.bind, "s77", 0, false);
    bind_see(&f.bind, "s12", 1, false);
    bind_finish(&f.bind);
    UNIT_INT(size("s77"), 8);
    UNIT_INT(size("s12"), 1);
    arena_free(&f.arena);
}

static void defaults_are_named_once(void) {
    const read_options o = {.batch = 2};
    const char *const texts[] = {"height", "x.3", "batch", NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_INT(size("height"), 1);
    UNIT_INT(size("x.3"), 1);
    UNIT_CHECK(warned("height, x.3"));
    UNIT_INT(f.model.warning_count, 1);
    arena_free(&f.arena);
}

static void fixed_dimensions_stay(void) {
    const read_options o = {.batch = 2, .seq = 5};
    const char *const texts[] = {NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_CHECK(warned("--batch 2 binds nothing") && warned("--seq 5 binds nothing"));
    arena_free(&f.arena);
}

static void expressions(void) {
    const read_dim dims[] = {{"past_sequence_length", 64}, {"2*k", 10}};
    const read_options o = {dims, 2, 0, 3};
    const char *const texts[] = {"past_sequence_length + 1",
                                 "past_sequence_length + sequence_length",
                                 "2*(seq+1)//3 - 1",
                                 "2*k",
                                 "batch-size-of-mine",
                                 "seq/0",
                                 "seq - 4",
                                 "9223372036854775807*seq",
                                 "a b",
                                 NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_INT(size("past_sequence_length + 1"), 65);
    UNIT_INT(size("past_sequence_length + sequence_length"), 67);
    UNIT_INT(size("2*(seq+1)//3 - 1"), 1);
    UNIT_INT(size("2*k"), 10);
    UNIT_INT(size("batch-size-of-mine"), 1);
    UNIT_INT(size("seq/0"), -2);
    UNIT_INT(size("seq - 4"), -2);
    UNIT_INT(size("9223372036854775807*seq"), -2);
    UNIT_INT(size("a b"), 1); /* no expression: a name of its own */
    arena_free(&f.arena);
}

static void subtractions(void) {
    const read_dim dims[] = {{"q", 9}, {"rest-4", 5}};
    const read_options o = {dims, 2, 2, 8};
    const char *const texts[] = {"s-1",    "s*s-1", "n-s-batch-size+20",
                                 "rest-4", "q-3-2", "r-1",
                                 "10-r-s", "2*u-1", "u-1",
                                 "v-w",    "v",     "w + 4",
                                 "3-1",    "x-1",   "64",
                                 "k-v-k",  NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_INT(size("s-1"), 7);
    UNIT_INT(size("s*s-1"), 63);
    UNIT_INT(size("n-s-batch-size+20"), 12);
    UNIT_INT(size("rest-4"), 5); /* --dim knows it as it is */
    UNIT_INT(size("q-3-2"), 4);
    UNIT_INT(size("r-1"), 1); /* no other place speaks of an r: "10-r-s" has "r-s" */
    UNIT_INT(size("10-r-s"), 9);
    UNIT_INT(size("2*u-1"), 1); /* within an expression a number is subtracted */
    UNIT_INT(size("u-1"), 0);   /* and there is a u now */
    UNIT_INT(size("v-w"), 0);   /* both are known */
    UNIT_INT(size("3-1"), 1);
    UNIT_INT(size("x-1"), 1);
    UNIT_INT(size("64"), 64);
    UNIT_INT(size("k-v-k"), 1);
    UNIT_CHECK(warned("r-1") && warned("x-1") && warned("3-1") && warned("k-v-k") && !warned("s-1"));
    arena_free(&f.arena);
}

/* As sympy prints them. */
static void functions(void) {
    const read_options o = {.batch = 2, .seq = 7};
    static const struct {
        const char *text;
        int64_t size;
    } cases[] = {
        {"floor(s/2)", 3},
        {"floor(s/2 - 1/2)", 3},
        {"floor(s/2 + 1/2)", 4},
        {"ceil(s/2)", 4},
        {"ceiling(s/3)", 3},
        {"floor(-s/2) + 9", 5},
        {"Max(1, s)", 7},
        {"Max(s, 10, n)", 10},
        {"Min(s, n)", 2},
        {"Mod(s, 4)", 3},
        {"s%4", 3},
        {"(s - 9) % 4", 2},
        {"s**2", 49},
        {"s**2-1", 48},
        {"100 - s**2", 51},
        {"-s**2 + 100", 51},
        {"2**n**3", 256},
        {"s // 2 * 2", 6},
        {"s/2*2", 7},
        {"s/2", 3},
        {"n*(floor(s/2)+1)", 8},
        {"floor((s - 3)/n) + 1", 3},
        {"((s//2))", 3},
        {"CeilToInt(IntTrueDiv(s, 2))", 4},
        {"floor (s)", 1}, /* names of their own from here on */
        {"Max()", 1},
        {"Mod(s)", 1},
        {"Mod(s, 2, 3)", 1},
        {"floor(s, 2)", 1},
        {"sin(s)", 1},
        {"s*(s-1", 1},
        {"s++", 1},
        {"floor(", 1},
        {"s**(0-1)", -2}, /* impossible */
        {"2**(s*10)", -2},
        {"s % (s - 7)", -2},
        {"s**99999999999", -2},
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    const char *texts[COUNT + 1] = {NULL};
    for (size_t k = 0; k < COUNT; k++) texts[k] = cases[k].text;
    UNIT_CHECK(bound(&o, texts));
    for (size_t k = 0; k < COUNT; k++)
        if (!UNIT_INT(size(cases[k].text), cases[k].size)) printf("  %s\n", cases[k].text);
    UNIT_CHECK(warned("sin(s)") && warned("s*(s-1") && !warned("floor(s/2)"));
    arena_free(&f.arena);
}

static void past_and_present(void) {
    const read_options o = {.batch = 1, .seq = 7};
    const char *const texts[] = {"batch_size", "sequence_length", "total_sequence_length", "past_sequence_length",
                                 NULL};
    UNIT_CHECK(bound(&o, texts));
    UNIT_INT(size("total_sequence_length"), 8);
    UNIT_CHECK(warned("total_sequence_length (as 8)"));
    arena_free(&f.arena);
}

static void negative_sizes(void) {
    const read_dim dims[] = {{"n", -3}};
    const read_options o = {dims, 1, 0, 0};
    const char *const texts[] = {"n", NULL};
    UNIT_CHECK(!bound(&o, texts));
    UNIT_INT(f.guard.st.code, STATUS_USAGE);
    arena_free(&f.arena);
}

static void hostile_expressions(void) {
    static char deep[4000];
    int64_t x;
    memset(deep, '(', sizeof deep - 1);
    UNIT_CHECK(bind_expr(deep, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    for (size_t k = 0; k + 1 < sizeof deep; k++) deep[k] = k % 2 ? '-' : 's';
    UNIT_CHECK(bind_expr(deep, NULL, true, &x) == BIND_EXPR_OK && x == 1);
    for (size_t k = 0; k + 1 < sizeof deep; k++) deep[k] = "2**"[k % 3];
    UNIT_CHECK(bind_expr(deep, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    memset(deep, '-', sizeof deep - 1);
    UNIT_CHECK(bind_expr(deep, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    UNIT_CHECK(bind_expr("", NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    UNIT_CHECK(bind_expr("99999999999999999999", NULL, true, &x) == BIND_EXPR_IMPOSSIBLE);
    UNIT_CHECK(bind_expr("9223372036854775807/2 + 1/9223372036854775807", NULL, true, &x) == BIND_EXPR_IMPOSSIBLE);
    UNIT_CHECK(bind_expr("(-9223372036854775807 - 1) // -1", NULL, true, &x) == BIND_EXPR_IMPOSSIBLE);
    UNIT_CHECK(bind_expr("7 // 2 + -3", NULL, true, &x) == BIND_EXPR_OK && x == 0);
}

int main(void) {
    UNIT_RUN(customary_names);
    UNIT_RUN(options_bind);
    UNIT_RUN(what_has_no_name_and_stands_first_is_the_batch);
    UNIT_RUN(what_stands_behind_another_is_no_batch);
    UNIT_RUN(defaults_are_named_once);
    UNIT_RUN(fixed_dimensions_stay);
    UNIT_RUN(expressions);
    UNIT_RUN(subtractions);
    UNIT_RUN(functions);
    UNIT_RUN(past_and_present);
    UNIT_RUN(negative_sizes);
    UNIT_RUN(hostile_expressions);
    return unit_end();
}
