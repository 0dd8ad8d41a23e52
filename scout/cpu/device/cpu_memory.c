/* Allocation. The kernel overcommits memory and kills a process that touches too much of it; so an allocation that
 * would not fit is refused first. Every page is touched by the thread that works on this share of the buffer, so that
 * it is local to that thread on machines with several memory nodes, and so that no timed launch waits for a page. */
#include "scout/cpu/device/cpu_fill.h"

#include "scout/cpu/device/cpu_limits.h"
#include "scout/cpu/device/cpu_team.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, SPARE = 64 << 20 };
static const uint64_t MAGIC = 0x5c0075c0075c0075u;

typedef struct header { /* in the page before what is handed out */
    uint64_t magic;
    void *base;
    size_t length;
} header;

typedef struct touching {
    char *bytes;
    uint64_t length;
} touching;

static void touch(void *context, int thread, int threads) {
    const touching *t = context;
    int64_t from, to;
    cpu_team_share((int64_t)((t->length + PAGE - 1) / PAGE), thread, threads, &from, &to);
    for (int64_t page = from; page < to; page++) *(volatile char *)(t->bytes + page * PAGE) = 0;
}

scout_answer cpu_memory_alloc(uint64_t bytes, void **out, scout_why *why) {
    uint64_t left = 0, total = 0;
    const uint64_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE, around = align + 2 * PAGE;
    *out = NULL;
    if (bytes > (uint64_t)1 << 46 || (cpu_limits_memory(&left, &total) && bytes + SPARE > left))
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "%.1f MB needed, %.1f MB are free", (double)bytes / 1e6,
                         (double)left / 1e6);
    const size_t length = (size_t)(bytes + around);
    char *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "no address space for %.1f MB", (double)bytes / 1e6);
    char *start = base + PAGE;
    start += (align - (uintptr_t)start % align) % align;
    if (align == HUGE_PAGE) (void)madvise(base, length, MADV_HUGEPAGE); /* a wish: small pages will do */
    *(header *)(void *)(start - PAGE) = (header){MAGIC, base, length};
    if (bytes > 0) {
        touching t = {start, bytes};
        cpu_team_run(touch, &t);
    }
    *out = start;
    return SCOUT_OK;
}

void cpu_memory_release(void *memory) {
    if (!memory) return;
    header *h = (header *)(void *)((char *)memory - PAGE);
    if (h->magic != MAGIC) return; /* not ours, or given back before: leaking is better than unmapping by guess */
    (void)munmap(h->base, h->length);
}
