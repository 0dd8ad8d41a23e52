/* What has a baseline and what has none: docs/kinds.md is written from the tables of both devices, asked about each
 * kind, operator, types and form that extract_ops lists (tests/unit/cuda/kinds.json, by make_kinds.py), and held
 * against the stored one. OpenBLAS and the libraries of the CUDA device are taken to be there (the linker puts the
 * __wrap_ functions in the place of those that open them); the processor is one with AVX2 and no more, so that the
 * table is the same on every host. With --update the table is stored. Runs in the root of the tree. Needs the toolkit's
 * headers. */
#include "extract/expand/expand.h"
#include "extract/lower/lower.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_openblas.h"
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/lt/lt.h"
#include "scout/device/cpu.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdlib.h>

static const char *const list_path = "tests/unit/cuda/kinds.json", *const table_path = "docs/kinds.md";

enum { MOST_ROWS = 2048, TEXT = 600 };

/* ---- hosts and libraries that are the same everywhere ---- */

const cpu_info *__real_cpu_info_get(void);
const cpu_info *__wrap_cpu_info_get(void);
const cpu_info *__wrap_cpu_info_get(void) {
    static cpu_info held;
    if (held.core_count == 0) held = *__real_cpu_info_get();
    held.avx2 = true;
    held.avx_vnni = held.avx512 = held.avx512_bf16 = held.avx512_vnni = held.avx512_fp16 = false;
    held.amx_bf16 = held.amx_int8 = false;
    return &held;
}

const lt_table *__wrap_lt_open(scout_why *why);
const lt_table *__wrap_lt_open(scout_why *why) {
    static const lt_table table;
    (void)why;
    return &table;
}

const dnn_table *__wrap_dnn_open(scout_why *why);
const dnn_table *__wrap_dnn_open(scout_why *why) {
    static const dnn_table table;
    (void)why;
    return &table;
}

/* Nothing of it is called, and the runtime that it brings along leaves memory behind. */
const cpu_openblas *__wrap_cpu_openblas_get(scout_why *why);
const cpu_openblas *__wrap_cpu_openblas_get(scout_why *why) {
    static const cpu_openblas table;
    (void)why;
    return &table;
}

/* ---- rows: what of an operator has the same baselines ---- */

typedef struct row {
    op_kind kind;
    char what[40], types[TEXT], forms[TEXT];
    const char *baseline[2]; /* cpu, cuda; NULL: none */
    char why[2][200];        /* of the first that has none */
} row;

static row rows[MOST_ROWS];
static int row_count;

/* Adds a word to a list, once. */
static void add_word(char *list, const char *word) {
    char of_list[TEXT + 4], of_word[100];
    snprintf(of_list, sizeof of_list, ", %s,", list);
    snprintf(of_word, sizeof of_word, ", %s,", word);
    const size_t used = strlen(list);
    if (!strstr(of_list, of_word)) snprintf(list + used, TEXT - used, "%s%s", used ? ", " : "", word);
}

static void add_types(char *list, const oprec *rec) {
    char word[96];
    const dtype out = rec->out_type ? rec->out_type : rec->type;
    const bool weight = rec->weight_type && rec->weight_type != rec->type;
    snprintf(word, sizeof word, "%s%s%s%s%s", dtype_get(rec->type)->name, weight ? " x " : "",
             weight ? dtype_get(rec->weight_type)->name : "", out != rec->type ? " to " : "",
             out != rec->type ? dtype_get(out)->name : "");
    add_word(list, word);
}

/* Fields that say what is done; sizes say how much. */
static bool is_size(const char *name) {
    static const char *const names[] = {"input",   "kernel",  "pads",  "stride",   "dilation",
                                        "batch",   "axis",    "table", "inputs",   "operands",
                                        "indices", "updates", "sizes", "equation", "chain"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(names[k], name) == 0) return true;
    return false;
}

static void add_forms(char *list, const oprec *rec) {
    char word[96];
    if (rec->layout) add_word(list, rec->layout);
    if (rec->mask && strcmp(rec->mask, "none") != 0) {
        snprintf(word, sizeof word, "mask %s", rec->mask);
        add_word(list, word);
    }
    for (int k = 0; k < rec->field_count; k++) {
        const opfield *const f = &rec->fields[k];
        if (is_size(f->name)) continue;
        const bool text = f->kind == OPFIELD_TEXT && f->text && !strpbrk(f->text, "|,\n");
        snprintf(word, sizeof word, "%s%s%.40s", f->name, text ? " " : "", text ? f->text : "");
        add_word(list, word);
    }
}

