/* Owns the reading of a report's bytes: which members are kept, of what type they are and within which bounds they can
 * be true. One table says all of it. Members that are not in it are stepped over. */
#include "analyze/study/study_internal.h"

#include "common/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any name, key or sentence that scout_batch writes. */
enum { LONGEST_TEXT = 65536 };

typedef enum field_kind {
    TEXT,
    NAME,     /* a text or null */
    POSITIVE, /* a number above 0, at most `most` */
    AMOUNT,   /* 0 too */
    WHOLE,    /* from 0 to `most`, without a fraction */
    BOOL,
    OBJECT, /* or null */
    SHAPE,
    ROWS
} field_kind;

typedef struct members members;
typedef struct field {
    const char *key;
    field_kind kind;
    size_t offset;
    double most;
    const members *inner; /* of an object; it writes to the same place */
} field;
struct members {
    const field *fields;
    int count;
};
#define MEMBERS(table)                                                                                                 \
    { table, (int)(sizeof(table) / sizeof(table)[0]) }

static const double most_us = 1e12 /* eleven days */, most_ci = 1e9, most_ratio = 1e9, most_work = 1e30,
                    most_whole = 9007199254740992.0 /* 2^53 */;

#define ROW(member) offsetof(study_row, member)
static const field time_fields[] = {{"median", POSITIVE, ROW(median_us), most_us, NULL},
                                    {"rel_ci95", AMOUNT, ROW(ci), most_ci, NULL}};
static const members time_members = MEMBERS(time_fields);
static const field address_fields[] = {{"best", POSITIVE, ROW(address_best), most_ratio, NULL},
                                       {"worst", POSITIVE, ROW(address_worst), most_ratio, NULL}};
static const members address_members = MEMBERS(address_fields);
static const field row_fields[] = {
    {"name", TEXT, ROW(name), 0, NULL},
    {"variant", TEXT, ROW(variant), 0, NULL},
    {"status", TEXT, ROW(status), 0, NULL},
    {"time_us", OBJECT, 0, 0, &time_members},
    {"clock_mhz", AMOUNT, ROW(clock_mhz), 1e6, NULL},
    {"power_w", AMOUNT, ROW(power_w), 1e6, NULL},
    {"addresses", OBJECT, 0, 0, &address_members},
};
static const members row_members = MEMBERS(row_fields);

#define AT(member) offsetof(study_file, member)
static const field device_fields[] = {
    {"name", TEXT, AT(report.device), 0, NULL}, {"model", TEXT, AT(model), 0, NULL},
    {"class", TEXT, AT(device_class), 0, NULL}, {"instance", TEXT, AT(device_instance), 0, NULL},
    {"units", WHOLE, AT(units), 1e6, NULL},     {"driver", TEXT, AT(driver), 0, NULL},
};
static const members device_members = MEMBERS(device_fields);
static const field reason_fields[] = {
    {"code", TEXT, AT(report.reason_code), 0, NULL},
    {"text", TEXT, AT(report.reason_text), 0, NULL},
};
static const members reason_members = MEMBERS(reason_fields);
static const field rival_fields[] = {
    {"name", NAME, AT(report.rival), 0, NULL},
    {"variant", NAME, AT(report.rival_variant), 0, NULL},
    {"approach", NAME, AT(report.rival_approach), 0, NULL},
    {"ratio", POSITIVE, AT(report.rival_ratio), most_ratio, NULL},
    {"ratio_ci", AMOUNT, AT(report.rival_ratio_ci), most_ci, NULL},
};
static const members rival_members = MEMBERS(rival_fields);
static const field fusion_fields[] = {
    {"pattern", TEXT, AT(report.fusion_pattern), 0, NULL},
    {"selected", WHOLE, AT(report.selected), most_whole, NULL},
    {"how", TEXT, AT(fusion_how), 0, NULL},
    {"parts_time_us", POSITIVE, AT(report.parts_us), most_us, NULL},
    {"fused_time_us", POSITIVE, AT(report.fused_us), most_us, NULL},
    {"speedup", POSITIVE, AT(report.speedup), most_ratio, NULL},
    {"speedup_ci", AMOUNT, AT(report.speedup_ci), most_ci, NULL},
    {"kernels_parts", WHOLE, AT(report.kernels_parts), 1e9, NULL},
    {"kernels_fused", WHOLE, AT(report.kernels_fused), 1e9, NULL},
    {"worth", TEXT, AT(report.worth), 0, NULL},
    {"saved_us", AMOUNT, AT(report.saved_us), most_work, NULL},
};
static const members fusion_members = MEMBERS(fusion_fields);

