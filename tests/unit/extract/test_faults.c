/* What a run does when the machine fails it: every allocation and every system call is made to fail in turn, and the
 * process is killed while it writes. However it ends: no crash, nothing leaked, and the file is absent, old or whole.
 *
 * The linker sends the calls named in LDFLAGS_test_faults through the functions here (--wrap), and takes this file's
 * arena, whose chunks are so small that nearly every allocation of a run is a malloc of its own. */
#define ARENA_FIRST_CHUNK ((size_t)64)
#include "common/arena.c" // NOLINT(bugprone-suspicious-include): compiled again with another chunk size

#include "extract/extract_run.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- calls that fail ---- */

static long countdown;       /* the so-manieth call from now fails; 0: none does */
static long killdown;        /* the process is killed right before that call; 0: it is not */
static bool fired, stingy;   /* the failure has happened; writes take a few bytes at a time and are interrupted */
static const char *fired_in; /* for messages */
static long live_blocks, live_files, live_maps;
static const char *cut_path; /* cut to cut_size as soon as a file is mapped; NULL: nothing is */
static off_t cut_size;

static bool fails(const char *what, int error) {
    if (killdown > 0 && --killdown == 0) raise(SIGKILL);
    if (countdown == 0 || --countdown > 0) return false;
    fired = true;
    fired_in = what;
    errno = error;
    return true;
}

#define REAL(result, name, ...)                                                                                        \
    result __real_##name(__VA_ARGS__);                                                                                 \
    result __wrap_##name(__VA_ARGS__)

REAL(void *, malloc, size_t n);
REAL(void *, calloc, size_t count, size_t n);
REAL(void *, realloc, void *old, size_t n);
REAL(void, free, void *p);
REAL(char *, strdup, const char *s);
REAL(char *, strndup, const char *s, size_t n);
REAL(char *, realpath, const char *path, char *out);
REAL(void *, mmap, void *at, size_t n, int protection, int flags, int fd, off_t offset);
REAL(int, munmap, void *at, size_t n);
REAL(int, open, const char *path, int flags, ...);
REAL(int, memfd_create, const char *name, unsigned flags);
REAL(int, close, int fd);
REAL(int, fstat, int fd, struct stat *about);
REAL(ssize_t, read, int fd, void *data, size_t n);
REAL(ssize_t, pread, int fd, void *data, size_t n, off_t offset);
REAL(ssize_t, write, int fd, const void *data, size_t n);
REAL(int, fsync, int fd);
REAL(int, rename, const char *from, const char *to);

static void *counted(void *block) {
    if (block) live_blocks++;
    return block;
}

