/* The parameters of a variant as a person says them: "threads=256,bytes=16" is "256 threads, 16-byte loads". What no
 * line of the table knows (a plugin may call its parameters anything) is said with its own words. */
#include "analyze/page/page_internal.h"

#include "common/plain.h"

#include <string.h>

enum { MOST = 16 }; /* parameters of a variant */

static const struct {
    const char *name, *value; /* value NULL: any */
    const char *words;        /* what stands in the place of %; "": it goes without saying, as no other value does */
} rules[] = {
    {"algo", NULL, "algorithm %"},
    {"algorithm", NULL, "% algorithm"},
    {"behind", "apart", "epilogue by a kernel of its own"},
    {"behind", "within", "epilogue by the library"},
    {"bias", "before", "bias before the product"},
    {"bias", "inside", "bias within the product"},
    {"block", NULL, "blocks of %"},
    {"bytes", NULL, "%-byte loads"},
    {"cache", "normal", ""},
    {"cache", "streaming", "hints that nothing is read again"},
    {"depth", NULL, "% steps in flight"},
    {"engine", NULL, "engine %"},
    {"form", "as_is", "layouts as they are"},
    {"form", "converted", "layouts converted in each launch"},
    {"form", "packed", "weight repacked once"},
    {"form", "split", "epilogue by a second kernel"},
    {"graph", "parts", "its parts one after another"},
    {"graph", "whole", "all in one"},
    {"lanes", "1", "one thread an output"},
    {"lanes", NULL, "% threads an output"},
    {"output", "direct", "straight to the output"},
    {"output", "exact", "by way of padded rows"},
    {"output", "whole", "by way of padded rows and columns"},
    {"pieces", "1", "one load in flight"},
    {"pieces", NULL, "% loads in flight"},
    {"planes", "1", "one head a thread"},
    {"planes", NULL, "% heads a thread"},
    {"resident", "0", "a block a tile"},
    {"resident", NULL, "% resident blocks a multiprocessor"},
    {"rows", "padded", "rows padded"},
    {"rows", NULL, "% rows a block"},
    {"scores", "cache", "scores in the cache"},
    {"scores", "workspace", "scores in the workspace"},
    {"split", "1", ""},
    {"split", NULL, "% blocks share an output"},
    {"split_k", "-1", "K split as the library likes"},
    {"split_k", "1", ""},
    {"split_k", NULL, "K split in %"},
    {"splits", "1", "keys not split"},
    {"splits", "auto", ""},
    {"splits", NULL, "keys split in %"},
    {"stream", "0", ""},
    {"stream", "1", "hints that nothing is read again"},
    {"threads", NULL, "% threads"},
    {"tile", NULL, "tile %"},
    {"vector", "0", ""},
    {"vector", "1", "whole vectors"},
    {"walk", "dense", "whole steps over dense keys"},
    {"walk", "tensor", "tensor cores"},
    {"walk", "vector", "no tensor cores"},
    {"warps", NULL, "% warps"},
    {"way", NULL, "%"},
    {"weight", "as_is", ""},
    {"weight", "packed", "weight repacked once"},
    {"weight", "transposed", "weight transposed once"},
};

/* Underscores are blanks to a person. */
static const char *plain_words(page *p, const char *text) {
    char *words = arena_strndup(&p->arena, text, strlen(text));
    for (char *at = words; (at = strchr(at, '_'));) *at = ' ';
    return words;
}

static const char *say_one(page *p, const char *name, const char *value) {
    size_t k = 0;
    const size_t count = sizeof rules / sizeof rules[0];
    while (k < count && (strcmp(rules[k].name, name) != 0 || (rules[k].value && strcmp(rules[k].value, value) != 0)))
        k++;
    if (k == count) return arena_printf(&p->arena, "%s %s", plain_words(p, name), value);
    const char *place = strchr(rules[k].words, '%');
    if (!place) return rules[k].words;
    return arena_printf(&p->arena, "%.*s%s%s", (int)(place - rules[k].words), rules[k].words, plain_words(p, value),
                        place + 1);
}

/* NULL: the text is no list of parameters. */
static const char *say_all(page *p, const char *variant) {
    const char *words = "";
    size_t count = 0;
    for (const char *at = variant; *at;) {
        const size_t n = strcspn(at, ",");
        char *name = arena_strndup(&p->arena, at, n), *value = strchr(name, '=');
        if (!value || value == name || count++ == MOST) return NULL;
        *value++ = 0;
        const char *one = say_one(p, name, value);
        if (*one) words = arena_printf(&p->arena, "%s%s%s", words, *words ? ", " : "", one);
        at += n + (at[n] == ',');
    }
    return *words ? words : NULL;
}

void page_variant(page *p, const char *variant, int most, bool on_demand) {
    const char *words = strlen(variant) <= PAGE_SENTENCE ? say_all(p, variant) : NULL;
    if (!words) {
        page_say_wrapped(p, variant, most);
        return;
    }
    fputs(on_demand ? "<details class=\"raw\"><summary>" : "<span title=\"", p->out);
    page_say_cut(p, on_demand ? words : variant, most);
    fputs(on_demand ? "</summary><code>" : "\">", p->out);
    page_say_cut(p, on_demand ? variant : words, most);
    fputs(on_demand ? "</code></details>" : "</span>", p->out);
}

/* A text as a word of a sentence: not a part of a longer one, as algo=1 is of algo=12. */
static const char *find_whole(const char *sentence, const char *text) {
    const size_t n = strlen(text);
    for (const char *at = strstr(sentence, text); n > 0 && at; at = strstr(at + n, text))
        if (at > sentence && at[-1] == ' ' && (at[n] == 0 || strchr(" :;.", at[n]) || strncmp(at + n, ", ", 2) == 0))
            return at;
    return NULL;
}

void page_advice(page *p, const study_report *r) {
    const char *text = r->verdict.recommendation, *variant = r->best_variant ? r->best_variant : "";
    const char *at = find_whole(text, variant), *words = at ? say_all(p, variant) : NULL;
    if (words) text = arena_printf(&p->arena, "%.*s(%s)%s", (int)(at - text), text, words, at + strlen(variant));
    page_say_wrapped(p, text, PAGE_SENTENCE);
}
