/* A sequence in the place of a kind: {"op": ["gemm", "bias", "relu"], …} is the product with that epilogue, one
 * operation as {"op": "gemm", "bias": "n", "activation": "relu", …} is. */
#include "scout/input/operation_internal.h"

#include "scout/op/activation.h"

#include <string.h>

/* What may follow a product or a convolution, in the order in which it is applied; an activation is last. */
static const struct {
    op_kind kind;
    const char *word, *member, *text; /* text NULL: the number 1 */
} steps[] = {
    {OP_GEMM, "bias", "bias", "n"},       {OP_GEMM, "add", "residual", NULL}, {OP_GEMM, "residual", "residual", NULL},
    {OP_CONV, "bias", "bias", "channel"}, {OP_CONV, "add", "residual", NULL}, {OP_CONV, "residual", "residual", NULL},
};

static void set_member(const operation_reader *r, json_t *entry, const char *name, json_t *value) {
    const bool twice = json_object_get(entry, name) != NULL;
    if (twice) json_decref(value);
    if (twice) operation_fail(r, "%s is given twice", name);
    if (json_object_set_new(entry, name, value) != 0)
        guard_fail(r->arena->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
}

static void add_step(const operation_reader *r, json_t *entry, op_kind kind, const char *word) {
    if (json_object_get(entry, "activation"))
        operation_fail(r, "%.40s cannot follow %.40s: an activation is applied last", word,
                       json_string_value(json_object_get(entry, "activation")));
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++)
        if (steps[k].kind == kind && strcmp(steps[k].word, word) == 0) {
            set_member(r, entry, steps[k].member, steps[k].text ? json_string(steps[k].text) : json_integer(1));
            return;
        }
    if ((kind != OP_GEMM && kind != OP_CONV) || !activation_find(word))
        operation_fail(
            r,
            "%.40s cannot follow %.40s; a product or a convolution may have bias, add and an activation such "
            "as relu, gelu or silu",
            word, json_string_value(json_object_get(entry, "op")));
    set_member(r, entry, "activation", json_string(word));
}

void operation_read_sequence(const operation_reader *r, json_t *entry) {
    json_t *const words = json_incref(json_object_get(entry, "op"));
    const char *bad = json_array_size(words) == 0 ? "op is an empty list" : NULL;
    op_kind kind = OP_UNKNOWN;
    for (size_t k = 0; k < json_array_size(words); k++)
        if (!json_is_string(json_array_get(words, k)))
            bad = "op must be a kind, or a list of texts that begins with one";
    const char *text[OPERATION_SEQUENCE] = {""};
    const size_t count = json_array_size(words);
    if (count > OPERATION_SEQUENCE) bad = "op is a list of too many words";
    for (size_t k = 0; !bad && k < count; k++) {
        const json_t *const word = json_array_get(words, k);
        text[k] = arena_strndup(r->arena, json_string_value(word), json_string_length(word));
    }
    json_decref(words);
    if (bad) operation_fail(r, "%s", bad);
    if (json_object_set_new(entry, "op", json_string(text[0])) != 0)
        guard_fail(r->arena->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    (void)oprec_kind_from_name(text[0], &kind); /* an unknown one is said where kinds are read */
    for (size_t k = 1; k < count; k++) add_step(r, entry, kind, text[k]);
}
