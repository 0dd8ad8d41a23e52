/* The run: read, infer, expand, lower, match, fuse, collect, write. Owns the arena, the guard and the mapped file, and
 * gives all three back however the run ends. */
#include "extract/extract_run.h"

#include "common/clock.h"
#include "common/files.h"
#include "extract/expand/expand.h"
#include "extract/infer/infer.h"
#include "extract/match/match_patterns.h"
#include "extract/ops/collect.h"
#include "extract/ops/dataflow.h"
#include "extract/ops/work.h"
#include "extract/write/emit.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Memory follows the size of the file within these bounds, so that a small hostile file cannot ask for much. */
static const size_t RUN_MIN_MEMORY = (size_t)160 << 20;
static const size_t RUN_MAX_MEMORY = (size_t)4 << 30;
static const size_t RUN_CONFIG_MEMORY = (size_t)512 << 20; /* of a configuration, whose size says nothing */
enum { RUN_MEMORY_PER_BYTE = 24 };

/* A run that takes longer than this says on a terminal what it is at. */
static const double RUN_SILENT_SECONDS = 0.3;

typedef struct run {
    const extract_options *options;
    guard guard;
    arena arena;
    model_file *file;
    const model *model;  /* NULL until it is read */
    const char *written; /* tensors.json, until ops.json is written too */
    double started;
    bool complete, progress; /* progress: something stands on the terminal's line */
} run;

static void show_stage(run *r, const char *stage) {
    if (r->options->quiet || !isatty(STDERR_FILENO) || clock_seconds() - r->started < RUN_SILENT_SECONDS) return;
    fprintf(stderr, "\r\033[Kextract_ops: %s", stage);
    fflush(stderr);
    r->progress = true;
}

static void hide_stage(run *r) {
    if (r->progress) fputs("\r\033[K", stderr);
    r->progress = false;
}

static size_t memory_limit(const extract_options *o) {
    struct stat s;
    if (o->config) return RUN_CONFIG_MEMORY;
    if (stat(o->model_path, &s) != 0 || s.st_size <= 0) return RUN_MIN_MEMORY;
    if ((uint64_t)s.st_size > RUN_MAX_MEMORY / RUN_MEMORY_PER_BYTE) return RUN_MAX_MEMORY;
    size_t wanted = (size_t)s.st_size * RUN_MEMORY_PER_BYTE;
    return wanted < RUN_MIN_MEMORY ? RUN_MIN_MEMORY : wanted;
}

static dtype precision_type(const char *precision) {
    return !precision || strcmp(precision, "model") == 0 ? DTYPE_NONE : dtype_from_name(precision);
}

static void recognise(run *r, model *m, worklist *list) {
    show_stage(r, "listing operations");
    work_list(list, m, precision_type(r->options->precision));
    show_stage(r, "recognising patterns");
    match_all(list);
}

static const catalog *catalogue(run *r, model *m) {
    worklist list;
    recognise(r, m, &list);
    for (int64_t k = 0; k < m->node_count; k++) {
        work *const w = work_of(&list, m->nodes[k]);
        m->nodes[k]->attends = w->owner && work_top(w)->rec.kind == OP_ATTENTION;
    }
    if (expand_products(m)) recognise(r, m, &list);
    show_stage(r, "merging equal operations");
    collect_branches(&list);
    catalog *c = collect(&list);
    show_stage(r, "finding fusions");
    fuse_all(c);
    show_stage(r, "following tensors");
    c->dataflow = dataflow_build(c);
    return c;
}

