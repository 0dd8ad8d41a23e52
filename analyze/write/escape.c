/* Owns what a text of hostile origin may look like in each format that is written: one table, a line for each. A text
 * is gone through character by character; a kind says what becomes of one, and what stands around all. */
#include "analyze/write/escape.h"

#include "common/plain.h"

#include <string.h>

/* Where the bytes go. */
typedef void put_bytes(void *to, const char *bytes, size_t n);

typedef struct escaped {
    put_bytes *sink;
    void *to;
} escaped;

/* A character and what stands beside it. */
typedef struct letter {
    const char *bytes;
    size_t length;
    uint32_t code;
    uint32_t before; /* the character before it; 0: none */
    const char *after;
    bool first;  /* nothing but blanks came before it */
    bool number; /* nothing but blanks and digits did */
} letter;

static void put(const escaped *e, const char *text) { e->sink(e->to, text, strlen(text)); }
static void put_letter(const escaped *e, const letter *c) { e->sink(e->to, c->bytes, c->length); }

__attribute__((format(printf, 2, 3))) static void put_format(const escaped *e, const char *format, ...) {
    char text[32];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(e, text);
}

static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool is_word(uint32_t c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}
static bool is_one_of(uint32_t c, const char *list) { return c != 0 && c < 0x80 && strchr(list, (int)c); }

/* ---- one character of each kind ---- */

static void markup(const escaped *e, const letter *c) {
    if (c->code == 0xfffe || c->code == 0xffff)
        put(e, "\xef\xbf\xbd"); /* valid UTF-8, and no XML */
    else if (is_one_of(c->code, "&<>\"'"))
        put_format(e, "&#%u;", (unsigned)c->code);
    else
        put_letter(e, c);
}

/* What means something at the start of a line: lists, also numbered ones, headings, rules, commands. */
static bool opens_block(const letter *c) {
    return (c->first && is_one_of(c->code, "-+=# /")) ||
           (c->number && is_digit(c->before) && is_one_of(c->code, ".)") && (!*c->after || *c->after == ' '));
}

/* Where no way of writing it helps, since people, issues and the like are found in what is shown: @name, #1, !1, … */
static bool opens_mention(const letter *c) {
    return is_one_of(c->code, "@#!%&~$") && !is_word(c->before) && is_word((unsigned char)*c->after);
}
static bool opens_link(const letter *c) {
    return (c->code == ':' && *c->after == '/') || (c->code == '.' && (c->before == 'w' || c->before == 'W'));
}

/* A reference to a character means that character and nothing else, in every dialect; a backslash does so in some. */
static void markdown(const escaped *e, const letter *c) {
    const bool inside = c->code == '_' && is_word(c->before) && is_word((unsigned char)*c->after);
    if ((is_one_of(c->code, "&<>|`*_~[]{}\\$^") && !inside) || opens_block(c) || opens_link(c))
        put_format(e, "&#%u;", (unsigned)c->code);
    else
        put_letter(e, c);
    if (opens_mention(c)) put(e, "&#8203;"); /* no width, and no name goes on behind it */
}

static void csv(const escaped *e, const letter *c) {
    if (c->code == '"') put(e, "\"");
    put_letter(e, c);
}

/* Octal: three digits end by themselves. "?" could begin a trigraph. */
static void c_string(const escaped *e, const letter *c) {
    if (c->code < 0x20 || c->code >= 0x7f)
        put_format(e, "\\%03o", (unsigned)c->code);
    else if (is_one_of(c->code, "\"\\?"))
        put_format(e, "\\%c", (int)c->code);
    else
        put_letter(e, c);
}

static void c_comment(const escaped *e, const letter *c) {
    const bool ends = c->code == '/' && c->before == '*', opens = c->code == '*' && c->before == '/';
    const bool trigraph = c->code == '?' && c->before == '?', goes_on = c->before == '\\';
    if (ends || opens || trigraph || goes_on) put(e, " ");
    put_letter(e, c);
    if (c->code == '\\' && !*c->after) put(e, " .");
}

/* ---- what stands around a text ---- */

static bool is_blank(uint32_t c) {
    return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200b) || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

/* = + - @ and their wide forms, which some take for the same, also behind blanks. */
static bool is_formula(const char *text) {
    static const uint32_t wide = 0xff01 - '!';
    uint32_t code = 0;
    int length = plain_character(text, &code);
    for (; *text && length > 0 && is_blank(code); length = plain_character(text, &code)) text += length;
    return *text && length > 0 && (is_one_of(code, "=+-@") || (code > wide && is_one_of(code - wide, "=+-@")));
}

