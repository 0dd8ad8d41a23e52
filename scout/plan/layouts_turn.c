/* Records in turned form: a row for each sort of operation that has one. */
#include "scout/plan/layouts.h"

#include "common/checked.h"
#include "scout/op/norm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct turner {
    const oprec *from;
    const layouts_dims *image; /* of what a reduction or a norm reads */
    arena *arena;
    oprec *to;
} turner;

enum { LEAST_RANK = 3, MOST_RANK = 5 }; /* a batch, channels, and one to three dimensions of space */

static bool is_image(int rank) { return rank >= LEAST_RANK && rank <= MOST_RANK; }

/* [n, c, space…] becomes [n, space…, c]. */
static void turn_dims(int rank, const int64_t *dims, int64_t *to) {
    to[0] = dims[0];
    for (int d = 2; d < rank; d++) to[d - 1] = dims[d];
    to[rank - 1] = dims[1];
}

static void turn_shape(turner *t) {
    int64_t dims[MOST_RANK];
    turn_dims(t->from->rank, t->from->shape, dims);
    oprec_set_shape(t->to, t->arena, t->from->rank, dims);
}

static int64_t product(const int64_t *dims, int from, int to) {
    int64_t all = 1;
    for (int d = from; d < to; d++) all = checked_mul(all, dims[d]);
    return all;
}

static bool is(const oprec *rec, const char *what) { return rec->what && strcmp(rec->what, what) == 0; }

/* ---- windows, and what brings an image to another size ---- */

static bool has_input(const oprec *rec) {
    const opfield *input = oprec_field(rec, "input");
    return is_image(rec->rank) && (!rec->layout || strcmp(rec->layout, "nchw") == 0) && input &&
           input->kind == OPFIELD_INTS && input->n == rec->rank;
}

static bool has_filter(const oprec *rec) { return !rec->what && has_input(rec); }

/* Of the largest where it stands is not only the number told: that place depends on the order. */
static bool has_window(const oprec *rec) {
    return (is(rec, "max") || is(rec, "average")) && has_input(rec) && !oprec_field(rec, "indices") &&
           !oprec_field(rec, "storage_order");
}

static void turn_sizes(turner *t) {
    int64_t dims[MOST_RANK];
    turn_shape(t);
    turn_dims(t->from->rank, oprec_field(t->from, "input")->ints, dims);
    oprec_set_ints(t->to, t->arena, "input", t->from->rank, dims);
}

static bool turn_window(turner *t) {
    turn_sizes(t);
    t->to->layout = "nhwc";
    return true;
}

/* Three dimensions are interpolated: channels, which stay as many, may be one of them. */
static bool has_sizes(const oprec *rec) { return is(rec, "resize") && has_input(rec) && rec->rank < MOST_RANK; }

static bool turn_plain(turner *t) {
    turn_sizes(t);
    return true;
}

/* Of a slice its size is told, and not where it begins. */
static bool has_part(const oprec *rec) {
    return (is(rec, "repeat") || is(rec, "slice")) && has_input(rec) && !oprec_field(rec, "steps") &&
           !oprec_field(rec, "axes");
}

static bool has_edges(const oprec *rec) {
    const opfield *pads = oprec_field(rec, "pads");
    return is(rec, "pad") && has_input(rec) && !oprec_field(rec, "axes") && pads && pads->kind == OPFIELD_INTS &&
           pads->n == 2 * rec->rank;
}

static bool turn_edges(turner *t) {
    const int rank = t->from->rank;
    const int64_t *pads = oprec_field(t->from, "pads")->ints;
    int64_t turned[2 * MOST_RANK];
    turn_sizes(t);
    turn_dims(rank, pads, turned);
    turn_dims(rank, pads + rank, turned + rank);
    oprec_set_ints(t->to, t->arena, "pads", 2 * rank, turned);
    return true;
}

/* ---- elementwise ---- */

static bool has_elements(const oprec *rec) { return is_image(rec->rank) && !oprec_field(rec, "chain"); }

/* Dimensions of an operand as its form tells them, as many as the output has; false: it is no such form. */
static bool read_form(const char *form, size_t length, int rank, const int64_t *shape, int64_t *dims) {
    int64_t told[MOST_RANK];
    int count = 0;
    for (int d = 0; d < rank; d++) dims[d] = 1;
    if (length == 6 && memcmp(form, "vector", length) == 0) {
        dims[rank - 1] = shape[rank - 1];
        return true;
    }
    for (const char *at = form; at < form + length; at++) {
        char *end;
        const long long x = strtoll(at, &end, 10);
        if (end == at || end > form + length || x < 1 || count == rank) return false;
        told[count++] = x;
        if (end < form + length && (*end != 'x' || end + 1 == form + length)) return false;
        at = end;
    }
    for (int k = 0; k < count; k++) dims[rank - count + k] = told[k];
    return count > 0;
}