void *__wrap_malloc(size_t n) { return fails("malloc", ENOMEM) ? NULL : counted(__real_malloc(n)); }
void *__wrap_calloc(size_t count, size_t n) {
    return fails("calloc", ENOMEM) ? NULL : counted(__real_calloc(count, n));
}
void *__wrap_realloc(void *old, size_t n) {
    if (fails("realloc", ENOMEM)) return NULL;
    return old ? __real_realloc(old, n) : counted(__real_malloc(n));
}
void __wrap_free(void *p) {
    if (p) live_blocks--;
    __real_free(p);
}
char *__wrap_strdup(const char *s) { return fails("strdup", ENOMEM) ? NULL : counted(__real_strdup(s)); }
char *__wrap_strndup(const char *s, size_t n) {
    return fails("strndup", ENOMEM) ? NULL : counted(__real_strndup(s, n));
}
char *__wrap_realpath(const char *path, char *out) {
    if (fails("realpath", ENOMEM)) return NULL;
    char *real = __real_realpath(path, out);
    return out ? real : counted(real);
}
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    if (fails("mmap", ENOMEM)) return MAP_FAILED;
    void *mapped = __real_mmap(at, n, protection, flags, fd, offset);
    if (mapped != MAP_FAILED) live_maps++;
    if (cut_path && truncate(cut_path, cut_size) != 0) perror(cut_path);
    return mapped;
}
int __wrap_munmap(void *at, size_t n) {
    live_maps--;
    return __real_munmap(at, n);
}
int __wrap_open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (fails("open", EMFILE)) return -1;
    int fd = __real_open(path, flags, mode);
    if (fd >= 0) live_files++;
    return fd;
}
int __wrap_memfd_create(const char *name, unsigned flags) {
    if (fails("memfd_create", EMFILE)) return -1;
    int fd = __real_memfd_create(name, flags);
    if (fd >= 0) live_files++;
    return fd;
}
int __wrap_close(int fd) {
    live_files--;
    return __real_close(fd);
}
int __wrap_fstat(int fd, struct stat *about) { return fails("fstat", EIO) ? -1 : __real_fstat(fd, about); }
ssize_t __wrap_read(int fd, void *data, size_t n) { return fails("read", EIO) ? -1 : __real_read(fd, data, n); }
ssize_t __wrap_pread(int fd, void *data, size_t n, off_t offset) {
    return fails("pread", EIO) ? -1 : __real_pread(fd, data, n, offset);
}
ssize_t __wrap_write(int fd, const void *data, size_t n) {
    static unsigned turn;
    if (fails("write", ENOSPC)) return -1;
    if (stingy && ++turn % 5 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_write(fd, data, stingy && n > 97 ? 97 : n);
}
int __wrap_fsync(int fd) { return fails("fsync", EIO) ? -1 : __real_fsync(fd); }
int __wrap_rename(const char *from, const char *to) { return fails("rename", EACCES) ? -1 : __real_rename(from, to); }

/* ---- one run, and what it leaves ---- */

/* The last one is a configuration. */
static const char *const models[] = {"models/control_flow.onnx", "models/quantised_mlp.onnx", "models/small_conv.onnx",
                                     "tests/config/exports/vit_body.json"};
enum { MODELS = sizeof models / sizeof models[0] };

static char folder[] = "/dev/shm/test_faults.XXXXXX"; /* in memory, where there is such a place: no disk to wait for */
static char ops_path[sizeof folder + 16], tensors_path[sizeof folder + 20];

static status_code run(const char *path, status *st) {
    const config_run config = {.path = path};
    const extract_options options = {.model_path = path,
                                     .config = path == models[MODELS - 1] ? &config : NULL,
                                     .ops_path = ops_path,
                                     .tensors_path = tensors_path,
                                     .precision = "model",
                                     .quiet = true};
    return extract_run(&options, st);
}

static int files_in_folder(void) {
    DIR *d = opendir(folder);
    int count = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        count += e->d_name[0] != '.' || e->d_name[1] > '.';
    if (d) closedir(d);
    return count;
}

static void empty_folder(void) {
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.' || e->d_name[1] > '.') unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

/* The file's text, "" where there is none. Overwritten by the next call but one. */
static const char *contents(const char *path) {
    static char buffers[2][1 << 20];
    static int turn;
    char *text = buffers[turn ^= 1];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof buffers[0] - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return text;
}

/* One failure in the n-th call. False where the run has no n-th call: all have been seen. */
static bool one_failure(const char *path, long n) {
    const long blocks = live_blocks, files = live_files, maps = live_maps;
    status st;
    fired = false;
    countdown = n;
    status_code code = run(path, &st);
    countdown = 0;
    if (!fired) return false;
    bool done = code == STATUS_OK || code == STATUS_INCOMPLETE;
    bool good = UNIT_CHECK(done || code == STATUS_ENVIRONMENT);
    good &= UNIT_CHECK(done || st.text[0] != 0);
    good &= UNIT_INT(files_in_folder(), done ? 2 : 0);
    good &= UNIT_INT(live_blocks - blocks, 0);
    good &= UNIT_INT(live_files - files, 0);
    good &= UNIT_INT(live_maps - maps, 0);
    if (!good) printf("  %s, call %ld (%s): exit %d, \"%s\"\n", path, n, fired_in, (int)code, st.text);
    if (files_in_folder() > 0) empty_folder();
    live_blocks = blocks, live_files = files, live_maps = maps;
    return true;
}

static void every_call_fails_in_turn(void) {
    int shown = 0;
    for (int k = 0; k < MODELS && shown < 20; k++) {
        long n = 1;
        while (shown < 20) {
            unit_ok = true;
            if (!one_failure(models[k], n)) break;
            shown += !unit_ok;
            n++;
        }
        printf("%s: %ld calls made to fail\n", models[k], n - 1);
        shown += !UNIT_CHECK(n > 100);
        empty_folder();
    }
    unit_ok = shown == 0;
}

static void interrupted_writes_are_whole(void) {
    for (int k = 0; k < MODELS; k++) {
        status st;
        UNIT_CHECK(run(models[k], &st) <= STATUS_INCOMPLETE);
        const char *want = contents(ops_path);
        UNIT_CHECK(*want);
        empty_folder();
        stingy = true;
        UNIT_CHECK(run(models[k], &st) <= STATUS_INCOMPLETE);
        stingy = false;
        UNIT_CHECK(strcmp(contents(ops_path), want) == 0);
        empty_folder();
    }
}

/* ---- a file that shrinks ---- */

static bool copy(const char *from, const char *to) {
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t n = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    bool good = out && n > 0 && fwrite(bytes, 1, n, out) == n;
    if (in) fclose(in);
    if (out) good &= fclose(out) == 0;
    return good;
}

static void cut_short_while_mapped(void) {
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    for (off_t size = 0; size < 100000; size += 4096) {
        const long blocks = live_blocks, files = live_files, maps = live_maps;
        status st;
        struct stat about;
        if (!UNIT_CHECK(copy("models/transformer_block.onnx", path))) return;
        if (stat(path, &about) != 0 || about.st_size <= size) break;
        cut_path = path, cut_size = size;
        status_code code = run(path, &st);
        cut_path = NULL;
        UNIT_CHECK(code == STATUS_INPUT || (size > 0 && code <= STATUS_INCOMPLETE)); /* weights are never read */
        UNIT_INT(files_in_folder(), code == STATUS_INPUT ? 1 : 3);
        UNIT_INT(live_blocks - blocks, 0);
        UNIT_INT(live_files - files, 0);
        UNIT_INT(live_maps - maps, 0);
        if (!unit_ok) printf("  cut to %ld: exit %d, \"%s\"\n", (long)size, (int)code, st.text);
        empty_folder();
    }
}

/* ---- killed ---- */

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Runs in a child that is killed after so many µs, or before its n-th call. Returns whether it was. */
static bool killed_run(const char *path, double after_us, long call) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        status st;
        killdown = call;
        stingy = true; /* writing takes long, so that a moment at random hits it */
        _exit((int)run(path, &st));
    }
    if (after_us >= 0) {
        usleep((useconds_t)after_us);
        kill(child, SIGKILL);
    }
    int how = 0;
    waitpid(child, &how, 0);
    return WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
}

