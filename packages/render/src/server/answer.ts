// Writes responses with the headers of Express. Knows no jobs. Headers are objects and never flat arrays, of which middleware
// such as compression before 1.8.1 makes headers named `C` and `a`.
import { createHash, hash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Up to this many bytes, a hash costs nearly nothing. */
const SHORT = 1024;
const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function answerJson(response: ServerResponse, statusCode: number, text: string): void {
  const length = Buffer.byteLength(text);
  const tag = length <= SHORT ? weakTag(text, length) : uniqueTag(length);
  response.writeHead(statusCode, { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': length, ETag: tag });
  response.end(text); // as text, which Node writes together with the head
}

export function answerEmpty(response: ServerResponse, statusCode: number): void {
  response.writeHead(statusCode, { 'Content-Length': 0 });
  response.end();
}

export function answerNotFound(request: IncomingMessage, response: ServerResponse): void {
  const what = `Cannot ${request.method} ${encoded(pathOf(request))}`.replace(/[&<>"']/g, (each) => ESCAPES[each] ?? each);
  const body = Buffer.from(
    `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n</head>\n<body>\n<pre>${what}</pre>\n</body>\n</html>\n`,
  );
  response.writeHead(404, {
    'Content-Security-Policy': "default-src 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
  });
  response.end(body); // Node omits the body for HEAD
}

export function answerMethods(response: ServerResponse, methods: string): void {
  const body = Buffer.from(methods);
  const headers = { Allow: methods, 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': body.length, ETag: weakTag(body, body.length) };
  response.writeHead(200, headers).end(body);
}

export function pathOf({ url = '/' }: IncomingMessage): string {
  const origin = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(url)?.[0].length ?? 0; // a request may have the whole URL
  return /^[^?#]*/.exec(url.slice(origin))?.[0] || '/';
}

/** The same tag as the npm package `etag`: the length and 27 characters of the SHA-1. */
function weakTag(body: string | Buffer, length: number): string {
  return `W/"${length.toString(16)}-${sha1(body).slice(0, 27)}"`;
}

/**
 * A tag of the same form for long responses. Each long response has its own ids and durations and never equals another, so a
 * hash of its body would be useless. The hash would be a twentieth of the work for a small island.
 */
function uniqueTag(length: number): string {
  return `W/"${length.toString(16)}-${randomUUID().replaceAll('-', '').slice(0, 27)}"`;
}

/** Uses the one-call function if Node has it (20.12). */
function sha1(body: string | Buffer): string {
  return typeof hash === 'function' ? hash('sha1', body, 'base64') : createHash('sha1').update(body).digest('base64');
}

/** The same encoding as the npm package `encodeurl`: encodes characters that are not allowed in a URL, and a per cent sign that begins no escape. */
function encoded(path: string): string {
  return path.replace(/(?:[^\x21\x23-\x3b\x3d\x3f-\x5f\x61-\x7a\x7c\x7e]|%(?![\da-f]{2}))+/gi, encodeURIComponent);
}
