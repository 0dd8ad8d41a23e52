/* A primitive of oneDNN with its arguments, shared by the candidates that call one. */
#pragma once

#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/op/op.h"
#include "scout/op/requantize.h"

enum { CPU_ONEDNN_PARTS = 12 };

typedef struct cpu_onednn_part {
    int arg;    /* DNNL_ARG_… */
    int tensor; /* of the operation; -1: the workspace; either from byte `offset` on */
    uint64_t offset;
    cpu_onednn_md md;
    dnnl_memory_t memory;
} cpu_onednn_part;

typedef struct cpu_onednn_plan {
    const cpu_onednn *lib;
    dnnl_primitive_desc_t pd, pack_pd;
    dnnl_primitive_t primitive, pack;
    cpu_onednn_part parts[CPU_ONEDNN_PARTS];
    int count;
    cpu_onednn_md plain;   /* a weight as it lies, where it is packed */
    int packed;            /* the part whose tensor is packed; -1: none */
    uint64_t turned_bytes; /* of that tensor, whose bytes have their highest bit turned first; 0: it is not turned */
    uint64_t workspace_bytes;
} cpu_onednn_plan;

/* Zeroed, with the library; SCOUT_NO: it is not here. */
scout_answer cpu_onednn_plan_begin(cpu_onednn_plan *p, scout_why *why);
dnnl_data_type_t cpu_onednn_plan_type(uint32_t type); /* dnnl_data_type_undef: it has none */

/* Whether the library's products of this type are right here; where they are not, why says. */
bool cpu_onednn_plan_multiplies(uint32_t type, scout_why *why);

/* The md of a tensor as it lies, its dimensions and strides in the order `permutation` (NULL: as they are). */
bool cpu_onednn_plan_md(cpu_onednn_md *md, const scout_tensor *t, const int *permutation);

/* Adds an argument; owns md from then on. Returns its index; -1: no room. */
int cpu_onednn_plan_part(cpu_onednn_plan *p, int arg, int tensor, cpu_onednn_md md);

/* Attributes with a user scratchpad, so that the harness owns scratch memory. Freed by the caller. */
dnnl_status_t cpu_onednn_plan_attr(cpu_onednn_plan *p, dnnl_primitive_attr_t *attr);

/* Whether the scratch memory that p->pd asks for is within the limit; where it is not, p->pd is dropped, so that the
 * caller can make it anew with attributes that leave scratch memory to the library. */
bool cpu_onednn_plan_scratch_fits(cpu_onednn_plan *p, uint64_t limit);

/* Once p->pd is there: scratch memory as one more part, the primitive, its memories; and where `packed` is set, the
 * reorder from p->plain to the primitive's preferred format (md of that part was created with cpu_onednn_md_any). Fills
 * `needs`. */
scout_answer cpu_onednn_plan_finish(cpu_onednn_plan *p, uint64_t workspace_limit, scout_plan_needs *needs,
                                    scout_why *why);
/* Runs a reorder of a weight to where it is packed. */
dnnl_status_t cpu_onednn_plan_reorder(const cpu_onednn *l, dnnl_primitive_t reorder, const cpu_onednn_md *plain,
                                      const void *weight, const cpu_onednn_md *md, void *packed);
scout_answer cpu_onednn_plan_pack(cpu_onednn_plan *p, const void *weight, void *packed, scout_why *why);
scout_answer cpu_onednn_plan_launch(cpu_onednn_plan *p, const scout_args *args, scout_why *why);
const char *cpu_onednn_plan_implementation(const cpu_onednn_plan *p); /* the library's name of its kernel, or "" */
int cpu_onednn_plan_describe(const cpu_onednn_plan *p, char *json, size_t room);
void cpu_onednn_plan_free(cpu_onednn_plan *p); /* what it holds, not itself */

/* The meaning of a status other than dnnl_success: SCOUT_NO "type" where the library has no such primitive. */
scout_answer cpu_onednn_plan_refuse(const cpu_onednn_plan *p, const char *what, dnnl_status_t status, scout_why *why);

/* ---- the epilogue as post-operations: the residual first, then the activation of the sum ---- */

/* The residual's argument of the primitive. */
enum { CPU_ONEDNN_POST_RESIDUAL = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1 };

/* Requantising before the post-operations: a factor and zero points, where there are any. oneDNN 3 takes these as
 * memories of a launch, which is not supported here: dnnl_unimplemented. */
dnnl_status_t cpu_onednn_post_quantise(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant);

/* The same for a primitive without zero points, with the zero point `zeros` times in its result (a sum of two 2, an
 * average 1): by post-operations alone, which both versions have. */
dnnl_status_t cpu_onednn_post_sum(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant, int zeros,
                                  const op_activation *a);

/* residual: NULL or not `there`: none. */
dnnl_status_t cpu_onednn_post(const cpu_onednn *l, dnnl_primitive_attr_t attr, double factor,
                              const cpu_onednn_md *residual, const op_activation *a);
