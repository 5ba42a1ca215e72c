// The requests of the conformance suite, the same for both services. Knows no client and no service.
//
// `differs`: why our response differs on purpose. `alike` removes exactly this from our normalised response, and then it
// must equal Hypernova's.
import { deflateSync, gzipSync } from 'node:zlib';

const JSON_TYPE = { 'content-type': 'application/json' };
const LIMIT = 1_024_000;
const DATA = { name: 'Ada </b> --> & "q" \u2028 é 😀', list: [1, -0.5, 1e21] };

const job = (name, data = DATA, more = {}) => ({ name, data, ...more });
const body = (jobs) => JSON.stringify(jobs);
/** A batch with exactly this many bytes. */
const sized = (bytes) => {
  const empty = body({ a: job('Static', { name: '' }) }).length;
  return body({ a: job('Static', { name: 'x'.repeat(bytes - empty) }) });
};
const packed = (coding, bytes) => ({ headers: { ...JSON_TYPE, 'content-encoding': coding }, body: bytes });

const NO_HTML = {
  differs: "the error has the intended message; in Hypernova the message is `{}`",
  // In the JSON of a response, and in pyramid's script, which has the error as a list.
  alike: (text) => text.replaceAll(/\\?"HTML was not returned to Hypernova[^"\\]*\\?"/g, '{}'),
};

/** Exact HTTP requests. */
export const EXCHANGES = [
  { what: 'a component renders', body: body({ a: job('Greeting.js') }) },
  { what: 'a name with a slash, a space and a dot', body: body({ a: job('a/b c.js') }) },
  { what: 'static markup', body: body({ a: job('Static') }) },
  { what: 'a promise of markup', body: body({ a: job('Later') }) },
  { what: 'throws an Error', body: body({ a: job('Throws') }) },
  { what: 'throws an Error whose message is an object', body: body({ a: job('ThrowsMessage') }) },
  { what: 'getComponent throws', body: body({ a: job('CannotLook') }) },
  { what: 'throws a string', body: body({ a: job('ThrowsText') }) },
  { what: 'rejects with an Error', body: body({ a: job('Rejects') }) },
  { what: 'rejects with a string', body: body({ a: job('RejectsText') }) },
  { what: 'rejects with an object', body: body({ a: job('RejectsObject') }) },
  { what: 'is not registered', body: body({ a: job('Missing.js') }) },
  { what: 'is registered, but no function', body: body({ a: job('NotAFunction') }) },
  {
    what: 'is an ES module with a default export', body: body({ a: job('Default') }),
    differs: 'the default export is the component; in Hypernova it is not registered',
  },
  { what: 'gives empty HTML', body: body({ a: job('Empty') }), ...NO_HTML },
  { what: 'gives undefined', body: body({ a: job('Undefined') }), ...NO_HTML },
  { what: 'several jobs, some of which fail', body: body({ x: job('Greeting.js'), y: job('Throws'), z: job('Missing.js'), 1: job('Static') }) },
  { what: 'metadata, and meta in return', body: body({ a: job('Meta', { p: 1 }, { metadata: { m: [1] }, context: { c: 1 } }) }) },
  { what: 'a job without data', body: body({ a: { name: 'Greeting.js' } }) },
  { what: 'a job without a name', body: body({ a: { data: {} } }) },
  { what: 'equal tokens', body: `{"a":${body(job('Static'))},"a":${body(job('Later'))}}` },
  { what: 'an array', body: body([job('Greeting.js'), job('Missing.js')]) },
  { what: '`{}`', body: '{}' },
  { what: 'an empty body', body: '' },
  { what: 'a byte order mark', body: `\ufeff${body({ a: job('Static') })}` },
  { what: 'another content type', headers: { 'content-type': 'text/plain' }, body: body({ a: job('Static') }) },
  { what: 'no content type', headers: {}, body: body({ a: job('Static') }) },
  { what: '`charset=utf-8`', headers: { 'content-type': 'application/json; charset=UTF-8' }, body: body({ a: job('Static') }) },
  { what: 'an unknown charset', headers: { 'content-type': 'application/json; charset=latin1' }, body: body({ a: job('Static') }) },
  { what: 'gzip', ...packed('gzip', gzipSync(body({ a: job('Greeting.js') }))) },
  { what: 'deflate', ...packed('deflate', deflateSync(body({ a: job('Greeting.js') }))) },
  { what: 'gzip that is none', ...packed('gzip', body({ a: job('Static') })) },
  { what: 'an unknown content coding', ...packed('zip', body({ a: job('Static') })) },
  { what: 'a body of the limit, 1,024,000 bytes', body: sized(LIMIT) },
  { what: 'a byte more', body: sized(LIMIT + 1) },
  { what: 'a byte more, chunked', body: sized(LIMIT + 1), chunked: true },
  { what: 'a byte more, in gzip', ...packed('gzip', gzipSync(sized(LIMIT + 1))) },
  { what: 'bad JSON', body: '{"a":' },
  { what: 'no JSON at all', body: 'hello' },
  { what: '`null`', body: 'null' },
  { what: 'a string', body: '"a"' },
  { what: 'a chunked body', body: body({ a: job('Static') }), chunked: true },
  { what: '`Expect: 100-continue`', headers: { ...JSON_TYPE, expect: '100-continue' }, body: body({ a: job('Static') }) },
  { what: '`POST /batch/`', path: '/batch/', body: body({ a: job('Static') }) },
  { what: '`POST /BATCH`', path: '/BATCH', body: body({ a: job('Static') }) },
  { what: '`POST /batch?x=1`', path: '/batch?x=1', body: body({ a: job('Static') }) },
  { what: '`POST /other`', path: '/other', body: '{}' },
  { what: '`GET /batch`', method: 'GET', headers: {} },
  { what: '`GET /`', method: 'GET', path: '/', headers: {} },
  { what: '`PUT /batch`', method: 'PUT', body: '{}' },
];

