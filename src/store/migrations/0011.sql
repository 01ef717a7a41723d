-- Requests that are few and looked for among all: those of one model, those that failed, those with an estimated usage.
CREATE INDEX usage_by_model ON usage (model, ended);
CREATE INDEX usage_by_key_and_model ON usage (key_id, model, ended);
CREATE INDEX usage_failed ON usage (ended) WHERE status >= 400;
CREATE INDEX usage_failed_by_key ON usage (key_id, ended) WHERE status >= 400;
CREATE INDEX usage_estimated ON usage (ended) WHERE estimated > 0;
CREATE INDEX usage_estimated_by_key ON usage (key_id, ended) WHERE estimated > 0;
