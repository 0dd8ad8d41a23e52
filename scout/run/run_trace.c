/* Owns the form of trace.json: what a tracer saw of the model's run, as trace viewers read it (Perfetto's and Chrome's
 * trace events). One track for the defaults, one for the plan. */
#include "scout/run/run_internal.h"

#include <string.h>

enum { PROCESS = 1 };

static const struct {
    const char *lane, *title;
} tracks[] = {{"default", "by the libraries' defaults"}, {"best", "by the plan"}};
enum { TRACKS = sizeof tracks / sizeof tracks[0] };

static json_t *event(const char *name, const char *phase, int track, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "name", name);
    json_put_text(b, to, "ph", phase);
    json_put_int(b, to, "pid", PROCESS);
    if (track > 0) json_put_int(b, to, "tid", track);
    return to;
}

static json_t *title(const char *of, int track, const char *text, json_builder *b) {
    json_t *to = event(of, "M", track, b), *args = json_new_object(b);
    json_put_text(b, args, "name", text);
    json_put(b, to, "args", args);
    return to;
}

/* Rows [operation's place among the names, begin in us, us, kernel]; false: it is none. */
static bool add_kernel(json_t *events, const json_t *row, const json_t *names, int track, json_builder *b) {
    const char *const name =
        json_string_value(json_array_get(names, (size_t)json_integer_value(json_array_get(row, 0))));
    const char *const kernel = json_string_value(json_array_get(row, 3));
    const json_t *begin = json_array_get(row, 1), *took = json_array_get(row, 2);
    if (!name || !kernel || !json_is_real(begin) || !json_is_real(took)) return false;
    json_t *to = event(name, "X", track, b), *args = json_new_object(b);
    json_put_real(b, to, "ts", json_real_value(begin));
    json_put_real(b, to, "dur", json_real_value(took));
    json_put_text(b, args, "kernel", kernel);
    json_put(b, to, "args", args);
    json_push(b, events, to);
    return true;
}

json_t *run_trace_json(const json_t *trace, const char *model, json_builder *b) {
    json_t *to = json_new_object(b), *events = json_new_array(b);
    json_put_text(b, to, "schema", "ceiling-scout/trace/1");
    json_put_text(b, to, "displayTimeUnit", "ns");
    json_push(b, events, title("process_name", 0, model && *model ? model : "the model", b));
    for (int k = 0; k < TRACKS; k++) {
        const json_t *rows = json_object_get(trace, tracks[k].lane);
        if (json_array_size(rows) == 0) continue;
        json_push(b, events, title("thread_name", k + 1, tracks[k].title, b));
        for (size_t n = 0; n < json_array_size(rows); n++)
            (void)add_kernel(events, json_array_get(rows, n), json_object_get(trace, "names"), k + 1, b);
    }
    json_put(b, to, "traceEvents", events);
    return to;
}
