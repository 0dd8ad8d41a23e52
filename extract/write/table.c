/* Owns what a person sees after a run: the model, the largest operations with their share of the work, what was not
 * understood, and what could be fused. Everything that comes out of a model is cleaned before it reaches a terminal. */
#include "extract/write/emit.h"

#include "common/checked.h"
#include "common/plain.h"
#include "common/terminal.h"
#include "extract/ops/dataflow.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 14, TABLE_FUSIONS = 8, TABLE_OPEN = 5, TABLE_WIDE = 4096, TABLE_SAVED = 8, TABLE_JOINED = 12 };

typedef struct table {
    FILE *out;
    const catalog *catalog;
    arena *arena;
    int width; /* of the terminal; TABLE_WIDE where there is none */
    bool coloured;
    double flops, bytes; /* of the whole model, at least 1 */
} table;

static const char bold[] = "\x1b[1m", dim[] = "\x1b[2m", green[] = "\x1b[32m", yellow[] = "\x1b[33m", plain[] = "";

/* ---- lines and cells ---- */

static void put(table *t, const char *colour, const char *text) {
    const bool paint = t->coloured && *colour;
    fprintf(t->out, "%s%s%s", paint ? colour : "", text, paint ? "\x1b[0m" : "");
}

static void put_line(table *t, const char *colour, const char *text) {
    put(t, colour, plain_cell(t->arena, text, t->width));
    fputc('\n', t->out);
}

static const char *padded(table *t, const char *text, int columns, bool right) {
    const int missing = columns - plain_columns(text);
    if (missing <= 0) return text;
    return right ? arena_printf(t->arena, "%*s%s", missing, "", text)
                 : arena_printf(t->arena, "%s%*s", text, missing, "");
}

/* A number with three figures and its unit: "12.3 G". */
static const char *scaled(table *t, int64_t x, const char *unit) {
    static const char *const prefix[] = {"", "K", "M", "G", "T", "P", "E"};
    double value_left = (double)x;
    int step = 0;
    while (value_left >= 999.5 && step < 6) {
        value_left /= 1000;
        step++;
    }
    const int digits = step == 0 || value_left >= 99.95 ? 0 : value_left >= 9.995 ? 1 : 2;
    return arena_printf(t->arena, "%.*f %s%s", digits, value_left, prefix[step], unit);
}

/* Exact, but for what no narrow column holds. */
static const char *counted(table *t, int64_t x) {
    const bool plainly = t->width == TABLE_WIDE || x < 100000;
    return plainly ? arena_printf(t->arena, "%" PRId64, x) : scaled(t, x, "");
}

static const char *percent(table *t, double part, double whole) {
    const double share = 100 * part / whole;
    return share > 0 && share < 0.05 ? "< 0.1 %" : arena_printf(t->arena, "%.1f %%", share);
}

/* ---- head ---- */

static void print_head(table *t) {
    const model *m = t->catalog->model;
    put_line(t, bold, m->name);
    const char *line = arena_printf(t->arena, "opset %" PRId64 "%s%s", m->opset,
                                    m->producer && *m->producer ? ", made by " : "", m->producer ? m->producer : "");
    if (t->catalog->precision != DTYPE_NONE)
        line = arena_printf(t->arena, "%s, floats taken as %s", line, dtype_get(t->catalog->precision)->name);
    put_line(t, plain, line);
    const char *dims = NULL;
    for (int k = 0; k < m->dim_count && k < 16; k++) {
        const model_dim *d = &m->dims[k];
        dims = arena_printf(t->arena, "%s%s%s %" PRId64 " (%s)", dims ? dims : "", dims ? ", " : "", d->name, d->size,
                            d->how ? d->how : "");
    }
    if (dims) put_line(t, plain, dims);
    const catalog_totals *sum = &t->catalog->totals;
    put_line(t, plain,
             arena_printf(t->arena, "%s, %s, %s to move, %s parameters", scaled(t, sum->macs, "MAC"),
                          scaled(t, sum->flops, "FLOP"), scaled(t, collect_bytes(sum), "B"),
                          scaled(t, t->catalog->parameters, "")));
}