/** Requests to a service with its own Express 4 application, with compression and body parsers of other types. */
export const IN_EXPRESS = [
  { what: 'in an Express 4 application', body: body({ a: job('Greeting.js'), b: job('Missing.js') }) },
  { what: 'in an Express 4 application, compressed', headers: { ...JSON_TYPE, 'accept-encoding': 'gzip' }, body: body({ a: job('Greeting.js') }) },
  { what: 'in an Express 4 application, with a second parser of JSON', headers: { ...JSON_TYPE, 'x-parse-again': '1' }, body: body({ a: job('Greeting.js') }) },
  { what: 'in an Express 4 application, bad JSON', body: '{"a":' },
];

const FAILED = 'only the job fails; in Hypernova the worker ends, with all requests that it is rendering';

/** Requests that end the process of the reference. */
export const DEADLY = [
  { what: '`{"a":null}`', body: '{"a":null}', differs: FAILED },
  { what: '`[null]`', body: '[null]', differs: FAILED },
  { what: 'ends the process', body: body({ a: job('Exits') }), differs: 'Hostler answers in place of the worker, with the markup from which the browser renders' },
];

/** Requests through our bindings (`@hostler/render/react`) instead of Airbnb's. */
export const BINDINGS = [
  { what: 'markup of our React bindings', body: body({ a: job('Bindings.js', { name: 'Ada & co > "q"' }) }) },
  {
    what: 'the same, with `<` in the data', body: body({ a: job('Bindings.js') }),
    differs: '`<` is `\\u003c` in the data, so that `</script >` in it cannot end the script',
    alike: (text) => text.replace('\\\\u003c/b&gt;', '</b&gt;'),
  },
];

/** Requests of the clients: data by name, as the clients are called. */
export const PAGES = [
  { what: 'a component renders', jobs: { 'Greeting.js': DATA } },
  { what: 'several, some of which fail', jobs: { 'Greeting.js': DATA, Throws: {}, 'Missing.js': { a: 1 }, 'a/b c.js': { name: 'B' } } },
  { what: 'rejects with a string', jobs: { RejectsText: {} } },
  { what: 'gives empty HTML', jobs: { Empty: {} }, ...NO_HTML },
  { what: 'a batch over the limit', jobs: { Static: { name: 'x'.repeat(LIMIT) } } },
];

/** A page of islands that no server renders. */
export const AWAY = { 'Boom.js': { html: '</script ><b> & --> \u2028', n: 1 }, 'a/b c.js': { list: [] } };
