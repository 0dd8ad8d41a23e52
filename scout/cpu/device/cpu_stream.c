/* Memory streams and exponentials. A stream is cut into equal shares, one a thread; a share
 * alternates between blocks it reads and blocks it writes in the proportion that is asked for, so that a copy overlaps
 * both directions. Stores go past the caches where that is faster: an ordinary store first reads what it overwrites,
 * which is free only where it is in a cache already. */
#include "scout/cpu/device/cpu_stream.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_telemetry.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 4096, LINE = 64 };

/* Reads a block; the result depends on all of it. */
typedef uint64_t read_block(const char *from, uint64_t bytes);
typedef void write_block(char *to, uint64_t bytes, uint64_t value);

static uint64_t read_portable(const char *from, uint64_t bytes) {
    uint64_t sums[4] = {0}, words[4];
    for (uint64_t k = 0; k + sizeof words <= bytes; k += sizeof words) {
        memcpy(words, from + k, sizeof words);
        for (int u = 0; u < 4; u++) sums[u] ^= words[u];
    }
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

static void write_portable(char *to, uint64_t bytes, uint64_t value) { memset(to, (int)(value & 127), (size_t)bytes); }

#if defined(__x86_64__)
#define AVX512 __attribute__((target("avx512f")))

AVX512 static uint64_t read_avx512(const char *from, uint64_t bytes) {
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    uint64_t k = 0, out[8];
    for (; k + 256 <= bytes; k += 256) {
        a = _mm512_xor_si512(a, _mm512_loadu_si512(from + k));
        b = _mm512_xor_si512(b, _mm512_loadu_si512(from + k + 64));
        c = _mm512_xor_si512(c, _mm512_loadu_si512(from + k + 128));
        d = _mm512_xor_si512(d, _mm512_loadu_si512(from + k + 192));
    }
    for (; k + LINE <= bytes; k += LINE) a = _mm512_xor_si512(a, _mm512_loadu_si512(from + k));
    _mm512_storeu_si512(out, _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d)));
    return out[0] ^ out[1] ^ out[2] ^ out[3] ^ out[4] ^ out[5] ^ out[6] ^ out[7];
}

AVX512 static void write_avx512(char *to, uint64_t bytes, uint64_t value) {
    const __m512i v = _mm512_set1_epi8((char)(value & 127));
    for (uint64_t k = 0; k + LINE <= bytes; k += LINE) _mm512_storeu_si512(to + k, v);
}

AVX512 static void write_past_avx512(char *to, uint64_t bytes, uint64_t value) {
    const __m512i v = _mm512_set1_epi8((char)(value & 127));
    for (uint64_t k = 0; k + LINE <= bytes; k += LINE) _mm512_stream_si512((__m512i *)(void *)(to + k), v);
}

#define AVX2 __attribute__((target("avx2")))

AVX2 static uint64_t read_avx2(const char *from, uint64_t bytes) {
    __m256i a = _mm256_setzero_si256(), b = a;
    uint64_t out[4];
    for (uint64_t k = 0; k + LINE <= bytes; k += LINE) {
        a = _mm256_xor_si256(a, _mm256_loadu_si256((const __m256i *)(const void *)(from + k)));
        b = _mm256_xor_si256(b, _mm256_loadu_si256((const __m256i *)(const void *)(from + k + 32)));
    }
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_xor_si256(a, b));
    return out[0] ^ out[1] ^ out[2] ^ out[3];
}

AVX2 static void write_past_avx2(char *to, uint64_t bytes, uint64_t value) {
    const __m256i v = _mm256_set1_epi8((char)(value & 127));
    for (uint64_t k = 0; k + 32 <= bytes; k += 32) _mm256_stream_si256((__m256i *)(void *)(to + k), v);
}
#else
#define read_avx512       read_portable
#define read_avx2         read_portable
#define write_avx512      write_portable
#define write_past_avx512 write_portable
#define write_past_avx2   write_portable
#endif

typedef struct hand_over {
    const scout_op *op;
    void *const *tensors;
} hand_over;

/* A quarter of a thread's share on: where it uses its own share later, a quarter of that was another one's. */
static void hand_tensor(char *data, uint64_t bytes, bool write, int thread, int threads) {
    const int64_t lines = (int64_t)(bytes / LINE);
    int64_t from, to;
    cpu_team_share(lines, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        volatile char *const line = data + (k + lines / threads / 4) % lines * LINE;
        const char seen = *line;
        if (write) *line = seen;
    }
}