static const field weight_fields[] = {{"name", NAME, AT(weight), 0, NULL}};
static const members weight_members = MEMBERS(weight_fields);

static const field root_fields[] = {
    {"schema", TEXT, AT(schema), 0, NULL},
    {"operation", TEXT, AT(report.operation), 0, NULL},
    {"name", TEXT, AT(report.name), 0, NULL},
    {"op", TEXT, AT(report.op), 0, NULL},
    {"what", TEXT, AT(report.what), 0, NULL},
    {"shape", SHAPE, AT(report.shape), most_whole, NULL},
    {"layout", TEXT, AT(report.layout), 0, NULL},
    {"mask", TEXT, AT(report.mask), 0, NULL},
    {"block_mask", TEXT, AT(report.block_mask), 0, NULL},
    {"block_density", AMOUNT, AT(report.block_density), 1, NULL},
    {"dtype", TEXT, AT(report.dtype), 0, NULL},
    {"weight_dtype", TEXT, AT(report.weight_dtype), 0, NULL},
    {"precision", TEXT, AT(report.precision), 0, NULL},
    {"count", WHOLE, AT(report.count), most_whole, NULL},
    {"batch", WHOLE, AT(report.batch), most_whole, NULL},
    {"pattern", TEXT, AT(report.pattern), 0, NULL},
    {"sparsity", AMOUNT, AT(report.sparsity), 1, NULL},
    {"weight", OBJECT, 0, 0, &weight_members},
    {"key", TEXT, AT(report.key), 0, NULL},
    {"device", OBJECT, 0, 0, &device_members},
    {"regime", TEXT, AT(regime), 0, NULL},
    {"method", WHOLE, AT(method), 1e9, NULL},
    {"status", TEXT, AT(report.status), 0, NULL},
    {"reason", OBJECT, 0, 0, &reason_members},
    {"baseline", NAME, AT(report.baseline), 0, NULL},
    {"best", NAME, AT(report.best), 0, NULL},
    {"flops", AMOUNT, AT(report.flops), most_work, NULL},
    {"bytes_read", AMOUNT, AT(report.bytes_read), most_work, NULL},
    {"bytes_written", AMOUNT, AT(report.bytes_written), most_work, NULL},
    {"least_time_us", POSITIVE, AT(report.least_us), most_us, NULL},
    {"ceiling_time_us", POSITIVE, AT(report.ceiling_us), most_us, NULL},
    {"physical_time_us", POSITIVE, AT(report.physical_us), most_us, NULL},
    {"ceiling_from", TEXT, AT(report.ceiling_from), 0, NULL},
    {"ceiling_ci", AMOUNT, AT(report.ceiling_ci), most_ci, NULL},
    {"launch_us", AMOUNT, AT(report.launch_us), most_us, NULL},
    {"baseline_time_us", POSITIVE, AT(report.baseline_us), most_us, NULL},
    {"best_time_us", POSITIVE, AT(report.best_us), most_us, NULL},
    {"peak_tflops", AMOUNT, AT(report.peak_tflops), 1e9, NULL},
    {"bound", TEXT, AT(report.bound), 0, NULL},
    {"above_ceiling", BOOL, AT(report.above_ceiling), 0, NULL},
    {"approach", TEXT, AT(report.said), 0, NULL},
    {"fusion", OBJECT, 0, 0, &fusion_members},
    {"baseline_variant", NAME, AT(report.baseline_variant), 0, NULL},
    {"baseline_own", BOOL, AT(report.baseline_own), 0, NULL},
    {"best_variant", NAME, AT(report.best_variant), 0, NULL},
    {"best_approach", NAME, AT(report.best_approach), 0, NULL},
    {"ratio", POSITIVE, AT(report.ratio), most_ratio, NULL},
    {"ratio_ci", AMOUNT, AT(report.ratio_ci), most_ci, NULL},
    {"rival", OBJECT, 0, 0, &rival_members},
    {"taken", TEXT, AT(report.taken), 0, NULL},
    {"candidates", ROWS, AT(rows), 0, NULL},
};
static const members root_members = MEMBERS(root_fields);

/* ---- complaints ---- */

typedef struct reader {
    json_scan scan;
    study_scanner *scanner;
    study_file *to;
} reader;

/* The first one is kept, and reading goes on: a file that is no report at all is to be told so. */
static void complain(reader *r, const char *key, const char *what) {
    char *why = r->scanner->why;
    if (!*why) snprintf(why, STUDY_WHY, "'%s' %s", key, what);
}

