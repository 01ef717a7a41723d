-- What running gateways have set aside of the caps of keys. Of an amount, what has been written
-- down as spent is taken off in the same step.
CREATE TABLE leases (
    key_name TEXT NOT NULL,
    holder TEXT NOT NULL,
    -- The journal of the holder: who comes after it there takes its place.
    journal TEXT NOT NULL,
    period TEXT NOT NULL,
    amount TEXT NOT NULL,
    expires BIGINT NOT NULL,
    PRIMARY KEY (key_name, holder)
);
CREATE INDEX leases_by_holder ON leases (holder);
CREATE INDEX leases_by_expiry ON leases (expires);