static row *row_of(const oprec *rec, const char *const *baseline) {
    const char *const what = rec->what ? rec->what : "";
    for (int k = 0; k < row_count; k++)
        if (rows[k].kind == rec->kind && strcmp(rows[k].what, what) == 0 && rows[k].baseline[0] == baseline[0] &&
            rows[k].baseline[1] == baseline[1])
            return &rows[k];
    if (row_count == MOST_ROWS) abort();
    row *const r = &rows[row_count++];
    *r = (row){.kind = rec->kind, .baseline = {baseline[0], baseline[1]}};
    snprintf(r->what, sizeof r->what, "%s", what);
    return r;
}

/* The one of most priority that takes it; NULL: none, and why the last one said. */
static const char *baseline_of(const scout_device_api *api, const scout_op *op, scout_why *why) {
    const scout_candidate *best = NULL;
    for (uint32_t k = 0; k < api->candidate_count; k++) {
        const scout_candidate *const c = api->candidates[k];
        if (c->kind != op->kind || !(c->flags & SCOUT_BASELINE) || (best && best->priority >= c->priority)) continue;
        if (c->supports(op, NULL, why) == SCOUT_OK) best = c;
    }
    return best ? best->name : NULL;
}

/* What cannot be measured as it is listed (its shape depends on data, say) tells nothing of an operator that has other
 * entries. */
static bool is_told(const operation *o) {
    const char *const what = o->rec.what ? o->rec.what : "";
    bool told = false;
    for (int k = 0; k < row_count; k++) told = told || (rows[k].kind == o->rec.kind && strcmp(rows[k].what, what) == 0);
    return told;
}

static void add_operation(const operation *o, arena *a) {
    scout_plugin_entry_fn scout_plugin_entry;
    const scout_device_api *const apis[] = {cpu_device_api(), scout_plugin_entry(SCOUT_ABI)->device};
    const char *baseline[2] = {NULL, NULL};
    scout_why why[2] = {{"", ""}, {"", ""}};
    scout_op op;
    if (o->skip_code) {
        for (int k = 0; k < 2; k++) snprintf(why[k].text, sizeof why[k].text, "%s", o->skip_text);
    } else if (!kinds_build(o, 32U << 20, a, &op, &why[0])) {
        why[1] = why[0];
    } else {
        for (int k = 0; k < 2; k++) baseline[k] = baseline_of(apis[k], &op, &why[k]);
    }
    row *const r = row_of(&o->rec, baseline);
    add_types(r->types, &o->rec);
    add_forms(r->forms, &o->rec);
    for (int k = 0; k < 2; k++)
        if (!baseline[k] && !r->why[k][0]) snprintf(r->why[k], sizeof r->why[k], "%.199s", why[k].text);
}

/* ---- the table ---- */

static int by_name(const void *a, const void *b) {
    const row *const x = a, *const y = b;
    if (x->kind != y->kind) return (int)x->kind - (int)y->kind;
    const int names = strcmp(x->what, y->what);
    if (names) return names;
    const int missing = (!x->baseline[0] + !x->baseline[1]) - (!y->baseline[0] + !y->baseline[1]);
    return missing ? missing : strcmp(x->types, y->types);
}

static void write_head(FILE *f) {
    int all = 0, none = 0;
    for (int k = 0; k < row_count; k++) all++, none += !rows[k].baseline[0] || !rows[k].baseline[1];
    fprintf(
        f,
        "# Baselines by kind\n\n"
        "The operators that extract_ops lists, with the baseline on each device. The baseline is the candidate of "
        "highest\n"
        "priority that takes the operator, as the tables of candidates tell without a GPU. A library may still refuse "
        "a\n"
        "shape at run time. Where there is no baseline, the reason stands in its place.\n\n"
        "The CPU has AVX2 alone and oneDNN %s, so that the table is the same on every host. It has %d lines, %d of\n"
        "them without a baseline on a device. tests/unit/cuda/test_cuda_kinds.c writes it (`make golden-update`) and\n"
        "compares it with the code.\n",
        cpu_onednn_get(NULL)->version, all, none);
}

/* What is said of both devices is said once. */
static void write_cell(FILE *f, const row *r, int device) {
    if (r->baseline[device])
        fprintf(f, " %s |", r->baseline[device]);
    else if (device == 1 && !r->baseline[0] && strcmp(r->why[0], r->why[1]) == 0)
        fprintf(f, " **none** |");
    else
        fprintf(f, " **none**: %s |", r->why[device]);
}

