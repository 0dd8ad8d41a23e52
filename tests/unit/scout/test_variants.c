/* Variants: their order, their names, and what a name stands for. The domain and what it allows are made here. */
#include "scout/terms/variants.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static scout_domain made, room;
static scout_answer says;
static int forbidden; /* value of the first parameter that does not go with 1 of the second; -1: all go */
static scout_why why;
static variants all;
static variants_one one;

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out, scout_why *w) {
    (void)op, (void)device, (void)exhaustive;
    *out = made;
    return says == SCOUT_OK ? SCOUT_OK : scout_say(w, says, "feature", "no");
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    (void)op, (void)device;
    return values[0] != forbidden || values[1] != 1;
}

static const scout_candidate candidate = {.size = sizeof candidate, .name = "lib", .domain = domain, .allows = allows};
static const scout_candidate plain = {.size = sizeof plain, .name = "plain"};

static scout_answer ask(const scout_candidate *c) {
    why = (scout_why){.code = ""};
    return variants_open(&all, c, NULL, NULL, false, &room, &why);
}

/* algo 0, 6, 66 and weight as it lies or packed. */
static void begin(void) {
    static const char *const labels[] = {"plain", "packed"};
    memset(&made, 0, sizeof made);
    made.count = 2;
    made.parameters[0] = (scout_parameter){.name = "algo", .count = 3, .values = {0, 66, 6}};
    made.parameters[1] = (scout_parameter){.name = "weight", .count = 2, .values = {0, 1}, .labels = labels};
    says = SCOUT_OK, forbidden = -1;
}

static void found(const char *text, int64_t first, int64_t second, const char *whole) {
    memset(&one, 0x55, sizeof one);
    if (!UNIT_CHECK(variants_find(&all, text, &one))) return;
    UNIT_INT(one.values[0], first);
    UNIT_INT(one.values[1], second);
    UNIT_INT(one.values[2], 0);
    UNIT_TEXT(one.text, whole);
}

static void in_one_order(void) {
    static const char *const texts[] = {"algo=0,weight=packed", "algo=66,weight=plain", "algo=66,weight=packed",
                                        "algo=6,weight=plain", "algo=6,weight=packed"};
    begin();
    made.parameters[1].values[0] = 1, made.parameters[1].values[1] = 0;
    forbidden = 0; /* the first of all */
    UNIT_INT(ask(&candidate), SCOUT_OK);
    for (int k = 0; k < 5; k++) {
        UNIT_CHECK(variants_next(&all, &one));
        UNIT_TEXT(one.text, texts[k]);
        UNIT_INT(one.first, k == 0);
    }
    UNIT_CHECK(!variants_next(&all, &one) && !variants_next(&all, &one));
    found("algo=66,weight=plain", 66, 1, "algo=66,weight=plain"); /* wherever the others are */
    UNIT_CHECK(!one.first);
    found("algo=0,weight=packed", 0, 0, "algo=0,weight=packed");
    UNIT_CHECK(one.first);
}

static void what_a_name_stands_for(void) {
    static const char *const none[] = {"algo=5",
                                       "algo",
                                       "algo=",
                                       "algo=6,",
                                       ",algo=6",
                                       "algo=6,,weight=packed",
                                       "weight=packed,algo=6",
                                       "algo=6,weight=pack",
                                       "algo=6,weight=packed,more=1",
                                       "algo=6 ",
                                       "algo=06",
                                       "ALGO=6",
                                       "algo=6weight=packed",
                                       "weight=packed,"};
    begin();
    UNIT_INT(ask(&candidate), SCOUT_OK);
    found("algo=6,weight=packed", 6, 1, "algo=6,weight=packed");
    found("algo=66,weight=packed", 66, 1, "algo=66,weight=packed");
    found("algo=66", 66, 0, "algo=66,weight=plain"); /* what is left out is the first */
    found("weight=packed", 0, 1, "algo=0,weight=packed");
    found("", 0, 0, "algo=0,weight=plain");
    for (size_t k = 0; k < sizeof none / sizeof none[0]; k++)
        if (!UNIT_CHECK(!variants_find(&all, none[k], &one))) printf("    %s\n", none[k]);
    char *endless = calloc(1, 1 << 20);
    if (!endless) abort();
    memset(endless, 'a', (1 << 20) - 1);
    UNIT_CHECK(!variants_find(&all, endless, &one));
    free(endless);
}

