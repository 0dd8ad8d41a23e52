/* Text of any origin (names in a model, in a report, in a folder) made safe for where it goes. Everything that is
 * written and was not written by this program goes through here. NULL is the empty text.
 *
 *     fputs("<td>", out);  escape_print(out, ESCAPE_MARKUP, r->name);  fputs("</td>", out);
 *
 * In all kinds but ESCAPE_C_STRING, which keeps every byte, broken UTF-8 becomes U+FFFD, and what controls something
 * (newlines, tabs, what turns the direction of text around) becomes '?', as in common/plain.h: the text is one line. */
#pragma once

#include "common/files.h"

#include <stdio.h>

typedef enum escape_kind {
    ESCAPE_TERMINAL,      /* nothing but the above */
    ESCAPE_MARKUP,        /* HTML and XML: text, and attributes in quotes of either sort */
    ESCAPE_MARKDOWN,      /* text, also in a table's cell; no mention, no link, no reference to an issue comes of it */
    ESCAPE_MARKDOWN_CODE, /* as `code` where that can be, else as text */
    ESCAPE_CSV,       /* a whole field with its quotes, where it needs them; no spreadsheet takes it for a formula */
    ESCAPE_C_STRING,  /* within "…" of C and C++, the same bytes */
    ESCAPE_C_COMMENT, /* within a comment of either sort, with a blank before and behind */
} escape_kind;

/* The owner of `out` checks it for failures. */
void escape_print(FILE *out, escape_kind kind, const char *text);
/* At most so many characters of the text, "…" where there are more. */
void escape_print_cut(FILE *out, escape_kind kind, const char *text, size_t most);
/* The same as a text that lives to the end of the expression, of at most ESCAPE_MOST characters:
 *
 *     fprintf(out, "<td>%s</td>", escape_text(ESCAPE_MARKUP, r->name, 100).s);  */
enum { ESCAPE_MOST = 400 };
typedef struct escape_line {
    char s[16 * ESCAPE_MOST + 16]; /* of a character at most 16 bytes come */
} escape_line;
escape_line escape_text(escape_kind kind, const char *text, size_t most);
void escape_append(files_out *out, escape_kind kind, const char *text);
