/* From a caller's tensors to an operation. What tells calls apart is written as words (types, sizes, strides,
 * settings) and looked up in a table that readers never lock: calls that were seen before are a launch at once. Each
 * other one is described, found among the operations, held against what that expects, and entered. */
#include "runtime/runtime_internal.h"

#include "common/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 320, FIRST_SLOTS = 256 };

typedef struct words {
    uint64_t at[WORDS];
    uint32_t count; /* WORDS: too many */
} words;

typedef struct known_call {
    const scout_run_op *op;
    uint8_t bind[SCOUT_MAX_TENSORS]; /* the call's tensor that is the operation's */
    uint64_t hash;
    uint32_t count;
    uint64_t words[];
} known_call;

/* A table is never changed but by filling free slots; a larger one takes its place. */
typedef struct runtime_calls {
    struct runtime_calls *older; /* which a reader may still look at */
    uint32_t mask, count;
    _Atomic(known_call *) slots[];
} runtime_calls;

/* ---- words ---- */

static void put(words *w, uint64_t word) {
    if (w->count < WORDS) w->at[w->count++] = word;
}

static void put_text(words *w, const char *text) {
    const size_t length = text ? strlen(text) : 0;
    put(w, (uint64_t)length << 1 | (text != NULL));
    for (size_t k = 0; k < length; k += 8) {
        uint64_t word = 0;
        memcpy(&word, text + k, length - k < 8 ? length - k : 8);
        put(w, word);
    }
}

static void put_tensor(words *w, const scout_run_tensor *t) {
    if (!t) {
        put(w, 0);
        return;
    }
    put(w, (uint64_t)(uint32_t)t->type << 8 | (uint32_t)t->rank << 1 | 1);
    for (int32_t d = 0; d < t->rank && d < SCOUT_RUN_RANK; d++) {
        put(w, (uint64_t)t->dims[d]);
        put(w, (uint64_t)t->strides[d]);
    }
}

/* Its name is a front's own text, and stands for itself. */
static void put_setting(words *w, const runtime_setting *s) {
    put(w, (uint64_t)(uintptr_t)s->name);
    put_text(w, s->text);
    for (int k = 0; !s->text && k < s->count; k++) {
        uint64_t bits;
        memcpy(&bits, &s->numbers[k], sizeof bits);
        put(w, bits);
    }
}

static uint64_t write_words(const runtime_call *call, words *w) {
    uint64_t hash = 0;
    w->count = 0;
    put(w, (uint64_t)(uintptr_t)call->front);
    put_text(w, call->what);
    for (int k = 0; k < call->tensor_count; k++) put_tensor(w, call->tensors[k]);
    for (int k = 0; k < call->setting_count; k++) put_setting(w, &call->settings[k]);
    for (uint32_t k = 0; k < w->count; k++) hash = scout_dispatch_mix(hash, w->at[k]);
    return hash;
}

/* ---- the table ---- */

static known_call *look_up(const runtime_calls *calls, uint64_t hash, const words *w) {
    for (uint32_t at = (uint32_t)hash;; at++) {
        known_call *known = atomic_load_explicit(&calls->slots[at & calls->mask], memory_order_acquire);
        if (!known) return NULL;
        if (known->hash == hash && known->count == w->count &&
            memcmp(known->words, w->at, w->count * sizeof *w->at) == 0)
            return known;
    }
}

static void fill_slot(runtime_calls *calls, known_call *known) {
    uint32_t at = (uint32_t)known->hash;
    while (atomic_load_explicit(&calls->slots[at & calls->mask], memory_order_relaxed)) at++;
    atomic_store_explicit(&calls->slots[at & calls->mask], known, memory_order_release);
    calls->count++;
}

/* Under the lock: a table with room for one more; NULL: no memory. */
static runtime_calls *with_room(scout_run *run) {
    runtime_calls *old = atomic_load(&run->calls);
    if (old && old->count < old->mask / 2) return old;
    const uint32_t slots = old ? (old->mask + 1) * 2 : FIRST_SLOTS;
    runtime_calls *calls = calloc(1, sizeof *calls + slots * sizeof calls->slots[0]);
    if (!calls) return NULL;
    calls->older = old;
    calls->mask = slots - 1;
    for (uint32_t k = 0; old && k <= old->mask; k++) {
        known_call *known = atomic_load(&old->slots[k]);
        if (known) fill_slot(calls, known);
    }
    atomic_store_explicit(&run->calls, calls, memory_order_release);
    return calls;
}

/* The one of the table, which may be another thread's that came first. */
static known_call *enter(scout_run *run, known_call *made, const words *w) {
    pthread_mutex_lock(&run->lock);
    runtime_calls *calls = with_room(run);
    known_call *known = calls ? look_up(calls, made->hash, w) : NULL;
    if (calls && !known) fill_slot(calls, made);
    pthread_mutex_unlock(&run->lock);
    if (calls && !known) return made;
    free(made);
    return known;
}

