/* The smallest test frame that does the job: checks that count and go on, and one closing line for the runner.
 *
 *     int main(void) {
 *         UNIT_RUN(name_of_a_static_void_function);
 *         return unit_end();
 *     }
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int unit_passed, unit_failed;
static bool unit_ok; /* of the test that runs */

static inline bool unit_check(bool good, const char *what, const char *file, int line) {
    if (!good) {
        printf("%s:%d: not so: %s\n", file, line, what);
        unit_ok = false;
    }
    return good;
}

static inline bool unit_same_text(const char *got, const char *want, const char *file, int line) {
    if (got && want && strcmp(got, want) == 0) return true;
    printf("%s:%d: got \"%s\", want \"%s\"\n", file, line, got ? got : "(null)", want ? want : "(null)");
    unit_ok = false;
    return false;
}

static inline bool unit_same_int(long long got, long long want, const char *what, const char *file, int line) {
    if (got == want) return true;
    printf("%s:%d: %s is %lld, want %lld\n", file, line, what, got, want);
    unit_ok = false;
    return false;
}

static inline void unit_run(void (*test)(void), const char *name) {
    unit_ok = true;
    test();
    if (unit_ok) {
        unit_passed++;
    } else {
        unit_failed++;
        printf("FAILED %s\n", name);
    }
}

static inline int unit_end(void) {
    printf("%d passed, %d failed\n", unit_passed, unit_failed);
    return unit_failed != 0;
}

#define UNIT_CHECK(x)        unit_check((x), #x, __FILE__, __LINE__)
#define UNIT_INT(got, want)  unit_same_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define UNIT_TEXT(got, want) unit_same_text((got), (want), __FILE__, __LINE__)
#define UNIT_RUN(test)       unit_run((test), #test)

#endif
