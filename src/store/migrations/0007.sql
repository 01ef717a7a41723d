-- When it was proven that the address is the person's. Links are also 'reset' (another password), 'verify' (an address)
-- and 'sign_up' (an account of a proven address).
ALTER TABLE people ADD COLUMN verified BIGINT;
CREATE INDEX tokens_by_expiry ON tokens (expires);
