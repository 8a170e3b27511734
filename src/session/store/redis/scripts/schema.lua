-- KEYS: the number of the schema. ARGV: the newest known one, which it becomes where there is none.
local known = arg()
local found = redis.call('GET', KEYS[1])
if not found then
  redis.call('SET', KEYS[1], known)
end
return {'ok', found or known}
