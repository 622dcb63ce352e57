-- Of a task that failed: how it did, so that the next failure can be compared (work/fingerprint.h).
ALTER TABLE marks ADD COLUMN fingerprint TEXT;

-- Items that have to be completed before this one begins.
CREATE TABLE dependencies (
	item    TEXT NOT NULL REFERENCES items (id),
	on_item TEXT NOT NULL REFERENCES items (id),
	PRIMARY KEY (item, on_item)
) STRICT;

-- A worker's questions whether it may use a tool. An answer holds for this tool and this input, once.
CREATE TABLE asks (
	id          TEXT PRIMARY KEY,
	item        TEXT NOT NULL REFERENCES items (id),
	session     TEXT NOT NULL,
	tool        TEXT NOT NULL,
	input       TEXT NOT NULL, -- JSON, as it was asked
	state       TEXT NOT NULL, -- open, allowed, denied, expired, used
	note        TEXT,          -- of who answered
	ms          INTEGER NOT NULL,
	until_ms    INTEGER NOT NULL, -- then it is denied
	answered_ms INTEGER
) STRICT;
CREATE INDEX asks_by_item ON asks (item, ms);
CREATE INDEX asks_by_session ON asks (session);

-- Turns of an escalation: a session that is to find out why its item stopped.
CREATE TABLE turns (
	session TEXT PRIMARY KEY REFERENCES sessions (id),
	item    TEXT NOT NULL REFERENCES items (id),
	thread  INTEGER NOT NULL,
	turn    INTEGER NOT NULL, -- in its thread, from 1
	is_auto INTEGER NOT NULL, -- begun by kraft
	message TEXT NOT NULL,
	retry   TEXT,             -- JSON of the retry that it asked for; done after it has ended
	retry_state TEXT NOT NULL -- '': none; asked, done, dropped
) STRICT;
CREATE INDEX turns_by_item ON turns (item);

-- The session beside its chain (an escalation turn, a reply agent) that is to begin, is at work, or asked for a retry that is
-- not done yet.
ALTER TABLE items ADD COLUMN turn TEXT;

-- The item's own layer of the policy, YAML; NULL: none.
ALTER TABLE items ADD COLUMN layer TEXT;
