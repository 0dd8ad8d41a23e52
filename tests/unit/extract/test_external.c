/* External data: what may be read, what is merely missing, and what is forbidden, in folders as they occur. */
#include "extract/read/external.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static guard g;
static arena a;
static char root[64];

static void write_file(const char *path, const char *text) {
    FILE *out = fopen(path, "w");
    if (!out) return;
    fputs(text, out);
    fclose(out);
}

/* Everything happens in a new folder: model/ with model.onnx in it, and outside/ beside it. */
static void enter(void) {
    strcpy(root, "/tmp/test_external.XXXXXX");
    if (!mkdtemp(root) || chdir(root) != 0) abort();
    mkdir("model", 0755);
    mkdir("outside", 0755);
    write_file("model/model.onnx", "m");
    write_file("outside/secret", "secret");
}

static void leave(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (chdir("/") != 0 || system(command) != 0) puts("the test's folder stays behind");
}

typedef enum outcome { READABLE, MISSING, FORBIDDEN } outcome;

static outcome ask(const char *model, const char *location) {
    guard_init(&g);
    arena_init(&a, &g, 1 << 22);
    volatile outcome result = FORBIDDEN;
    if (guard_enter(&g)) {
        external e;
        external_init(&e, &a, model);
        const external_file *f = external_find(&e, location);
        result = f->why ? MISSING : READABLE;
        UNIT_CHECK(external_find(&e, location) == f); /* looked at once */
        char bytes[2] = "";
        if (!f->why) external_read(&g, f, 1, bytes, 1);
        if (!f->why) UNIT_TEXT(bytes, "e");
    } else {
        UNIT_INT(g.st.code, STATUS_INPUT);
        UNIT_CHECK(strstr(g.st.text, "external data '") != NULL);
    }
    arena_free(&a);
    return result;
}

static void beside_the_model(void) {
    enter();
    write_file("model/w.bin", "weights");
    mkdir("model/sub", 0755);
    write_file("model/sub/w.bin", "weights");
    UNIT_INT(ask("model/model.onnx", "w.bin"), READABLE);
    UNIT_INT(ask("model/model.onnx", "./sub/w.bin"), READABLE);
    UNIT_INT(ask("model/model.onnx", "gone.bin"), MISSING);
    UNIT_INT(ask("model/model.onnx", "gone/w.bin"), MISSING);
    UNIT_INT(ask("model/model.onnx", "w.bin/x"), MISSING);
    leave();
}

