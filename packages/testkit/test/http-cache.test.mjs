// The cases of cache-tests.fyi against a route with a cache: all hold that a proxy can hold, but for those with a reason here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cacheTests, startHostler } from '@hostler/testkit';

const suite = await cacheTests();
const options = { skip: !suite && 'http-cache-tests is missing' };

const all = (ids, verdict) => Object.fromEntries(ids.map((id) => [id, verdict]));

const REQUIRED_BUT_NOT_HELD = {
  // The suite's own later versions say the contrary, as RFC 9111 section 5.1 does: the first number counts, and what is none not at all.
  ...all(
    [
      'age-parse-nonnumeric',
      'age-parse-negative',
      'age-parse-float',
      'age-parse-prefix-twoline',
      'age-parse-dup-0',
      'age-parse-dup-0-twoline',
      'age-parse-dup-old',
      'age-parse-parameter',
      'age-parse-numeric-parameter',
    ],
    'Assertion: Response 2 comes from cache',
  ),
  // No proxy holds them: whatever it answers in the place of a member that has hung up, the suite takes for an answer from memory.
  ...all(
    ['stale-close-must-revalidate', 'stale-close-proxy-revalidate', 'stale-close-no-cache', 'stale-close-s-maxage=2'],
    'Assertion: Response 2 comes from cache',
  ),
  // The suite's origin sends what is no HTTP; a proxy that guesses what was meant can be made to see another message than its member.
  'headers-store-Transfer-Encoding': 'Setup: Response 1 status is 502, not 200',
  // A 304 with another strong entity tag than the stored one: "MUST NOT use" it (RFC 9111 section 4.3.4). The member is asked anew,
  // for which the suite's origin has only a status that is none.
  '304-etag-update-response-ETag': 'Setup: Response 2 status is 502, not 200',
};
/** By default an answer with `Set-Cookie` is not stored, hence not validated either. */
const COOKIES_ARE_NOT_STORED = {
  'headers-store-Set-Cookie': 'Setup: Response 2 does not come from cache',
  '304-etag-update-response-Set-Cookie': 'Setup: Response 2 status is 502, not 200',
};
/** What an optimal cache does, and this one does not. */
const OPTIMAL_BUT_NOT_OURS = {
  ...all(
    [
      // Answers to POST are not kept.
      'method-POST',
      // Some servers heed the order of languages, and then it makes another answer.
      'vary-normalise-lang-order',
      // To choose an answer by its language is the member's.
      'vary-normalise-lang-select',
      // Parts are not kept; they are cut from whole answers.
      'partial-store-partial-reuse-partial',
      'partial-store-partial-reuse-partial-byterange',
      'partial-store-partial-reuse-partial-absent',
      'partial-store-partial-reuse-partial-suffix',
    ],
    'Assertion: Response 2 does not come from cache',
  ),
  'partial-store-partial-complete': 'Assertion: Request 2 header range is "undefined", not "bytes=5-"',
  // The suite wants a 304 for what is newer than the date that the client names.
  'conditional-lm-fresh-no-lm': 'Assertion: Response 2 status is 200, not 304',
};

test('every required case holds with cache = "standard", but for those that are named here', options, async (t) => {
  const url = await startCache(t, '"standard"');
  const expected = { ...REQUIRED_BUT_NOT_HELD, ...COOKIES_ARE_NOT_STORED };
  assert.deepEqual(await failures(url, suite.ids('required'), expected), expected);
});

test('every optimal case holds where the route allows what the book allows, but for those that are named here', options, async (t) => {
  const url = await startCache(t, '{ heuristics = true, set_cookie = "keep" }');
  const ids = [...suite.ids('optimal'), ...Object.keys(COOKIES_ARE_NOT_STORED)];
  assert.deepEqual(await failures(url, ids, OPTIMAL_BUT_NOT_OURS), OPTIMAL_BUT_NOT_OURS);
});

async function startCache(t, cache) {
  const { command, env } = suite.origin;
  const variables = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const config = `
    [pools.origin]
    command = ${JSON.stringify(command)}
    workers = 1
    concurrency = 256
    env = { ${variables.join(', ')} }
    [[routes]]
    match = "/test/*"
    pool = "origin"
    cache = ${cache}
    [[routes]]
    match = "*"
    pool = "origin"
  `;
  const site = await startHostler({ config });
  t.after(() => site.stop());
  return site.url;
}

/**
 * What is found of those that do not hold. Many cases say what is to be so within two seconds, which a busy machine may miss: what is
 * not as `expected` is tried again, by itself.
 */
async function failures(url, ids, expected) {
  const found = await suite.run(url, ids);
  const surprising = () => ids.filter((id) => found[id] !== (expected[id] ?? true));
  for (let again = 0; again < 4 && surprising().length > 0; again += 1) Object.assign(found, await suite.run(url, surprising()));
  return Object.fromEntries(Object.entries(found).filter(([, verdict]) => verdict !== true));
}
