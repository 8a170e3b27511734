-- ARGV: id, generation, filter key, expected version, first and last position, text, record, whether it failed, links, TTL,
-- id of a placeholder or nothing, the placeholder.
local id, generation, filter_key, expected, first, last = arg(), arg(), arg(), number(), number(), number()
local text, record, has_failed, links, ttl, placeholder = arg(), arg(), arg() == '1', arg(), number(), arg()
local found = redis.call('HMGET', meta, 'gen', 'seq', 'summaries', 'first')
if not found[1] or found[1] ~= generation then
  return {'gone'}
end

if is_torn({found[1], found[2], found[4]}) then
  return {'torn'}
end

local function put(version, time)
  local entry = d(found[3] + 1)
  redis.call('HSET', meta, 'summaries', entry)
  redis.call('XADD', summaries, entry .. '-0', 'i', id, 'k', filter_key, 'v', d(version), 'a', d(first), 'b', d(last),
    't', text, 'r', record, 'c', d(time), 'l', links)
  return entry
end

local function is_stored(entry)
  local stored = entry and redis.call('XRANGE', summaries, entry .. '-0', entry .. '-0')[1]
  return stored and stored[2][2] == id
end

if has_failed then
  if not (is_again and is_stored(found[3])) then
    put(0, now())
    local left = redis.call('PTTL', meta)
    if left >= 0 then
      redis.call('PEXPIREAT', summaries, d(now() + left))
    end
  end
  return {'ok', 0}
end
local seq = tonumber(found[2])
if last > seq then
  return {'beyond'}
end
local entry, version, covered = newest(filter_key)
if is_again and version == expected + 1 and is_stored(entry) then
  return {'ok', d(version)}
end
if version ~= expected or covered > last then
  return {'stale'}
end
local time = now()
local told = put(version + 1, time) .. ' ' .. d(version + 1) .. ' ' .. d(last)
redis.call('HSET', meta, 'v:' .. filter_key, told)
if placeholder ~= '' then
  redis.call('HSET', meta, 'seq', d(take(placeholder, seq, not known(placeholder), {})))
end
live(ttl, time)
return {'ok', d(version + 1)}
