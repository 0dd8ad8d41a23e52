/* Text of any origin (names in a model, in a report, in a folder) made safe for where it goes. Everything that is
 * written and was not written by this program goes through here. NULL is the empty text.
 *
 *     fputs("<td>", out);  escape_print(out, ESCAPE_MARKUP, r->name);  fputs("</td>", out);
 *
 * In all kinds but ESCAPE_C_STRING, which keeps every byte, broken UTF-8 becomes U+FFFD, and what controls something
 * (newlines, tabs, what turns the direction of text around) becomes '?', as in common/plain.h: the text is one line. */
#ifndef ANALYZE_ESCAPE_H
#define ANALYZE_ESCAPE_H

#include "common/files.h"
#include "common/map.h"

#include <stdio.h>

typedef enum escape_kind {
    ESCAPE_TERMINAL,      /* nothing but the above */
    ESCAPE_MARKUP,        /* HTML and XML: text, and attributes in quotes of either sort */
    ESCAPE_SCRIPT,        /* within "…" of JSON or JavaScript, also where that stands in a <script> */
    ESCAPE_MARKDOWN,      /* text, also in a table's cell; no mention, no link, no reference to an issue comes of it */
    ESCAPE_MARKDOWN_CODE, /* as `code` where that can be, else as text */
    ESCAPE_CSV,       /* a whole field with its quotes, where it needs them; no spreadsheet takes it for a formula */
    ESCAPE_C_STRING,  /* within "…" of C and C++, the same bytes */
    ESCAPE_C_COMMENT, /* within a comment of either sort, with a blank before and behind */
    ESCAPE_C_NAME,    /* behind a prefix, in an identifier of C and C++: what cannot stand in one is '_' */
} escape_kind;

/* Where the bytes go. What cannot be written, whoever owns `to` has to find out. */
typedef void escape_sink(void *to, const char *bytes, size_t n);

void escape_to(escape_sink *sink, void *to, escape_kind kind, const char *text);
void escape_print(FILE *out, escape_kind kind, const char *text);
/* At most so many characters of the text, "…" where there are more. */
void escape_print_cut(FILE *out, escape_kind kind, const char *text, size_t most);
void escape_append(files_out *out, escape_kind kind, const char *text);

/* As snprintf: the length of all of it; what does not fit is left out, from the first character that does not. */
size_t escape_buffer(char *to, size_t room, escape_kind kind, const char *text);

/* An identifier that nobody else has from this map of the taken ones: prefix and text, cut, and a number behind where
 * there is such a one already; at most 63 characters. It lives in the arena of the map. The prefix (1 to 32 characters)
 * keeps it from being a keyword or a name of the library's. */
const char *escape_unique(map *taken, const char *prefix, const char *text);

#endif
