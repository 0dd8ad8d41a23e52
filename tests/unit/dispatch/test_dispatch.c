/* libscout_dispatch: opening, finding, what lies between two that agree, and what is refused. */
#include "tests/unit/dispatch/dispatch_fixture.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

static scout_dispatch_note note;

static scout_dispatch *opened(const lab_text *t, const scout_dispatch_device *device) {
    scout_dispatch *d;
    scout_dispatch_open_text(&d, t->text, t->used, device, &note);
    return d;
}

static lab_text three(void) {
    lab_text t = {.used = 0};
    lab_add(&t, LAB_HEAD LAB_TUNED ",", 64, "");
    lab_add(&t, LAB_TUNED ",", 128, "");
    lab_add(&t,
            "{\"key\": \"norm;what=rms;shape=2048,4096;type=fp16\", \"operation\": \"n\", \"choice\": \"default\", "
            "\"implementation\": \"rows\", \"variant\": \"\", \"config\": {}, \"packing\": {\"how\": \"transposed\", "
            "\"us\": 0.5, \"bytes\": 7}, \"workspace_bytes\": 5, \"expected_us\": 0.1234567890123456789e-5, "
            "\"default_us\": 12345678.9, " LAB_PROOF ", \"new\": [{}, null, true]}" LAB_TAIL);
    return t;
}

static void all_is_found(void) {
    const lab_text t = three();
    const scout_dispatch_device here = lab_device();
    scout_dispatch *d = opened(&t, &here);
    if (!UNIT_CHECK(d != NULL)) {
        printf("    %s\n", note.text);
        return;
    }
    scout_dispatch_view view = scout_dispatch_begin(d);
    UNIT_INT(scout_dispatch_count(&view), 3);
    UNIT_TEXT(scout_dispatch_class(&view), "name=GPU A;capability=9.0;driver=580;cublaslt=13.1.0");
    const scout_dispatch_entry *e = scout_dispatch_find_text(&view, "norm;what=rms;shape=2048,4096;type=fp16");
    if (UNIT_CHECK(e != NULL)) {
        UNIT_CHECK(e->choice == SCOUT_DISPATCH_DEFAULT && !e->library && !e->algo && e->algo_bytes == 0);
        UNIT_TEXT(e->packing, "transposed");
        UNIT_CHECK(e->expected_us > 1.23456789012e-6 && e->expected_us < 1.23456789013e-6);
        UNIT_CHECK(e->default_us == 12345678.9 && e->pack_us == 0.5);
        UNIT_INT(e->pack_bytes, 7);
        UNIT_INT(e->workspace_bytes, 5);
    }
    e = scout_dispatch_find_text(&view, "gemm;shape=128,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b");
    if (UNIT_CHECK(e != NULL)) {
        UNIT_CHECK(e == scout_dispatch_at(&view, 1) && e->choice == SCOUT_DISPATCH_TUNED);
        UNIT_TEXT(e->config, "{\"a\":[1,\"x y\"]}");
        UNIT_TEXT(e->version, "13.1.0");
        UNIT_CHECK(e->algo_bytes == 3 && memcmp(e->algo, "\x42\xff\x00", 3) == 0);
        UNIT_CHECK(e->ratio == 0.9 && e->launches == 4000 && e->default_us == 10);
    }
    UNIT_CHECK(!scout_dispatch_find_text(&view, "gemm;shape=128,4096,4096;layout=nn;type=fp16;weight=fp16"));
    UNIT_CHECK(!scout_dispatch_find_text(&view, "") && !scout_dispatch_at(&view, 3));
    scout_dispatch_end(&view);
    scout_dispatch_end(&view); /* an ended view is nothing any more */
    scout_dispatch_close(d);
    scout_dispatch_close(NULL);
}

static void many_are_found_and_none_else(void) {
    enum { COUNT = 3000 };
    size_t used = 0;
    char *text = malloc((size_t)COUNT * 600);
    scout_dispatch *d;
    if (!UNIT_CHECK(text != NULL)) return;
    used += (size_t)sprintf(text, LAB_HEAD);
    for (int k = 0; k < COUNT; k++) used += (size_t)sprintf(text + used, "%s" LAB_TUNED, k ? "," : "", 2 * k + 1, "");
    used += (size_t)sprintf(text + used, LAB_TAIL);
    UNIT_INT(scout_dispatch_open_text(&d, text, used, NULL, &note), SCOUT_DISPATCH_OK);
    scout_dispatch_view view = scout_dispatch_begin(d);
    scout_dispatch_key key;
    char first[128];
    snprintf(first, sizeof first, LAB_GEMM, 1);
    UNIT_CHECK(scout_dispatch_key_parse(&key, first, strlen(first)));
    int wrong = 0;
    for (int m = 0; m <= 2 * COUNT; m++) {
        key.numbers[0] = m;
        const scout_dispatch_entry *e = scout_dispatch_find(&view, &key);
        wrong += (e != NULL) != (m % 2 == 1) || (e && e != scout_dispatch_at(&view, (size_t)m / 2));
    }
    UNIT_INT(wrong, 0);
    scout_dispatch_end(&view);
    scout_dispatch_close(d);
    free(text);
}

