-- What the scripts of one session share; all its keys are on the slot of its user.

local meta, events, ids, ops, state, summaries, index, user, outbox =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local OWN = 6 -- the first six are the session's own, and expire together

local function head()
  return redis.call('HMGET', meta, 'gen', 'seq', 'first', 'created', 'updated', 'meta')
end

-- Whether the server dropped one of the session's keys to make room: then it must not look empty, and go on.
local function is_torn(found)
  local has_events = tonumber(found[2]) >= tonumber(found[3])
  return has_events and redis.call('EXISTS', events, ids) < 2
    or redis.call('HGET', meta, 'summaries') ~= '0' and redis.call('EXISTS', summaries) == 0
end

-- The session lives for `ttl` from now on, and the list of its user's sessions as long as the longest of them. With `sid` it
-- comes first in that list.
local function live(ttl, time, sid)
  for key = 1, OWN do
    expire(KEYS[key], ttl, time)
  end
  local is_new = redis.call('EXISTS', index) == 0
  if sid then
    redis.call('ZADD', index, d(time), sid)
  end
  local left = redis.call('PTTL', index)
  if ttl == 0 then
    redis.call('PERSIST', index)
  elseif is_new or (left >= 0 and left < ttl) then
    redis.call('PEXPIREAT', index, d(time + ttl))
  end
end

-- Leaves an entry of what is to be done on the app's slot, which no script can reach from here.
local function post(deltas)
  if #deltas > 0 then
    redis.call('XADD', outbox, '*', 'd', table.concat(deltas))
    redis.call('PERSIST', outbox)
  end
end

local function pending()
  return redis.call('XRANGE', outbox, '-', '+', 'COUNT', OUTBOX_BATCH)
end

-- The newest summary of a filter key is told by the session: its number, its version, the last position that it covers.
local function newest(filter_key)
  local told = redis.call('HGET', meta, 'v:' .. filter_key)
  if not told then
    return nil, 0, 0
  end
  local entry, version, last = string.match(told, '^(%d+) (%d+) (%d+)$')
  return entry, tonumber(version), tonumber(last)
end

-- The position of an id that was taken before, 0 for one that only changed state.
local function known(id)
  local seq = redis.call('ZSCORE', ids, id)
  if seq then
    return tonumber(seq)
  end
  return redis.call('ZSCORE', ops, id) and 0
end

-- What is known of an event is one value, which begins with its kind: few values are read much faster than many.
local USER, RESULT = '1', '4'
local function kind_of(about)
  return string.sub(about, 1, 1)
end

-- Reads one event from ARGV and takes it, unless its id is known. Returns the last position and whether the user changed.
local function take(id, seq, is_new, deltas)
  local has_payload, about, payload = arg() == '1', arg(), arg()
  change(state, is_new)
  local is_user_changed = change(user, is_new)
  local delta = arg()
  if not is_new then
    return seq, false
  end
  if delta ~= '' then
    deltas[#deltas + 1] = delta
  end
  if has_payload then
    seq = seq + 1
    redis.call('XADD', events, d(seq) .. '-0', 'a', about, 'd', payload)
    redis.call('ZADD', ids, d(seq), id)
    if kind_of(about) == USER then
      redis.call('HSET', meta, 'user', d(seq))
    end
  else
    redis.call('ZADD', ops, d(seq), id) -- kept as long as the event before it
  end
  return seq, is_user_changed
end
