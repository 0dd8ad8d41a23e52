/* What is compiled at run time is compiled once, also when many threads ask at the same moment, and everything that
 * asks gets the code of its own text. Needs NVRTC, and no GPU. */
#include "scout/cuda/nvrtc/nvrtc.h"
#include "tests/unit/unit.h"

#include <pthread.h>

enum { THREADS = 8, TEXTS = 4, MANY = 80 }; /* more than are kept */

typedef struct asking {
    pthread_t thread;
    int text;
    scout_answer answer;
    const nvrtc_code *code;
    scout_why why;
} asking;

/* A program that can be told by the name of its kernel. */
static scout_answer ask(int number, const nvrtc_code **code, scout_why *why) {
    char text[96];
    snprintf(text, sizeof text, "extern \"C\" __global__ void number_%d_(int *x) { *x = %d; }\n", number, number);
    return nvrtc_borrow(&(nvrtc_source){.text = text}, 9, 0, code, why);
}

static bool has_kernel(const nvrtc_code *code, int number) {
    char name[32];
    const int length = snprintf(name, sizeof name, "number_%d_", number);
    return memmem(code->cubin, code->bytes, name, (size_t)length) != NULL;
}

static void *run(void *context) {
    asking *const a = context;
    a->answer = ask(a->text, &a->code, &a->why);
    return NULL;
}

static void at_the_same_moment(void) {
    asking all[THREADS] = {{.text = 0}};
    for (int k = 0; k < THREADS; k++) {
        all[k].text = k % TEXTS;
        UNIT_INT(pthread_create(&all[k].thread, NULL, run, &all[k]), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        UNIT_INT(pthread_join(all[k].thread, NULL), 0);
        UNIT_INT(all[k].answer, SCOUT_OK);
        UNIT_CHECK(all[k].answer != SCOUT_OK || has_kernel(all[k].code, all[k].text));
        UNIT_CHECK(all[k].code == all[k % TEXTS].code); /* one compilation */
    }
    for (int k = 0; k < THREADS; k++)
        if (all[k].answer == SCOUT_OK) nvrtc_return(all[k].code);
}

/* What is in use stays, whatever else is asked for. */
static void more_than_are_kept(void) {
    scout_why why = {.code = ""};
    const nvrtc_code *held = NULL, *code = NULL;
    if (!UNIT_CHECK(ask(0, &held, &why) == SCOUT_OK)) return;
    for (int k = 1; k < MANY; k++) {
        if (!UNIT_CHECK(ask(k, &code, &why) == SCOUT_OK)) continue;
        UNIT_CHECK(code != held && has_kernel(code, k));
        nvrtc_return(code);
    }
    UNIT_CHECK(has_kernel(held, 0));
    UNIT_CHECK(ask(0, &code, &why) == SCOUT_OK && code == held);
    nvrtc_return(code);
    nvrtc_return(held);
}

/* A source that is refused is refused again, with the same words. */
static void refused(void) {
    for (int k = 0; k < 2; k++) {
        scout_why why = {.code = ""};
        const nvrtc_code *code = NULL;
        UNIT_INT(nvrtc_borrow(&(nvrtc_source){.text = "no C at all"}, 9, 0, &code, &why), SCOUT_NO);
        UNIT_CHECK(code == NULL);
        UNIT_TEXT(why.code, "library");
        UNIT_CHECK(strstr(why.text, "sm_90"));
    }
}

int main(void) {
    if (!nvrtc_open(NULL)) {
        printf("  no NVRTC here: nothing was compiled\n");
        return unit_end();
    }
    UNIT_RUN(at_the_same_moment);
    UNIT_RUN(more_than_are_kept);
    UNIT_RUN(refused);
    return unit_end();
}
