-- ARGV: id, generation, overwrite, metadata, TTLs of session and user, deltas of session and user, delta of the app.
local sid, generation, is_overwriting, metadata = arg(), arg(), arg() == '1', arg()
local ttl, user_ttl = number(), number()
local found = head()
if found[1] then
  -- A generation is nobody else's: it is this very call that made it, before its answer was lost.
  if is_again and generation ~= '' and found[1] == generation then
    return {'ok', found[4], pending()}
  end
  if not is_overwriting then
    return {'exists'}
  end
end
local time = now()
for key = 1, OWN do
  redis.call('UNLINK', KEYS[key])
end
redis.call('HSET', meta, 'gen', generation, 'seq', '0', 'first', '1', 'created', d(time), 'updated', d(time),
  'meta', metadata, 'cuts', '0', 'summaries', '0')
change(state, true)
if change(user, true) then
  expire(user, user_ttl, time)
end
local delta = arg()
post(delta ~= '' and {delta} or {})
live(ttl, time, sid)
return {'ok', d(time), pending()}
