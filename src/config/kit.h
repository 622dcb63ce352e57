/*
 * A kit: an image whose manifest says, in one annotation, what sandbox it wants to run in (facts of `kind: kit`).
 *
 * What is read is the published form of schema version "3", as JSON, or YAML of config/yaml.h. Everything in it is
 * either understood, or known to be without power over the sandbox, or refuses the kit: a key that was passed over
 * could be a wall that its author believes in. The bytes are a registry's, so they are decoded by a process without
 * power (os/powerless.h); what comes back is one plain struct, and checked again.
 */
#ifndef KR_CONFIG_KIT_H
#define KR_CONFIG_KIT_H

#include "config/sandbox_file.h"

#define KR_KIT_ANNOTATION "vnd.docker.sandbox.kit.descriptor"

enum {
	KR_KIT_MANIFEST_BYTES = 4 << 20,
	KR_KIT_DESCRIPTOR_BYTES = 512 << 10,
	KR_KIT_RECORD_BYTES = 1 << 20, /* twice a descriptor: a record is never longer than what it was made of, and a byte */
	KR_KIT_HOSTS = 4096,           /* of all lists together */
	KR_KIT_CREDENTIALS = 64,
	KR_KIT_RULES = 1024,           /* to inject, of all credentials together */
	KR_KIT_NOTES = 256,            /* skipped and ignored together */
	KR_KIT_FAULT = 384,
};

/*
 * What the decoder leaves; plain, zero at first. records: `len` bytes of NUL-terminated texts, each with a letter in
 * front that says what it is (kit_records.h).
 */
struct kr_kit_answer {
	bool is_whole;
	char fault[KR_KIT_FAULT], hint[KR_KIT_FAULT]; /* what refuses it, to stand behind "the kit 'x'"; "": nothing did */
	size_t len;
	char records[KR_KIT_RECORD_BYTES];
};
/* A kr_parse_fn: a descriptor to struct kr_kit_answer (kit_decode.c). Pure. */
void kr_kit_decode(const void *bytes, size_t n, void *answer);

struct kr_kit {
	const char *name;              /* as configured: NAME[:TAG]@sha256:DIGEST */
	struct kr_network network;     /* both phases are set */
	struct kr_resources resources; /* no limit where it names none */
	struct kr_credential *credentials; /* `service` is set, `source` is not: sandbox.yaml says it */
	size_t credential_count;
	struct kr_strs skipped; /* types of capabilities that are optional and not here */
	struct kr_strs ignored; /* what is without effect here, in words */
};

/*
 * What such an answer comes to, or why the kit is refused: KR_E_CONFIG, with `name` in the message. Pure.
 */
int kr_kit_read(struct kr_arena *arena, const char *name, struct kr_kit_answer *answer, struct kr_kit *out,
	struct kr_error *err);

/* Both in one: by a process without power. */
int kr_kit_parse(struct kr_arena *arena, const char *name, const char *descriptor, size_t n, struct kr_kit *out,
	struct kr_error *err);

/* The first service that `file` binds no variable to; NULL: all are bound. */
const char *kr_kit_unbound(const struct kr_kit *kit, const struct kr_sandbox_file *file);
/*
 * The sandbox of kind docker that it asks for: its own image, lists, limits and credentials, and nothing of anybody
 * else's. `kit` stays set in it. KR_E_CONFIG naming the service and the line to write, when a credential is not bound.
 */
int kr_kit_lower(struct kr_arena *arena, const struct kr_kit *kit, const struct kr_sandbox_file *file,
	const struct kr_sandbox *from, struct kr_sandbox *out, struct kr_error *err);

/* The digest that a kit's name ends in: "sha256:" and 64 digits. */
const char *kr_kit_digest(const char *name);
/* NAME@DIGEST, without the tag, which not every client takes beside a digest, and which says nothing then. */
const char *kr_kit_reference(struct kr_arena *arena, const char *name);

#endif
