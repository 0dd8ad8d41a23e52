/* Status codes with their one line of text, and the printing of such a line so that nothing hostile in it reaches a
 * terminal or breaks a log. */
#include "common/status.h"

#include "common/plain.h"

#include <string.h>

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
    while (*text && !l->cut) {
        uint32_t c = 0;
        size_t n = (size_t)plain_character(text, &c);
        if (n > 0 && !plain_controls(c)) {
            line_add(l, text, n);
        } else if (n == 1 && (c == '\n' || c == '\t' || c == '\r')) {
            line_add(l, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r", 2);
        } else {
            if (n == 0) n = 1;
            for (size_t k = 0; k < n; k++) {
                char hex[5];
                snprintf(hex, sizeof hex, "\\x%02x", (unsigned)(unsigned char)text[k]);
                line_add(l, hex, 4);
            }
        }
        text += n;
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
