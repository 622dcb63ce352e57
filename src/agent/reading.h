/* Between the readers of this room. */
#ifndef KR_AGENT_READING_H
#define KR_AGENT_READING_H

#include "agent/stream.h"
#include "base/json.h"

enum { KR_MESSAGES = 64 }; /* ids that are remembered: those of turns that run side by side */

/* What one message of the model's used; it is told again with each part of the message. */
struct kr_message {
	char id[KR_AGENT_ID];
	struct kr_usage usage;
	bool is_counted; /* in what its turn used */
};

/* Lines are read one after the other; later ones know better. */
struct kr_reading {
	struct kr_agent_seen *out;
	struct kr_agent_clock clock;
	struct kr_usage own;                     /* of turns that came to their end, added up */
	struct kr_usage ended;                   /* what turns used that came to their end */
	struct kr_usage open;                    /* messages since */
	enum kr_trouble pending;                 /* what stood in its way last, if it never says more */
	bool has_lost_gate;                      /* as it wrote on its standard error */
	char plain[KR_AGENT_SAID];               /* the last line that was none of the reader's */
	struct kr_message messages[KR_MESSAGES]; /* a ring */
	size_t message_count;
};

/* ---- parts of a checked object; ABSENT when it is none, has no such member or has two ---- */

struct kr_json kr_agent_member(const struct kr_json *object, const char *name);
/* Also of another type. */
bool kr_agent_member_is(const struct kr_json *object, const char *name, const char *text);
/* 0: it has none, or one that is no number above 0; at most KR_AGENT_NUMBER_MAX. */
double kr_agent_number(const struct kr_json *object, const char *name);
#define KR_AGENT_NUMBER_MAX 1e15
/* As kr_agent_seen has its texts; cut with "...". False, and out as it was: it has none. */
bool kr_agent_text(const struct kr_json *object, const char *name, bool lines, char *out, size_t size);

/* ---- what both readers note ---- */

void kr_agent_note_conversation(struct kr_reading *r, const struct kr_json *object, const char *name);
/* What went wrong, in its words: a trouble by what they name, and when a limit is over. */
enum kr_trouble kr_agent_trouble_of(const char *text);
void kr_agent_note_limit_text(struct kr_reading *r, const char *text);
void kr_agent_note_reset(struct kr_reading *r, double ms_since_epoch);
/* Its turn has ended, with this trouble and these last words (NULL: as they are). */
void kr_agent_note_end(struct kr_reading *r, enum kr_trouble trouble, const char *said);

void kr_agent_usage_add(struct kr_usage *sum, const struct kr_usage *more);
void kr_agent_usage_take(struct kr_usage *sum, const struct kr_usage *less);

/* When there are no more lines: what can only be said then. */
void kr_agent_conclude(struct kr_reading *r);

/* One line each, a JSON object. */
void kr_agent_read_claude(struct kr_reading *r, const struct kr_json *line);
void kr_agent_read_codex(struct kr_reading *r, const struct kr_json *line);

#endif
