/* Owns where the programs and scripts lie that stand behind the commands, and how they are told what to do. */
#include "front/start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const start_precisions[] = {"model", "fp16", "bf16", "fp32", NULL};
const char *const start_regimes[] = {"sustained", "burst", NULL};

/* ---- what lies beside this program ---- */

static bool is_file(const char *path) {
    struct stat about_it;
    return stat(path, &about_it) == 0 && S_ISREG(about_it.st_mode);
}

/* "DIR/PLACE/NAME", DIR being this program's own folder. False: it has none, or the path is too long. */
static bool beside(const char *place, const char *name, char path[PATH_MAX]) {
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return false;
    self[n] = 0;
    char *const slash = strrchr(self, '/');
    if (!slash) return false;
    *slash = 0;
    const int length = snprintf(path, PATH_MAX, "%s/%s%s", self, place, name);
    return length > 0 && length < PATH_MAX;
}

static bool not_there(const char *name, status *st) {
    return status_fail(st, STATUS_ENVIRONMENT, "%s is not beside this program; build it with make, or install it again",
                       name);
}

/* Installed, or in the folder of a build; or in the source tree. */
bool start_find_script(const char *name, char path[PATH_MAX], status *st) {
    return (beside("../lib/ceiling-scout/", name, path) && is_file(path)) ||
           (beside("../scripts/", name, path) && is_file(path)) || not_there(name, st);
}

bool start_find_program(const char *name, char path[PATH_MAX], status *st) {
    return (beside("", name, path) && is_file(path)) || not_there(name, st);
}

static status_code start(const char *path, char **argv, status *st) {
    execv(path, argv);
    return status_set(st, STATUS_ENVIRONMENT, "%s cannot be started: %s", path, strerror(errno));
}

/* ---- a program with its first words ---- */

status_code start_program(const char *program, const char *first, int argc, char **argv, status *st) {
    char path[PATH_MAX], name[32], word[32];
    int n = 0;
    if (!start_find_program(program, path, st)) return st->code;
    char **line = calloc((size_t)argc + 2, sizeof *line);
    if (!line) return status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    snprintf(name, sizeof name, "%s", program);
    line[n++] = name;
    if (first) {
        snprintf(word, sizeof word, "%s", first);
        line[n++] = word;
    }
    for (int k = 1; k < argc; k++) line[n++] = argv[k];
    (void)start(path, line, st);
    free(line);
    return st->code;
}

/* ---- a script with its environment ---- */

/* One variable: "PROFILE_BATCH" is text or, for NULL, not there, whatever was exported before. */
static bool give(const char *prefix, const char *name, const char *text) {
    char variable[40];
    snprintf(variable, sizeof variable, "%s_%s", prefix, name);
    return (text ? setenv(variable, text, 1) : unsetenv(variable)) == 0;
}

static bool give_settings(const char *prefix, const settings *s, const char *scout, const char *analyze) {
    char batch[24] = "", seq[24] = "", counters[24] = "", budget[40] = "";
    if (s->batch) snprintf(batch, sizeof batch, "%" PRId64, s->batch);
    if (s->seq) snprintf(seq, sizeof seq, "%" PRId64, s->seq);
    if (s->counters) snprintf(counters, sizeof counters, "%" PRId64, s->counters);
    if (s->budget > 0) snprintf(budget, sizeof budget, "%.12g", s->budget);
    const struct {
        const char *name, *text;
    } all[] = {{"MODEL", s->model},
               {"NAME", s->name},
               {"ASK", s->ask ? "folder" : NULL},
               {"OUT", s->out},
               {"BATCH", batch},
               {"SEQ", seq},
               {"COUNTERS", counters},
               {"DIM", NULL},
               {"DEVICE", s->device},
               {"ON", s->on},
               {"REGIME", s->regime},
               {"BUDGET", budget},
               {"SCOUT", scout},
               {"ANALYZE", analyze},
               {"BEFORE", s->before},
               {"AFTER", s->after},
               {"SHAPE", s->shape},
               {"OP", s->op},
               {"PRECISION", s->precision},
               {"NIGHT", s->night},
               {"CACHE", s->cache},
               {"QUICK", s->quick ? "1" : NULL},
               {"NO_WAIT", s->no_wait ? "1" : NULL},
               {"TARGET_CI", s->target_ci},
               {"MIN_TIME", s->min_time}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (!give(prefix, all[k].name, all[k].text && *all[k].text ? all[k].text : NULL)) return false;
    return true;
}

/* "--dim=NAME=N" for each, behind `n` words. */
static bool add_dims(const cli_bindings *dims, char **line, int n) {
    for (int k = 0; k < dims->count; k++)
        if (asprintf(&line[n + k], "--dim=%s=%" PRId64, dims->items[k].name, dims->items[k].number) < 0) {
            line[n + k] = NULL;
            return false;
        }
    return true;
}

status_code start_script(const char *script, const char *program, const char *prefix, const settings *s, status *st) {
    char path[PATH_MAX], first[PATH_MAX], scout[PATH_MAX], analyze[PATH_MAX];
    if (!start_find_script(script, path, st) || !start_find_program(program, first, st) ||
        !start_find_program("scout_batch", scout, st) || !start_find_program("analyze", analyze, st))
        return st->code;
    char **line = calloc((size_t)s->dims.count + 3, sizeof *line);
    if (line && add_dims(&s->dims, line, 2) && give_settings(prefix, s, scout, analyze)) {
        line[0] = path;
        line[1] = first;
        (void)start(path, line, st);
    } else {
        status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    }
    for (int k = 0; line && k < s->dims.count; k++) free(line[2 + k]);
    free(line);
    return st->code;
}
