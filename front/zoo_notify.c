/* Owns the end of a night for others: a command of the user's own gets the digest. It may fail or hang, and the night
 * is what it was. */
#include "front/zoo.h"

#include <stdlib.h>

enum { PATIENCE_S = 30 };
static const char said[] = "CEILING_SCOUT_NIGHT";

const char *zoo_notify(zoo *z, const char *folder, const zoo_step *step, const char *state) {
    const char *const words[] = {"/bin/sh", "-c", z->notify, NULL};
    const char *const log = arena_printf(z->a, "%s/logs/notify.log", folder);
    zoo_step one = *step;
    if (!z->notify) return NULL;
    if (setenv(said, state, 1) != 0) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "out of memory; free some");
    one.words = words;
    one.log = log;
    one.input = arena_printf(z->a, "%s/digest.md", folder);
    one.most_s = PATIENCE_S;
    const int code = zoo_step_run(z, &one);
    unsetenv(said);
    if (code == 0 || *step->stop) return NULL;
    if (code == ZOO_STEP_LATE) return arena_printf(z->a, "--notify: did not end in %d s, and was ended", PATIENCE_S);
    return arena_printf(z->a, "--notify: ended with %d: %s", code, zoo_step_why(z, log));
}
