// The preload inside every worker. It replaces the app's own listen() by the socket that Hostler made for it, and implements
// protocol/README.md. It knows nothing of pools, requests or other workers. It is one file without dependencies, because Hostler's
// binary contains it. Every Node process between Hostler and the app loads it too, so it does little at load time.
'use strict';

const CMD = 'NODE_HOSTLER'; // Node delivers messages with NODE_ as 'internalMessage', so the app never sees them
const END_GRACE_MS = 5_000;
const GC_BOUNDS_MS = [10, 100, 1_000, 10_000]; // OpenTelemetry's for v8js.gc.duration
const BACKLOG = 65_535; // as long as the kernel allows: a full one refuses a connection of Hostler at once
const NEVER_MS = 1_000_000_000; // 11 days: longer than any request, and Node can add to it without an overflow
const MOST_PORTS_TOLD = 16; // an app may open a server for each of its clients, such as FTP does
const SPENT = ['HOSTLER_LISTEN_FD', 'HOSTLER_LISTEN_FD_PATH', 'HOSTLER_LISTEN_INODE', 'HOSTLER_LISTEN_PATH', 'HOSTLER_CONTROL_PATH', 'HOSTLER_APP_PORT', 'HOSTLER_GIVEN_PORT', 'HOSTLER_ANCESTORS'];
// How sure it is that a listen is the app's. A plain TCP server may be for MQTT, and port 0 is for those that the app tells it.
const [WEAK, GUESS, SURE] = [1, 2, 3];

const SECRET_INSPECTOR = '--inspect-publish-uid=stderr'; // spawn.rs sets it directly before our --require

const fs = require('fs');
const { env } = process;
const { setImmediate, setTimeout } = globalThis; // an app may put others in their place, such as fake timers
if (!env.HOSTLER_LISTEN_PATH && withoutPreload(env.NODE_OPTIONS ?? '') !== (env.NODE_OPTIONS ?? '')) quietly(inheritFromAbove);
// Read now, because a claim removes them from the environment, and the process may claim again.
const { HOSTLER_LISTEN_FD_PATH: fdPath, HOSTLER_LISTEN_PATH: claimPath, HOSTLER_CONTROL_PATH: controlPath, HOSTLER_APP_PORT: poolPort, HOSTLER_GIVEN_PORT: givenPort } = env;
const relayMark = `${claimPath}.relay`; // shows the app that the program that has started it passes on the messages of Hostler
const isInWorker = Boolean(env.HOSTLER_LISTEN_FD || claimPath);
let listenFd = isInWorker ? inheritedSocket() : null; // null in a grandchild, because npm passes on only the environment; and once it is used
const ancestors = isInWorker ? readAncestors() : []; // the Node processes between Hostler and this one: { pid, isTool }
const channel = { send: null }; // sends to Hostler: over Node's IPC channel, or later over the control socket
let claim = null; // the app's listen, once it was made: { server, asked, rank, nth, shown, path, where, siblings, isHeld, isTold, handle, relay }
let hasYielded = false; // another process of this worker is the app
let takenOut = null; // what a claim has removed from the environment
let tellListening = null; // tells Hostler where the app listens, if that is still to be told
let tellHearing = null; // tells Hostler that the app listens for messages, once this process is known to be the app
let listenOnTcp = null; // Node's own listen()
let reachesItself = false; // connect() is patched

try {
  if (isInWorker) patchListen(require('net').Server.prototype);
  const onlyStarts = isInWorker && isTool();
  if (listenFd !== null && process.send) speakOverIpc(onlyStarts);
  if (isInWorker) env.HOSTLER_ANCESTORS = [...ancestors, { pid: process.pid, isTool: onlyStarts }].map(({ pid, isTool }) => `${pid}${isTool ? 't' : ''}`).join(' ');
} catch (error) {
  process.emitWarning(`not preloaded: ${error.message}`, 'HostlerWarning');
}