void runtime_calls_free(scout_run *run) {
    runtime_calls *calls = atomic_load(&run->calls);
    for (uint32_t k = 0; calls && k <= calls->mask; k++) free(atomic_load(&calls->slots[k]));
    while (calls) {
        runtime_calls *older = calls->older;
        free(calls);
        calls = older;
    }
}

/* ---- what fronts share ---- */

bool runtime_refuse(scout_run_error *error, const char *format, ...) {
    char text[480];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    runtime_say(error, SCOUT_RUN_INVALID, "%s", text);
    return false;
}

bool runtime_dense(const scout_run_tensor *t) {
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (t->dims[d] != 1 && t->strides[d] != stride) return false;
        stride *= t->dims[d];
    }
    return true;
}

int64_t runtime_elements(const scout_run_tensor *t) {
    int64_t count = 1;
    for (int32_t d = 0; d < t->rank; d++) count *= t->dims[d];
    return count;
}

scout_run_tensor scout_run_dense(void *data, int32_t type, int32_t rank, const int64_t *dims) {
    scout_run_tensor t = {.data = data, .type = type, .rank = rank};
    int64_t stride = 1;
    for (int32_t d = rank < SCOUT_RUN_RANK ? rank - 1 : SCOUT_RUN_RANK - 1; d >= 0; d--) {
        t.dims[d] = dims[d];
        t.strides[d] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)dims[d]);
    }
    return t;
}

void runtime_call_begin(runtime_call *call, const runtime_front *front, const char *what, int tensor_count,
                        const scout_run_weight *packed) {
    call->front = front, call->what = what, call->packed = packed;
    call->tensor_count = tensor_count, call->setting_count = 0;
    call->extra.name = NULL;
    for (int k = 0; k < tensor_count; k++) call->tensors[k] = NULL;
}

void runtime_call_set(runtime_call *call, const char *name, const char *text, int count, const double *numbers) {
    runtime_setting *s = &call->settings[call->setting_count++];
    s->name = name, s->text = text, s->count = count;
    for (int k = 0; k < count; k++) s->numbers[k] = numbers[k];
}

const runtime_setting *runtime_call_setting(const runtime_call *call, const char *name) {
    for (int k = 0; k < call->setting_count; k++)
        if (strcmp(call->settings[k].name, name) == 0) return &call->settings[k];
    return NULL;
}

/* ---- describing ---- */

/* Types, ranks and sizes that anything can have: sums of their bytes do not overflow. */
static bool check_tensor(const runtime_call *call, int k, scout_run_error *error) {
    static const double most = (double)((int64_t)1 << 50);
    const scout_run_tensor *t = call->tensors[k];
    const char *name = call->front->names[k] ? call->front->names[k] : "a tensor";
    double elements = 1;
    if (!t) return k >= call->front->least || runtime_refuse(error, "%s of %s is missing", name, call->front->kind);
    if (!dtype_known(t->type) || dtype_get((dtype)t->type)->bits == 0)
        return runtime_refuse(error, "%s: expected a scout_run_type, got %d", name, (int)t->type);
    if (t->rank < 0 || t->rank > SCOUT_RUN_RANK)
        return runtime_refuse(error, "%s: expected 0 to %d dimensions, got %d", name, SCOUT_RUN_RANK, (int)t->rank);
    for (int32_t d = 0; d < t->rank; d++) {
        elements *= (double)t->dims[d];
        if (t->dims[d] < 1 || t->strides[d] < 0 || elements > most || (double)t->strides[d] > most)
            return runtime_refuse(error,
                                  "%s: expected sizes from 1 and strides from 0 on, got %" PRId64 " and %" PRId64, name,
                                  t->dims[d], t->strides[d]);
    }
    return true;
}

/* Storage that the strides reach. */
static int64_t bytes_of(const scout_run_tensor *t) {
    int64_t last = 0;
    for (int32_t d = 0; d < t->rank; d++) last += (t->dims[d] - 1) * (t->dims[d] > 1 ? t->strides[d] : 0);
    return dtype_bytes((dtype)t->type, last + 1);
}

static int tensor_named(const runtime_call *call, const char *name) {
    for (int k = 0; k < call->tensor_count; k++)
        if (call->front->names[k] && strcmp(call->front->names[k], name) == 0) return k;
    return -1;
}

