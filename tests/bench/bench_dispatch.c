/* How long a lookup takes, beside what else one could do: the library, the header, a chained hash table with text keys,
 * and a list. Compiled with the header of a table (table.h, prefix bench) and linked with the library, which loads the
 * same table. Every key is asked for in a random order; the figures are the best of some rounds, so that what else runs
 * on the machine counts as little as possible, and the median. Usage: bench_dispatch TABLE.json [--at-most NS] */
#include "dispatch/scout_dispatch.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 31, MOST_FORMS = 256 };

/* What a caller has in hand: which of its prepared keys, and the sizes. */
typedef struct question {
    scout_dispatch_key *key; /* shared by all of one form */
    int64_t numbers[8];
    const char *text;
} question;

typedef struct node {
    const char *key;
    const scout_dispatch_entry *entry;
    struct node *next;
} node;

typedef struct bench {
    scout_dispatch *dispatch;
    scout_dispatch_view view;
    question *questions;
    uint32_t count;
    scout_dispatch_key *keys;
    uint32_t key_count;
    node **buckets;
    uint32_t bucket_mask;
} bench;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static _Noreturn void die(const char *why) {
    fprintf(stderr, "bench_dispatch: %s\n", why);
    exit(4);
}

/* ---- the lookups ---- */

static void set_numbers(const question *q) {
    memcpy(q->key->numbers, q->numbers, q->key->count * sizeof q->numbers[0]);
}

static const scout_dispatch_entry *by_library(const bench *b, const question *q) {
    set_numbers(q);
    return scout_dispatch_find(&b->view, q->key);
}

static const scout_dispatch_entry *by_library_alone(const bench *b, const question *q) {
    scout_dispatch_view view = scout_dispatch_begin(b->dispatch);
    set_numbers(q);
    const scout_dispatch_entry *e = scout_dispatch_find(&view, q->key);
    scout_dispatch_end(&view);
    return e;
}

static const scout_dispatch_entry *by_text(const bench *b, const question *q) {
    return scout_dispatch_find_text(&b->view, q->text);
}

static const scout_dispatch_entry *by_header(const bench *b, const question *q) {
    (void)b;
    set_numbers(q);
    return bench_find(q->key);
}

static uint64_t fnv(const char *text) {
    uint64_t hash = 0xcbf29ce484222325U;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    return hash;
}

static const scout_dispatch_entry *by_chain(const bench *b, const question *q) {
    for (const node *n = b->buckets[fnv(q->text) & b->bucket_mask]; n; n = n->next)
        if (strcmp(n->key, q->text) == 0) return n->entry;
    return NULL;
}

/* As a caller with sizes in hand would have to: the text is written first. */
static const scout_dispatch_entry *by_written_chain(const bench *b, const question *q) {
    char text[SCOUT_DISPATCH_KEY_ROOM];
    size_t used = 0;
    uint32_t number = 0;
    for (const char *s = q->key->form; *s; s++) {
        if (*s == ' ')
            used += (size_t)snprintf(text + used, sizeof text - used, "%" PRId64, q->numbers[number++]);
        else
            text[used++] = *s;
    }
    text[used] = 0;
    const question written = {.text = text};
    return by_chain(b, &written);
}

static const scout_dispatch_entry *by_list(const bench *b, const question *q) {
    const scout_dispatch_entry *e = NULL;
    for (size_t k = 0; (e = scout_dispatch_at(&b->view, k)) != NULL; k++)
        if (strcmp(e->key, q->text) == 0) return e;
    return NULL;
}

/* ---- the questions ---- */

static scout_dispatch_key *key_of_form(bench *b, const scout_dispatch_key *key) {
    for (uint32_t k = 0; k < b->key_count; k++)
        if (strcmp(b->keys[k].form, key->form) == 0) return &b->keys[k];
    if (b->key_count == MOST_FORMS) die("the table has more forms than a benchmark needs");
    b->keys[b->key_count] = *key;
    return &b->keys[b->key_count++];
}

