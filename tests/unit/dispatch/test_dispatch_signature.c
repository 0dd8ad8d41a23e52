/* Signed tables: Ed25519 and SHA-512 by the figures of RFC 8032 and FIPS 180-4, and the two formats of OpenSSH; every
 * bit that is another one makes a signature none. */
#include "dispatch/dispatch_signature.h"
#include "dispatch/scout_dispatch.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static void from_hex(const char *hex, uint8_t *out) {
    for (size_t k = 0; hex[2 * k]; k++) {
        const char pair[3] = {hex[2 * k], hex[2 * k + 1], 0};
        out[k] = (uint8_t)strtoul(pair, NULL, 16);
    }
}

/* ---- SHA-512 ---- */

static void hash_is(const char *text, size_t size, const char *hex) {
    uint8_t got[DISPATCH_SHA512_BYTES], want[DISPATCH_SHA512_BYTES];
    from_hex(hex, want);
    dispatch_sha512(text, size, got);
    UNIT_CHECK(memcmp(got, want, sizeof got) == 0);
}

static void hashes_are_those_of_the_standard(void) {
    char *million = malloc(1000000);
    if (!million) abort();
    memset(million, 'a', 1000000);
    hash_is("abc", 3,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
    hash_is(million, 1000000,
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
            "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b");
    free(million);
}

/* ---- Ed25519 ---- */

typedef struct example {
    const char *key, *message, *signature;
} example;
static const example examples[] = {
    {"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe246"
     "5"
     "5141438e7a100b"},
    {"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb"
     "0"
     "0d291612bb0c00"},
    {"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc"
     "0"
     "27beceea1ec40a"},
};
enum { EXAMPLES = sizeof examples / sizeof examples[0], BYTES = 32 + 64 + 2 };

typedef struct signed_message {
    uint8_t bytes[BYTES]; /* key, signature, message */
    size_t size;          /* of the message */
} signed_message;

static signed_message read_example(int k) {
    signed_message s = {.size = strlen(examples[k].message) / 2};
    from_hex(examples[k].key, s.bytes);
    from_hex(examples[k].signature, s.bytes + 32);
    from_hex(examples[k].message, s.bytes + 96);
    return s;
}

static bool holds(const signed_message *s) {
    return dispatch_ed25519_verify(s->bytes, s->bytes + 32, s->bytes + 96, s->size);
}

static void signatures_are_those_of_the_standard(void) {
    for (int k = 0; k < EXAMPLES; k++) {
        const signed_message s = read_example(k);
        UNIT_CHECK(holds(&s));
    }
}

static void every_other_bit_is_refused(void) {
    signed_message s = read_example(2);
    int refused = 0;
    for (size_t bit = 0; bit < 8 * BYTES; bit++) {
        s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refused += !holds(&s);
        s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    UNIT_INT(refused, 8 * BYTES);
    UNIT_CHECK(holds(&s));
}

/* The same multiple, written as another number: a signature would have a second form. */
static void one_more_order_is_refused(void) {
    signed_message s = read_example(1);
    uint8_t order[32], *multiple = s.bytes + 64;
    unsigned carry = 0;
    from_hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010", order);
    for (int k = 0; k < 32; k++) {
        carry += (unsigned)multiple[k] + order[k];
        multiple[k] = (uint8_t)carry, carry >>= 8;
    }
    UNIT_CHECK(!holds(&s));
}

/* 1 and p + 1 are the same y; -0 is no x. By the neutral point everything is signed with a multiple of 0. */
static void points_have_one_form(void) {
    signed_message s = {.size = 1};
    s.bytes[0] = s.bytes[32] = 1;
    UNIT_CHECK(holds(&s));
    s.bytes[31] = 0x80;
    UNIT_CHECK(!holds(&s));
    memset(s.bytes, 0xff, 32);
    s.bytes[0] = 0xee, s.bytes[31] = 0x7f;
    UNIT_CHECK(!holds(&s));
}

/* ---- OpenSSH's formats ---- */

static const char table[] = "a table\n";
static const char made[] = /* of it, by ssh-keygen */
    "-----BEGIN SSH SIGNATURE-----\n"
    "U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgxbLrUO4NYCf4NXSxKqBtf2pEKw\n"
    "zq8RbCqg26vuNjPuEAAAANY2VpbGluZy1zY291dAAAAAAAAAAGc2hhNTEyAAAAUwAAAAtz\n"
    "c2gtZWQyNTUxOQAAAEC8310VxvgKF1ZFL7aCyiawaBeHXqqGvvfVaOx7i1dJs92JVIoXRD\n"
    "DFoB39OAGjozHE+t1sUulM5aE/kZ6AtLUM\n"
    "-----END SSH SIGNATURE-----\n";
static const char key[] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMWy61DuDWAn+DV0sSqgbX9qRCsM6vEWwqoNur7jYz7h";
static const char other[] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINGBVb7Dft7pbs993aKr5lYKo6yiGfxzEA6J6h18lABO";
static const char rsa[] = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7";

static char why[160];
static dispatch_signers signers;

static bool is_signed(const char *signature, size_t size, const char *text) {
    return dispatch_signature_holds(&signers, signature, size, text, strlen(text), why, sizeof why);
}

static bool read_signers(const char *lines) { return dispatch_signers_read(&signers, lines, why, sizeof why); }

static void what_was_signed_holds_and_nothing_else(void) {
    UNIT_CHECK(read_signers(key));
    UNIT_INT(signers.count, 1);
    UNIT_CHECK(is_signed(made, sizeof made - 1, table));
    UNIT_CHECK(!is_signed(made, sizeof made - 1, "a table"));
    UNIT_TEXT(why, "its signature is of another table: this one was changed, or is not signed yet");
    UNIT_CHECK(!is_signed(made, sizeof made - 1, "another table\n"));
    UNIT_CHECK(read_signers(other));
    UNIT_CHECK(!is_signed(made, sizeof made - 1, table));
    UNIT_TEXT(why, "it is signed by a key that is none of the signers'");
    UNIT_CHECK(dispatch_signature_holds(NULL, made, sizeof made - 1, table, strlen(table), why, sizeof why));
}

static void what_is_cut_or_changed_does_not_hold(void) {
    UNIT_CHECK(read_signers(key));
    int held = 0;
    for (size_t size = 0; size < sizeof made - 2; size++) { /* the last byte ends the last line */
        char *part = malloc(size + 1);
        if (!part) abort();
        memcpy(part, made, size);
        held += is_signed(part, size, table);
        free(part);
    }
    for (size_t at = 0; at < sizeof made - 2; at++) {
        char changed[sizeof made];
        memcpy(changed, made, sizeof made);
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        held += is_signed(changed, sizeof made - 1, table);
    }
    UNIT_INT(held, 0);
    UNIT_CHECK(!is_signed("", 0, table));
    UNIT_TEXT(why, "its signature is none of ssh-keygen's");
}

static void signers_are_lines(void) {
    static const char *const bad[] = {"ssh-ed25519",           "ssh-ed25519 ",
                                      "ssh-ed25519 AAAA",      "ssh-ed25519-cert AAAA",
                                      "name ssh-ed25519 AAAA", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="};
    char lines[1024], many[65 * sizeof key + 1] = "";
    snprintf(lines, sizeof lines, "# ours\r\n\n  %s\r\n\t\n%s a comment", other, key);
    UNIT_CHECK(read_signers(lines));
    UNIT_INT(signers.count, 2);
    UNIT_CHECK(is_signed(made, sizeof made - 1, table));
    UNIT_CHECK(!read_signers(""));
    UNIT_TEXT(why, "no signer is named, so no signature would do");
    UNIT_CHECK(!read_signers("# none\n"));
    snprintf(lines, sizeof lines, "%s\n\n%s\n", key, rsa);
    UNIT_CHECK(!read_signers(lines));
    UNIT_TEXT(why, "line 3 of the signers is no public key of the type ssh-ed25519");
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) UNIT_CHECK(!read_signers(bad[k]));
    for (int k = 0; k < DISPATCH_SIGNERS; k++) strcat(strcat(many, key), "\n");
    UNIT_CHECK(read_signers(many));
    UNIT_CHECK(!read_signers(strcat(many, key)));
    UNIT_TEXT(why, "there are more than 64 signers");
}

/* ---- tables ---- */

#define SIGNED "tests/dispatch/seeds/least.json" /* by `key` */
#define PLAIN  "tests/dispatch/seeds/full.json"

static void only_signed_tables_are_opened_and_reloaded(void) {
    static const scout_dispatch_device elsewhere = {.name = "another", .capability = "9.0", .driver = "580"};
    scout_dispatch_note note;
    scout_dispatch *d;
    UNIT_INT(scout_dispatch_open_signed(&d, SIGNED, key, NULL, &note), SCOUT_DISPATCH_OK);
    if (!UNIT_CHECK(d)) return;
    UNIT_INT(scout_dispatch_reload(d, SIGNED, &note), SCOUT_DISPATCH_OK);
    UNIT_INT(scout_dispatch_reload(d, PLAIN, &note), SCOUT_DISPATCH_UNSIGNED);
    UNIT_CHECK(strstr(note.text, "there is no signature in " PLAIN ".sig") != NULL);
    UNIT_INT(scout_dispatch_reload_text(d, "{}", 2, &note), SCOUT_DISPATCH_UNSIGNED);
    UNIT_TEXT(note.text,
              "dispatch table: a signed one is demanded, and bytes have no signature; load it from its file");
    scout_dispatch_view view = scout_dispatch_begin(d);
    UNIT_TEXT(scout_dispatch_class(&view), "c");
    scout_dispatch_end(&view);
    scout_dispatch_close(d);
    UNIT_INT(scout_dispatch_open_signed(&d, SIGNED, key, &elsewhere, NULL), SCOUT_DISPATCH_REFUSED);
    UNIT_CHECK(!d);
    UNIT_INT(scout_dispatch_open_signed(&d, SIGNED, other, NULL, &note), SCOUT_DISPATCH_UNSIGNED);
    UNIT_CHECK(!d && strstr(note.text, "none of the signers'") != NULL);
    UNIT_INT(scout_dispatch_open_signed(&d, SIGNED, NULL, NULL, &note), SCOUT_DISPATCH_UNSIGNED);
    UNIT_CHECK(!d && strstr(note.text, "no signer is named") != NULL);
    UNIT_INT(scout_dispatch_open_signed(&d, "/nowhere", key, NULL, &note), SCOUT_DISPATCH_FAILED);
    UNIT_INT(scout_dispatch_open(&d, SIGNED, NULL, &note), SCOUT_DISPATCH_OK);
    UNIT_INT(scout_dispatch_reload(d, PLAIN, &note), SCOUT_DISPATCH_OK);
    scout_dispatch_close(d);
}

int main(void) {
    UNIT_RUN(hashes_are_those_of_the_standard);
    UNIT_RUN(signatures_are_those_of_the_standard);
    UNIT_RUN(every_other_bit_is_refused);
    UNIT_RUN(one_more_order_is_refused);
    UNIT_RUN(points_have_one_form);
    UNIT_RUN(what_was_signed_holds_and_nothing_else);
    UNIT_RUN(what_is_cut_or_changed_does_not_hold);
    UNIT_RUN(signers_are_lines);
    UNIT_RUN(only_signed_tables_are_opened_and_reloaded);
    return unit_end();
}
