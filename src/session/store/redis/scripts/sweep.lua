-- KEYS: the list of a user's sessions. ARGV: as for `list`, and the rank to begin at. What expired leaves the list.
local index, stem, ending, rank = KEYS[1], arg(), arg(), number()
local page = redis.call('ZREVRANGE', index, d(rank), d(rank + 499))
local dead = {}
for _, sid in ipairs(page) do
  if redis.call('EXISTS', stem .. sid .. ending) == 0 then
    dead[#dead + 1] = sid
  end
end
for _, sid in ipairs(dead) do
  redis.call('ZREM', index, sid)
end
return {'ok', #dead, d(rank + #page - #dead), #page < 500 and 1 or 0}
