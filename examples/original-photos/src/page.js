// The pages for people: one explains this service, with a form to try it, the other one shows a refusal. Knows no lookups; the script of the first page
// sends requests to the service.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';

const read = (name) => readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8');

/** Headers and body, made once, because they do not depend on the request. */
export function createPage({ standIn, flickrUrl, origins }) {
  const [style, script] = [read('page.css'), read('page.js')];
  const values = { style, script, notice: standIn ? notice(flickrUrl) : '', samples: standIn ? SAMPLES : '', sample: standIn ? '52551849781' : '' };
  const body = read('page.html').replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]);
  const pictures = origins.map(({ protocol, host }) => `${protocol}//${host.startsWith('.') ? '*' : ''}${host}`);
  const policy = `default-src 'none'; style-src '${hash(style)}'; script-src '${hash(script)}'; connect-src 'self'; img-src ${pictures.join(' ')}; `
    + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
  };
  return { headers, body };
}

/** A function that makes the page for a refusal. `requestId`: what a proxy calls the request, if there is a proxy. */
export function createRefusalPage() {
  const [style, template] = [read('page.css'), read('refusal.html')];
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src '${hash(style)}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
  };
  return ({ status, code, message }, requestId) => {
    const id = requestId ? `<dt>Request ID</dt><dd><code>${escape(requestId)}</code></dd>` : '';
    const values = { style, status, phrase: STATUS_CODES[status], message: escape(message), code, id };
    return { headers, body: template.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]) };
  };
}

const hash = (text) => `sha256-${createHash('sha256').update(text).digest('base64')}`;

const notice = (url) => `<p class="notice"><strong>This is a demonstration.</strong> It asks <code>${escape(url.origin)}</code> instead of Flickr: a stand-in,
to which every number is a photo, drawn by a program.</p>`;

const SAMPLES = `<p class="samples">Try
<a href="/view/52551849781">52551849781</a>, <a href="/view/8391270110">8391270110</a>, <a href="/view/2610">2610</a>; and what goes wrong:
<a href="/view/unknown">unknown</a>, <a href="/view/fault-private">fault-private</a>, <a href="/view/fault-busy">fault-busy</a>,
<a href="/view/fault-html">fault-html</a>, <a href="/view/fault-reset_once">fault-reset_once</a>, <a href="/view/fault-silent">fault-silent</a>,
<a href="/view/fault-small">fault-small</a>, <a href="/view/fault-video">fault-video</a>.</p>`;

const escape = (text) => text.replace(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
