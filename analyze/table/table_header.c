/* Owns how a table is written as C: the three headers of the library that need nothing but libc, then the index exactly
 * as the library builds it, as static const data. The names of a model only ever appear within strings and comments. */
#include "analyze/table/table.h"

#include "analyze/write/escape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The lines of the library's headers, made by mk/dispatch.mk. */
static const char *const library_lines[] = {
#include "scout_dispatch_lines.inc"
};

typedef struct page {
    files_out *out;
    const dispatch_table *table;
    const char *prefix;
} page;

__attribute__((format(printf, 2, 3))) static void put(const page *p, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0) files_append(p->out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void put_string(const page *p, const char *text) {
    if (!text) {
        put(p, "SCOUT_DISPATCH_NULL");
        return;
    }
    put(p, "\"");
    escape_append(p->out, ESCAPE_C_STRING, text);
    put(p, "\"");
}

static void put_int(const page *p, int64_t x) {
    if (x == INT64_MIN)
        put(p, "-INT64_C(%" PRId64 ") - 1", INT64_MAX);
    else
        put(p, "INT64_C(%" PRId64 ")", x);
}

/* The shortest decimal that reads back as the same number, and is no whole number to C. */
static void put_real(const page *p, double x) {
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        double back = 0;
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (sscanf(digits, "%lf", &back) == 1 && back == x) break;
    }
    put(p, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void put_guard(const page *p, const char *directive) {
    put(p, "%s ", directive);
    for (const char *s = p->prefix; *s; s++) put(p, "%c", *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    put(p, "_TABLE_H\n");
}

static void put_about(const page *p, const char *models) {
    put(p, "/* Dispatch table of ");
    escape_append(p->out, ESCAPE_C_COMMENT, models);
    put(p, "\n * measured on ");
    escape_append(p->out, ESCAPE_C_COMMENT, p->table->device_class);
    put(p, "\n * regime ");
    escape_append(p->out, ESCAPE_C_COMMENT, p->table->regime);
    put(p, ", method %" PRId64 ". Written by `analyze dispatch`: not to be edited.\n *\n", p->table->method);
    put(p, " *     %s_check    first: whether this is that device, driver and library; what differs, in a line\n",
        p->prefix);
    put(p, " *     %s_find     the entry of a key, NULL where it was not measured: run the default\n", p->prefix);
    put(p, " *     %s_near     the range that a key lies in, between two entries that agree\n", p->prefix);
    put(p, " *\n * C11 and C++17; no allocation; may be included beside others of its kind. */\n");
}

static void put_library(const page *p) {
    for (size_t k = 0; k < sizeof library_lines / sizeof library_lines[0]; k++)
        files_append(p->out, library_lines[k], strlen(library_lines[k]));
}

/* ---- data ---- */

static void put_algos(const page *p) {
    for (uint32_t k = 0; k < p->table->index.entry_count; k++) {
        const scout_dispatch_entry *e = &p->table->index.entries[k];
        if (!e->algo) continue;
        put(p, "static const unsigned char %s_algo_%" PRIu32 "[] = {", p->prefix, k);
        for (uint32_t n = 0; n < e->algo_bytes; n++)
            put(p, "%s0x%02x", n == 0 ? "" : n % 16 == 0 ? ",\n    " : ", ", e->algo[n]);
        put(p, "};\n");
    }
}

static void put_entry(const page *p, uint32_t k) {
    static const char *const choices[] = {"SCOUT_DISPATCH_DEFAULT", "SCOUT_DISPATCH_TUNED", "SCOUT_DISPATCH_CUSTOM"};
    const scout_dispatch_entry *e = &p->table->index.entries[k];
    const char *const before[] = {e->key, e->operation}, *const after[] = {e->implementation, e->variant, e->library,
                                                                           e->version};
    const double times[] = {e->expected_us, e->expected_ci, e->default_us, e->default_ci, e->ratio, e->ratio_ci};
    put(p, "    {");
    for (size_t n = 0; n < 2; n++) put_string(p, before[n]), put(p, ",\n     ");
    put(p, "%s, ", choices[e->choice]);
    for (size_t n = 0; n < 4; n++) put_string(p, after[n]), put(p, ", ");
    if (e->algo)
        put(p, "%s_algo_%" PRIu32 ", %" PRIu32 ",\n     ", p->prefix, k, e->algo_bytes);
    else
        put(p, "SCOUT_DISPATCH_NULL, 0,\n     ");
    put_string(p, e->config);
    put(p, ",\n     ");
    put_string(p, e->packing);
    put(p, ", ");
    put_real(p, e->pack_us);
    put(p, ", ");
    put_int(p, e->pack_bytes);
    put(p, ", ");
    put_int(p, e->workspace_bytes);
    for (size_t n = 0; n < sizeof times / sizeof times[0]; n++) put(p, ", "), put_real(p, times[n]);
    put(p, ", ");
    put_int(p, e->batches);
    put(p, ", ");
    put_int(p, e->launches);
    put(p, "},\n");
}

/* Arrays of C have one element at least: what is empty gets one that nothing looks at. */
static void put_entries(const page *p) {
    const scout_dispatch_index *x = &p->table->index;
    put(p, "static const scout_dispatch_entry %s_entries[] = {\n", p->prefix);
    for (uint32_t k = 0; k < x->entry_count; k++) put_entry(p, k);
    if (x->entry_count == 0)
        put(p, "    {\"\", \"\", SCOUT_DISPATCH_DEFAULT, \"\", \"\", SCOUT_DISPATCH_NULL, SCOUT_DISPATCH_NULL, "
               "SCOUT_DISPATCH_NULL, 0, \"{}\",\n     SCOUT_DISPATCH_NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},\n");
    put(p, "};\n");
}

static void put_index(const page *p) {
    const scout_dispatch_index *x = &p->table->index;
    uint32_t numbers = 0;
    put(p, "static const scout_dispatch_form %s_forms[] = {\n", p->prefix);
    for (uint32_t k = 0; k < x->form_count; k++) {
        put(p, "    {");
        put_string(p, x->forms[k].text);
        put(p, ", %" PRIu32 ", %" PRIu32 "},\n", x->forms[k].length, x->forms[k].count);
    }
    put(p, "    {\"\", 0, 0}};\n");
    for (uint32_t k = 0; k <= x->slot_mask; k++)
        if (x->slots[k].entry && x->slots[k].first + x->forms[x->slots[k].form].count > numbers)
            numbers = x->slots[k].first + x->forms[x->slots[k].form].count;
    put(p, "static const int64_t %s_numbers[] = {", p->prefix);
    for (uint32_t k = 0; k < numbers; k++) put_int(p, x->numbers[k]), put(p, k % 6 == 5 ? ",\n    " : ", ");
    put(p, "0};\nstatic const uint32_t %s_firsts[] = {", p->prefix);
    for (uint32_t k = 0; k < x->entry_count; k++)
        put(p, "%" PRIu32 "%s", x->firsts[k], k % 16 == 15 ? ",\n    " : ", ");
    put(p, "0};\nstatic const scout_dispatch_slot %s_slots[] = {\n", p->prefix);
    for (uint32_t k = 0; k <= x->slot_mask; k++)
        put(p, "%s{%" PRIu32 "u, %" PRIu32 ", %" PRIu32 ", %" PRIu32 "},%s", k % 4 == 0 ? "    " : " ", x->slots[k].tag,
            x->slots[k].entry, x->slots[k].form, x->slots[k].first, k % 4 == 3 ? "\n" : "");
    put(p, "};\nstatic const scout_dispatch_range %s_ranges[] = {\n", p->prefix);
    for (uint32_t k = 0; k < x->range_count; k++) {
        const scout_dispatch_range *r = &x->ranges[k];
        put(p, "    {%" PRIu32 ", %" PRIu32 "u, %" PRIu32 ", %" PRIu32 ", ", r->form, r->mask, r->lower, r->upper);
        put_int(p, r->from), put(p, ", "), put_int(p, r->to), put(p, ", "), put_int(p, r->step), put(p, "},\n");
    }
    put(p, "    {0, 0, 0, 0, 0, 0, 1}};\n");
}

static void put_device(const page *p) {
    const scout_dispatch_device *d = &p->table->device;
    put(p, "static const scout_dispatch_library %s_libraries[] = {\n", p->prefix);
    for (int k = 0; k < d->library_count; k++) {
        put(p, "    {");
        put_string(p, d->libraries[k].name);
        put(p, ", ");
        put_string(p, d->libraries[k].version);
        put(p, "},\n");
    }
    put(p, "    {\"\", \"\"}};\nstatic const scout_dispatch_device %s_device = {", p->prefix);
    put_string(p, d->name);
    put(p, ", ");
    put_string(p, d->capability);
    put(p, ", ");
    put_string(p, d->driver);
    put(p, ", "), put_int(p, d->units), put(p, ", "), put_int(p, d->memory_mib), put(p, ", ");
    put_int(p, d->power_limit_w);
    put(p, ",\n    %s_libraries, %d};\n", p->prefix, d->library_count);
}

static void put_functions(const page *p) {
    const scout_dispatch_index *x = &p->table->index;
    const char *n = p->prefix;
    put(p, "static const scout_dispatch_index %s_index = {%s_slots, %" PRIu32 ", %s_forms, %" PRIu32 ", %s_numbers, ",
        n, n, x->slot_mask, n, x->form_count, n);
    put(p, "%s_firsts,\n    %s_entries, %" PRIu32 ", %s_ranges, %" PRIu32 "};\n\n", n, n, x->entry_count, n,
        x->range_count);
    put(p,
        "static inline scout_dispatch_match %s_check(const scout_dispatch_device *here, char *text, size_t room) {\n",
        n);
    put(p, "    return scout_dispatch_compare(&%s_device, here, text, room);\n}\n", n);
    put(p, "static inline const scout_dispatch_entry *%s_find(const scout_dispatch_key *key) {\n", n);
    put(p, "    return scout_dispatch_index_find(&%s_index, key);\n}\n", n);
    put(p, "static inline const scout_dispatch_range *%s_near(const scout_dispatch_key *key) {\n", n);
    put(p, "    return scout_dispatch_index_near(&%s_index, key);\n}\n", n);
}

void table_header_write(files_out *out, const dispatch_table *t, const char *prefix, const char *models) {
    const page p = {.out = out, .table = t, .prefix = prefix};
    put_about(&p, models);
    put_guard(&p, "#ifndef");
    put_guard(&p, "#define");
    put(&p, "\n");
    put_library(&p);
    put(&p, "\n");
    put_algos(&p);
    put_entries(&p);
    put_index(&p);
    put_device(&p);
    put_functions(&p);
    put(&p, "\n#endif\n");
}