/** Turborepo passes NODE_OPTIONS on, and none of our variables. A process above has them, and on Linux others can read them. */
function inheritFromAbove() {
  for (let pid = process.ppid; pid > 1 && !env.HOSTLER_LISTEN_PATH; ) {
    const variables = fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').map((variable) => variable.split('='));
    for (const [name, ...value] of variables) if (SPENT.includes(name)) env[name] = value.join('=');
    pid = Number(fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')[1]);
  }
}

/** The descriptor that Hostler passed, if it is really that socket: a grandchild may have another descriptor with this number. */
function inheritedSocket() {
  try {
    // As bigint. After fs.statSync with plain numbers on a socket, Node's realpath reuses that result and no longer follows
    // links. Then an app that is started as node_modules/.bin/next would not find its own modules (seen in Node 20).
    const stat = fs.fstatSync(Number(env.HOSTLER_LISTEN_FD), { bigint: true });
    return stat.isSocket() && String(stat.ino) === env.HOSTLER_LISTEN_INODE ? Number(env.HOSTLER_LISTEN_FD) : null;
  } catch {
    return null;
  }
}

/** A thread and a process that has replaced itself find themselves in the list. */
function readAncestors() {
  const words = (env.HOSTLER_ANCESTORS ?? '').split(' ').filter(Boolean);
  return words.map((word) => ({ pid: parseInt(word, 10), isTool: word.endsWith('t') })).filter(({ pid }) => pid !== process.pid);
}

/** Whether this process only starts the app: npm, npx, tsx, nodemon and the like, or `node --watch`. An own script may be the app itself. */
function isTool() {
  if (process.execArgv.some((option) => option.startsWith('--watch'))) return true;
  const script = process.argv[1];
  if (!script) return false;
  let [file, isFile] = [script, false];
  try {
    file = fs.realpathSync(script);
    isFile = fs.statSync(file, { bigint: true }).isFile(); // an app may be in a folder that is named after npm
  } catch {
    // Node will say that there is no such file.
  }
  const isAmongTools = /\/(?:node_modules|corepack)\/|^\/usr\/(?:share|lib)\/nodejs\//.test(file); // the last are Debian's
  return isAmongTools || (isFile && /\/(?:npm|npx|pnpm|pnpx|yarn)(?:-(?:cli|berry|\d[^/]*))?(?:\.[cm]?js)?$/.test(file));
}

// === Listening ===

function patchListen(prototype) {
  const original = prototype.listen;
  listenOnTcp = original;
  prototype.listen = function listen(...args) {
    let target = null;
    try {
      target = redirect(this, args);
    } catch (error) {
      // The app's own listen still works. A half-made claim would stop its next listen as well.
      if (claim?.isHeld === null) letGo(claim);
      warn(`Hostler cannot use a server of the app, which listens without it: ${String(error?.stack ?? error).split('\n', 2).join('')}`, true);
    }
    if (target === null) return original.apply(this, args);
    const itself = original.call(this, target, BACKLOG, args[args.length - 1]);
    follow(this);
    return itself;
  };
}

/** The place where a server listens instead of its own. Null leaves the call as it is. */
function redirect(server, args) {
  if (server.listening) return null;
  const before = reporters.get(server); // a listen that has failed has left it behind
  if (before) server.removeListener('listening', before);
  const asked = tcpRequest(args);
  if (asked === null) return tellOwnPath(server, args);

  // A cluster worker asks its primary to listen, and the primary's listen() is handled here. In the worker, only the visible
  // properties change. The primary listens with a plain server, whatever that of the worker speaks: a file tells it.
  const file = `${claimPath}.${asked.port}.speaks`;
  const speaks = incompatibility(server) ?? (isClusterPrimary() ? quietly(() => fs.readFileSync(file, 'utf8')) : null);
  if (require('cluster').isWorker) {
    if (speaks === null) dress(server, shownAddress(asked));
    else quietly(() => fs.writeFileSync(file, speaks, { mode: 0o600 }));
    return null;
  }
  if (speaks === null) return claimListen(server, asked);
  warn(`the app listens on port ${asked.port} with ${speaks}; Hostler does not use this server: ${INSTEAD[speaks]}`, claim === null);
  return null;
}

/** Parses the arguments of listen() like Node. Null if they are not a well-formed TCP listen. */
function tcpRequest(args) {
  const [first, second] = args;
  let asked;
  if (typeof first === 'object' && first !== null) {
    const usesHandle = first._handle || first.handle || (typeof first.fd === 'number' && first.fd >= 0);
    if (usesHandle || !('port' in first)) return null;
    const { port, host, signal, backlog, ipv6Only, reusePort } = first; // the last three for its own TCP port, if it gets that
    asked = { port, host, signal, backlog, ipv6Only, reusePort };
  } else {
    asked = { port: typeof first === 'function' ? undefined : first, host: typeof second === 'string' ? second : undefined };
  }
  const { port } = asked;
  if (port === undefined || port === null) return { ...asked, port: 0 };
  if (typeof port !== 'number' && (typeof port !== 'string' || port.trim() === '')) return null;
  asked.port = Number(port); // NaN: the string is a path
  return Number.isInteger(asked.port) && asked.port >= 0 && asked.port <= 65_535 ? asked : null;
}

/** The protocol of the server, if it is not plain HTTP/1.1. Checked by properties, because instanceof would load tls and http2 in every process. */
function incompatibility(server) {
  if (typeof server.setSecureContext === 'function') return 'TLS';
  return typeof server.updateSettings === 'function' ? 'HTTP/2 only' : null;
}

const INSTEAD = {
  TLS: 'Hostler itself speaks TLS to clients ([tls]), so let the app listen with a plain HTTP server',
  'HTTP/2 only': 'let the app listen with http.createServer; Hostler itself speaks HTTP/2 to clients',
};

/** Makes this listen the app's, unless its port is another one, or another listen is more likely the app's. */
function claimListen(server, asked) {
  const held = claim?.isHeld() ? claim : null;
  if (held?.path && asked.port !== 0 && [held.asked.port, held.shown.port].includes(asked.port)) return listenBeside(server, asked, held);
  const { port, why, isGiven } = appPort();
  const rank = rankOf(server, asked, port);
  if (held && rank <= held.rank) {
    return tellOwnPort(server, `Hostler uses its server on port ${held.shown.port}`, held.rank === SURE ? note : warn);
  }
  if (port !== null && asked.port !== port && !isGiven) return tellOwnPort(server, why);
  // The first listen of a thread says little, because the main thread may still follow.
  if (asked.port !== port && isInThread()) return tellOwnPort(server, 'it listens in a worker thread');
  const taken = takeClaim(rank);
  if (taken === null) return null;
  if (taken.holder) return tellOwnPort(server, `${taken.holder} of this worker has listened before`);

  const { nth } = taken;
  const path = nth === 1 ? claimPath : `${claimPath}.${nth}`;
  // A shell that has started this process has the descriptor, too: its socket would stay open when the app closes it.
  const isShared = quietly(() => fs.readlinkSync(`/proc/${process.ppid}/fd/${listenFd}`)) === `socket:[${env.HOSTLER_LISTEN_INODE}]`;
  const where = nth === 1 && listenFd !== null && !(isShared && readClaim(1)?.pid === process.pid) ? { fd: listenFd } : { path };
  listenFd = null; // it is closed with the server
  claim = { server, asked, rank, nth, shown: shownAddress(asked), path, where, siblings: 0, isHeld: null, isTold: false, handle: null, relay: null };
  if (held) {
    const whose = rank === SURE ? `on PORT (${asked.port})` : `on port ${asked.port}`;
    giveBack(held, (relay) => tellOwnPort(relay, `Hostler uses its server ${whose}`, note));
  }
  if (!channel.send) speakOverControl(controlPath);
  tellHearing?.();
  tellHearing = null;
  freeInspectorPort();
  if (!isClusterPrimary()) quietly(cleanEnvironment); // an app may have put an object there that allows no change
  if (rank === WEAK || asked.port === Number(givenPort)) reachItself(require('net').Socket.prototype);
  return hold(server, asked);
}

function rankOf(server, { port }, appPort) {
  if (port === appPort) return SURE;
  // The primary of a cluster listens with a plain server for its workers.
  const speaksHttp = 'keepAliveTimeout' in server || isClusterPrimary();
  return speaksHttp && port !== 0 ? GUESS : WEAK;
}

/**
 * The port of the app's listen: that of the pool, or PORT. The match is strict, because a wrong guess would make a metrics or
 * debug server public that listens first. PORT is read when the app listens, after the app has read its own .env file.
 * A PORT that Hostler itself has set is weaker: many apps do not read it. Then the first listen counts, until one on PORT comes.
 */
function appPort() {
  // Not `env`: an app may have put another object in the place of process.env.
  for (const [value, whose] of [[poolPort, "the pool's port"], [process.env.PORT, 'the variable PORT']]) {
    const port = Number(value);
    if (Number.isInteger(port) && port > 0) {
      return { port, why: `${whose} is ${port}`, isGiven: value !== poolPort && value === givenPort };
    }
  }
  return { port: null, why: null, isGiven: false };
}

const reporters = new WeakMap(); // by server
let portsTold = 0;

/** The last report says that it is the last one. */
const withEnd = (text) => (++portsTold < MOST_PORTS_TOLD ? text : `${text} Hostler reports no further ports of this process.`);

/** Reports a server that listens on a port of its own, when it does. Leaves its listen as it is. */
function tellOwnPort(server, why, tellAs = warn) {
  const reporter = () => {
    const { address, port } = server.address() ?? {};
    if (port === undefined) return; // not TCP
    const isOpen = address === '::' || address === '0.0.0.0';
    const exposed = isOpen ? ` Other machines can reach it: let it listen on 127.0.0.1, or block port ${port} in the firewall.` : '';
    const text = `the app listens on ${isOpen ? '*' : address}:${port} directly, not through Hostler, because ${why}.${exposed} ` +
      `If this is the app's port, set it: --port ${port}, or port = ${port} of the pool.`;
    const handle = server._handle;
    // A port probe closes at once, and is no port of the app.
    setImmediate(() => handle.fd >= 0 && portsTold < MOST_PORTS_TOLD && (isOpen ? warn : tellAs)(withEnd(text), claim === null && !hasYielded));
  };
  reporters.set(server, reporter);
  server.prependOnceListener('listening', reporter);
  return null;
}

/** Notes that the app's HTTP server listens on a Unix socket, unless the app has another server. Leaves its listen as it is. */
function tellOwnPath(server, [first]) {
  const path = typeof first === 'object' ? first?.path : first;
  const speaksHttp = 'keepAliveTimeout' in server || typeof server.updateSettings === 'function';
  if (claim !== null || !speaksHttp || typeof path !== 'string') return null;
  const text = `the app listens on the path ${path}; let it listen on a port`;
  (channel.send ? note : warn)(text, true);
  return null;
}

/**
 * SIGUSR1 opens Node's inspector, through which Hostler asks a hung worker where it hangs. This lets it use any free port, instead of 9229 for the first of
 * several workers. It is not set in NODE_OPTIONS, because child processes inherit that, and a later --inspect there would lose its own port.
 */
function freeInspectorPort() {
  const options = `${process.execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`.replace(SECRET_INSPECTOR, '');
  if (/--(?:inspect|debug[-_]port)/.test(options)) return; // the operator has chosen the port
  quietly(() => (process.debugPort = 0)); // without it, Hostler cannot get the call stack if another process uses the port
}

/**
 * Makes this process the holder of the worker's next claim. Claims are numbered, each is a file, and the last one counts. Returns
 * the number, or the process that holds the last claim. Null: this process can claim nothing.
 */
function takeClaim(rank) {
  let last = null;
  for (let nth = 1; claimPath; nth += 1) {
    const found = readClaim(nth);
    if (found === null && last !== null && !isBetter(rank, last)) return { holder: last.pid === null ? 'another process' : `process ${last.pid}` };
    if (found === null && writeClaim(nth, `${process.pid} ${rank} ${ancestors.map(({ pid }) => pid).join(' ')}`, fs.linkSync)) return { nth };
    last = found ?? readClaim(nth); // another process may have been faster
    if (last === null) break;
  }
  return listenFd === null ? null : { nth: 1 };
}

/** Whether a listen of this rank takes the place of a claim. The process that has started another one knows more of the app. */
function isBetter(rank, { nth, isFree, pid, rank: before, above }) {
  if (isFree || pid === null) return isFree; // an empty one is being written
  if (pid === process.pid) return rank > before || claim?.nth === nth; // of another thread; or of this one, and closed
  return rank > before || (rank === before && above.includes(process.pid)) || !isAlive(pid);
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

function readClaim(nth) {
  try {
    const words = fs.readFileSync(`${claimPath}.${nth}.claim`, 'utf8').split(' ').filter(Boolean);
    const [pid = null, rank, ...above] = words.map(Number);
    return { nth, isFree: words[0] === '-', pid, rank, above };
  } catch {
    return null;
  }
}

/** `publish` gives the file its name when it is complete, so no process reads half of it: fs.linkSync fails if there is one, fs.renameSync replaces it. */
function writeClaim(nth, text, publish) {
  const made = `${claimPath}.made-${process.pid}-${require('worker_threads').threadId}`;
  try {
    fs.writeFileSync(made, text, { mode: 0o600 });
    try {
      publish(made, `${claimPath}.${nth}.claim`);
    } finally {
      fs.rmSync(made, { force: true });
    }
    return true;
  } catch ({ code }) {
    return ['ENOSPC', 'EDQUOT'].includes(code); // a full disk has room for a socket; Node's permission model (--permission) forbids all of it
  }
}

/** One app on several addresses (Fastify listens on each address of localhost). The first server serves all requests; this one gets none. */
function listenBeside(server, asked, held) {
  held.siblings += 1;
  dress(server, shownAddress(asked));
  return { path: `${held.path}-${held.siblings}`, signal: asked.signal };
}

/** What Node reads from a server for each connection that it accepts. */
const ACCEPTING = ['allowHalfOpen', 'pauseOnConnect', 'noDelay', 'keepAlive', 'keepAliveInitialDelay', 'highWaterMark', 'blockList', 'maxConnections', 'dropMaxConnection'];

/** The server is not the app's after all, but for example for metrics. It gets the TCP port that it asked for. */
function giveBack(held, tellOf) {
  const { server, asked, shown } = held;
  const relay = require('net').createServer((socket) => server.emit('connection', socket)).unref();
  for (const name of ACCEPTING) Object.defineProperty(relay, name, { get: () => server[name] });
  relay.on('drop', (connection) => server.emit('drop', connection));
  relay.on('error', ({ code, message }) => {
    const remedy = code === 'EADDRINUSE' ? '. If another worker uses it, set workers = 1, or let each worker listen on the port + NODE_APP_INSTANCE' : '';
    warn(`the app's other server cannot listen on port ${shown.port}: ${message}${remedy}`);
  });
  tellOf(relay);
  relay.once('listening', () => {
    // A cluster has taken the handle out of the server, and hands what it accepts to its workers.
    if (server._handle === null) relay._handle.onconnection = held.handle.onconnection;
  });
  held.relay = relay;
  listenOnTcp.call(relay, { ...asked, port: shown.port }); // the app may have read its address already
  giveLimitsBack(server);
}

/** Hostler uses another process or thread of this worker, which has made a better claim. */
function yieldTo({ nth, pid, port }) {
  const held = claim;
  if (held === null || held.nth >= nth) return;
  claim = null;
  hasYielded = true;
  if (!held.isHeld()) return;
  if (pid === process.pid) giveBack(held, (relay) => tellOwnPort(relay, `Hostler uses its server on port ${port}`, note));
  else giveBack(held, (relay) => relay.once('listening', () => warn(mistaken(held, relay.address(), { pid, port }))));
}

/** For the operator: this process has looked like the app, and another one is it. */
function mistaken({ shown }, { address }, app) {
  const isOpen = address === '::' || address === '0.0.0.0';
  const { port } = shown;
  const exposed = isOpen ? ` Other machines can reach it: let it listen on 127.0.0.1, or block port ${port} in the firewall.` : '';
  const how = String(app.port) === givenPort ? '--port, or port of the pool' : `--port ${app.port}, or port = ${app.port} of the pool`;
  return `process ${process.pid} listened on port ${port} before process ${app.pid} listened on port ${app.port}, so it looked like the app. ` +
    `Hostler now uses process ${app.pid}; process ${process.pid} listens on ${isOpen ? '*' : address}:${port} directly.${exposed} ` +
    `To rule this out, set the app's port: ${how}.`;
}

/** Lets the server listen on Hostler's socket. Of the app's options only the signal is passed on: the others are for TCP, or for its backlog. */
function hold(server, asked) {
  const held = claim;
  dress(server, held.shown);
  held.isHeld = () => server.listening;
  const { errorMonitor } = require('events');
  const failed = () => {
    if (!server.listening) letGo(held);
  };
  server.once(errorMonitor, failed);
  server.prependOnceListener('listening', () => {
    server.removeListener(errorMonitor, failed);
    if (claim !== held) return; // a better claim has followed; or the app closed the server at once, and now it listens again
    tellListening = () => {
      tellListening = null;
      if (claim === held) tellOf(held);
    };
    // A better claim may follow at once, and a port probe closes at once. Then Hostler need not know this one.
    setImmediate(() => tellListening?.());
  });
  return { ...held.where, signal: asked.signal };
}

/** Directly after listen(), and not at 'listening': a port probe may close its server before, and Node then emits no 'listening'. */
function follow(server) {
  const held = claim;
  const handle = server._handle; // not the server itself, because a cluster primary takes the handle out of it
  if (held?.server !== server || !handle) return; // it listens beside the app, or it cannot listen, and 'error' follows
  held.isHeld = () => handle.fd >= 0;
  held.handle = handle;
  if (held.where.path) quietly(() => fs.chmodSync(held.where.path, 0o600)); // its folder is private anyway
  letGoWhenClosed(server, handle, held);
}

function tellOf(held) {
  held.isTold = true;
  tell({
    act: 'listening',
    via: held.where.path ? 'path' : 'fd',
    ...(held.nth > 1 && { nth: held.nth }),
    pid: process.pid,
    port: held.asked.port,
    // With the kernel's number of the thread, by which Hostler observes its event loop. Only Linux shows it.
    ...(isInThread() && { thread: true, tid: quietly(() => Number(fs.readlinkSync('/proc/thread-self').split('/')[2])) }),
    // The process that has started this one may itself be the app, and not listen yet.
    ...(held.rank !== SURE && ancestors.some(({ isTool }) => !isTool) && { helper: true }),
  });
}

/**
 * Notices that the app closes its server. The event 'close' would be too late, because it waits for the last connection. A
 * cluster primary, which has taken the handle out of the server, closes it when its last worker dies, and forks again.
 */
function letGoWhenClosed(server, handle, held) {
  const { close } = handle;
  handle.close = function (...args) {
    held.relay?.close();
    if (server._handle === handle) letGo(held);
    return close.apply(this, args);
  };
}

/** The server is closed, or could not listen. The next listen may be the app's, on any port and in any process. */
function letGo(held) {
  if (claim !== held) return;
  if (held.isTold) tell({ act: 'closed', pid: process.pid });
  else quietly(putBackEnvironment); // it was only a port probe, perhaps of a process that starts the app
  writeClaim(held.nth, '-', fs.renameSync); // it is free
  claim = null;
}

const isInThread = () => !require('worker_threads').isMainThread;

/** A cluster primary forks again when a worker has died, and the new worker needs the preload. The claim file keeps the others out. */
function isClusterPrimary() {
  return Object.keys(require('cluster').workers ?? {}).length > 0;
}

/** From here on, child processes of this process run without the preload, unless it becomes the primary of a cluster. */
function cleanEnvironment() {
  if (takenOut !== null) return;
  const own = thawedEnvironment();
  takenOut = Object.fromEntries([...SPENT, 'NODE_OPTIONS'].filter((name) => own[name] !== undefined).map((name) => [name, own[name]]));
  // Child processes of Node 26 get the object of the start, also if the app has put another one in its place.
  for (const each of [env, own]) {
    const options = withoutPreload(each.NODE_OPTIONS ?? '');
    for (const name of [...SPENT, 'NODE_OPTIONS']) delete each[name];
    if (options !== '') each.NODE_OPTIONS = options;
  }
  const cluster = require('cluster');
  const { fork } = cluster;
  cluster.fork = function (...args) {
    quietly(putBackEnvironment);
    return fork.apply(this, args);
  };
}

function putBackEnvironment() {
  for (const each of [thawedEnvironment(), env]) Object.assign(each, takenOut);
  takenOut = null;
}

/** What child processes inherit. Perhaps not the object of the start: some apps put a frozen copy in its place. */
const thawedEnvironment = () => (Object.isSealed(process.env) ? (process.env = { ...process.env }) : process.env);

/** Removes our own --require and the option before it from NODE_OPTIONS, and leaves the rest as it is, quotes included. */
function withoutPreload(options) {
  const words = options.match(/(?:"(?:\\.|[^"\\])*"|[^ "])+/g) ?? [];
  const kept = [];
  for (let i = 0; i < words.length; i += 1) {
    const isOurs = (words[i] === '--require' || words[i] === '-r') && isThisFile(words[i + 1]);
    if (!isOurs) {
      kept.push(words[i]);
      continue;
    }
    i += 1;
    if (kept.at(-1) === SECRET_INSPECTOR) kept.pop();
  }
  return kept.join(' ');
}

