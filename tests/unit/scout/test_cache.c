/* The cache: hits and misses, every byte of an entry bent, foreign files, trimming, and many processes that write the
 * same folder at once, some of them killed in the middle. */
#include "common/files.h"
#include "scout/cache/cache.h"
#include "scout/cache/cache_parse.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char top[64];
static status st;
static char note[512];

static void fresh(void) {
    char command[128];
    if (top[0]) {
        snprintf(command, sizeof command, "rm -rf '%s'", top);
        UNIT_INT(system(command), 0);
    }
    snprintf(top, sizeof top, "/dev/shm/unit_cache_XXXXXX"); /* in memory: it writes some ten thousand files */
    if (mkdtemp(top)) return;
    snprintf(top, sizeof top, "/tmp/unit_cache_XXXXXX");
    UNIT_CHECK(mkdtemp(top) != NULL);
}

static cache opened(uint64_t limit) {
    cache c;
    UNIT_CHECK(cache_open(&c, top, "some_device-0123456789", limit, &st));
    return c;
}

static json_t *value_of(int k) {
    return json_pack("{s:i, s:f, s:s, s:[i,i]}", "number", k, "third", k / 3.0, "text", "a \"quoted\" \xc3\xa9", "list",
                     k, k + 1);
}

static bool put(const cache *c, const char *key, int k) {
    json_t *value = value_of(k);
    const bool good = cache_put(c, &key, 1, value, &st);
    json_decref(value);
    return good;
}

static bool hit(const cache *c, const char *key, int k) {
    json_t *want = value_of(k), *got = cache_get(c, key, note, sizeof note);
    const bool good = got && json_equal(got, want);
    json_decref(want);
    json_decref(got);
    return good;
}

static bool miss(const cache *c, const char *key) {
    json_t *got = cache_get(c, key, note, sizeof note);
    json_decref(got);
    return !got;
}

/* The one entry's file. */
static void entry_path(const cache *c, char *path, size_t room) {
    char folder[300];
    snprintf(folder, sizeof folder, "%s/%s", c->folder, c->device);
    DIR *d = opendir(folder);
    path[0] = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') snprintf(path, room, "%s/%s", folder, e->d_name);
    if (d) closedir(d);
}

static void hits_and_misses(void) {
    fresh();
    cache c = opened(0);
    UNIT_CHECK(miss(&c, "a"));
    UNIT_TEXT(note, "");
    UNIT_CHECK(put(&c, "a", 1) && put(&c, "b", 2) && put(&c, "with \"quotes\"\n\x01 and \xc3\xa4", 3));
    UNIT_CHECK(hit(&c, "a", 1) && hit(&c, "b", 2) && hit(&c, "with \"quotes\"\n\x01 and \xc3\xa4", 3));
    UNIT_CHECK(put(&c, "a", 4) && hit(&c, "a", 4)); /* the last one wins */
    c.off = true;
    UNIT_CHECK(miss(&c, "a") && put(&c, "c", 5)); /* --no-cache still stores */
    c.off = false;
    UNIT_CHECK(hit(&c, "c", 5));
    cache other;
    UNIT_CHECK(cache_open(&other, top, "another_device-0123456789", 0, &st));
    UNIT_CHECK(miss(&other, "a") && put(&other, "a", 6) && hit(&other, "a", 6) && hit(&c, "a", 4));
    char used[256];
    cache_info *rows = NULL;
    int count = 0;
    UNIT_CHECK(cache_list(top, used, sizeof used, &rows, &count, &st));
    UNIT_INT(count, 2);
    if (count == 2) {
        UNIT_TEXT(rows[0].device, "another_device-0123456789");
        UNIT_INT(rows[0].entries, 1);
        UNIT_INT(rows[1].entries, 4);
        UNIT_CHECK(rows[1].bytes > 400);
    }
    free(rows);
    cache_close(&c);
    cache_close(&other);
}

