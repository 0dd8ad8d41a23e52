/* Owns whether an Ed25519 signature is one of a message (RFC 8032), and SHA-512, which it is made with. All of it is
 * public, so nothing here hides how long it takes; short code comes before fast code: a millisecond for a table. */
#include "dispatch/dispatch_ed25519.h"

#include <string.h>

/* ---- SHA-512 ---- */

enum { BLOCK = 128 };

typedef struct hashing {
    uint64_t state[8], bytes;
    uint8_t block[BLOCK];
} hashing;

static uint64_t turned(uint64_t x, int n) { return x >> n | x << (64 - n); }

static void add_block(hashing *h) {
    static const uint64_t constants[80] = {
        0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc, 0x3956c25bf348b538,
        0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118, 0xd807aa98a3030242, 0x12835b0145706fbe,
        0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2, 0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235,
        0xc19bf174cf692694, 0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
        0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5, 0x983e5152ee66dfab,
        0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4, 0xc6e00bf33da88fc2, 0xd5a79147930aa725,
        0x06ca6351e003826f, 0x142929670a0e6e70, 0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed,
        0x53380d139d95b3df, 0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
        0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30, 0xd192e819d6ef5218,
        0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8, 0x19a4c116b8d2d0c8, 0x1e376c085141ab53,
        0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8, 0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373,
        0x682e6ff3d6b2b8a3, 0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
        0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b, 0xca273eceea26619c,
        0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178, 0x06f067aa72176fba, 0x0a637dc5a2c898a6,
        0x113f9804bef90dae, 0x1b710b35131c471b, 0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc,
        0x431d67c49c100d4c, 0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
    };
    uint64_t w[80], s[8];
    for (int t = 0; t < 16; t++) {
        w[t] = 0;
        for (int k = 0; k < 8; k++) w[t] = w[t] << 8 | h->block[8 * t + k];
    }
    for (int t = 16; t < 80; t++) {
        const uint64_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + (turned(a, 1) ^ turned(a, 8) ^ a >> 7) + w[t - 7] + (turned(b, 19) ^ turned(b, 61) ^ b >> 6);
    }
    memcpy(s, h->state, sizeof s);
    for (int t = 0; t < 80; t++) {
        const uint64_t a = s[0], e = s[4];
        const uint64_t one =
            s[7] + (turned(e, 14) ^ turned(e, 18) ^ turned(e, 41)) + ((e & s[5]) ^ (~e & s[6])) + constants[t] + w[t];
        const uint64_t two =
            (turned(a, 28) ^ turned(a, 34) ^ turned(a, 39)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int k = 0; k < 8; k++) h->state[k] += s[k];
}

static void hash_begin(hashing *h) {
    static const uint64_t start[8] = {
        0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
        0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
    };
    memcpy(h->state, start, sizeof start);
    h->bytes = 0;
}

static void hash_add(hashing *h, const uint8_t *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        const size_t at = h->bytes % BLOCK, n = size - done < BLOCK - at ? size - done : BLOCK - at;
        memcpy(h->block + at, bytes + done, n);
        h->bytes += n, done += n;
        if (h->bytes % BLOCK == 0) add_block(h);
    }
}

/* A one, zeros, and how many bits there were, in 16 bytes. */
static void hash_end(hashing *h, uint8_t out[DISPATCH_SHA512_BYTES]) {
    static const uint8_t one = 0x80, zero = 0;
    const uint64_t bytes = h->bytes;
    uint8_t bits[16] = {0};
    for (int k = 0; k < 8; k++) bits[15 - k] = (uint8_t)(bytes << 3 >> 8 * k);
    bits[7] = (uint8_t)(bytes >> 61);
    hash_add(h, &one, 1);
    while (h->bytes % BLOCK != BLOCK - sizeof bits) hash_add(h, &zero, 1);
    hash_add(h, bits, sizeof bits);
    for (int k = 0; k < DISPATCH_SHA512_BYTES; k++) out[k] = (uint8_t)(h->state[k / 8] >> (56 - 8 * (k % 8)));
}

void dispatch_sha512(const void *bytes, size_t size, uint8_t out[DISPATCH_SHA512_BYTES]) {
    hashing h;
    hash_begin(&h);
    hash_add(&h, bytes, size);
    hash_end(&h, out);
}

