// Writes answers with the headers that Express gives them. Knows no jobs.
import { createHash, hash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Bytes whose hash costs next to nothing. */
const SHORT = 1024;
const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function answerJson(response: ServerResponse, statusCode: number, text: string): void {
  const length = Buffer.byteLength(text);
  const tag = length <= SHORT ? weakTag(text, length) : uniqueTag(length);
  response.writeHead(statusCode, ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(length), 'ETag', tag]);
  response.end(text); // as text, which Node writes in one go with the head
}

export function answerEmpty(response: ServerResponse, statusCode: number): void {
  response.writeHead(statusCode, ['Content-Length', '0']);
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
  response.end(body); // Node leaves it out for HEAD
}

export function answerMethods(response: ServerResponse, methods: string): void {
  const body = Buffer.from(methods);
  const headers = { Allow: methods, 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': body.length, ETag: weakTag(body, body.length) };
  response.writeHead(200, headers).end(body);
}

export function pathOf({ url = '/' }: IncomingMessage): string {
  const origin = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(url)?.[0].length ?? 0; // a request may name the whole URL
  return /^[^?#]*/.exec(url.slice(origin))?.[0] || '/';
}

/** As the npm package `etag` makes it: the length and 27 letters of the SHA-1. */
function weakTag(body: string | Buffer, length: number): string {
  return `W/"${length.toString(16)}-${sha1(body).slice(0, 27)}"`;
}

/**
 * Of the same form, for long answers: each has ids and durations of its own and never equals another, so that it need not be read once
 * more for that; it would be a twentieth of a small island's work.
 */
function uniqueTag(length: number): string {
  return `W/"${length.toString(16)}-${randomUUID().replaceAll('-', '').slice(0, 27)}"`;
}

/** In one call where Node has it (20.12). */
function sha1(body: string | Buffer): string {
  return typeof hash === 'function' ? hash('sha1', body, 'base64') : createHash('sha1').update(body).digest('base64');
}

/** As the npm package `encodeurl` does: what may not stand in a URL, and a per cent sign that begins no escape. */
function encoded(path: string): string {
  return path.replace(/(?:[^\x21\x23-\x3b\x3d\x3f-\x5f\x61-\x7a\x7c\x7e]|%(?![\da-f]{2}))+/gi, encodeURIComponent);
}
