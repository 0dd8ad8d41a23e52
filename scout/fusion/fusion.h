/* Fusions: what ops.json says could run as one, and how it is measured. A fusion is one ordinary operation (the fused
 * one) whose parts in sequence are measured beside it on the same tensors (scout/measure/parts.h); where it cannot be
 * told how the parts' tensors lie in those of the fused one, the parts' own times are added up. */
#pragma once

#include "common/map.h"
#include "scout/input/operation.h"
#include "scout/plugin.h"

enum { FUSION_PARTS = 16, FUSION_ALIGNMENT = 256 }; /* ALIGNMENT: bytes that candidates may count on */

/* Where a tensor of a part lies. */
typedef struct fusion_place {
    const char *tensor; /* of the part, by name */
    const char *
        of; /* a tensor of the fused operation, by name or, as "#3", by its number; "@2": what part 2 writes for others;
               "=0", "=1", "=8", "=0.125", "=variance": all of it is that number, the last one such that a batch norm
               divides by 1 */
    int64_t offset; /* elements from the beginning of that */
    int64_t stride; /* elements between rows (the last dimension but one); 0: as the part has it */
} fusion_place;

typedef struct fusion_part {
    const operation *operation;
    const char *candidate, *variant; /* what it runs as; NULL: the library's default */
    int place_count;                 /* one per tensor */
    fusion_place *places;
} fusion_part;

typedef enum fusion_how {
    FUSION_SEQUENCE, /* the parts in sequence, on the fused operation's tensors */
    FUSION_SUM,      /* each part by itself, times added up */
    FUSION_SKIPPED
} fusion_how;

typedef struct fusion {
    const char *id, *pattern;
    int64_t count, selected, saved_bytes;
    int op_count;
    const operation *ops[FUSION_PARTS]; /* of the list that it was read with */
    int *sites;                         /* where it could be done: op_count occurrences of the dataflow each */
    int site_count;
    fusion_how how;
    const operation *recognised; /* that is the fused one; NULL: `fused` is made of the parts */
    operation fused;
    fusion_part *parts; /* op_count of them; their places: of FUSION_SEQUENCE */
    const char *skip_code, *skip_text;
    bool turned; /* of operations with their channels last: it stands in no ops.json */
} fusion;

typedef struct fusion_list {
    fusion *items;
    int count;
} fusion_list;

/* All of `list` (an ops.json; the short form has none). In the arena, and borrowed from the list. Fails through the
 * guard: STATUS_INPUT with file, fusion and what is wrong. */
void fusion_read(const operation_list *list, const char *path, arena *a, fusion_list *out);

/* Finds the operations that were recognised from others, by what they were. `ids`: operations of the list by id.
 * fusion_make.c */
void fusion_recognised(const operation_list *list, const map *ids, map *by_parts);

/* Makes the fused operation and the parts' places, or tells why not: fills all from `how` on. fusion_make.c */
void fusion_make(fusion *f, const map *by_parts, arena *a);

/* That, and its name. */
void fusion_finish(fusion *f, const map *by_parts, arena *a);

/* Beside the fused operation's key: what else tells two measurements of fusions apart. In the arena. */
char *fusion_key(const fusion *f, arena *a);

/* ---- between processes: the parts with what they run as ---- */

json_t *fusion_to_json(const fusion *f, json_builder *b);
/* Into the arena; fails through its guard. 0: there are none. */
int fusion_from_json(const json_t *from, arena *a, fusion_part **parts);
