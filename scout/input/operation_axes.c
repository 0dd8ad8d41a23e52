/* Several operations of one kind from the command line: ranges in --shape, and lists behind --axis. Every combination
 * is an entry of the short form, read and checked as one by hand is. */
#include "scout/input/operation_internal.h"

#include "common/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 8, MOST_VALUES = 256, MOST_OPERATIONS = 1024 };

typedef struct sweep {
    operation_reader reader;
    operation_axes *axes;
    const char *words[MOST_DIMS]; /* of --shape */
    const char *names[MOST_DIMS];
    int rank;
} sweep;

/* What people call the dimensions of a shape; the others are dim1, dim2, … */
static const struct {
    op_kind kind;
    const char *names[5];
} called[] = {{OP_GEMM, {"M", "N", "K"}},
              {OP_ATTENTION, {"B", "H", "S", "D"}},
              {OP_NORM, {"rows", "cols"}},
              {OP_SOFTMAX, {"rows", "cols"}},
              {OP_REDUCE, {"rows", "cols"}}};

/* ---- values ---- */

static int64_t read_whole(const sweep *s, const char *text, char **end) {
    const bool digits = *text >= '0' && *text <= '9' && strspn(text, "0123456789") <= 15;
    if (!digits) operation_fail(&s->reader, "a range is written as 1..4096, 1..4096:x2 or 64..512:+64");
    return strtoll(text, end, 10);
}

static bool is_whole(const char *text) { return strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18; }

static bool is_same(const char *one, const char *other) {
    if (!is_whole(one) || !is_whole(other)) return strcmp(one, other) == 0;
    return strtoll(one, NULL, 10) == strtoll(other, NULL, 10);
}

static void add_value(const sweep *s, operation_axis *axis, const char *value) {
    for (int k = 0; k < axis->count; k++)
        if (is_same(axis->values[k], value)) operation_fail(&s->reader, "%s has %.40s twice", axis->name, value);
    if (axis->count == MOST_VALUES) operation_fail(&s->reader, "%s has more than %d values", axis->name, MOST_VALUES);
    axis->values[axis->count++] = value;
}

/* "1..4096", each twice the one before; ":x4", four times; ":+64", so much more. */
static void add_range(const sweep *s, operation_axis *axis, const char *text) {
    char *end = NULL;
    int64_t at = read_whole(s, text, &end), last, step = 2;
    bool times = true;
    if (strncmp(end, "..", 2) != 0) operation_fail(&s->reader, "'%.40s' is no range such as 1..4096:x2", text);
    last = read_whole(s, end + 2, &end);
    if (*end == ':') {
        times = end[1] == 'x';
        if (!times && end[1] != '+') operation_fail(&s->reader, "a step is :x2 or :+64, not '%.20s'", end);
        step = read_whole(s, end + 2, &end);
    }
    if (!*end && step < 1 + times)
        operation_fail(&s->reader, "'%.40s': a step of :x is 2 or more, one of :+ is 1 or more", text);
    if (!*end && last < at)
        operation_fail(&s->reader, "'%.40s' runs downwards; write %lld..%lld", text, (long long)last, (long long)at);
    if (*end || at < 1) operation_fail(&s->reader, "'%.40s' is no range such as 1..4096:x2", text);
    for (; at <= last; at = times ? at * step : at + step)
        add_value(s, axis, arena_printf(s->reader.arena, "%lld", (long long)at));
}

/* Values that hold commas themselves, as "local,0.25" does, have semicolons between them. */
static void add_words(const sweep *s, operation_axis *axis, const char *words) {
    const char *const between = strchr(words, ';') ? ";" : ",";
    for (const char *at = words;; at++) {
        const size_t n = strcspn(at, between);
        const char *one = arena_strndup(s->reader.arena, at, n);
        if (n == 0) operation_fail(&s->reader, "--axis %s: a value is missing", axis->name);
        if (strstr(one, ".."))
            add_range(s, axis, one);
        else
            add_value(s, axis, one);
        at += n;
        if (!*at) return;
    }
}

/* ---- axes ---- */

static int dimension_of(const sweep *s, const char *name) {
    for (int k = 0; k < s->rank; k++)
        if (strcmp(s->names[k], name) == 0) return k;
    return -1;
}