/* ---- values ---- */

static void take_text(reader *r, const field *f, char *to) {
    const char *text = r->scan.text;
    if (r->scan.length > LONGEST_TEXT) {
        complain(r, f->key, "is longer than any string of a report");
        return;
    }
    r->scan.start[text - r->scan.start + (ptrdiff_t)r->scan.length] = 0; /* where its quote was, or what it unescaped */
    memcpy(to + f->offset, &text, sizeof text);
}

static void take_number(reader *r, const field *f, json_scan_token token, char *to) {
    const double x = json_scan_real(&r->scan);
    if (f->kind == WHOLE && token != JSON_SCAN_INT) {
        complain(r, f->key, "is not a whole number");
    } else if (x < 0 || (f->kind == POSITIVE && x == 0) || x > f->most) {
        complain(r, f->key, "cannot be true");
    } else if (f->kind == WHOLE) {
        const int64_t whole = json_scan_int(&r->scan);
        memcpy(to + f->offset, &whole, sizeof whole);
    } else {
        memcpy(to + f->offset, &x, sizeof x);
    }
}

static void take_shape(reader *r, const field *f) {
    study_report *report = &r->to->report;
    json_scan_token token;
    r->to->shaped = true;
    while ((token = json_scan_next(&r->scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
        const bool whole = token == JSON_SCAN_INT;
        const double x = whole ? json_scan_real(&r->scan) : -1;
        if (report->rank == STUDY_RANK || x < 0 || x > f->most)
            complain(r, f->key, "cannot be true");
        else
            report->shape[report->rank++] = json_scan_int(&r->scan);
        if (!json_scan_skip(&r->scan, token)) return;
    }
}

static bool take_object(reader *r, const members *m, void *to);

static bool is_status(const char *text, const char *const *names, size_t count) {
    for (size_t k = 0; text && k < count; k++)
        if (strcmp(text, names[k]) == 0) return true;
    return false;
}

static void keep_row(reader *r, const study_row *row) {
    static const char *const bad[] = {"WRONG", "CRASHED", "TIMEOUT", "ERROR"};
    static const char *const fine[] = {"OK", "SKIPPED", "UNSUPPORTED", "UNSTABLE"};
    study_scanner *s = r->scanner;
    r->to->report.candidates++;
    if (is_status(row->status, bad, sizeof bad / sizeof bad[0]))
        r->to->report.bad_rows++;
    else if (!is_status(row->status, fine, sizeof fine / sizeof fine[0]))
        complain(r, "candidates", "hold a row without a known status");
    if (!row->status || strcmp(row->status, "OK") != 0) return;
    if (s->row_count == s->row_cap) {
        const size_t cap = s->row_cap ? 2 * s->row_cap : 64;
        study_row *more = realloc(s->rows, cap * sizeof *more);
        s->no_memory = !more;
        if (!more) return;
        s->rows = more;
        s->row_cap = cap;
    }
    s->rows[s->row_count++] = *row;
}

static void take_rows(reader *r, const field *f) {
    json_scan_token token;
    r->to->rows = true;
    while ((token = json_scan_next(&r->scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
        study_row row = {NULL, NULL, NULL, NAN, NAN, NAN, NAN, NAN, NAN};
        if (token != JSON_SCAN_OBJECT) {
            complain(r, f->key, "hold a value that is not a row");
            if (!json_scan_skip(&r->scan, token)) return;
        } else {
            if (!take_object(r, &row_members, &row)) return;
            keep_row(r, &row);
        }
    }
}

static const struct {
    json_scan_token first, second; /* that it may begin with */
    const char *what;              /* of another one */
} kinds[] = {
    [TEXT] = {JSON_SCAN_TEXT, JSON_SCAN_TEXT, "is not a string"},
    [NAME] = {JSON_SCAN_TEXT, JSON_SCAN_NULL, "is not a string"},
    [POSITIVE] = {JSON_SCAN_INT, JSON_SCAN_REAL, "is not a number"},
    [AMOUNT] = {JSON_SCAN_INT, JSON_SCAN_REAL, "is not a number"},
    [WHOLE] = {JSON_SCAN_INT, JSON_SCAN_REAL, "is not a whole number"},
    [BOOL] = {JSON_SCAN_TRUE, JSON_SCAN_FALSE, "is neither true nor false"},
    [OBJECT] = {JSON_SCAN_OBJECT, JSON_SCAN_NULL, "is not an object"},
    [SHAPE] = {JSON_SCAN_ARRAY, JSON_SCAN_ARRAY, "is not a list"},
    [ROWS] = {JSON_SCAN_ARRAY, JSON_SCAN_ARRAY, "is not a list"},
};

/* The value that begins with this token. false: what is wrong is in the scan. */
static bool take(reader *r, const field *f, json_scan_token token, char *to) {
    if (token != kinds[f->kind].first && token != kinds[f->kind].second) {
        complain(r, f->key, kinds[f->kind].what);
        return json_scan_skip(&r->scan, token);
    }
    if (token == JSON_SCAN_NULL) return true;
    switch (f->kind) {
    case TEXT:
    case NAME: take_text(r, f, to); break;
    case POSITIVE:
    case AMOUNT:
    case WHOLE: take_number(r, f, token, to); break;
    case BOOL: memcpy(to + f->offset, &(bool){token == JSON_SCAN_TRUE}, sizeof(bool)); break;
    case OBJECT: return take_object(r, f->inner, to);
    case SHAPE: take_shape(r, f); break;
    case ROWS: take_rows(r, f); break;
    }
    return !r->scan.why;
}

/* Members come in the table's order, mostly, so that the next one is looked for behind the last. */
static int find(const members *m, int from, const char *key, size_t n) {
    for (int k = 0; k < m->count; k++) {
        const int at = from + k < m->count ? from + k : from + k - m->count;
        const char *is = m->fields[at].key;
        if (is[0] == key[0] && strncmp(is, key, n) == 0 && is[n] == 0) return at; /* key[n] is its quote: n may be 0 */
    }
    return -1;
}

static bool take_object(reader *r, const members *m, void *to) {
    uint64_t seen = 0;
    int next = 0;
    json_scan_token token;
    while ((token = json_scan_next(&r->scan)) == JSON_SCAN_KEY) {
        const int at = find(m, next, r->scan.text, r->scan.length);
        token = json_scan_next(&r->scan);
        if (at < 0) {
            if (!json_scan_skip(&r->scan, token)) return false;
            continue;
        }
        if (seen >> at & 1) complain(r, m->fields[at].key, "is given twice");
        seen |= (uint64_t)1 << at;
        next = at + 1 < m->count ? at + 1 : 0;
        if (token <= JSON_SCAN_END || !take(r, &m->fields[at], token, to)) return false;
    }
    return token == JSON_SCAN_OBJECT_END;
}

/* ---- a report ---- */

static void each_field(const members *m, study_file *to, void (*call)(const field *f, void *at, void *with),
                       void *with) {
    for (int k = 0; k < m->count; k++) {
        if (m->fields[k].kind == OBJECT)
            each_field(m->fields[k].inner, to, call, with);
        else
            call(&m->fields[k], (char *)to + m->fields[k].offset, with);
    }
}

static void make_unknown(const field *f, void *at, void *with) {
    (void)with;
    if (f->kind == POSITIVE || f->kind == AMOUNT) memcpy(at, &(double){NAN}, sizeof(double));
}

static void place_text(const field *f, void *at, void *with) {
    const char *text;
    if (f->kind != TEXT && f->kind != NAME) return;
    memcpy(&text, at, sizeof text);
    if (text) text = map_intern(with, text, strlen(text));
    memcpy(at, &text, sizeof text);
}

void study_scan_texts(map *texts, study_file *to) { each_field(&root_members, to, place_text, texts); }

void study_scan(study_scanner *s, char *bytes, size_t n, study_file *to) {
    reader r = {.scanner = s, .to = to};
    s->row_count = 0;
    s->why[0] = 0;
    each_field(&root_members, to, make_unknown, NULL);
    json_scan_begin(&r.scan, bytes, n, STUDY_DEPTH);
    if (json_scan_next(&r.scan) == JSON_SCAN_OBJECT) take_object(&r, &root_members, to);
    while (json_scan_next(&r.scan) > JSON_SCAN_END) continue; /* of an object its end; of anything else all of it */
    to->is = STUDY_SKIPPED;
    if (r.scan.why) {
        size_t line, column;
        json_scan_place(&r.scan, &line, &column);
        snprintf(s->why, sizeof s->why, "line %zu, column %zu: %s", line, column, r.scan.why);
    } else if (study_check(s, to, s->why, sizeof s->why)) {
        to->is = STUDY_REPORT;
    }
}

void study_scan_free(study_scanner *s) {
    free(s->rows);
    *s = (study_scanner){.rows = NULL};
}
