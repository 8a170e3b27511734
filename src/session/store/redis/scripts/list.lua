-- KEYS: the list of a user's sessions. ARGV: what the keys of a session begin with, what its metadata's key ends with, the
-- rank to begin at, how many are wanted. Sessions' keys are on the same slot; those that expired leave the list here.
local index, stem, ending, rank, wanted = KEYS[1], arg(), arg(), number(), number()
local shown, dead, is_end = {}, {}, false
while #shown < wanted and not is_end do
  local page = redis.call('ZREVRANGE', index, d(rank), d(rank + 99))
  is_end = #page < 100
  for _, sid in ipairs(page) do
    if #shown == wanted then
      is_end = false
      break
    end
    rank = rank + 1
    local head = redis.call('HMGET', stem .. sid .. ending, 'gen', 'seq', 'first', 'created', 'updated', 'meta')
    if head[1] then
      shown[#shown + 1] = {sid, head}
    else
      dead[#dead + 1] = sid
    end
  end
end
for _, sid in ipairs(dead) do
  redis.call('ZREM', index, sid)
end
return {'ok', shown, d(rank - #dead), is_end and 1 or 0}
