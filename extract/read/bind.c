/* Binds the symbolic dimensions of a model. A text is taken whole where --dim or a customary name knows it; otherwise,
 * where it reads as an expression, it follows from the symbols in it; otherwise it is a symbol of its own. */
#include "extract/read/bind.h"

#include "common/checked.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const batch_names[] = {"batch",
                                          "batch_size",
                                          "batchsize",
                                          "batch_dim",
                                          "batch_axis",
                                          "dynamic_batch",
                                          "num_batch",
                                          "num_batches",
                                          "nbatch",
                                          "n_batch",
                                          "minibatch",
                                          "mini_batch",
                                          "dynamic_batch_size",
                                          "batch_0",
                                          "batch0",
                                          "bs",
                                          "bsz",
                                          "bz",
                                          "b",
                                          "n",
                                          NULL};
static const char *const seq_names[] = {"seq",
                                        "sequence",
                                        "seq_len",
                                        "seqlen",
                                        "seq_length",
                                        "sequence_length",
                                        "sequence_len",
                                        "sequencelength",
                                        "seq_axis",
                                        "sequence_axis",
                                        "dynamic_seq",
                                        "seq_dim",
                                        "dynamic_seq_len",
                                        "max_seq_len",
                                        "max_seq_length",
                                        "max_sequence_length",
                                        "input_length",
                                        "input_len",
                                        "input_sequence_length",
                                        "encoder_sequence_length",
                                        "decoder_sequence_length",
                                        "encoder_seq_len",
                                        "decoder_seq_len",
                                        "text_length",
                                        "text_len",
                                        "prompt_length",
                                        "prompt_len",
                                        "query_length",
                                        "tokens",
                                        "token",
                                        "num_tokens",
                                        "n_tokens",
                                        "token_count",
                                        "num_token",
                                        "time",
                                        "timesteps",
                                        "time_steps",
                                        "timestep",
                                        "length",
                                        "len",
                                        "s",
                                        "t",
                                        "l",
                                        "seq_0",
                                        "seq0",
                                        NULL};

/* Names that are a sum of two others wherever both occur. */
static const struct {
    const char *total, *past, *now;
} sums[] = {
    {"total_sequence_length", "past_sequence_length", "sequence_length"},
    {"total_seq_len", "past_seq_len", "seq_len"},
    {"total_sequence_len", "past_sequence_len", "sequence_len"},
};
enum { SUMS = sizeof sums / sizeof *sums };

static bool alike(const char *name, const char *customary) {
    for (; *name && *customary; name++, customary++) {
        const char c = *name == '-' || *name == '.' || *name == ' ' ? '_' : (char)tolower((unsigned char)*name);
        if (c != *customary) return false;
    }
    return *name == *customary;
}

static bool is_among(const char *const *names, const char *name) {
    for (; *names; names++)
        if (alike(name, *names)) return true;
    return false;
}

const char *const *bind_batch_names(void) { return batch_names; }
const char *const *bind_seq_names(void) { return seq_names; }
bool bind_is_batch(const char *name) { return is_among(batch_names, name); }
bool bind_is_seq(const char *name) { return is_among(seq_names, name); }

void bind_init(bind *b, model *m, const read_options *options) {
    *b = (bind){.model = m, .arena = m->arena, .options = options};
    map_init(&b->texts, m->arena);
    map_init(&b->seen, m->arena);
    map_init(&b->leading, m->arena);
    map_init(&b->behind, m->arena);
    map_init(&b->known, m->arena);
    map_init(&b->inputs, m->arena);
    map_init(&b->dims, m->arena);
    b->used = arena_array(m->arena, bool, options->dim_count > 0 ? options->dim_count : 1);
}

static int option_of(const bind *b, const char *name) {
    for (int k = b->options->dim_count - 1; k >= 0; k--) /* the last one counts */
        if (strcmp(b->options->dims[k].name, name) == 0) return k;
    return -1;
}

static void add_symbol(bind *b, const char *name, bool listed) {
    void **place = map_put(&b->texts, name);
    if (*place) return;
    bind_symbol *s = arena_zalloc(b->arena, sizeof *s);
    s->name = name;
    *place = s;
    if (!listed) return;
    void *items = b->symbols;
    arena_grow(b->arena, &items, &b->cap, b->count, sizeof(bind_symbol *));
    b->symbols = items;
    b->symbols[b->count++] = s;
}

/* A dimension without a name of its own, as tf2onnx and torch.export number them. */
static bool is_numbered(const char *name) {
    static const char *const stems[] = {"unk__", "s", "dynamic_axes_", "unknown_", "dim_"};
    for (size_t k = 0; k < sizeof stems / sizeof *stems; k++) {
        const size_t n = strlen(stems[k]);
        if (strncmp(name, stems[k], n) == 0 && name[n] && name[n + strspn(name + n, "0123456789")] == 0) return true;
    }
    return false;
}

