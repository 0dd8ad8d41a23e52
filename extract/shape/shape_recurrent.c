/* Recurrent layers: RNN, GRU and LSTM, their quantised form, and the form with attention, which share their outputs. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

static int64_t directions(infer *c) {
    const char *text = infer_attr_string(c, "direction", "forward");
    if (!strcmp(text, "bidirectional")) return 2;
    if (strcmp(text, "forward") != 0 && strcmp(text, "reverse") != 0)
        infer_fail(c, "attribute 'direction' is '%s', it must be forward, reverse or bidirectional", text);
    return 1;
}

/* Recurrent weights are [directions, gates * hidden, hidden]; the quantised form has them transposed. */
static int64_t hidden_size(infer *c, int64_t dirs) {
    bool transposed = graph_is_ms(c->node, "DynamicQuantizeLSTM");
    shape_need_rank(c, 1, 3, 3);
    shape_need_rank(c, 2, 3, 3);
    int64_t from_weight = infer_dim(c, 2, transposed ? 1 : 2);
    int64_t hidden = infer_attr_int(c, "hidden_size", from_weight);
    if (hidden <= 0) infer_fail(c, "the hidden size is %" PRId64 ", it must be at least 1", hidden);
    shape_need_dim(c, 1, 0, dirs, "directions");
    shape_need_dim(c, 2, 0, dirs, "directions");
    shape_need_dim(c, 2, transposed ? 1 : 2, hidden, "hidden size");
    return hidden;
}

void shape_recurrent(infer *c) {
    shape_need_rank(c, 0, 3, 3);
    bool batch_first = infer_attr_int(c, "layout", 0) != 0;
    int64_t dirs = directions(c), hidden = hidden_size(c, dirs);
    int64_t steps = infer_dim(c, 0, batch_first ? 1 : 0), batch = infer_dim(c, 0, batch_first ? 0 : 1);
    if (!graph_is_ms(c->node, "AttnLSTM"))
        shape_need_dim(c, 1, graph_is_ms(c->node, "DynamicQuantizeLSTM") ? 1 : 2, infer_dim(c, 0, 2), "input size");
    dtype type = infer_type(c, 0);
    if (batch_first) {
        infer_set(c, 0, type, 4, (int64_t[]){batch, steps, dirs, hidden});
        for (int k = 1; k < 3; k++) infer_set(c, k, type, 3, (int64_t[]){batch, dirs, hidden});
    } else {
        infer_set(c, 0, type, 4, (int64_t[]){steps, dirs, batch, hidden});
        for (int k = 1; k < 3; k++) infer_set(c, k, type, 3, (int64_t[]){dirs, batch, hidden});
    }
}