static bool same_file(const char *path, const struct stat *a) {
    struct stat b;
    return stat(path, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

/* A slip of the hand must not replace the model or its weights by what is said about them. */
static void refuse_overwriting(run *r, const model *m, const char *out) {
    struct stat s;
    if (!out || stat(out, &s) != 0) return;
    const char *path = r->options->model_path, *slash = strrchr(path, '/'), *last = "";
    if (same_file(path, &s))
        guard_fail(&r->guard, STATUS_USAGE, "%s is the model itself; name another file for the output", out);
    for (int64_t k = 0; k < m->tensor_count; k++) {
        const blob *b = m->tensors[k]->blob;
        if (!b || !b->file || strcmp(b->file, last) == 0) continue;
        last = b->file;
        const arena_mark scratch = arena_save(&r->arena);
        if (same_file(arena_printf(&r->arena, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, last), &s))
            guard_fail(&r->guard, STATUS_USAGE, "%s holds weights of the model; name another file for the output", out);
        arena_rewind(&r->arena, scratch);
    }
}

/* Nothing is written before everything is known, and the file that others read last. */
static void write_all(run *r, const model *m, const catalog *c) {
    const extract_options *o = r->options;
    status st = {0};
    if (o->ops_path && o->tensors_path && files_same(o->ops_path, o->tensors_path))
        guard_fail(&r->guard, STATUS_USAGE, "--output and --tensors name the same file %s; give two different files",
                   o->ops_path);
    refuse_overwriting(r, m, o->ops_path);
    refuse_overwriting(r, m, o->tensors_path);
    if (o->tensors_path && emit_tensors(m, o->tensors_path, &st) != STATUS_OK)
        guard_fail(&r->guard, st.code, "%s", st.text);
    r->written = o->tensors_path;
    if (o->ops_path && emit_ops(c, o->ops_path, &st) != STATUS_OK) guard_fail(&r->guard, st.code, "%s", st.text);
    r->written = NULL;
}

static void add_dim(model *m, const char *name, int64_t size, const char *how) {
    m->dims[m->dim_count++] = (model_dim){.name = name, .size = size, .how = how};
}

/* What a model's symbols say, a configuration's options do. */
static void tell_dims(model *m, const config_run *c) {
    m->dims = arena_array(m->arena, model_dim, c->token_count + 2);
    m->dim_count = 0;
    add_dim(m, "batch", c->batch > 0 ? c->batch : 1, "--batch");
    for (int k = 0; k < c->token_count; k++)
        add_dim(m, c->token_count == 1 ? "tokens" : arena_printf(m->arena, "tokens_%" PRId64, c->tokens[k]),
                c->tokens[k], "--tokens");
    if (c->past > 0) add_dim(m, "past", c->past, "--past");
}

static model *read_either(run *r) {
    const extract_options *o = r->options;
    if (!o->config) {
        r->file = read_open(&r->arena, o->model_path);
        return read_model(&r->arena, r->file, &o->read);
    }
    const config_model made = config_make(&r->arena, o->config);
    r->file = read_open_made(&r->arena, o->model_path, made.name, made.bytes, made.size);
    model *m = read_model(&r->arena, r->file, &o->read);
    tell_dims(m, o->config);
    if (made.warning) graph_warn(m, "%s", made.warning);
    return m;
}

static void run_work(run *r) {
    const extract_options *o = r->options;
    model *m = read_either(r);
    r->model = m;
    show_stage(r, "inferring shapes");
    infer_model(m);
    expand_model(m);
    const catalog *c = catalogue(r, m);
    hide_stage(r);
    for (size_t k = 0; k < m->warning_count; k++) status_print(stderr, "extract_ops", "warning: ", m->warnings[k]);
    show_stage(r, "writing");
    write_all(r, m, c);
    hide_stage(r);
    if (!o->quiet) table_print(stdout, c);
    r->complete = collect_is_complete(c);
}

/* A size that was not given is the likeliest reason why shapes do not fit. */
static const char *default_dims(const run *r, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; r->model && k < r->model->dim_count && used < size; k++) {
        if (strcmp(r->model->dims[k].how, "default") != 0) continue;
        int n = snprintf(text + used, size - used, "%s%s",
                         used ? ", " : " (taken as 1, as no size is given: ", r->model->dims[k].name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used && used < size) snprintf(text + used, size - used, "; give --dim NAME=N)");
    return text;
}

static void run_guarded(run *r, status *st) {
    if (guard_enter(&r->guard)) {
        run_work(r);
        st->code = r->complete ? STATUS_OK : STATUS_INCOMPLETE;
        return;
    }
    hide_stage(r);
    if (r->written) files_remove(r->written); /* one file without the other is not a result */
    if (r->guard.st.code == STATUS_INPUT) {
        char dims[300];
        status_set(st, STATUS_INPUT, "%s: %s%s", r->options->model_path, r->guard.st.text,
                   default_dims(r, dims, sizeof dims));
    } else {
        *st = r->guard.st;
    }
}

status_code extract_run(const extract_options *options, status *st) {
    run r = {.options = options, .started = clock_seconds()};
    *st = (status){0};
    guard_init(&r.guard);
    arena_init(&r.arena, &r.guard, memory_limit(options));
    run_guarded(&r, st);
    read_close(r.file);
    arena_free(&r.arena);
    return st->code;
}