static void what_is_not_allowed_is_not_found(void) {
    begin();
    forbidden = 6;
    UNIT_INT(ask(&candidate), SCOUT_OK);
    UNIT_CHECK(!variants_find(&all, "algo=6,weight=packed", &one));
    found("algo=6,weight=plain", 6, 0, "algo=6,weight=plain");
    made.parameters[0].values[0] = made.parameters[0].values[1] = 6;
    made.parameters[1].values[0] = 1;
    UNIT_INT(ask(&candidate), SCOUT_OK); /* of all there are */
    UNIT_CHECK(!variants_next(&all, &one) && !variants_find(&all, "", &one));
}

/* Labels with commas in them, alike at the beginning, and of bytes that no terminal should see. */
static void awkward_labels(void) {
    static const char *const labels[] = {"a", "a,b=c", "", "\x1b[31m", "a,weight=packed"};
    begin();
    made.parameters[0] = (scout_parameter){.name = "t", .count = 5, .values = {1, 2, 3, 4, 5}, .labels = labels};
    UNIT_INT(ask(&candidate), SCOUT_OK);
    found("t=a,b=c,weight=packed", 2, 1, "t=a,b=c,weight=packed");
    found("t=a,b=c", 2, 0, "t=a,b=c,weight=plain");
    found("t=,weight=packed", 3, 1, "t=,weight=packed");
    found("t=?[31m", 4, 0, "t=?[31m,weight=plain");
    found("t=a,weight=packed", 1, 1, "t=a,weight=packed"); /* two are called so: the one that comes first */
    found("t=a,weight=packed,weight=packed", 5, 1, "t=a,weight=packed,weight=packed");
}

static void without_parameters(void) {
    UNIT_INT(ask(&plain), SCOUT_OK);
    UNIT_CHECK(!variants_find(&all, "algo=6", &one));
    found("", 0, 0, "");
    UNIT_CHECK(one.first);
    UNIT_CHECK(variants_next(&all, &one) && one.first && one.text[0] == 0);
    UNIT_CHECK(!variants_next(&all, &one));
}

static void refused(const char *text) {
    UNIT_INT(ask(&candidate), SCOUT_FAILED);
    UNIT_TEXT(why.text, text);
    UNIT_INT(room.count, 0);
    UNIT_CHECK(!variants_next(&all, &one));
}

static void broken_domains(void) {
    static const char broken[] = "its domain of variants is invalid";
    static char wide[200];
    static const char *const long_labels[] = {"x", wide}, *const no_labels[] = {"x", NULL};
    memset(wide, 'w', sizeof wide - 1);
    begin();
    made.count = SCOUT_MAX_PARAMETERS + 1;
    refused(broken);
    begin();
    made.parameters[1].count = 0;
    refused(broken);
    begin();
    made.parameters[0].count = 513;
    refused(broken);
    begin();
    made.parameters[1].labels = no_labels;
    refused(broken);
    begin();
    made.parameters[1].labels = long_labels; /* cut, it would be another one's name */
    refused(broken);
    begin();
    made.count = UINT32_MAX; /* a refusal may leave anything behind */
    says = SCOUT_LOST;
    UNIT_INT(ask(&candidate), SCOUT_LOST);
    UNIT_INT(room.count, 0);
    UNIT_CHECK(!variants_next(&all, &one));
}

static void texts_are_cut_to_the_room(void) {
    char text[64];
    begin();
    variants_text(&made, (int[]){1, 1}, text, sizeof text);
    UNIT_TEXT(text, "algo=66,weight=packed");
    variants_text(&made, (int[]){1, 1}, text, 8);
    UNIT_TEXT(text, "algo=66");
    variants_text(&made, (int[]){1, 1}, text, 10);
    UNIT_TEXT(text, "algo=66,w");
    made.count = 0;
    variants_text(&made, (int[]){0}, text, sizeof text);
    UNIT_TEXT(text, "");
}

int main(void) {
    UNIT_RUN(in_one_order);
    UNIT_RUN(what_a_name_stands_for);
    UNIT_RUN(what_is_not_allowed_is_not_found);
    UNIT_RUN(awkward_labels);
    UNIT_RUN(without_parameters);
    UNIT_RUN(broken_domains);
    UNIT_RUN(texts_are_cut_to_the_room);
    return unit_end();
}
