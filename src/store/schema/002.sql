-- What a person filed. chain and policy are the texts of that moment: a later edit of a file changes no item.
CREATE TABLE items (
	id          TEXT PRIMARY KEY,
	title       TEXT NOT NULL CHECK (title <> ''),
	description TEXT NOT NULL,
	repo        TEXT NOT NULL, -- path of the checkout
	base        TEXT,          -- a branch; NULL: where the checkout stands at the start
	chain_id    TEXT NOT NULL,
	chain       TEXT NOT NULL,
	policy      TEXT NOT NULL, -- '': there was no file
	worker      TEXT,          -- JSON list of words that run in place of agents; NULL: none
	status      TEXT NOT NULL,
	stop        TEXT NOT NULL, -- kind of stop; '': none
	reason      TEXT NOT NULL, -- a sentence; ''
	place       TEXT NOT NULL, -- canonical path of where it stands; ''
	steer       TEXT,          -- leads the next task's instruction, once
	progress    INTEGER,       -- what the worker last said
	run         INTEGER NOT NULL DEFAULT 1,
	created_ms  INTEGER NOT NULL,
	changed_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX items_by_time ON items (created_ms);

-- What became of each path of the chain, in order; see work/walk.h. Only added to.
CREATE TABLE marks (
	n       INTEGER PRIMARY KEY AUTOINCREMENT,
	item    TEXT NOT NULL REFERENCES items (id),
	run     INTEGER NOT NULL,
	path    TEXT NOT NULL,
	kind    TEXT NOT NULL,
	session TEXT,
	note    TEXT,
	ms      INTEGER NOT NULL
) STRICT;
CREATE INDEX marks_by_item ON marks (item, n);

-- One task of an item on its way. The id is that of the launch, whose folder and log have it as their name.
CREATE TABLE sessions (
	id         TEXT PRIMARY KEY,
	item       TEXT NOT NULL REFERENCES items (id),
	run        INTEGER NOT NULL,
	path       TEXT NOT NULL,
	round      INTEGER NOT NULL, -- of the node's fix loop
	status     TEXT NOT NULL,
	reason     TEXT,
	created_ms INTEGER NOT NULL,
	ended_ms   INTEGER
) STRICT;
CREATE INDEX sessions_by_item ON sessions (item, created_ms);

CREATE TABLE threads (
	id       TEXT PRIMARY KEY,
	item     TEXT NOT NULL REFERENCES items (id),
	file     TEXT,
	line     INTEGER,
	must_fix INTEGER NOT NULL,
	is_open  INTEGER NOT NULL,
	ms       INTEGER NOT NULL
) STRICT;
CREATE INDEX threads_by_item ON threads (item, ms);

CREATE TABLE comments (
	n      INTEGER PRIMARY KEY AUTOINCREMENT,
	thread TEXT NOT NULL REFERENCES threads (id),
	author TEXT NOT NULL, -- 'human' or 'agent'
	claim  TEXT,          -- an agent's: fixed, answered, should_fix
	body   TEXT NOT NULL,
	ms     INTEGER NOT NULL
) STRICT;
CREATE INDEX comments_by_thread ON comments (thread, n);