/* As extract_ops tells it: by the last dimension alone it is a vector, and leading ones are not told. */
static int write_form(int rank, const int64_t *shape, const int64_t *dims, char *to, size_t room) {
    int first = 0, used = 0;
    while (first < rank - 1 && dims[first] == 1) first++;
    if (first == rank - 1 && dims[first] == shape[first]) return snprintf(to, room, "vector");
    for (int d = first; d < rank && used >= 0 && (size_t)used < room; d++)
        used += snprintf(to + used, room - (size_t)used, "%s%lld", d > first ? "x" : "", (long long)dims[d]);
    return used;
}

static bool is_as_it_was(const char *form, size_t length) {
    static const char *const names[] = {"tensor", "scalar", "same"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (length == strlen(names[k]) && memcmp(form, names[k], length) == 0) return true;
    return false;
}

static bool turn_operands(turner *t, const char *text, char *to, size_t room) {
    size_t used = 0;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, ",");
        int64_t dims[MOST_RANK], turned[MOST_RANK];
        int n;
        if (is_as_it_was(at, length)) {
            n = snprintf(to + used, room - used, "%.*s", (int)length, at);
        } else {
            if (!read_form(at, length, t->from->rank, t->from->shape, dims)) return false;
            turn_dims(t->from->rank, dims, turned);
            n = write_form(t->from->rank, t->to->shape, turned, to + used, room - used);
        }
        if (n < 0 || (size_t)n + 1 >= room - used) return false;
        used += (size_t)n;
        at += length;
        if (*at == ',') {
            to[used++] = *at++;
            to[used] = 0;
        }
    }
    return true;
}

/* What reads nothing but tensors of the output's size is the same whatever the order of its dimensions: it keeps its
 * record. */
static bool turn_elements(turner *t) {
    const opfield *inputs = oprec_field(t->from, "inputs");
    char text[256];
    if (inputs && inputs->kind != OPFIELD_TEXT) return false;
    turn_shape(t);
    if (inputs && !turn_operands(t, inputs->text, text, sizeof text)) return false;
    if (!inputs || strcmp(text, inputs->text) == 0)
        *t->to = *t->from;
    else
        oprec_set_text(t->to, "inputs", arena_printf(t->arena, "%s", text));
    return true;
}

/* ---- reductions ---- */

static bool has_rows(const oprec *rec) {
    return rec->rank == 2 && !oprec_field(rec, "axes") && !oprec_field(rec, "input");
}

/* Of all of space, for each channel. */
static bool turn_rows(turner *t) {
    const layouts_dims *image = t->image;
    int64_t dims[MOST_RANK], axes[MOST_RANK];
    if (!image || !is_image(image->rank)) return false;
    for (int d = 2; d < image->rank; d++) axes[d - 2] = d - 1;
    if (t->from->shape[1] != product(image->of, 2, image->rank) ||
        t->from->shape[0] != checked_mul(image->of[0], image->of[1]))
        return false;
    turn_dims(image->rank, image->of, dims);
    oprec_set_ints(t->to, t->arena, "input", image->rank, dims);
    oprec_set_ints(t->to, t->arena, "axes", image->rank - 2, axes);
    return true;
}

/* ---- norms of channels ---- */

static bool has_channels(const oprec *rec) {
    return (is(rec, "batch") || is(rec, "group")) && rec->rank == 2 && oprec_int(rec, "channels", 0) > 0 &&
           (!rec->layout || strcmp(rec->layout, "nchw") == 0);
}

static bool is_of(const oprec *rec, const layouts_dims *image) {
    return image && is_image(image->rank) && image->of[1] == oprec_int(rec, "channels", 0) &&
           product(image->of, 0, image->rank) == checked_mul(rec->shape[0], rec->shape[1]);
}

/* A batch norm, which has no statistics of its own, is one of as many smaller images, of one place each. */
static bool turn_channels(turner *t) {
    const int64_t places[] = {checked_mul(t->from->shape[0], t->from->shape[1]), 1};
    if (!is_of(t->from, t->image)) return false;
    if (is(t->from, "batch") && t->from->shape[0] != checked_mul(t->image->of[0], t->image->of[1])) return false;
    if (is(t->from, "group")) {
        const int64_t rows = t->from->shape[0],
                      groups = norm_groups(rows, t->from->shape[1], oprec_int(t->from, "channels", 0));
        if (groups < 1 || rows / groups != t->image->of[0]) return false; /* it is read as one of other images */
        t->to->layout = "nhwc";
    } else {
        oprec_set_shape(t->to, t->arena, 2, places);
    }
    return true;
}

/* ---- shuffled channels ---- */

