-- Who a person is for an identity provider.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    person TEXT NOT NULL REFERENCES people (id),
    -- As the provider told it when they were connected.
    email TEXT,
    created BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_by_person ON identities (person);

-- Of an account that somebody makes who has signed in at a provider ('welcome').
ALTER TABLE tokens ADD COLUMN issuer TEXT;
ALTER TABLE tokens ADD COLUMN subject TEXT;
ALTER TABLE tokens ADD COLUMN display TEXT;
