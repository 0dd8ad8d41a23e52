#include "tests/unit/runtime/run_fixture.h"

#include "common/dtype.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/device/cpu.h"
#include "scout/kinds/kind_tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void run_say(void *context, const char *line) {
    run_said *said = context;
    said->lines++;
    snprintf(said->last, sizeof said->last, "%s", line);
}

scout_run *run_open(const char *table, run_said *said) {
    scout_run_options options = {.size = sizeof options, .table = table, .device = "cpu"};
    scout_run_error error;
    scout_run *run;
    if (said) options.say = run_say, options.context = said;
    if (scout_run_open(&run, &options, &error) != SCOUT_RUN_OK) {
        printf("no run: %s\n", error.text);
        abort();
    }
    return run;
}

/* ---- numbers ---- */

double run_at(int32_t type, const void *numbers, int64_t at) {
    double x = 0;
    cpu_number_load((uint32_t)type, numbers, at, 1, 1, &x);
    return x;
}

void run_put(int32_t type, void *numbers, int64_t at, double value) {
    cpu_number_store((uint32_t)type, numbers, at, value);
}

void *run_numbers(int32_t type, int64_t count, uint64_t seed) {
    void *numbers = aligned_alloc(64, ((size_t)dtype_bytes((dtype)type, count) + 63) / 64 * 64);
    scout_why why;
    if (!numbers) abort();
    memset(numbers, 0, (size_t)dtype_bytes((dtype)type, count));
    if (cpu_device_api()->fill(NULL, numbers, (uint64_t)dtype_bytes((dtype)type, count), (uint32_t)type,
                               SCOUT_FILL_NORMAL, seed, &why) != SCOUT_OK)
        abort();
    return numbers;
}

scout_run_tensor run_tensor(int32_t type, int rank, const int64_t *dims, uint64_t seed) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= dims[d];
    return scout_run_dense(run_numbers(type, count, seed), type, rank, dims);
}

void run_free(scout_run_tensor *t) {
    free(t->data);
    t->data = NULL;
}

double run_of(const scout_run_tensor *t, const int64_t *at) {
    int64_t place = 0;
    for (int d = 0; d < t->rank; d++) place += at[d] * t->strides[d];
    return run_at(t->type, t->data, place);
}

double run_tolerance(int32_t type, int64_t depth) {
    return 2 * kind_rounding((uint32_t)type) + 0x1p-24 * (32 + 8 * sqrt((double)depth));
}

/* ---- tables ---- */

static char table_path[64];

static void remove_table(void) {
    if (table_path[0]) unlink(table_path);
}

const char *run_table_of(const scout_identity *id, const char *entries) {
    remove_table();
    if (!table_path[0]) atexit(remove_table);
    snprintf(table_path, sizeof table_path, "/tmp/scout_run_table_XXXXXX");
    const int fd = mkstemp(table_path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) abort();
    fprintf(file,
            "{\"schema\": \"ceiling-scout/dispatch/1\", \"device\": {\"class\": \"here\", \"name\": \"%s\", "
            "\"capability\": \"%s\", \"driver\": \"%s\", \"units\": %d, \"memory_mib\": %llu, \"libraries\": [",
            id->name, id->capability, id->driver, id->units, (unsigned long long)(id->memory_bytes >> 20));
    for (uint32_t k = 0; k < id->library_count; k++)
        fprintf(file, "%s{\"name\": \"%s\", \"version\": \"%s\"}", k ? ", " : "", id->libraries[k].name,
                id->libraries[k].version);
    fprintf(file, "]}, \"regime\": \"r\", \"method\": 5, \"entries\": [%s]}", entries);
    fclose(file);
    return table_path;
}

const char *run_table(const char *entries, const char *name) {
    scout_identity id = {.size = sizeof id};
    scout_why why;
    if (cpu_device_api()->identify(0, &id, &why) != SCOUT_OK) abort();
    if (name) snprintf(id.name, sizeof id.name, "%s", name);
    return run_table_of(&id, entries);
}

static const char *version_of(const char *library) {
    static scout_identity id;
    scout_why why;
    id.size = sizeof id;
    if (cpu_device_api()->identify(0, &id, &why) != SCOUT_OK) abort();
    for (uint32_t k = 0; k < id.library_count; k++)
        if (strcmp(id.libraries[k].name, library) == 0) return id.libraries[k].version;
    return "none";
}

const char *run_entry(const char *key, const char *choice, const char *implementation, const char *variant,
                      const char *library) {
    static char texts[8][1536];
    static int next;
    char *text = texts[next = (next + 1) % 8], said[160] = "";
    if (library)
        snprintf(said, sizeof said, "\"library\": {\"name\": \"%s\", \"version\": \"%s\"}, ", library,
                 version_of(library));
    snprintf(text, sizeof texts[0],
             "{\"key\": \"%s\", \"operation\": \"o\", \"choice\": \"%s\", \"implementation\": \"%s\", \"variant\": "
             "\"%s\", %s\"config\": {}, \"expected_us\": 9, \"default_us\": 10, \"proof\": {\"ratio\": 0.9, "
             "\"ratio_ci\": 0.01, \"expected_ci\": 0.002, \"default_ci\": 0.003, \"batches\": 40, \"launches\": "
             "4000}}",
             key, choice, implementation, variant, said);
    return text;
}