/* Whatever is done to an entry: a miss with a line about it, or (a bit of the key's own text) none at all. */
static void bad_entries(void) {
    char path[600];
    size_t n = 0;
    fresh();
    cache c = opened(0);
    UNIT_CHECK(put(&c, "key", 1));
    entry_path(&c, path, sizeof path);
    char *good = files_read(path, 1 << 20, &n, &st);
    if (!UNIT_CHECK(good != NULL)) return;
    for (size_t k = 0; k < n; k++) {
        good[k] ^= 4;
        UNIT_CHECK(files_write(path, good, n, &st));
        if (!UNIT_CHECK(miss(&c, "key") && strstr(note, "is not used"))) printf("    byte %zu\n", k);
        good[k] ^= 4;
    }
    for (size_t k = 0; k < n; k++) {
        UNIT_CHECK(files_write(path, good, k, &st));
        UNIT_CHECK(miss(&c, "key") && note[0]);
    }
    /* an entry of another key under this name; then one that is a folder, and a pipe without a writer */
    UNIT_CHECK(put(&c, "key", 1));
    char *moved = strstr(good, "\"key\":\"key\"");
    if (moved) memcpy(moved, "\"key\":\"yek\"", 11);
    UNIT_CHECK(files_write(path, good, n, &st) && miss(&c, "key") && strstr(note, "another key"));
    UNIT_CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0 && miss(&c, "key") && note[0]);
    UNIT_CHECK(!put(&c, "key", 2) && st.code == STATUS_ENVIRONMENT);
    UNIT_CHECK(rmdir(path) == 0 && mkfifo(path, 0666) == 0 && miss(&c, "key") && note[0]);
    UNIT_CHECK(put(&c, "key", 3) && hit(&c, "key", 3));
    free(good);
    cache_close(&c);
}

/* ---- the quick parser against the ordinary one ---- */

static json_t *random_value(int depth) {
    static const char *const texts[] = {
        "", "plain", "with \"quotes\" and \\", "tab\tline\n", "\xc3\xa9\xe2\x82\xac", "\x01", "a/b", "}],:"};
    static const json_int_t ints[] = {0, -1, 7, 123456789, INT64_MAX, INT64_MIN, 999999999999999999, -42};
    static const double reals[] = {0.0, -0.0, 1.5, 46.624070799615147, 1e300, -2.5e-300, 1e15, 3.0};
    const int what = rand() % (depth > 0 ? 8 : 6), which = rand() % 8;
    if (what == 0) return json_string(texts[which]);
    if (what == 1) return json_integer(ints[which]);
    if (what == 2) return json_real(reals[which]);
    if (what == 3) return json_real((double)rand() / ((double)rand() + 1));
    if (what == 4) return json_boolean(which & 1);
    if (what == 5) return json_null();
    json_t *made = what == 6 ? json_array() : json_object();
    for (int k = rand() % 5; k > 0; k--) {
        char key[16];
        snprintf(key, sizeof key, "k%d", k);
        if (what == 6)
            json_array_append_new(made, random_value(depth - 1));
        else
            json_object_set_new(made, key, random_value(depth - 1));
    }
    return made;
}

static void quick_parser(void) {
    int quick = 0;
    for (int k = 0; k < 3000; k++) {
        json_t *value = random_value(5);
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        const size_t n = strlen(text);
        json_t *got = cache_parse(text, n), *want = json_loadb(text, n, JSON_DECODE_ANY, NULL);
        if (!UNIT_CHECK(got && json_equal(got, want) && json_equal(got, value))) printf("    %s\n", text);
        quick += got != NULL;
        json_decref(got);
        json_decref(want);
        for (size_t cut = 0; cut < n && n < 200; cut++) { /* whatever it takes, the ordinary one takes as the same */
            char *part = strndup(text, cut);
            got = cache_parse(part, cut), want = json_loadb(part, cut, JSON_DECODE_ANY, NULL);
            if (!UNIT_CHECK(!got || json_equal(got, want))) printf("    %s\n", part);
            json_decref(got);
            json_decref(want);
            if (cut > 0) { /* and a byte of it bent */
                char *bent = strdup(text);
                bent[cut] = (char)(bent[cut] ^ 1 << rand() % 7);
                got = bent[cut] ? cache_parse(bent, n) : NULL;
                want = json_loadb(bent, n, JSON_DECODE_ANY, NULL);
                if (!UNIT_CHECK(!got || (want && json_equal(got, want)))) printf("    %s\n", bent);
                json_decref(got);
                json_decref(want);
                free(bent);
            }
            free(part);
        }
        free(text);
        json_decref(value);
    }
    UNIT_INT(quick, 3000);
    static const char *const none[] = {"1.", "-0.e308", "1.e5", "01", "-", "1e", "1e+", "1.5.", "+1", "1e999"};
    for (size_t k = 0; k < sizeof none / sizeof none[0]; k++)
        if (!UNIT_CHECK(!cache_parse(none[k], strlen(none[k])))) printf("    %s\n", none[k]);
    static char deep[1000];
    memset(deep, '[', sizeof deep - 1);
    UNIT_CHECK(cache_parse(deep, sizeof deep - 1) == NULL);
}

