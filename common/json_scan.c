/* The one place that takes JSON apart byte by byte. Every loop ends at the NUL behind the text, which is no part of any
 * token, so that none needs to ask for the end. */
#include "common/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What may come next. */
enum { ROOT, VALUE, FIRST_VALUE, KEY, FIRST_KEY, AFTER };

static json_scan_token wrong(json_scan *s, const char *why) {
    if (!s->why) s->why = why;
    return JSON_SCAN_WRONG;
}

void json_scan_begin(json_scan *s, char *bytes, size_t n, int depth) {
    s->at = s->start = bytes;
    s->end = bytes + n;
    s->text = s->number = s->why = NULL;
    s->length = 0;
    s->depth = 0;
    s->limit = depth < JSON_SCAN_DEPTH ? depth : JSON_SCAN_DEPTH;
    s->state = ROOT;
}

static void skip_blanks(json_scan *s) {
    const char *c = s->at;
    while (*c == ' ' || *c == '\n' || *c == '\t' || *c == '\r') c++;
    s->at += c - s->at;
}

/* ---- texts ---- */

/* Bytes that are copied as they are: all but control characters, the quote, the backslash, and what is not ASCII. */
static bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

/* Eight bytes at a time: whether each of them is plain. */
static bool are_plain(const char *at) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, at, sizeof x);
    const uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
    const uint64_t hits = (quote - ones) | (backslash - ones) | (x - ones * 0x20) | x;
    return (hits & tops) == 0;
}

/* Length of the well-formed sequence of more than one byte; 0 where it is broken. */
static size_t sequence(const unsigned char *s) {
    static const struct {
        unsigned char first, last, second_from, second_to;
        size_t length;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        if (s[0] < forms[k].first || s[0] > forms[k].last) continue;
        if (s[1] < forms[k].second_from || s[1] > forms[k].second_to) return 0;
        for (size_t j = 2; j < forms[k].length; j++)
            if ((s[j] & 0xc0) != 0x80) return 0;
        return forms[k].length;
    }
    return 0;
}

/* The four hexadecimal digits at `at`; negative where they are none. */
static int32_t hex4(const char *at) {
    int32_t code = 0;
    for (int k = 0; k < 4; k++) {
        const char c = at[k];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        code = code * 16 + digit;
    }
    return code;
}

static char *put_utf8(char *to, int32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
        *to++ = (char)(0x80 | (code & 63));
    }
    return to;
}

/* \uXXXX, of which two make one character beyond 0xffff. */
static bool take_code(json_scan *s, char **to) {
    int32_t code = hex4(s->at + 1);
    if (code <= 0) {
        s->why = code < 0 ? "\\u without four digits" : "a \\u0000";
        return false;
    }
    s->at += 5;
    if (code >= 0xd800 && code < 0xe000) {
        const int32_t second = code < 0xdc00 && s->at[0] == '\\' && s->at[1] == 'u' ? hex4(s->at + 2) : -1;
        if (second < 0xdc00 || second >= 0xe000) {
            s->why = "half of a \\u pair";
            return false;
        }
        code = 0x10000 + ((code & 0x3ff) << 10 | (second & 0x3ff));
        s->at += 6;
    }
    *to = put_utf8(*to, code);
    return true;
}

static bool take_escape(json_scan *s, char **to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found = *++s->at ? strchr(letters, *s->at) : NULL;
    if (*s->at == 'u') return take_code(s, to);
    if (!found) {
        s->why = "unknown escape";
        return false;
    }
    *(*to)++ = meant[found - letters];
    s->at++;
    return true;
}

/* From the first byte that is not plain to the closing quote; everything after it moves towards it. */
static bool take_rest(json_scan *s) {
    char *to = s->at;
    while (*s->at != '"') {
        const unsigned char c = (unsigned char)*s->at;
        if (is_plain(c)) {
            *to++ = *s->at++;
        } else if (c == '\\') {
            if (!take_escape(s, &to)) return false;
        } else if (c < 0x80) {
            s->why = s->at == s->end ? "a string without its end" : "a control character in a string";
            return false;
        } else {
            const size_t n = sequence((const unsigned char *)s->at);
            if (n == 0) {
                s->why = "a string that is not UTF-8";
                return false;
            }
            memmove(to, s->at, n);
            to += n;
            s->at += n;
        }
    }
    s->length = (size_t)(to - s->text);
    return true;
}

/* At the opening quote. */
static bool take_text(json_scan *s) {
    s->text = ++s->at;
    while (s->end - s->at >= 8 && are_plain(s->at)) s->at += 8;
    while (is_plain((unsigned char)*s->at)) s->at++;
    s->length = (size_t)(s->at - s->text);
    if (*s->at != '"' && !take_rest(s)) return false;
    s->at++;
    return true;
}

