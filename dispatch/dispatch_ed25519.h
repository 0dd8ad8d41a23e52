/* Ed25519 signatures (RFC 8032) and SHA-512: what a signed table is held against. */
#ifndef DISPATCH_ED25519_H
#define DISPATCH_ED25519_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISPATCH_ED25519_KEY = 32, DISPATCH_ED25519_BYTES = 64, DISPATCH_SHA512_BYTES = 64 };

void dispatch_sha512(const void *bytes, size_t size, uint8_t out[DISPATCH_SHA512_BYTES]);

/* Whether the signature is one of the message by the key; the strict rules: no number above its modulus. */
bool dispatch_ed25519_verify(const uint8_t key[DISPATCH_ED25519_KEY], const uint8_t signature[DISPATCH_ED25519_BYTES],
                             const void *message, size_t size);

#endif
