-- The most that all keys of an account may spend together in a period; it holds above the caps of the keys.
ALTER TABLE accounts ADD COLUMN spending_cap TEXT;
ALTER TABLE accounts ADD COLUMN reset TEXT NOT NULL DEFAULT 'none';
