-- The most that all keys of an account may spend together in a period; it holds above the caps of the keys.
-- (Their names are no others': queries of the version before join accounts and keys without naming the table.)
ALTER TABLE accounts ADD COLUMN account_cap TEXT;
ALTER TABLE accounts ADD COLUMN account_reset TEXT NOT NULL DEFAULT 'none';
