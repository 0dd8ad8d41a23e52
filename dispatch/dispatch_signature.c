/* Owns the two formats of OpenSSH that a signed table comes with: public keys as lines, and signatures between armor
 * lines (OpenSSH's PROTOCOL.sshsig). Both are base64 of fields that begin with their length in four bytes. */
#include "dispatch/dispatch_signature.h"

#include <stdio.h>
#include <string.h>

static const char key_type[] = "ssh-ed25519", magic[] = "SSHSIG";

typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

static bool fail(char *why, size_t room, const char *text) {
    snprintf(why, room, "%s", text);
    return false;
}

/* ---- base64 and fields ---- */

/* How many bytes the text has, or -1: it is no base64, or they are more than `room`. Ends of lines are left out. */
static ptrdiff_t decode(const char *text, size_t size, uint8_t *out, size_t room) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = 0, digits = 0, ends = 0;
    uint32_t bits = 0;
    for (size_t k = 0; k < size; k++) {
        const char *letter = text[k] ? strchr(letters, text[k]) : NULL;
        if (text[k] == '\n' || text[k] == '\r') continue;
        if (text[k] == '=')
            ends++;
        else if (!letter || ends > 0)
            return -1;
        bits = bits << 6 | (letter ? (uint32_t)(letter - letters) : 0);
        if (++digits % 4 != 0) continue;
        for (int shift = 16; shift >= (int)(8 * ends); shift -= 8) {
            if (count == room) return -1;
            out[count++] = (uint8_t)(bits >> shift);
        }
        if (ends > 2) return -1;
        bits = 0;
    }
    return digits % 4 == 0 ? (ptrdiff_t)count : -1;
}

/* The next field; with a length of its own, whatever follows. */
static bool next(bytes *from, bytes *field) {
    if (from->left < 4) return false;
    const uint8_t *n = from->at;
    const size_t size = (size_t)n[0] << 24 | (size_t)n[1] << 16 | (size_t)n[2] << 8 | n[3];
    if (size > from->left - 4) return false;
    *field = (bytes){n + 4, size};
    from->at += 4 + size, from->left -= 4 + size;
    return true;
}

static bool is(bytes field, const char *text) {
    return field.left == strlen(text) && memcmp(field.at, text, field.left) == 0;
}

/* Two fields and no more: what it is, and that of a size. */
static const uint8_t *typed(bytes from, size_t size) {
    bytes type, value;
    return next(&from, &type) && next(&from, &value) && from.left == 0 && is(type, key_type) && value.left == size
               ? value.at
               : NULL;
}

/* ---- signers ---- */

static bool read_signer(dispatch_signers *s, const char *line, size_t size) {
    uint8_t raw[256];
    const size_t type = sizeof key_type - 1;
    if (size <= type || memcmp(line, key_type, type) != 0 || (line[type] != ' ' && line[type] != '\t')) return false;
    line += type, size -= type;
    while (size > 0 && (*line == ' ' || *line == '\t')) line++, size--;
    size_t letters = 0;
    while (letters < size && line[letters] != ' ' && line[letters] != '\t') letters++;
    const ptrdiff_t count = decode(line, letters, raw, sizeof raw);
    const uint8_t *key = count < 0 ? NULL : typed((bytes){raw, (size_t)count}, DISPATCH_ED25519_KEY);
    if (key) memcpy(s->keys[s->count++], key, DISPATCH_ED25519_KEY);
    return key != NULL;
}

bool dispatch_signers_read(dispatch_signers *s, const char *lines, char *why, size_t room) {
    int number = 0;
    s->count = 0;
    for (const char *line = lines; *line; number++) {
        size_t size = strcspn(line, "\n");
        const char *after = line + size + (line[size] == '\n');
        while (size > 0 && strchr(" \t\r", line[size - 1])) size--;
        while (size > 0 && (*line == ' ' || *line == '\t')) line++, size--;
        if (size > 0 && *line != '#') {
            if (s->count == DISPATCH_SIGNERS) return fail(why, room, "there are more than 64 signers");
            if (!read_signer(s, line, size)) {
                snprintf(why, room, "line %d of the signers is no public key of the type %s", number + 1, key_type);
                return false;
            }
        }
        line = after;
    }
    return s->count > 0 || fail(why, room, "no signer is named, so no signature would do");
}