/* ---- between two ---- */

static void near_keeps_to_its_range(void) {
    lab_text t = {.used = 0};
    char range[256], first[128];
    lab_add(&t, LAB_HEAD LAB_TUNED ",", 256, "");
    snprintf(range, sizeof range, LAB_RANGE, 64, 128, 128);
    lab_add(&t, LAB_TUNED ",", 64, range);
    snprintf(range, sizeof range, LAB_RANGE, 128, 256, 256);
    lab_add(&t, LAB_TUNED LAB_TAIL, 128, range);
    scout_dispatch *d = opened(&t, NULL);
    if (!UNIT_CHECK(d != NULL)) {
        printf("    %s\n", note.text);
        return;
    }
    scout_dispatch_view view = scout_dispatch_begin(d);
    scout_dispatch_key key;
    scout_dispatch_ends ends = {NULL, NULL};
    snprintf(first, sizeof first, LAB_GEMM, 1);
    scout_dispatch_key_parse(&key, first, strlen(first));
    for (int m = 0; m < 300; m++) {
        key.numbers[0] = m;
        const bool inside = m > 64 && m < 256 && m != 128 && m % 16 == 0;
        UNIT_CHECK(scout_dispatch_near(&view, &key, &ends) == inside);
        if (!inside) continue;
        UNIT_CHECK(ends.lower == scout_dispatch_at(&view, m < 128 ? 1 : 2));
        UNIT_CHECK(ends.upper == scout_dispatch_at(&view, m < 128 ? 2 : 0));
        UNIT_CHECK(!scout_dispatch_find(&view, &key));
    }
    key.numbers[0] = 96, key.numbers[1] = 4095; /* another N */
    UNIT_CHECK(!scout_dispatch_near(&view, &key, &ends));
    const char *other = "gemm;shape=96,4096,4096;layout=nn;type=bf16;weight=fp16;weight_side=b";
    scout_dispatch_key_parse(&key, other, strlen(other));
    UNIT_CHECK(!scout_dispatch_near(&view, &key, &ends));
    scout_dispatch_end(&view);
    scout_dispatch_close(d);
}

/* A size that stands in two places of the key moves in both, or it is another operation. */
static void near_moves_a_size_everywhere(void) {
    static const char entry[] =
        "{\"key\": \"attention;shape=1,8,%d,64;type=fp16;kv_heads=8;kv_len=%d\", \"operation\": \"a\", \"choice\": "
        "\"custom\", \"implementation\": \"k\", \"variant\": \"v\", \"config\": {}, \"expected_us\": 9, "
        "\"default_us\": 10, " LAB_PROOF "%s}";
    lab_text t = {.used = 0};
    lab_add(&t, LAB_HEAD);
    lab_add(&t, entry, 512, 512,
            ", \"ranges\": [{\"places\": [2, 5], \"from\": 512, \"to\": 1024, \"step\": 16, \"upper\": "
            "\"attention;shape=1,8,1024,64;type=fp16;kv_heads=8;kv_len=1024\"}]");
    lab_add(&t, ",");
    lab_add(&t, entry, 1024, 1024, "");
    lab_add(&t, LAB_TAIL);
    scout_dispatch *d = opened(&t, NULL);
    if (!UNIT_CHECK(d != NULL)) {
        printf("    %s\n", note.text);
        return;
    }
    scout_dispatch_view view = scout_dispatch_begin(d);
    scout_dispatch_key key;
    scout_dispatch_ends ends;
    const char *inside = "attention;shape=1,8,784,64;type=fp16;kv_heads=8;kv_len=784";
    scout_dispatch_key_parse(&key, inside, strlen(inside));
    UNIT_CHECK(scout_dispatch_near(&view, &key, &ends));
    key.numbers[5] = 800;
    UNIT_CHECK(!scout_dispatch_near(&view, &key, &ends));
    scout_dispatch_end(&view);
    scout_dispatch_close(d);
}

