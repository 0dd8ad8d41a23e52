/* Making, running and describing primitives of oneDNN. */
#include "scout/cpu/onednn/cpu_onednn_plan.h"

#include "scout/cpu/device/cpu_team.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

scout_answer cpu_onednn_plan_begin(cpu_onednn_plan *p, scout_why *why) {
    memset(p, 0, sizeof *p);
    p->packed = -1;
    p->lib = cpu_onednn_get(why);
    return p->lib ? SCOUT_OK : SCOUT_NO;
}

dnnl_data_type_t cpu_onednn_plan_type(uint32_t type) {
    static const struct {
        uint32_t ours;
        dnnl_data_type_t theirs;
    } rows[] = {{SCOUT_FP32, dnnl_f32}, {SCOUT_BF16, dnnl_bf16}, {SCOUT_FP16, dnnl_f16},
                {SCOUT_INT8, dnnl_s8},  {SCOUT_INT32, dnnl_s32}, {SCOUT_UINT8, dnnl_u8}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].ours == type) return rows[k].theirs;
    return dnnl_data_type_undef;
}

/* Kernels without dot products of bytes add two products up in 16 bits. */
bool cpu_onednn_plan_multiplies(uint32_t type, scout_why *why) {
    const bool bytes = type == SCOUT_INT8 || type == SCOUT_UINT8;
    if (!bytes || cpu_onednn_uses(dnnl_cpu_isa_avx512_core_vnni) || cpu_onednn_uses(dnnl_cpu_isa_avx2_vnni))
        return true;
    scout_say(why, SCOUT_NO, "hardware",
              "sums of 8-bit products would saturate: oneDNN has no dot products of bytes (VNNI) here");
    return false;
}

bool cpu_onednn_plan_md(cpu_onednn_md *md, const scout_tensor *t, const int *permutation) {
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++) {
        const int from = permutation ? permutation[d] : (int)d;
        dims[d] = t->dims[from], strides[d] = t->strides[from];
    }
    const dnnl_data_type_t type = cpu_onednn_plan_type(t->type);
    return type != dnnl_data_type_undef && cpu_onednn_md_strided(md, (int)t->rank, dims, type, strides);
}

int cpu_onednn_plan_part(cpu_onednn_plan *p, int arg, int tensor, cpu_onednn_md md) {
    if (p->count == CPU_ONEDNN_PARTS) {
        cpu_onednn_md_free(&md);
        return -1;
    }
    p->parts[p->count] = (cpu_onednn_part){.arg = arg, .tensor = tensor, .md = md};
    return p->count++;
}

dnnl_status_t cpu_onednn_plan_attr(cpu_onednn_plan *p, dnnl_primitive_attr_t *attr) {
    const cpu_onednn *l = p->lib;
    *attr = NULL;
    dnnl_status_t status = l->dnnl_primitive_attr_create(attr);
    if (status == dnnl_success) status = l->dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    return status;
}

bool cpu_onednn_plan_scratch_fits(cpu_onednn_plan *p, uint64_t limit) {
    cpu_onednn_md scratch = {.there = false};
    const bool asks = cpu_onednn_md_of(&scratch, p->pd, dnnl_query_scratchpad_md);
    const uint64_t bytes = asks ? cpu_onednn_md_bytes(&scratch) : 0;
    cpu_onednn_md_free(&scratch);
    if (bytes <= limit) return true;
    p->lib->dnnl_primitive_desc_destroy(p->pd);
    p->pd = NULL;
    return false;
}

scout_answer cpu_onednn_plan_refuse(const cpu_onednn_plan *p, const char *what, dnnl_status_t status, scout_why *why) {
    const char *const version = p->lib->version;
    if (status == dnnl_out_of_memory)
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "oneDNN has no memory for this %s", what);
    if (status == dnnl_unimplemented)
        return scout_say(why, SCOUT_NO, "type", "oneDNN %s has no such %s on this processor", version, what);
    return scout_say(why, SCOUT_FAILED, "error", "oneDNN %s refuses this %s with status %d", version, what,
                     (int)status);
}

/* --- finishing --- */

static dnnl_status_t find_packing(cpu_onednn_plan *p) {
    const cpu_onednn *l = p->lib;
    cpu_onednn_md *md = &p->parts[p->packed].md;
    cpu_onednn_md_free(md);
    if (!cpu_onednn_md_of(md, p->pd, dnnl_query_weights_md)) return dnnl_runtime_error;
    const dnnl_status_t status = cpu_onednn_reorder(&p->pack_pd, &p->plain, md);
    return status == dnnl_success ? l->dnnl_primitive_create(&p->pack, p->pack_pd) : status;
}

static dnnl_status_t make(cpu_onednn_plan *p) {
    const cpu_onednn *l = p->lib;
    cpu_onednn_md scratch = {.there = false};
    dnnl_status_t status = l->dnnl_primitive_create(&p->primitive, p->pd);
    (void)dlerror(); /* it looks for a profiler, and leaves the loader's error message if there is none */
    if (status == dnnl_success && p->packed >= 0) status = find_packing(p);
    if (status != dnnl_success) return status;
    if (cpu_onednn_md_of(&scratch, p->pd, dnnl_query_scratchpad_md) && cpu_onednn_md_bytes(&scratch) > 0) {
        p->workspace_bytes = cpu_onednn_md_bytes(&scratch);
        if (cpu_onednn_plan_part(p, DNNL_ARG_SCRATCHPAD, -1, scratch) < 0) return dnnl_out_of_memory;
    } else {
        cpu_onednn_md_free(&scratch);
    }
    for (int k = 0; k < p->count; k++)
        if (!cpu_onednn_memory(&p->parts[k].memory, &p->parts[k].md, DNNL_MEMORY_NONE)) return dnnl_out_of_memory;
    return dnnl_success;
}

