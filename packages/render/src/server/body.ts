// Reads a request's body like json() of body-parser: the same content types, limit and status codes. Knows no jobs.
import { constants } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';

/** `status` is for the response, the text is for the log. */
export class BadBody extends Error {
  constructor(readonly status: 400 | 413 | 415 | 500, message: string) {
    super(message);
  }
}

const INFLATE = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), deflate: promisify(inflate), br: promisify(brotliDecompress) };
const UTF16 = { 'utf-16': 'utf-16le', 'utf-16le': 'utf-16le', 'utf-16be': 'utf-16be' };

/** The parsed JSON, an object or an array. `{}` if there is no JSON. Throws `BadBody`. */
export async function readJson(request: IncomingMessage, limit: number): Promise<object> {
  const { type, charset } = contentType(request.headers['content-type']);
  if (type !== 'application/json' || !hasBody(request)) return {};
  // Its end has been told already, and would never come here.
  if (request.readableEnded) throw new BadBody(500, 'other code has read the body, and has not put it into request.body');
  const decode = decoder(charset);
  const inflateBody = inflater(request.headers['content-encoding']);
  if (!inflateBody) {
    if (Number(request.headers['content-length']) > limit) throw tooLarge(limit);
    return parse(decode(await collect(request, limit)));
  }
  // Compressed JSON may be longer than the JSON itself. The inflated size decides, with a limit for the compressed size.
  const packed = await collect(request, 2 * limit);
  return parse(decode(await inflateBody(packed, limit)));
}

/** The limit in bytes. '1mb' means the same as in body-parser, and so does `Infinity`. */
export function parseLimit(limit: number | string): number {
  if (typeof limit === 'number' && limit >= 0) return limit;
  const found = /^\s*(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)?\s*$/i.exec(String(limit));
  if (!found) throw new TypeError(`bodyParser.limit must be a number of bytes or a text such as '1mb', not ${JSON.stringify(limit)}`);
  const power = ['b', 'kb', 'mb', 'gb'].indexOf((found[2] ?? 'b').toLowerCase());
  return Math.floor(Number(found[1]) * 1024 ** power);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0;
}

function contentType(header = ''): { type: string; charset: string } {
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  return { type: type.trim(), charset: parameters.map(charsetIn).find(Boolean) ?? 'utf-8' };
}

/** Trims first: an expression that skips the spaces itself takes seconds for thousands of them. */
function charsetIn(parameter: string): string | undefined {
  const at = parameter.indexOf('=');
  if (at === -1 || parameter.slice(0, at).trim() !== 'charset') return undefined;
  return /^"?([^"\s]*)"?$/.exec(parameter.slice(at + 1).trim())?.[1];
}

function decoder(charset: string): (body: Buffer) => string {
  if (charset === 'utf-8' || charset === 'utf8') return (body) => body.toString();
  if (!Object.hasOwn(UTF16, charset)) throw new BadBody(415, `unsupported charset "${charset}"`);
  const decoder = new TextDecoder(UTF16[charset as keyof typeof UTF16]);
  return (body) => decoder.decode(body);
}

function inflater(header = ''): ((body: Buffer, limit: number) => Promise<Buffer>) | undefined {
  const encoding = header.trim().toLowerCase();
  // An empty field lists no coding (RFC 9110 section 5.6.1).
  if (encoding === '' || encoding === 'identity') return undefined;
  if (!Object.hasOwn(INFLATE, encoding)) throw new BadBody(415, `unsupported content encoding "${encoding}"`);
  return async (body, limit) => {
    try {
      return await INFLATE[encoding as keyof typeof INFLATE](body, { maxOutputLength: Math.min(limit, constants.MAX_LENGTH) });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
      throw new BadBody(400, `a body that is not ${encoding}: ${(error as Error).message}`);
    }
  };
}

/** Bytes over the limit are not kept, and the rest of the body is not awaited: Node discards it after the response. */
function collect(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) return void chunks.push(chunk);
      chunks.length = 0;
      reject(tooLarge(limit));
    });
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on('close', () => {
      if (!request.complete) reject(new BadBody(400, 'the client left while it sent the body'));
    });
  });
}

function parse(text: string): object {
  // A byte order mark is not part of JSON. body-parser removes it too.
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (json.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new BadBody(400, (error as Error).message);
  }
  if (typeof value !== 'object' || value === null) throw new BadBody(400, 'the body must be an object or an array');
  return value;
}

function tooLarge(limit: number): BadBody {
  return new BadBody(413, `the body is larger than ${limit} bytes`);
}
