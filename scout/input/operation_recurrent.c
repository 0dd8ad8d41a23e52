/* What ops.json would have said of a recurrent layer that is written by hand: its weight's type, what it returns, its
 * costs. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "common/opcost.h"

#include <string.h>

/* Counted as extract_ops counts a layer of a model; where nothing is said all steps are wanted. */
void operation_finish_recurrent(const operation_reader *r, oprec *rec) {
    if (rec->rank != 4) operation_fail(r, "a recurrent layer has the shape [steps, batch, input, hidden]");
    const bool lstm = rec->what && strcmp(rec->what, "lstm") == 0;
    const int64_t gates = opcost_gates(rec), directions = oprec_int(rec, "directions", 1), hidden = rec->shape[3];
    const int64_t rows = checked_mul(rec->shape[0], rec->shape[1]);
    if (directions < 1 || directions > 2) operation_fail(r, "directions must be 1 or 2");
    if (rec->weight_type == DTYPE_NONE) rec->weight_type = rec->type;
    if (!oprec_field(rec, "returns")) oprec_set_text(rec, "returns", "y");
    const int64_t wide = checked_mul(directions, checked_mul(gates, hidden)),
                  state = checked_mul(rec->shape[1], checked_mul(directions, hidden));
    const opfield *returns = oprec_field(rec, "returns");
    const char *wanted = returns->kind == OPFIELD_TEXT && returns->text ? returns->text : "";
    int64_t read = checked_add(checked_mul(rows, rec->shape[2]), checked_mul(wide, checked_add(rec->shape[2], hidden))),
            written = strcmp(wanted, "y") == 0 || strncmp(wanted, "y,", 2) == 0
                          ? checked_mul(rows, checked_mul(directions, hidden))
                          : 0;
    opcost_recurrent(rec);
    if (oprec_int(rec, "bias", 0)) read = checked_add(read, checked_mul(2, wide));
    if (oprec_int(rec, "peephole", 0)) read = checked_add(read, checked_mul(3, checked_mul(directions, hidden)));
    if (oprec_int(rec, "initial_state", 0)) read = checked_add(read, checked_mul(lstm ? 2 : 1, state));
    if (strstr(wanted, "y_h")) written = checked_add(written, state);
    if (strstr(wanted, "y_c")) written = checked_add(written, state);
    rec->bytes_read = checked_add(dtype_bytes(rec->type, read),
                                  oprec_int(rec, "lengths", 0) ? dtype_bytes(DTYPE_INT32, rec->shape[1]) : 0);
    rec->bytes_written = dtype_bytes(rec->type, written);
}