static bool has_groups(const oprec *rec) {
    const opfield *input = oprec_field(rec, "input"), *perm = oprec_field(rec, "perm");
    if (!is(rec, "transpose") || rec->rank < 4 || !input || !perm || input->n != rec->rank || perm->n != rec->rank)
        return false;
    for (int d = 0; d < rec->rank; d++)
        if (perm->ints[d] != (d == 1 ? 2 : d == 2 ? 1 : d)) return false;
    return true;
}

/* Groups of channels and the channels of each change places, at each place of all images alike. */
static bool turn_groups(turner *t) {
    const layouts_dims *image = t->image;
    const int64_t *dims = oprec_field(t->from, "input")->ints, perm[] = {0, 2, 1};
    const int64_t space = product(dims, 3, t->from->rank), places = checked_mul(dims[0], space);
    if (!image || !is_image(image->rank) || image->of[0] != dims[0] || image->of[1] != checked_mul(dims[1], dims[2]) ||
        space != product(image->of, 2, image->rank))
        return false;
    const int64_t from[] = {places, dims[1], dims[2]}, to[] = {places, dims[2], dims[1]};
    oprec_set_shape(t->to, t->arena, 3, to);
    oprec_set_ints(t->to, t->arena, "input", 3, from);
    oprec_set_ints(t->to, t->arena, "perm", 3, perm);
    return true;
}

/* ---- channels joined and split ---- */

static bool joins_channels(const oprec *rec) {
    return is_image(rec->rank) && (is(rec, "concat") || is(rec, "split")) && oprec_int(rec, "axis", 0) == 1;
}

static bool turn_joined(turner *t) {
    turn_shape(t);
    oprec_set_int(t->to, "axis", t->from->rank - 1);
    return true;
}

/* ---- all of them ---- */

static const struct {
    op_kind kind;
    bool (*may)(const oprec *rec);
    bool (*turn)(turner *t);
} sorts[] = {
    {OP_CONV, has_filter, turn_window},     {OP_POOL, has_window, turn_window},
    {OP_POOL, has_sizes, turn_plain},       {OP_ELEMENTWISE, has_elements, turn_elements},
    {OP_REDUCE, has_rows, turn_rows},       {OP_NORM, has_channels, turn_channels},
    {OP_MOVE, joins_channels, turn_joined}, {OP_MOVE, has_part, turn_plain},
    {OP_MOVE, has_edges, turn_edges},       {OP_MOVE, has_groups, turn_groups},
};
enum { SORTS = sizeof sorts / sizeof *sorts };

static int sort_of(const oprec *rec) {
    for (int k = 0; k < SORTS; k++)
        if (sorts[k].kind == rec->kind && sorts[k].may(rec)) return k;
    return -1;
}

bool layouts_may_turn(const oprec *rec) { return sort_of(rec) >= 0; }

bool layouts_turn(const oprec *from, const layouts_dims *image, arena *a, oprec *to) {
    const int k = sort_of(from);
    turner t = {from, image, a, to};
    *to = *from;
    return k >= 0 && sorts[k].turn(&t);
}

/* Batches and space may be several dimensions, or a batch of one none. */
bool layouts_is_turn(const oprec *rec, const layouts_dims *image, bool back) {
    const opfield *input = oprec_field(rec, "input"), *perm = oprec_field(rec, "perm");
    const bool lists = input && perm && input->kind == OPFIELD_INTS && perm->kind == OPFIELD_INTS;
    if (rec->kind != OP_MOVE || !rec->what || strcmp(rec->what, "transpose") != 0 || !lists || input->n != perm->n ||
        input->n < 2 || !is_image(image->rank))
        return false;
    const int rank = input->n, last = rank - 1;
    int first = 0; /* dimension that moves */
    while (first < last && perm->ints[first] == first) first++;
    for (int d = first; d < rank; d++)
        if (perm->ints[d] != (back ? (d == first ? last : d - 1) : (d == last ? first : d + 1))) return false;
    const int64_t *dims = input->ints;
    return dims[back ? last : first] == image->of[1] && product(dims, 0, first) == image->of[0] &&
           product(dims, back ? first : first + 1, back ? last : rank) == product(image->of, 2, image->rank);
}

void layouts_conversion(const layouts_dims *image, dtype type, int64_t bytes, bool back, arena *a, oprec *to) {
    static const int64_t perm[] = {0, 2, 1};
    const int64_t space = product(image->of, 2, image->rank);
    const int64_t file[] = {image->of[0], image->of[1], space}, turned[] = {image->of[0], space, image->of[1]};
    *to = (oprec){.kind = OP_MOVE, .what = "transpose", .type = type, .bytes_read = bytes, .bytes_written = bytes};
    oprec_set_shape(to, a, 3, back ? file : turned);
    oprec_set_ints(to, a, "input", 3, back ? turned : file);
    oprec_set_ints(to, a, "perm", 3, perm);
}