function isThisFile(word = '') {
  const file = word.replace(/"((?:\\.|[^"\\])*)"/g, (_, quoted) => quoted.replace(/\\(.)/g, '$1'));
  return file === __filename || quietly(() => fs.realpathSync(file)) === __filename;
}

// === Connections of the app to itself ===

const OWN_HOSTS = [undefined, null, '', 'localhost', '127.0.0.1', '::1', '0.0.0.0', '::'];

/**
 * No TCP port is open, so a connection of this process to its own PORT goes to its socket. Next.js sends a Server Action to itself in this way. Only to the
 * PORT that Hostler has chosen, and to what is hardly the app, such as a tunnel to its database: elsewhere there may be another program, or Hostler itself.
 */
function reachItself(prototype) {
  if (reachesItself) return;
  reachesItself = true;
  const original = prototype.connect;
  prototype.connect = function connect(...args) {
    const given = Array.isArray(args[0]) ? args[0] : args; // Node's own functions pass one list of arguments
    const [first, second] = given;
    const options = typeof first === 'object' ? first : { port: first, host: typeof second === 'string' ? second : undefined };
    if (!isItself(this, options ?? {})) return original.apply(this, args);
    return original.call(this, { ...options, path: claim.where.path ?? fdPath }, given[given.length - 1]);
  };
}

