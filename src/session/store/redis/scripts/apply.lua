-- KEYS: an app's state, and which entry of each user was the last that it took. ARGV: user, time and number of the entry, how
-- many deltas, and for each its TTL and itself. An entry that it took before changes nothing.
local state, applied, user, time, order, deltas = KEYS[1], KEYS[2], arg(), number(), number(), number()
local last = redis.call('HGET', applied, user)
if last then
  local last_time, last_order = string.match(last, '^(%d+)-(%d+)$')
  last_time, last_order = tonumber(last_time), tonumber(last_order)
  if last_time > time or (last_time == time and last_order >= order) then
    return {'ok'}
  end
end
redis.call('HSET', applied, user, d(time) .. '-' .. d(order))
for _ = 1, deltas do
  local ttl = number()
  if change(state, true) then
    expire(state, ttl, now())
  end
end
return {'ok'}
