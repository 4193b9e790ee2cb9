-- One row, which tells this database from every other.
CREATE TABLE store (
    number INTEGER PRIMARY KEY CHECK (number = 0),
    identity INTEGER NOT NULL
) STRICT;

-- One row for each log. Its first record stands here too, so that lists read nothing else.
CREATE TABLE logs (
    log_kind TEXT NOT NULL CHECK (log_kind IN ('session', 'turn')),
    log_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL, -- by chance; another one when the id is used again
    revision INTEGER NOT NULL, -- counts changes
    records INTEGER NOT NULL,
    first TEXT NOT NULL,
    PRIMARY KEY (log_kind, log_id)
) STRICT;

-- One row for each record: `data` is the line, `type` and `ts` are copies of what it says.
CREATE TABLE records (
    log_kind TEXT NOT NULL,
    log_id TEXT NOT NULL,
    seq INTEGER NOT NULL, -- from 0
    type TEXT,
    ts TEXT,
    data TEXT NOT NULL,
    PRIMARY KEY (log_kind, log_id, seq)
) STRICT;

-- Logs that were taken out and can be put back. One id may be here more than once.
CREATE TABLE removed (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    removed_at INTEGER NOT NULL, -- milliseconds since 1970
    log_kind TEXT NOT NULL,
    log_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    records INTEGER NOT NULL,
    first TEXT NOT NULL
) STRICT;

CREATE TABLE removed_records (
    removal INTEGER NOT NULL, -- the number of the removal
    seq INTEGER NOT NULL,
    type TEXT,
    ts TEXT,
    data TEXT NOT NULL,
    PRIMARY KEY (removal, seq)
) STRICT;

-- The crash buffer: what was streamed of an answer whose call is not settled yet.
CREATE TABLE live_text (
    owner TEXT NOT NULL, -- the id of the turn, or the key of its removal
    seq INTEGER NOT NULL, -- from 0
    bytes INTEGER NOT NULL, -- of this row and those before it
    lines TEXT NOT NULL,
    PRIMARY KEY (owner, seq)
) STRICT;
