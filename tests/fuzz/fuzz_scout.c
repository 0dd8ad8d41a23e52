/* The libFuzzer target of what scout_batch reads: operation files with their fusions, ceilings, frames, cached values,
 * counters, reports that are kept. The first byte says which. Any bytes may be refused, with a line; none may crash,
 * leak or hang, and what was read must survive its own way to a worker and back. */
#include "common/guard.h"
#include "scout/cache/cache_parse.h"
#include "scout/ceilings/ceilings.h"
#include "scout/fusion/fusion.h"
#include "scout/input/operation.h"
#include "scout/kinds/kinds.h"
#include "scout/measure/figures.h"
#include "scout/measure/parts.h"
#include "scout/report/counters.h"
#include "scout/show/show.h"
#include "scout/worker/frames.h"
#include "tests/fuzz/json_mutate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static int file_with(const uint8_t *data, size_t size, char *path, size_t room) {
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0) {
        perror("memfd");
        exit(1);
    }
    snprintf(path, room, "/proc/self/fd/%d", fd);
    return fd;
}

/* As a worker gets it; both must be the same operation. */
static void travel(const operation *o, arena *a) {
    json_builder b = {NULL};
    json_t *sent = operation_to_json(o, &b);
    operation back;
    if (!sent || b.why) abort();
    operation_from_json(sent, a, &back);
    if (strcmp(operation_key(o, a), operation_key(&back, a)) != 0) abort();
    json_decref(sent);
}

/* The parts as a worker gets them, laid out on the fused operation. */
static void run_parts(const fusion *f, const scout_op *op, arena *a) {
    json_builder b = {NULL};
    json_t *sent = fusion_to_json(f, &b);
    fusion_part *parts;
    scout_why why = {.code = ""};
    if (!sent || b.why) abort();
    const int count = fusion_from_json(sent, a, &parts);
    if (count != f->op_count) abort();
    for (int k = 0; k < count; k++) {
        const operation *there = f->parts[k].operation, *here = parts[k].operation;
        if (strcmp(operation_key(there, a), operation_key(here, a)) != 0) abort();
        if (parts[k].place_count != f->parts[k].place_count) abort();
    }
    const parts_request request = {.count = count, .items = parts};
    const scout_candidate *c = parts_use(parts_open(NULL, op, &request, false, a));
    if (c->supports(op, NULL, &why) != SCOUT_OK && (!why.code[0] || !why.text[0])) abort();
    parts_use(NULL);
    json_decref(sent);
}

static void fuzz_fusions(const operation_list *list, const char *path, arena *a) {
    fusion_list fusions;
    fusion_read(list, path, a, &fusions);
    for (int k = 0; k < fusions.count && k < 16; k++) {
        const fusion *f = &fusions.items[k];
        scout_op op;
        scout_why why = {.code = ""};
        if (!f->id[0]) abort();
        if (f->how == FUSION_SKIPPED) {
            if (!f->skip_code[0] || !f->skip_text[0]) abort();
            continue;
        }
        const operation *fused = f->recognised ? f->recognised : &f->fused;
        if (fused->rec.flops < 0 || fused->rec.bytes_read < 0 || fused->rec.bytes_written < 0) abort();
        fusion_key(f, a);
        if (kinds_build(fused, 32 << 20, a, &op, &why)) {
            if (f->how == FUSION_SEQUENCE) run_parts(f, &op, a);
        } else if (!why.code[0] || !why.text[0]) {
            abort();
        }
    }
}

static void fuzz_operations(const uint8_t *data, size_t size) {
    char path[64];
    int fd = file_with(data, size, path, sizeof path);
    guard g;
    arena a;
    operation_list list = {0};
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    if (guard_enter(&g)) {
        operation_read(path, "fp16", &a, &list);
        for (int k = 0; k < list.count && k < 64; k++) {
            scout_op op;
            scout_why why = {.code = ""};
            if (list.items[k].skip_code) continue;
            travel(&list.items[k], &a);
            if (!kinds_build(&list.items[k], 32 << 20, &a, &op, &why) && (!why.code[0] || !why.text[0])) abort();
        }
        fuzz_fusions(&list, path, &a);
    } else if (g.st.code != STATUS_INPUT || !g.st.text[0]) {
        abort();
    }
    operation_list_free(&list);
    arena_free(&a);
    close(fd);
}

