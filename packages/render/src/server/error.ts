// Makes of whatever was thrown the error object of the wire. Trusts nothing of it: not its getters, not that it is an error.

/** `type` is there only where the thrown value had one or was no error. */
export interface ErrorReport {
  type?: string;
  name: string;
  message: unknown;
  stack: string[];
}

/** What Hypernova means to say when a component gives nothing; there it arrives as `{}`. */
export const NO_HTML =
  'HTML was not returned to Hypernova, this is most likely an error within your application. Check your logs for any uncaught errors and/or rejections.';

/** A failure whose report is known already. */
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

/** For the log: the stack where there is one. */
export function lines(thrown: unknown): string {
  const { name, message, stack } = report(thrown);
  return stack[0] ? stack.join('\n    ') : `${name}: ${typeof message === 'string' ? message : JSON.stringify(message)}`;
}

/** By its shape, not its class: an error from a VM context or a DOMException is none of ours by class. */
function ofError(thrown: unknown): ErrorReport | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { type, name, message, stack } = thrown as Partial<Record<string, unknown>>;
  if (typeof message !== 'string' || (typeof stack !== 'string' && Object.prototype.toString.call(thrown) !== '[object Error]')) return undefined;
  return {
    ...(typeof type === 'string' && { type }),
    name: textOf(name ?? 'Error'),
    message,
    stack: typeof stack === 'string' ? stack.split('\n    ') : [''],
  };
}

/** Anything else goes out as the message, if JSON can say it. */
function ofValue(thrown: unknown): ErrorReport {
  const json = thrown === null ? undefined : JSON.stringify(thrown);
  return foreign(json === undefined ? textOf(thrown) : JSON.parse(json));
}

function foreign(message: unknown): ErrorReport {
  return { type: 'Error', name: 'Error', message, stack: [''] };
}

/** `String`, which throws for `{ "toString": 1 }`: a client may send that as a name. */
export function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
