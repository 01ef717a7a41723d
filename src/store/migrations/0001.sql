-- One text for both databases; BYTEA is written BLOB for SQLite before it runs.
-- Times are milliseconds since 1970, days are those of UTC (2026-11-15), yes and no are 1 and 0.
-- Amounts are decimals in TEXT: SQLite has no exact type that holds them, and they are only ever
-- added up by the program, which has one. In PostgreSQL a query may say cost::numeric.

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created BIGINT NOT NULL
);

-- Counts changes; who remembers the last number it saw can ask for what is newer.
CREATE TABLE revisions (
    what TEXT PRIMARY KEY,
    number BIGINT NOT NULL
);
INSERT INTO revisions (what, number) VALUES ('keys', 0);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES accounts (id),
    sha256 TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    spending_cap TEXT,
    reset TEXT NOT NULL,
    models TEXT,
    requests_per_minute BIGINT,
    tokens_per_minute BIGINT,
    concurrency BIGINT,
    created BIGINT NOT NULL,
    expires BIGINT,
    revoked BIGINT,
    revision BIGINT NOT NULL
);
CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked IS NULL;
CREATE INDEX keys_by_revision ON keys (revision);

CREATE TABLE usage (
    id TEXT PRIMARY KEY,
    ended BIGINT NOT NULL,
    key_name TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    format TEXT NOT NULL,
    stream BIGINT NOT NULL,
    status BIGINT NOT NULL,
    input BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    cache_written BIGINT NOT NULL,
    output BIGINT NOT NULL,
    thinking BIGINT NOT NULL,
    audio_input BIGINT NOT NULL,
    audio_output BIGINT NOT NULL,
    image_output BIGINT NOT NULL,
    images BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    cost TEXT NOT NULL
);
CREATE INDEX usage_by_time ON usage (ended);

CREATE TABLE daily (
    day TEXT NOT NULL,
    key_name TEXT NOT NULL,
    model TEXT NOT NULL,
    requests BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    input BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    cache_written BIGINT NOT NULL,
    output BIGINT NOT NULL,
    thinking BIGINT NOT NULL,
    images BIGINT NOT NULL,
    cost TEXT NOT NULL,
    PRIMARY KEY (day, key_name, model)
);

-- What a key has spent in a day (2026-11-15), in a month (2026-11) and ever ('').
CREATE TABLE spending (
    key_name TEXT NOT NULL,
    period TEXT NOT NULL,
    amount TEXT NOT NULL,
    PRIMARY KEY (key_name, period)
);

CREATE INDEX spending_by_period ON spending (period);

-- Replies that conversations go on from.
CREATE TABLE responses (
    key_name TEXT NOT NULL,
    id TEXT NOT NULL,
    previous TEXT,
    input BYTEA NOT NULL,
    input_items BIGINT NOT NULL,
    reply BYTEA NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (key_name, id)
);
CREATE INDEX responses_by_expiry ON responses (expires);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    key_name TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    progress BIGINT NOT NULL,
    request BYTEA NOT NULL,
    result BYTEA,
    error TEXT,
    created BIGINT NOT NULL,
    started BIGINT,
    touched BIGINT NOT NULL,
    finished BIGINT,
    expires BIGINT NOT NULL
);
CREATE INDEX tasks_by_key ON tasks (key_name, created);
CREATE INDEX tasks_by_status ON tasks (status, created);
CREATE INDEX tasks_by_expiry ON tasks (expires);
