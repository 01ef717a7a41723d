-- People sign in to the console. Each has an account of the same name, which owns keys named HANDLE/LABEL. A person is
-- disabled and never deleted: nobody else gets the handle, and with it the history of its keys.
ALTER TABLE accounts ADD COLUMN kind TEXT NOT NULL DEFAULT 'system';
ALTER TABLE accounts ADD COLUMN disabled BIGINT;

CREATE TABLE people (
    id TEXT PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    display TEXT NOT NULL,
    -- In lower case.
    email TEXT UNIQUE,
    -- NULL until a password is chosen.
    password TEXT,
    role TEXT NOT NULL,
    disabled BIGINT,
    -- Raised by a new password and a new role: sessions of an earlier one are over.
    epoch BIGINT NOT NULL,
    created BIGINT NOT NULL,
    seen BIGINT
);

CREATE TABLE memberships (
    account TEXT NOT NULL REFERENCES accounts (id),
    person TEXT NOT NULL REFERENCES people (id),
    role TEXT NOT NULL,
    PRIMARY KEY (account, person)
);
CREATE INDEX memberships_by_person ON memberships (person);

-- Of a session and of a link only the hash is stored.
CREATE TABLE sessions (
    sha256 TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    person TEXT NOT NULL REFERENCES people (id),
    epoch BIGINT NOT NULL,
    created BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    -- When the password was entered last.
    stepped_up BIGINT NOT NULL,
    remote TEXT NOT NULL,
    agent TEXT NOT NULL
);
CREATE INDEX sessions_by_person ON sessions (person);
CREATE INDEX sessions_by_expiry ON sessions (expires);

-- Links that work once: 'setup' to choose a password, 'invite' to make an account.
CREATE TABLE tokens (
    sha256 TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    person TEXT REFERENCES people (id),
    email TEXT,
    role TEXT,
    made_by TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    used BIGINT
);
CREATE INDEX tokens_by_purpose ON tokens (purpose, created);
CREATE INDEX tokens_by_person ON tokens (person);

-- Who did what; rows are only ever added.
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    via TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    change TEXT NOT NULL,
    remote TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at);

ALTER TABLE keys ADD COLUMN made_by TEXT;
-- The secret before the last rotation, which works until then.
ALTER TABLE keys ADD COLUMN previous_sha256 TEXT;
ALTER TABLE keys ADD COLUMN previous_until BIGINT;
CREATE INDEX keys_by_previous ON keys (previous_sha256);
CREATE INDEX keys_by_account ON keys (account);
