-- Teams: accounts of several people. An invitation may put who takes it up into a team, with a role there.
ALTER TABLE tokens ADD COLUMN account TEXT REFERENCES accounts (id);
ALTER TABLE tokens ADD COLUMN account_role TEXT;
-- Whether nobody but the owner of the address has seen the link of an invitation to a team.
ALTER TABLE tokens ADD COLUMN sent BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tokens_by_account ON tokens (account);