/** A socket with a handle is TLS, which the app does not speak. */
function isItself(socket, { port, host, path }) {
  if (path || socket._handle || !claim?.isHeld?.() || !(claim.where.path ?? fdPath)) return false;
  const { asked, shown, rank } = claim;
  return String(port) === String(shown.port) && (rank === WEAK || asked.port === Number(givenPort)) && (OWN_HOSTS.includes(host) || host === asked.host);
}

// === What the app sees ===

const shownBy = new WeakMap();
const limitsBefore = new WeakMap();
const givenBack = new WeakSet(); // the servers that got their own TCP port after all
let connections = 0; // how many have got a port

/** An address that the app can print and compare. For port 0 it is a free number, because an app may look for one in this way. */
function shownAddress({ port, host }) {
  const isV6 = require('net').isIPv6(host ?? '');
  return { address: isV6 ? '::1' : '127.0.0.1', family: isV6 ? 'IPv6' : 'IPv4', port: port || freePort() };
}

/** A number that is free now. Without a host, listen() binds at once, and the port is closed before a client is accepted. */
function freePort() {
  const other = 49_152 + (process.pid % 16_384);
  if (require('cluster').isWorker) return other;
  const server = require('net').createServer().on('error', () => {});
  listenOnTcp.call(server, { port: 0 });
  const { port = other } = server.address() ?? {};
  server.close();
  return port;
}

