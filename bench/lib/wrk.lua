-- The request that wrk repeats: a page, with the fields a browser behind a CDN sends, or a JSON body; and the figures as one JSON
-- line. Headers set here are built into the request once; no Lua runs per request.
local file = os.getenv("WRK_BODY")
if file then
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = assert(io.open(file)):read("*a")
else
  wrk.headers["Host"] = "shop.example.com"
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
  wrk.headers["Accept"] = "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8"
  wrk.headers["Accept-Language"] = "en-GB,en;q=0.8,de;q=0.5"
  wrk.headers["Accept-Encoding"] = "gzip, deflate, br"
  wrk.headers["Referer"] = "https://shop.example.com/rooms?city=ghent&guests=2"
  wrk.headers["Cookie"] = "session=7c9e6679f7425d40e0de944be07fc1f9; consent=1; currency=EUR"
end

done = function(summary, latency, requests)
  io.write(string.format(
    'JSON {"requests":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.status, summary.errors.timeout))
end