/* ---- numbers ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char *past_digits(char *at) {
    while (is_digit(*at)) at++;
    return at;
}

static bool fits(const json_scan *s, bool real, bool large_exponent, size_t digits) {
    if (!real && digits < 19) return true;
    if (real && !large_exponent && digits < 200) return true;
    if (real) return isfinite(json_scan_real(s));
    errno = 0;
    (void)strtoll(s->number, NULL, 10);
    return errno == 0;
}

static json_scan_token take_number(json_scan *s) {
    char *at = s->at;
    bool real = false, large = false;
    s->number = at;
    if (*at == '-') at++;
    const char *first = at;
    if (!is_digit(*at)) return wrong(s, "a number without digits");
    at = *at == '0' ? at + 1 : past_digits(at);
    const size_t digits = (size_t)(at - first);
    if (*at == '.') {
        real = true;
        if (!is_digit(*++at)) return wrong(s, "a number without digits after its point");
        at = past_digits(at);
    }
    if (*at == 'e' || *at == 'E') {
        real = true;
        at++;
        if (*at == '+' || *at == '-') at++;
        if (!is_digit(*at)) return wrong(s, "a number without digits in its exponent");
        const char *exponent = at;
        at = past_digits(at);
        large = at - exponent > 2 || digits > 100;
    }
    if (!fits(s, real, large, digits)) return wrong(s, "a number that is too large");
    s->at = at;
    return real ? JSON_SCAN_REAL : JSON_SCAN_INT;
}

/* Up to 15 digits and a power of ten that is exact give the nearest double with one operation; strtod for the rest. */
double json_scan_real(const json_scan *s) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = s->number;
    const bool negative = *at == '-';
    uint64_t whole = 0;
    int digits = 0, after = 0;
    bool point = false;
    for (at += negative; is_digit(*at) || *at == '.'; at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        if (++digits > 15) return strtod(s->number, NULL);
        whole = whole * 10 + (uint64_t)(*at - '0');
        after += point;
    }
    if (*at == 'e' || *at == 'E') return strtod(s->number, NULL);
    const double x = (double)whole / tens[after];
    return negative ? -x : x;
}

int64_t json_scan_int(const json_scan *s) { return strtoll(s->number, NULL, 10); }

/* ---- structure ---- */

static json_scan_token take_word(json_scan *s, const char *word, json_scan_token token) {
    const size_t n = strlen(word);
    if (strncmp(s->at, word, n) != 0) return wrong(s, "a word other than true, false and null");
    s->at += n;
    return token;
}

static json_scan_token open_container(json_scan *s, bool object) {
    if (s->depth == s->limit) return wrong(s, "nested too deeply");
    s->in_object[s->depth++] = object;
    s->at++;
    s->state = object ? FIRST_KEY : FIRST_VALUE;
    return object ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY;
}

static json_scan_token close_container(json_scan *s) {
    const bool object = s->in_object[--s->depth];
    s->at++;
    s->state = AFTER;
    return object ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
}

static json_scan_token take_key(json_scan *s) {
    if (*s->at != '"') return wrong(s, "a member without a name");
    if (!take_text(s)) return JSON_SCAN_WRONG;
    skip_blanks(s);
    if (*s->at != ':') return wrong(s, "a name without a colon after it");
    s->at++;
    s->state = VALUE;
    return JSON_SCAN_KEY;
}

static json_scan_token take_value(json_scan *s) {
    const bool root = s->state == ROOT;
    if (*s->at == '{' || *s->at == '[') return open_container(s, *s->at == '{');
    if (root) return wrong(s, s->at == s->end ? "it is empty" : "neither an object nor an array");
    s->state = AFTER;
    switch (*s->at) {
    case '"': return take_text(s) ? JSON_SCAN_TEXT : JSON_SCAN_WRONG;
    case 't': return take_word(s, "true", JSON_SCAN_TRUE);
    case 'f': return take_word(s, "false", JSON_SCAN_FALSE);
    case 'n': return take_word(s, "null", JSON_SCAN_NULL);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return take_number(s);
    default: return wrong(s, s->at == s->end ? "it ends too early" : "a value is missing");
    }
}

static json_scan_token after_value(json_scan *s) {
    if (s->depth == 0) return s->at == s->end ? JSON_SCAN_END : wrong(s, "there is more after its end");
    const bool object = s->in_object[s->depth - 1];
    if (*s->at == (object ? '}' : ']')) return close_container(s);
    if (*s->at != ',') return wrong(s, s->at == s->end ? "it ends too early" : "a comma or a bracket is missing");
    s->at++;
    skip_blanks(s);
    s->state = object ? KEY : VALUE;
    return object ? take_key(s) : take_value(s);
}

json_scan_token json_scan_next(json_scan *s) {
    if (s->why) return JSON_SCAN_WRONG;
    skip_blanks(s);
    switch (s->state) {
    case AFTER: return after_value(s);
    case KEY: return take_key(s);
    case FIRST_KEY: return *s->at == '}' ? close_container(s) : take_key(s);
    case FIRST_VALUE: return *s->at == ']' ? close_container(s) : take_value(s);
    default: return take_value(s);
    }
}

bool json_scan_skip(json_scan *s, json_scan_token token) {
    const int depth = s->depth - 1; /* outside of a container that was just opened */
    if (token != JSON_SCAN_OBJECT && token != JSON_SCAN_ARRAY) return token > JSON_SCAN_END;
    do {
        token = json_scan_next(s);
    } while (token > JSON_SCAN_END && s->depth > depth);
    return token > JSON_SCAN_END;
}

void json_scan_place(const json_scan *s, size_t *line, size_t *column) {
    const char *begin = s->start;
    *line = 1;
    for (const char *c = s->start; c < s->at; c++) {
        if (*c != '\n') continue;
        ++*line;
        begin = c + 1;
    }
    *column = (size_t)(s->at - begin) + 1;
}
