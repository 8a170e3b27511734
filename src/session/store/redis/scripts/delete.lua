-- ARGV: id.
local existed = redis.call('EXISTS', meta)
for key = 1, OWN do
  redis.call('UNLINK', KEYS[key])
end
redis.call('ZREM', index, arg())
return {'ok', existed}