static void paths_out(void) {
    enter();
    UNIT_INT(ask("model/model.onnx", ""), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "/etc/hostname"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "../outside/secret"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "sub/../model.onnx"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", ".."), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "..."), MISSING);
    leave();
}

static void links_out(void) {
    enter();
    UNIT_INT(symlink("../outside/secret", "model/link"), 0);
    UNIT_INT(symlink("../outside", "model/folder"), 0);
    UNIT_INT(symlink("circle", "model/circle"), 0);
    UNIT_INT(symlink("nowhere", "model/dangling"), 0);
    UNIT_INT(link("outside/secret", "model/hard"), 0);
    write_file("model/w.bin", "weights");
    UNIT_INT(symlink("w.bin", "model/inside"), 0);
    UNIT_INT(link("model/w.bin", "model/twin"), 0);
    UNIT_INT(ask("model/model.onnx", "link"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "folder/secret"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "circle"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "dangling"), MISSING);
    UNIT_INT(ask("model/model.onnx", "hard"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "inside"), READABLE);
    UNIT_INT(ask("model/model.onnx", "twin"), READABLE);
    leave();
}

static void not_files(void) {
    enter();
    mkdir("model/folder", 0755);
    UNIT_INT(mkfifo("model/pipe", 0644), 0);
    UNIT_INT(symlink("/dev/zero", "model/device"), 0);
    UNIT_INT(ask("model/model.onnx", "folder"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "pipe"), FORBIDDEN);
    UNIT_INT(ask("model/model.onnx", "device"), FORBIDDEN);
    leave();
}

/* blobs/ holds the files under names of their own; snapshots/1/ is the model's folder, all links. */
static void store_of_links(void) {
    enter();
    mkdir("blobs", 0755);
    mkdir("blobs/deeper", 0755);
    mkdir("snapshots", 0755);
    mkdir("snapshots/1", 0755);
    write_file("blobs/aaaa", "m");
    write_file("blobs/bbbb", "weights");
    write_file("blobs/deeper/cccc", "weights");
    UNIT_INT(symlink("../../blobs/aaaa", "snapshots/1/model.onnx"), 0);
    UNIT_INT(symlink("../../blobs/bbbb", "snapshots/1/model.onnx.data"), 0);
    UNIT_INT(symlink("../../blobs/deeper/cccc", "snapshots/1/deeper"), 0);
    UNIT_INT(symlink("../../outside/secret", "snapshots/1/out"), 0);
    UNIT_INT(ask("snapshots/1/model.onnx", "model.onnx.data"), READABLE);
    UNIT_INT(ask("snapshots/1/model.onnx", "deeper"), FORBIDDEN);
    UNIT_INT(ask("snapshots/1/model.onnx", "out"), FORBIDDEN);
    leave();
}

/* A link to a model elsewhere: its data is where it was. */
static void link_to_a_model(void) {
    enter();
    write_file("model/w.bin", "weights");
    UNIT_INT(symlink("model/model.onnx", "short.onnx"), 0);
    UNIT_INT(symlink("../outside/secret", "model/link"), 0);
    UNIT_INT(ask("short.onnx", "w.bin"), READABLE);
    UNIT_INT(ask("short.onnx", "gone.bin"), MISSING);
    UNIT_INT(ask("short.onnx", "link"), FORBIDDEN);
    leave();
}

/* The same store with hard links: model and data both have names outside. */
static void store_of_hard_links(void) {
    enter();
    write_file("outside/bbbb", "weights");
    UNIT_INT(link("model/model.onnx", "outside/aaaa"), 0);
    UNIT_INT(link("outside/bbbb", "model/w.bin"), 0);
    UNIT_INT(ask("model/model.onnx", "w.bin"), READABLE);
    leave();
}

/* Where other names may lie deeper than is looked, that is what is said. */
static void names_too_deep(void) {
    enter();
    char deep[64] = "model";
    for (int k = 0; k < 12; k++) {
        strcat(deep, "/d");
        mkdir(deep, 0755);
    }
    strcat(deep, "/w.bin");
    write_file(deep, "weights");
    write_file("model/near", "weights");
    UNIT_INT(link(deep, "model/w.bin"), 0);
    UNIT_INT(link("model/near", "model/nearer"), 0);
    UNIT_INT(ask("model/model.onnx", "w.bin"), FORBIDDEN);
    UNIT_CHECK(strstr(g.st.text, "has other names") != NULL);
    UNIT_INT(ask("model/model.onnx", "near"), READABLE);
    leave();
}

static void links_are_counted(void) {
    enter();
    UNIT_INT(link("outside/secret", "outside/again"), 0);
    UNIT_INT(link("outside/secret", "model/hard"), 0);
    guard_init(&g);
    arena_init(&a, &g, 1 << 23);
    if (UNIT_CHECK(guard_enter(&g))) {
        struct stat s;
        external_links in_model, in_both;
        external_links_list(&in_model, &a, "model");
        external_links_list(&in_both, &a, ".");
        UNIT_INT(stat("model/hard", &s), 0);
        UNIT_INT(external_links_find(&in_model, &s), EXTERNAL_LINKS_OUTSIDE);
        UNIT_INT(external_links_find(&in_both, &s), EXTERNAL_LINKS_INSIDE);
        UNIT_INT(in_both.count, 1);
        in_model.cut = true;
        UNIT_INT(external_links_find(&in_model, &s), EXTERNAL_LINKS_UNSEEN);
    }
    arena_free(&a);
    leave();
}

static void replaced_meanwhile(void) {
    enter();
    write_file("model/w.bin", "weights");
    guard_init(&g);
    arena_init(&a, &g, 1 << 22);
    volatile bool refused = false;
    if (guard_enter(&g)) {
        external e;
        external_init(&e, &a, "model/model.onnx");
        const external_file *f = external_find(&e, "w.bin");
        write_file("model/other", "others");
        UNIT_INT(rename("model/other", "model/w.bin"), 0);
        char byte;
        external_read(&g, f, 0, &byte, 1);
    } else {
        refused = strstr(g.st.text, "replaced") != NULL;
    }
    UNIT_CHECK(refused);
    arena_free(&a);
    leave();
}

int main(void) {
    UNIT_RUN(beside_the_model);
    UNIT_RUN(paths_out);
    UNIT_RUN(links_out);
    UNIT_RUN(not_files);
    UNIT_RUN(store_of_links);
    UNIT_RUN(link_to_a_model);
    UNIT_RUN(store_of_hard_links);
    UNIT_RUN(names_too_deep);
    UNIT_RUN(links_are_counted);
    UNIT_RUN(replaced_meanwhile);
    return unit_end();
}
