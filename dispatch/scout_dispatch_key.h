/* Keys of operations, as a dispatch table is asked for them. Part of libscout_dispatch, and of every dispatch.h that
 * `analyze dispatch` writes; C11 and C++17, nothing but the C library's headers, no allocation.
 *
 * The canonical text of an operation ("gemm;shape=2048,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b", the
 * `key` of reports and tables) is taken apart once into its form, where every number is a blank, and its numbers. To
 * ask again for another size only a number is set:
 *
 *     scout_dispatch_key key;
 *     const int64_t shape[] = {1, 4096, 4096};
 *     scout_dispatch_op op = {0};                      once, at start
 *     op.kind = "gemm", op.shape = shape, op.rank = 3, op.layout = "nn", op.type = op.weight_type = "fp16";
 *     op.weight_side = "b";
 *     scout_dispatch_key_make(&key, &op);
 *     const int m = scout_dispatch_key_place(&key, "shape", 0);
 *     …
 *     key.numbers[m] = rows;                           whenever it is wanted: no text is written or read
 */
#ifndef SCOUT_DISPATCH_KEY_H
#define SCOUT_DISPATCH_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define SCOUT_DISPATCH_AS(type, x) static_cast<type>(x)
#define SCOUT_DISPATCH_NULL        nullptr
#else
#define SCOUT_DISPATCH_AS(type, x) ((type)(x))
#define SCOUT_DISPATCH_NULL        NULL
#endif

#define SCOUT_DISPATCH_KEY_ROOM 1024 /* of a key's text, with the 0 at its end */
#define SCOUT_DISPATCH_NUMBERS  32   /* of a key; further ones stay text */

typedef struct scout_dispatch_key {
    uint64_t form_hash;
    uint32_t form_length, count;
    int64_t numbers[SCOUT_DISPATCH_NUMBERS]; /* in the order of the text; may be set */
    char form[SCOUT_DISPATCH_KEY_ROOM];
} scout_dispatch_key;

/* A dimension by name, beyond the shape: text where that is set, else numbers where these are, else the one number.
 * A number with a fraction is a text: the shortest one that reads back as the same number. */
typedef struct scout_dispatch_field {
    const char *name;
    const char *text;
    const int64_t *numbers;
    int count;
    int64_t number;
} scout_dispatch_field;

/* An operation by its parts; docs/formats.md tells what each kind has. What is NULL is not there. Fields may come in
 * any order; numbers that say what is customary (no residual, one group, strides of 1) are left out here as they are in
 * reports, all else that is customary (an alpha of 1) must not be told. */
typedef struct scout_dispatch_op {
    const char *kind; /* gemm, attention, norm, … */
    const char *what; /* which of its kind: rms, silu, transpose */
    const int64_t *shape;
    int rank;
    const char *layout, *mask;
    const char *type, *weight_type, *out_type; /* fp32, fp16, bf16, fp8e4m3fn, int8, … */
    const char *weight_side;                   /* of a gemm whose weight is constant: a or b */
    const scout_dispatch_field *fields;
    int field_count;
} scout_dispatch_op;

/* ---- hashing: the same on every machine, because the tables of dispatch.h are made on another one ---- */

