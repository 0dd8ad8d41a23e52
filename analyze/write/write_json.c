/* The summary for programs: summary.json. */
#include "analyze/formats.h"

#include "common/json_stream.h"

bool write_json(const summary *m, FILE *out, status *st) {
    json_stream s;
    json_stream_begin_on(&s, out);
    json_stream_open(&s, NULL, '{', false);
    json_stream_text(&s, "schema", "ceiling-scout/summary/1");
    json_stream_int(&s, "groups", (int64_t)m->group_count);
    json_stream_close(&s);
    return json_stream_end(&s, st);
}
