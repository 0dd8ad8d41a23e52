/* Owns recurrent layers and rotary embeddings. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

static const struct {
    const char *op_type, *what;
    const char *activations; /* of one direction */
} cells[] = {{"DynamicQuantizeLSTM", "lstm", "sigmoid,tanh,tanh"},
             {"GRU", "gru", "sigmoid,tanh"},
             {"LSTM", "lstm", "sigmoid,tanh,tanh"},
             {"RNN", "rnn", "tanh"}};

static const char *join_names(const work *w, const attr *a) {
    enum { MOST = 8 };
    const char *text = "";
    for (int64_t k = 0; k < a->n && k < MOST; k++)
        text = arena_printf(w->arena, "%s%s%s", text, k ? "," : "", cost_text(w, a->strings[k], true));
    return text;
}

static void recurrent_set_activations(work *w, const char *customary, int64_t directions) {
    const node *n = w->node;
    const attr *names = graph_attr(n, "activations", ATTR_STRINGS),
               *alpha = graph_attr(n, "activation_alpha", ATTR_FLOATS),
               *beta = graph_attr(n, "activation_beta", ATTR_FLOATS), *clip = graph_attr(n, "clip", ATTR_FLOAT);
    if (names && names->strings && names->n > 0) {
        const char *given = join_names(w, names), *twice = arena_printf(w->arena, "%s,%s", customary, customary);
        if (strcmp(given, directions == 2 ? twice : customary) != 0) oprec_set_text(&w->rec, "activations", given);
    }
    if (alpha && alpha->floats && alpha->n > 0)
        oprec_set_text(&w->rec, "activation_alpha", cost_reals(w, alpha->n, alpha->floats));
    if (beta && beta->floats && beta->n > 0)
        oprec_set_text(&w->rec, "activation_beta", cost_reals(w, beta->n, beta->floats));
    if (clip && clip->f > 0) oprec_set_real(&w->rec, "clip", cost_real(clip->f));
}

/* What goes in and out beside X, W and R: other inputs and outputs are other work. */
static void recurrent_set_operands(work *w, const char *what) {
    static const char *const outs[] = {"y", "y_h", "y_c"};
    const bool lstm = strcmp(what, "lstm") == 0;
    const char *returns = "";
    if (cost_in(w, 3)) oprec_set_int(&w->rec, "bias", 1);
    if (cost_in(w, 4)) oprec_set_int(&w->rec, "lengths", 1);
    if (cost_in(w, 5) || (lstm && cost_in(w, 6))) oprec_set_int(&w->rec, "initial_state", 1);
    if (lstm && cost_in(w, 7)) oprec_set_int(&w->rec, "peephole", 1);
    for (int k = 0; k < 3; k++) {
        if (cost_wanted(w->node, k)) returns = arena_printf(w->arena, "%s%s%s", returns, *returns ? "," : "", outs[k]);
    }
    oprec_set_text(&w->rec, "returns", returns);
    if (strcmp(w->node->op_type, "DynamicQuantizeLSTM") == 0) oprec_set_text(&w->rec, "quant", "dynamic");
}

/* X is [steps, batch, input] (batch first where layout is 1); R is [directions, gates * hidden, hidden], transposed in
 * the dynamically quantised one. */
