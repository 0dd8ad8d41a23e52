/* The wire reader and the check of a file against the schema: what is right passes, what is wrong is refused at its
 * byte. */
#include "extract/read/wire_schema.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static guard g;

static wire over(const void *bytes, size_t size) {
    guard_init(&g);
    return (wire){.base = bytes, .end = size, .guard = &g};
}

/* Whether the schema check accepts a file; g.st says why not. */
static bool accepts(const void *bytes, size_t size) {
    const wire w = over(bytes, size);
    if (!guard_enter(&g)) return false;
    wire_schema_check(&w, NULL, NULL);
    return true;
}

static bool says(const char *what) { return strstr(g.st.text, what) != NULL; }

static void numbers(void) {
    static const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    wire w = over(bytes, sizeof bytes);
    if (!UNIT_CHECK(guard_enter(&g))) return;
    UNIT_INT(wire_varint(&w), 0);
    UNIT_INT(wire_varint(&w), 127);
    UNIT_INT(wire_varint(&w), 128);
    UNIT_CHECK(wire_varint(&w) == UINT64_MAX);
    UNIT_INT(w.pos, sizeof bytes);
}

/* One varint that must be refused; the offset of its first byte is in the message. */
static bool refuses_varint(const void *bytes, size_t size) {
    wire w = over(bytes, size);
    if (!guard_enter(&g)) return says("byte 0: ") && g.st.code == STATUS_INPUT;
    wire_varint(&w);
    return false;
}

static void bad_numbers(void) {
    UNIT_CHECK(refuses_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10)); /* 65 bits */
    UNIT_CHECK(refuses_varint("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11));
    UNIT_CHECK(refuses_varint("\x80", 1));
    UNIT_CHECK(refuses_varint("", 0));
}

static void fields(void) {
    static const uint8_t bytes[] = {0x08, 0x05, 0x12, 0x02, 'h', 'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0};
    wire w = over(bytes, sizeof bytes);
    wire_field f;
    if (!UNIT_CHECK(guard_enter(&g))) return;
    uint64_t steps = 0;
    w.steps = &steps;
    UNIT_CHECK(wire_next(&w, &f) && f.number == 1 && f.type == WIRE_VARINT && f.value == 5);
    UNIT_CHECK(wire_next(&w, &f) && f.number == 2 && f.type == WIRE_BYTES && f.payload.offset == 4 &&
               f.payload.size == 2);
    UNIT_CHECK(wire_next(&w, &f) && f.number == 3 && f.type == WIRE_FIXED32 && f.value == 1);
    UNIT_CHECK(wire_next(&w, &f) && f.number == 4 && f.type == WIRE_FIXED64 && f.value == 2 && f.payload.size == 8);
    UNIT_CHECK(!wire_next(&w, &f));
    UNIT_INT(steps, 4);
}

static void damage_is_refused_at_its_byte(void) {
    UNIT_CHECK(accepts("\x08\x07", 2)); /* a model of which only the version is known: no graph, but good wire format */
    UNIT_CHECK(!accepts("\x08", 1) && says("byte 1: "));
    UNIT_CHECK(!accepts("\x08\x07\x12\x05"
                        "ab",
                        6) &&
               says("byte 3: a field of 5 bytes"));
    UNIT_CHECK(!accepts("\x08\x07\x0b\x04", 4) && says("wire type 3"));
    UNIT_CHECK(!accepts("\x00\x01", 2) && says("field number 0"));
    UNIT_CHECK(!accepts("\x0a\x01\x07", 3) && says("field 1 of a model has wire type 2"));
    UNIT_CHECK(!accepts("\x3a\x03\x0a\x01\x80", 5) && says("byte 4: "));
    UNIT_CHECK(accepts("\xfa\x3e\x02\xff\xff", 5)); /* a field that is not known is stepped over */
}

/* A graph in an attribute of a node of a graph, `depth` times. */
static bool accepts_depth(int depth) {
    static uint8_t bytes[1 << 20];
    size_t at = sizeof bytes, size = 0;
    for (int k = 0; k < depth; k++) {
        static const uint8_t tags[] = {0x0a, 0x2a, 0x32}; /* node, attribute, graph: from outside in */
        for (int part = 2; part >= 0; part--) {
            uint8_t length[10];
            int n = 0;
            for (size_t rest = size; n == 0 || rest; rest >>= 7)
                length[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
            at -= (size_t)n;
            memcpy(bytes + at, length, (size_t)n);
            bytes[--at] = tags[part];
            size += (size_t)n + 1;
        }
    }
    uint8_t *file = malloc(size + 11);
    if (!file) return false;
    int n = 0;
    file[n++] = 0x3a;
    for (size_t rest = size; n == 1 || rest; rest >>= 7)
        file[n++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    memcpy(file + n, bytes + at, size);
    const bool good = accepts(file, (size_t)n + size);
    free(file);
    return good;
}

static void nesting_is_bounded(void) {
    UNIT_CHECK(accepts_depth(1));
    UNIT_CHECK(accepts_depth(63));
    UNIT_CHECK(!accepts_depth(64) && says("nested more than 64 deep"));
    UNIT_CHECK(!accepts_depth(20000) && says("nested more than"));
}

static void packed_numbers_are_checked(void) {
    UNIT_CHECK(accepts("\x3a\x06\x2a\x04\x0a\x02\x01\x02", 8));                      /* dims 1, 2 */
    UNIT_CHECK(!accepts("\x3a\x06\x2a\x04\x0a\x02\x01\x82", 8) && says("byte 7: ")); /* the second is cut */
    UNIT_CHECK(!accepts("\x3a\x07\x2a\x05\x22\x03\x01\x02\x03", 9) &&
               says("not a multiple of")); /* float_data of 3 bytes */
}

int main(void) {
    UNIT_RUN(numbers);
    UNIT_RUN(bad_numbers);
    UNIT_RUN(fields);
    UNIT_RUN(damage_is_refused_at_its_byte);
    UNIT_RUN(nesting_is_bounded);
    UNIT_RUN(packed_numbers_are_checked);
    return unit_end();
}
