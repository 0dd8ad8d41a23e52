/* What ncu printed, read: stored tables of both pages (written after its documentation), and every way in which such a
 * file can be bent. */
#include "scout/report/counters.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 1 << 20 };

static counters c;
static status st;

static bool near(double got, double want) { return fabs(got - want) <= 1e-9 * (1 + fabs(want)); }

/* The caller's copy of a stored file, with a NUL behind it. */
static char *stored(const char *name, size_t *size) {
    char path[256];
    snprintf(path, sizeof path, "tests/counters/%s", name);
    FILE *f = fopen(path, "re");
    char *text = calloc(1, MOST);
    if (f && text) *size = fread(text, 1, MOST - 1, f);
    if (!UNIT_CHECK(f && text && *size > 0)) exit(1);
    fclose(f);
    return text;
}

static bool read_stored(const char *name) {
    size_t size = 0;
    char *text = stored(name, &size);
    const bool good = counters_read(text, size, name, &c, &st);
    free(text);
    return good;
}

static bool read_text(const char *text) {
    const size_t size = strlen(text);
    char *copy = malloc(size + 1); /* to the byte: a reader that goes on behind it is seen by the sanitizer */
    if (!copy) exit(1);
    memcpy(copy, text, size + 1);
    const bool good = counters_read(copy, size, "a.csv", &c, &st);
    free(copy);
    return good;
}

static void memory(void) {
    if (!UNIT_CHECK(read_stored("memory_raw.csv"))) return;
    const double first = 30.0005, second = 10.00025, both = first + second;
    UNIT_INT(c.kernels, 2); /* the harness's own is none of them */
    UNIT_CHECK(near(c.time_us, both));
    UNIT_TEXT(c.slowest, "void gemm_stream<(int)8, (bool)1>(const __half *, \"odd\", int)");
    UNIT_CHECK(near(c.percent[COUNTERS_DRAM], (90 * first + 30 * second) / both));
    UNIT_CHECK(near(c.percent[COUNTERS_L2], (40 * first + 80 * second) / both));
    UNIT_CHECK(near(c.percent[COUNTERS_WARPS], (50 * first + 30 * second) / both));
    /* 1 of 9 and 3 of 9: what runs, and what could, is not held back */
    UNIT_CHECK(near(c.percent[COUNTERS_SYNCHRONISATION], (100 / 9.0 * first + 100 / 3.0 * second) / both));
    UNIT_TEXT(c.bottleneck, "memory");
    UNIT_TEXT(c.text, "DRAM works at 75 % of its peak");
}

static void tensor(void) {
    if (!UNIT_CHECK(read_stored("tensor_details.csv"))) return;
    UNIT_INT(c.kernels, 3);
    UNIT_CHECK(near(c.time_us, 3 * 1512.64));
    UNIT_CHECK(near(c.percent[COUNTERS_TENSOR], 87.25)); /* the busiest of its pipes */
    UNIT_TEXT(c.bottleneck, "tensor");
}

static void synchronisation(void) {
    if (!UNIT_CHECK(read_stored("synchronisation_raw.csv"))) return;
    UNIT_CHECK(near(c.percent[COUNTERS_SYNCHRONISATION], 50));
    UNIT_TEXT(c.bottleneck, "synchronisation");
    UNIT_CHECK(near(c.time_us, 7.25));
}

static void latency(void) {
    if (!UNIT_CHECK(read_stored("latency_raw.csv"))) return;
    UNIT_INT(c.kernels, 1);
    UNIT_CHECK(isnan(c.percent[COUNTERS_TENSOR]));
    UNIT_CHECK(c.time_us == 0);
    UNIT_TEXT(c.bottleneck, "latency");
    UNIT_TEXT(c.text, "nothing is near its peak, DRAM 20 %, L2 31 %, warps 44 %");
}