static void false_ranges_are_refused(void) {
    static const struct {
        const char *range;
        int second;
    } cases[] = {
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"gemm;shape=128\"}]",
         128},
        {", \"ranges\": [{\"places\": [1], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]",
         128},
        {", \"ranges\": [{\"places\": [0], \"from\": 63, \"to\": 128, \"step\": 1, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 130, \"step\": 2, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 128, \"step\": 3, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 128, \"step\": 0, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 128, \"step\": 8, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 144, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]",
         144},
        {", \"ranges\": [{\"places\": [0, 0], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]",
         128},
        {", \"ranges\": [{\"places\": [31], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]",
         128},
        {", \"ranges\": [{\"places\": [32], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]",
         128},
        {", \"ranges\": [{\"places\": [], \"from\": 64, \"to\": 128, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]", 128},
        {", \"ranges\": [{\"places\": [0], \"from\": 64, \"to\": 64, \"step\": 16, \"upper\": \"" LAB_GEMM "\"}]", 64},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lab_text t = {.used = 0}, range = {.used = 0};
        lab_add(&range, "%.*s", (int)strcspn(cases[k].range, "%"), cases[k].range);
        const char *rest = strchr(cases[k].range, '%');
        if (rest) lab_add(&range, "%d%s", cases[k].second, rest + 2);
        lab_add(&t, LAB_HEAD LAB_TUNED ",", 64, range.text);
        lab_add(&t, LAB_TUNED LAB_TAIL, cases[k].second, "");
        scout_dispatch *d;
        UNIT_INT(scout_dispatch_open_text(&d, t.text, t.used, NULL, &note), SCOUT_DISPATCH_BAD);
        UNIT_CHECK(!d && (strstr(note.text, "range") || strstr(note.text, "position")));
    }
}

/* Between two of its ends something else was measured, and decided: both ranges cannot be true. */
static void ranges_that_overlap_are_refused(void) {
    lab_text t = {.used = 0};
    char range[256];
    scout_dispatch *d;
    snprintf(range, sizeof range, LAB_RANGE, 64, 128, 128);
    lab_add(&t, LAB_HEAD LAB_TUNED ",", 64, range);
    snprintf(range, sizeof range, LAB_RANGE, 96, 128, 128);
    lab_add(&t, LAB_TUNED ",", 96, range);
    lab_add(&t, LAB_TUNED LAB_TAIL, 128, "");
    UNIT_INT(scout_dispatch_open_text(&d, t.text, t.used, NULL, &note), SCOUT_DISPATCH_BAD);
    UNIT_CHECK(!d && strstr(note.text, "overlap"));
}

/* ---- fingerprints ---- */

static void refused_with(const scout_dispatch_device *here, const char *there, const char *mine) {
    const lab_text t = three();
    scout_dispatch *d;
    UNIT_INT(scout_dispatch_open_text(&d, t.text, t.used, here, &note), SCOUT_DISPATCH_REFUSED);
    UNIT_CHECK(d == NULL && !strchr(note.text, '\n'));
    if (!UNIT_CHECK(strstr(note.text, there) && strstr(note.text, mine))) printf("    %s\n", note.text);
}

static void another_machine_is_refused(void) {
    scout_dispatch_device here = lab_device();
    here.name = "GPU B\n\x1b[31m";
    refused_with(&here, "device GPU A", "GPU B??[31m");
    here = lab_device(), here.name = "GPU A80"; /* a prefix is not the same */
    refused_with(&here, "device GPU A,", "GPU A80");
    here = lab_device(), here.capability = "10.0";
    refused_with(&here, "capability 9.0", "10.0");
    here = lab_device(), here.driver = "570.1";
    refused_with(&here, "driver 580.159.04", "570.1");
    here = lab_device(), here.driver = "5801.1";
    refused_with(&here, "driver 580.159.04", "5801.1");
    here = lab_device(), here.driver = NULL;
    refused_with(&here, "driver 580.159.04", "(not given)");
    here = lab_device(), here.units = 114;
    refused_with(&here, "multiprocessors 132", "114");
    here = lab_device(), here.memory_mib = 2000;
    refused_with(&here, "memory 1000", "2000");
    static const scout_dispatch_library newer[] = {{"cublaslt", "13.1.1"}, {"cudnn", "9.19.0"}};
    here = lab_device(), here.libraries = newer;
    refused_with(&here, "cublaslt 13.1.0", "13.1.1");
    here = lab_device(), here.library_count = 0;
    refused_with(&here, "cublaslt 13.1.0", "(not given)");
}

static void the_same_machine_is_not(void) {
    const lab_text t = three();
    static const scout_dispatch_library other[] = {{"cublaslt", "13.1.0"}, {"cudnn", "8.0"}};
    scout_dispatch_device here = lab_device();
    scout_dispatch *d;
    here.units = 132, here.power_limit_w = 300; /* the table does not say one */
    here.libraries = other;                     /* no entry needs cudnn */
    UNIT_INT(scout_dispatch_open_text(&d, t.text, t.used, &here, &note), SCOUT_DISPATCH_OK);
    UNIT_TEXT(note.text, "");
    scout_dispatch_close(d);
    here.driver = "580.200";
    UNIT_INT(scout_dispatch_open_text(&d, t.text, t.used, &here, &note), SCOUT_DISPATCH_WARNED);
    UNIT_CHECK(d && strstr(note.text, "580.159.04") && strstr(note.text, "580.200"));
    scout_dispatch_close(d);
}

