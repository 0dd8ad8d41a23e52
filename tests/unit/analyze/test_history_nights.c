/* The alarms over simulated nights: each night is kept in a database, screened, and its suspects are measured again, by
 * the product's own code. Changes of one operation, one model and the whole device are planted. Small as a test;
 * BENCH_NIGHTS=365 BENCH_OPERATIONS=2000 is what `make bench-history` runs, and prints the table of docs/nightly.md. */
#include "tests/unit/unit.h"

#include "analyze/history/index.h"
#include "analyze/page/page.h"
#include "common/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OF_MODEL = 50, MOST_PLANTED = 128, FIRST = 45, EVERY = 7, PATIENCE = 3, LATE = 42 };

/* ---- chance that is the same everywhere ---- */

typedef struct chance {
    uint64_t state;
} chance;

static double uniform(chance *c) {
    c->state += 0x9e3779b97f4a7c15u;
    uint64_t z = c->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(chance *c) { return sqrt(-2 * log(uniform(c))) * cos(2 * M_PI * uniform(c)); }

/* ---- what is planted ---- */

typedef enum kind { OPERATION, MODEL, DEVICE, KINDS } kind;
static const char *const kind_names[] = {"one operation", "one model", "the whole device"};

typedef struct planted {
    kind is;
    int target, night, found; /* found: after how many nights, from 1; 0: not yet */
    double size;              /* logarithm */
} planted;

typedef struct world {
    history h;
    chance noise, again;
    double sigma, *level, *us;
    double device, ceilings, clock; /* logarithms: of all times, of all ceilings, of this night's clock */
    int operations, nights, now;
    planted all[MOST_PLANTED];
    int count, suspects;
    int64_t false_slower, false_faster;
    const history_place *place;
} world;

static void plant(world *w) {
    static const double sizes[] = {0.03, -0.03, 0.05, 0.1, -0.1, 0.2};
    if (w->now < FIRST || (w->now - FIRST) % EVERY || w->now + PATIENCE > w->nights || w->count == MOST_PLANTED) return;
    const int k = w->count++;
    planted *p = &w->all[k];
    *p = (planted){.is = (kind)(k % KINDS), .night = w->now, .size = log1p(sizes[k / KINDS % 6])};
    p->target = (int)(uniform(&w->noise) * (p->is == MODEL ? w->operations / OF_MODEL : w->operations));
    if (p->is == OPERATION) w->level[p->target] += p->size;
    if (p->is == DEVICE) w->device += p->size;
    if (p->is == DEVICE && k % 2) w->ceilings += p->size; /* every second time they move with it */
    for (int n = 0; p->is == MODEL && n < OF_MODEL; n++) w->level[p->target * OF_MODEL + n] += p->size;
}

static double time_of(world *w, int operation, chance *c) {
    return w->us[operation] * exp(w->level[operation] + w->device + w->clock + w->sigma * normal(c));
}
static double ceiling_of(const world *w, int operation) { return 0.8 * w->us[operation] * exp(w->ceilings + w->clock); }

static void repeat(void *context, const history_suspect *s, history_repeated *to) {
    world *w = context;
    const int operation = atoi(s->operation + 3);
    w->suspects++;
    for (; to->now_count < SCREEN_REPEATS; to->now_count++) {
        to->now[to->now_count].us = time_of(w, operation, &w->again);
        to->now[to->now_count].ceiling_us = ceiling_of(w, operation);
    }
}

/* ---- what was found ---- */

static void look(world *w) {
    history *h = &w->h;
    sqlite3_stmt *s = history_ask(h,
                                  "SELECT coalesce(part.operation, ''), state FROM change LEFT JOIN part "
                                  "USING(series) WHERE night = (SELECT max(id) FROM night) AND state IN (1, 2)",
                                  "");
    while (history_next(h, s)) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const bool device = !*name, slower = sqlite3_column_int(s, 1) == HISTORY_SLOWER;
        const int operation = device ? -1 : atoi(name + 3);
        bool known = false;
        for (int k = 0; k < w->count; k++) {
            planted *p = &w->all[k];
            const int age = w->now - p->night + 1;
            if (slower != (p->size > 0) || age > LATE) continue;
            const bool hit = (p->is == DEVICE && device) || (p->is == OPERATION && operation == p->target) ||
                             (p->is == MODEL && !device && operation / OF_MODEL == p->target);
            known = known || hit;
            if (hit && !p->found) p->found = age;
        }
        if (!known) *(slower ? &w->false_slower : &w->false_faster) += 1;
    }
}

/* ---- a year ---- */