static operation_axis *new_axis(const sweep *s, const char *name) {
    operation_axes *all = s->axes;
    if (strcmp(name, "op") == 0 || strcmp(name, "shape") == 0)
        operation_fail(&s->reader, "%s is no axis; a range such as 1..4096:x2 may stand in --shape", name);
    for (int k = 0; k < all->count; k++)
        if (strcmp(all->items[k].name, name) == 0) operation_fail(&s->reader, "%s is given twice", name);
    for (int k = 0; k < s->reader.set_count; k++)
        if (strncmp(s->reader.sets[k], name, strlen(name)) == 0 && s->reader.sets[k][strlen(name)] == '=')
            operation_fail(&s->reader, "%s is given twice, by --axis and --set", name);
    if (all->count == OPERATION_AXES) operation_fail(&s->reader, "%d axes are the most", OPERATION_AXES);
    operation_axis *const axis = &all->items[all->count++];
    axis->name = name;
    axis->values = arena_array(s->reader.arena, const char *, MOST_VALUES);
    axis->dimension = dimension_of(s, name);
    return axis;
}

static bool is_dimension(const char *name) {
    bool is = strncmp(name, "dim", 3) == 0 && name[3] && is_whole(name + 3);
    for (size_t row = 0; row < sizeof called / sizeof called[0]; row++)
        for (int k = 0; called[row].names[k]; k++) is = is || strcmp(called[row].names[k], name) == 0;
    return is;
}

/* The sets, and of each axis that is a member its first value: some kinds are nothing without it. */
static operation_reader first_of(const sweep *s, const operation_words *said) {
    operation_reader reader = s->reader;
    const char **sets = arena_array(s->reader.arena, const char *, said->set_count + said->axis_count + 1);
    for (int k = 0; k < said->set_count; k++) sets[k] = said->sets[k];
    for (int k = 0; k < said->axis_count; k++) {
        const char *const axis = said->axes[k], *const equals = strchr(axis, '=');
        const char *const name = arena_strndup(s->reader.arena, axis, (size_t)(equals - axis));
        const size_t length = strcspn(equals, strchr(equals, ';') ? ";" : ",");
        const char *const range = strstr(equals, "..");
        const size_t first = range && range < equals + length ? (size_t)(range - equals) : length;
        bool set = first < 2 || is_dimension(name) || (!operation_is_field(name) && strcmp(name, "what") != 0);
        for (int n = 0; n < reader.set_count; n++)
            set = set || strncmp(sets[n], axis, (size_t)(equals - axis) + 1) == 0;
        if (!set) sets[reader.set_count++] = arena_strndup(s->reader.arena, axis, (size_t)(equals - axis) + first);
    }
    reader.sets = sets;
    return reader;
}

/* Its words, the first value of each range as a shape that tells the kind, and what the kind calls its dimensions. */
static void read_shape(sweep *s, const operation_words *said) {
    arena *const a = s->reader.arena;
    const char *const kind = said->kind, *const shape = said->shape;
    operation_list one;
    const char *plain = "";
    for (const char *at = shape;; at++) {
        const size_t n = strcspn(at, ",");
        if (s->rank == MOST_DIMS) operation_fail(&s->reader, "a shape has %d dimensions at most", MOST_DIMS);
        s->words[s->rank++] = arena_strndup(a, at, n);
        const char *const range = strstr(s->words[s->rank - 1], "..");
        if (!range && strchr(s->words[s->rank - 1], 'x'))
            operation_fail(&s->reader, "'%.40s': a shape has commas between its dimensions, such as 64,512,512", shape);
        plain = arena_printf(a, "%s%s%.*s", plain, *plain ? "," : "",
                             (int)(range ? range - s->words[s->rank - 1] : (long)n), s->words[s->rank - 1]);
        at += n;
        if (!*at) break;
    }
    operation_reader first = first_of(s, said);
    operation_read_words(&first, kind, plain, 0, NULL, &one);
    for (int k = 0; k < s->rank; k++) s->names[k] = arena_printf(a, "dim%d", k + 1);
    for (size_t row = 0; row < sizeof called / sizeof called[0]; row++) {
        int named = 0;
        while (called[row].names[named]) named++;
        for (int k = 0; called[row].kind == one.items[0].rec.kind && named == s->rank && k < named; k++)
            s->names[k] = called[row].names[k];
    }
    s->reader.dimensions = "";
    for (int k = 0; k < s->rank; k++)
        s->reader.dimensions = arena_printf(a, "%s%s, ", s->reader.dimensions, s->names[k]);
    operation_list_free(&one);
}

