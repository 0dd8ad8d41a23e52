/* A table's signature, as `ssh-keygen -Y sign -n ceiling-scout` makes it with an Ed25519 key: SSHSIG, version 1. */
#ifndef DISPATCH_SIGNATURE_H
#define DISPATCH_SIGNATURE_H

#include "dispatch/dispatch_ed25519.h"

#define DISPATCH_SIGNATURE_PURPOSE "ceiling-scout"               /* a signature for anything else is none */
enum { DISPATCH_SIGNERS = 64, DISPATCH_SIGNATURE_BYTES = 4096 }; /* at most; a signature has some 300 bytes */

typedef struct dispatch_signers {
    size_t count;
    uint8_t keys[DISPATCH_SIGNERS][DISPATCH_ED25519_KEY];
} dispatch_signers;

/* Public keys as in id_ed25519.pub, one a line; empty lines and those that begin with # are left out. False: `why` has
 * one line. */
bool dispatch_signers_read(dispatch_signers *s, const char *lines, char *why, size_t room);

/* Whether `signature` is the file of a signature of `text` by one of them; NULL: by any key. False: `why` has one
 * line. */
bool dispatch_signature_holds(const dispatch_signers *s, const char *signature, size_t signature_size, const char *text,
                              size_t size, char *why, size_t room);

#endif
