/* Two generated headers in one program, C or C++: prints every entry as it stands in them, and looks a few up. */
#include "hostile.h"
#include "plain.h"

#include <stdio.h>

static void print(const char *text) {
    for (; *text; text++) printf("%02x", SCOUT_DISPATCH_AS(unsigned, SCOUT_DISPATCH_AS(unsigned char, *text)));
    printf(" ");
}

static int find(const char *text) {
    scout_dispatch_key key;
    return scout_dispatch_key_parse(&key, text, strlen(text)) && plain_find(&key) != SCOUT_DISPATCH_NULL;
}

static int near_m(int64_t m) {
    const int64_t shape[] = {m, 4096, 4096};
    scout_dispatch_key key;
    scout_dispatch_op op;
    memset(&op, 0, sizeof op);
    op.kind = "gemm", op.shape = shape, op.rank = 3, op.layout = "nn", op.type = op.weight_type = "fp16";
    op.weight_side = "b";
    return scout_dispatch_key_make(&key, &op) && !plain_find(&key) && plain_near(&key) != SCOUT_DISPATCH_NULL;
}

int main(void) {
    const scout_dispatch_library libraries[] = {{"cublaslt", "13.1.0"}};
    scout_dispatch_device here;
    char text[512];
    for (uint32_t k = 0; k < hostile_index.entry_count; k++) {
        const scout_dispatch_entry *e = &hostile_index.entries[k];
        scout_dispatch_key key;
        print(e->key), print(e->operation), print(e->implementation), print(e->variant), print(e->config);
        print(e->packing ? e->packing : ""), printf("%u %.17g\n", e->algo_bytes, e->ratio);
        if (!scout_dispatch_key_parse(&key, e->key, strlen(e->key)) || hostile_find(&key) != e) return 2;
    }
    memset(&here, 0, sizeof here);
    here.name = "Test GPU", here.capability = "9.0", here.driver = "580.1", here.libraries = libraries;
    here.library_count = 1;
    if (plain_check(&here, text, sizeof text) != SCOUT_DISPATCH_SAME || text[0]) return 3;
    if (hostile_check(&here, text, sizeof text) != SCOUT_DISPATCH_SAME) return 4;
    here.driver = "570.2";
    if (plain_check(&here, text, sizeof text) != SCOUT_DISPATCH_OTHER) return 5;
    fprintf(stderr, "%s\n", text);
    if (!find("gemm;shape=64,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b")) return 6;
    if (find("gemm;shape=65,4096,4096;layout=nn;type=fp16;weight=fp16;weight_side=b")) return 7;
    return near_m(96) && !near_m(100) && !near_m(64) && !near_m(192) && !near_m(1536) ? 0 : 8;
}