/** A Unix socket has no addresses, but apps print, trust and dereference them. So the server and its sockets get some. */
function dress(server, shown) {
  const isNew = !shownBy.has(server);
  shownBy.set(server, shown);
  givenBack.delete(server);
  if (!isNew) return;

  const { address } = server; // a path, or null with a descriptor. An object only for TCP (the second port of a cluster)
  server.address = function () {
    const real = address.call(this);
    return this.listening && (real === null || typeof real === 'string') ? { ...shownBy.get(this) } : real;
  };
  const isUnix = () => server.listening && typeof (address.call(server) ?? '') === 'string';

  server.prependListener('listening', () => {
    if (!('keepAliveTimeout' in server)) return;
    // It may have been given back already, in the turn of its listen(). Or it was the app's before, and now it opens a TCP port.
    if (isUnix() && !givenBack.has(server)) leaveLimitsToHostler(server);
    else giveLimitsBack(server);
  });
  server.prependListener('connection', (socket) => {
    if (socket.remoteAddress === undefined && isUnix()) dressSocket(socket, shownBy.get(server));
    else if (socket._handle?.getpeername && require('cluster').isWorker) giveLimitsBack(server); // its primary has got the TCP port back
  });
}

/**
 * Own properties instead of getters, because they must stay valid after the socket is closed (a log line at the end reads req.ip). Each connection
 * has another port: server-destroy and many apps tell connections apart by address and port.
 */
