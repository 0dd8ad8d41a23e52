/* A table that is replaced ten thousand times while others read: no reader waits, none sees parts of two. Also built
 * with the thread sanitizer (tests/dispatch/run.sh), which is why it needs nothing but the library. */
#include "tests/unit/dispatch/dispatch_fixture.h"
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 3, SHORT_READERS = 8, RELOADS = 10000, ENTRIES = 6, TABLES = 4 };

static scout_dispatch *shared;
static lab_text tables[TABLES]; /* each has a time of its own in all of its entries */
static atomic_bool done;
static atomic_ulong views, torn, failed;

static void make_tables(void) {
    for (int n = 0; n < TABLES; n++) {
        lab_add(&tables[n], LAB_HEAD);
        for (int k = 0; k < ENTRIES; k++)
            lab_add(&tables[n],
                    "%s{\"key\": \"" LAB_GEMM "\", \"operation\": \"%d\", \"choice\": \"custom\", \"implementation\": "
                    "\"k%d\", \"variant\": \"v\", \"config\": {}, \"expected_us\": %d, \"default_us\": %d, " LAB_PROOF
                    "}",
                    k ? "," : "", 64 << k, n, n, n + 1, n + 1);
        lab_add(&tables[n], LAB_TAIL);
    }
}

/* All entries of one view are of one table, and stay so as long as it lasts. */
static void look(scout_dispatch_key *key) {
    scout_dispatch_view view = scout_dispatch_begin(shared);
    double time = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (int k = 0; k < ENTRIES; k++) {
            key->numbers[0] = 64 << k;
            const scout_dispatch_entry *e = scout_dispatch_find(&view, key);
            if (k == 0 && turn == 0 && e) time = e->expected_us;
            const bool whole = e && e->expected_us == time && e->default_us == time &&
                               e->implementation[1] == (char)('0' + (int)time - 1) && e->key[0] == 'g';
            if (!whole) atomic_fetch_add(&torn, 1);
        }
    }
    scout_dispatch_end(&view);
    atomic_fetch_add(&views, 1);
}

static void *read_on(void *unused) {
    scout_dispatch_key key;
    char text[128];
    snprintf(text, sizeof text, LAB_GEMM, 64);
    if (!scout_dispatch_key_parse(&key, text, strlen(text))) atomic_fetch_add(&failed, 1);
    while (!atomic_load(&done)) look(&key);
    return unused;
}

/* Two write, half each: they take turns among themselves. */
static void *write_on(void *first) {
    scout_dispatch_note note;
    const size_t offset = first == NULL ? 0 : 1;
    for (size_t k = 0; k < RELOADS / 2; k++) {
        const lab_text *t = &tables[(2 * k + offset) % TABLES];
        const scout_dispatch_status status = scout_dispatch_reload_text(shared, t->text, t->used, &note);
        if (status != SCOUT_DISPATCH_OK && status != SCOUT_DISPATCH_BUSY) atomic_fetch_add(&failed, 1);
        if (status == SCOUT_DISPATCH_BUSY) k--; /* readers hold a view for microseconds */
    }
    return NULL;
}

static void readers_see_whole_tables(void) {
    static pthread_t readers[READERS], writers[2];
    const scout_dispatch_device here = lab_device();
    scout_dispatch_note note;
    make_tables();
    UNIT_INT(scout_dispatch_open_text(&shared, tables[0].text, tables[0].used, &here, &note), SCOUT_DISPATCH_OK);
    for (int k = 0; k < READERS; k++) UNIT_INT(pthread_create(&readers[k], NULL, read_on, NULL), 0);
    for (int k = 0; k < 2; k++) UNIT_INT(pthread_create(&writers[k], NULL, write_on, k ? &writers[k] : NULL), 0);
    for (int k = 0; k < 2; k++) pthread_join(writers[k], NULL);
    atomic_store(&done, true);
    for (int k = 0; k < READERS; k++) pthread_join(readers[k], NULL);
    UNIT_INT(atomic_load(&torn), 0);
    UNIT_INT(atomic_load(&failed), 0);
    UNIT_CHECK(atomic_load(&views) > READERS);
    scout_dispatch_close(shared);
}

/* Views that are hardly begun when they end: what happens between looking which table is current and holding it is then
 * most of what happens. More readers than processors, so that they are stopped anywhere. */
static void *glance_on(void *unused) {
    while (!atomic_load(&done)) {
        scout_dispatch_view view = scout_dispatch_begin(shared);
        const scout_dispatch_entry *e = scout_dispatch_at(&view, ENTRIES - 1);
        if (!e || e->key[0] != 'g') atomic_fetch_add(&torn, 1);
        scout_dispatch_end(&view);
    }
    return unused;
}

static void short_views_keep_their_table(void) {
    pthread_t readers[SHORT_READERS];
    scout_dispatch_note note;
    atomic_store(&done, false);
    UNIT_INT(scout_dispatch_open_text(&shared, tables[0].text, tables[0].used, NULL, &note), SCOUT_DISPATCH_OK);
    for (int k = 0; k < SHORT_READERS; k++) UNIT_INT(pthread_create(&readers[k], NULL, glance_on, NULL), 0);
    for (int k = 0; k < RELOADS / 4; k++) {
        const lab_text *t = &tables[k % TABLES];
        if (scout_dispatch_reload_text(shared, t->text, t->used, &note) == SCOUT_DISPATCH_BAD)
            atomic_fetch_add(&failed, 1);
    }
    atomic_store(&done, true);
    for (int k = 0; k < SHORT_READERS; k++) pthread_join(readers[k], NULL);
    UNIT_INT(atomic_load(&torn), 0);
    UNIT_INT(atomic_load(&failed), 0);
    scout_dispatch_close(shared);
}

int main(void) {
    UNIT_RUN(readers_see_whole_tables);
    UNIT_RUN(short_views_keep_their_table);
    return unit_end();
}
