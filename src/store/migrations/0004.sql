-- What a key owns goes by its id, which is never used again: a name may be, when its key is revoked.
-- What belongs to a name that no key of the store has waits under 'name:…' for the config's key of that name.
CREATE TABLE unclaimed_names (name TEXT PRIMARY KEY);
INSERT INTO unclaimed_names (name)
    SELECT key_name FROM (SELECT key_name FROM spending UNION SELECT key_name FROM responses
        UNION SELECT key_name FROM tasks) AS owners
    WHERE key_name NOT IN (SELECT name FROM keys WHERE revoked IS NULL);
ALTER TABLE spending RENAME COLUMN key_name TO key_id;
UPDATE spending SET key_id = COALESCE(
    (SELECT keys.id FROM keys WHERE keys.name = spending.key_id AND keys.revoked IS NULL), 'name:' || key_id);
ALTER TABLE responses RENAME COLUMN key_name TO key_id;
UPDATE responses SET key_id = COALESCE(
    (SELECT keys.id FROM keys WHERE keys.name = responses.key_id AND keys.revoked IS NULL), 'name:' || key_id);
ALTER TABLE tasks RENAME COLUMN key_name TO key_id;
UPDATE tasks SET key_id = COALESCE(
    (SELECT keys.id FROM keys WHERE keys.name = tasks.key_id AND keys.revoked IS NULL), 'name:' || key_id);
-- Leases last for seconds.
DELETE FROM leases;
ALTER TABLE leases RENAME COLUMN key_name TO key_id;
ALTER TABLE usage ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
DROP INDEX usage_by_key;
CREATE INDEX usage_by_key ON usage (key_id, ended);