function dressSocket(socket, shown) {
  const values = {
    remoteAddress: '127.0.0.1', remotePort: 1024 + (connections++ % 64_512), remoteFamily: 'IPv4',
    localAddress: shown.address, localPort: shown.port, localFamily: shown.family,
    address: () => ({ ...shown }),
    resetAndDestroy: () => socket.destroy(), // only TCP has a reset, and Node's own throws
  };
  for (const name of Object.keys(values)) {
    Object.defineProperty(socket, name, { value: values[name], configurable: true, enumerable: true, writable: true });
  }
}

/**
 * Hostler manages idle connections: if Node closed one while a request is on its way, that request would be lost.
 * keepAliveTimeout is very large and not 0, because only then Node removes, between requests, a timeout that the app has set on
 * server, req or res. Beyond maxConnections Node would accept a connection and close it at once, also with a request in it.
 */
function leaveLimitsToHostler(server) {
  if (limitsBefore.has(server)) return;
  const fixed = { keepAliveTimeout: NEVER_MS, headersTimeout: 0, requestTimeout: 0, maxRequestsPerSocket: 0, maxConnections: undefined };
  const before = {};
  for (const name of Object.keys(fixed)) {
    const set = (value) => {
      before[name] = value; // for a TCP port that it may get
      if (name === 'maxConnections' && value > 0) note(`server.${name} = ${value} of the app has no effect; max_concurrency limits its requests`);
    };
    set(server[name]);
    Object.defineProperty(server, name, { get: () => fixed[name], set, configurable: true, enumerable: true });
  }
  limitsBefore.set(server, before);
}

/** For a server that gets its own TCP port after all. */
function giveLimitsBack(server) {
  givenBack.add(server);
  const before = limitsBefore.get(server) ?? {};
  for (const name of Object.keys(before)) {
    Object.defineProperty(server, name, { value: before[name], writable: true, configurable: true, enumerable: true });
  }
  limitsBefore.delete(server);
}

// === Talking to Hostler ===

function tell(message) {
  if (channel.send) channel.send({ cmd: CMD, ...message });
}

/** For the operator's log, as information. `unused`: this may be why the worker does not get ready. */
function note(text, unused) {
  tell({ act: 'note', text, ...(unused && { unused }) });
}

function warn(text, unused) {
  if (channel.send) tell({ act: 'warning', text, ...(unused && { unused }) });
  else process.emitWarning(text, 'HostlerWarning'); // before its claim, a grandchild has only stderr, which Hostler also reads
}