static void see(bind *b, const char *text) {
    void **place = map_put(&b->seen, text);
    if (*place) return;
    *place = b;
    void *order = b->order;
    arena_grow(b->arena, &order, &b->seen_cap, b->seen_count, sizeof *b->order);
    b->order = order;
    b->order[b->seen_count++] = text;
}

void bind_see(bind *b, const char *text, size_t axis, bool made) {
    *map_put(&b->dims, text) = b;
    if (axis > 0) *map_put(&b->behind, text) = b;
    if (axis == 0 && (made || is_numbered(text))) *map_put(&b->leading, text) = b;
    see(b, text);
}

void bind_see_input(bind *b, const char *name) {
    if (option_of(b, name) < 0) return;
    *map_put(&b->inputs, name) = b;
    see(b, name);
}

bool bind_is_input(const bind *b, const char *name, bool *alone) {
    *alone = !map_get(&b->dims, name);
    return map_get(&b->inputs, name) != NULL;
}

static bool is_whole(const bind *b, const char *text) {
    return option_of(b, text) >= 0 || bind_is_batch(text) || bind_is_seq(text);
}

static bool is_known(void *context, const char *name, size_t length) {
    const bind *b = context;
    char text[260]; /* longer names are not asked for */
    if (length >= sizeof text) return false;
    memcpy(text, name, length);
    text[length] = 0;
    return is_whole(b, text) || map_get(&b->known, text);
}

static bool know_inner(void *context, const char *name, size_t length, int64_t *size) {
    bind *b = context;
    if (!memchr(name, '-', length)) *map_put(&b->known, arena_strndup(b->arena, name, length)) = b;
    *size = 1;
    return true;
}

static bool see_inner(void *context, const char *name, size_t length, int64_t *size) {
    bind *b = context;
    add_symbol(b, arena_strndup(b->arena, name, length), true);
    *size = 1;
    return true;
}

static bool has_name(void *context, const char *name, size_t length, int64_t *size) {
    (void)name, (void)length;
    *(bool *)context = true;
    *size = 1;
    return true;
}

/* Numbers alone are a dimension where they are one number; "3-1" is a name. */
static bool is_expression(bind *b, const char *text) {
    bool named = false;
    int64_t ignored;
    const bind_expr_names any = {has_name, NULL, &named};
    if (is_whole(b, text) || bind_expr(text, &any, false, &ignored) == BIND_EXPR_NO_EXPRESSION) return false;
    return named || text[strspn(text, "0123456789")] == 0;
}

/* All texts are looked at before any is taken apart: whether "s-1" is a name depends on whether there is an s. */
static void find_symbols(bind *b) {
    const bind_expr_names alone = {know_inner, is_known, b}, all = {see_inner, is_known, b};
    int64_t ignored;
    for (size_t k = 0; k < b->seen_count; k++)
        if (is_expression(b, b->order[k])) bind_expr(b->order[k], &alone, false, &ignored);
    for (size_t k = 0; k < b->seen_count; k++) {
        const bool expression = is_expression(b, b->order[k]);
        if (expression) bind_expr(b->order[k], &all, false, &ignored);
        add_symbol(b, b->order[k], !expression);
    }
}

static bool bind_by_option(bind *b, bind_symbol *s) {
    const int k = option_of(b, s->name);
    if (k >= 0) {
        s->size = b->options->dims[k].size;
        s->how = "--dim";
        for (int j = 0; j < b->options->dim_count; j++)
            if (strcmp(b->options->dims[j].name, s->name) == 0) b->used[j] = true;
    } else if (b->options->batch && bind_is_batch(s->name)) {
        s->size = b->options->batch;
        s->how = "--batch";
    } else if (b->options->seq && bind_is_seq(s->name)) {
        s->size = b->options->seq;
        s->how = "--seq";
    }
    return s->how != NULL;
}

/* Where no dimension has a usual name, what stands first, and first alone, and has no name of its own is the batch. */
static void bind_leading(const bind *b) {
    for (size_t k = 0; k < b->count; k++)
        if (!b->options->batch || strcmp(b->symbols[k]->how ? b->symbols[k]->how : "", "--batch") == 0) return;
    for (size_t k = 0; k < b->count; k++) {
        bind_symbol *const s = b->symbols[k];
        if (s->how || !map_get(&b->leading, s->name) || map_get(&b->behind, s->name)) continue;
        s->size = b->options->batch;
        s->how = "--batch";
    }
}

