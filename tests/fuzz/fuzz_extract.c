/* The libFuzzer target of extract_ops: any bytes as a model, the whole run, everything that is written thrown away. A
 * run may refuse the bytes; it may not crash, leak, hang, or leave a file behind when it refuses them. */
#include "extract/extract_run.h"
#include "tests/fuzz/wire_mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size,
                                 uint8_t *out, size_t most, unsigned seed);

enum { PATH_ROOM = 512 };
static char folder[PATH_ROOM], model_path[PATH_ROOM + 16], data_path[PATH_ROOM + 16], ops_path[PATH_ROOM + 16],
    tensors_path[PATH_ROOM + 16];
static int model_fd = -1, said_fd = STDERR_FILENO;

static void clean(void) {
    unlink(model_path);
    unlink(data_path);
    unlink(ops_path);
    unlink(tensors_path);
    rmdir(folder);
}

static void die(const char *what) {
    dprintf(said_fd, "ERROR: cannot write %s: %s\n", what, strerror(errno));
    exit(1);
}

/* A folder of its own, with the external data that some seeds name. The programs' only real files are here. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static const int64_t data[8] = {6, 4}; /* a shape, and zeros */
    (void)argc, (void)argv;
    said_fd = dup(STDERR_FILENO); /* which -close_fd_mask closes */
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/fuzz_extract.XXXXXX", place && *place ? place : "/tmp");
    if (!mkdtemp(folder)) die(folder);
    snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
    snprintf(data_path, sizeof data_path, "%s/w.bin", folder);
    snprintf(ops_path, sizeof ops_path, "%s/ops.json", folder);
    snprintf(tensors_path, sizeof tensors_path, "%s/tensors.json", folder);
    atexit(clean);
    int fd = open(data_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, sizeof data) != (ssize_t)sizeof data || close(fd) != 0) die(data_path);
    model_fd = open(model_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (model_fd < 0) die(model_path);
    return 0;
}

/* Far more is allowed for what a model may say; so small a one that says this much repeats itself. */
static void check_size(const char *path, size_t size) {
    struct stat it;
    if (stat(path, &it) == 0 && (size_t)it.st_size > 50 * size + ((size_t)4 << 20)) abort();
}

static void check(status_code code, const status *st) {
    bool refused = code != STATUS_OK && code != STATUS_INCOMPLETE;
    if (code == STATUS_USAGE || code == STATUS_REGRESSION || (int)code < 0 || code > STATUS_REGRESSION) abort();
    if (refused && st->text[0] == 0) abort();
    if (refused && (access(ops_path, F_OK) == 0 || access(tensors_path, F_OK) == 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (ftruncate(model_fd, 0) != 0 || pwrite(model_fd, data, size, 0) != (ssize_t)size) die(model_path);
    /* Writing files costs most of a small run, so only one in eight does; which one depends on the bytes alone. */
    bool writes = size > 0 && data[size / 2] % 8 == 0;
    const extract_options options = {
        .model_path = model_path,
        .ops_path = writes ? ops_path : NULL,
        .tensors_path = writes ? tensors_path : NULL,
        .precision = "model",
        .read = {.batch = 2, .seq = 5},
        .quiet = true,
    };
    status st;
    check(extract_run(&options, &st), &st);
    if (writes) {
        check_size(ops_path, size);
        check_size(tensors_path, size);
        unlink(ops_path);
        unlink(tensors_path);
    }
    return 0;
}

/* Mostly changes that keep the wire format right; every eighth is blind, for the reader's own sake. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    size_t changed = seed % 8 ? wire_mutate(data, size, most, seed) : 0;
    return changed ? changed : LLVMFuzzerMutate(data, size, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size,
                                 uint8_t *out, size_t most, unsigned seed) {
    return wire_mutate_cross(data, size, other, other_size, out, most, seed);
}
