/* Status codes with their one line of text, and the printing of such a line so that nothing hostile in it reaches a
 * terminal or breaks a log. */
#include "common/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at s (at most n bytes), 0 where it is broken. Sets the code point. */
static size_t utf8_sequence(const unsigned char *s, size_t n, uint32_t *code) {
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > n) return 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t k = 1; k < length; k++) {
        if ((s[k] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[k] & 0x3fu);
    }
    if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    *code = c;
    return length;
}

/* Control characters, and those that end a line or turn the direction of text around. */
static bool is_unsafe(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

status_code status_setv(status *st, status_code code, const char *format, va_list args) {
    st->code = code;
    int n = vsnprintf(st->text, sizeof st->text, format, args);
    if (n < 0) st->text[0] = 0;
    if (n >= (int)sizeof st->text) { /* cut between characters, and say so */
        size_t end = sizeof st->text - 4;
        while (end > 0 && ((unsigned char)st->text[end] & 0xc0) == 0x80) end--;
        memcpy(st->text + end, "...", 4);
    }
    return code;
}

status_code status_set(status *st, status_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    status_setv(st, code, format, args);
    va_end(args);
    return code;
}

bool status_fail(status *st, status_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    status_setv(st, code, format, args);
    va_end(args);
    return false;
}

/* The longest line that is printed: a log's reader must not drown in one hostile name. */
enum { STATUS_LINE = 2000 };

typedef struct line {
    size_t used;
    bool cut;
    char text[STATUS_LINE];
} line;

/* Takes a piece whole or not at all, so that no character and no escape is halved; room for "...\n" stays. */
static void line_add(line *l, const char *s, size_t n) {
    l->cut = l->cut || l->used + n + 4 > sizeof l->text;
    if (l->cut) return;
    memcpy(l->text + l->used, s, n);
    l->used += n;
}

static void line_add_escaped(line *l, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    size_t left = strlen(text);
    while (left > 0 && !l->cut) {
        uint32_t c = 0;
        size_t n = utf8_sequence(s, left, &c);
        if (n > 0 && !is_unsafe(c)) {
            line_add(l, (const char *)s, n);
        } else if (n == 1 && (c == '\n' || c == '\t' || c == '\r')) {
            line_add(l, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r", 2);
        } else {
            if (n == 0) n = 1;
            for (size_t k = 0; k < n; k++) {
                char hex[5];
                snprintf(hex, sizeof hex, "\\x%02x", (unsigned)s[k]);
                line_add(l, hex, 4);
            }
        }
        s += n;
        left -= n;
    }
}

void status_print(FILE *out, const char *program, const char *label, const char *text) {
    line l = {0};
    line_add_escaped(&l, program);
    line_add(&l, ": ", 2);
    if (label) line_add_escaped(&l, label);
    line_add_escaped(&l, text);
    const char *end = l.cut ? "...\n" : "\n";
    memcpy(l.text + l.used, end, strlen(end));
    l.used += strlen(end);
    fwrite(l.text, 1, l.used, out);
    fflush(out);
}
