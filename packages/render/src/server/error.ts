// Turns any thrown value into the error object of the protocol. Does not trust the value: neither its getters nor that it
// is an error.

/** `type` exists only if the thrown value had one or was not an error. */
export interface ErrorReport {
  type?: string;
  name: string;
  message: unknown;
  stack: string[];
}

/** The message that Hypernova intends when a component returns nothing. There it arrives as `{}`. */
export const NO_HTML =
  'HTML was not returned to Hypernova, this is most likely an error within your application. Check your logs for any uncaught errors and/or rejections.';

/** A failure with a known report. */
export class Failure extends Error {
  readonly report: ErrorReport;

  constructor(report: ErrorReport & { message: string }) {
    super(report.message);
    this.report = report;
  }
}

export function noHtml(): Failure {
  return new Failure({ type: 'Error', name: 'Error', message: NO_HTML, stack: [''] });
}

export function notRegistered(name: unknown): ReferenceError {
  const error = new ReferenceError(`Component "${textOf(name)}" not registered`);
  const [first, ...frames] = (error.stack ?? '').split('\n    ');
  error.stack = [first, `at YOUR-COMPONENT-DID-NOT-REGISTER_${textOf(name)}:1:1`, ...frames].join('\n    ');
  return error;
}

export function report(thrown: unknown): ErrorReport {
  try {
    if (thrown instanceof Failure) return thrown.report;
    return ofError(thrown) ?? ofValue(thrown);
  } catch {
    return foreign('something was thrown that cannot be shown');
  }
}

/** The text for the log: the stack if there is one. */
export function lines(thrown: unknown): string {
  const { name, message, stack } = report(thrown);
  return stack[0] ? stack.join('\n    ') : `${name}: ${typeof message === 'string' ? message : JSON.stringify(message)}`;
}

/** Recognised by its kind or its properties, because the class of an error from a VM context or of a DOMException is not our Error. */
function ofError(thrown: unknown): ErrorReport | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { type, name, message, stack } = thrown as Partial<Record<string, unknown>>;
  const isError = Object.prototype.toString.call(thrown) === '[object Error]';
  if (!isError && (typeof message !== 'string' || typeof stack !== 'string')) return undefined;
  return {
    ...(typeof type === 'string' && { type }),
    name: textOf(name ?? 'Error'),
    message: typeof message === 'string' ? message : jsonOf(message),
    stack: typeof stack === 'string' ? stack.split('\n    ') : [''],
  };
}

/** The value as JSON expresses it, or its text. */
function jsonOf(value: unknown): unknown {
  try {
    const json = JSON.stringify(value);
    return json === undefined ? textOf(value) : JSON.parse(json);
  } catch {
    return textOf(value);
  }
}

/** Any other value becomes the message, if JSON can express it. */
function ofValue(thrown: unknown): ErrorReport {
  const json = thrown === null ? undefined : JSON.stringify(thrown);
  return foreign(json === undefined ? textOf(thrown) : JSON.parse(json));
}

function foreign(message: unknown): ErrorReport {
  return { type: 'Error', name: 'Error', message, stack: [''] };
}

/** Like `String`, which throws for `{ "toString": 1 }`: a client may send that as a name. */
export function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
