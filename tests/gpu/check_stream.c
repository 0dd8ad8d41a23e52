/* The bandwidth probe: that it moves what it says, and which of its ways is the fastest for which size and mix (not
 * where a second argument is `moves`: under a sanitizer times say nothing). */
#include "tests/gpu/gpu_check.h"

#include "kernels/harness/kernels.h"

#include <stdlib.h>

typedef struct moving {
    char *read, *written;
    uint64_t read_bytes, written_bytes, rotate; /* bytes between launches, within `room` */
    uint64_t room;
    void *sink;
    int units, variant;
} moving;

static scout_answer enqueue_moving(void *context, uint32_t number, void *stream, scout_why *why) {
    const moving *const m = context;
    const uint64_t at = m->rotate ? number * m->rotate % (m->room / m->rotate * m->rotate) : 0;
    const cudaError_t e =
        kernels_stream(m->read_bytes ? m->read + at : NULL, m->read_bytes, m->written_bytes ? m->written + at : NULL,
                       m->written_bytes, m->sink, m->units, m->variant, stream);
    return e == cudaSuccess ? SCOUT_OK : scout_say(why, SCOUT_FAILED, "error", "%s", cudaGetErrorString(e));
}

static double speed(moving *m, bool cold) {
    scout_why why = {"", ""};
    scout_answer answer = SCOUT_OK;
    const uint64_t bytes = m->read_bytes + m->written_bytes,
                   most = m->read_bytes > m->written_bytes ? m->read_bytes : m->written_bytes;
    uint32_t launches = bytes > 200000000 ? 4 : (uint32_t)(600000000 / (bytes + 1000000)) + 4;
    if (cold && launches * most < 512u << 20) launches = (uint32_t)((512u << 20) / most); /* more than any cache */
    m->rotate = cold ? (most + 511) & ~511ull : 0;
    const double seconds = gpu_time(enqueue_moving, m, 1, launches, 8, &why, &answer);
    if (!gpu_expect(answer == SCOUT_OK, "%s: %s", kernels_stream_name(m->variant), why.text)) return 0;
    return (double)bytes / seconds * 1e-12;
}

/* Whether all of the mix's bytes are written and none behind them: what is read is random, and 16 bytes of it are never
 * alike. */
