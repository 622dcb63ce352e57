-- What happened, kept for good. AUTOINCREMENT: a number is never given twice, also not after the last rows were deleted.
CREATE TABLE events (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	ms      INTEGER NOT NULL,
	type    TEXT NOT NULL CHECK (type <> ''),
	item    TEXT,
	session TEXT,
	data    TEXT NOT NULL -- one JSON object
) STRICT;

-- An index carries seq at its end, so each answers "of this type, after that number" by itself.
CREATE INDEX events_by_type ON events (type);
CREATE INDEX events_by_item ON events (item) WHERE item IS NOT NULL;
CREATE INDEX events_by_session ON events (session) WHERE session IS NOT NULL;