static void hand_share(void *context, int thread, int threads) {
    static const uint32_t roles[] = {SCOUT_OUTPUT, SCOUT_INPUT};
    const hand_over *h = context;
    for (size_t r = 0; r < sizeof roles / sizeof *roles; r++)
        for (uint32_t t = 0; t < h->op->tensor_count; t++) {
            const scout_tensor *of = &h->op->tensors[t];
            if (of->role == roles[r] && h->tensors[t])
                hand_tensor(h->tensors[t], of->bytes, of->role == SCOUT_INPUT, thread, threads);
        }
}

void cpu_stream_hand_over(const scout_op *op, void *const *tensors) {
    hand_over h = {op, tensors};
    cpu_team_run(hand_share, &h);
}

typedef struct stream_job {
    const char *read;
    char *written;
    uint64_t read_bytes, written_bytes;
    read_block *reads;
    write_block *writes;
} stream_job;

static void stream_share(void *context, int thread, int threads) {
    const stream_job *j = context;
    int64_t read_from, read_to, write_from, write_to;
    cpu_team_share((int64_t)(j->read_bytes / LINE), thread, threads, &read_from, &read_to);
    cpu_team_share((int64_t)(j->written_bytes / LINE), thread, threads, &write_from, &write_to);
    uint64_t r = (uint64_t)read_from * LINE, r_end = (uint64_t)read_to * LINE, seen = 0;
    uint64_t w = (uint64_t)write_from * LINE, w_end = (uint64_t)write_to * LINE;
    const uint64_t r_all = r_end - r, w_all = w_end - w, longest = r_all > w_all ? r_all : w_all;
    const uint64_t turns = longest / BLOCK + 1;
    for (uint64_t turn = 1; turn <= turns; turn++) {
        const uint64_t r_next = turn == turns ? r_end : r_end - r_all + r_all / turns / LINE * turn * LINE;
        const uint64_t w_next = turn == turns ? w_end : w_end - w_all + w_all / turns / LINE * turn * LINE;
        if (r_next > r) seen ^= j->reads(j->read + r, r_next - r);
        if (w_next > w) j->writes(j->written + w, w_next - w, seen + turn);
        r = r_next, w = w_next;
    }
    __asm__ volatile("" : : "r"(seen) : "memory"); /* keeps the reads */
#if defined(__x86_64__)
    _mm_sfence();
#endif
    if (thread != 0) return; /* what is left of a line */
    for (uint64_t k = j->read_bytes / LINE * LINE; k < j->read_bytes; k++) (void)*(const volatile char *)(j->read + k);
    for (uint64_t k = j->written_bytes / LINE * LINE; k < j->written_bytes; k++) j->written[k] = 1;
}

static void choose_kernels(stream_job *job, bool past) {
    const cpu_info *c = cpu_info_get();
    job->reads = c->avx512 ? read_avx512 : c->avx2 ? read_avx2 : read_portable;
    job->writes = c->avx512 ? write_avx512 : write_portable;
    if (past) job->writes = c->avx512 ? write_past_avx512 : write_past_avx2;
}

/* What fits the private caches and is written again: nothing is faster than leaving it there. */
static bool stays_near(const cpu_info *c, uint64_t bytes, bool again) {
    return again && bytes <= c->l2_bytes / 2 * (uint64_t)c->core_count;
}

/* Stores go past the caches by lines, and only where they may leave them. A thread alone is for what its own caches
 * hold. */
static int ways_of(const cpu_info *c, const void *written, uint64_t read_bytes, uint64_t written_bytes, bool again,
                   int ways[CPU_STREAM_WAYS]) {
    const uint64_t bytes = read_bytes + written_bytes;
    int count = 0;
    ways[count++] = CPU_STREAM_TEAM;
    if (c->avx2 && (uintptr_t)written % LINE == 0 && written_bytes >= BLOCK && !stays_near(c, bytes, again))
        ways[count++] = CPU_STREAM_PAST;
    if (c->core_count > 1 && bytes <= c->l2_bytes) ways[count++] = CPU_STREAM_ALONE;
    return count;
}

/* All are tried in alternating rows of launches, as a row sees the caches that its own first launch leaves. Larger
 * sizes find little there and are launched only a few times when measured: most of these must use the better one. */
typedef struct trial {
    uint32_t row, tries; /* of each way */
} trial;

static trial trial_of(uint64_t written_bytes) {
    enum { LARGE = 16 << 20, LARGEST = 64 << 20 };
    if (written_bytes < LARGE) return (trial){4, 12};
    return written_bytes < LARGEST ? (trial){1, 3} : (trial){1, 1};
}

