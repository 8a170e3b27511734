-- What the scripts share; stands in front of each.
--
-- Every number goes into a command through `d`, because Lua writes 1e+15 for a large one. Nothing is decoded as JSON, values
-- are bytes, and nothing is unpacked whose length the caller chooses. An answer begins with a word that says what became of it.

local OUTBOX_BATCH = 16 -- entries of an outbox that are returned at once

local function d(number)
  return string.format('%d', number)
end

-- Keys do not expire while a script runs: those of one session are all there, or all gone.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- ARGV is read from the front. The first says whether the same call was sent before and its answer was lost.
local read = 0
local function arg()
  read = read + 1
  return ARGV[read]
end
local function number()
  return tonumber(arg())
end
local is_again = arg() == '1'

-- A delta: how many names, and for each the name, `1` and its value or `0` and nothing.
local function change(key, is_wanted)
  local names = number()
  for _ = 1, names do
    local name, is_set, value = arg(), arg() == '1', arg()
    if is_wanted and is_set then
      redis.call('HSET', key, name, value)
    elseif is_wanted then
      redis.call('HDEL', key, name)
    end
  end
  return is_wanted and names > 0
end

local function expire(key, ttl, time)
  if ttl > 0 then
    redis.call('PEXPIREAT', key, d(time + ttl))
  else
    redis.call('PERSIST', key)
  end
end
