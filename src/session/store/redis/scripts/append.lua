-- ARGV: id, whether a generation is asked for, it, the expected last position or nothing, the position behind which events
-- make room or nothing, events that stay, whether those without summary are protected, TTLs of session and user, how many
-- events, their ids, the events.
local sid, has_generation, generation, expected, after = arg(), arg() == '1', arg(), arg(), arg()
local max, is_protecting, ttl, user_ttl, count = number(), arg() == '1', number(), number(), number()
local taken = {}
for i = 1, count do
  taken[i] = arg()
end

local found = head()
if not found[1] then
  return {'missing'}
end
if has_generation and generation ~= found[1] then
  return {'gone'}
end
if is_torn(found) then
  return {'torn'}
end
local seq, first = tonumber(found[2]), tonumber(found[3])

-- Whether the events stand right behind the expected position: then this very batch put them there.
local function was_taken_at(position)
  for i = 1, count do
    local at = known(taken[i])
    if not at then
      return false
    end
    if at > position then
      position = position + 1
      if at ~= position then
        return false
      end
    end
  end
  return count > 0
end

-- Whether the tail is gone and one position was left out: then this very call, which puts nothing in its place, did that.
local function was_emptied_at(position)
  return after ~= '' and count == 0 and seq == position + 1 and redis.call('ZCOUNT', ids, '(' .. after, '+inf') == 0
end

local is_done = false
if expected ~= '' and tonumber(expected) ~= seq then
  is_done = is_again and (was_taken_at(tonumber(expected)) or was_emptied_at(tonumber(expected)))
  if not is_done then
    return {'conflict', found[2]}
  end
end

local function drop_summaries(beyond)
  local last, is_changed, left = '-', false, {}
  while true do
    local page = redis.call('XRANGE', summaries, last, '+', 'COUNT', 50)
    for _, entry in ipairs(page) do
      local fields = entry[2] -- i id k filter_key v version a first b last …
      local version, covered = tonumber(fields[6]), tonumber(fields[10])
      if version > 0 and covered > beyond then
        redis.call('XDEL', summaries, entry[1])
        is_changed = true
      elseif version > 0 then
        left[fields[4]] = string.match(entry[1], '^%d+') .. ' ' .. d(version) .. ' ' .. d(covered)
      end
    end
    if #page < 50 then
      break
    end
    last = '(' .. page[#page][1]
  end
  if is_changed then
    for _, field in ipairs(redis.call('HKEYS', meta)) do
      if string.sub(field, 1, 2) == 'v:' then
        redis.call('HDEL', meta, field)
      end
    end
    for filter_key, told in pairs(left) do
      redis.call('HSET', meta, 'v:' .. filter_key, told)
    end
  end
end

if after ~= '' and not is_done then
  redis.call('HINCRBY', meta, 'cuts', 1)
  while true do
    local tail = redis.call('ZRANGEBYSCORE', ids, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, 500)
    if #tail == 0 then
      break
    end
    for i = 1, #tail, 2 do
      redis.call('XDEL', events, tail[i + 1] .. '-0')
      redis.call('ZREM', ids, tail[i])
    end
  end
  drop_summaries(tonumber(after))
  if tonumber(redis.call('HGET', meta, 'user') or 0) > tonumber(after) then
    redis.call('HDEL', meta, 'user')
  end
end

local seqs, repeats, deltas, is_user_changed = {}, {}, {}, false
for i = 1, count do
  local at = known(taken[i])
  local last, is_changed = take(taken[i], seq, not at, deltas)
  seqs[i], repeats[i] = at or (last > seq and last or 0), at and 1 or 0
  seq, is_user_changed = last, is_user_changed or is_changed
end

if after ~= '' and not is_done and seq == tonumber(found[2]) then
  seq = seq + 1 -- left out, so that whoever expects the last position learns of it
end

-- Lets the oldest events go where there are too many. Only the few at the cut are read, however many there are.
local function cut()
  local held = redis.call('ZCOUNT', ids, d(first), '+inf')
  if max == 0 or held <= max then
    return first
  end
  local keep = max
  if is_protecting then
    local _, _, covered = newest('')
    local open = redis.call('ZCOUNT', ids, d(math.max(covered + 1, first)), '+inf')
    keep = math.max(max, math.min(open, 2 * max))
  end
  if held <= keep then
    return first
  end
  local rank = redis.call('ZCOUNT', ids, '-inf', '(' .. d(first)) + held - keep
  local at = redis.call('ZRANGE', ids, d(rank), d(rank), 'WITHSCORES')[2]
  local wanted = 1 -- each is passed on with all its text
  while true do
    local page = redis.call('XRANGE', events, at .. '-0', '+', 'COUNT', wanted)
    for _, entry in ipairs(page) do
      if kind_of(entry[2][2]) ~= RESULT then -- results go with their call
        return tonumber(string.match(entry[1], '^%d+'))
      end
    end
    if #page < wanted then
      return seq + 1
    end
    wanted = 8
    at = d(string.match(page[#page][1], '^%d+') + 1)
  end
end

local kept = cut()
if kept > first then
  redis.call('XTRIM', events, 'MINID', d(kept) .. '-0')
  for _, key in ipairs({ids, ops}) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. d(kept - KEPT_IDS))
  end
  redis.call('HINCRBY', meta, 'cuts', 1)
end
local oldest = redis.call('ZRANGEBYSCORE', ids, d(kept), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
first = tonumber(oldest[2] or seq + 1)

local time = now()
redis.call('HSET', meta, 'seq', d(seq), 'first', d(first), 'updated', d(time))
if is_user_changed then
  expire(user, user_ttl, time)
end
post(deltas)
live(ttl, time, sid)
return {'ok', found[1], d(seq), d(first), found[4], d(time), found[6], seqs, repeats, pending()}
