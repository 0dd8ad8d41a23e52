/* Symbols to numbers: by option, by customary name, by expression and by default; and what is warned of. */
#include "extract/read/bind.h"
#include "tests/unit/unit.h"

typedef struct fixture {
    guard guard;
    arena arena;
    model model;
    bind bind;
} fixture;

static fixture f;

static void bind_all(const read_options *options, const char *const *texts) {
    bind_init(&f.bind, &f.model, options);
    for (; *texts; texts++) bind_see(&f.bind, *texts);
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
    UNIT_CHECK(bind_expr(deep, NULL, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    memset(deep, '-', sizeof deep - 1);
    UNIT_CHECK(bind_expr(deep, NULL, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    UNIT_CHECK(bind_expr("", NULL, NULL, true, &x) == BIND_EXPR_NO_EXPRESSION);
    UNIT_CHECK(bind_expr("99999999999999999999", NULL, NULL, true, &x) == BIND_EXPR_IMPOSSIBLE);
    UNIT_CHECK(bind_expr("7 // 2 + -3", NULL, NULL, true, &x) == BIND_EXPR_OK && x == 0);
}

int main(void) {
    UNIT_RUN(customary_names);
    UNIT_RUN(options_bind);
    UNIT_RUN(defaults_are_named_once);
    UNIT_RUN(fixed_dimensions_stay);
    UNIT_RUN(expressions);
    UNIT_RUN(past_and_present);
    UNIT_RUN(negative_sizes);
    UNIT_RUN(hostile_expressions);
    return unit_end();
}