static const bind_symbol *like(const bind *b, const char *customary) {
    for (size_t k = 0; k < b->count; k++)
        if (alike(b->symbols[k]->name, customary)) return b->symbols[k];
    return NULL;
}

/* The length of past and present together follows from the two where the model names them so. */
static void bind_by_sums(const bind *b) {
    for (size_t k = 0; k < SUMS; k++) {
        const bind_symbol *past = like(b, sums[k].past), *now = like(b, sums[k].now);
        if (!past || !now) continue;
        for (size_t j = 0; j < b->count; j++) {
            bind_symbol *s = b->symbols[j];
            if (!s->how && alike(s->name, sums[k].total)) s->size = checked_add(past->size, now->size);
        }
    }
}

/* One line with all names, however many; a line beyond reason is cut at a name. */
static void warn_defaults(bind *b) {
    enum { LONGEST = 600 };
    char text[LONGEST + 300];
    size_t n = 0, left = 0;
    for (size_t k = 0; k < b->count; k++) {
        const bind_symbol *s = b->symbols[k];
        if (strcmp(s->how, "default") != 0) continue;
        if (n + strlen(s->name) + 24 > LONGEST) {
            left++;
            continue;
        }
        n += (size_t)snprintf(text + n, sizeof text - n, s->size == 1 ? "%s%s" : "%s%s (as %lld)", n ? ", " : "",
                              s->name, (long long)s->size);
    }
    if (n == 0 && left == 0) return;
    if (left) snprintf(text + n, sizeof text - n, "%s%zu more", n ? " and " : "", left);
    graph_warn(b->model, "these dimensions have no size and are taken as 1: %s; give --dim NAME=N, --batch or --seq",
               text);
}

static void warn_unused(bind *b) {
    bool batch = false, seq = false;
    for (size_t k = 0; k < b->count; k++) {
        batch = batch || strcmp(b->symbols[k]->how, "--batch") == 0;
        seq = seq || strcmp(b->symbols[k]->how, "--seq") == 0;
    }
    if (b->options->batch && !batch)
        graph_warn(b->model,
                   "--batch %lld binds nothing: no input has a symbolic batch dimension; fixed dimensions stay",
                   (long long)b->options->batch);
    if (b->options->seq && !seq)
        graph_warn(b->model,
                   "--seq %lld binds nothing: no input has a symbolic sequence dimension; fixed dimensions stay",
                   (long long)b->options->seq);
    for (int k = 0; k < b->options->dim_count; k++)
        if (!b->used[k])
            graph_warn(b->model, "--dim %.200s=%lld binds nothing: no input has a dimension of that name",
                       b->options->dims[k].name, (long long)b->options->dims[k].size);
}

void bind_finish(bind *b) {
    find_symbols(b);
    for (size_t k = 0; k < b->count; k++) {
        if (!bind_by_option(b, b->symbols[k])) b->symbols[k]->size = 1;
        if (b->symbols[k]->size < 0)
            guard_fail(b->model->guard, STATUS_USAGE, "--dim %.200s=%lld: a dimension is not negative",
                       b->symbols[k]->name, (long long)b->symbols[k]->size);
    }
    bind_leading(b);
    bind_by_sums(b);
    for (size_t k = 0; k < b->count; k++)
        if (!b->symbols[k]->how) b->symbols[k]->how = "default";
    warn_defaults(b);
    warn_unused(b);
    model *m = b->model;
    m->dims = arena_array(b->arena, model_dim, b->count);
    m->dim_count = (int)b->count;
    for (size_t k = 0; k < b->count; k++)
        m->dims[k] = (model_dim){b->symbols[k]->name, b->symbols[k]->size, b->symbols[k]->how};
}

static bool size_of(void *context, const char *name, size_t length, int64_t *size) {
    const bind *b = context;
    const bind_symbol *s = map_get(&b->texts, arena_strndup(b->arena, name, length));
    if (!s || !s->how) return false;
    *size = s->size;
    return true;
}

bool bind_lookup(const bind *b, const char *text, int64_t *size) {
    bind_symbol *s = map_get(&b->texts, text);
    if (!s) return false;
    if (!s->how) {
        const bind_expr_names names = {size_of, is_known, (void *)(uintptr_t)b};
        switch (bind_expr(text, &names, true, &s->size)) {
        case BIND_EXPR_OK: break;
        case BIND_EXPR_IMPOSSIBLE:
            guard_fail(b->model->guard, STATUS_INPUT,
                       "dimension '%.200s': cannot be computed from the sizes given; check --dim", text);
        default: return false;
        }
        if (s->size < 0)
            guard_fail(b->model->guard, STATUS_INPUT, "dimension '%.200s': would be %lld; check --dim", text,
                       (long long)s->size);
        s->how = "expression";
    }
    *size = s->size;
    return true;
}