static char *make_table(size_t *bytes) {
    char *text = NULL;
    FILE *const f = open_memstream(&text, bytes);
    if (!f) abort();
    write_head(f);
    for (int k = 0; k < row_count; k++) {
        const row *const r = &rows[k];
        if (k == 0 || r->kind != rows[k - 1].kind)
            fprintf(f, "\n## %s\n\n| operator | types | forms | cpu | cuda |\n|---|---|---|---|---|\n",
                    oprec_kind_name(r->kind));
        fprintf(f, "| %s | %s | %s |", r->what, r->types, r->forms);
        for (int d = 0; d < 2; d++) write_cell(f, r, d);
        fprintf(f, "\n");
    }
    if (fclose(f) != 0) abort();
    return text;
}

static char *read_file(const char *path) {
    FILE *const f = fopen(path, "r");
    char *const text = calloc(1, (size_t)1 << 20);
    if (!text) abort();
    if (f) {
        text[fread(text, 1, ((size_t)1 << 20) - 1, f)] = 0;
        (void)fclose(f);
    }
    return text;
}

static bool updates;

static void the_table_is_what_the_devices_say(void) {
    size_t bytes = 0;
    char *const made = make_table(&bytes), *const stored = read_file(table_path);
    char version[80];
    snprintf(version, sizeof version, "oneDNN %s,", cpu_onednn_get(NULL)->version);
    if (updates) {
        FILE *const f = fopen(table_path, "w");
        UNIT_CHECK(f && fwrite(made, 1, bytes, f) == bytes && fclose(f) == 0);
    } else if (*stored && !strstr(stored, version)) {
        printf("not compared: the stored table is not of %.*s\n", (int)strlen(version) - 1, version);
    } else if (!UNIT_CHECK(strcmp(made, stored) == 0)) {
        size_t at = 0, line = 1;
        while (made[at] && made[at] == stored[at]) line += made[at++] == '\n';
        printf("%s differs from line %zu on; make golden-update stores the new one\n", table_path, line);
    }
    free(made);
    free(stored);
}

/* ---- whether the list has all of it ---- */

static bool has_what(const operation_list *list, const char *what) {
    for (int k = 0; k < list->count; k++)
        if (list->items[k].rec.what && strcmp(list->items[k].rec.what, what) == 0) return true;
    return false;
}

/* These are named after what they do, not after their operator, or their parts have names of their own. */
static bool named_otherwise(operator_lower_fn *lower) {
    operator_lower_fn *const others[] = {
        lower_view,         lower_control,  lower_dropout,   lower_gemm,     lower_matmul,  lower_matmul_nbits,
        lower_conv,         lower_norm,     lower_attention, lower_rotary,   lower_softmax, lower_recurrent,
        lower_moe,          lower_quantize, lower_resize,    lower_uncosted, lower_einsum,  lower_gather,
        lower_attention_ms, lower_pool,     lower_other,     lower_whole};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        if (others[k] == lower) return true;
    return false;
}

/* Of operators that are listed under their own name there is an entry; their parts have theirs. */
static void check_operators(const operation_list *list) {
    size_t count = 0;
    const operator_def *const table = operators_table(&count);
    for (size_t k = 0; k < count; k++) {
        const char *const name = table[k].name;
        const size_t from = strncmp(name, "Reduce", 6) == 0 ? 6 : 0;
        char what[64] = "";
        if (named_otherwise(table[k].lower) || strstr(name, "Sequence") == name || strstr(name, "ToSequence")) continue;
        if (expand_takes(table[k].domain, name)) continue;
        for (size_t i = from; name[i] && i - from + 1 < sizeof what; i++)
            what[i - from] = (char)tolower((unsigned char)name[i]), what[i - from + 1] = 0;
        if (!UNIT_CHECK(has_what(list, table[k].detail ? table[k].detail : what)))
            printf("%s: not in %s (make_kinds.py adds it)\n", table[k].name, list_path);
    }
}

static void every_operator_is_in_the_list(void) {
    operation_list list = {.count = 0};
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)256 << 20);
    if (guard_enter(&g)) {
        operation_read(list_path, NULL, &a, &list);
        for (int k = 0; k < list.count; k++)
            if (!list.items[k].skip_code) add_operation(&list.items[k], &a);
        for (int k = 0; k < list.count; k++)
            if (list.items[k].skip_code && !is_told(&list.items[k])) add_operation(&list.items[k], &a);
        check_operators(&list);
    } else {
        UNIT_TEXT(g.st.text, "");
    }
    qsort(rows, (size_t)row_count, sizeof rows[0], by_name);
    operation_list_free(&list);
    arena_free(&a);
}

int main(int argc, char **argv) {
    updates = argc > 1 && strcmp(argv[1], "--update") == 0;
    (void)setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    UNIT_RUN(every_operator_is_in_the_list);
    if (cpu_onednn_get(NULL))
        UNIT_RUN(the_table_is_what_the_devices_say);
    else
        printf("not compared: there is no oneDNN\n");
    return unit_end();
}
