/* Owns the cleaning of text from models and command lines before it is written anywhere. */
#include "common/plain.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

int plain_character(const char *text, uint32_t *code) {
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const int length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    uint32_t c = length == 1 ? s[0] : length > 1 ? s[0] & (0x7fu >> length) : 0;
    for (int k = 1; k < length; k++) {
        if ((s[k] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[k] & 0x3fu);
    }
    *code = c;
    return c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : length;
}

bool plain_controls(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void plain_end(char *text) {
    size_t at = strlen(text), tail = 0; /* of bytes that begin no character */
    for (; tail < 3 && at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0x80; tail++) at--;
    const unsigned char first = at > 0 ? (unsigned char)text[at - 1] : 0;
    const size_t wanted = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    if (wanted > tail) text[at - 1] = 0;
}

static const char *clean(arena *a, const char *text, bool safe) {
    static const char replacement[] = "\xef\xbf\xbd";
    const size_t n = strlen(text);
    char *copy = arena_alloc(a, 3 * n + 1), *to = copy;
    bool same = true;
    for (const char *s = text; *s;) {
        uint32_t code = 0;
        const int length = plain_character(s, &code);
        const char *from = length ? s : replacement;
        int put = length ? length : 3;
        if (length && safe && plain_controls(code)) {
            from = "?";
            put = 1;
        }
        same = same && from == s;
        memcpy(to, from, (size_t)put);
        to += put;
        s += length ? length : 1;
    }
    *to = 0;
    return same ? text : copy;
}

const char *plain_utf8(arena *a, const char *text) { return clean(a, text, false); }

const char *plain_name(arena *a, const char *name) {
    enum { KEPT = 112 }; /* at either end: room is left for what tells equal names apart */
    if (strnlen(name, PLAIN_NAME + 1) <= PLAIN_NAME) return name;
    const size_t n = strlen(name);
    char head[KEPT + 1];
    memcpy(head, name, KEPT);
    head[KEPT] = 0;
    plain_end(head);
    const char *tail = name + n - KEPT;
    while (((unsigned char)*tail & 0xc0) == 0x80) tail++;
    return arena_printf(a, "%s…#%016" PRIx64 "…%s", head, XXH3_64bits(name, n), tail);
}

int plain_columns(const char *text) {
    int columns = 0;
    for (; *text; text++) columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

static const char *skip(const char *text, int characters) {
    while (*text && characters > 0) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80) text++;
        characters--;
    }
    return text;
}

const char *plain_cell(arena *a, const char *text, int columns) {
    const char *whole = clean(a, text, true);
    const int wide = plain_columns(whole);
    if (wide <= columns) return whole;
    if (columns < 3) return arena_strndup(a, whole, (size_t)(skip(whole, columns) - whole));
    const int head = (columns - 1) / 2, tail = columns - 1 - head;
    return arena_printf(a, "%.*s…%s", (int)(skip(whole, head) - whole), whole, skip(whole, wide - tail));
}

bool plain_same(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }
bool plain_alike(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

const char *plain_padded(arena *a, const char *text, int columns) {
    const char *cut = plain_cell(a, text, columns);
    const int missing = columns - plain_columns(cut);
    return missing > 0 ? arena_printf(a, "%s%*s", cut, missing, "") : cut;
}
