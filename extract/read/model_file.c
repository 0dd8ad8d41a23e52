/* Opens, maps and closes a model file. Only a regular file is a model: anything else could block, never end or change.
 */
#include "extract/read/model_file.h"

#include "common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t LARGE_FIELD = 1 << 16; /* smaller ones leave no page unread anyway */
static const uint64_t AROUND = 1 << 21;      /* how far around a touched byte the kernel may map pages */
enum { MAX_PASSED = 16 };                    /* large fields between two times of giving pages back */

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    if (S_ISSOCK(mode)) return "a socket";
    return "not a regular file";
}

/* What people take for a model: by its first bytes. ONNX itself has none that say so. */
static const char *other_format(const uint8_t *bytes, uint64_t size) {
    static const struct {
        const char *bytes;
        uint8_t at, count;
        const char *text;
    } formats[] = {
        {"version https://git-lfs", 0, 23, "this is a pointer of git-lfs, not the file itself: say git lfs pull"},
        {"PK\3\4", 0, 4,
         "this is a zip file, as PyTorch saves its checkpoints: load it in Python, and export the model with "
         "torch.onnx.export"},
        {"\x80\2", 0, 2,
         "this is a pickle, as PyTorch saved its checkpoints: load it in Python, and export the model with "
         "torch.onnx.export"},
        {"\0\0\0\0{\"", 4, 6,
         "these are safetensors, which hold weights alone: export their model with torch.onnx.export, or give its "
         "config.json to --config"},
        {"GGUF", 0, 4,
         "this is a GGUF file, which holds weights alone: export the model that it was made from to ONNX"},
        {"\x89HDF", 0, 4, "this is an HDF5 file, as Keras saves its models: convert it with tf2onnx"},
        {"TFL3", 4, 4, "this is a TensorFlow Lite model: convert it with tf2onnx"},
        {"ptrt", 0, 4, "this is a TensorRT engine: give the ONNX model that it was built from"},
        {"\x1f\x8b", 0, 2, "this is a gzip file: unpack it first"},
        {"{", 0, 1, "this is JSON, not an ONNX model; an ops.json is for scout_batch, a config.json for --config"},
        {"<", 0, 1, "this is XML or HTML, not an ONNX model: a page was downloaded, not the file itself"},
    };
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
        if (size >= (uint64_t)formats[k].at + formats[k].count &&
            memcmp(bytes + formats[k].at, formats[k].bytes, formats[k].count) == 0)
            return formats[k].text;
    return NULL;
}

/* Opens and maps, or says why not. Owns nothing afterwards but the map. */
static status_code map_file(const char *path, const uint8_t **base, uint64_t *size, status *st) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && files_machines_fault(errno))
        return status_set(st, STATUS_ENVIRONMENT, "%s: cannot be opened: %s", path, strerror(errno));
    if (fd < 0) return status_set(st, STATUS_INPUT, "cannot be opened: %s", strerror(errno));
    struct stat s;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &s) != 0) {
        status_set(st, STATUS_ENVIRONMENT, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(s.st_mode)) {
        status_set(st, STATUS_INPUT, "this is %s; give the path of an ONNX model", kind_of(s.st_mode));
    } else if (s.st_size == 0) {
        status_set(st, STATUS_INPUT, "the file is empty: it was not downloaded completely; do so again");
    } else {
        bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) status_set(st, STATUS_ENVIRONMENT, "%s: cannot be mapped: %s", path, strerror(errno));
    }
    close(fd);
    if (bytes == MAP_FAILED) return st->code;
    *base = bytes;
    *size = (uint64_t)s.st_size;
    return STATUS_OK;
}

/* Bytes as a file that has no name: its pages may be given back and come again, like those of any model. */
static status_code map_bytes(const uint8_t *bytes, size_t size, const uint8_t **base, status *st) {
    const int fd = memfd_create("model", MFD_CLOEXEC);
    void *made = MAP_FAILED;
    size_t done = 0;
    while (fd >= 0 && done < size) {
        const ssize_t n = write(fd, bytes + done, size - done);
        if (n <= 0 && !(n < 0 && errno == EINTR)) break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && done == size && size > 0) made = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (made == MAP_FAILED)
        status_set(st, STATUS_ENVIRONMENT, "the model cannot be kept in memory: %s", strerror(errno));
    if (fd >= 0) close(fd);
    *base = made;
    return st->code;
}

static model_file *new_file(const arena *a, const char *path) {
    const size_t length = strlen(path) + 1;
    model_file *f = calloc(1, sizeof *f + length);
    if (!f) guard_fail(a->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    memcpy(f->path, path, length);
    f->guard = a->guard;
    arena_init(&f->messages, a->guard, a->limit / 4);
    arena_init(&f->frames, a->guard, a->limit / 2);
    arena_init(&f->tables, a->guard, a->limit / 2);
    return f;
}

/* The file where it is mapped; else it is freed and the run fails. */
static model_file *mapped(model_file *f, const status *st) {
    guard *g = f->guard;
    if (st->code != STATUS_OK) {
        free(f);
        guard_fail(g, st->code, "%s", st->text);
    }
    /* No read-ahead: the metadata is thinly spread between weights. */
    madvise((void *)(uintptr_t)f->base, (size_t)f->size, MADV_RANDOM);
    guard_watch_map(g, f->base, (size_t)f->size);
    files_have_read(f->size);
    return f;
}

model_file *read_open(arena *a, const char *path) {
    model_file *f = new_file(a, path);
    status st = {0};
    map_file(path, &f->base, &f->size, &st);
    return mapped(f, &st);
}

model_file *read_open_made(arena *a, const char *path, const char *name, const uint8_t *bytes, size_t size) {
    model_file *f = new_file(a, path);
    status st = {0};
    map_bytes(bytes, size, &f->base, &st);
    f->name = name;
    f->size = size;
    return mapped(f, &st);
}

void model_file_refuse_others(const model_file *f) {
    const char *const other = other_format(f->base, f->size);
    if (other) guard_fail(f->guard, STATUS_INPUT, "%s", other);
}

void read_close(model_file *f) {
    if (!f) return;
    guard_watch_map(f->guard, NULL, 0);
    munmap((void *)(uintptr_t)f->base, (size_t)f->size);
    arena_free(&f->messages);
    arena_free(&f->frames);
    arena_free(&f->tables);
    free(f);
}

wire model_file_wire(model_file *f) {
    return (wire){.base = f->base, .pos = 0, .end = f->size, .guard = f->guard, .steps = &f->steps};
}

static void give_back(const model_file *f, uint64_t from, uint64_t to) {
    madvise((void *)(uintptr_t)(f->base + from), (size_t)(to - from), MADV_DONTNEED);
}

/* Only the stretch since the last time: walking the page tables of the whole file each time would cost more than
 * reading it. */
void model_file_passed(void *file, wire_span field) {
    if (field.size < LARGE_FIELD) return;
    model_file *f = file;
    const uint64_t end = field.offset + field.size;
    if (f->passed == 0 || field.offset < f->passed_from) f->passed_from = field.offset;
    if (f->passed == 0 || end > f->passed_to) f->passed_to = end;
    if (++f->passed < MAX_PASSED) return;
    const uint64_t from = f->passed_from > AROUND ? (f->passed_from - AROUND) / AROUND * AROUND : 0;
    give_back(f, from, f->size - f->passed_to > AROUND ? f->passed_to + AROUND : f->size);
    f->passed = 0;
}

void model_file_rest(model_file *f) {
    give_back(f, 0, f->size);
    f->passed = 0;
}