/* An apostrophe says that what follows is text. */
static const char *around_csv(const char *text, const char **end) {
    bool plain = true;
    for (const char *s = text; *s && plain; s++)
        plain = is_word((unsigned char)*s) || is_one_of((unsigned char)*s, ".:/-");
    const bool formula = is_formula(text);
    *end = plain && !formula ? "" : "\"";
    return formula ? "\"'" : *end;
}

/* Nothing has a meaning in code but its own end, the end of a table's cell, and what some take for an escape. */
static bool is_code(const char *text) {
    const size_t n = strlen(text);
    return n > 0 && text[0] != ' ' && text[n - 1] != ' ' && !strpbrk(text, "`|\\");
}

static const char *around_code(const char *text, const char **end) {
    *end = is_code(text) ? "`" : "";
    return *end;
}

/* ---- the table ---- */

static const struct {
    void (*one)(const escaped *e, const letter *c);
    const char *(*around)(const char *text, const char **end); /* what stands before, and behind; NULL: nothing */
    bool (*as_is)(const char *text);                           /* `one` is not needed */
    bool bytes;                                                /* not characters */
} kinds[] = {
    [ESCAPE_TERMINAL] = {put_letter, NULL, NULL, false},
    [ESCAPE_MARKUP] = {markup, NULL, NULL, false},
    [ESCAPE_MARKDOWN] = {markdown, NULL, NULL, false},
    [ESCAPE_MARKDOWN_CODE] = {markdown, around_code, is_code, false},
    [ESCAPE_CSV] = {csv, around_csv, NULL, false},
    [ESCAPE_C_STRING] = {c_string, NULL, NULL, true},
    [ESCAPE_C_COMMENT] = {c_comment, NULL, NULL, false},
};

/* The character at text, cleaned; how many bytes it took. */
static size_t take(const char *text, bool bytes, letter *c) {
    int length = 1;
    c->code = (unsigned char)*text;
    if (!bytes) length = plain_character(text, &c->code);
    const bool broken = length == 0, controls = !bytes && !broken && plain_controls(c->code);
    const size_t taken = broken ? 1 : (size_t)length;
    c->bytes = broken ? "\xef\xbf\xbd" : controls ? "?" : text;
    c->length = broken ? 3 : controls ? 1 : taken;
    if (broken) c->code = 0xfffd;
    if (controls) c->code = '?';
    c->after = text + taken;
    return taken;
}

static void write_some(put_bytes *sink, void *to, escape_kind kind, const char *text, size_t most) {
    const escaped e = {sink, to};
    const char *end = "";
    text = text ? text : "";
    if (kinds[kind].around) put(&e, kinds[kind].around(text, &end));
    void (*one)(const escaped *, const letter *) =
        kinds[kind].as_is && kinds[kind].as_is(text) ? put_letter : kinds[kind].one;
    letter c = {.first = true, .number = true};
    for (; *text && most > 0; most--) {
        text += take(text, kinds[kind].bytes, &c);
        one(&e, &c);
        c.first = c.first && c.code == ' ';
        c.number = c.number && (c.code == ' ' || is_digit(c.code));
        c.before = c.code;
    }
    put(&e, *text ? "…" : "");
    put(&e, end);
}

/* ---- where it goes ---- */

static void to_file(void *to, const char *bytes, size_t n) { fwrite(bytes, 1, n, to); }
void escape_print(FILE *out, escape_kind kind, const char *text) { write_some(to_file, out, kind, text, SIZE_MAX); }

void escape_print_cut(FILE *out, escape_kind kind, const char *text, size_t most) {
    write_some(to_file, out, kind, text, most);
}

typedef struct line_end {
    escape_line *line;
    size_t used;
} line_end;

static void to_line(void *to, const char *bytes, size_t n) {
    line_end *end = to;
    if (end->used + n >= sizeof end->line->s) return; /* whole or not at all */
    memcpy(end->line->s + end->used, bytes, n);
    end->used += n;
}

escape_line escape_text(escape_kind kind, const char *text, size_t most) {
    escape_line line;
    line_end end = {&line, 0};
    write_some(to_line, &end, kind, text, most < ESCAPE_MOST ? most : ESCAPE_MOST);
    line.s[end.used] = '\0';
    return line;
}

static void to_files(void *to, const char *bytes, size_t n) { files_append(to, bytes, n); }
void escape_append(files_out *out, escape_kind kind, const char *text) {
    write_some(to_files, out, kind, text, SIZE_MAX);
}