scout_answer cpu_onednn_plan_finish(cpu_onednn_plan *p, uint64_t workspace_limit, scout_plan_needs *needs,
                                    scout_why *why) {
    const dnnl_status_t status = make(p);
    if (status != dnnl_success) return cpu_onednn_plan_refuse(p, "primitive", status, why);
    if (p->workspace_bytes > workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "oneDNN needs %llu bytes of scratch memory",
                         (unsigned long long)p->workspace_bytes);
    const cpu_onednn_part *packed = p->packed >= 0 ? &p->parts[p->packed] : NULL;
    if (packed && p->turned_bytes == 0 && cpu_onednn_md_same(&packed->md, &p->plain))
        return scout_say(why, SCOUT_NO, "feature", "oneDNN keeps this weight's layout: nothing to pack");
    needs->packs = packed ? (uint32_t)packed->tensor + 1 : 0;
    needs->pack_bytes = packed ? cpu_onednn_md_bytes(&packed->md) : 0;
    needs->workspace_bytes = p->workspace_bytes;
    return SCOUT_OK;
}

/* --- running --- */

dnnl_status_t cpu_onednn_plan_reorder(const cpu_onednn *l, dnnl_primitive_t reorder, const cpu_onednn_md *plain,
                                      const void *weight, const cpu_onednn_md *md, void *packed) {
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_status_t status = dnnl_out_of_memory;
    /* the library takes no pointer to const; a reorder only reads its source */
    if (cpu_onednn_memory(&from, plain, (void *)(uintptr_t)weight) && cpu_onednn_memory(&to, md, packed)) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        status = l->dnnl_primitive_execute(reorder, l->stream, 2, args);
        if (status == dnnl_success) status = l->dnnl_stream_wait(l->stream);
    }
    if (from) l->dnnl_memory_destroy(from);
    if (to) l->dnnl_memory_destroy(to);
    return status;
}

scout_answer cpu_onednn_plan_pack(cpu_onednn_plan *p, const void *weight, void *packed, scout_why *why) {
    uint8_t *const turned = p->turned_bytes > 0 ? malloc((size_t)p->turned_bytes) : NULL;
    if (p->turned_bytes > 0 && !turned)
        return scout_say(why, SCOUT_FAILED, "memory", "the host has no memory to pack the weight");
    for (uint64_t k = 0; turned && k < p->turned_bytes; k++) turned[k] = ((const uint8_t *)weight)[k] ^ 0x80;
    const dnnl_status_t status =
        cpu_onednn_plan_reorder(p->lib, p->pack, &p->plain, turned ? turned : weight, &p->parts[p->packed].md, packed);
    free(turned);
    if (status == dnnl_success) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "oneDNN could not pack the weight: status %d", (int)status);
}

scout_answer cpu_onednn_plan_launch(cpu_onednn_plan *p, const scout_args *args, scout_why *why) {
    const cpu_onednn *l = p->lib;
    dnnl_exec_arg_t exec[CPU_ONEDNN_PARTS];
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < p->count && status == dnnl_success; k++) {
        const cpu_onednn_part *part = &p->parts[k];
        void *data = (char *)(part->tensor >= 0 ? args->tensors[part->tensor] : args->workspace) + part->offset;
        status = l->dnnl_memory_set_data_handle(part->memory, data);
        exec[k] = (dnnl_exec_arg_t){part->arg, part->memory};
    }
    if (status == dnnl_success) status = l->dnnl_primitive_execute(p->primitive, l->stream, p->count, exec);
    if (status == dnnl_success) status = l->dnnl_stream_wait(l->stream);
    if (status == dnnl_success) return SCOUT_OK;
    return scout_say(why, SCOUT_FAILED, "error", "oneDNN's primitive failed with status %d", (int)status);
}

const char *cpu_onednn_plan_implementation(const cpu_onednn_plan *p) {
    const char *name = NULL;
    if (p->lib->dnnl_primitive_desc_query(p->pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success) return "";
    return name ? name : "";
}

int cpu_onednn_plan_describe(const cpu_onednn_plan *p, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\": \"onednn\", \"version\": \"%s\", \"implementation\": \"%s\", \"weight\": \"%s\", "
                    "\"threads\": \"%s\"}",
                    p->lib->version, cpu_onednn_plan_implementation(p), p->packed >= 0 ? "packed" : "as_is",
                    cpu_team_about());
}

void cpu_onednn_plan_free(cpu_onednn_plan *p) {
    const cpu_onednn *l = p->lib;
    for (int k = 0; k < p->count; k++) {
        if (p->parts[k].memory) l->dnnl_memory_destroy(p->parts[k].memory);
        cpu_onednn_md_free(&p->parts[k].md);
    }
    cpu_onednn_md_free(&p->plain);
    if (p->primitive) l->dnnl_primitive_destroy(p->primitive);
    if (p->pack) l->dnnl_primitive_destroy(p->pack);
    if (p->pd) l->dnnl_primitive_desc_destroy(p->pd);
    if (p->pack_pd) l->dnnl_primitive_desc_destroy(p->pack_pd);
    p->count = 0;
}
