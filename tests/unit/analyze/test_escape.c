/* Text of hostile origin: what becomes of it in each format, and what other people's readers of these formats see then:
 * python's html, xml, json and csv (escape_oracle.py), and the C compiler. */
#include "analyze/write/escape.h"
#include "tests/unit/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {
    [ESCAPE_TERMINAL] = "terminal",  [ESCAPE_MARKUP] = "markup", [ESCAPE_MARKDOWN] = "markdown",
    [ESCAPE_MARKDOWN_CODE] = "code", [ESCAPE_CSV] = "csv",       [ESCAPE_C_STRING] = "string",
    [ESCAPE_C_COMMENT] = "comment"};
enum { KINDS = sizeof names / sizeof names[0] };

static const char *escaped(escape_kind kind, const char *text) {
    static char to[1 << 16];
    FILE *out = fmemopen(to, sizeof to, "w");
    to[0] = 0; /* nothing ends a text of which nothing was written */
    escape_print(out, kind, text);
    fclose(out);
    return to;
}

static void says_what_is_expected(void) {
    static const struct {
        escape_kind kind;
        const char *text, *want;
    } cases[] = {
        {ESCAPE_TERMINAL, "a\033[31mb\nc\xff", "a?[31mb?c\xef\xbf\xbd"},
        {ESCAPE_TERMINAL, "caf\xc3\xa9 \xe2\x80\xae!", "caf\xc3\xa9 ?!"},
        {ESCAPE_TERMINAL, NULL, ""},
        {ESCAPE_MARKUP, "<b a=\"x\" c='y'>&", "&#60;b a=&#34;x&#34; c=&#39;y&#39;&#62;&#38;"},
        {ESCAPE_MARKUP, "\xef\xbf\xbf|\x01", "\xef\xbf\xbd|?"},
        {ESCAPE_MARKDOWN, "a|b `c` *d* <i> [x](y)", "a&#124;b &#96;c&#96; &#42;d&#42; &#60;i&#62; &#91;x&#93;(y)"},
        {ESCAPE_MARKDOWN, "llama2_7b _x_", "llama2_7b &#95;x&#95;"},
        {ESCAPE_MARKDOWN, "# a", "&#35; a"},
        {ESCAPE_MARKDOWN, "12. a 12.", "12&#46; a 12."},
        {ESCAPE_MARKDOWN, "88.2 +- 0.5 %: use it.", "88.2 +- 0.5 %: use it."},
        {ESCAPE_MARKDOWN, " - x", "&#32;&#45; x"},
        {ESCAPE_MARKDOWN, "/close", "&#47;close"},
        {ESCAPE_MARKDOWN, "of @you a@b #1", "of @&#8203;you a@b #&#8203;1"},
        {ESCAPE_MARKDOWN, "http://x www.x", "http&#58;//x www&#46;x"},
        {ESCAPE_MARKDOWN, "a\nb", "a?b"},
        {ESCAPE_MARKDOWN_CODE, "@a <b> *c*", "`@a <b> *c*`"},
        {ESCAPE_MARKDOWN_CODE, "a`b", "a&#96;b"},
        {ESCAPE_MARKDOWN_CODE, "a|b", "a&#124;b"},
        {ESCAPE_MARKDOWN_CODE, " a", "&#32;a"},
        {ESCAPE_MARKDOWN_CODE, "", ""},
        {ESCAPE_CSV, "gemm_2048x4096_fp16", "gemm_2048x4096_fp16"},
        {ESCAPE_CSV, "", ""},
        {ESCAPE_CSV, "a,b", "\"a,b\""},
        {ESCAPE_CSV, "a\"b", "\"a\"\"b\""},
        {ESCAPE_CSV, "a;b", "\"a;b\""},
        {ESCAPE_CSV, "=1+1", "\"'=1+1\""},
        {ESCAPE_CSV, "-1", "\"'-1\""},
        {ESCAPE_CSV, " \xc2\xa0@x", "\"' \xc2\xa0@x\""},
        {ESCAPE_CSV,
         "\xef\xbc\x9d"
         "1",
         "\"'\xef\xbc\x9d"
         "1\""},
        {ESCAPE_CSV, "\t=1", "\"?=1\""},
        {ESCAPE_C_STRING, "a\"\\?\?/\n\xff", "a\\\"\\\\\\?\\?/\\012\\377"},
        {ESCAPE_C_COMMENT, "a*/b/*c?\?/\\", "a* /b/ *c? ?/\\ ."},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
        UNIT_TEXT(escaped(cases[k].kind, cases[k].text), cases[k].want);
}

/* The same bytes by whatever way they go. */
static void all_ways_are_one(void) {
    static const char text[] = "=a\"b<c>\\\n@d";
    char path[] = "/tmp/test_escape_XXXXXX", read[256];
    close(mkstemp(path));
    for (int k = 0; k < KINDS; k++) {
        FILE *file = fopen(path, "w");
        escape_print(file, (escape_kind)k, text);
        fclose(file);
        file = fopen(path, "r");
        read[fread(read, 1, sizeof read - 1, file)] = 0;
        fclose(file);
        UNIT_TEXT(read, escaped((escape_kind)k, text));
        status st = {0};
        files_out out;
        UNIT_CHECK(files_begin(&out, path, &st));
        escape_append(&out, (escape_kind)k, text);
        UNIT_CHECK(files_commit(&out, &st));
        file = fopen(path, "r");
        read[fread(read, 1, sizeof read - 1, file)] = 0;
        fclose(file);
        UNIT_TEXT(read, escaped((escape_kind)k, text));
    }
    unlink(path);
}

static void long_texts_are_cut_between_characters(void) {
    static const struct {
        escape_kind kind;
        const char *text, *want;
    } cases[] = {{ESCAPE_TERMINAL, "a\xc3\xa9z", "a\xc3\xa9…"},
                 {ESCAPE_TERMINAL, "ab", "ab"},
                 {ESCAPE_MARKUP, "<<<", "&#60;&#60;…"},
                 {ESCAPE_CSV, "a,b", "\"a,…\""},
                 {ESCAPE_CSV, "=1+1", "\"'=1…\""},
                 {ESCAPE_MARKDOWN_CODE, "abc", "`ab…`"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char to[64];
        FILE *out = fmemopen(to, sizeof to, "w");
        escape_print_cut(out, cases[k].kind, cases[k].text, 2);
        fclose(out);
        UNIT_TEXT(to, cases[k].want);
    }
}

/* ---- what others read ---- */

static uint64_t random_state = 88172645463325252u;
static unsigned any(unsigned below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % below);
}

/* Pieces that mean something somewhere. */
static void make_hostile(char *to, size_t room) {
    static const char *const pieces[] = {"<",
                                         ">",
                                         "&",
                                         "\"",
                                         "'",
                                         "</script>",
                                         "<!--",
                                         "]]>",
                                         "|",
                                         "`",
                                         "\\",
                                         "*/",
                                         "/*",
                                         "?\?/",
                                         "\n",
                                         "\r",
                                         "\t",
                                         "=",
                                         "+",
                                         "-",
                                         "@",
                                         " ",
                                         "\xc2\xa0",
                                         "\xef\xbc\x9d",
                                         "\xef\xbf\xbe",
                                         "\xef\xbf\xbf",
                                         "\xff",
                                         "\xc3",
                                         "\xe2\x80",
                                         "\xed\xa0\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xc0\xaf",
                                         "\033[2J",
                                         "\x7f",
                                         "\xc2\x85",
                                         "\xe2\x80\xae",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "\xf0\x9f\x98\x80",
                                         "\xc3\xa9",
                                         "&amp;",
                                         "&#0;",
                                         "%s%n",
                                         "$(id)",
                                         "#1",
                                         "1.",
                                         "_",
                                         "*",
                                         "~",
                                         "[x](y)",
                                         "javascript:",
                                         "http://x",
                                         "www.x",
                                         "7",
                                         "ab",
                                         "{{",
                                         "${",
                                         ",",
                                         ";",
                                         "\x01",
                                         "int"};
    size_t used = 0;
    to[0] = 0;
    for (unsigned k = any(9); k > 0; k--) {
        const int n = snprintf(to + used, room - used, "%s", pieces[any(sizeof pieces / sizeof pieces[0])]);
        used += (size_t)n;
    }
}

static void hex(FILE *out, const char *text) {
    for (; *text; text++) fprintf(out, "%02x", (unsigned char)*text);
}

static void readers_see_the_text(void) {
    char path[] = "/tmp/test_escape_XXXXXX", command[128], text[256];
    close(mkstemp(path));
    FILE *file = fopen(path, "w");
    for (int k = 0; k < 3000; k++) {
        make_hostile(text, sizeof text);
        for (int kind = 0; kind < KINDS; kind++) {
            fprintf(file, "%s ", names[kind]);
            hex(file, text);
            fputc(' ', file);
            hex(file, escaped((escape_kind)kind, text));
            fputc('\n', file);
        }
    }
    fclose(file);
    snprintf(command, sizeof command, "python3 tests/unit/analyze/escape_oracle.py %s", path);
    UNIT_INT(system(command), 0);
    unlink(path);
}

/* A program whose strings are compared with bytes written as numbers, with every warning an
 * error, as C11 and as C++17. */
static void compilers_see_the_text(void) {
    char path[] = "/tmp/test_escape_XXXXXX", command[512], text[256];
    close(mkstemp(path));
    FILE *file = fopen(path, "w");
    fprintf(file, "#include <string.h>\nint main(void) {\n    int bad = 0;\n");
    for (int k = 0; k < 300; k++) {
        make_hostile(text, sizeof text);
        char name[32];
        snprintf(name, sizeof name, "text_%d", k);
        fprintf(file, "    /* %s */\n    // ", escaped(ESCAPE_C_COMMENT, text));
        fprintf(file, "%s .\n    static const char %s[] = \"", escaped(ESCAPE_C_COMMENT, text), name);
        fprintf(file, "%s\";\n    static const unsigned char is_%s[] = {", escaped(ESCAPE_C_STRING, text), name);
        for (const char *s = text; *s; s++) fprintf(file, "%d, ", (unsigned char)*s);
        fprintf(file, "0};\n    bad += sizeof %s != sizeof is_%s || memcmp(%s, is_%s, sizeof %s) != 0;\n", name, name,
                name, name, name);
    }
    fprintf(file, "    return bad;\n}\n");
    fclose(file);
    static const char *const compilers[] = {"gcc -x c -std=c11", "g++ -x c++ -std=c++17", "clang -x c -std=c11"};
    int compiled = 0;
    for (size_t k = 0; k < sizeof compilers / sizeof compilers[0]; k++) {
        snprintf(command, sizeof command, "command -v %.*s >/dev/null", (int)strcspn(compilers[k], " "), compilers[k]);
        if (system(command) != 0) continue;
        snprintf(command, sizeof command,
                 "%s -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -o %s.out %s && %s.out", compilers[k], path,
                 path, path);
        UNIT_INT(system(command), 0);
        compiled++;
    }
    UNIT_CHECK(compiled > 0);
    snprintf(command, sizeof command, "%s.out", path);
    unlink(command);
    unlink(path);
}

int main(void) {
    UNIT_RUN(says_what_is_expected);
    UNIT_RUN(all_ways_are_one);
    UNIT_RUN(long_texts_are_cut_between_characters);
    UNIT_RUN(readers_see_the_text);
    UNIT_RUN(compilers_see_the_text);
    return unit_end();
}