/** Reports once that a stop can begin with 'shutdown'. */
function tellWhenHearing() {
  whenHearing(() => tell({ act: 'hears' }));
}

/** Calls it once, now or when this process begins to listen for messages. */
function whenHearing(then) {
  let isTold = false;
  const hears = () => {
    if (!isTold) then();
    isTold = true;
  };
  if (process.listenerCount('message') > 0) hears();
  process.on('newListener', (name) => {
    if (name === 'message') hears();
  });
}

/** Carries out a command of Hostler. Returns whether the message was one. An error here must not end the app. */
function obey(message) {
  if (message?.cmd !== CMD) return false;
  try {
    carryOut(message);
  } catch (error) {
    // A Node that was built without the inspector takes no profile, for example.
    if (message.act === 'profile') tell({ act: 'inspected', error: error.message });
    else warn(`the preload cannot carry out "${message.act}": ${error.message}`);
  }
  return true;
}

function carryOut(message) {
  const isLate = (message.act === 'profile' || message.act === 'heap') && isGone(message.path);
  if (isLate) return; // the event loop has not turned for long, and Hostler has given up
  if (message.act === 'report') report();
  else if (message.act === 'collect') collect(message.kind);
  else if (message.act === 'flush') flush();
  else if (message.act === 'yield') yieldTo(message);
  else if (message.act === 'inspect') openInspector();
  else if (message.act === 'uninspect') closeInspector();
  else if (message.act === 'profile') profile(message.path, message.micros);
  else if (message.act === 'heap') writeHeap(message.path);
}

/** Whether nothing is at this path. Node's permission model may forbid to look. */
function isGone(path) {
  return quietly(() => fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })) === undefined;
}

/** The answer shows that the event loop turns, and contains how much of its time it works, its heap and its garbage collections. */
function report() {
  if (isClusterPrimary()) return tell({ act: 'report' });
  const { active, idle } = require('perf_hooks').performance.eventLoopUtilization();
  const { used_heap_size: used, heap_size_limit: limit } = require('v8').getHeapStatistics();
  tell({ act: 'report', active: Math.round(active), idle: Math.round(idle), heap: { used, limit }, gc: collections() });
}

let garbage = null; // by kind, once Hostler has asked: { counts, micros }

