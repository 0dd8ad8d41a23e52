/* Arena and guard: alignment, limits, rewinding, failures that jump, and a file cut short while it is mapped. */
#include "common/arena.h"
#include "common/checked.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static guard g;
static arena a;

static void start(size_t limit) {
    guard_init(&g);
    arena_init(&a, &g, limit);
}

static void guard_carries_the_reason(void) {
    guard_init(&g);
    if (guard_enter(&g)) {
        guard_fail(&g, STATUS_INPUT, "place %d", 3);
    } else {
        UNIT_INT(g.st.code, STATUS_INPUT);
        UNIT_TEXT(g.st.text, "place 3");
    }
}

static void pieces_are_aligned_and_apart(void) {
    start((size_t)64 << 20);
    unsigned char *pieces[500];
    for (size_t k = 0; k < 500; k++) {
        size_t n = k * 37 % 5000;
        pieces[k] = arena_alloc(&a, n);
        UNIT_CHECK((uintptr_t)pieces[k] % 16 == 0);
        memset(pieces[k], (int)(k & 255), n);
    }
    bool good = true;
    for (size_t k = 0; k < 500; k++)
        for (size_t j = 0; j < k * 37 % 5000; j++) good = good && pieces[k][j] == (k & 255);
    UNIT_CHECK(good);
    arena_free(&a);
    UNIT_INT(a.used, 0);
}

static void big_pieces_do_not_waste_the_chunk(void) {
    start((size_t)64 << 20);
    char *first = arena_alloc(&a, 16);
    char *big = arena_zalloc(&a, (size_t)5 << 20);
    char *second = arena_alloc(&a, 16);
    UNIT_CHECK(second > first && second - first < 64);
    UNIT_INT(big[(5 << 20) - 1], 0);
    UNIT_CHECK(a.used < (size_t)6 << 20);
    arena_free(&a);
}

static void texts(void) {
    start((size_t)1 << 20);
    UNIT_TEXT(arena_strndup(&a, "abcdef", 3), "abc");
    UNIT_TEXT(arena_strndup(&a, NULL, 0), "");
    UNIT_TEXT(arena_printf(&a, "%s-%d", "x", 5), "x-5");
    char *text = arena_printf(&a, "%0*d", 30000, 1);
    UNIT_INT(strlen(text), 30000);
    arena_free(&a);
}

static void grow_keeps_what_is_there(void) {
    start((size_t)16 << 20);
    int *items = NULL;
    size_t cap = 0;
    for (int k = 0; k < 10000; k++) {
        arena_grow(&a, (void **)&items, &cap, (size_t)k, sizeof *items);
        items[k] = k;
    }
    bool good = true;
    for (int k = 0; k < 10000; k++) good = good && items[k] == k;
    UNIT_CHECK(good && cap >= 10000);
    arena_free(&a);
}

/* Each of these must fail with STATUS_INPUT: the file asks for too much. */
static void ask_beyond_limit(void) { arena_alloc(&a, (size_t)2 << 20); }
static void ask_in_small_pieces(void) {
    for (;;) arena_alloc(&a, 100);
}
static void ask_overflowing_product(void) { arena_calloc(&a, SIZE_MAX / 8, 16); }
static void ask_everything(void) { arena_alloc(&a, SIZE_MAX); }
static void ask_endless_text(void) { arena_strndup(&a, "", SIZE_MAX); }
static void ask_overflowing_growth(void) {
    void *items = NULL;
    size_t cap = 0;
    arena_grow(&a, &items, &cap, SIZE_MAX / 8, 16);
}
static void ask_endless_growth(void) {
    void *items = NULL;
    size_t cap = 0;
    arena_grow(&a, &items, &cap, SIZE_MAX - 1, 16);
}

static void limits_fail_through_the_guard(void) {
    static void (*const asks[])(void) = {ask_beyond_limit,  ask_in_small_pieces, ask_overflowing_product,
                                         ask_everything,    ask_endless_text,    ask_overflowing_growth,
                                         ask_endless_growth};
    for (volatile size_t k = 0; k < sizeof asks / sizeof asks[0]; k++) {
        start((size_t)1 << 20);
        if (guard_enter(&g)) {
            asks[k]();
            UNIT_CHECK(!"the limit holds");
        }
        UNIT_INT(g.st.code, STATUS_INPUT);
        UNIT_CHECK(a.used <= a.limit);
        arena_free(&a);
    }
}

static void limit_can_be_used_up_nearly_whole(void) {
    start(100000);
    volatile int got = 0;
    if (guard_enter(&g))
        for (;;) {
            arena_alloc(&a, 900);
            got++;
        }
    UNIT_CHECK(got >= 95);
    arena_free(&a);
}

static void rewind_gives_back(void) {
    start((size_t)64 << 20);
    char *kept = arena_strndup(&a, "kept", 4);
    arena_alloc(&a, (size_t)2 << 20);
    for (int round = 0; round < 20; round++) {
        arena_mark mark = arena_save(&a);
        size_t used = a.used;
        for (int k = 0; k < 200; k++) memset(arena_alloc(&a, (size_t)k * 97), 1, (size_t)k * 97);
        memset(arena_alloc(&a, (size_t)3 << 20), 1, (size_t)3 << 20);
        arena_rewind(&a, mark);
        UNIT_INT(a.used, used);
    }
    UNIT_TEXT(kept, "kept");
    char *one = arena_alloc(&a, 10);
    UNIT_CHECK(one - kept > 0 && one - kept < 64);
    arena_free(&a);
    arena_mark empty = arena_save(&a); /* of an arena that has nothing */
    arena_alloc(&a, 10);
    arena_alloc(&a, (size_t)3 << 20);
    arena_rewind(&a, empty);
    UNIT_INT(a.used, 0);
    arena_alloc(&a, (size_t)3 << 20); /* a big one first */
    memset(arena_alloc(&a, 10), 0, 10);
    arena_rewind(&a, empty);
    UNIT_INT(a.used, 0);
}

