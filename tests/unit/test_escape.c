/* Text of hostile origin: what becomes of it in each format, and what other people's readers of these formats see then:
 * python's html, xml, json and csv (escape_oracle.py), and the C compiler. */
#include "analyze/write/escape.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {
    [ESCAPE_TERMINAL] = "terminal", [ESCAPE_MARKUP] = "markup",      [ESCAPE_SCRIPT] = "script",
    [ESCAPE_MARKDOWN] = "markdown", [ESCAPE_MARKDOWN_CODE] = "code", [ESCAPE_CSV] = "csv",
    [ESCAPE_C_STRING] = "string",   [ESCAPE_C_COMMENT] = "comment",  [ESCAPE_C_NAME] = "name"};
enum { KINDS = sizeof names / sizeof names[0] };

static const char *escaped(escape_kind kind, const char *text) {
    static char to[1 << 16];
    escape_buffer(to, sizeof to, kind, text);
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
        {ESCAPE_SCRIPT, "</script>\"\\", "\\u003c/script\\u003e\\u0022\\u005c"},
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
        {ESCAPE_C_NAME, "a-b..c\xc3\xa9__d", "a_b_c_d"},
        {ESCAPE_C_NAME, "-1", "1"},
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
        const size_t n = strlen(escaped((escape_kind)k, text));
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
        UNIT_INT(escape_buffer(NULL, 0, (escape_kind)k, text), n);
    }
    unlink(path);
}

static void a_small_room_takes_whole_characters(void) {
    char small[8];
    UNIT_INT(escape_buffer(small, sizeof small, ESCAPE_MARKUP, "ab<c"), 8);
    UNIT_TEXT(small, "ab&#60;");
    UNIT_INT(escape_buffer(small, sizeof small, ESCAPE_MARKUP, "abc<d"), 9);
    UNIT_TEXT(small, "abc");
    UNIT_INT(escape_buffer(small, 3, ESCAPE_TERMINAL, "a\xc3\xa9"), 3);
    UNIT_TEXT(small, "a");
}

/* ---- names ---- */

static void names_are_unique(void) {
    guard g;
    arena a;
    map taken;
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    map_init(&taken, &a);
    UNIT_TEXT(escape_unique(&taken, "op_", "int"), "op_int");
    UNIT_TEXT(escape_unique(&taken, "op_", "a b"), "op_a_b");
    UNIT_TEXT(escape_unique(&taken, "op_", "a-b"), "op_a_b_2");
    UNIT_TEXT(escape_unique(&taken, "op_", "a_b_2"), "op_a_b_2_2");
    UNIT_TEXT(escape_unique(&taken, "op_", "a.b"), "op_a_b_3");
    UNIT_TEXT(escape_unique(&taken, "op_", ""), "op");
    UNIT_TEXT(escape_unique(&taken, "op_", "__"), "op_2");
    char *text = arena_alloc(&a, 10001);
    memset(text, 'z', 10000);
    text[10000] = 0;
    map seen;
    map_init(&seen, &a);
    for (int k = 0; k < 50000; k++) {
        if (k == 100) text[40] = 0; /* the same forty in front */
        const char *name = escape_unique(&taken, "op_", text);
        UNIT_CHECK(strlen(name) <= 63 && !map_get(&seen, name));
        *map_put(&seen, name) = text;
    }
    arena_free(&a);
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
    snprintf(command, sizeof command, "python3 tests/unit/escape_oracle.py %s", path);
    UNIT_INT(system(command), 0);
    unlink(path);
}

/* A program whose strings are compared with bytes written as numbers, whose names must not collide, with every warning
 * an error, as C11 and as C++17. */
static void compilers_see_the_text(void) {
    char path[] = "/tmp/test_escape_XXXXXX", command[512], text[256];
    guard g;
    arena a;
    map taken;
    close(mkstemp(path));
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    map_init(&taken, &a);
    FILE *file = fopen(path, "w");
    fprintf(file, "#include <string.h>\nint main(void) {\n    int bad = 0;\n");
    for (int k = 0; k < 300; k++) {
        make_hostile(text, sizeof text);
        const char *name = escape_unique(&taken, "op_", text);
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
    arena_free(&a);
}

int main(void) {
    UNIT_RUN(says_what_is_expected);
    UNIT_RUN(all_ways_are_one);
    UNIT_RUN(a_small_room_takes_whole_characters);
    UNIT_RUN(names_are_unique);
    UNIT_RUN(readers_see_the_text);
    UNIT_RUN(compilers_see_the_text);
    return unit_end();
}