static const char OLD[] = "what was there before\n";

static void put_old(void) {
    FILE *f = fopen(ops_path, "wb");
    if (f) fputs(OLD, f);
    if (f) fclose(f);
}

/* After a kill: the file is what it was, or all of the new one. Nothing can promise more about the temporary file. */
static void check_whole(const char *want, bool had_old, const char *when) {
    const char *text = contents(ops_path);
    bool old = strcmp(text, had_old ? OLD : "") == 0;
    if (!UNIT_CHECK(old || strcmp(text, want) == 0)) printf("  %s: %zu bytes\n", when, strlen(text));
    empty_folder();
}

static char wanted[1 << 20];

static double time_of_a_run(const char *path) {
    empty_folder();
    double start = now_us();
    UNIT_CHECK(!killed_run(path, -1, 0));
    double took = now_us() - start;
    snprintf(wanted, sizeof wanted, "%s", contents(ops_path));
    UNIT_CHECK(*wanted);
    empty_folder();
    return took;
}

static void killed_at_any_moment(void) {
    const char *path = models[0];
    double took = time_of_a_run(path);
    int killed = 0;
    srand(20260714);
    for (int k = 0; killed < 200 && k < 4000; k++) { /* on a busy machine many a run is over before its time */
        if (k % 2) put_old();
        /* every other one in the last part of the run, where it writes; how long that takes is learnt on the way */
        double at = (double)rand() / RAND_MAX;
        bool hit = killed_run(path, took * (k % 4 < 2 ? at : 0.7 + 0.35 * at), 0);
        took *= hit ? 1.03 : 0.95;
        killed += hit;
        check_whole(wanted, k % 2, "killed at a moment");
    }
    UNIT_INT(killed, 200);
}

static bool killed_in_new_folder(const char *path, long call) {
    const bool killed = killed_run(path, -1, call);
    empty_folder();
    return killed;
}

static void killed_before_any_call_that_writes(void) {
    const char *path = models[1];
    time_of_a_run(path);
    long n = 1, last = 0;
    /* doubling and halving finds the last call; from there back, one by one, is where the files are written */
    while (killed_in_new_folder(path, n)) n *= 2;
    for (long step = n; step > 0; step /= 2)
        if (killed_in_new_folder(path, last + step)) last += step;
    /* where an older file is looked at first, there are a few calls more */
    for (long k = last + 8; k > 0 && k > last - 150; k--) {
        if (k % 2) put_old();
        UNIT_CHECK(killed_run(path, -1, k) || k > last);
        check_whole(wanted, k % 2, "killed before a call");
    }
}

int main(void) {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) return 1;
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/test_faults.XXXXXX");
        if (!mkdtemp(folder)) return 1;
    }
    stderr = nowhere; /* thousands of equal warnings; a sanitizer writes past stdio */
    snprintf(ops_path, sizeof ops_path, "%s/ops.json", folder);
    snprintf(tensors_path, sizeof tensors_path, "%s/tensors.json", folder);
    UNIT_RUN(every_call_fails_in_turn);
    UNIT_RUN(interrupted_writes_are_whole);
    UNIT_RUN(cut_short_while_mapped);
    UNIT_RUN(killed_at_any_moment);
    UNIT_RUN(killed_before_any_call_that_writes);
    empty_folder();
    rmdir(folder);
    return unit_end();
}
