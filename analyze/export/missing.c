/* Owns how the list is made and told. */
#include "analyze/export/missing.h"

#include "common/files.h"
#include "common/json.h"
#include "common/plain.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_BYTES = 4 << 20, CONFIG_DEPTH = 32 };

static const struct {
    const char *program;
    void (*files)(const missing_request *m, const json_t *config, missing_list *list);
} programs[] = {{"vllm", missing_vllm}};

const char *const missing_programs[] = {"vllm", NULL};

void missing_add(missing_list *list, const char *name, const char *what, const char *const *places) {
    for (int k = 0; k < list->count; k++)
        if (strcmp(list->files[k].name, name) == 0) return;
    if (list->count == MISSING_FILES)
        guard_fail(list->a->guard, STATUS_INPUT, "the model has too many sorts of layers");
    list->files[list->count++] = (missing_file){name, what, places};
}

static bool is_file(const char *path) {
    struct stat is;
    return stat(path, &is) == 0 && S_ISREG(is.st_mode) && access(path, R_OK) == 0;
}

/* The first that is there; NULL: none is. */
static const char *find(const missing_request *m, const missing_file *f, arena *a) {
    for (int k = 0; k < m->folder_count; k++)
        for (int p = 0; f->places[p]; p++) {
            const char *const path =
                arena_printf(a, "%s%s%s/%s", m->folders[k], *f->places[p] ? "/" : "", f->places[p], f->name);
            if (is_file(path)) return path;
        }
    return NULL;
}

typedef struct run {
    const missing_request *m;
    const char *model;
    FILE *out;
    status *st;
    arena a;
    json_t *config; /* owned: missing_say */
    status_code code;
} run;

static int tell(run *r, const missing_list *list) {
    int missing = 0;
    for (int k = 0; k < list->count; k++) missing += find(r->m, &list->files[k], &r->a) == NULL;
    fprintf(r->out, "%s: tuning files of %s on %s: %d, missing: %d\n", r->m->program, plain_cell(&r->a, r->model, 200),
            plain_cell(&r->a, r->m->device, 80), list->count, missing);
    for (int k = 0; k < list->count; k++) {
        const missing_file *const f = &list->files[k];
        const char *const path = find(r->m, f, &r->a);
        fprintf(r->out, "  %-8s %-22s %s\n", path ? "found" : "missing", f->what,
                plain_cell(&r->a, path ? path : f->name, 500));
    }
    return missing;
}

static void work(void *context) {
    run *const r = context;
    struct stat is;
    missing_list list = {.a = &r->a};
    const json_limits limits = {.bytes = CONFIG_BYTES, .depth = CONFIG_DEPTH};
    const bool folder = stat(r->model, &is) == 0 && S_ISDIR(is.st_mode);
    r->config = json_read(folder ? arena_printf(&r->a, "%s/config.json", r->model) : r->model, &limits, r->st);
    if (!r->config) {
        r->code = r->st->code;
        return;
    }
    for (size_t k = 0; k < sizeof programs / sizeof programs[0]; k++)
        if (strcmp(programs[k].program, r->m->program) == 0) programs[k].files(r->m, r->config, &list);
    r->code = tell(r, &list) > 0 ? STATUS_INCOMPLETE : STATUS_OK;
}

status_code missing_say(const missing_request *m, const char *model, FILE *out, status *st) {
    run r = {.m = m, .model = model, .out = out, .st = st};
    if (!m->device) return status_set(st, STATUS_USAGE, "files are named after the GPU; give --device NAME");
    if (m->folder_count == 0)
        return status_set(st, STATUS_USAGE, "no folder of tuning files is named; give --configs FOLDER");
    for (int k = 0; k < m->folder_count; k++)
        if (access(m->folders[k], R_OK | X_OK) != 0)
            return status_set(st, STATUS_INPUT, "--configs %s: is no folder that can be read", m->folders[k]);
    const status_code code = arena_within(&r.a, work, &r, st) ? r.code : st->code;
    json_decref(r.config);
    return code;
}
