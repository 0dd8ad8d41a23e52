/* Moves whose places data tell, by own kernels: scatters, the places of what is not zero, marks at places, and pads
 * with copies. A line of the table for each. */
#include "kernels/pass/place_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/move.h"

typedef struct way way;

struct scout_plan {
    const way *way;
    scatter_pass scatter;
    nonzero_pass nonzero;
    onehot_pass onehot;
    pad_pass pad;
};

struct way {
    const char *kernel;
    int (*takes)(const scout_op *op);
    int (*plan)(const scout_op *op, pass_config config, scout_plan *p); /* 0: it does not fit */
    size_t (*workspace)(const scout_plan *p);                           /* NULL: none */
    int (*launch)(const scout_plan *p, void *const *tensors, void *workspace, void *stream);
};

_Static_assert((int)SCATTER_ADD == (int)MOVE_ADD && (int)SCATTER_MIN == (int)MOVE_MIN &&
                   (int)PAD_REFLECT == (int)MOVE_REFLECT && (int)PAD_WRAP == (int)MOVE_WRAP &&
                   (int)SCOUT_MAX_RANK == (int)PASS_RANK,
               "the passes number as operations do, and take what these may have");

/* ---- scatters ---- */

static int plan_scatter(const scout_op *op, pass_config config, scout_plan *p) {
    const move_scatter s = move_scatter_of(op);
    const int last = s.rank - 1;
    p->scatter = (scatter_pass){.type = (int)op->tensors[0].type,
                                .combine = (int)move_combine_of(op),
                                .index_type = (int)s.index_type,
                                .elements = op_elements(&op->tensors[0]),
                                .updates = op_elements(&op->tensors[2]),
                                .parts = s.parts,
                                .cols = s.cols,
                                .rank = s.rank,
                                .axis = last - s.axis,
                                .length = s.length,
                                .config = config};
    for (int k = 0; k < s.parts; k++) p->scatter.lengths[k] = s.lengths[k];
    for (int d = 0; d < s.rank; d++) p->scatter.dims[d] = s.dims[last - d], p->scatter.strides[d] = s.strides[last - d];
    return scatter_pass_fits(&p->scatter);
}

static size_t scatter_workspace(const scout_plan *p) { return scatter_pass_workspace(&p->scatter); }

static int launch_scatter(const scout_plan *p, void *const *t, void *workspace, void *stream) {
    return scatter_pass_launch(&p->scatter, t[0], t[1], t[2], t[3], workspace, stream);
}

/* ---- places of what is not zero ---- */

static int is_nonzero(const scout_op *op) { return op_is(op, "nonzero"); }

static int plan_nonzero(const scout_op *op, pass_config config, scout_plan *p) {
    const scout_tensor *x = &op->tensors[0];
    (void)config;
    p->nonzero = (nonzero_pass){.type = (int)x->type, .rank = (int)x->rank, .count = op_elements(x)};
    for (uint32_t d = 0; d < x->rank; d++) p->nonzero.dims[d] = x->dims[d];
    return nonzero_pass_fits(&p->nonzero);
}

static size_t nonzero_workspace(const scout_plan *p) { return nonzero_pass_workspace(&p->nonzero); }

static int launch_nonzero(const scout_plan *p, void *const *t, void *workspace, void *stream) {
    return nonzero_pass_launch(&p->nonzero, t[0], t[1], workspace, stream);
}

/* ---- marks at places ---- */

static int is_onehot(const scout_op *op) { return op_is(op, "onehot"); }

static int plan_onehot(const scout_op *op, pass_config config, scout_plan *p) {
    const scout_tensor *y = &op->tensors[1];
    const int axis = (int)op_number(op, "axis", 0);
    p->onehot = (onehot_pass){.type = (int)y->type,
                              .index_type = (int)op->tensors[0].type,
                              .outer = 1,
                              .depth = y->dims[axis],
                              .inner = 1,
                              .config = config};
    for (int d = 0; d < axis; d++) p->onehot.outer *= y->dims[d];
    for (int d = axis + 1; d < (int)y->rank; d++) p->onehot.inner *= y->dims[d];
    return onehot_pass_fits(&p->onehot);
}

static int launch_onehot(const scout_plan *p, void *const *t, void *workspace, void *stream) {
    (void)workspace;
    return onehot_pass_launch(&p->onehot, t[0], t[1], stream);
}

/* ---- pads ---- */

static int plan_pad(const scout_op *op, pass_config config, scout_plan *p) {
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[1];
    const int rank = (int)x->rank;
    p->pad = (pad_pass){.size = own_pass_size(x), .how = (int)move_beyond_of(op), .rank = rank, .config = config};
    for (int d = 0; d < rank; d++) {
        const int from = rank - 1 - d;
        p->pad.dims[d] = y->dims[from], p->pad.lengths[d] = x->dims[from], p->pad.before[d] = move_before(op, from);
    }
    return pad_pass_fits(&p->pad);
}

static int launch_pad(const scout_plan *p, void *const *t, void *workspace, void *stream) {
    (void)workspace;
    return pad_pass_launch(&p->pad, t[0], t[1], stream);
}

/* ---- the candidate ---- */

static const way ways[] = {
    {"scatter_pass", move_scatters, plan_scatter, scatter_workspace, launch_scatter},
    {"nonzero_pass", is_nonzero, plan_nonzero, nonzero_workspace, launch_nonzero},
    {"onehot_pass", is_onehot, plan_onehot, NULL, launch_onehot},
    {"pad_pass", move_pads_copies, plan_pad, NULL, launch_pad},
};

/* NULL: none of them. */
static const way *way_of(const scout_op *op) {
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++)
        if (ways[k].takes(op)) return &ways[k];
    return NULL;
}

static size_t workspace_of(const scout_plan *p) { return p->way->workspace ? p->way->workspace(p) : 0; }

static scout_answer plan_of(const scout_op *op, const int64_t *values, scout_plan *p, scout_why *why) {
    memset(p, 0, sizeof *p);
    p->way = way_of(op);
    if (!p->way) return scout_say(why, SCOUT_NO, "feature", "only scatters, marks and pads with copies are its work");
    if (!p->way->plan(op, own_pass_config(values), p))
        return scout_say(why, SCOUT_NO, "type", "%s does not take this type, or so many updates", p->way->kernel);
    if (workspace_of(p) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "the last update of each place does not fit into the workspace");
    return SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    return plan_of(op, NULL, &p, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    if (!is_nonzero(op)) return own_pass_domain(op, device, exhaustive, out, why);
    out->count = 0; /* its tiles have one size */
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device;
    const scout_answer answer = plan_of(op, values, *out, why);
    if (answer == SCOUT_OK) needs->workspace_bytes = workspace_of(*out);
    return answer;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    const int error = p->way->launch(p, args->tensors, args->workspace, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, p->way->kernel, why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\"}", p->way->kernel);
}

const scout_candidate own_places = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "place_pass",
    .about =
        "own kernels for scatters, marks at places, and pads with copies; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