static void no_folder(void) {
    cache c;
    char path[200];
    fresh();
    snprintf(path, sizeof path, "%s/file", top);
    UNIT_CHECK(files_write(path, "x", 1, &st));
    st = (status){0};
    UNIT_CHECK(!cache_open(&c, path, "device-0", 0, &st)); /* told once */
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
    UNIT_CHECK(miss(&c, "a") && note[0] == 0);
    UNIT_CHECK(put(&c, "a", 1)); /* and harmless */
    cache_trim(&c);
    cache_close(&c);
    UNIT_CHECK(!cache_open(&c, top, "../elsewhere", 0, &st));
    cache_close(&c);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    UNIT_CHECK(!cache_open(&c, NULL, "device-0", 0, &st) && strstr(st.text, "--cache-dir"));
    cache_close(&c);
    setenv("HOME", top, 1);
    UNIT_CHECK(cache_open(&c, NULL, "device-0", 0, &st));
    snprintf(path, sizeof path, "%s/.cache/ceiling-scout", top);
    UNIT_TEXT(c.folder, path);
    cache_close(&c);
    setenv("XDG_CACHE_HOME", top, 1);
    UNIT_CHECK(cache_open(&c, NULL, "device-0", 0, &st));
    snprintf(path, sizeof path, "%s/ceiling-scout", top);
    UNIT_TEXT(c.folder, path);
    cache_close(&c);
}

static void age(const char *path, long seconds) {
    const struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    UNIT_INT(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void each_entry(const cache *c, void (*act)(const char *path, void *context), void *context) {
    char folder[300], path[600];
    snprintf(folder, sizeof folder, "%s/%s", c->folder, c->device);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        act(path, context);
    }
    if (d) closedir(d);
}

static void make_old(const char *path, void *context) {
    (void)context;
    age(path, 7200);
}

static void trimming(void) {
    char key[32], path[600];
    fresh();
    cache c = opened(20000);
    for (int k = 0; k < 300; k++) {
        snprintf(key, sizeof key, "old %d", k);
        UNIT_CHECK(put(&c, key, k));
    }
    each_entry(&c, make_old, NULL);
    UNIT_CHECK(hit(&c, "old 7", 7)); /* used again: not among the oldest any more */
    UNIT_CHECK(put(&c, "new", 1));
    snprintf(path, sizeof path, "%s/%s/.new.1.feedfacefeedfacefeedfacefeedface", c.folder, c.device);
    UNIT_CHECK(files_write(path, "torn", 4, &st));
    char recent[600], foreign[600];
    snprintf(recent, sizeof recent, "%s/%s/.new.2.feedfacefeedfacefeedfacefeedface", c.folder, c.device);
    UNIT_CHECK(files_write(recent, "torn", 4, &st));
    snprintf(foreign, sizeof foreign, "%s/%s/notes.txt", c.folder, c.device);
    UNIT_CHECK(files_write(foreign, "mine", 4, &st));
    age(path, 7200);
    age(foreign, 999999);
    cache_trim(&c);
    UNIT_CHECK(access(path, F_OK) != 0);    /* its writer has died long ago */
    UNIT_CHECK(access(recent, F_OK) == 0);  /* this one may live */
    UNIT_CHECK(access(foreign, F_OK) == 0); /* none of ours */
    UNIT_CHECK(hit(&c, "new", 1) && hit(&c, "old 7", 7));
    char used[256];
    cache_info *rows = NULL;
    int count = 0;
    UNIT_CHECK(cache_list(top, used, sizeof used, &rows, &count, &st));
    UNIT_CHECK(count == 1 && rows[0].bytes <= 20000 && rows[0].bytes > 15000 && rows[0].entries > 50);
    free(rows);
    cache_close(&c);
}

/* ---- many at once ---- */

enum { WRITERS = 32, ENTRIES = 1000, READERS = 2 };

/* Half of a writer's keys are its own, the other half are shared. The value says the key's number. */
static int key_of(int writer, int k, char *key, size_t room) {
    if (k % 2)
        snprintf(key, room, "shared %d", k);
    else
        snprintf(key, room, "writer %d entry %d", writer, k);
    return k;
}

static int write_entries(int writer) {
    char key[64];
    cache c;
    int bad = 0;
    if (!cache_open(&c, top, "race-0123456789", 0, &st)) return 1;
    for (int k = 0; k < ENTRIES; k++) bad += !put(&c, key, key_of(writer, k, key, sizeof key));
    cache_close(&c);
    return bad > 0;
}

/* Reads until it is told to stop: what is there is whole and right. */
static int read_entries(int reader) {
    char key[64];
    cache c;
    if (!cache_open(&c, top, "race-0123456789", 0, &st)) return 1;
    for (unsigned turn = (unsigned)reader;; turn = turn * 1103515245u + 12345u) {
        const int k = key_of((int)(turn >> 8) % WRITERS, (int)(turn >> 16) % ENTRIES, key, sizeof key);
        json_t *got = cache_get(&c, key, note, sizeof note);
        if (note[0]) return 2;
        if (got && json_integer_value(json_object_get(got, "number")) != k) return 3;
        json_decref(got);

        char stop[128];
        snprintf(stop, sizeof stop, "%s/stop", top);
        if (access(stop, F_OK) == 0) return 0;
    }
}

static pid_t spawn(int (*work)(int), int number) {
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) _exit(work(number));
    return pid;
}

