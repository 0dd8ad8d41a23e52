/* Identities: what tells two classes apart, what does not, names that are fit for folders, and hostile texts. */
#include "scout/device/identity.h"
#include "tests/unit/unit.h"

#include <math.h>

static scout_identity some(void) {
    scout_identity id;
    memset(&id, 0, sizeof id);
    id.size = sizeof id;
    snprintf(id.name, sizeof id.name, "NVIDIA H200");
    snprintf(id.uuid, sizeof id.uuid, "GPU-1234");
    snprintf(id.capability, sizeof id.capability, "9.0");
    snprintf(id.driver, sizeof id.driver, "580.95.05");
    id.units = 132;
    id.memory_bytes = 150754820096;
    id.power_limit_w = 700;
    id.library_count = 1;
    snprintf(id.libraries[0].name, sizeof id.libraries[0].name, "cublaslt");
    snprintf(id.libraries[0].version, sizeof id.libraries[0].version, "13.1.0");
    snprintf(id.libraries[0].path, sizeof id.libraries[0].path, "/usr/lib/libcublasLt.so.13");
    return id;
}

static bool same_class(const scout_identity *a, const scout_identity *b) {
    char x[IDENTITY_CLASS_ROOM], y[IDENTITY_CLASS_ROOM], p[IDENTITY_FOLDER_ROOM], q[IDENTITY_FOLDER_ROOM];
    identity_class(a, x, sizeof x);
    identity_class(b, y, sizeof y);
    identity_class_folder(a, p, sizeof p);
    identity_class_folder(b, q, sizeof q);
    UNIT_INT(strcmp(x, y) == 0, strcmp(p, q) == 0);
    return strcmp(x, y) == 0;
}

static void classes(void) {
    const scout_identity a = some();
    scout_identity b = a;
    char x[IDENTITY_INSTANCE_ROOM], y[IDENTITY_INSTANCE_ROOM];
    snprintf(b.uuid, sizeof b.uuid, "GPU-5678");
    UNIT_CHECK(same_class(&a, &b)); /* another one of the same kind */
    identity_instance(&a, x, sizeof x);
    identity_instance(&b, y, sizeof y);
    UNIT_CHECK(strcmp(x, y) != 0 && strstr(x, "GPU-1234"));
    b = a, snprintf(b.driver, sizeof b.driver, "580.105.08"), b.ordinal = 3;
    UNIT_CHECK(same_class(&a, &b)); /* a driver's patch level, another place */
#define DIFFERS(change) (b = a, (void)(change), UNIT_CHECK(!same_class(&a, &b)))
    DIFFERS(snprintf(b.driver, sizeof b.driver, "590.1"));
    DIFFERS(snprintf(b.name, sizeof b.name, "NVIDIA H100"));
    DIFFERS(snprintf(b.capability, sizeof b.capability, "9.1"));
    DIFFERS(snprintf(b.libraries[0].version, sizeof b.libraries[0].version, "13.2.0"));
    DIFFERS(b.units = 114);
    DIFFERS(b.memory_bytes /= 2);
    DIFFERS(b.power_limit_w = 600);
    DIFFERS(b.library_count = 0);
#undef DIFFERS
}

static void folders(void) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyz0123456789_-.";
    static const char *const names[] = {"NVIDIA H200",
                                        "../../etc",
                                        "",
                                        "...",
                                        "a/b\\c",
                                        "Intel(R) Xeon(R) @ 2.10GHz",
                                        "a name that is far too long to be the name of a folder, and goes on and on"};
    char folder[IDENTITY_FOLDER_ROOM];
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        scout_identity id = some();
        snprintf(id.name, sizeof id.name, "%s", names[k]);
        identity_class_folder(&id, folder, sizeof folder);
        const size_t n = strlen(folder);
        UNIT_CHECK(strspn(folder, safe) == n && folder[0] != '.' && n > 11 && folder[n - 11] == '-');
    }
    const scout_identity id = some();
    identity_class_folder(&id, folder, sizeof folder);
    UNIT_CHECK(strncmp(folder, "nvidia_h200-", 12) == 0);
}

static void there_and_back(void) {
    scout_identity id = some(), back;
    json_builder b = {0};
    status st;
    json_t *o = json_finish(&b, identity_to_json(&id, &b), &st);
    UNIT_CHECK(identity_from_json(o, &back));
    UNIT_CHECK(same_class(&id, &back));
    UNIT_TEXT(back.libraries[0].path, "/usr/lib/libcublasLt.so.13");
    UNIT_TEXT(back.driver, id.driver);
    json_decref(o);
    UNIT_CHECK(!identity_from_json(NULL, &back));
    o = json_pack("{s:[i,i]}", "name", 1, 2);
    UNIT_CHECK(!identity_from_json(o, &back));
    json_decref(o);
}

/* What a plugin forgot to end, or filled with anything: it still becomes JSON. */
static void hostile(void) {
    scout_identity id;
    json_builder b = {0};
    status st;
    memset(&id, 0xe9, sizeof id);
    id.size = sizeof id;
    id.power_limit_w = NAN;
    identity_clean(&id);
    UNIT_INT(strlen(id.name), sizeof id.name - 1);
    UNIT_INT(id.library_count, 8);
    json_t *o = json_finish(&b, identity_to_json(&id, &b), &st);
    UNIT_CHECK(o != NULL);
    json_decref(o);
}

int main(void) {
    UNIT_RUN(classes);
    UNIT_RUN(folders);
    UNIT_RUN(there_and_back);
    UNIT_RUN(hostile);
    return unit_end();
}
