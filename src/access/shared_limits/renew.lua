-- Requests of a key that are still being served. KEYS: who is. ARGV: how long they count from now, their ids.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for place = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 'XX', now + ARGV[1], ARGV[place])
end
return 1