static void make_questions(bench *b) {
    uint64_t random = 88172645463325252U;
    b->count = (uint32_t)scout_dispatch_count(&b->view);
    b->questions = calloc(b->count, sizeof *b->questions);
    b->keys = calloc(MOST_FORMS, sizeof *b->keys);
    for (b->bucket_mask = 1; b->bucket_mask < b->count;) b->bucket_mask = 2 * b->bucket_mask + 1;
    b->buckets = calloc((size_t)b->bucket_mask + 1, sizeof *b->buckets);
    if (!b->questions || !b->keys || !b->buckets) die("out of memory");
    for (uint32_t k = 0; k < b->count; k++) {
        const scout_dispatch_entry *e = scout_dispatch_at(&b->view, k);
        scout_dispatch_key key;
        node *n = malloc(sizeof *n);
        question *q = &b->questions[k];
        if (!n || !scout_dispatch_key_parse(&key, e->key, strlen(e->key)) || key.count > 8) die("no such key");
        *q = (question){.key = key_of_form(b, &key), .text = e->key};
        memcpy(q->numbers, key.numbers, key.count * sizeof key.numbers[0]);
        node **bucket = &b->buckets[fnv(e->key) & b->bucket_mask];
        *n = (node){e->key, e, *bucket};
        *bucket = n;
    }
    for (uint32_t k = b->count; k > 1; k--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        const uint32_t other = (uint32_t)(random % k);
        const question moved = b->questions[k - 1];
        b->questions[k - 1] = b->questions[other];
        b->questions[other] = moved;
    }
}

/* ---- timing ---- */

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Best and median of the rounds, nanoseconds a lookup; ends the program where one is not found. */
static double measure(const bench *b, const char *what, uint32_t asked, int rounds,
                      const scout_dispatch_entry *(*lookup)(const bench *, const question *)) {
    double times[ROUNDS];
    for (int round = 0; round < rounds; round++) {
        uint32_t found = 0;
        const double start = now_ns();
        for (uint32_t k = 0; k < asked; k++) found += lookup(b, &b->questions[k]) != NULL;
        times[round] = (now_ns() - start) / asked;
        if (found != asked) die("a key of the table was not found");
    }
    qsort(times, (size_t)rounds, sizeof times[0], by_size);
    printf("%-52s %9.1f %9.1f\n", what, times[0], times[rounds / 2]);
    return times[0];
}

int main(int argc, char **argv) {
    bench b = {.count = 0};
    scout_dispatch_note note;
    const double most = argc == 4 && strcmp(argv[2], "--at-most") == 0 ? strtod(argv[3], NULL) : 0;
    if (argc < 2) die("usage: bench_dispatch TABLE.json [--at-most NS]");
    if (scout_dispatch_open(&b.dispatch, argv[1], NULL, &note) > SCOUT_DISPATCH_WARNED) die(note.text);
    b.view = scout_dispatch_begin(b.dispatch);
    make_questions(&b);
    printf("%" PRIu32 " entries, each asked for in a random order; ns a lookup   best    median\n", b.count);
    const double library = measure(&b, "libscout_dispatch, key with numbers set", b.count, ROUNDS, by_library);
    const double header = measure(&b, "dispatch.h, key with numbers set", b.count, ROUNDS, by_header);
    measure(&b, "libscout_dispatch, with a view for each lookup", b.count, ROUNDS, by_library_alone);
    measure(&b, "libscout_dispatch, by text", b.count, ROUNDS, by_text);
    measure(&b, "chained hash table, text at hand", b.count, ROUNDS, by_chain);
    measure(&b, "chained hash table, text written first", b.count, ROUNDS, by_written_chain);
    measure(&b, "a list, text at hand", b.count < 200 ? b.count : 200, 5, by_list);
    scout_dispatch_end(&b.view);
    scout_dispatch_close(b.dispatch);
    if (most > 0 && (library > most || header > most)) {
        printf("a lookup takes more than %.0f ns\n", most);
        return 1;
    }
    return 0;
}
