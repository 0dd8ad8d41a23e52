/* Block masks of attentions: their text made canonical, held against the mask beside it, and counted. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "common/opcost.h"

#include <inttypes.h>
#include <string.h>

/* The masks that go with a block mask, and what they are called together. */
static const struct { const char *without, *with; } block_masks[] = {{"none", "blocks"}, {"causal", "causal+blocks"}};
enum { BLOCK_MASKS = sizeof block_masks / sizeof *block_masks };

static const char *mask_with_blocks(const oprec *rec) {
    const char *mask = rec->mask ? rec->mask : block_masks[0].without;
    for (int k = 0; k < BLOCK_MASKS; k++)
        if (strcmp(mask, block_masks[k].without) == 0 || strcmp(mask, block_masks[k].with) == 0)
            return block_masks[k].with;
    return NULL;
}

void operation_settle_block_mask(const operation_reader *r, oprec *rec) {
    const opfield *f = oprec_field(rec, "block_mask");
    block_mask m;
    char why[128];
    if (!f) return;
    if (f->kind != OPFIELD_TEXT)
        operation_fail(r, "block_mask must be a text: PATTERN,DENSITY[,BLOCK[,SEED]], as in local,0.25,64");
    if (!block_mask_read(f->text, &m, why, sizeof why))
        operation_fail(r, "block_mask is \"%.60s\": %s; it is PATTERN,DENSITY[,BLOCK[,SEED]], as in local,0.25,64",
                       f->text, why);
    const char *mask = mask_with_blocks(rec);
    if (!mask)
        operation_fail(r, "a block_mask goes with no mask and with a causal one, not with mask %.40s", rec->mask);
    char *text = arena_alloc(r->arena, BLOCK_MASK_TEXT);
    block_mask_write(&m, text);
    oprec_set_text(rec, "block_mask", text);
    rec->mask = mask;
}

/* A record that is complete: its text is the canonical one, its mask says that there are blocks, and it has no more of
 * them than there may be. */
void operation_check_block_mask(const operation_reader *r, const oprec *rec) {
    const opfield *f = oprec_field(rec, "block_mask");
    const bool told = rec->mask && rec->kind == OP_ATTENTION &&
                      (strcmp(rec->mask, "blocks") == 0 || strcmp(rec->mask, "causal+blocks") == 0);
    char why[128], text[BLOCK_MASK_TEXT];
    block_mask m;
    if (!f && !told) return;
    if (!f) operation_fail(r, "its mask is %s, and block_mask does not say which blocks", rec->mask);
    if (rec->kind != OP_ATTENTION) operation_fail(r, "only an attention has a block_mask");
    if (!told || f->kind != OPFIELD_TEXT || !block_mask_read(f->text, &m, why, sizeof why))
        operation_fail(r, "its block_mask does not go with its mask, or cannot be read");
    block_mask_write(&m, text);
    if (strcmp(text, f->text) != 0) operation_fail(r, "its block_mask is written as %s", text);
    const int64_t queries = rec->shape[2], keys = oprec_int(rec, "kv_len", queries);
    static const char *const sizes[] = {"kv_len", "kv_heads", "v_head"};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (oprec_int(rec, sizes[k], 1) < 1) operation_fail(r, "%s must be at least 1", sizes[k]);
    if (queries > 0 && !block_mask_fits(&m, queries, keys))
        operation_fail(r, "a block_mask with blocks of %" PRId64 " is for %" PRId64 " queries and keys at most",
                       m.block, BLOCK_MASK_SIDE * m.block);
}

/* Laid over the scores; .block 0: it has none. */
static block_mask blocks_of(const oprec *r) {
    const opfield *text = oprec_field(r, "block_mask");
    const bool told = text && text->kind == OPFIELD_TEXT && r->kind == OP_ATTENTION && r->rank == 4 && r->shape;
    const int64_t queries = told ? r->shape[2] : 0, keys = oprec_int(r, "kv_len", queries);
    return block_mask_over(told ? text->text : NULL, queries, keys, oprec_int(r, "past", checked_sub(keys, queries)),
                           oprec_int(r, "window", 0), r->mask && strncmp(r->mask, "causal", 6) == 0);
}

void operation_cost_attention(oprec *r) {
    const block_mask m = blocks_of(r);
    const int64_t heads = checked_mul(r->shape[0], r->shape[1]), d = r->shape[3], v_head = oprec_int(r, "v_head", d);
    const int64_t rows = checked_mul(heads, r->shape[2]),
                  keys = m.block ? block_mask_keys(&m) : oprec_int(r, "kv_len", r->shape[2]),
                  kv_rows = checked_mul(checked_mul(r->shape[0], oprec_int(r, "kv_heads", r->shape[1])), keys);
    if (m.block)
        opcost_attention_pairs(r, block_mask_pairs(&m));
    else
        opcost_attention(r);
    r->bytes_read = checked_add(dtype_bytes(r->type, checked_mul(rows, d)),
                                dtype_bytes(r->type, checked_mul(kv_rows, checked_add(d, v_head))));
    r->bytes_written = dtype_bytes(r->type, checked_mul(rows, v_head));
}

bool operation_blocks(const operation *o, operation_block_mask *out) {
    const block_mask m = blocks_of(&o->rec);
    if (m.block == 0) return false;
    out->pattern = block_mask_pattern(m.pattern)->name, out->block = m.block, out->density = block_mask_density(&m);
    out->text = oprec_field(&o->rec, "block_mask")->text;
    return true;
}