static void stop_readers(const pid_t *readers) {
    char stop[128];
    int how;
    snprintf(stop, sizeof stop, "%s/stop", top);
    UNIT_CHECK(files_write(stop, "", 0, &st));
    for (int k = 0; k < READERS; k++) {
        UNIT_INT(waitpid(readers[k], &how, 0), readers[k]);
        UNIT_INT(how, 0);
    }
}

static void race(void) {
    pid_t writers[WRITERS], readers[READERS];
    char key[64];
    int how, lost = 0;
    fresh();
    for (int k = 0; k < READERS; k++) readers[k] = spawn(read_entries, k + 1);
    for (int k = 0; k < WRITERS; k++) writers[k] = spawn(write_entries, k);
    for (int k = 0; k < WRITERS; k++) {
        UNIT_INT(waitpid(writers[k], &how, 0), writers[k]);
        UNIT_INT(how, 0);
    }
    stop_readers(readers);
    cache c;
    UNIT_CHECK(cache_open(&c, top, "race-0123456789", 0, &st));
    for (int w = 0; w < WRITERS; w++)
        for (int k = 0; k < ENTRIES; k++) {
            const int want = key_of(w, k, key, sizeof key);
            lost += !hit(&c, key, want);
        }
    UNIT_INT(lost, 0);
    char used[256];
    cache_info *rows = NULL;
    int count = 0;
    UNIT_CHECK(cache_list(top, used, sizeof used, &rows, &count, &st));
    UNIT_CHECK(count == 1 && rows[0].entries == WRITERS * ENTRIES / 2 + ENTRIES / 2);
    free(rows);
    cache_close(&c);
}

static void count_temps(const char *path, void *context) {
    if (strstr(path, "/.new.")) ++*(int *)context;
}

/* Writers that are killed in the middle leave nothing torn, and what they leave is cleared away. */
static void killed_writers(void) {
    enum { KILLS = 150 };
    pid_t readers[READERS];
    int how, temps = 0;
    fresh();
    for (int k = 0; k < READERS; k++) readers[k] = spawn(read_entries, k + 1);
    for (int k = 0; k < KILLS; k++) {
        const pid_t pid = spawn(write_entries, k % WRITERS);
        usleep((useconds_t)(rand() % 4000));
        kill(pid, SIGKILL);
        UNIT_INT(waitpid(pid, &how, 0), pid);
    }
    stop_readers(readers);
    cache c;
    UNIT_CHECK(cache_open(&c, top, "race-0123456789", 0, &st));
    each_entry(&c, make_old, NULL);
    cache_trim(&c);
    each_entry(&c, count_temps, &temps);
    UNIT_INT(temps, 0);
    cache_close(&c);
}

int main(void) {
    alarm(250);
    UNIT_RUN(hits_and_misses);
    UNIT_RUN(bad_entries);
    UNIT_RUN(quick_parser);
    UNIT_RUN(no_folder);
    UNIT_RUN(trimming);
    UNIT_RUN(race);
    UNIT_RUN(killed_writers);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    if (system(command) != 0) return 1;
    return unit_end();
}
