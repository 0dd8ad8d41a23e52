/* Atomic files, with every step of writing made to fail in turn: the C library's calls are replaced here, which a
 * program may do for the libraries it is linked with. */
#include "common/files.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct faults {
    int write_error, write_after; /* fails once so many writes were let through */
    bool short_writes;
    int interruptions; /* EINTR so many times first */
    int fsync_error, rename_error;
} faults;

ssize_t write(int fd, const void *data, size_t n) {
    if (fd > 2) {
        if (faults.interruptions > 0) {
            faults.interruptions--;
            errno = EINTR;
            return -1;
        }
        if (faults.write_error && faults.write_after-- <= 0) {
            errno = faults.write_error;
            return -1;
        }
        if (faults.short_writes && n > 3) n = 3;
    }
    return syscall(SYS_write, fd, data, n);
}

int fsync(int fd) {
    if (faults.fsync_error) {
        errno = faults.fsync_error;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to) {
    if (faults.rename_error) {
        errno = faults.rename_error;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static char folder[64];
static status st;

static const char *at(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 512, "%s/%s", folder, name);
    return path;
}

static int entries(void) {
    int count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        count += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    if (d) closedir(d);
    return count;
}

static bool holds(const char *name, const char *text) {
    size_t n = 0;
    char *bytes = files_read(at(name), 1 << 20, &n, &st);
    bool same = bytes && n == strlen(text) && memcmp(bytes, text, n + 1) == 0;
    free(bytes);
    return same;
}

static void start(void) {
    faults = (struct faults){0};
    st = (status){0};
    snprintf(folder, sizeof folder, "/tmp/unit_files_XXXXXX");
    UNIT_CHECK(mkdtemp(folder) != NULL);
}

static void finish(void) {
    char command[256];
    faults = (struct faults){0};
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", folder, folder);
    UNIT_INT(system(command), 0);
}

static void writes_and_replaces(void) {
    start();
    UNIT_CHECK(files_write(at("f"), "one", 3, &st));
    UNIT_CHECK(holds("f", "one"));
    UNIT_CHECK(files_write(at("f"), "second", 6, &st));
    UNIT_CHECK(holds("f", "second"));
    UNIT_CHECK(files_write(at("empty"), "", 0, &st));
    UNIT_CHECK(holds("empty", ""));
    UNIT_INT(entries(), 2);
    finish();
}

static void large_and_piecewise(void) {
    start();
    files_out f;
    UNIT_CHECK(files_begin(&f, at("f"), &st));
    static char want[300001];
    size_t n = 0;
    for (int k = 0; n + 20000 < sizeof want; k++) {
        size_t piece = (size_t)k * 379 % 20000;
        memset(want + n, 'a' + k % 26, piece);
        files_append(&f, want + n, piece);
        n += piece;
    }
    UNIT_CHECK(access(at("f"), F_OK) != 0); /* not before it is whole */
    UNIT_CHECK(files_commit(&f, &st));
    UNIT_CHECK(holds("f", want));
    UNIT_INT(entries(), 1);
    finish();
}

static void short_and_interrupted_writes_go_on(void) {
    start();
    faults.short_writes = true;
    faults.interruptions = 5;
    UNIT_CHECK(files_write(at("f"), "a text of some length", 21, &st));
    UNIT_CHECK(holds("f", "a text of some length"));
    finish();
}

static void every_failure_leaves_the_target(void) {
    static const struct faults cases[] = {
        {.write_error = ENOSPC},
        {.write_error = EIO, .write_after = 1, .short_writes = true},
        {.fsync_error = EIO},
        {.fsync_error = ENOSPC},
        {.rename_error = EACCES},
        {.rename_error = EXDEV},
        {.write_error = EDQUOT, .write_after = 2, .short_writes = true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        start();
        UNIT_CHECK(files_write(at("f"), "old", 3, &st));
        for (int fresh = 0; fresh < 2; fresh++) {
            faults = cases[k];
            UNIT_CHECK(!files_write(at(fresh ? "new" : "f"), "a newer text", 12, &st));
            UNIT_INT(st.code, STATUS_ENVIRONMENT);
            UNIT_CHECK(strstr(st.text, fresh ? "/new: " : "/f: ") != NULL);
        }
        faults = (struct faults){0};
        UNIT_CHECK(holds("f", "old"));
        UNIT_INT(entries(), 1);
        finish();
    }
}

static void file_systems_without_fsync_are_fine(void) {
    start();
    faults.fsync_error = EINVAL;
    UNIT_CHECK(files_write(at("f"), "x", 1, &st));
    UNIT_CHECK(holds("f", "x"));
    finish();
}

static void abort_leaves_nothing(void) {
    start();
    files_out f;
    UNIT_CHECK(files_begin(&f, at("f"), &st));
    files_append(&f, "x", 1);
    files_abort(&f);
    files_abort(&f);
    UNIT_INT(entries(), 0);
    finish();
}

static void impossible_places(void) {
    start();
    UNIT_CHECK(!files_write(at("no/such/f"), "x", 1, &st));
    UNIT_CHECK(strstr(st.text, "no/such/f: ") != NULL);
    UNIT_CHECK(!files_write(folder, "x", 1, &st)); /* a folder */
    UNIT_CHECK(!files_write("", "x", 1, &st));
    UNIT_CHECK(files_write(at("plain"), "x", 1, &st));
    UNIT_CHECK(!files_write(at("plain/f"), "x", 1, &st));
    char name[400];
    memset(name, 'n', 150);
    strcpy(name + 150, "");
    UNIT_CHECK(files_write(at(name), "x", 1, &st)); /* long, but the temporary name is not longer than allowed */
    if (geteuid() != 0) {                           /* root may write everywhere */
        UNIT_INT(chmod(folder, 0500), 0);
        UNIT_CHECK(!files_write(at("f"), "x", 1, &st));
        UNIT_CHECK(!files_write(at("plain"), "y", 1, &st));
        UNIT_CHECK(holds("plain", "x"));
    }
    finish();
}

static void longest_names(void) {
    start();
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    UNIT_CHECK(files_write(path, "x", 1, &st));
    UNIT_INT(entries(), 1);
    finish();
}

static void devices_are_written_and_stay(void) {
    start();
    UNIT_CHECK(files_write("/dev/null", "x", 1, &st));
    struct stat about;
    UNIT_CHECK(stat("/dev/null", &about) == 0 && S_ISCHR(about.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        UNIT_CHECK(!files_write("/dev/full", "x", 1, &st));
        UNIT_INT(st.code, STATUS_ENVIRONMENT);
        UNIT_CHECK(stat("/dev/full", &about) == 0 && S_ISCHR(about.st_mode));
    }
    finish();
}

static void links_are_followed_and_modes_kept(void) {
    start();
    UNIT_CHECK(files_write(at("real"), "x", 1, &st));
    UNIT_INT(chmod(at("real"), 0640), 0);
    UNIT_INT(symlink("real", at("link")), 0);
    UNIT_CHECK(files_write(at("link"), "y", 1, &st));
    UNIT_CHECK(holds("real", "y"));
    struct stat about;
    UNIT_CHECK(lstat(at("link"), &about) == 0 && S_ISLNK(about.st_mode));
    UNIT_CHECK(stat(at("real"), &about) == 0 && (about.st_mode & 0777) == 0640);
    finish();
}

/* Two names of one place would be written one over the other. */
static void one_place_by_two_names(void) {
    start();
    const char *file = at("one"), *link = at("one.link"), *below = at("below"), *round = at("below/../one");
    UNIT_CHECK(mkdir(below, 0755) == 0 && symlink(file, link) == 0);
    for (int there = 0; there < 2; there++) {
        if (there) UNIT_CHECK(files_write(file, "x", 1, &st));
        UNIT_CHECK(files_same(file, file) && files_same(file, link) && files_same(round, link));
        UNIT_CHECK(!files_same(file, below) && !files_same(file, at("other")));
    }
    UNIT_CHECK(files_same("a", "./a") && !files_same("a", "b") && !files_same("no/where/a", "no/where/./a"));
    UNIT_CHECK(files_same("/dev/null", "/dev/null") && !files_same("/dev/null", "/dev/../dev/null"));
    finish();
}

static void removes_only_files(void) {
    start();
    struct stat about;
    UNIT_CHECK(files_write(at("real"), "x", 1, &st));
    UNIT_INT(symlink("real", at("link")), 0);
    UNIT_INT(symlink("/dev/null", at("device")), 0);
    files_remove(at("link"));
    files_remove(at("device"));
    files_remove(at("none"));
    files_remove(folder);
    UNIT_CHECK(stat(at("real"), &about) != 0 && lstat(at("link"), &about) == 0 && lstat(at("device"), &about) == 0);
    UNIT_CHECK(stat("/dev/null", &about) == 0 && S_ISCHR(about.st_mode));
    finish();
}

static void links_to_nothing_stay_and_are_filled(void) {
    start();
    struct stat about;
    UNIT_INT(mkdir(at("sub"), 0755), 0);
    UNIT_INT(symlink("sub/second", at("first")), 0);
    UNIT_INT(symlink("../end", at("sub/second")), 0);
    UNIT_CHECK(files_write(at("first"), "x", 1, &st));
    UNIT_CHECK(lstat(at("first"), &about) == 0 && S_ISLNK(about.st_mode));
    UNIT_CHECK(lstat(at("sub/second"), &about) == 0 && S_ISLNK(about.st_mode));
    UNIT_CHECK(lstat(at("end"), &about) == 0 && S_ISREG(about.st_mode));
    UNIT_CHECK(holds("end", "x"));
    UNIT_INT(symlink("missing/place", at("nowhere")), 0);
    UNIT_CHECK(!files_write(at("nowhere"), "x", 1, &st));
    UNIT_INT(symlink("circle", at("circle")), 0);
    UNIT_CHECK(!files_write(at("circle"), "x", 1, &st));
    UNIT_CHECK(lstat(at("circle"), &about) == 0 && S_ISLNK(about.st_mode));
    finish();
}

/* What stood in a redirected standard output before, and what comes after, stays. */
static void standard_output_is_added_to(void) {
    start();
    UNIT_CHECK(files_write(at("f"), "before ", 7, &st));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(at("f"), O_WRONLY | O_APPEND);
        bool good = fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && files_write("/dev/stdout", "here", 4, &st);
        good = good && syscall(SYS_write, STDOUT_FILENO, " after", 6) == 6;
        _exit(good ? 0 : 1);
    }
    int how = 0;
    waitpid(child, &how, 0);
    UNIT_CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    UNIT_CHECK(holds("f", "before here after"));
    UNIT_INT(entries(), 1);
    finish();
}

static void signals_remove_what_is_half_written(void) {
    start();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        files_out f;
        files_clean_on_signals();
        if (files_begin(&f, at("f"), &st)) raise(SIGTERM);
        _exit(0);
    }
    int how = 0;
    waitpid(child, &how, 0);
    UNIT_CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    UNIT_INT(entries(), 0);
    finish();
}

static void reading_has_limits(void) {
    start();
    size_t n = 0;
    UNIT_CHECK(files_write(at("f"), "12345", 5, &st));
    UNIT_CHECK(files_read(at("f"), 4, &n, &st) == NULL);
    UNIT_INT(st.code, STATUS_INPUT);
    char *bytes = files_read(at("f"), 5, &n, &st);
    UNIT_TEXT(bytes, "12345");
    UNIT_INT(n, 5);
    free(bytes);
    UNIT_CHECK(files_read(at("none"), 5, &n, &st) == NULL);
    UNIT_CHECK(files_read(folder, 5, &n, &st) == NULL);
    UNIT_CHECK(strstr(st.text, "not a regular file") != NULL);
    UNIT_INT(mkfifo(at("pipe"), 0600), 0);
    UNIT_CHECK(files_read(at("pipe"), 5, &n, &st) == NULL);    /* and does not wait */
    bytes = files_read("/proc/self/status", 1 << 20, &n, &st); /* says size 0, and is longer */
    UNIT_CHECK(bytes && n > 100 && strlen(bytes) == n);
    free(bytes);
    UNIT_CHECK(files_read("/proc/self/status", 100, &n, &st) == NULL);
    finish();
}

static void folders(void) {
    start();
    UNIT_CHECK(files_make_folders(at("a/b//c/"), &st));
    UNIT_CHECK(files_make_folders(at("a/b/c"), &st));
    UNIT_CHECK(files_write(at("a/b/c/f"), "x", 1, &st));
    UNIT_CHECK(!files_make_folders(at("a/b/c/f/d"), &st));
    UNIT_CHECK(!files_make_folders(at("a/b/c/f"), &st));
    UNIT_INT(st.code, STATUS_ENVIRONMENT);
    UNIT_CHECK(!files_make_folders("/proc/none/x", &st));
    UNIT_CHECK(files_make_folders("/", &st));
    UNIT_TEXT(files_base("a/b/c.onnx"), "c.onnx");
    UNIT_TEXT(files_base("c.onnx"), "c.onnx");
    UNIT_TEXT(files_base("a/"), "");
    finish();
}

static bool writes_70_mb(void) {
    static char block[1 << 20];
    files_out f;
    st = (status){0};
    UNIT_CHECK(files_begin(&f, at("f"), &st));
    for (int k = 0; k < 70; k++) files_append(&f, block, sizeof block);
    return files_commit(&f, &st);
}

static void what_is_written_has_a_bound(void) {
    start();
    UNIT_CHECK(!writes_70_mb());
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_CHECK(strstr(st.text, "would be longer than 67 MB") != NULL);
    UNIT_INT(entries(), 0);
    files_have_read(1 << 20); /* of a longer input more is said */
    UNIT_CHECK(writes_70_mb());
    finish();
}

int main(void) {
    UNIT_RUN(what_is_written_has_a_bound); /* before the others, which read */
    UNIT_RUN(writes_and_replaces);
    UNIT_RUN(large_and_piecewise);
    UNIT_RUN(short_and_interrupted_writes_go_on);
    UNIT_RUN(every_failure_leaves_the_target);
    UNIT_RUN(file_systems_without_fsync_are_fine);
    UNIT_RUN(abort_leaves_nothing);
    UNIT_RUN(impossible_places);
    UNIT_RUN(longest_names);
    UNIT_RUN(devices_are_written_and_stay);
    UNIT_RUN(links_are_followed_and_modes_kept);
    UNIT_RUN(one_place_by_two_names);
    UNIT_RUN(removes_only_files);
    UNIT_RUN(links_to_nothing_stay_and_are_filled);
    UNIT_RUN(standard_output_is_added_to);
    UNIT_RUN(signals_remove_what_is_half_written);
    UNIT_RUN(reading_has_limits);
    UNIT_RUN(folders);
    return unit_end();
}