/* The operation's tensors among those of the call: each is there, of its type and as large. */
static bool bind(const runtime_call *call, known_call *known, scout_run_error *error) {
    const scout_op *op = &known->op->op;
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const scout_tensor *want = &op->tensors[k];
        const int at = call->front->names[0] ? tensor_named(call, want->name)
                       : k < RUNTIME_TENSORS ? call->order[k]
                                             : -1;
        const scout_run_tensor *got = at >= 0 ? call->tensors[at] : NULL;
        if (!got) return runtime_refuse(error, "%s: the operation %s has it, and it is not given", want->name, op->key);
        if ((uint32_t)got->type != want->type)
            return runtime_refuse(error, "%s: expected %s, got %s", want->name, dtype_get((dtype)want->type)->name,
                                  dtype_get((dtype)got->type)->name);
        if (bytes_of(got) != (int64_t)want->bytes)
            return runtime_refuse(error,
                                  "%s: expected %" PRIu64 " bytes in one piece, its sizes and strides reach %" PRId64,
                                  want->name, want->bytes, bytes_of(got));
        known->bind[k] = (uint8_t)at;
    }
    return true;
}

typedef struct describing {
    runtime_call *call;
    scout_run_error error;
} describing;

static void describe(void *context, arena *a, operation *out) {
    describing *d = context;
    *out = (operation){.id = "", .name = "", .pattern = "DENSE"};
    (void)oprec_kind_from_name(d->call->front->kind, &out->rec.kind);
    if (!d->call->front->describe(d->call, a, out, &d->error)) guard_fail(a->guard, STATUS_INPUT, "%s", d->error.text);
    out->id = out->name = oprec_id(&out->rec, a);
}

/* An extra number is told to candidates, and tells operations apart. */
static const char *finish(void *context, arena *a, scout_op *op) {
    const describing *d = context;
    const runtime_extra *extra = &d->call->extra;
    if (!extra->name) return op->key;
    const scout_field field = {.name = extra->name, .text = arena_printf(a, "%.17g", extra->value)};
    runtime_op_tell(op, a, &field);
    return arena_printf(a, "%s;%s=%s", op->key, field.name, field.text);
}

/* NULL: code and error say why. */
static const known_call *learn(scout_run *run, runtime_call *call, uint64_t hash, const words *w, int32_t *code,
                               scout_run_error *error) {
    describing d = {.call = call};
    scout_run_error own;
    const scout_run_op *op;
    if (!error) error = &own;
    *code = SCOUT_RUN_INVALID;
    if (w->count == WORDS) {
        (void)runtime_refuse(error, "expected shorter texts");
        return NULL;
    }
    for (int k = 0; k < call->tensor_count; k++)
        if (!check_tensor(call, k, error)) return NULL;
    const runtime_making making = {.describe = describe, .finish = finish, .context = &d};
    *code = runtime_op_find(run, &making, &op, error);
    if (*code != SCOUT_RUN_OK) return NULL;
    known_call *made = calloc(1, sizeof *made + w->count * sizeof *w->at);
    if (!made) {
        *code = runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
        return NULL;
    }
    made->op = op, made->hash = hash, made->count = w->count;
    memcpy(made->words, w->at, w->count * sizeof *w->at);
    if (!bind(call, made, error)) {
        free(made);
        *code = SCOUT_RUN_INVALID;
        return NULL;
    }
    const known_call *known = enter(run, made, w);
    if (!known) *code = runtime_say(error, SCOUT_RUN_NO_MEMORY, "the host has no memory left");
    return known;
}

static const known_call *find(scout_run *run, runtime_call *call, int32_t *code, scout_run_error *error) {
    words w;
    const uint64_t hash = write_words(call, &w);
    const runtime_calls *calls = atomic_load_explicit(&run->calls, memory_order_acquire);
    const known_call *known = calls && w.count < WORDS ? look_up(calls, hash, &w) : NULL;
    return known ? known : learn(run, call, hash, &w, code, error);
}

static void read_data(const runtime_call *call, const known_call *known, void **data) {
    for (uint32_t k = 0; k < known->op->op.tensor_count; k++) data[k] = call->tensors[known->bind[k]]->data;
}

int32_t runtime_call_launch(scout_run *run, runtime_call *call, void *stream, scout_run_error *error) {
    void *data[SCOUT_MAX_TENSORS];
    int32_t code = SCOUT_RUN_OK;
    const known_call *known = find(run, call, &code, error);
    if (!known) return code;
    read_data(call, known, data);
    return runtime_launch(known->op, data, call->packed, stream, error);
}

int32_t runtime_call_pack(scout_run *run, runtime_call *call, scout_run_weight **packed, scout_run_error *error) {
    void *data[SCOUT_MAX_TENSORS];
    int32_t code = SCOUT_RUN_OK;
    *packed = NULL;
    const known_call *known = find(run, call, &code, error);
    if (!known) return code;
    read_data(call, known, data);
    return runtime_pack(known->op, data, packed, error);
}
