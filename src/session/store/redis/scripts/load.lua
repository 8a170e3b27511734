-- One key more than the others have, where it is on the same node: the app's state.
-- ARGV: the position behind which events are read, how many of the newest at most, a new TTL or nothing.
local app = KEYS[10]
local after, count, refresh = number(), number(), arg()
local found = head()
if not found[1] then
  return {'missing'}
end
if is_torn(found) then
  return {'torn'}
end
if refresh ~= '' then
  live(tonumber(refresh), now())
end
local newest_of_each = {}
local fields = redis.call('HGETALL', meta)
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 2) == 'v:' then
    local entry = newest(string.sub(fields[i], 3))
    local summary = redis.call('XRANGE', summaries, entry .. '-0', entry .. '-0')[1]
    if summary then
      summary[2][#summary[2]] = '' -- without links
      newest_of_each[#newest_of_each + 1] = summary
    end
  end
end
local shown = {}
if count > 0 and after < tonumber(found[2]) then
  shown = redis.call('XREVRANGE', events, found[2] .. '-0', d(after + 1) .. '-0', 'COUNT', d(count))
end
local told = redis.call('HMGET', meta, 'cuts', 'user')
return {'ok', found[1], found[2], found[3], found[4], found[5], found[6], told[1], told[2] or '0',
  redis.call('HGETALL', state), redis.call('HGETALL', user), app and redis.call('HGETALL', app) or {}, newest_of_each, shown,
  pending()}