static inline uint64_t scout_dispatch_mix(uint64_t hash, uint64_t x) {
    hash = (hash ^ x) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

static inline uint64_t scout_dispatch_text_hash(const char *text, size_t length) {
    uint64_t hash = length;
    size_t k = 0;
    while (k < length) {
        uint64_t word = 0;
        for (unsigned shift = 0; shift < 64 && k < length; shift += 8, k++)
            word |= SCOUT_DISPATCH_AS(uint64_t, SCOUT_DISPATCH_AS(unsigned char, text[k])) << shift;
        hash = scout_dispatch_mix(hash, word);
    }
    return hash;
}

static inline uint64_t scout_dispatch_key_hash(const scout_dispatch_key *key) {
    uint64_t hash = key->form_hash;
    for (uint32_t k = 0; k < key->count; k++)
        hash = scout_dispatch_mix(hash, SCOUT_DISPATCH_AS(uint64_t, key->numbers[k]));
    return hash;
}

/* ---- text to key ---- */

/* The number that a part of a key is, where it is written as numbers are in keys. How many bytes; 0: it is a text. */
static inline size_t scout_dispatch_key_number(const char *text, size_t length, int64_t *number) {
    const size_t sign = length > 0 && text[0] == '-' ? 1 : 0;
    const uint64_t most = SCOUT_DISPATCH_AS(uint64_t, INT64_MAX) + sign;
    uint64_t x = 0;
    size_t k = sign;
    for (; k < length && text[k] >= '0' && text[k] <= '9'; k++) {
        const uint64_t digit = SCOUT_DISPATCH_AS(uint64_t, text[k] - '0');
        if (x > (most - digit) / 10) return 0;
        x = 10 * x + digit;
    }
    if (k == sign || (k < length && text[k] != ',' && text[k] != ';')) return 0;
    if (text[sign] == '0' && k > 1) return 0; /* no leading zeros, no -0: one text for one number */
    if (sign)
        *number = -SCOUT_DISPATCH_AS(int64_t, x - 1) - 1;
    else
        *number = SCOUT_DISPATCH_AS(int64_t, x);
    return k;
}

/* 1: done; 0: no canonical text, or one that is too long. */
static inline int scout_dispatch_key_parse(scout_dispatch_key *key, const char *text, size_t length) {
    uint32_t used = 0;
    key->form_hash = 0, key->form_length = 0, key->count = 0;
    key->form[0] = 0;
    if (length == 0 || length >= SCOUT_DISPATCH_KEY_ROOM) return 0;
    for (size_t k = 0; k < length;) {
        const unsigned char c = SCOUT_DISPATCH_AS(unsigned char, text[k]);
        if (c <= ' ' || c == 0x7f) return 0;
        key->form[used++] = text[k++];
        if ((c != '=' && c != ',') || key->count == SCOUT_DISPATCH_NUMBERS) continue;
        const size_t digits = scout_dispatch_key_number(text + k, length - k, &key->numbers[key->count]);
        if (digits == 0) continue;
        key->form[used++] = ' '; /* which no canonical text has */
        key->count++;
        k += digits;
    }
    key->form[used] = 0;
    key->form_length = used;
    key->form_hash = scout_dispatch_text_hash(key->form, used);
    return 1;
}

/* Which of key->numbers is the `which`-th one (from 0) of a member: "shape", "kv_len". -1: it has none, or a text. */
static inline int scout_dispatch_key_place(const scout_dispatch_key *key, const char *member, int which) {
    const size_t length = strlen(member);
    const char *form = key->form;
    int place = 0;
    for (uint32_t k = 0; k < key->form_length; k++) {
        if (form[k] == ' ') place++;
        if (form[k] != ';' || strncmp(form + k + 1, member, length) != 0 || form[k + 1 + length] != '=') continue;
        const char *part = form + k + 2 + length;
        for (; which > 0 && *part && *part != ';'; part++) {
            if (*part == ' ') place++;
            if (*part == ',') which--;
        }
        return which == 0 && *part == ' ' ? place : -1;
    }
    return -1;
}

/* ---- parts to key ---- */

typedef struct scout_dispatch_writer {
    char *text;
    size_t room, used; /* used == room: it did not fit */
} scout_dispatch_writer;

static inline void scout_dispatch_put(scout_dispatch_writer *w, const char *text, size_t length) {
    if (length >= w->room - w->used) {
        w->used = w->room;
        return;
    }
    memcpy(w->text + w->used, text, length);
    w->used += length;
    w->text[w->used] = 0;
}

static inline void scout_dispatch_put_text(scout_dispatch_writer *w, const char *text) {
    scout_dispatch_put(w, text, strlen(text));
}

static inline void scout_dispatch_put_number(scout_dispatch_writer *w, int64_t number) {
    char digits[24];
    size_t k = sizeof digits;
    uint64_t x = number < 0 ? 0 - SCOUT_DISPATCH_AS(uint64_t, number) : SCOUT_DISPATCH_AS(uint64_t, number);
    do {
        digits[--k] = "0123456789"[x % 10];
        x /= 10;
    } while (x > 0);
    if (number < 0) digits[--k] = '-';
    scout_dispatch_put(w, digits + k, sizeof digits - k);
}

/* What would look like the key's own punctuation is written as %xx. */
static inline void scout_dispatch_put_escaped(scout_dispatch_writer *w, const char *text) {
    for (; *text; text++) {
        const unsigned char c = SCOUT_DISPATCH_AS(unsigned char, *text);
        if (c > ' ' && c != ';' && c != '=' && c != '%' && c != 0x7f) {
            scout_dispatch_put(w, text, 1);
        } else {
            const char hex[3] = {'%', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
            scout_dispatch_put(w, hex, 3);
        }
    }
}

static inline void scout_dispatch_put_member(scout_dispatch_writer *w, const char *name, const char *text) {
    if (!text) return;
    scout_dispatch_put(w, ";", 1);
    scout_dispatch_put_escaped(w, name);
    scout_dispatch_put(w, "=", 1);
    scout_dispatch_put_escaped(w, text);
}

static inline void scout_dispatch_put_numbers(scout_dispatch_writer *w, const char *name, const int64_t *numbers,
                                              int count) {
    scout_dispatch_put(w, ";", 1);
    scout_dispatch_put_escaped(w, name);
    scout_dispatch_put(w, "=", 1);
    for (int k = 0; k < count; k++) {
        if (k > 0) scout_dispatch_put(w, ",", 1);
        scout_dispatch_put_number(w, numbers[k]);
    }
}

/* Whether numbers say what is so anyway: then no key has them. Of lists, where all of them do. */
static inline int scout_dispatch_customary(const char *name, const int64_t *numbers, int count) {
    static const struct {
        const char *name;
        int64_t number;
    } known[] = {
        {"batch", 1},       {"bias", 0},           {"dilation", 1},
        {"directions", 1},  {"global", 0},         {"group", 1},
        {"indices_out", 0}, {"initial_state", 0},  {"inner", 1},
        {"input_bias", 0},  {"interleaved", 0},    {"lengths", 0},
        {"offset_mask", 0}, {"output_padding", 0}, {"packed_tokens", 0},
        {"pads", 0},        {"peephole", 0},       {"qk_norm", 0},
        {"residual", 0},    {"residual_out", 0},   {"scores_out", 0},
        {"sink", 0},        {"stride", 1},         {"training", 0},
        {"transposed", 0},  {"zero_points", 0},    {"weight_rearranged", 0},
    };
    size_t k = 0;
    while (k < sizeof known / sizeof known[0] && strcmp(known[k].name, name) != 0) k++;
    if (k == sizeof known / sizeof known[0]) return 0;
    for (int n = 0; n < count; n++)
        if (numbers[n] != known[k].number) return 0;
    return 1;
}

static inline void scout_dispatch_put_field(scout_dispatch_writer *w, const scout_dispatch_field *f) {
    const int64_t *numbers = f->numbers ? f->numbers : &f->number;
    const int count = f->numbers ? f->count : 1;
    if (f->text)
        scout_dispatch_put_member(w, f->name, f->text);
    else if (!scout_dispatch_customary(f->name, numbers, count))
        scout_dispatch_put_numbers(w, f->name, numbers, count);
}

/* The first field by name behind the one that was written last; the weight's side is one of them. NULL: none is left.
 */
static inline const scout_dispatch_field *scout_dispatch_next_field(const scout_dispatch_op *op, const char *last,
                                                                    const scout_dispatch_field *side) {
    const scout_dispatch_field *next = side && strcmp(side->name, last) > 0 ? side : SCOUT_DISPATCH_NULL;
    for (int k = 0; k < op->field_count; k++) {
        const scout_dispatch_field *f = &op->fields[k];
        if (strcmp(f->name, last) > 0 && (!next || strcmp(f->name, next->name) < 0)) next = f;
    }
    return next;
}

/* The canonical text; `room` of SCOUT_DISPATCH_KEY_ROOM is enough for all that tables have. How many bytes; 0: it does
 * not fit. */
static inline size_t scout_dispatch_key_write(const scout_dispatch_op *op, char *text, size_t room) {
    scout_dispatch_writer w;
    scout_dispatch_field side;
    const char *last = "";
    const char *out =
        op->out_type && op->type && strcmp(op->out_type, op->type) == 0 ? SCOUT_DISPATCH_NULL : op->out_type;
    w.text = text, w.room = room, w.used = 0;
    memset(&side, 0, sizeof side);
    side.name = "weight_side", side.text = op->weight_side;
    if (room == 0) return 0;
    scout_dispatch_put_text(&w, op->kind);
    scout_dispatch_put_member(&w, "what", op->what);
    scout_dispatch_put_numbers(&w, "shape", op->shape, op->rank);
    scout_dispatch_put_member(&w, "layout", op->layout);
    scout_dispatch_put_member(&w, "mask", op->mask);
    scout_dispatch_put_member(&w, "type", op->type);
    scout_dispatch_put_member(&w, "weight", op->weight_type);
    scout_dispatch_put_member(&w, "out", out);
    for (;;) {
        const scout_dispatch_field *f = scout_dispatch_next_field(op, last, side.text ? &side : SCOUT_DISPATCH_NULL);
        if (!f) break;
        scout_dispatch_put_field(&w, f);
        last = f->name;
    }
    return w.used < w.room ? w.used : 0;
}

/* 1: done; 0: it is longer than any key may be. */
static inline int scout_dispatch_key_make(scout_dispatch_key *key, const scout_dispatch_op *op) {
    char text[SCOUT_DISPATCH_KEY_ROOM];
    return scout_dispatch_key_parse(key, text, scout_dispatch_key_write(op, text, sizeof text));
}

#endif
