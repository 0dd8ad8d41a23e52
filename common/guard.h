/* The one way out of deep work: the start of a run enters a guard; a failure far below jumps back to it with a
 * status. Everything a run owns lives in an arena or in fields that its starter releases, so nothing leaks on the way.
 *
 *     guard g;
 *     guard_init(&g);
 *     if (guard_enter(&g)) { work(&g); } else { ... g.st says why ... }
 */
#pragma once

#include "common/status.h"

#include <setjmp.h>
#include <stddef.h>

typedef struct guard {
    sigjmp_buf env;
    status st;
    const void *map_base; /* a mapped file: reading past its end (it was cut short meanwhile) is a failure of the run */
    size_t map_size;
} guard;

/* Not a function: the frame that calls setjmp must live as long as the guard. */
#define guard_enter(g) (sigsetjmp((g)->env, 1) == 0)

void guard_init(guard *g);
__attribute__((format(printf, 3, 4))) _Noreturn void guard_fail(guard *g, status_code code, const char *format, ...);

/* Turns SIGBUS inside [base, base + size) into guard_fail(STATUS_INPUT). One guard at a time; base NULL switches it
 * off. */
void guard_watch_map(guard *g, const void *base, size_t size);