static void fuzz_ceilings(const char *text, size_t size) {
    static ceilings c;
    status st = {0};
    json_t *root = json_loadb(text, size, 0, NULL);
    if (!root) return;
    if (ceilings_from_json(root, &c, &st)) {
        const ceilings_time t = ceilings_time_of(&c, "fp16", 1e12, 1e8, 1e7, 1e6, 1e3);
        if (t.seconds < 0 || !t.bound) abort();
    } else if (!st.text[0]) {
        abort();
    }
    json_decref(root);
}

static void fuzz_frames(const uint8_t *data, size_t size) {
    char path[64];
    int fd = file_with(data, size, path, sizeof path);
    frames_reader r;
    frames_frame frame;
    status st = {0};
    frames_reader_init(&r, fd);
    while (frames_receive(&r, &frame, &st)) json_decref(frame.body);
    frames_reader_free(&r);
    close(fd);
}

/* The quick reader may give up, but what it reads is what the whole parser reads. */
static void fuzz_cached(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    if (!copy) return;
    memcpy(copy, text, size);
    copy[size] = 0;
    json_t *quick = cache_parse(copy, size);
    json_t *whole = json_loadb(copy, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (quick && (!whole || !json_equal(quick, whole))) abort();
    json_decref(quick);
    json_decref(whole);
    free(copy);
}

static void fuzz_counters(const char *text, size_t size) {
    char *copy = malloc(size + 1);
    counters c;
    status st = {0};
    if (!copy) return;
    memcpy(copy, text, size);
    copy[size] = 0;
    if (counters_read(copy, size, "a.csv", &c, &st)) {
        json_builder b = {NULL};
        json_decref(counters_json(&c, &b));
        if (b.why || c.kernels < 1 || !c.bottleneck[0]) abort();
    } else if (st.code != STATUS_INPUT || !st.text[0]) {
        abort();
    }
    free(copy);
}

/* What was measured before, from a report or the cache: told again, built again, and continued. */
static void tell_kept(const json_t *kept, arena *a) {
    static const ceilings none;
    static supervisor_device device = {.name = "cuda:0", .device_class = "class A", .device_instance = "class A;1"};
    const regime rules = {REGIME_SUSTAINED, REGIME_MODEL, REGIME_GRAPH};
    const report_search search = {.early_exit = 0.97, .workspace_limit = 1 << 25};
    operation_list list = {0};
    json_builder b = {NULL};
    report_figures f;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out) abort();
    operation_from_words("gemm", "64,96,96", "fp32", 0, NULL, a, &list);
    const report_input in = {.operation = &list.items[0],
                             .key = operation_key(&list.items[0], a),
                             .device = &device,
                             .regime = &rules,
                             .search = &search,
                             .measurement = kept,
                             .ceilings = &none,
                             .model_us = 100};
    report_read(&in, &f);
    if (f.proven_us < 0 || f.bad_rows < 0 || f.verdict.proven_gain_us < 0 || f.verdict.potential_gain_us < 0) abort();
    json_decref(report_build(&in, &b));
    if (b.why) abort();
    show_operation(out, a, &in);
    show_variants(out, a, &in, true);
    show_table(out, a, &in, 1, show_width(out));
    if (fclose(out) != 0 || n == 0 || strpbrk(text, "\x1b\r\x7f")) abort();
    free(text);
    json_decref(figures_choose(kept, NULL, true));
    figures_leader(kept);
    if (!(figures_open(kept) >= 0)) abort();
    operation_list_free(&list);
}

static void fuzz_kept(const char *text, size_t size) {
    guard g;
    arena a;
    json_t *kept = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (!kept) return;
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    if (guard_enter(&g)) {
        if (report_may_serve(kept, false)) tell_kept(kept, &a);
    } else {
        abort();
    }
    arena_free(&a);
    json_decref(kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const uint8_t *rest = data + 1;
    switch (data[0] % 6) {
    case 0: fuzz_operations(rest, size - 1); break;
    case 1: fuzz_ceilings((const char *)rest, size - 1); break;
    case 2: fuzz_frames(rest, size - 1); break;
    case 3: fuzz_cached((const char *)rest, size - 1); break;
    case 4: fuzz_counters((const char *)rest, size - 1); break;
    default: fuzz_kept((const char *)rest, size - 1); break;
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    size_t changed = size > 1 && seed % 4 ? json_mutate((char *)data + 1, size - 1, most - 1, seed) : 0;
    return changed ? changed + 1 : LLVMFuzzerMutate(data, size, most);
}