/* ---- reloading, one thread ---- */

static void reload_keeps_what_is_held(void) {
    lab_text one = {.used = 0}, two = three();
    const scout_dispatch_device here = lab_device();
    lab_add(&one, LAB_HEAD LAB_TUNED LAB_TAIL, 7, "");
    scout_dispatch *d = opened(&one, &here);
    if (!UNIT_CHECK(d != NULL)) return;
    scout_dispatch_view old = scout_dispatch_begin(d);
    UNIT_INT(scout_dispatch_reload_text(d, two.text, two.used, &note), SCOUT_DISPATCH_OK);
    scout_dispatch_view young = scout_dispatch_begin(d);
    UNIT_INT(scout_dispatch_count(&old), 1);
    UNIT_INT(scout_dispatch_count(&young), 3);
    UNIT_INT(scout_dispatch_reload_text(d, "{}", 2, &note), SCOUT_DISPATCH_BAD);
    char *driver = strstr(two.text, "580.159"); /* now another branch */
    driver[2] = '1';
    UNIT_INT(scout_dispatch_reload_text(d, two.text, two.used, &note), SCOUT_DISPATCH_REFUSED);
    scout_dispatch_view again = scout_dispatch_begin(d);
    UNIT_INT(scout_dispatch_count(&again), 3); /* what failed changed nothing */
    UNIT_CHECK(scout_dispatch_at(&again, 0) == scout_dispatch_at(&young, 0));
    scout_dispatch_end(&old);
    scout_dispatch_end(&young);
    scout_dispatch_end(&again);
    scout_dispatch_close(d);
}

/* A reader that holds every table keeps new ones out, and loses none. */
static void held_tables_are_bounded(void) {
    lab_text t = {.used = 0};
    scout_dispatch_view views[64];
    int held = 0;
    lab_add(&t, LAB_HEAD LAB_TUNED LAB_TAIL, 7, "");
    scout_dispatch *d = opened(&t, NULL);
    if (!UNIT_CHECK(d != NULL)) return;
    scout_dispatch_status status = SCOUT_DISPATCH_OK;
    while (held < 64 && status == SCOUT_DISPATCH_OK) {
        views[held++] = scout_dispatch_begin(d);
        status = scout_dispatch_reload_text(d, t.text, t.used, &note);
    }
    UNIT_INT(status, SCOUT_DISPATCH_BUSY);
    UNIT_CHECK(held > 8 && strstr(note.text, "end views"));
    for (int k = 0; k < held; k++) UNIT_INT(scout_dispatch_count(&views[k]), 1);
    scout_dispatch_end(&views[0]);
    UNIT_INT(scout_dispatch_reload_text(d, t.text, t.used, &note), SCOUT_DISPATCH_OK);
    for (int k = 1; k < held; k++) scout_dispatch_end(&views[k]);
    scout_dispatch_close(d);
}

static void files_are_read(void) {
    const lab_text t = three();
    char path[] = "/tmp/test_dispatch_XXXXXX";
    const int fd = mkstemp(path);
    scout_dispatch *d;
    if (!UNIT_CHECK(fd >= 0 && write(fd, t.text, t.used) == (ssize_t)t.used)) return;
    close(fd);
    UNIT_INT(scout_dispatch_open(&d, path, NULL, NULL), SCOUT_DISPATCH_OK);
    UNIT_INT(scout_dispatch_reload(d, path, &note), SCOUT_DISPATCH_OK);
    unlink(path);
    UNIT_INT(scout_dispatch_reload(d, path, &note), SCOUT_DISPATCH_FAILED);
    scout_dispatch_close(d);
    UNIT_INT(scout_dispatch_open(&d, path, NULL, &note), SCOUT_DISPATCH_FAILED);
    UNIT_CHECK(!d && strstr(note.text, path));
    UNIT_INT(scout_dispatch_open(&d, "/", NULL, &note), SCOUT_DISPATCH_FAILED);
    UNIT_INT(scout_dispatch_open(&d, "/dev/zero", NULL, &note), SCOUT_DISPATCH_FAILED);
}

int main(void) {
    UNIT_RUN(all_is_found);
    UNIT_RUN(many_are_found_and_none_else);
    UNIT_RUN(near_keeps_to_its_range);
    UNIT_RUN(near_moves_a_size_everywhere);
    UNIT_RUN(false_ranges_are_refused);
    UNIT_RUN(ranges_that_overlap_are_refused);
    UNIT_RUN(another_machine_is_refused);
    UNIT_RUN(the_same_machine_is_not);
    UNIT_RUN(reload_keeps_what_is_held);
    UNIT_RUN(held_tables_are_bounded);
    UNIT_RUN(files_are_read);
    return unit_end();
}
