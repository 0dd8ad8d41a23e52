/* Programs and scripts that lie beside this one, started in its place: what was started ends with its own code. */
#pragma once

#include "common/cli.h"

#include <limits.h>

/* What a script is told; NULL and 0: not given. */
typedef struct settings {
    const char *model, *name, *precision, *device, *regime, *out;
    const char
        *on; /* profile.sh measures there, and not on what `device` would come to; no part of the folder's name */
    const char *target_ci, *min_time;
    const char *night, *cache; /* profile.sh measures what was not measured in this night, and shares it there */
    bool quick, no_wait;
    bool ask; /* profile.sh names the folder and does nothing */
    const char *before, *after, *shape, *op;
    int64_t batch, seq, counters;
    double budget;
    cli_bindings dims;
    cli_positionals files;
} settings;

extern const char *const start_precisions[]; /* that a model can be taken as; what extract_ops takes */
extern const char *const start_regimes[];

/* Where it lies. false: st says that it is not there, and what to do. */
bool start_find_script(const char *name, char path[PATH_MAX], status *st);
bool start_find_program(const char *name, char path[PATH_MAX], status *st);

/* These return only where nothing was started; st says why. argv[0] is not handed on; `first` NULL: the rest follows at
 * once. The script's first word is `program`; the settings it finds in its environment, where make leaves them too. */
status_code start_program(const char *program, const char *first, int argc, char **argv, status *st);
status_code start_script(const char *script, const char *program, const char *prefix, const settings *s, status *st);
