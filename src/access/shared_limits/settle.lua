-- A request of a key has ended, and has used so many tokens.
-- KEYS: as where it was admitted. ARGV: its id, its tokens, and tokens a minute (empty: no limit).
redis.call('ZREM', KEYS[2], ARGV[1])
local limit, used = tonumber(ARGV[3]), tonumber(ARGV[2])
if limit and used > 0 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local kept = redis.call('HMGET', KEYS[1], 'tokens', 'tokens_at')
  local since = math.max(0, now - (tonumber(kept[2]) or now))
  local taken = math.max(0, (tonumber(kept[1]) or 0) - since * limit / 60000) + used
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.3f', taken), 'tokens_at', now)
  redis.call('PEXPIRE', KEYS[1], 86400000)
end
return 1
