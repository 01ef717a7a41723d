-- One request of a key: is it within its limits? What is counted is what has been taken and has
-- not yet come back, as in a process that counts alone. By the clock of Redis, which all share.
-- KEYS: what is taken, and who is being served. ARGV: requests and tokens a minute, requests at
-- once (each empty: no limit), an id of this request, and how long it counts without a sign of life.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local requests, tokens, at_once = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function taken(what, limit)
  local kept = redis.call('HMGET', KEYS[1], what, what .. '_at')
  local since = math.max(0, now - (tonumber(kept[2]) or now))
  return math.max(0, (tonumber(kept[1]) or 0) - since * limit / 60000)
end

local taken_requests = requests and taken('requests', requests) or 0
local taken_tokens = tokens and taken('tokens', tokens) or 0

local function answer(word, missing, limit)
  local wait = math.ceil(missing * 60000 / limit)
  return {word, wait, string.format('%.3f', taken_requests), string.format('%.3f', taken_tokens)}
end

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if at_once and redis.call('ZCARD', KEYS[2]) >= at_once then
  return answer('concurrency', 0, 1)
end
if tokens and taken_tokens + 1 > tokens then
  return answer('tokens', taken_tokens + 1 - tokens, tokens)
end
if requests then
  if taken_requests + 1 > requests then
    return answer('requests', taken_requests + 1 - requests, requests)
  end
  taken_requests = taken_requests + 1
  redis.call('HSET', KEYS[1], 'requests', string.format('%.3f', taken_requests), 'requests_at', now)
  redis.call('PEXPIRE', KEYS[1], 86400000)
end
if at_once then
  redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], 86400000)
end
return answer('admitted', 0, 1)
