-- The second factor: the secret of codes, the one that is not confirmed yet, and the last step whose code was used, so
-- that no code works twice.
ALTER TABLE people ADD COLUMN totp TEXT;
ALTER TABLE people ADD COLUMN totp_pending TEXT;
ALTER TABLE people ADD COLUMN totp_step BIGINT;

-- Codes for who has lost the device; each works once.
CREATE TABLE recovery (
    person TEXT NOT NULL REFERENCES people (id),
    sha256 TEXT NOT NULL,
    used BIGINT,
    PRIMARY KEY (person, sha256)
);
