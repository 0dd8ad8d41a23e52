/* Opening OpenBLAS. Distributions build it three times (serial, pthread, OpenMP) under one name; only the OpenMP build
 * is used, as a thread pool of its own would compete with the team. */
#include "scout/cpu/device/cpu_openblas.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/device/libraries.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PARALLEL_OPENMP = 2 };

typedef int number_fn(void);
typedef char *text_fn(void);
typedef void set_fn(int);

static cpu_openblas the_library; /* opened once for the process; libraries are never closed */
static scout_why the_why;
static bool usable;
static pthread_once_t the_once = PTHREAD_ONCE_INIT;

/* "0.3.21 SkylakeX" from "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … SkylakeX MAX_THREADS=64". */
static void say_version(cpu_openblas *l, text_fn *config, text_fn *core) {
    const char *text = config ? config() : "";
    const char *number = strncmp(text, "OpenBLAS ", 9) == 0 ? text + 9 : text;
    snprintf(l->version, sizeof l->version, "%.*s%s%.24s", (int)strcspn(number, " "), number, core ? " " : "",
             core ? core() : "");
}

/* OpenBLAS maps a buffer for each thread and two more, and retries forever where an allocation fails: a memory limit
 * would be a hang. So it is only opened where all of them fit. */
static bool has_room(void) {
    enum { BUFFER_BYTES = 136 << 20, OTHER_BUFFERS = 3, MOST_BUFFERS = 1024 }; /* with a thread's stack; its code */
    void *buffers[MOST_BUFFERS];
    const int team = cpu_team_cores(),
              wanted = team + OTHER_BUFFERS < MOST_BUFFERS ? team + OTHER_BUFFERS : MOST_BUFFERS;
    int count = 0;
    for (; count < wanted; count++) {
        buffers[count] = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (buffers[count] == MAP_FAILED) break;
    }
    for (int k = 0; k < count; k++) (void)munmap(buffers[k], BUFFER_BYTES);
    if (count == wanted) return true;
    scout_say(&the_why, SCOUT_NO, "library",
              "OpenBLAS needs %d MB of address space for %d threads, and a limit leaves less (ulimit -v)",
              wanted * (BUFFER_BYTES >> 20), team);
    return false;
}

/* Its buffers are taken before anything else takes their room. */
static void take_buffers(const cpu_openblas *l) {
    enum { SIDE = 64 };
    static float a[SIDE * SIDE], c[SIDE * SIDE];
    l->sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a, SIDE, a, SIDE, 0, c, SIDE);
}

static bool open_one(const char *const *names) {
    cpu_openblas *l = &the_library;
    scout_why ignored;
    number_fn *parallel = NULL;
    text_fn *config = NULL, *core = NULL;
    set_fn *set_threads = NULL;
    void *handle = libraries_open(names, false, l->path, sizeof l->path, &the_why);
    if (!handle) return false;
    *(void **)&parallel = libraries_symbol(handle, "openblas_get_parallel", &the_why);
    *(void **)&l->sgemm = libraries_symbol(handle, "cblas_sgemm", &the_why);
    *(void **)&l->dgemm = libraries_symbol(handle, "cblas_dgemm", &the_why);
    if (!parallel || !l->sgemm || !l->dgemm) return false;
    if (parallel() != PARALLEL_OPENMP) {
        scout_say(&the_why, SCOUT_NO, "library",
                  "%.100s is not built on OpenMP: its threads would compete with ours (package libopenblas0-openmp)",
                  l->path);
        return false;
    }
    *(void **)&l->sbgemm = libraries_symbol(handle, "cblas_sbgemm", &ignored);
    *(void **)&config = libraries_symbol(handle, "openblas_get_config", &ignored);
    *(void **)&core = libraries_symbol(handle, "openblas_get_corename", &ignored);
    *(void **)&set_threads = libraries_symbol(handle, "openblas_set_num_threads", &ignored);
    if (set_threads) set_threads(cpu_team_cores());
    take_buffers(l);
    say_version(l, config, core);
    return true;
}

/* OpenBLAS takes processors that came out after it for the oldest of their maker, and then multiplies four times slower
 * than it can. It has three generations of vectors for Intel's, so this one is set, unless the environment sets it. The
 * name of the kernels in use is part of the version that is reported. */
static void name_generation(void) {
    const cpu_info *c = cpu_info_get();
    const char *name = c->avx512_bf16 ? "Cooperlake" : c->avx512 ? "SkylakeX" : c->avx2 ? "Haswell" : NULL;
    if (name && c->intel) (void)setenv("OPENBLAS_CORETYPE", name, 0);
}

static void open_once(void) {
    /* Debian's folder of the OpenMP build: the plain name may stand for any of the three. */
    static const char *const own[] = {"/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
                                      "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
                                      "/usr/lib64/libopenblaso.so.0", NULL};
    static const char *const plain[] = {"libopenblas.so.0", NULL};
    const char *asked = getenv("CEILING_SCOUT_LIBRARY_PATH");
    name_generation();
    cpu_team_start(); /* before the library brings its runtime of threads */
    if (!has_room()) return;
    if (asked && *asked) /* a path that the user gave goes first */
        usable = open_one(plain) || open_one(own);
    else
        usable = open_one(own) || open_one(plain);
    if (!usable && !strstr(the_why.text, "package")) {
        const size_t used = strlen(the_why.text);
        snprintf(the_why.text + used, sizeof the_why.text - used, " (package libopenblas0-openmp)");
    }
}

const cpu_openblas *cpu_openblas_get(scout_why *why) {
    (void)pthread_once(&the_once, open_once);
    if (usable) return &the_library;
    if (why) *why = the_why;
    return NULL;
}