static void failing_leaves_the_arena_usable(void) {
    start((size_t)1 << 20);
    char *volatile kept = arena_strndup(&a, "kept", 4);
    if (guard_enter(&g)) ask_in_small_pieces();
    UNIT_TEXT(kept, "kept");
    arena_free(&a);
    UNIT_TEXT(arena_strndup(&a, "again", 5), "again");
    arena_free(&a);
}

static volatile sig_atomic_t other_handler_ran;
static sigjmp_buf out_of_other_handler;
static void other_handler(int number) {
    (void)number;
    other_handler_ran = 1;
    siglongjmp(out_of_other_handler, 1);
}

static void cut_short_map_fails(void) {
    char path[] = "/tmp/unit_arena_XXXXXX";
    int fd = mkstemp(path);
    size_t size = (size_t)4 * (size_t)sysconf(_SC_PAGESIZE);
    UNIT_INT(ftruncate(fd, (off_t)size), 0);
    volatile char *base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    UNIT_CHECK(base != MAP_FAILED);
    signal(SIGBUS, other_handler);
    for (volatile int round = 0; round < 2; round++) { /* twice: the signal is not left blocked */
        guard_init(&g);
        if (guard_enter(&g)) {
            guard_watch_map(&g, (const void *)(uintptr_t)base, size);
            UNIT_INT(ftruncate(fd, 1), 0);
            (void)base[size - 1];
            UNIT_CHECK(!"reading past the end of the file goes on");
        }
        UNIT_INT(g.st.code, STATUS_INPUT);
        guard_watch_map(&g, NULL, 0);
    }
    if (sigsetjmp(out_of_other_handler, 1) == 0) { /* switched off: the old disposition is back */
        (void)base[size - 1];
        UNIT_CHECK(!"not reached");
    }
    UNIT_CHECK(other_handler_ran);
    other_handler_ran = 0;
    guard_watch_map(&g, "elsewhere", 5); /* and faults elsewhere go there too */
    if (sigsetjmp(out_of_other_handler, 1) == 0) {
        (void)base[size - 1];
        UNIT_CHECK(!"not reached");
    }
    UNIT_CHECK(other_handler_ran);
    guard_watch_map(&g, NULL, 0);
    signal(SIGBUS, SIG_DFL);
    munmap((void *)(uintptr_t)base, size);
    close(fd);
    unlink(path);
}

static void checked_arithmetic_saturates(void) {
    UNIT_INT(checked_add(INT64_MAX, 1), INT64_MAX);
    UNIT_INT(checked_add(INT64_MIN, -1), INT64_MIN);
    UNIT_INT(checked_sub(INT64_MIN, 1), INT64_MIN);
    UNIT_INT(checked_sub(0, INT64_MIN), INT64_MAX);
    UNIT_INT(checked_mul(INT64_MAX, -2), INT64_MIN);
    UNIT_INT(checked_mul(INT64_MIN, INT64_MIN), INT64_MAX);
    UNIT_INT(checked_div(INT64_MIN, -1), INT64_MAX);
    UNIT_INT(checked_rem(INT64_MIN, -1), 0);
    UNIT_INT(checked_ceil_div(7, 2), 4);
    UNIT_INT(checked_ceil_div(-7, 2), -3);
    UNIT_INT(checked_from_double(1e30), INT64_MAX);
    UNIT_INT(checked_from_double(-1e30), INT64_MIN);
    UNIT_INT(checked_from_double(strtod("nan", NULL)), 0);
    UNIT_INT(checked_from_double(-2.9), -2);
}

static arena within;
static void work(void *context) {
    *(char **)context = arena_strndup(&within, "text", 4);
    UNIT_TEXT(*(char **)context, "text");
}
static void fail(void *context) {
    work(context);
    guard_fail(within.guard, STATUS_INPUT, "no more");
}

static void work_with_an_arena_of_its_own(void) {
    status st = {0};
    char *text = NULL;
    UNIT_CHECK(arena_within(&within, work, &text, &st) && st.code == STATUS_OK);
    UNIT_CHECK(!arena_within(&within, fail, &text, &st));
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_TEXT(st.text, "no more");
}

int main(void) {
    UNIT_RUN(guard_carries_the_reason);
    UNIT_RUN(pieces_are_aligned_and_apart);
    UNIT_RUN(big_pieces_do_not_waste_the_chunk);
    UNIT_RUN(texts);
    UNIT_RUN(grow_keeps_what_is_there);
    UNIT_RUN(limits_fail_through_the_guard);
    UNIT_RUN(limit_can_be_used_up_nearly_whole);
    UNIT_RUN(rewind_gives_back);
    UNIT_RUN(failing_leaves_the_arena_usable);
    UNIT_RUN(cut_short_map_fails);
    UNIT_RUN(checked_arithmetic_saturates);
    UNIT_RUN(work_with_an_arena_of_its_own);
    return unit_end();
}
