/* One row per operation, all figures, for spreadsheets and scripts: RFC 4180, what is not known is empty. The table of
 * columns is the header. */
#include "analyze/write/escape.h"
#include "analyze/write/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Where a column's figure stands. */
typedef struct line {
    const summary_row *row;
    const summary_group *group;
} line;

/* GAIN: a real number that is not known of what has no baseline. WIDTH: an interval of a sum, which may not be known.
 */
typedef enum column_kind { TEXT, REAL, WHOLE, INT, SIZE, BOOL, CALL, LAYERS, GAIN, WIDTH } column_kind;
typedef enum column_owner { REPORT, ROW, GROUP } column_owner;

typedef struct column {
    const char *name;
    column_owner owner;
    column_kind kind;
    size_t offset;
    const char *(*call)(const line *l, char *text, size_t room);
} column;

static const char *shape(const line *l, char *text, size_t room) { return study_shape(l->row->report, text, room); }
static const char *outcome(const line *l, char *text, size_t room) {
    (void)text;
    (void)room;
    return summary_outcomes[l->row->outcome].name;
}
/* The sentence lies in the report itself, not behind a pointer. */
static const char *recommendation(const line *l, char *text, size_t room) {
    (void)text;
    (void)room;
    return l->row->report->verdict.recommendation;
}

#define OF_REPORT(name, kind, member)                                                                                  \
    { name, REPORT, kind, offsetof(study_report, member), NULL }
#define OF_ROW(name, kind, member)                                                                                     \
    { name, ROW, kind, offsetof(summary_row, member), NULL }
#define OF_GROUP(name, kind, member)                                                                                   \
    { name, GROUP, kind, offsetof(study_group, member), NULL }

