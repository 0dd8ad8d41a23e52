/* A recursive reader of compact JSON as jansson dumps it. What is rare (escapes in texts, huge integers) goes through
 * jansson's own parser; what is not of that form is refused, never guessed. */
#include "scout/cache/cache_parse.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, SAFE_DIGITS = 18 };

typedef struct reader {
    const char *at, *end; /* *end is NUL: looking one byte ahead is always allowed */
    int depth;
} reader;

static json_t *read_value(reader *r);

static bool take(reader *r, char c) {
    if (*r->at != c) return false;
    r->at++;
    return true;
}

/* Between the quotes; NULL: it has escapes, control bytes, or no end. */
static const char *plain_text(reader *r, size_t *n) {
    const char *from = r->at + 1, *s = from;
    if (*r->at != '"') return NULL;
    while ((unsigned char)*s >= 0x20 && *s != '"' && *s != '\\') s++;
    if (*s != '"') return NULL;
    *n = (size_t)(s - from);
    r->at = s + 1;
    return from;
}

static json_t *read_text(reader *r) {
    size_t n = 0;
    const char *plain = plain_text(r, &n);
    if (plain) return json_stringn(plain, n); /* refuses what is no UTF-8 */
    const char *s = r->at + 1;
    while (s < r->end && *s != '"') s += *s == '\\' && s + 1 < r->end ? 2 : 1;
    if (s >= r->end) return NULL;
    json_t *text = json_loadb(r->at, (size_t)(s + 1 - r->at), JSON_DECODE_ANY, NULL);
    r->at = s + 1;
    return text;
}

static json_t *read_number(reader *r) {
    const char *from = r->at, *s = from + (*from == '-');
    const size_t digits = strspn(s, "0123456789"), all = strspn(from, "0123456789+-.eE");
    if (digits == 0 || (digits > 1 && *s == '0')) return NULL;
    r->at = from + all;
    if (s + digits == r->at && digits <= SAFE_DIGITS) {
        json_int_t x = 0;
        for (size_t k = 0; k < digits; k++) x = x * 10 + (s[k] - '0');
        return json_integer(*from == '-' ? -x : x);
    }
    if (s + digits == r->at) return json_loadb(from, all, JSON_DECODE_ANY, NULL);
    char *stopped = NULL;
    const double x = strtod(from, &stopped);
    const bool bare = s[digits] == '.' && !(s[digits + 1] >= '0' && s[digits + 1] <= '9'); /* strtod takes it */
    const bool whole = stopped == r->at && !bare && r->at[-1] >= '0' && r->at[-1] <= '9';
    return whole && isfinite(x) ? json_real(x) : NULL; /* stops early where the locale has a comma */
}

static bool read_members(reader *r, json_t *object) {
    if (take(r, '}')) return true;
    do {
        size_t n = 0;
        const char *key = plain_text(r, &n);
        if (!key || n == 0 || !take(r, ':')) return false;
        json_t *value = read_value(r);
        if (!value || json_object_setn_new(object, key, n, value) != 0) return false;
    } while (take(r, ','));
    return take(r, '}');
}

static bool read_items(reader *r, json_t *array) {
    if (take(r, ']')) return true;
    do {
        json_t *value = read_value(r);
        if (!value || json_array_append_new(array, value) != 0) return false;
    } while (take(r, ','));
    return take(r, ']');
}

static json_t *read_container(reader *r) {
    const bool object = *r->at == '{';
    json_t *made = object ? json_object() : json_array();
    r->at++;
    const bool good = made && ++r->depth <= MAX_DEPTH && (object ? read_members(r, made) : read_items(r, made));
    r->depth--;
    if (good) return made;
    json_decref(made);
    return NULL;
}

static json_t *read_word(reader *r) {
    static const char *const words[] = {"true", "false", "null"};
    for (int k = 0; k < 3; k++) {
        const size_t n = strlen(words[k]);
        if (strncmp(r->at, words[k], n) != 0) continue;
        r->at += n;
        return k == 0 ? json_true() : k == 1 ? json_false() : json_null();
    }
    return NULL;
}

static json_t *read_value(reader *r) {
    switch (*r->at) {
    case '{':
    case '[': return read_container(r);
    case '"': return read_text(r);
    case 't':
    case 'f':
    case 'n': return read_word(r);
    default: return read_number(r);
    }
}

json_t *cache_parse(const char *text, size_t size) {
    reader r = {.at = text, .end = text + size};
    json_t *value = read_value(&r);
    if (value && r.at == r.end) return value;
    json_decref(value);
    return NULL;
}
