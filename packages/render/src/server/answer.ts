// Writes answers with the headers that Express gives them. Knows no jobs.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function answerJson(response: ServerResponse, statusCode: number, text: string): void {
  const length = Buffer.byteLength(text);
  const headers = ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(length), 'ETag', weakTag(text, length)];
  response.writeHead(statusCode, headers);
  response.end(text); // as a string it goes out in one write with the head
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
  const { length } = methods;
  const headers = { Allow: methods, 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': length, ETag: weakTag(methods, length) };
  response.writeHead(200, headers).end(methods);
}

export function pathOf({ url = '/' }: IncomingMessage): string {
  const origin = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(url)?.[0].length ?? 0; // a request may name the whole URL
  return /^[^?#]*/.exec(url.slice(origin))?.[0] || '/';
}

/** As the npm package `etag` makes it: the length and 27 letters of the SHA-1. */
function weakTag(text: string, length: number): string {
  return `W/"${length.toString(16)}-${createHash('sha1').update(text).digest('base64').slice(0, 27)}"`;
}

/** As the npm package `encodeurl` does: what may not stand in a URL, and a per cent sign that begins no escape. */
function encoded(path: string): string {
  return path.replace(/(?:[^\x21\x23-\x3b\x3d\x3f-\x5f\x61-\x7a\x7c\x7e]|%(?![\da-f]{2}))+/gi, encodeURIComponent);
}
