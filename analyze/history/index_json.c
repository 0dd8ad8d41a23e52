/* index.json: the index for programs. What is not known is absent. */
#include "analyze/history/index.h"

#include "common/json_stream.h"
#include "common/plain.h"

#include <math.h>

static void put_known(json_stream *s, const char *key, double x) {
    if (isfinite(x)) json_stream_real(s, key, x);
}

static void put_text(const history_shown *shown, json_stream *s, const char *key, const char *text) {
    if (text) json_stream_text(s, key, plain_utf8(shown->h->a, text));
}

static void put_line(json_stream *s, const index_line *line) {
    if (line->count == 0) return;
    json_stream_open(s, "us_by_night", '[', true);
    for (size_t k = 0; k < line->count; k++) {
        if (isfinite(line->us[k]))
            json_stream_real(s, NULL, line->us[k]);
        else
            json_stream_null(s, NULL);
    }
    json_stream_close(s);
}

static void put_change(const history_shown *shown, json_stream *s, const index_change *c) {
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "state", history_states[c->state]);
    json_stream_bool(s, "last_night", c->last);
    json_stream_text(s, "night", index_date_of(c->at).s);
    put_text(shown, s, "operation", c->operation);
    put_text(shown, s, "op", c->op);
    put_text(shown, s, "device", c->device);
    put_text(shown, s, "regime", c->regime);
    put_text(shown, s, "model", c->model);
    if (c->model) json_stream_int(s, "models", c->models);
    json_stream_real(s, "change", c->change);
    put_known(s, "before_us", c->before_us);
    put_known(s, "lost_us", c->lost_us);
    json_stream_int(s, "measured_again", c->again);
    put_text(shown, s, "cause", c->cause);
    put_line(s, &c->line);
    json_stream_close(s);
}

static void put_model(const history_shown *shown, json_stream *s, const index_model *m) {
    json_stream_open(s, NULL, '{', false);
    put_text(shown, s, "model", m->name);
    put_text(shown, s, "folder", m->folder);
    put_text(shown, s, "device", m->device);
    put_text(shown, s, "regime", m->regime);
    json_stream_text(s, "night", index_date_of(m->at).s);
    json_stream_int(s, "operations", m->count);
    put_known(s, "time_us", m->us);
    put_known(s, "time_ci", m->ci);
    put_known(s, "proven_us", m->proven_us);
    put_known(s, "potential_us", m->potential_us);
    put_known(s, "ceiling_us", m->ceiling_us);
    put_known(s, "change", m->change);
    json_stream_int(s, "slower", (int64_t)m->slower);
    json_stream_int(s, "faster", (int64_t)m->faster);
    put_line(s, &m->line);
    json_stream_close(s);
}

bool history_write_json(const history_shown *shown, FILE *out, status *st) {
    const history_index *i = shown->index;
    json_stream s;
    json_stream_begin_on(&s, out);
    json_stream_open(&s, NULL, '{', false);
    json_stream_text(&s, "schema", "ceiling-scout/index/1");
    json_stream_int(&s, "nights", i->nights);
    json_stream_int(&s, "operations", i->series);
    json_stream_int(&s, "figures", i->points);
    json_stream_int(&s, "bytes", i->bytes);
    if (i->night) json_stream_text(&s, "night", index_date_of(i->at).s);
    json_stream_open(&s, "last_night", '{', false);
    json_stream_text(&s, "text", index_sum(shown));
    json_stream_int(&s, "machines_slower", (int64_t)i->machines_slower);
    for (int k = 0; k < HISTORY_STATES; k++) json_stream_int(&s, history_states[k], (int64_t)i->of_last[k]);
    json_stream_close(&s);
    json_stream_open(&s, "changes", '[', false);
    for (size_t k = 0; k < i->change_count; k++) put_change(shown, &s, &i->changes[k]);
    json_stream_close(&s);
    json_stream_open(&s, "models", '[', false);
    for (size_t k = 0; k < i->model_count; k++) put_model(shown, &s, &i->models[k]);
    json_stream_close(&s);
    json_stream_open(&s, "suspects", '[', false);
    for (size_t k = 0; k < i->suspect_count; k++) {
        const history_suspect *one = &i->suspects[k];
        if (!one->folder) continue;
        json_stream_open(&s, NULL, '{', false);
        put_text(shown, &s, "model", one->model);
        put_text(shown, &s, "folder", one->folder);
        put_text(shown, &s, "operation", one->operation);
        json_stream_close(&s);
    }
    json_stream_close(&s);
    json_stream_close(&s);
    return json_stream_end(&s, st);
}
