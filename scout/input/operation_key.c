/* From a canonical key back to the operation that it tells. What comes out has the very key that went in, or the text
 * is refused: so nothing of a key is passed over. */
#include "scout/input/operation_internal.h"

#include "scout/input/weights.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 4096, KEY_NUMBERS = 64 };

typedef struct key_reader {
    operation_reader to;
    const char *key;
    operation *out;
} key_reader;

/* %xx becomes the character that it stands for. */
static char *plain(const key_reader *r, const char *text, size_t length) {
    char *copy = arena_strndup(r->to.arena, text, length), *end = copy;
    for (const char *at = copy; *at; at++) {
        unsigned code = 0;
        if (*at == '%' && sscanf(at + 1, "%2x", &code) == 1 && code > 0 && at[1] && at[2]) {
            *end++ = (char)code;
            at += 2;
        } else {
            *end++ = *at;
        }
    }
    *end = 0;
    return copy;
}

/* Whole numbers with commas between; 0: it is none, or more than there can be. */
static int whole_numbers(const char *text, int64_t *out) {
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long x = strtoll(at, &end, 10);
        if (end == at || errno != 0 || count == KEY_NUMBERS || *at == ' ' || *at == '+') return 0;
        out[count++] = x;
        if (*end == 0) return count;
        if (*end != ',') return 0;
        at = end;
    }
}

static dtype read_type(const key_reader *r, const char *text) {
    const dtype type = dtype_from_name(text);
    if (type == DTYPE_NONE) operation_fail(&r->to, "type %.60s is not known", text);
    return type;
}

static void read_shape(const key_reader *r, const char *text) {
    int64_t numbers[KEY_NUMBERS];
    const int count = *text ? whole_numbers(text, numbers) : 0;
    if (count == 0 && *text) operation_fail(&r->to, "shape %.60s is not a list of whole numbers", text);
    for (int k = 0; k < count; k++)
        if (numbers[k] < 1 || numbers[k] > operation_max_dim)
            operation_fail(&r->to, "a dimension of shape is %lld", (long long)numbers[k]);
    oprec_set_shape(&r->out->rec, r->to.arena, count, numbers);
}

/* A named dimension: a number, several, or a text. */
static void read_field(const key_reader *r, const char *name, const char *text) {
    oprec *rec = &r->out->rec;
    int64_t numbers[KEY_NUMBERS];
    char *end;
    const int count = whole_numbers(text, numbers);
    const double real = strtod(text, &end);
    if (!operation_is_field(name)) operation_fail(&r->to, "%.60s is no dimension of an operation", name);
    if (rec->field_count == OPREC_MAX_FIELDS)
        operation_fail(&r->to, "it has more than %d named dimensions", (int)OPREC_MAX_FIELDS);
    if (count == 1)
        oprec_set_int(rec, name, numbers[0]);
    else if (count > 1)
        oprec_set_ints(rec, r->to.arena, name, count, numbers);
    else if (*text && *end == 0 && isfinite(real))
        oprec_set_real(rec, name, real);
    else
        oprec_set_text(rec, name, text);
}

/* What stands behind the record: a weight that is sparse. */
static bool read_sparse(const key_reader *r, const char *name, const char *text) {
    operation *o = r->out;
    if (strcmp(name, "sparsity") == 0)
        o->sparsity = strtod(text, NULL);
    else if (strcmp(name, "sparse_pattern") == 0)
        o->pattern = text;
    else if (strcmp(name, "sparse_block") == 0)
        o->sparse_block = (int)strtol(text, NULL, 10);
    else if (strcmp(name, "weight_threshold") == 0)
        o->threshold = strtod(text, NULL);
    else if (strcmp(name, "zeros") == 0 && o->sparsity > 0)
        o->zeros_hash = strtoull(text, NULL, 16), o->weight = arena_array(r->to.arena, weights_place, 1);
    else
        return false;
    return true;
}

static void read_member(const key_reader *r, const char *name, const char *text) {
    oprec *rec = &r->out->rec;
    if (strcmp(name, "what") == 0)
        rec->what = text;
    else if (strcmp(name, "shape") == 0)
        read_shape(r, text);
    else if (strcmp(name, "layout") == 0)
        rec->layout = text;
    else if (strcmp(name, "mask") == 0)
        rec->mask = text;
    else if (strcmp(name, "type") == 0)
        rec->type = read_type(r, text);
    else if (strcmp(name, "weight") == 0)
        rec->weight_type = read_type(r, text);
    else if (strcmp(name, "out") == 0)
        rec->out_type = read_type(r, text);
    else if (!read_sparse(r, name, text))
        read_field(r, name, text);
}

void operation_from_key(const char *key, arena *a, operation *out) {
    key_reader r = {.to = {.arena = a, .where = "key", .code = STATUS_INPUT}, .key = key, .out = out};
    const size_t length = strnlen(key, KEY_BYTES), kind = strcspn(key, ";");
    char name[16];
    *out = (operation){.id = "", .name = "", .pattern = "DENSE"};
    r.to.entry = arena_strndup(a, key, length < 200 ? length : 200);
    if (length == KEY_BYTES) operation_fail(&r.to, "a key has at most %d characters", KEY_BYTES - 1);
    snprintf(name, sizeof name, "%.*s", (int)(kind < sizeof name ? kind : 0), key);
    if (!oprec_kind_from_name(name, &out->rec.kind)) operation_fail(&r.to, "its kind is not known");
    for (const char *at = key + kind; *at; at += strcspn(at, ";")) {
        const size_t n = strcspn(++at, ";"), equals = strcspn(at, "=");
        if (equals >= n) operation_fail(&r.to, "\"%.*s\" is not NAME=VALUE", (int)(n < 60 ? n : 60), at);
        read_member(&r, plain(&r, at, equals), plain(&r, at + equals + 1, n - equals - 1));
    }
    out->id = out->name = oprec_id(&out->rec, a);
    if (strcmp(operation_key(out, a), key) != 0)
        operation_fail(&r.to, "it is not canonical; that would be %.200s", operation_key(out, a));
    operation_check_record(&r.to, &out->rec);
}