/** The garbage collections since Hostler asked first. Node tells of them without a timer. */
function collections() {
  if (garbage !== null) return garbage;
  const { PerformanceObserver, constants } = require('perf_hooks');
  const kinds = {
    [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
    [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
    [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
  };
  garbage = {};
  for (const kind of ['minor', 'major', 'incremental', 'weakcb']) garbage[kind] = { counts: [0, 0, 0, 0, 0], micros: 0 };
  const note = ({ duration, detail }) => {
    const times = garbage[kinds[detail?.kind]];
    if (!times) return;
    const longer = GC_BOUNDS_MS.findIndex((bound) => duration <= bound);
    times.counts[longer === -1 ? GC_BOUNDS_MS.length : longer] += 1;
    times.micros += Math.round(duration * 1000);
  };
  new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ entryTypes: ['gc'] });
  return garbage;
}

/** Opens the inspector on the address of --inspect-port, and leaves one that is open already. Node prints the address, or why it failed. */
function openInspector() {
  const inspector = require('inspector');
  try {
    if (!inspector.url()) inspector.open();
  } catch (error) {
    warn(`the inspector does not open: ${error.message}`);
  }
}

/**
 * Closes an inspector that a signal has opened during an endless loop. Two turns later, because Node keeps the signal also for the next turn of its event
 * loop, and would open the inspector again there.
 */
function closeInspector() {
  const inspector = require('inspector');
  setImmediate(() => setImmediate(() => inspector.close()));
}

/**
 * Takes a CPU profile of this thread until Hostler closes its half of the connection at `path`. The session is inside the process, so it opens no port.
 * It is not in a thread of its own (connectToMainThread()): Node 20 then aborted the process when the thread ended under load.
 */
function profile(path, micros) {
  tell({ act: 'inspecting' });
  const { Session } = require('inspector');
  const session = new Session();
  const socket = require('net').connect({ path, allowHalfOpen: true }).resume().unref();
  const say = (text) => socket.write(`${text}\n`);
  socket.on('error', () => session.disconnect()); // Hostler does not want the profile any more
  socket.once('connect', () => {
    try {
      session.connect();
    } catch (error) {
      return socket.end(`failed: ${error.message}\n`); // Node's permission model may forbid it (--allow-inspector)
    }
    session.post('Profiler.enable');
    session.post('Profiler.setSamplingInterval', { interval: micros });
    session.post('Profiler.start', (error) => say(error ? `failed: ${error.message}` : 'began'));
    socket.once('end', () => {
      session.post('Profiler.stop', (error, result) => {
        socket.end(error ? '' : `${JSON.stringify(result.profile)}\n`);
        session.disconnect();
      });
    });
  });
}

/** Writes a heap snapshot to the pipe at `path`. Each write waits for Hostler, so nothing of it piles up in memory. */
function writeHeap(path) {
  tell({ act: 'inspecting' });
  // In the next turn, so that Hostler hears first that this process has begun.
  setImmediate(() => {
    try {
      if (isGone(path)) throw new Error('Hostler has given up'); // Node would make a file there
      require('v8').writeHeapSnapshot(path);
      tell({ act: 'inspected' });
    } catch (error) {
      tell({ act: 'inspected', error: error.message });
    }
  });
}

let gc = null;

/** Needs no option at the start: a new context has what V8 was told to expose in the meantime. */
function collect(kind) {
  if (gc === null) {
    require('v8').setFlagsFromString('--expose-gc');
    gc = require('vm').runInNewContext('gc');
    require('v8').setFlagsFromString('--no-expose-gc');
  }
  const began = process.hrtime.bigint();
  if (kind === 'minor') gc({ type: 'minor' });
  else gc(); // with any argument, V8 before 12 collects only the young generation
  tell({ act: 'collected', kind, micros: Number((process.hrtime.bigint() - began) / 1000n) });
}

/**
 * Writes the compiled code of all modules that were loaded so far. Node itself does so only when the process ends by itself. The
 * time of the folder tells Hostler that this version of Node is in use. In Node before 22.10, nothing is written.
 */
function flush() {
  try {
    const { flushCompileCache, getCompileCacheDir } = require('module');
    flushCompileCache?.();
    const folder = getCompileCacheDir?.();
    if (folder) fs.utimesSync(folder, new Date(), new Date());
  } catch {
    // The folder is gone or may not be written. Then the next boot compiles again.
  }
  tell({ act: 'flushed' });
}

/** The direct child has Node's own channel. Sending and receiving work already; only Hostler's death must be detected. */
function speakOverIpc(onlyStarts) {
  const { send, disconnect } = process; // the app may replace them by its own
  channel.send = (message) => {
    if (process.connected) send.call(process, message, () => {});
  };
  process.on('internalMessage', obey);
  // Node itself calls disconnect() when the channel ends. A listener for 'disconnect' would keep the process alive.
  process.disconnect = function () {
    tellListening?.();
    if (process.connected && isEnded(process.channel)) endWithHostler();
    else tell({ act: 'disconnects' }); // a shell above may have the channel, too, and Hostler then sees no end of it
    return disconnect.call(this);
  };
  if (!onlyStarts) return tellWhenHearing();
  // tsx listens for messages to pass them on. If the app itself does not listen, 'shutdown' would be lost, and SIGTERM come late.
  whenHearing(() => quietly(() => fs.writeFileSync(relayMark, '', { mode: 0o600 })));
  tellHearing = tellWhenHearing;
}

/** For what is of use and not needed. Null if it fails: Node's permission model may forbid it. */
function quietly(attempt) {
  try {
    return attempt();
  } catch {
    return null;
  }
}

/** Whether the other side has closed. An end of file can be read repeatedly; an open channel has data or nothing to read. */
function isEnded({ fd }) {
  try {
    return fs.readSync(fd, Buffer.alloc(1)) === 0;
  } catch (error) {
    return error.code !== 'EAGAIN';
  }
}

/** A grandchild gets the same over a socket: JSON lines, and process.send() with its companions, unless it has an IPC parent. */
function speakOverControl(path) {
  if (!path) return;
  const socket = require('net').connect(path).setEncoding('utf8').unref();
  channel.send = (message, callback) => socket.write(`${JSON.stringify(message)}\n`, callback);
  socket.on('error', () => {}); // 'close' follows
  if (!process.send && !isInThread()) return lendIpc(socket);
  const isRelayed = !isInThread() && ancestors.at(-1)?.isTool === true && quietly(() => fs.existsSync(relayMark)) === true;
  receive(socket, (message) => isRelayed && process.emit('message', message, undefined));
  socket.on('close', endWithHostler);
  if (isRelayed) tellWhenHearing();
}

function lendIpc(socket) {
  const close = () => {
    if (!process.connected) return;
    tellListening?.();
    process.connected = false;
    process.channel = undefined;
    socket.end();
    process.nextTick(() => process.emit('disconnect'));
  };
  process.connected = true;
  process.channel = { ref: () => socket.ref(), unref: () => socket.unref() };
  process.disconnect = close;
  process.send = (message, ...rest) => {
    const callback = rest.find((value) => typeof value === 'function');
    if (process.connected) return channel.send(message, callback);
    const error = Object.assign(new Error('Channel closed'), { code: 'ERR_IPC_CHANNEL_CLOSED' });
    process.nextTick(callback ?? (() => process.emit('error', error)), error);
    return false;
  };
  socket.on('close', () => {
    if (process.connected) endWithHostler();
    close();
  });
  receive(socket, (message) => process.emit('message', message, undefined));
  holdOpenWhileHeard(socket);
  tellWhenHearing();
}

function receive(socket, passOn) {
  let rest = '';
  socket.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    // Each message in its own turn, so that a listener that throws does not affect the next message.
    for (const line of lines) process.nextTick(hear, JSON.parse(line), passOn);
  });
}

function hear(message, passOn) {
  if (!obey(message)) passOn(message);
}

/** As with Node's channel, the socket keeps the process alive only if the app listens for messages. */
function holdOpenWhileHeard(socket) {
  const isHeard = () => process.listenerCount('message') + process.listenerCount('disconnect') > 0;
  if (isHeard()) socket.ref();
  process.on('newListener', (name) => {
    if (name === 'message' || name === 'disconnect') socket.ref();
  });
  process.on('removeListener', () => {
    if (!isHeard()) socket.unref();
  });
}

/** Hostler is gone: stop as in a normal stop, at the latest after the grace period. */
function endWithHostler() {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), END_GRACE_MS).unref();
  process.kill(process.pid, 'SIGTERM');
}
