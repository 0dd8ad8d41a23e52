/* The libFuzzer target of libscout_dispatch's reader: any bytes may be refused, with one line; what is accepted must
 * find its own entries, stay within its memory, and be the same table once more. The same bytes as a signature, and as
 * public keys. */
#include "dispatch/dispatch_signature.h"
#include "dispatch/dispatch_table.h"
#include "dispatch/scout_dispatch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_one_line(const char *text) {
    if (!text[0]) abort();
    for (; *text; text++)
        if ((unsigned char)*text < ' ') abort();
}

static void find_all(const scout_dispatch_view *view) {
    const size_t count = scout_dispatch_count(view);
    for (size_t k = 0; k < count; k++) {
        const scout_dispatch_entry *e = scout_dispatch_at(view, k);
        scout_dispatch_key key;
        scout_dispatch_ends ends;
        if (scout_dispatch_find_text(view, e->key) != e) abort();
        if (!scout_dispatch_key_parse(&key, e->key, strlen(e->key)) || scout_dispatch_find(view, &key) != e) abort();
        for (uint32_t n = 0; n < key.count; n++) {
            const int64_t kept = key.numbers[n];
            key.numbers[n] = kept < INT64_MAX ? kept + 1 : 0;
            const scout_dispatch_entry *other = scout_dispatch_find(view, &key);
            if (other == e) abort();
            if (scout_dispatch_near(view, &key, &ends) && (!ends.lower || !ends.upper || ends.lower == ends.upper))
                abort();
            key.numbers[n] = kept;
        }
    }
    if (scout_dispatch_at(view, count)) abort();
}

/* Whatever holds is of this table alone. */
static void verify(const char *data, size_t size) {
    static const char table[] = "a table\n";
    char why[160] = "", *lines = malloc(size + 1);
    dispatch_signers signers;
    if (!lines) abort();
    memcpy(lines, data, size);
    lines[size] = 0;
    if (!dispatch_signers_read(&signers, lines, why, sizeof why)) is_one_line(why);
    free(lines);
    if (!dispatch_signature_holds(NULL, data, size, table, sizeof table - 1, why, sizeof why))
        is_one_line(why);
    else if (dispatch_signature_holds(NULL, data, size, table, sizeof table - 2, why, sizeof why))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const scout_dispatch_library libraries[] = {{"cublaslt", "13.1.0"}};
    scout_dispatch_device here = {.name = "GPU", .capability = "9.0", .driver = "580.1", .libraries = libraries};
    scout_dispatch *d;
    scout_dispatch_note note;
    verify((const char *)data, size);
    here.library_count = 1;
    const scout_dispatch_device *device = size > 0 && data[size - 1] == '\n' ? &here : NULL;
    const scout_dispatch_status status = scout_dispatch_open_text(&d, (const char *)data, size, device, &note);
    if ((d != NULL) != (status <= SCOUT_DISPATCH_WARNED)) abort();
    if (status != SCOUT_DISPATCH_OK) is_one_line(note.text);
    if (!d) return 0;
    scout_dispatch_view view = scout_dispatch_begin(d);
    find_all(&view);
    if (scout_dispatch_reload_text(d, (const char *)data, size, &note) != status) abort();
    find_all(&view);
    scout_dispatch_end(&view);
    scout_dispatch_close(d);
    return 0;
}
