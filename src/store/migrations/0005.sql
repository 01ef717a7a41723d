-- How many bytes of the store an entry takes, and with that each key.
ALTER TABLE responses ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE responses SET bytes = LENGTH(input) + LENGTH(reply);
CREATE INDEX responses_by_key ON responses (key_id, expires, bytes);
ALTER TABLE tasks ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE tasks SET bytes = LENGTH(request) + COALESCE(LENGTH(result), 0);
-- Keys take turns: how many tasks of a key run, and when the last one began.
CREATE INDEX tasks_by_key_and_status ON tasks (key_id, status, bytes);
CREATE INDEX tasks_by_key_and_start ON tasks (key_id, started);
