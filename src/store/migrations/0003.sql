-- What a key has spent since a process began is read when the key is new to it, however long that is ago.
CREATE INDEX usage_by_key ON usage (key_name, ended);