static bool is_written(const moving *m, uint8_t *host, uint64_t room) {
    const uint8_t before = 0x5a;
    uint64_t left = 0, touched = 0;
    if (cudaMemcpy(host, m->written, room, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
    for (uint64_t at = 0; at + 16 <= m->written_bytes; at += 16) {
        uint64_t same = 0;
        for (uint64_t k = 0; k < 16; k++) same += host[at + k] == before;
        left += same == 16;
    }
    for (uint64_t at = m->written_bytes; at < room; at++) touched += host[at] != before;
    return left == 0 && touched == 0;
}

/* Sides of any two lengths, one of them none. */
static void check_mixes(moving m) {
    static const uint64_t lengths[][2] = {{0, 100003},        {100003, 0},        {0, 7},           {7, 16777216},
                                          {1000003, 17},      {65536, 131072},    {1048576, 65537}, {3000007, 1500001},
                                          {1500001, 3000007}, {16777216, 2396745}};
    const uint64_t room = 20u << 20;
    uint8_t *host = malloc(room);
    for (m.variant = 0; host && m.variant < kernels_stream_variants(); m.variant++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            scout_why why = {"", ""};
            scout_answer answer = SCOUT_OK;
            m.read_bytes = lengths[k][0], m.written_bytes = lengths[k][1];
            GPU_OK(gpu_api->fill(gpu, m.written, room, SCOUT_NONE, SCOUT_FILL_BYTE, 0x5a, &gpu_why));
            gpu_time(enqueue_moving, &m, 0, 1, 1, &why, &answer);
            gpu_expect(answer == SCOUT_OK && is_written(&m, host, room), "%s: %llu bytes read, %llu written (%s)",
                       kernels_stream_name(m.variant), (unsigned long long)m.read_bytes,
                       (unsigned long long)m.written_bytes, why.text);
        }
    gpu_expect(host != NULL, "no memory on the host");
    free(host);
}

/* A copy is one, whatever its length, and what lies behind it stays. */
static void check_moves(moving m) {
    static const uint64_t lengths[] = {1, 15, 16, 17, 4096, 65536, 65537, 1000003, 16777216, 33554432 + 48};
    for (m.variant = 0; m.variant < kernels_stream_variants(); m.variant++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            uint64_t from = 0, to = 0, before = 0, after = 0;
            scout_why why = {"", ""};
            scout_answer answer = SCOUT_OK;
            m.read_bytes = m.written_bytes = lengths[k];
            GPU_OK(gpu_api->fill(gpu, m.written, 64u << 20, SCOUT_NONE, SCOUT_FILL_BYTE, 0x5a, &gpu_why));
            GPU_OK(gpu_api->checksum(gpu, m.written + lengths[k], 1 << 20, &before, &gpu_why));
            gpu_time(enqueue_moving, &m, 0, 1, 1, &why, &answer);
            GPU_OK(gpu_api->checksum(gpu, m.read, lengths[k] & ~15ull, &from, &gpu_why));
            GPU_OK(gpu_api->checksum(gpu, m.written, lengths[k] & ~15ull, &to, &gpu_why));
            GPU_OK(gpu_api->checksum(gpu, m.written + lengths[k], 1 << 20, &after, &gpu_why));
            gpu_expect(answer == SCOUT_OK && from == to && before == after, "%s: a copy of %llu bytes (%s)",
                       kernels_stream_name(m.variant), (unsigned long long)lengths[k], why.text);
        }
}

static void check_speeds(moving m) {
    static const struct {
        const char *name;
        int read, written; /* parts of 24 */
    } mixes[] = {{"read", 24, 0}, {"7:1", 21, 3}, {"2:1", 16, 8}, {"copy", 12, 12}, {"1:2", 8, 16}, {"write", 0, 24}};
    static const uint64_t sizes[] = {65536,     1u << 20,   4u << 20,   8u << 20,         16u << 20,
                                     32u << 20, 128u << 20, 512u << 20, (uint64_t)4 << 30};
    for (size_t x = 0; x < sizeof mixes / sizeof mixes[0]; x++) {
        printf("%-32s", mixes[x].name);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            printf(" %8.3g MB hot %s", (double)sizes[s] / 1048576, sizes[s] < (64u << 20) ? "/ cold" : "      ");
        printf("\n");
        for (m.variant = 0; m.variant < kernels_stream_variants(); m.variant++) {
            printf("%-32s", kernels_stream_name(m.variant));
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                const uint64_t part = sizes[s] / 24 / 16 * 16;
                m.read_bytes = part * (uint64_t)mixes[x].read;
                m.written_bytes = part * (uint64_t)mixes[x].written;
                printf("     %7.3f  ", speed(&m, false));
                if (sizes[s] < (64u << 20))
                    printf("%7.3f", speed(&m, true));
                else
                    printf("       ");
            }
            printf("\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv) {
    const uint64_t room = (uint64_t)4 << 30;
    scout_identity id = {.size = sizeof id};
    moving m = {.room = room};
    gpu_begin(argc, argv, true);
    GPU_OK(gpu_api->identify(0, &id, &gpu_why));
    m.units = id.units;
    GPU_OK(gpu_api->alloc(gpu, room + (1 << 20), (void **)&m.read, &gpu_why));
    GPU_OK(gpu_api->alloc(gpu, room + (1 << 20), (void **)&m.written, &gpu_why));
    GPU_OK(gpu_api->alloc(gpu, 4096, &m.sink, &gpu_why));
    GPU_OK(gpu_api->fill(gpu, m.read, room, SCOUT_FP16, SCOUT_FILL_NORMAL, 1, &gpu_why));
    check_moves(m);
    check_mixes(m);
    if (argc < 3 || strcmp(argv[2], "moves") != 0) check_speeds(m);
    return gpu_end();
}
