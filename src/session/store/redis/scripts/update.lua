-- ARGV: id, TTL, delta.
local sid, ttl = arg(), number()
if redis.call('EXISTS', meta) == 0 then
  return {'missing'}
end
local time = now()
redis.call('HSET', meta, 'updated', d(time))
change(state, true)
live(ttl, time, sid)
return {'ok'}
