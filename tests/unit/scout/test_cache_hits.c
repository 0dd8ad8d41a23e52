/* What a hit costs, by values of the size that measurements have: `test_cache_hits N` (make bench-cache) takes the time
 * of N of them beside that of reading the same files, without it a few are looked at. */
#include "common/files.h"
#include "scout/cache/cache.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const measured = "tests/golden/reports/mlp_sparse/reports/gemm_4096x1024x1024_fp16_ae44557e79.json";
static int hits = 20;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* As the system hands the same bytes out: opened, read, closed. */
static double read_s(const cache *c, char *room, size_t size) {
    char command[400], path[400] = "";
    snprintf(command, sizeof command, "ls -S '%s/%s'/* | head -n 1", c->folder, c->device);
    FILE *list = popen(command, "r");
    if (!UNIT_CHECK(list && fgets(path, sizeof path, list))) path[0] = 0;
    if (list) pclose(list);
    path[strcspn(path, "\n")] = 0;
    const double begun_s = now_s();
    FILE *file = fopen(path, "rb");
    UNIT_CHECK(file && fread(room, 1, size, file) > 1000);
    if (file) fclose(file);
    return now_s() - begun_s;
}

static void hits_are_what_was_put(void) {
    enum { ROOM = 1 << 20 };
    char top[] = "/tmp/unit_hits_XXXXXX", key[64], note[512], command[64], *room = malloc(ROOM);
    double *took_s = calloc((size_t)hits, sizeof *took_s), floor_s = 1;
    status st;
    cache c = {.folder = NULL};
    json_error_t error;
    json_t *value = json_load_file(measured, 0, &error);
    UNIT_CHECK(value && room && took_s && mkdtemp(top) && cache_open(&c, top, "device-0123456789", 0, &st));
    for (int k = 0; k < hits; k++) {
        snprintf(key, sizeof key, "operation %d", k);
        UNIT_CHECK(cache_put(&c, (const char *[]){key}, 1, value, &st));
    }
    for (int k = 0; k < hits; k++) {
        snprintf(key, sizeof key, "operation %d", k);
        const double begun_s = now_s();
        json_t *got = cache_get(&c, key, note, sizeof note);
        took_s[k] = now_s() - begun_s;
        UNIT_CHECK(json_equal(got, value));
        json_decref(got);
    }
    for (int k = 0; k < 20; k++) {
        const double s = read_s(&c, room, ROOM);
        floor_s = s < floor_s ? s : floor_s;
    }
    qsort(took_s, (size_t)hits, sizeof *took_s, by_value);
    printf("a hit takes %.1f us (99 of 100: %.1f) of %d entries, whose bytes alone are read in %.1f us\n",
           1e6 * took_s[hits / 2], 1e6 * took_s[hits * 99 / 100], hits, 1e6 * floor_s);
    cache_close(&c);
    json_decref(value);
    free(room);
    free(took_s);
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    UNIT_INT(system(command), 0);
}

int main(int argc, char **argv) {
    if (argc > 1) hits = atoi(argv[1]);
    if (hits < 1) return 2;
    UNIT_RUN(hits_are_what_was_put);
    return unit_end();
}
