/* Operations in the host's memory, for tests of the CUDA device's candidates on machines without a GPU. */
#ifndef TESTS_CUDA_FIXTURE_H
#define TESTS_CUDA_FIXTURE_H

#include "common/arena.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/lt/lt.h"
#include "scout/input/operation.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

enum { SMALL = 32 << 20 };

static struct scout_device device;
static scout_why why;

typedef struct lab {
    guard g;
    arena a;
    operation_list list;
    scout_op op;
    uint8_t *data[SCOUT_MAX_TENSORS];
} lab;

/* From a list with this one operation; drop is right afterwards in every case. */
static bool read_op(lab *l, const char *fields, uint64_t workspace) {
    char path[] = "/tmp/test_cuda_fixture.XXXXXX", text[512];
    const int file = mkstemp(path), length = snprintf(text, sizeof text, "{\"q\": {%s}}", fields);
    const bool written = file >= 0 && write(file, text, (size_t)length) == length;
    if (file >= 0) close(file);
    memset(l, 0, sizeof *l);
    device = (struct scout_device){.multiprocessors = 132, .capability_major = 9};
    guard_init(&l->g);
    arena_init(&l->a, &l->g, (size_t)64 << 20);
    bool good = written && guard_enter(&l->g);
    if (good) operation_read(path, "fp16", &l->a, &l->list);
    unlink(path);
    good = good && l->list.count == 1 && kinds_build(&l->list.items[0], workspace, &l->a, &l->op, &why);
    if (!UNIT_CHECK(good)) printf("%s: %s %s\n", fields, l->g.st.text, why.text);
    return good;
}

static void drop(lab *l) {
    for (uint32_t k = 0; k < l->op.tensor_count; k++) free(l->data[k]);
    operation_list_free(&l->list);
    arena_free(&l->a);
    lt_lists_free(device.lists);
    device.lists = NULL;
}

/* With a page's alignment and marks behind its end. */
static uint8_t *room(uint64_t bytes, int fill) {
    uint8_t *const p = aligned_alloc(512, (size_t)(bytes + 1023) / 512 * 512);
    if (!p) abort();
    memset(p, fill, (size_t)bytes);
    memset(p + bytes, 0xa5, 256);
    return p;
}

static bool is_whole(const uint8_t *p, uint64_t bytes) {
    for (int k = 0; k < 256; k++)
        if (p[bytes + (uint64_t)k] != 0xa5) return false;
    return true;
}

/* Prepares, packs and launches one variant on the operation's data, its output poisoned before; whether all of that
 * went well, and nothing was written beside where it may be. */
static bool run_lab(lab *l, const scout_candidate *c, uint32_t output, const int64_t *values) {
    scout_plan *plan = NULL;
    scout_plan_needs needs = {.size = sizeof needs};
    void *tensors[SCOUT_MAX_TENSORS];
    char text[2048];
    if (!UNIT_INT(scout_prepare(c, &l->op, &device, values, &plan, &needs, &why), SCOUT_OK)) return false;
    uint8_t *const packed = room(needs.pack_bytes, 0xff), *const workspace = room(needs.workspace_bytes, 0xff);
    for (uint32_t k = 0; k < l->op.tensor_count; k++) tensors[k] = l->data[k];
    bool good = true;
    if (needs.packs) {
        good = UNIT_INT(c->pack(plan, tensors[needs.packs - 1], packed, NULL, &why), SCOUT_OK);
        tensors[needs.packs - 1] = packed;
    }
    memset(l->data[output], 0xff, l->op.tensors[output].bytes);
    const scout_args args = {.size = sizeof args, .tensors = tensors, .workspace = workspace};
    good = UNIT_INT(c->launch(plan, &args, &why), SCOUT_OK) && good;
    good = UNIT_CHECK(needs.workspace_bytes <= l->op.workspace_limit) && good;
    good = UNIT_CHECK(is_whole(packed, needs.pack_bytes) && is_whole(workspace, needs.workspace_bytes)) && good;
    for (uint32_t k = 0; k < l->op.tensor_count; k++)
        good = UNIT_CHECK(is_whole(l->data[k], l->op.tensors[k].bytes)) && good;
    const int length = scout_describe(c, plan, text, sizeof text);
    good = UNIT_CHECK(length > 0 && text[0] == '{' && text[length - 1] == '}') && good;
    scout_destroy(c, plan);
    free(packed);
    free(workspace);
    return good;
}

#endif
