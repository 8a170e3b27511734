-- ARGV: whether a filter key is asked for, it, whether failed ones are, whether links are, how many at most.
local has_key, filter_key, is_failed, has_links, last = arg() == '1', arg(), arg() == '1', arg() == '1', number()
local shown, before = {}, '+'
while #shown < last do
  local page = redis.call('XREVRANGE', summaries, before, '-', 'COUNT', 50)
  for _, entry in ipairs(page) do
    local fields = entry[2]
    if #shown < last and (fields[6] == '0') == is_failed and (not has_key or fields[4] == filter_key) then
      if not has_links then
        fields[#fields] = ''
      end
      shown[#shown + 1] = entry
    end
  end
  if #page < 50 then
    break
  end
  before = '(' .. page[#page][1]
end
return {'ok', shown}