/* Of what has no known size nothing is counted. */
static void print_memory(table *t) {
    const dataflow *d = t->catalog->dataflow;
    if (d->occurrence_count == 0) return;
    put_line(t, plain,
             arena_printf(t->arena, "weights %s, activations %s %s (at %s)", scaled(t, d->weight_bytes, "B"),
                          d->unsized ? "at least" : "at most", scaled(t, d->activation_bytes, "B"),
                          d->occurrences[d->peak].w->node->name));
}

static void print_coverage(table *t) {
    const catalog *c = t->catalog;
    const int64_t open = c->nodes - c->resolved;
    if (open == 0 && c->unknown_count == 0) {
        put_line(t, green, arena_printf(t->arena, "%" PRId64 " nodes, all resolved", c->nodes));
        return;
    }
    put_line(t, yellow, arena_printf(t->arena, "%" PRId64 " nodes, %" PRId64 " not resolved", c->nodes, open));
    for (int64_t k = 0; k < open && k < TABLE_OPEN; k++) {
        const node *n = c->unresolved[k];
        put_line(t, plain,
                 arena_printf(t->arena, "  %s (%s): %s", n->name, graph_operator(t->arena, n),
                              n->unresolved ? n->unresolved : "the operator is not known"));
    }
    if (open > TABLE_OPEN) put_line(t, plain, arena_printf(t->arena, "  and %" PRId64 " more", open - TABLE_OPEN));
}

/* ---- operations ---- */

static const char *dims_text(table *t, int n, const int64_t *dims, const char *between) {
    const char *text = "";
    for (int k = 0; k < n; k++) text = arena_printf(t->arena, "%s%s%" PRId64, text, k ? between : "", dims[k]);
    return text;
}

static const char *field_text(table *t, const opfield *f) {
    switch (f->kind) {
    case OPFIELD_INT: return arena_printf(t->arena, " %s=%" PRId64, f->name, f->i);
    case OPFIELD_REAL: return arena_printf(t->arena, " %s=%g", f->name, f->real);
    case OPFIELD_TEXT: return arena_printf(t->arena, " %s=%s", f->name, f->text);
    default: return arena_printf(t->arena, " %s=%s", f->name, dims_text(t, f->n, f->ints, ","));
    }
}

static const char *record_text(table *t, const oprec *r) {
    const char *text = dims_text(t, r->rank, r->shape, "x");
    if (r->layout) text = arena_printf(t->arena, "%s %s", text, r->layout);
    if (r->mask && strcmp(r->mask, "none") != 0) text = arena_printf(t->arena, "%s %s", text, r->mask);
    for (int k = 0; k < r->field_count; k++) {
        if (strcmp(r->fields[k].name, "weight_side") != 0)
            text = arena_printf(t->arena, "%s%s", text, field_text(t, &r->fields[k]));
    }
    return text;
}

static const char *name_text(table *t, const catalog_entry *e) {
    const oprec *r = e->rec;
    if (r->what && strcmp(r->what, oprec_kind_name(r->kind)) == 0) return r->what;
    return r->what ? arena_printf(t->arena, "%s %s", oprec_kind_name(r->kind), r->what) : oprec_kind_name(r->kind);
}

static const char *dtype_text(table *t, const oprec *r) {
    const char *name = dtype_get(r->type)->name;
    if (r->weight_type == DTYPE_NONE || r->weight_type == r->type) return name;
    return arena_printf(t->arena, "%s/%s", name, dtype_get(r->weight_type)->name);
}

static double entry_flops(const catalog_entry *e) { return (double)e->rec->flops * (double)e->count; }

static double entry_bytes(const catalog_entry *e) {
    return ((double)e->rec->bytes_read + (double)e->rec->bytes_written) * (double)e->count;
}

/* Widths of the columns; a narrow terminal goes without the types, a narrower one without shapes and counts. */
typedef struct columns {
    int name, shape, type, count, share;
} columns;

typedef struct row {
    const char *name, *shape, *type, *count, *flops, *bytes;
} row;