/* ---- signatures ---- */

typedef struct signature {
    const uint8_t *key, *value;
    bytes name_space, reserved, hash;
} signature;

static const char *armored(const char *text, size_t size, const char **end) {
    static const char begin[] = "-----BEGIN SSH SIGNATURE-----", last[] = "-----END SSH SIGNATURE-----";
    const size_t n = sizeof begin - 1, m = sizeof last - 1;
    if (size < n || memcmp(text, begin, n) != 0) return NULL;
    for (const char *at = text + n; (size_t)(at - text) + m <= size; at++)
        if (memcmp(at, last, m) == 0) return *end = at, text + n;
    return NULL;
}

static bool read_signature(signature *s, uint8_t *raw, const char *text, size_t size, char *why, size_t room) {
    const char *end = NULL, *inner = armored(text, size, &end);
    const ptrdiff_t count = inner ? decode(inner, (size_t)(end - inner), raw, DISPATCH_SIGNATURE_BYTES) : -1;
    const size_t start = sizeof magic - 1;
    bytes key, value, rest = {raw + start + 4, 0};
    if (count < (ptrdiff_t)start + 4 || memcmp(raw, magic, start) != 0)
        return fail(why, room, "its signature is none of ssh-keygen's");
    if (memcmp(raw + start, "\0\0\0\1", 4) != 0) return fail(why, room, "its signature is of a version that is not 1");
    rest.left = (size_t)count - start - 4;
    if (!next(&rest, &key) || !next(&rest, &s->name_space) || !next(&rest, &s->reserved) || !next(&rest, &s->hash) ||
        !next(&rest, &value) || rest.left != 0)
        return fail(why, room, "its signature is cut short, or has something behind it");
    s->key = typed(key, DISPATCH_ED25519_KEY);
    s->value = typed(value, DISPATCH_ED25519_BYTES);
    return (s->key && s->value) || fail(why, room, "its signature is by a key that is not of the type ssh-ed25519");
}

static uint8_t *put_field(uint8_t *to, const void *from, size_t size) {
    for (int k = 0; k < 4; k++) *to++ = (uint8_t)(size >> (24 - 8 * k));
    memcpy(to, from, size);
    return to + size;
}

bool dispatch_signature_holds(const dispatch_signers *s, const char *signature_text, size_t signature_size,
                              const char *text, size_t size, char *why, size_t room) {
    uint8_t raw[DISPATCH_SIGNATURE_BYTES], hash[DISPATCH_SHA512_BYTES];
    uint8_t message[DISPATCH_SIGNATURE_BYTES + sizeof hash + 32], *end = message;
    signature found;
    bool known = !s;
    if (!read_signature(&found, raw, signature_text, signature_size, why, room)) return false;
    if (!is(found.name_space, DISPATCH_SIGNATURE_PURPOSE))
        return fail(why, room,
                    "its signature is for another purpose: it must be made with -n " DISPATCH_SIGNATURE_PURPOSE);
    if (!is(found.hash, "sha512")) return fail(why, room, "its signature is over another hash than sha512");
    for (size_t k = 0; s && k < s->count; k++) known = known || memcmp(s->keys[k], found.key, sizeof s->keys[k]) == 0;
    if (!known) return fail(why, room, "it is signed by a key that is none of the signers'");
    dispatch_sha512(text, size, hash);
    memcpy(end, magic, sizeof magic - 1);
    end = put_field(end + sizeof magic - 1, found.name_space.at, found.name_space.left);
    end = put_field(end, found.reserved.at, found.reserved.left);
    end = put_field(end, found.hash.at, found.hash.left);
    end = put_field(end, hash, sizeof hash);
    return dispatch_ed25519_verify(found.key, found.value, message, (size_t)(end - message)) ||
           fail(why, room, "its signature is of another table: this one was changed, or is not signed yet");
}
