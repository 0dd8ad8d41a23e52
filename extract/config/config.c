/* From the options to runs, and from runs to a model. */
#include "extract/config/config.h"

#include "common/checked.h"
#include "extract/config/config_build.h"

#include <string.h>

enum { MOST_LAYERS = 4096 }; /* of all runs together */

__attribute__((format(printf, 3, 4))) static _Noreturn void fail(const arena *a, status_code code, const char *format,
                                                                 ...) {
    status st = {0};
    va_list args;
    va_start(args, format);
    status_setv(&st, code, format, args);
    va_end(args);
    guard_fail(a->guard, st.code, "%s", st.text);
}

/* The folder's name where the file is called config.json, as hubs have it, else the file's own. */
static const char *name_of(arena *a, const char *path, const char *otherwise) {
    static const char usual[] = "config.json", ending[] = ".json";
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t n = strlen(file);
    if (strcmp(file, usual) != 0) {
        if (n > sizeof ending - 1 && strcmp(file + n - (sizeof ending - 1), ending) == 0) n -= sizeof ending - 1;
        return arena_strndup(a, file, n);
    }
    const char *start = slash;
    while (start && start > path && start[-1] != '/') start--;
    n = slash ? (size_t)(slash - start) : 0;
    if (n == 0 || start[0] == '.') return otherwise;
    return arena_strndup(a, start, n);
}

/* The run says itself which file it is. */
static const char *without_path(const char *text, const char *path) {
    const size_t n = strlen(path);
    return strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static void check(const arena *a, const config_run *run, const config_read *c) {
    const config_values *v = &c->values;
    const char *type = c->family->model_type;
    const bool patches = c->family->embedding == CONFIG_PATCHES;
    if (patches && run->token_count > 0)
        fail(a, STATUS_USAGE, "the tokens of %s follow from its image size; leave out --tokens, and give --batch",
             type);
    if (!patches && run->token_count == 0)
        fail(a, STATUS_USAGE, "a configuration of %s needs --tokens N, the length of the sequence", type);
    if (!c->family->causal && run->past > 0)
        fail(a, STATUS_USAGE, "%s keeps no keys of earlier tokens; leave out --past", type);
    if (checked_mul(v->layers, run->token_count) > MOST_LAYERS)
        fail(a, STATUS_INPUT, "%lld layers for each of %d runs are more than %d in all; give fewer --tokens",
             (long long)v->layers, run->token_count, MOST_LAYERS);
    for (int k = 0; k < run->token_count && v->positions > 0; k++)
        if (c->family->embedding != CONFIG_TOKENS && checked_add(run->past, run->tokens[k]) > v->positions)
            fail(a, STATUS_INPUT, "it has %lld positions, too few for --past and --tokens of %lld",
                 (long long)v->positions, (long long)checked_add(run->past, run->tokens[k]));
}

config_model config_make(arena *a, const config_run *run) {
    config_read c = {.family = NULL};
    status st = {0};
    onnx_writer o;
    const int64_t batch = run->batch > 0 ? run->batch : 1;
    if (!config_read_file(&c, run->path, &st)) guard_fail(a->guard, st.code, "%s", without_path(st.text, run->path));
    check(a, run, &c);
    onnx_begin(&o, a);
    if (run->token_count == 0) {
        const int64_t side = c.values.image / c.values.patch;
        config_build(&o, &c, "", batch, side * side + 1, 0);
    }
    for (int k = 0; k < run->token_count; k++) {
        const char *prefix = run->token_count == 1 ? "" : arena_printf(a, "tokens_%lld/", (long long)run->tokens[k]);
        config_build(&o, &c, prefix, batch, run->tokens[k], run->past);
    }
    const onnx_bytes bytes = onnx_finish(&o, "extract_ops --config");
    return (config_model){.name = name_of(a, run->path, c.family->model_type),
                          .bytes = bytes.bytes,
                          .size = bytes.used,
                          .warning = c.quantised
                                         ? "its quantization_config is not followed: weights are counted in the "
                                           "type of the model"
                                         : NULL};
}