static const column columns[] = {
    OF_ROW("rank", SIZE, rank),
    OF_REPORT("operation", TEXT, operation),
    OF_REPORT("name", TEXT, name),
    {"layers", REPORT, LAYERS, 0, NULL},
    OF_REPORT("op", TEXT, op),
    OF_REPORT("what", TEXT, what),
    {"shape", REPORT, CALL, 0, shape},
    OF_REPORT("batch", WHOLE, batch),
    OF_REPORT("layout", TEXT, layout),
    OF_REPORT("mask", TEXT, mask),
    OF_REPORT("dtype", TEXT, dtype),
    OF_REPORT("weight_dtype", TEXT, weight_dtype),
    OF_REPORT("precision", TEXT, precision),
    OF_REPORT("pattern", TEXT, pattern),
    OF_REPORT("sparsity", REAL, sparsity),
    OF_REPORT("block_mask", TEXT, block_mask),
    OF_REPORT("block_density", REAL, block_density),
    OF_REPORT("count", WHOLE, count),
    {"outcome", ROW, CALL, 0, outcome},
    OF_REPORT("priority", TEXT, verdict.priority),
    OF_REPORT("approach", TEXT, verdict.approach),
    OF_REPORT("borderline", BOOL, verdict.borderline),
    {"recommendation", REPORT, CALL, 0, recommendation},
    OF_ROW("weight_us", GAIN, weight_us),
    OF_ROW("share", GAIN, share),
    OF_REPORT("proven_gain_us", GAIN, verdict.proven_gain_us),
    OF_ROW("proven_share", GAIN, proven_share),
    OF_ROW("potential_us", GAIN, potential_us),
    OF_ROW("potential_share", GAIN, potential_share),
    OF_REPORT("status", TEXT, status),
    OF_REPORT("reason_code", TEXT, reason_code),
    OF_REPORT("reason_text", TEXT, reason_text),
    OF_REPORT("baseline", TEXT, baseline),
    OF_REPORT("baseline_variant", TEXT, baseline_variant),
    OF_REPORT("baseline_own", BOOL, baseline_own),
    OF_REPORT("baseline_time_us", REAL, baseline_us),
    OF_REPORT("baseline_ci", REAL, baseline_ci),
    OF_REPORT("best", TEXT, best),
    OF_REPORT("best_variant", TEXT, best_variant),
    OF_REPORT("best_approach", TEXT, best_approach),
    OF_REPORT("best_time_us", REAL, best_us),
    OF_REPORT("best_ci", REAL, best_ci),
    OF_REPORT("ratio", REAL, ratio),
    OF_REPORT("ratio_ci", REAL, ratio_ci),
    OF_REPORT("rival_approach", TEXT, rival_approach),
    OF_REPORT("rival_ratio", REAL, rival_ratio),
    OF_REPORT("rival_ratio_ci", REAL, rival_ratio_ci),
    OF_REPORT("efficiency", REAL, verdict.efficiency),
    OF_REPORT("bound", TEXT, bound),
    OF_REPORT("ceiling_time_us", REAL, ceiling_us),
    OF_REPORT("ceiling_ci", REAL, ceiling_ci),
    OF_REPORT("ceiling_from", TEXT, ceiling_from),
    OF_REPORT("launch_us", REAL, launch_us),
    OF_REPORT("above_ceiling", BOOL, above_ceiling),
    OF_REPORT("peak_tflops", REAL, peak_tflops),
    OF_REPORT("flops", REAL, flops),
    OF_REPORT("bytes_read", REAL, bytes_read),
    OF_REPORT("bytes_written", REAL, bytes_written),
    OF_REPORT("clock_mhz", REAL, clock_mhz),
    OF_REPORT("power_w", REAL, power_w),
    OF_REPORT("candidates", INT, candidates),
    OF_REPORT("bad_rows", INT, bad_rows),
    OF_REPORT("said", TEXT, said),
    OF_GROUP("model", TEXT, model),
    OF_GROUP("partial", TEXT, partial.text),
    OF_GROUP("model_us", REAL, model_us),
    OF_GROUP("model_ci", WIDTH, model_ci),
    OF_GROUP("device", TEXT, device),
    OF_GROUP("device_class", TEXT, device_class),
    OF_GROUP("driver", TEXT, driver),
    OF_GROUP("regime", TEXT, regime),
    OF_GROUP("method", WHOLE, method),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void write_real(FILE *out, double x) {
    if (isfinite(x)) fprintf(out, "%.9g", x);
}

/* One text of all of them, as far as a spreadsheet's cell holds it. */
static void write_layers(FILE *out, arena *a, const study_report *r) {
    enum { MOST = 32000 };
    size_t bytes = 0, count = 0;
    while (count < r->layer_count && bytes < MOST) bytes += strlen(r->layers[count++]) + 2;
    const arena_mark mark = arena_save(a);
    const size_t room = bytes + 64;
    char *text = arena_zalloc(a, room);
    size_t used = 0;
    for (size_t k = 0; k < count; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", k > 0 ? "; " : "", r->layers[k]);
    if (count < r->layer_count) snprintf(text + used, room - used, "; and %zu more", r->layer_count - count);
    escape_print(out, ESCAPE_CSV, text);
    arena_rewind(a, mark);
}

static void write_cell(FILE *out, arena *a, const line *l, const column *c) {
    const void *owners[] = {[REPORT] = l->row->report, [ROW] = l->row, [GROUP] = l->group->group};
    const void *at = (const char *)owners[c->owner] + c->offset;
    char text[256];
    switch (c->kind) {
    case TEXT: escape_print(out, ESCAPE_CSV, *(const char *const *)at); break;
    case REAL: write_real(out, *(const double *)at); break;
    case GAIN: write_real(out, l->row->outcome == SUMMARY_MISSING ? NAN : *(const double *)at); break;
    case WIDTH: write_real(out, verdict_known(*(const double *)at) ? *(const double *)at : NAN); break;
    case WHOLE: fprintf(out, "%" PRId64, *(const int64_t *)at); break;
    case INT: fprintf(out, "%d", *(const int *)at); break;
    case SIZE: fprintf(out, "%zu", *(const size_t *)at); break;
    case BOOL: fputs(*(const bool *)at ? "true" : "false", out); break;
    case LAYERS: write_layers(out, a, l->row->report); break;
    case CALL: escape_print(out, ESCAPE_CSV, c->call(l, text, sizeof text)); break;
    }
}

static void write_all(const summary *m, FILE *out, arena *a) {
    for (int c = 0; c < COLUMNS; c++) fprintf(out, "%s%s", c > 0 ? "," : "", columns[c].name);
    fputs("\r\n", out);
    for (size_t k = 0; k < m->group_count; k++) {
        for (size_t n = 0; n < m->groups[k].row_count; n++) {
            const line l = {&m->groups[k].rows[n], &m->groups[k]};
            for (int c = 0; c < COLUMNS; c++) {
                if (c > 0) fputc(',', out);
                write_cell(out, a, &l, &columns[c]);
            }
            fputs("\r\n", out);
        }
    }
}

bool write_csv(const summary *m, FILE *out, status *st) {
    guard g;
    arena a;
    guard_init(&g);
    arena_init(&a, &g, (size_t)1 << 30);
    if (guard_enter(&g))
        write_all(m, out, &a);
    else
        *st = g.st;
    arena_free(&a);
    return g.st.code == STATUS_OK;
}
