/* The variables of the caller's process. What the CPU's libraries read when they are loaded is set for them before; a
 * process that loads other ones afterwards (PyTorch has an OpenMP of its own), or starts others, has its own again. */
#include "runtime/runtime_internal.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

static bool is_of_threads(const char *entry) {
    static const char *const names[] = {"OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strncmp(entry, names[k], strlen(names[k])) == 0) return true;
    return false;
}

/* The first one; NULL: there is none. */
static const char *first(void) {
    char **entry = environ;
    while (entry && *entry && !is_of_threads(*entry)) entry++;
    return entry ? *entry : NULL;
}

void runtime_environment_keep(runtime_environment *kept) {
    memset(kept, 0, sizeof *kept);
    for (char **entry = environ; entry && *entry; entry++) {
        if (!is_of_threads(*entry) || !strchr(*entry, '=')) continue;
        char **grown = realloc(kept->entries, (kept->count + 1) * sizeof *grown);
        if (!grown) return;
        kept->entries = grown;
        if ((grown[kept->count] = strdup(*entry))) kept->count++;
    }
}

void runtime_environment_restore(runtime_environment *kept) {
    for (const char *entry = first(); entry; entry = first()) {
        char *name = strndup(entry, strcspn(entry, "="));
        const bool gone = name && unsetenv(name) == 0;
        free(name);
        if (!gone) break;
    }
    for (size_t k = 0; k < kept->count; k++) {
        char *value = strchr(kept->entries[k], '=');
        *value = 0;
        (void)setenv(kept->entries[k], value + 1, 1);
        free(kept->entries[k]);
    }
    free(kept->entries);
}