void lower_recurrent(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, 0), *input_weight = cost_in(w, 1);
    const char *activations = "";
    w->rec.kind = OP_RECURRENT;
    for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
        if (strcmp(cells[k].op_type, n->op_type) != 0) continue;
        w->rec.what = cells[k].what;
        activations = cells[k].activations;
    }
    cost_set_types(w, in, in);
    cost_boundary(w);
    cost_weight found;
    if (input_weight && cost_trace(w, n->in[1], &found)) {
        w->weight = found.root;
        w->rec.weight_type = found.type;
    }
    if (cost_rank(in) != 3) return;
    const bool batch_first = graph_attr_int(n, "layout", 0) != 0;
    const char *direction = graph_attr_string(n, "direction", "forward");
    const int64_t directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    const tensor *recurrence = cost_in(w, 2);
    const bool turned = strcmp(n->op_type, "DynamicQuantizeLSTM") == 0;
    const int64_t hidden = graph_attr_int(n, "hidden_size", cost_dim(recurrence, turned ? 1 : 2));
    const int64_t shape[4] = {cost_dim(in, batch_first ? 1 : 0), cost_dim(in, batch_first ? 0 : 1), cost_dim(in, 2),
                              hidden};
    oprec_set_shape(&w->rec, w->arena, 4, shape);
    if (directions != 1) oprec_set_int(&w->rec, "directions", directions);
    if (strcmp(direction, "reverse") == 0) oprec_set_text(&w->rec, "direction", "reverse");
    recurrent_set_activations(w, activations, directions);
    recurrent_set_operands(w, w->rec.what ? w->rec.what : "");
    if (batch_first) oprec_set_text(&w->rec, "order", "batch_first");
    opcost_recurrent(&w->rec);
}

/* [B, H, S, D]; three-dimensional inputs hold the heads in their last dimension, so of several heads and tokens they
 * lie as no record says. */
void lower_rotary(work *w) {
    const node *n = w->node;
    const bool gemma = strcmp(n->op_type, "GemmaRotaryEmbedding") == 0;
    const tensor *in = cost_in(w, gemma ? 1 : 0), *out = cost_out(w, 0);
    const int rank = cost_rank(in);
    w->rec.kind = OP_ROTARY;
    cost_set_types(w, in, out);
    cost_boundary(w);
    if (rank < 3) return;
    const tensor *table = cost_in(w, n->domain[0] ? 2 : 1);
    int64_t rotated = graph_attr_int(n, "rotary_embedding_dim", 0);
    int64_t heads = rank == 4 ? cost_dim(in, 1) : graph_attr_int(n, "num_heads", 0), wide = cost_dim(in, -1);
    if (rank == 3 && heads == 0) { /* the head size then follows from the table of angles */
        const int64_t head = rotated ? rotated : checked_mul(2, cost_dim(table, -1));
        heads = head > 0 ? wide / head : 1;
    }
    if (rank == 3 && heads > 0) wide /= heads;
    const int64_t shape[4] = {cost_dim(in, 0), heads, cost_dim(in, rank == 4 ? 2 : 1), wide};
    oprec_set_shape(&w->rec, w->arena, 4, shape);
    for (int k = 0, first = n->domain[0] ? 2 : 1; !gemma && k < 2; k++) {
        const tensor *angles = cost_in(w, first + k); /* of three dimensions, each row belongs to a token */
        if (cost_rank(angles) == 2) cost_share(w, angles, checked_mul(shape[0], shape[2]), cost_dim(angles, 0));
    }
    cost_boundary(w);
    if (rotated == wide) rotated = 0;
    if (rotated) oprec_set_int(&w->rec, "rotary_dim", rotated);
    if (graph_attr_int(n, "interleaved", 0)) oprec_set_int(&w->rec, "interleaved", 1);
    if (gemma) w->rec.what = "gemma";
    const bool plain = !n->domain[0] && !cost_in(w, 3); /* else positions choose rows of the angles */
    if (plain && cost_rank(table) == 3 && cost_dim(table, 0) == shape[0] && shape[0] > 1)
        oprec_set_int(&w->rec, "angle_batch", shape[0]);
    const bool apart = rank == 4 || shape[1] == 1 || shape[2] == 1;
    work_tell(w, "x", apart ? n->in[gemma ? 1 : 0] : NULL);
    work_tell(w, "cos", plain ? n->in[1] : NULL);
    work_tell(w, "sin", plain ? n->in[2] : NULL);
    work_tell_made(w, "y", n->out[0]);
    const int64_t all = checked_mul(info_count(in->info), gemma ? 2 : 1);
    w->rec.flops =
        checked_mul(rotated && wide ? checked_mul(all / wide, rotated) : all, opcost_per_element(OP_ROTARY, NULL));
}