static void in_the_report(void) {
    json_builder b = {NULL};
    UNIT_CHECK(read_stored("latency_raw.csv"));
    json_t *o = counters_json(&c, &b);
    UNIT_CHECK(!b.why && !json_object_get(o, "tensor_active_pct") && !json_object_get(o, "time_us"));
    UNIT_CHECK(near(json_number_value(json_object_get(o, "dram_pct")), 20.5));
    UNIT_TEXT(json_string_value(json_object_get(o, "bottleneck")), "latency");
    json_decref(o);
    snprintf(c.slowest, sizeof c.slowest, "\xff\xfe"); /* a name that is cut within a character */
    o = counters_json(&c, &b);
    UNIT_CHECK(o && !b.why);
    json_decref(o);
}

static bool refused(const char *text, const char *says) {
    st = (status){.code = STATUS_OK};
    return !read_text(text) && st.code == STATUS_INPUT && strstr(st.text, says) && strstr(st.text, "a.csv");
}

#define DRAM "dram__throughput.avg.pct_of_peak_sustained_elapsed"

static void bent(void) {
    static char long_line[8192];
    UNIT_CHECK(refused("", "no table"));
    UNIT_CHECK(refused("==PROF== nothing\n==WARNING== No kernels were profiled.\n", "no table"));
    UNIT_CHECK(refused("\"ID\",\"Kernel Name\n", "never closed"));
    UNIT_CHECK(refused("\"ID\",\"Other\"\n\"0\",\"1\"\n", "no table"));
    UNIT_CHECK(refused("ID,Kernel Name,Metric Name\n0,k,x\n", "no table"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n", "no kernel"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n,,%\n", "no kernel"));
    UNIT_CHECK(refused("ID,Kernel Name,other.sum\n0,k,1\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,n/a\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,inf\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,1e999\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,-5\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,1e300\n", "none of the counters"));
    UNIT_CHECK(refused("ID,Kernel Name," DRAM "\n0,k,\"12\n", "never closed"));
    memset(long_line, ',', sizeof long_line - 1);
    memcpy(long_line, "ID,", 3);
    UNIT_CHECK(refused(long_line, "too many columns"));
    char zero[] = "ID,Kernel Name," DRAM "\n0,k\0k,50\n";
    UNIT_CHECK(!counters_read(zero, sizeof zero - 1, "a.csv", &c, &st) && strstr(st.text, "not text"));
    /* and what is odd, and good */
    UNIT_CHECK(read_text("ID,Kernel Name," DRAM "\n0,k,50"));
    UNIT_CHECK(read_text("ID,Kernel Name," DRAM ",\n0,k,50,\n1\n\n2,k\n") && c.kernels == 3);
    UNIT_CHECK(read_text("ID,Kernel Name," DRAM "\n0,k,61\nID,Kernel Name," DRAM "\n1,k,71\n") && c.kernels == 2 &&
               near(c.percent[COUNTERS_DRAM], 66));
    UNIT_CHECK(read_text("ID,Kernel Name," DRAM ",gpu__time_duration.sum\n,,%,parsec\n0,k,61,3\n") && c.time_us == 0);
}

/* Every file cut anywhere, and with any one byte replaced, is read or refused; nothing else happens. */
static void torn(void) {
    static const char *const names[] = {"memory_raw.csv", "tensor_details.csv", "synchronisation_raw.csv",
                                        "refused.txt"};
    static const char odd[] = {'"', ',', '\n', '\r', '=', '9', (char)0xff};
    int good = 0, bad = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        size_t size = 0;
        char *text = stored(names[n], &size), *copy = malloc(size + 1);
        for (size_t at = 0; copy && at < size; at++) {
            memcpy(copy, text, size + 1);
            copy[at] = 0;
            *(counters_read(copy, at, "a.csv", &c, &st) ? &good : &bad) += 1;
            memcpy(copy, text, size + 1);
            copy[at] = odd[at % sizeof odd];
            *(counters_read(copy, size, "a.csv", &c, &st) ? &good : &bad) += 1;
        }
        free(copy);
        free(text);
    }
    UNIT_CHECK(good > 1000 && bad > 1000);
}

int main(void) {
    UNIT_RUN(memory);
    UNIT_RUN(tensor);
    UNIT_RUN(synchronisation);
    UNIT_RUN(latency);
    UNIT_RUN(in_the_report);
    UNIT_RUN(bent);
    UNIT_RUN(torn);
    return unit_end();
}
