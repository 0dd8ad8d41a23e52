/* A device's two identities as text. The class (name, capability, units, memory, power limit, library versions, driver
 * branch) is the key of caches and dispatch tables; the instance adds which one of its class it is. */
#pragma once

#include "common/json.h"
#include "scout/plugin.h"

enum { IDENTITY_CLASS_ROOM = 512, IDENTITY_INSTANCE_ROOM = 640, IDENTITY_FOLDER_ROOM = 128 };

/* Of what a device said: texts are ended and free of control bytes, counts lie within their arrays. */
void identity_clean(scout_identity *id);

void identity_class(const scout_identity *id, char *text, size_t room);
void identity_instance(const scout_identity *id, char *text, size_t room);
/* The name, safe as a folder's name, and ten digits of the class's hash: "nvidia_h200-1f0c63ab21". */
void identity_class_folder(const scout_identity *id, char *text, size_t room);

json_t *identity_to_json(const scout_identity *id, json_builder *b); /* the caller's */
bool identity_from_json(const json_t *o, scout_identity *id);        /* false: not an identity */
