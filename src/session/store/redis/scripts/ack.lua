-- KEYS: a user's outbox. ARGV: the entry that is done. The empty list stays for a day, so that an entry that is left in the same
-- millisecond gets a higher number than the last.
redis.call('XDEL', KEYS[1], arg())
local left = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', OUTBOX_BATCH)
if #left == 0 then
  redis.call('PEXPIRE', KEYS[1], '86400000')
end
return {'ok', left}
