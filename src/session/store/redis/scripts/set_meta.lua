-- ARGV: what nobody else has sent, metadata, whether others are expected, they.
local token, metadata, has_expected, expected = arg(), arg(), arg() == '1', arg()
local found = redis.call('HMGET', meta, 'meta', 'token')
if not found[1] then
  return {'missing'}
end
if is_again and found[2] == token then
  return {'ok'}
end
if has_expected and found[1] ~= expected then
  return {'conflict', found[1]}
end
redis.call('HSET', meta, 'meta', metadata, 'token', token)
return {'ok'}
