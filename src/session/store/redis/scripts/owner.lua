-- KEYS: the state of a user or an app. ARGV: TTL, delta.
local ttl = number()
if change(KEYS[1], true) then
  expire(KEYS[1], ttl, now())
end
return {'ok'}
