-- What explains the cost of a request: the prices in force ('input=1.25 output=10'), what was priced by time, how long it took,
-- the attempts before the last one (JSON), and the paths of what a format could not express.
ALTER TABLE usage ADD COLUMN prices TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN priced_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN audio_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN took_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN first_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN upstream_format TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN earlier TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN dropped TEXT NOT NULL DEFAULT '';
ALTER TABLE usage ADD COLUMN adjusted TEXT NOT NULL DEFAULT '';

-- The usage of one key, day by day.
CREATE INDEX daily_by_key ON daily (key_name, day);