void cpu_stream_run(cpu_stream_state *state, const void *read, uint64_t read_bytes, void *written,
                    uint64_t written_bytes) {
    const cpu_info *c = cpu_info_get();
    const trial how = trial_of(written_bytes);
    stream_job job = {read, written, read_bytes, written_bytes, NULL, NULL};
    const void *const target = written_bytes > 0 ? written : read;
    const bool again = target == state->last;
    const int what = written_bytes == 0 ? 2 : read_bytes > 0;
    const uint64_t size = written_bytes > 0 ? written_bytes : read_bytes;
    cpu_stream_choice *choice = &state->choices[63 - __builtin_clzll(size | 1)][what][again];
    int ways[CPU_STREAM_WAYS];
    const int count = ways_of(c, written, read_bytes, written_bytes, again, ways);
    int way = ways[0];
    for (int k = 1; k < count; k++) /* that whose rows are fewest */
        if (choice->tries[ways[k]] / how.row < choice->tries[way] / how.row) way = ways[k];
    const bool trying = count > 1 && choice->tries[way] < how.tries;
    for (int k = 0; k < count && !trying; k++)
        if (choice->seconds[ways[k]] > 0 && choice->seconds[ways[k]] < choice->seconds[way]) way = ways[k];
    state->last = target;
    choose_kernels(&job, way == CPU_STREAM_PAST);
    const double start = trying ? cpu_telemetry_now() : 0;
    if (way == CPU_STREAM_ALONE)
        stream_share(&job, 0, 1);
    else
        cpu_team_run(stream_share, &job);
    if (!trying) return;
    const double seconds = (cpu_telemetry_now() - start) / (double)(read_bytes + written_bytes + 1);
    if (choice->seconds[way] <= 0 || seconds < choice->seconds[way]) choice->seconds[way] = seconds;
    choice->tries[way]++;
}

/* --- exponentials --- */

enum { LANES = 16, CHAINS = 4 };

/* exp by halves: 2^n from the exponent's bits, the rest by a polynomial, as vector libraries do it in single precision
 * (2 units in the last place). Written on arrays, so that the compiler chooses the registers of its target. */
#define EXP_BODY                                                                                                       \
    float x[CHAINS * LANES];                                                                                           \
    for (int k = 0; k < CHAINS * LANES; k++) x[k] = -(float)k / 64;                                                    \
    for (uint64_t r = 0; r < rounds; r++) {                                                                            \
        for (int k = 0; k < CHAINS * LANES; k++) {                                                                     \
            const float scaled = x[k] * 1.44269504f, magic = 0x1.8p23f, whole = (scaled + magic) - magic;              \
            const float f = x[k] - whole * 0.693147181f;                                                               \
            const float p = 1 + f * (1 + f * (0.5f + f * (0.166666667f + f * (0.0416666667f + f * 0.00833333333f))));  \
            const int32_t power = ((int32_t)whole + 127) << 23;                                                        \
            float two;                                                                                                 \
            memcpy(&two, &power, sizeof two);                                                                          \
            x[k] = -p * two;                                                                                           \
        }                                                                                                              \
        __asm__ volatile("" : : "r"(x) : "memory");                                                                    \
    }
#if defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((optimize("O3", "no-math-errno", "no-trapping-math")))
#define WIDE "avx512f,fma,prefer-vector-width=512"
#else
#define FAST
#define WIDE "avx512f,fma"
#endif

typedef void exp_rounds(uint64_t rounds);
FAST static void exp_portable(uint64_t rounds){EXP_BODY}
#if defined(__x86_64__)
FAST __attribute__((target("avx2,fma"))) static void exp_avx2(uint64_t rounds){EXP_BODY} FAST
    __attribute__((target(WIDE))) static void exp_avx512(uint64_t rounds) {
    EXP_BODY
}
#else
#define exp_avx2   exp_portable
#define exp_avx512 exp_portable
#endif

typedef struct special_job {
    uint64_t rounds;
    exp_rounds *kernel;
} special_job;

static void special_share(void *context, int thread, int threads) {
    const special_job *j = context;
    (void)thread, (void)threads;
    j->kernel(j->rounds);
}

uint64_t cpu_stream_special(uint64_t operations) {
    const cpu_info *c = cpu_info_get();
    const uint64_t each = (uint64_t)cpu_team_size() * CHAINS * LANES;
    special_job job = {operations / each + (operations % each > 0), c->avx512 ? exp_avx512
                                                                    : c->avx2 ? exp_avx2
                                                                              : exp_portable};
    cpu_team_run(special_share, &job);
    return job.rounds * each;
}