/* ---- operations ---- */

const char *operation_axis_value(const operation_axes *axes, int axis, int item) {
    for (int k = axes->count - 1; k > axis; k--) item /= axes->items[k].count;
    return axes->items[axis].values[item % axes->items[axis].count];
}

/* "gemm M=16": its name, under which the list has its entry. */
static const char *name_of(const sweep *s, const char *kind, int item) {
    const char *name = kind;
    for (int k = 0; k < s->axes->count; k++)
        name = arena_printf(s->reader.arena, "%s %s=%s", name, s->axes->items[k].name,
                            operation_axis_value(s->axes, k, item));
    return name;
}

static json_t *make_entry(const sweep *s, json_builder *b, const operation_words *said, int item) {
    const char *words[MOST_DIMS];
    json_t *entry = json_new_object(b), *shape = json_new_array(b);
    memcpy(words, s->words, sizeof words);
    json_put_text(b, entry, "op", said->kind);
    json_put(b, entry, "shape", shape);
    if (said->sparsity > 0) json_put_real(b, entry, "sparsity", said->sparsity);
    if (said->pattern) json_put_text(b, entry, "pattern", said->pattern);
    operation_put_sets(&s->reader, b, entry);
    for (int k = 0; k < s->axes->count; k++) {
        const operation_axis *axis = &s->axes->items[k];
        const char *const value = operation_axis_value(s->axes, k, item);
        if (axis->dimension >= 0)
            words[axis->dimension] = value;
        else
            operation_put_value(b, entry, axis->name, value);
    }
    for (int k = 0; k < s->rank; k++) json_push_int(b, shape, strtoll(words[k], NULL, 10));
    return entry;
}

/* A dimension is a number, wherever it was given. */
static void check_dimensions(const sweep *s) {
    for (int k = 0; k < s->axes->count; k++) {
        const operation_axis *axis = &s->axes->items[k];
        for (int n = 0; axis->dimension >= 0 && n < axis->count; n++)
            if (strspn(axis->values[n], "0123456789") != strlen(axis->values[n]) || strlen(axis->values[n]) > 15)
                operation_fail(&s->reader, "--axis %s: '%.40s' is no whole number", axis->name, axis->values[n]);
    }
}

void operation_from_axes(const operation_words *said, arena *a, operation_list *list, operation_axes *out) {
    const char *const kind = said->kind, *const shape = said->shape;
    sweep s = {.reader = {.arena = a,
                          .entry = "",
                          .code = STATUS_USAGE,
                          .precision = said->precision,
                          .sets = said->sets,
                          .set_count = said->set_count},
               .axes = out};
    json_builder b = {NULL};
    status st = {0};
    map ids;
    int64_t count = 1;
    s.reader.where = arena_printf(a, "--op %.60s --shape %.120s", kind, shape);
    *out = (operation_axes){.count = 0};
    *list = (operation_list){.model = ""};
    read_shape(&s, said);
    for (int k = 0; k < s.rank; k++)
        if (strstr(s.words[k], "..")) add_range(&s, new_axis(&s, s.names[k]), s.words[k]);
    for (int k = 0; k < said->axis_count; k++) {
        const char *const axis = said->axes[k], *const equals = strchr(axis, '=');
        add_words(&s, new_axis(&s, arena_strndup(a, axis, (size_t)(equals - axis))), equals + 1);
    }
    for (int k = 0; k < out->count; k++) {
        count *= out->items[k].count;
        if (count > MOST_OPERATIONS) operation_fail(&s.reader, "these are more than %d operations", MOST_OPERATIONS);
    }
    check_dimensions(&s);
    list->root = json_new_object(&b);
    for (int item = 0; item < count; item++)
        json_put(&b, list->root, name_of(&s, kind, item), make_entry(&s, &b, said, item));
    list->root = json_finish(&b, list->root, &st);
    if (!list->root) guard_fail(a->guard, st.code, "%s", st.text);
    list->items = arena_array(a, operation, count + 1);
    map_init(&ids, a);
    for (int item = 0; item < count; item++) {
        operation *const o = &list->items[item];
        const char *const name = name_of(&s, kind, item);
        operation_read_short(&s.reader, name, json_object_get(list->root, name), o);
        o->id = map_unique(&ids, oprec_id(&o->rec, a));
        list->count++;
    }
}