static void night(world *w) {
    const history_setting setting = {"1", "library 1", "program"};
    char key[32], operation[32], model[32];
    w->clock = 0.003 * normal(&w->noise);
    plant(w);
    history_begin(&w->h);
    for (int k = 0; k < w->operations; k++) {
        snprintf(key, sizeof key, "gemm;n=%d", k);
        snprintf(operation, sizeof operation, "op_%d", k);
        snprintf(model, sizeof model, "model_%d", k / OF_MODEL);
        history_put(&w->h, &(history_figure){.place = w->place,
                                             .setting = &setting,
                                             .model = model,
                                             .folder = model,
                                             .key = key,
                                             .op = "gemm",
                                             .operation = operation,
                                             .best = "library",
                                             .count = 1,
                                             .taken = 1700000000 + 86400 * (int64_t)w->now + k,
                                             .us = time_of(w, k, &w->noise),
                                             .ci = w->sigma,
                                             .default_us = NAN,
                                             .ceiling_us = ceiling_of(w, k),
                                             .clock = 1500});
        if (k % OF_MODEL == OF_MODEL - 1)
            history_put_run(&w->h, &(history_run){.place = w->place,
                                                  .setting = &setting,
                                                  .model = model,
                                                  .folder = model,
                                                  .operations = "",
                                                  .count = OF_MODEL,
                                                  .us = 1e4 * exp(w->device),
                                                  .ci = 0.01,
                                                  .proven_us = 100,
                                                  .potential_us = 1000,
                                                  .ceiling_us = 9000,
                                                  .clock = 1500});
    }
    history_end(&w->h);
    history_begin(&w->h);
    history_settle(&w->h, repeat, w);
    history_commit(&w->h);
    look(w);
}

static void draw(world *w, const char *path) {
    history_index index;
    status st = {0};
    FILE *out = fopen(path, "w");
    const double begun = clock_seconds();
    index_make(&w->h, &index);
    UNIT_CHECK(out && page_index(&(history_shown){.h = &w->h, .index = &index}, out, &st));
    if (out) fclose(out);
    UNIT_INT(index.model_count, w->operations / OF_MODEL);
    printf("  index drawn in %.2f s, history of %.1f MB\n", clock_seconds() - begun, 1e-6 * (double)index.bytes);
}

/* Of one processor, whatever else the machine does. */
static double work_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void tell(const world *w, double work) {
    const double months = w->nights / 30.0;
    printf("| %.1f %% | %.1f | %.2f | ", 100 * w->sigma, (double)w->suspects / w->nights,
           (double)(w->false_slower + w->false_faster) / months);
    for (int is = 0; is < KINDS; is++) {
        int all = 0, in[PATIENCE + 1] = {0};
        for (int k = 0; k < w->count; k++) {
            if ((int)w->all[k].is != is) continue;
            all++;
            for (int n = 1; n <= PATIENCE; n++) in[n] += w->all[k].found && w->all[k].found <= n;
        }
        printf("%d, %d, %d of %d | ", in[1], in[2], in[3], all);
    }
    printf("%.1f |\n", work);
}

static int asked(const char *name, int usual) {
    const char *text = getenv(name);
    return text && atoi(text) > 0 ? atoi(text) : usual;
}

static bool kept; /* the guard's frame must not hold what changes */
static void year(double sigma, bool strict) {
    static world w;
    static guard g;
    arena a;
    char path[] = "/tmp/history_nights_XXXXXX", page_path[64];
    const history_place place = {"name=made up", "made up", "sustained", 1};
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    unlink(path);
    snprintf(page_path, sizeof page_path, "%s.html", path);
    w = (world){.noise = {11}, .again = {22}, .sigma = sigma, .place = &place};
    w.operations = asked("BENCH_OPERATIONS", 200);
    w.nights = asked("BENCH_NIGHTS", 90);
    w.level = calloc((size_t)w.operations, sizeof *w.level);
    w.us = calloc((size_t)w.operations, sizeof *w.us);
    for (int k = 0; k < w.operations; k++) w.us[k] = 5 * exp(7 * uniform(&w.noise));
    guard_init(&g);
    arena_init(&a, &g, (size_t)1 << 30);
    kept = guard_enter(&g);
    const double work = work_seconds();
    if (kept) {
        w.h = (history){.a = &a, .path = path};
        history_open(&w.h, HISTORY_CREATE);
        const arena_mark mark = arena_save(&a);
        for (w.now = 1; w.now <= w.nights; w.now++) {
            night(&w);
            arena_rewind(&a, mark);
        }
        tell(&w, work_seconds() - work);
        draw(&w, page_path);
    } else {
        printf("%s\n", g.st.text);
    }
    UNIT_CHECK(kept);
    history_close(&w.h);
    for (int k = 0; k < w.count; k++) {
        const planted *p = &w.all[k];
        const bool found = p->found > 0 && p->found <= PATIENCE;
        if (!found)
            printf("  not found: %s %d, %+.0f %% in night %d\n", kind_names[p->is], p->target, 100 * expm1(p->size),
                   p->night);
        if (strict) UNIT_CHECK(found);
    }
    if (strict) UNIT_CHECK((double)(w.false_slower + w.false_faster) <= fmax(w.nights / 30.0, 1));
    UNIT_CHECK(w.count > 0);
    static const char *const ends[] = {"", "-wal", "-shm", ".html"};
    for (int k = 0; k < 4; k++) {
        char one[80];
        snprintf(one, sizeof one, "%s%s", path, ends[k]);
        unlink(one);
    }
    free(w.level);
    free(w.us);
    arena_free(&a);
}

static void noise_of_3(void) { year(0.003, true); }
static void noise_of_5(void) { year(0.005, true); }
static void noise_of_10(void) { year(0.01, false); }

int main(void) {
    printf("| noise | measured again a night | false alarms a month | %s: found in 1, 2, 3 nights | %s | %s | s of a "
           "processor |\n",
           kind_names[0], kind_names[1], kind_names[2]);
    puts("|--:|--:|--:|--:|--:|--:|--:|");
    UNIT_RUN(noise_of_3);
    UNIT_RUN(noise_of_5);
    UNIT_RUN(noise_of_10);
    return unit_end();
}
