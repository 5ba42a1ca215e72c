-- Many different requests, each line of WRK_REQUESTS one: a path, and after a space what X-Forwarded-For (or the field that WRK_FIELD
-- names) shall say. WRK_ORDER, if named, is a file of line numbers, in the order in which they are asked for. Besides: the fields of
-- wrk.lua.
dofile(os.getenv("WRK_COMMON"))

local requests, order = {}, nil
local field = os.getenv("WRK_FIELD") or "X-Forwarded-For"
for line in io.lines(os.getenv("WRK_REQUESTS")) do
  local path, from = line:match("^(%S+)%s*(%S*)$")
  wrk.headers[field] = from ~= "" and from or nil
  requests[#requests + 1] = wrk.format("GET", path)
end
if os.getenv("WRK_ORDER") then
  order = {}
  for line in io.lines(os.getenv("WRK_ORDER")) do order[#order + 1] = tonumber(line) end
end

local next = tonumber(os.getenv("WRK_FROM") or "0")
local count = order and #order or #requests

request = function()
  local at = next % count + 1
  next = next + 1
  return requests[order and order[at] or at]
end