static void print_row(table *t, const columns *w, const row *r, const char *colour) {
    put(t, colour, padded(t, plain_cell(t->arena, r->name, w->name), w->name, false));
    if (w->shape > 0) {
        put(t, plain, " ");
        put(t, plain, padded(t, plain_cell(t->arena, r->shape, w->shape), w->shape, false));
    }
    if (w->type > 0) {
        put(t, plain, " ");
        put(t, dim, padded(t, plain_cell(t->arena, r->type, w->type), w->type, false));
    }
    if (w->count > 0) put(t, plain, padded(t, r->count, w->count, true));
    put(t, colour, padded(t, r->flops, w->share, true));
    put(t, colour, padded(t, r->bytes, w->share, true));
    fputc('\n', t->out);
}

typedef struct ranked {
    const catalog_entry *entry;
    double weight;
    size_t order;
} ranked;

static int by_weight(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Entries that count, the largest shares of flops and bytes together first. */
static size_t rank_entries(table *t, ranked **list) {
    const catalog *c = t->catalog;
    *list = arena_array(t->arena, ranked, c->entry_count);
    size_t count = 0;
    for (size_t k = 0; k < c->entry_count; k++) {
        const catalog_entry *e = c->entries[k];
        if (e->part || e->free || e->count == 0) continue;
        (*list)[count++] = (ranked){e, entry_flops(e) / t->flops + entry_bytes(e) / t->bytes, k};
    }
    qsort(*list, count, sizeof **list, by_weight);
    return count;
}

static columns measure(table *t, const row *rows, size_t count) {
    columns w = {.name = 9, .shape = 5, .type = 5, .count = 6, .share = 8};
    for (size_t k = 0; k < count; k++) {
        const int name = plain_columns(rows[k].name), shape = plain_columns(rows[k].shape),
                  type = plain_columns(rows[k].type), n = plain_columns(rows[k].count);
        if (name > w.name) w.name = name;
        if (shape > w.shape) w.shape = shape;
        if (type > w.type) w.type = type;
        if (n >= w.count) w.count = n + 1;
    }
    if (t->width == TABLE_WIDE) return w;
    if (w.name > 22) w.name = 22;
    if (t->width < 72) w.type = 0;
    const int rest = t->width - w.name - w.count - 2 * w.share - 1 - (w.type ? w.type + 1 : 0);
    if (w.shape > rest) w.shape = rest >= 5 ? rest : 0;
    if (t->width - 2 * w.share - w.count < 6) w.count = 0;
    const int names = t->width - 2 * w.share - w.count;
    if (w.shape == 0 && w.name > names) w.name = names;
    return w;
}

static void print_operations(table *t) {
    ranked *list;
    const size_t count = rank_entries(t, &list), shown = count < TABLE_ROWS ? count : TABLE_ROWS;
    row rows[TABLE_ROWS];
    double flops = 0, bytes = 0;
    for (size_t k = 0; k < count; k++) {
        const catalog_entry *e = list[k].entry;
        if (k >= shown) {
            flops += entry_flops(e);
            bytes += entry_bytes(e);
            continue;
        }
        rows[k] = (row){name_text(t, e),
                        record_text(t, e->rec),
                        dtype_text(t, e->rec),
                        counted(t, e->count),
                        percent(t, entry_flops(e), t->flops),
                        percent(t, entry_bytes(e), t->bytes)};
    }
    const columns w = measure(t, rows, shown);
    fputc('\n', t->out);
    print_row(t, &w, &(row){"operation", "shape", "dtype", "count", "flops", "bytes"}, bold);
    for (size_t k = 0; k < shown; k++) print_row(t, &w, &rows[k], list[k].weight >= 0.2 ? bold : plain);
    if (count == shown) return;
    const char *rest = arena_printf(t->arena, "%zu more", count - shown);
    print_row(t, &w, &(row){rest, "", "", "", percent(t, flops, t->flops), percent(t, bytes, t->bytes)}, dim);
}

static void print_free(table *t) {
    const catalog *c = t->catalog;
    int64_t folded = 0, others = 0;
    for (size_t k = 0; k < c->entry_count; k++) {
        const catalog_entry *e = c->entries[k];
        if (!e->free) continue;
        if (e->first->folded)
            folded = checked_add(folded, e->occurrences);
        else
            others = checked_add(others, e->occurrences);
    }
    if (folded || others)
        put_line(t, dim,
                 arena_printf(t->arena,
                              "free nodes: %" PRId64 " folded when the model is loaded, %" PRId64
                              " only views or control",
                              folded, others));
}

/* ---- fusions ---- */

static int by_saving(const void *a, const void *b) {
    const catalog_fusion *x = *(catalog_fusion *const *)a, *y = *(catalog_fusion *const *)b;
    const int64_t p = checked_mul(x->saved_bytes, x->selected), q = checked_mul(y->saved_bytes, y->selected);
    if (p != q) return p < q ? 1 : -1;
    return (x > y) - (x < y); /* one array: its order */
}

/* The names give way where it is narrow, never the bytes. */
static void print_fusion(table *t, const catalog_fusion *f, int names, int counts) {
    const int room = t->width - (2 + names + 1 + counts + 3 + TABLE_SAVED) - 3;
    const char *joined = "";
    for (int i = 0; room >= TABLE_JOINED && i < f->op_count && i < 12; i++)
        joined = arena_printf(t->arena, "%s%s%s", joined, i ? " + " : "   ", name_text(t, f->ops[i]));
    const char *name = padded(t, plain_cell(t->arena, f->pattern, names), names, false);
    put_line(t, plain,
             arena_printf(t->arena, "  %s %s x %s%s", name, padded(t, counted(t, f->selected), counts, true),
                          padded(t, scaled(t, f->saved_bytes, "B"), TABLE_SAVED, true),
                          plain_cell(t->arena, joined, room + 3)));
}

static void print_fusion_list(table *t, catalog_fusion *const *list, size_t count) {
    int names = 0, counts = t->width < 60 ? 1 : 5;
    for (size_t k = 0; k < count; k++) {
        const int name = plain_columns(list[k]->pattern), wide = plain_columns(counted(t, list[k]->selected));
        if (name > names) names = name;
        if (wide > counts) counts = wide;
    }
    const int room = t->width - (2 + 1 + counts + 3 + TABLE_SAVED);
    if (names > room) names = room;
    for (size_t k = 0; k < count; k++) print_fusion(t, list[k], names, counts);
}

static void print_fusions(table *t) {
    const catalog *c = t->catalog;
    catalog_fusion **list = arena_array(t->arena, catalog_fusion *, c->fusion_count);
    size_t count = 0;
    int64_t saved = 0;
    for (size_t k = 0; k < c->fusion_count; k++) {
        catalog_fusion *f = &c->fusions[k];
        if (f->selected <= 0) continue;
        list[count++] = f;
        saved = checked_add(saved, checked_mul(f->saved_bytes, f->selected));
    }
    if (count == 0) return;
    qsort(list, count, sizeof *list, by_saving);
    fputc('\n', t->out);
    const char *all = scaled(t, saved, "B");
    const char *head =
        arena_printf(t->arena, "fusions, and the bytes they save against one kernel per operation: %s in all", all);
    put_line(t, bold, plain_columns(head) <= t->width ? head : arena_printf(t->arena, "fusions save %s", all));
    print_fusion_list(t, list, count < TABLE_FUSIONS ? count : TABLE_FUSIONS);
    if (count > TABLE_FUSIONS) put_line(t, dim, arena_printf(t->arena, "  and %zu more", count - TABLE_FUSIONS));
}

void table_print(FILE *out, const catalog *c) {
    const terminal to = terminal_of(out, TABLE_WIDE);
    table t = {.out = out, .catalog = c, .arena = c->arena, .flops = 1, .bytes = 1};
    t.width = to.columns;
    t.coloured = to.coloured;
    for (size_t k = 0; k < c->entry_count; k++) {
        if (c->entries[k]->part) continue;
        t.flops += entry_flops(c->entries[k]);
        t.bytes += entry_bytes(c->entries[k]);
    }
    print_head(&t);
    print_memory(&t);
    print_coverage(&t);
    print_operations(&t);
    print_free(&t);
    print_fusions(&t);
}
