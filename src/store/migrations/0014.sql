-- Who is told when a key, or an account, has spent so much of its cap: one of key_id and account, and one of person (a member,
-- at the proven address), email and webhook.
CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    key_id TEXT REFERENCES keys (id),
    account TEXT REFERENCES accounts (id),
    -- Thresholds in percent, the lowest first: '50 80 100'.
    percents TEXT NOT NULL,
    person TEXT REFERENCES people (id),
    email TEXT,
    webhook TEXT,
    -- What messages to a webhook are signed with.
    secret TEXT,
    -- The language of mail.
    language TEXT NOT NULL,
    made_by TEXT NOT NULL,
    created BIGINT NOT NULL,
    -- The period in which a threshold was told of last, and the highest one of it.
    fired_period TEXT NOT NULL DEFAULT '-',
    fired_percent BIGINT NOT NULL DEFAULT 0,
    -- The last message, and when it is tried next; without that it is done.
    message TEXT,
    due BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    -- What became of the last attempt ('sent', or why it failed); a test message has no percent.
    last_at BIGINT,
    last_percent BIGINT,
    last_outcome TEXT
);
CREATE INDEX alerts_by_key ON alerts (key_id);
CREATE INDEX alerts_by_account ON alerts (account);
CREATE INDEX alerts_due ON alerts (due) WHERE due IS NOT NULL;
