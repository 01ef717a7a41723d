-- The sums of daily of days that are over, so that charts of all keys read few rows: of a whole day ('day', no name), of
-- each model in it ('model') and of each key ('key'). All days before that of the row 'until' are added up.
CREATE TABLE daily_sums (
    kind TEXT NOT NULL,
    day TEXT NOT NULL,
    name TEXT NOT NULL,
    requests BIGINT NOT NULL,
    estimated BIGINT NOT NULL,
    input BIGINT NOT NULL,
    cached BIGINT NOT NULL,
    cache_written BIGINT NOT NULL,
    output BIGINT NOT NULL,
    thinking BIGINT NOT NULL,
    images BIGINT NOT NULL,
    cost TEXT NOT NULL,
    PRIMARY KEY (kind, day, name)
);
CREATE INDEX daily_by_model ON daily (model, day);
