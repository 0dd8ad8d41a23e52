/* Status lines: codes, cutting, and escaping of what a hostile name may hold. */
#include "common/status.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

/* What status_print writes, without the newline at its end. */
static const char *printed(const char *label, const char *text) {
    static char line[65536];
    FILE *out = tmpfile();
    if (!out) return NULL;
    status_print(out, "program", label, text);
    rewind(out);
    size_t n = fread(line, 1, sizeof line - 1, out);
    fclose(out);
    line[n] = 0;
    char *end = strchr(line, '\n');
    UNIT_CHECK(end != NULL && end == line + n - 1);
    if (end) *end = 0;
    return line;
}

static void set_returns_the_code(void) {
    status st;
    UNIT_INT(status_set(&st, STATUS_INPUT, "%s: %d", "place", 7), STATUS_INPUT);
    UNIT_INT(st.code, STATUS_INPUT);
    UNIT_TEXT(st.text, "place: 7");
}

static void long_text_is_cut_between_characters(void) {
    for (int lead = 0; lead < 4; lead++) {
        status st;
        char text[3000];
        size_t n = 0;
        for (int k = 0; k < lead; k++) text[n++] = 'x';
        while (n + 4 < sizeof text) n += (size_t)snprintf(text + n, 5, "\xf0\x9f\x98\x80");
        status_set(&st, STATUS_INPUT, "%s", text);
        size_t length = strlen(st.text);
        UNIT_CHECK(length < sizeof st.text && length > sizeof st.text - 8);
        UNIT_CHECK(strcmp(st.text + length - 3, "...") == 0);
        UNIT_CHECK(strstr(printed(NULL, st.text), "\\x") == NULL);
    }
}

static void plain_text_is_left_alone(void) {
    UNIT_TEXT(printed(NULL, "node 'größe' \\ 数"), "program: node 'größe' \\ 数");
    UNIT_TEXT(printed("warning: ", "x"), "program: warning: x");
}

static void hostile_text_is_escaped(void) {
    UNIT_TEXT(printed(NULL, "a\nb\tc\rd"), "program: a\\nb\\tc\\rd");
    UNIT_TEXT(printed(NULL, "\x1b[31m\x07\x7f"), "program: \\x1b[31m\\x07\\x7f");
    UNIT_TEXT(printed(NULL, "\xc2\x9b"), "program: \\xc2\\x9b");          /* a one-byte escape of old terminals */
    UNIT_TEXT(printed(NULL, "\xe2\x80\xae"), "program: \\xe2\\x80\\xae"); /* right to left from here */
    UNIT_TEXT(printed(NULL, "\xe2\x80\xa8"), "program: \\xe2\\x80\\xa8"); /* line separator */
    UNIT_TEXT(printed(NULL, "\xff\xc0\x80|\xed\xa0\x80"), "program: \\xff\\xc0\\x80|\\xed\\xa0\\x80");
    UNIT_TEXT(printed(NULL, "cut\xe2\x82"), "program: cut\\xe2\\x82");
}

static void lines_end_within_two_kilobytes(void) {
    static char text[15001];
    static const char *const pieces[] = {"\x01", "\xff", "\n", "x", "\xf0\x9f\x98\x80"};
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        size_t n = 0;
        while (n + 5 < sizeof text) n += (size_t)snprintf(text + n, 5, "%s", pieces[k]);
        const char *line = printed("warning: ", text);
        const size_t length = strlen(line);
        UNIT_CHECK(length < 2000 && length > 1980);
        UNIT_TEXT(line + length - 3, "...");
        UNIT_CHECK(k > 0 || strncmp(line + length - 7, "\\x01", 4) == 0); /* an escape is not halved */
    }
    memset(text, 'x', sizeof text);
    text[1999 - strlen("program: ") - 3] = 0;
    UNIT_INT(strlen(printed(NULL, text)), 1996);
}

int main(void) {
    UNIT_RUN(set_returns_the_code);
    UNIT_RUN(long_text_is_cut_between_characters);
    UNIT_RUN(plain_text_is_left_alone);
    UNIT_RUN(hostile_text_is_escaped);
    UNIT_RUN(lines_end_within_two_kilobytes);
    return unit_end();
}