/* ---- numbers modulo 2^255 - 19, in five digits of 51 bits and a little ---- */

__extension__ typedef unsigned __int128 wide;
typedef struct number {
    uint64_t digit[5];
} number;

static const uint64_t digit_mask = ((uint64_t)1 << 51) - 1;
static const number zero = {{0}}, one = {{1}};

/* Digits below 2^51 and a little, from such that 64 bits hold. */
static number carried(number a) {
    uint64_t carry = 0;
    for (int k = 0; k < 5; k++) {
        a.digit[k] += carry;
        carry = a.digit[k] >> 51;
        a.digit[k] &= digit_mask;
    }
    a.digit[0] += 19 * carry;
    return a;
}

static number plus(number a, const number *b) {
    for (int k = 0; k < 5; k++) a.digit[k] += b->digit[k];
    return carried(a);
}

/* 2p is added first, so that no digit falls below 0. */
static number minus(number a, const number *b) {
    for (int k = 0; k < 5; k++) a.digit[k] += 2 * (digit_mask - (k == 0 ? 18 : 0)) - b->digit[k];
    return carried(a);
}

static number times(const number *a, const number *b) {
    wide sum[5] = {0}, carry = 0;
    number c;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) sum[(i + j) % 5] += (wide)a->digit[i] * b->digit[j] * (i + j < 5 ? 1 : 19);
    for (int k = 0; k < 5; k++) {
        sum[k] += carry;
        c.digit[k] = (uint64_t)sum[k] & digit_mask;
        carry = sum[k] >> 51;
    }
    carry = 19 * carry + c.digit[0];
    c.digit[0] = (uint64_t)carry & digit_mask;
    c.digit[1] += (uint64_t)(carry >> 51);
    return c;
}

/* 2^n - m of them multiplied, for a small m. */
static number power(const number *a, int n, unsigned m) {
    number x = one;
    for (int bit = n - 1; bit >= 0; bit--) {
        x = times(&x, &x);
        if (bit > 7 || (256 - m) >> bit & 1) x = times(&x, a);
    }
    return x;
}

/* The one below p, as 32 bytes. */
static void write_number(number a, uint8_t out[32]) {
    number less;
    a = carried(carried(a));
    for (int turn = 0; turn < 2; turn++) { /* a - p, where that is not below 0: 19 more, and bit 255 tells */
        less = a;
        less.digit[0] += 19;
        for (int k = 0; k < 4; k++) less.digit[k + 1] += less.digit[k] >> 51, less.digit[k] &= digit_mask;
        if (less.digit[4] >> 51 == 0) break;
        less.digit[4] &= digit_mask;
        a = less;
    }
    for (int k = 0; k < 32; k++) {
        const int bit = 8 * k, at = bit / 51, from = bit % 51;
        uint64_t byte = a.digit[at] >> from;
        if (from > 43 && at < 4) byte |= a.digit[at + 1] << (51 - from);
        out[k] = (uint8_t)byte;
    }
}

static number read_number(const uint8_t in[32]) {
    number a = {{0}};
    for (int bit = 0; bit < 255; bit++) a.digit[bit / 51] |= (uint64_t)(in[bit / 8] >> (bit % 8) & 1) << (bit % 51);
    return a;
}

static bool same(const number *a, const number *b) {
    uint8_t x[32], y[32];
    write_number(*a, x), write_number(*b, y);
    return memcmp(x, y, sizeof x) == 0;
}

/* ---- points of -x^2 + y^2 = 1 + d x^2 y^2, as x = X/Z, y = Y/Z, xy = T/Z ---- */

typedef struct point {
    number x, y, z, t;
} point;

static const number curve_d = {{0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029, 0x739c663a03cbb, 0x52036cee2b6ff}};
static const number root_of_minus_one = {
    {0x61b274a0ea0b0, 0xd5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d}};
static const uint8_t base_bytes[32] = {0x58, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
                                       0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66};

