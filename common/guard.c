/* The jump out of deep work, and the SIGBUS that a shortened mapped file raises turned into such a jump. */
#include "common/guard.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Signal handlers get no argument: the one guard that watches, and what SIGBUS did before. */
static guard *volatile watcher;
static struct sigaction previous;

void guard_init(guard *g) {
    memset(g, 0, sizeof *g);
    g->st.code = STATUS_OK;
}

void guard_fail(guard *g, status_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    status_setv(&g->st, code, format, args);
    va_end(args);
    siglongjmp(g->env, 1);
}

static void on_sigbus(int number, siginfo_t *about, void *context) {
    (void)number;
    (void)context;
    guard *g = watcher;
    uintptr_t at = (uintptr_t)about->si_addr;
    uintptr_t base = g ? (uintptr_t)g->map_base : 0;
    /* The fault is synchronous: it comes from a plain read of the map, so jumping out of the handler is sound. */
    if (g && at >= base && at - base < g->map_size)
        guard_fail(g, STATUS_INPUT, "the file was cut short while it was read; run again when no program writes to it");
    /* Not ours: the read happens again under the old disposition. */
    sigaction(SIGBUS, &previous, NULL);
}

void guard_watch_map(guard *g, const void *base, size_t size) {
    if (base && size > 0) {
        bool installed = watcher != NULL;
        g->map_base = base;
        g->map_size = size;
        watcher = g;
        if (installed) return;
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_sigbus;
        action.sa_flags = SA_SIGINFO;
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &previous);
        return;
    }
    g->map_base = NULL;
    g->map_size = 0;
    if (watcher == NULL) return;
    watcher = NULL;
    sigaction(SIGBUS, &previous, NULL);
}
