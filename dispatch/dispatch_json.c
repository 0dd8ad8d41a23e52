/* Owns the reading of JSON. Nothing here depends on the locale, and no input makes it deeper than DEPTH. */
#include "dispatch/dispatch_json.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, MEMBERS = 32 };

bool dispatch_json_fail(dispatch_json *j, const char *format, ...) {
    if (j->why[0]) return false;
    size_t line = 1;
    for (const char *s = j->text; s < j->at; s++) line += *s == '\n';
    const int used = snprintf(j->why, j->room, "line %zu: ", line);
    va_list args;
    va_start(args, format);
    if (used > 0 && (size_t)used < j->room) vsnprintf(j->why + used, j->room - (size_t)used, format, args);
    va_end(args);
    return false;
}

static void blanks(dispatch_json *j) {
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r')) j->at++;
}

static char peek(dispatch_json *j) {
    blanks(j);
    return j->at < j->end ? *j->at : 0;
}

static bool take(dispatch_json *j, char c) {
    if (peek(j) != c || c == 0) return false;
    j->at++;
    return true;
}

static bool expect(dispatch_json *j, char c, const char *what) {
    return take(j, c) || dispatch_json_fail(j, "%s is expected here", what);
}

/* ---- texts ---- */

static bool hex_digit(char c, unsigned *digit) {
    if (c >= '0' && c <= '9')
        *digit = (unsigned)(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f')
        *digit = (unsigned)((c | 32) - 'a') + 10;
    else
        return false;
    return true;
}

static bool four_digits(dispatch_json *j, unsigned *code) {
    *code = 0;
    for (int k = 0; k < 4; k++) {
        unsigned digit;
        if (j->at == j->end || !hex_digit(*j->at, &digit)) return dispatch_json_fail(j, "\\u wants four hex digits");
        *code = 16 * *code + digit;
        j->at++;
    }
    return true;
}

/* What stands behind a backslash, as UTF-8. */
static bool escape(dispatch_json *j, char out[4], size_t *bytes) {
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char c = j->at < j->end ? *j->at++ : 0;
    const char *name = c ? strchr(names, c) : NULL;
    unsigned code, low;
    *bytes = 1;
    if (name) {
        out[0] = means[name - names];
        return true;
    }
    if (c != 'u') return dispatch_json_fail(j, "unknown escape");
    if (!four_digits(j, &code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
        if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u') return dispatch_json_fail(j, "half a surrogate");
        j->at += 2;
        if (!four_digits(j, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return dispatch_json_fail(j, "half a surrogate");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code == 0 || (code >= 0xdc00 && code < 0xe000)) {
        return dispatch_json_fail(j, "a string holds \\u%04x", code);
    }
    *bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t k = *bytes; k-- > 0; code >>= 6) out[k] = (char)(k > 0 ? 0x80 | (code & 0x3f) : first[*bytes] | code);
    return true;
}

/* How many bytes the character at s has; 0: it is no UTF-8, or a control character. */
static size_t character(const unsigned char *s, size_t left) {
    if (s[0] >= 0x20 && s[0] < 0x80) return 1;
    const size_t n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80) return 0;
    const unsigned second = s[1];
    if ((s[0] == 0xe0 && second < 0xa0) || (s[0] == 0xed && second > 0x9f) || (s[0] == 0xf0 && second < 0x90) ||
        (s[0] == 0xf4 && second > 0x8f))
        return 0;
    return n;
}

/* How many bytes stand for themselves: most texts are nothing else. */
static size_t plain(const char *s, size_t left) {
    size_t n = 0;
    while (n < left && (unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x80 && s[n] != '"' && s[n] != '\\') n++;
    return n;
}

/* Decodes into `out` (NULL: nowhere) and tells how long it is. */
static bool text_into(dispatch_json *j, char *out, size_t *length) {
    *length = 0;
    if (!expect(j, '"', "a string")) return false;
    while (j->at < j->end && *j->at != '"') {
        char bytes[4];
        size_t n = plain(j->at, (size_t)(j->end - j->at));
        if (n > 0) {
            if (out) memcpy(out + *length, j->at, n);
            *length += n;
            j->at += n;
            continue;
        }
        if (*j->at == '\\') {
            j->at++;
            if (!escape(j, bytes, &n)) return false;
        } else {
            n = character((const unsigned char *)j->at, (size_t)(j->end - j->at));
            if (n == 0) return dispatch_json_fail(j, "a string holds bytes that are not UTF-8 or control a terminal");
            memcpy(bytes, j->at, n);
            j->at += n;
        }
        if (out) memcpy(out + *length, bytes, n);
        *length += n;
    }
    return expect(j, '"', "the end of a string");
}

static bool text_kept(dispatch_json *j, const char **text, size_t *length) {
    const char *start = j->at;
    if (!text_into(j, NULL, length)) return false;
    char *out = dispatch_memory_take(j->memory, *length + 1);
    if (!out) return dispatch_json_fail(j, "it needs more memory than a table of its size may");
    j->at = start;
    *text = out;
    return text_into(j, out, length);
}

static bool hex_kept(dispatch_json *j, dispatch_bytes *out) {
    const char *text = "";
    size_t length;
    if (!text_kept(j, &text, &length)) return false;
    unsigned char *bytes = dispatch_memory_take(j->memory, length / 2 + 1);
    if (!bytes) return dispatch_json_fail(j, "it needs more memory than a table of its size may");
    if (length % 2 != 0 || length > 8192) return dispatch_json_fail(j, "this is not a list of bytes in hex");
    for (size_t k = 0; k < length; k += 2) {
        unsigned high, low;
        if (!hex_digit(text[k], &high) || !hex_digit(text[k + 1], &low))
            return dispatch_json_fail(j, "this is not a list of bytes in hex");
        bytes[k / 2] = (unsigned char)(16 * high + low);
    }
    *out = (dispatch_bytes){bytes, (uint32_t)(length / 2)};
    return true;
}

/* ---- numbers ---- */

static bool digits(dispatch_json *j, const char *first) {
    const char *start = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9') j->at++;
    if (j->at == start) return dispatch_json_fail(j, "a number is expected here");
    return !first || *first != '0' || j->at - first == 1 || dispatch_json_fail(j, "a number begins with a zero");
}

/* Steps over a number; where its parts are. */
static bool number_parts(dispatch_json *j, const char **fraction, const char **exponent) {
    *fraction = *exponent = NULL;
    if (peek(j) == '-') j->at++;
    if (!digits(j, j->at)) return false;
    if (j->at < j->end && *j->at == '.') {
        *fraction = ++j->at;
        if (!digits(j, NULL)) return false;
    }
    if (j->at < j->end && (*j->at | 32) == 'e') {
        *exponent = ++j->at;
        if (j->at < j->end && (*j->at == '+' || *j->at == '-')) j->at++;
        if (!digits(j, NULL)) return false;
    }
    return true;
}

bool dispatch_json_integer(dispatch_json *j, int64_t *number) {
    const char *fraction, *exponent;
    blanks(j);
    const char *s = j->at;
    if (!number_parts(j, &fraction, &exponent)) return false;
    const bool negative = *s == '-';
    int64_t x = 0;
    bool fits = !fraction && !exponent;
    for (s += negative; fits && s < j->at; s++)
        fits = !__builtin_mul_overflow(x, 10, &x) && !__builtin_sub_overflow(x, *s - '0', &x); /* downwards */
    if (!negative) fits = fits && !__builtin_sub_overflow(0, x, &x);
    *number = x;
    return fits || dispatch_json_fail(j, "a whole number of at most 63 bits is expected here");
}

/* The first 19 digits, and how often ten: right to a unit in the last place, which is more than a time has. */
static bool real(dispatch_json *j, double *number) {
    const char *fraction, *exponent;
    blanks(j);
    const char *s = j->at;
    if (!number_parts(j, &fraction, &exponent)) return false;
    const bool negative = *s == '-';
    const char *stop = exponent ? exponent - 1 : j->at;
    uint64_t mantissa = 0;
    long scale = 0, shift = 0;
    for (s += negative; s < stop; s++) {
        if (*s == '.') continue;
        const bool kept = mantissa < UINT64_MAX / 10 - 1;
        if (kept) mantissa = 10 * mantissa + (uint64_t)(*s - '0');
        scale += (fraction && s >= fraction ? -1 : 0) + (kept ? 0 : 1);
    }
    for (s = exponent; s && s < j->at; s++)
        if (*s >= '0' && *s <= '9' && shift < 100000) shift = 10 * shift + (*s - '0');
    scale += exponent && *exponent == '-' ? -shift : shift;
    long double x = (long double)mantissa, ten = 10;
    for (long left = scale < 0 ? -scale : scale; left > 0 && x != 0 && x < 1e400L && x > 1e-400L;
         left >>= 1, ten *= ten)
        if (left & 1) x = scale < 0 ? x / ten : x * ten;
    *number = (double)(negative ? -x : x);
    return (*number <= 1e300 && *number >= -1e300) || dispatch_json_fail(j, "a number is too large");
}

static bool figure(dispatch_json *j, double *number, bool zero) {
    if (!real(j, number)) return false;
    return *number > 0 || (zero && *number == 0) ||
           dispatch_json_fail(j, zero ? "a number must not be negative" : "a number must be more than 0");
}

static bool count_of(dispatch_json *j, int64_t *number) {
    return dispatch_json_integer(j, number) && (*number >= 0 || dispatch_json_fail(j, "a number must not be negative"));
}

/* ---- values that are stepped over ---- */

static bool word(dispatch_json *j, const char *name) {
    const size_t n = strlen(name);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, name, n) != 0)
        return dispatch_json_fail(j, "a value is expected here");
    j->at += n;
    return true;
}

static bool step_over(dispatch_json *j);

static bool step_over_item(dispatch_json *j, void *target) {
    (void)target;
    return step_over(j);
}

static bool step_over(dispatch_json *j) {
    size_t length;
    double number;
    switch (peek(j)) {
    case '{': return dispatch_json_object(j, NULL, 0, NULL);
    case '[': return dispatch_json_array(j, step_over_item, NULL);
    case '"': return text_into(j, NULL, &length);
    case 't': return word(j, "true");
    case 'f': return word(j, "false");
    case 'n': return word(j, "null");
    default: return real(j, &number);
    }
}

static bool raw_kept(dispatch_json *j, const char **text) {
    bool quoted = false;
    if (peek(j) != '{') return dispatch_json_fail(j, "an object is expected here");
    const char *start = j->at;
    if (!step_over(j)) return false;
    char *out = dispatch_memory_take(j->memory, (size_t)(j->at - start) + 1);
    if (!out) return dispatch_json_fail(j, "it needs more memory than a table of its size may");
    *text = out;
    for (const char *s = start; s < j->at; s++) {
        if (quoted && *s == '\\')
            *out++ = *s++;
        else if (*s == '"')
            quoted = !quoted;
        if (quoted || (unsigned char)*s > ' ') *out++ = *s;
    }
    *out = 0;
    return true;
}

bool dispatch_json_text(dispatch_json *j, const char **text) {
    size_t length;
    return peek(j) == 'n' ? word(j, "null") : text_kept(j, text, &length);
}

/* ---- objects and arrays ---- */

static bool deeper(dispatch_json *j) {
    return ++j->depth <= DEPTH || dispatch_json_fail(j, "it is nested more than %d deep", (int)DEPTH);
}

static bool value(dispatch_json *j, const dispatch_json_member *m, void *target) {
    void *place = (char *)target + m->offset;
    switch (m->kind) {
    case DISPATCH_JSON_TEXT: return dispatch_json_text(j, (const char **)place);
    case DISPATCH_JSON_COUNT: return count_of(j, place);
    case DISPATCH_JSON_TIME: return figure(j, place, false);
    case DISPATCH_JSON_PART: return figure(j, place, true);
    case DISPATCH_JSON_HEX: return hex_kept(j, place);
    case DISPATCH_JSON_RAW: return raw_kept(j, (const char **)place);
    case DISPATCH_JSON_CALL: return m->call(j, target);
    }
    return false;
}

/* Which member a name is; count: none. Names of tables hold no escapes, so one that does is unknown. */
static int member_of(dispatch_json *j, const dispatch_json_member *members, int count) {
    int k = 0;
    const char *name = peek(j) == '"' ? j->at + 1 : j->at;
    for (; k < count; k++) {
        const size_t n = strlen(members[k].name);
        if ((size_t)(j->end - name) > n && memcmp(name, members[k].name, n) == 0 && name[n] == '"') break;
    }
    return k;
}

bool dispatch_json_object(dispatch_json *j, const dispatch_json_member *members, int count, void *target) {
    uint32_t seen = 0;
    size_t length;
    if (count > MEMBERS || !expect(j, '{', "an object") || !deeper(j)) return false;
    if (peek(j) != '}') {
        do {
            const int k = member_of(j, members, count);
            if (!text_into(j, NULL, &length) || !expect(j, ':', "a colon")) return false;
            if (k == count) {
                if (!step_over(j)) return false;
                continue;
            }
            if (seen >> k & 1) return dispatch_json_fail(j, "\"%s\" is given twice", members[k].name);
            seen |= 1U << k;
            if (!value(j, &members[k], target)) return false;
        } while (take(j, ','));
    }
    if (!expect(j, '}', "a comma or }")) return false;
    for (int k = 0; k < count; k++)
        if (members[k].required && !(seen >> k & 1)) return dispatch_json_fail(j, "\"%s\" is missing", members[k].name);
    j->depth--;
    return true;
}

bool dispatch_json_array(dispatch_json *j, dispatch_json_call *item, void *target) {
    if (!expect(j, '[', "an array") || !deeper(j)) return false;
    if (peek(j) != ']') {
        do {
            if (!item(j, target)) return false;
        } while (take(j, ','));
    }
    j->depth--;
    return expect(j, ']', "a comma or ]");
}

bool dispatch_json_end(dispatch_json *j) {
    return (peek(j) == 0 && j->at == j->end) || dispatch_json_fail(j, "there is more after the end");
}

typedef struct dispatch_piece {
    struct dispatch_piece *next;
    size_t size, used;
    max_align_t bytes[];
} dispatch_piece;

enum { FIRST_PIECE = 4096, LARGEST_PIECE = 1 << 20, ALIGNMENT = _Alignof(max_align_t) };

void *dispatch_memory_take(dispatch_memory *m, size_t size) {
    if (size > m->limit) return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    dispatch_piece *p = m->pieces;
    if (!p || p->size - p->used < size) {
        size_t room = p ? 2 * p->size : FIRST_PIECE;
        if (room > LARGEST_PIECE) room = LARGEST_PIECE;
        if (room < size) room = size;
        if (room > m->limit - m->used) return NULL;
        p = malloc(sizeof *p + room);
        if (!p) return NULL;
        *p = (dispatch_piece){.next = m->pieces, .size = room};
        m->pieces = p;
        m->used += room;
    }
    void *bytes = (char *)p->bytes + p->used;
    p->used += size;
    memset(bytes, 0, size);
    return bytes;
}

bool dispatch_memory_grow(dispatch_memory *m, void **items, size_t *room, size_t count, size_t size) {
    if (count < *room) return true;
    const size_t wanted = *room ? 2 * *room : 16;
    if (wanted > SIZE_MAX / size) return false;
    void *moved = dispatch_memory_take(m, wanted * size);
    if (!moved) return false;
    if (count > 0) memcpy(moved, *items, count * size);
    *items = moved;
    *room = wanted;
    return true;
}

void dispatch_memory_free(dispatch_memory *m) {
    while (m->pieces) {
        dispatch_piece *next = m->pieces->next;
        free(m->pieces);
        m->pieces = next;
    }
    m->used = 0;
}
