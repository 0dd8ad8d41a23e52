/* What the fronts share: a caller's structs of any size, settings as fields, types. */
#pragma once

#include "runtime/runtime_internal.h"

#include <math.h>
#include <string.h>

/* Members beyond the caller's size are 0; given NULL: all are. A size that no version of the struct has is refused. */
static inline bool runtime_front_more(void *to, size_t size, const void *given, scout_run_error *error) {
    uint32_t told = 0;
    memset(to, 0, size);
    if (!given) return true;
    memcpy(&told, given, sizeof told);
    if (told < sizeof told || told > 4096)
        return runtime_refuse(error, "expected size to be the size of the struct, got %u", (unsigned)told);
    memcpy(to, given, told < size ? told : size);
    return true;
}
#define RUNTIME_FRONT_MORE(to, given, error) runtime_front_more(to, sizeof *(to), given, error)

/* The output's type is told where it is another one. */
static inline void runtime_front_types(oprec *rec, const scout_run_tensor *out) {
    rec->out_type = (dtype)out->type != rec->type ? (dtype)out->type : DTYPE_NONE;
}

/* Numbers that are whole are whole numbers. */
static inline void runtime_front_number(oprec *rec, const char *name, double x) {
    if (fabs(x) < 0x1p62 && x == (double)(int64_t)x)
        oprec_set_int(rec, name, (int64_t)x);
    else
        oprec_set_real(rec, name, x);
}

/* All settings as named dimensions. */
static inline void runtime_front_settings(const runtime_call *call, arena *a, oprec *rec) {
    for (int k = 0; k < call->setting_count; k++) {
        const runtime_setting *s = &call->settings[k];
        int64_t whole[6];
        for (int n = 0; n < s->count; n++) whole[n] = (int64_t)fmax(-0x1p62, fmin(s->numbers[n], 0x1p62));
        if (s->text)
            oprec_set_text(rec, s->name, arena_strndup(a, s->text, strlen(s->text)));
        else if (s->count == 1)
            runtime_front_number(rec, s->name, s->numbers[0]);
        else
            oprec_set_ints(rec, a, s->name, s->count, whole);
    }
}