/* Right for any two points, the same one twice as well. */
static void add_point(point *a, const point *b) {
    const number ad = minus(a->y, &a->x), as = plus(a->y, &a->x), bd = minus(b->y, &b->x), bs = plus(b->y, &b->x);
    const number p = times(&ad, &bd), q = times(&as, &bs), tt = times(&a->t, &b->t), dtt = times(&curve_d, &tt);
    const number r = plus(dtt, &dtt), zz = times(&a->z, &b->z), s = plus(zz, &zz);
    const number e = minus(q, &p), f = minus(s, &r), g = plus(s, &r), h = plus(q, &p);
    *a = (point){times(&e, &f), times(&g, &h), times(&f, &g), times(&e, &h)};
}

/* y, and above it whether x is odd. False: no point has it. */
static bool read_point(const uint8_t in[32], point *out) {
    uint8_t check[32];
    const unsigned odd = in[31] >> 7;
    const number y = read_number(in), yy = times(&y, &y), dyy = times(&curve_d, &yy);
    const number u = minus(yy, &one), v = plus(dyy, &one), vv = times(&v, &v), uv = times(&u, &v);
    write_number(y, check);
    check[31] |= (uint8_t)(odd << 7);
    if (memcmp(check, in, sizeof check) != 0) return false; /* p or more */
    const number uvvv = times(&uv, &vv), v4 = times(&vv, &vv), uv7 = times(&uvvv, &v4);
    const number root = power(&uv7, 252, 3); /* (p - 5) / 8 */
    number x = times(&uvvv, &root);
    const number xx = times(&x, &x), vxx = times(&v, &xx), minus_u = minus(zero, &u);
    if (same(&vxx, &minus_u))
        x = times(&x, &root_of_minus_one);
    else if (!same(&vxx, &u))
        return false;
    if (same(&x, &zero) && odd) return false;
    write_number(x, check);
    if ((check[0] & 1) != odd) x = minus(zero, &x);
    *out = (point){x, y, one, times(&x, &y)};
    return true;
}

static void write_point(const point *a, uint8_t out[32]) {
    uint8_t odd[32];
    const number inverse = power(&a->z, 255, 21); /* p - 2 */
    const number x = times(&a->x, &inverse), y = times(&a->y, &inverse);
    write_number(x, odd);
    write_number(y, out);
    out[31] |= (uint8_t)(odd[0] << 7);
}

/* ---- multiples, counted modulo the order of the base ---- */

static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                  0xa2, 0xde, 0xf9, 0xde, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10};

static bool below_order(const uint8_t in[32]) {
    for (int k = 31; k >= 0; k--)
        if (in[k] != order[k]) return in[k] < order[k];
    return false;
}

/* What is left of 512 bits, taken from above, one by one. */
static void reduce(const uint8_t in[64], uint8_t out[32]) {
    memset(out, 0, 32);
    for (int bit = 511; bit >= 0; bit--) {
        unsigned carry = in[bit / 8] >> (bit % 8) & 1;
        for (int k = 0; k < 32; k++) carry |= (unsigned)out[k] << 1, out[k] = (uint8_t)carry, carry >>= 8;
        if (below_order(out)) continue;
        for (int k = 0, borrow = 0; k < 32; k++) {
            const int left = out[k] - order[k] - borrow;
            borrow = left < 0;
            out[k] = (uint8_t)left;
        }
    }
}

bool dispatch_ed25519_verify(const uint8_t key[DISPATCH_ED25519_KEY], const uint8_t signature[DISPATCH_ED25519_BYTES],
                             const void *message, size_t size) {
    uint8_t hash[DISPATCH_SHA512_BYTES], times_key[32], found[32];
    const uint8_t *times_base = signature + 32;
    point base, public, sum = {zero, one, one, zero};
    hashing h;
    if (!below_order(times_base) || !read_point(key, &public) || !read_point(base_bytes, &base)) return false;
    public.x = minus(zero, &public.x);
    public.t = minus(zero, &public.t);
    hash_begin(&h);
    hash_add(&h, signature, 32);
    hash_add(&h, key, DISPATCH_ED25519_KEY);
    hash_add(&h, message, size);
    hash_end(&h, hash);
    reduce(hash, times_key);
    for (int bit = 255; bit >= 0; bit--) {
        const point twice = sum;
        add_point(&sum, &twice);
        if (times_base[bit / 8] >> (bit % 8) & 1) add_point(&sum, &base);
        if (times_key[bit / 8] >> (bit % 8) & 1) add_point(&sum, &public);
    }
    write_point(&sum, found);
    return memcmp(found, signature, sizeof found) == 0;
}
