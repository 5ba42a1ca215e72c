// The preload inside every worker: it turns the app's own listen() into the socket that Hostler made for it and speaks
// protocol/README.md; it knows nothing of pools, requests or other workers. One file without dependencies, because Hostler
// carries it in its binary. Every Node process between Hostler and the app loads it too, so what runs at the top is little.
'use strict';

const CMD = 'NODE_HOSTLER'; // Node delivers what starts with NODE_ as 'internalMessage': an app never sees it
const END_GRACE_MS = 5_000;
const NEVER_MS = 1_000_000_000; // 11 days: no timeout that matters, and Node can still add to it without an overflow
const SPENT = ['HOSTLER_LISTEN_FD', 'HOSTLER_LISTEN_INODE', 'HOSTLER_LISTEN_PATH', 'HOSTLER_CONTROL_PATH', 'HOSTLER_APP_PORT'];

const fs = require('fs');
const { env } = process;
const isInWorker = Boolean(env.HOSTLER_LISTEN_FD || env.HOSTLER_LISTEN_PATH);
const listenFd = isInWorker ? inheritedSocket() : null; // null in a grandchild: nothing but the environment passes through npm
const channel = { send: null }; // how to reach Hostler: Node's IPC channel, or later the control socket
let claim = null; // the app's listen, once it is made: { port, shown, path, siblings, isHeld }

try {
  if (isInWorker) patchListen(require('net').Server.prototype);
  if (listenFd !== null && process.send) speakOverIpc();
} catch (error) {
  process.emitWarning(`not preloaded: ${error.message}`, 'HostlerWarning');
}

/** The descriptor that Hostler passed, if it is that very socket: by accident a grandchild may have another one of this number. */
function inheritedSocket() {
  try {
    // As bigint: Node's realpath takes what a stat in plain numbers has left behind for its own, and after a socket it no longer
    // follows links, so that an app started as node_modules/.bin/next would not find its own modules (seen in Node 20).
    const stat = fs.fstatSync(Number(env.HOSTLER_LISTEN_FD), { bigint: true });
    return stat.isSocket() && String(stat.ino) === env.HOSTLER_LISTEN_INODE ? Number(env.HOSTLER_LISTEN_FD) : null;
  } catch {
    return null;
  }
}

// === Listening ===

function patchListen(prototype) {
  const original = prototype.listen;
  prototype.listen = function listen(...args) {
    let target = null;
    try {
      target = redirect(this, args);
    } catch {
      // Whatever is wrong with our side, the app's own listen still has its meaning.
    }
    return target === null ? original.apply(this, args) : original.call(this, target, args[args.length - 1]);
  };
}

/** Where a server listens instead of where it asked to; null leaves the call as it is. */
function redirect(server, args) {
  const asked = tcpRequest(args);
  if (asked === null || server.listening || !require('worker_threads').isMainThread) return null;

  // A cluster worker asks its primary to listen, whose own listen() comes by here; what differs for it is how it all looks.
  if (require('cluster').isWorker) {
    dress(server, shownAddress(asked));
    return null;
  }
  const speaks = incompatibility(server);
  if (speaks !== null) {
    warn(`the app listens on port ${asked.port} with ${speaks}; Hostler passes it by`);
    return null;
  }
  return claim === null ? claimListen(server, asked) : listenAgain(server, asked);
}

/** Reads the arguments of listen() as Node does; null for anything that is no well-formed TCP listen. */
function tcpRequest(args) {
  const [first, second] = args;
  let asked;
  if (typeof first === 'object' && first !== null) {
    const usesHandle = first._handle || first.handle || (typeof first.fd === 'number' && first.fd >= 0);
    if (usesHandle || !('port' in first)) return null;
    asked = { port: first.port, host: first.host, signal: first.signal };
  } else {
    asked = { port: typeof first === 'function' ? undefined : first, host: typeof second === 'string' ? second : undefined };
  }
  const { port } = asked;
  if (port === undefined || port === null) return { ...asked, port: 0 };
  if (typeof port !== 'number' && (typeof port !== 'string' || port.trim() === '')) return null;
  asked.port = Number(port); // NaN: the string is a path
  return Number.isInteger(asked.port) && asked.port >= 0 && asked.port <= 65_535 ? asked : null;
}

/** What the server speaks, if that is not HTTP/1.1 in the clear. By shape: an instanceof would load tls and http2 everywhere. */
function incompatibility(server) {
  if (typeof server.setSecureContext === 'function') return 'TLS';
  return typeof server.updateSettings === 'function' ? 'HTTP/2 only' : null;
}

/** Makes this listen the app's, unless its port says that it is not, or another process was first. */
function claimListen(server, asked) {
  const [name, port] = appPort();
  if (port !== null && asked.port !== port) {
    warn(`the app listens on port ${asked.port} by itself, because ${name} names ${port} as the app's port; ` +
      `if ${asked.port} is the app, name that as the pool's port`);
    return null;
  }
  const path = env.HOSTLER_LISTEN_PATH;
  const isFirst = path ? takeClaimFile(path) : false;
  if (listenFd === null && !isFirst) return null;

  claim = { port: asked.port, shown: shownAddress(asked), path, siblings: 0, isHeld: null };
  if (!channel.send) speakOverControl(env.HOSTLER_CONTROL_PATH);
  freeInspectorPort();
  if (!isClusterPrimary()) cleanEnvironment();
  return hold(server, asked, listenFd === null ? { path } : { fd: listenFd });
}

/**
 * The port that marks the app's listen: the pool's, else PORT. Strictly, since a wrong guess would show the world a metrics or
 * debug server that happens to listen first. PORT is read when the app listens: by then its own .env file has been read, too.
 */
function appPort() {
  for (const name of ['HOSTLER_APP_PORT', 'PORT']) {
    const port = Number(env[name]);
    if (Number.isInteger(port) && port > 0) return [name, port];
  }
  return [null, null];
}

/**
 * SIGUSR1 opens Node's inspector, through which Hostler asks a hung worker where it hangs: then on any free port, not on 9229 for
 * the first of several workers. Not by NODE_OPTIONS, which children inherit and in which a later --inspect would lose its own port.
 */
function freeInspectorPort() {
  const options = `${process.execArgv.join(' ')} ${env.NODE_OPTIONS ?? ''}`;
  if (/--(?:inspect|debug[-_]port)/.test(options)) return; // the operator's choice
  try {
    process.debugPort = 0;
  } catch {
    // Then its stack cannot be told if somebody has taken the port.
  }
}

function takeClaimFile(path) {
  try {
    fs.writeFileSync(`${path}.claim`, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
    return true;
  } catch {
    return false;
  }
}

/** The app's later listens. Another port is another server's; the same port must not be opened after all. */
function listenAgain(server, asked) {
  const isSamePort = asked.port === claim.port || asked.port === claim.shown.port;
  if (!isSamePort || asked.port === 0 || !claim.path) return null;
  // Closed and opened again (a cluster does so when its last worker dies): the descriptor went with the first, the path is left.
  if (!claim.isHeld()) return hold(server, asked, { path: claim.path });
  // One app on several addresses (Fastify: each address of localhost). The first serves all, this one stays without visitors.
  claim.siblings += 1;
  dress(server, shownAddress(asked));
  return { path: `${claim.path}.${claim.siblings}`, signal: asked.signal };
}

/**
 * Lets the server listen on Hostler's socket. Of the app's options only the signal goes along: the backlog is Hostler's queue
 * (a full one refuses a Unix connect at once), the others speak of TCP.
 */
function hold(server, asked, where) {
  claim.isHeld = () => true;
  dress(server, claim.shown);
  server.prependOnceListener('listening', () => {
    const handle = server._handle; // not the server: a cluster primary takes the handle out of it
    claim.isHeld = () => handle.fd >= 0;
    if (where.path) ownerOnly(where.path);
    tell({ act: 'listening', via: where.path ? 'path' : 'fd', pid: process.pid, port: asked.port });
  });
  server.once(require('events').errorMonitor, () => {
    if (!server.listening) claim.isHeld = () => false;
  });
  return { ...where, signal: asked.signal };
}

function ownerOnly(path) {
  try {
    fs.chmodSync(path, 0o600);
  } catch {
    // Its folder is private anyway.
  }
}

/** A cluster primary forks again when a worker has died, and that worker needs the preload; the claim file bars the others. */
function isClusterPrimary() {
  return Object.keys(require('cluster').workers ?? {}).length > 0;
}

/** From here on children of this process are none of our business. */
function cleanEnvironment() {
  for (const name of SPENT) delete env[name];
  const options = withoutPreload(env.NODE_OPTIONS ?? '');
  if (options === '') delete env.NODE_OPTIONS;
  else env.NODE_OPTIONS = options;
}

/** Takes our own --require out of NODE_OPTIONS and leaves the rest letter by letter, quotes included. */
function withoutPreload(options) {
  const words = options.match(/(?:"(?:\\.|[^"\\])*"|[^ "])+/g) ?? [];
  const kept = [];
  for (let i = 0; i < words.length; i += 1) {
    const isOurs = (words[i] === '--require' || words[i] === '-r') && isThisFile(words[i + 1]);
    if (isOurs) i += 1;
    else kept.push(words[i]);
  }
  return kept.join(' ');
}

function isThisFile(word = '') {
  const file = word.replace(/"((?:\\.|[^"\\])*)"/g, (_, quoted) => quoted.replace(/\\(.)/g, '$1'));
  try {
    return file === __filename || fs.realpathSync(file) === __filename;
  } catch {
    return false;
  }
}

// === What the app sees ===

const shownBy = new WeakMap();

/** An address that the app can print and compare. For port 0 a number of the dynamic range, another one in each worker. */
function shownAddress({ port, host }) {
  const shownPort = port || 49_152 + (process.pid % 16_384);
  const isV6 = require('net').isIPv6(host ?? '');
  return { address: isV6 ? '::1' : '127.0.0.1', family: isV6 ? 'IPv6' : 'IPv4', port: shownPort };
}

/** Behind a Unix socket there are no addresses, but apps print, trust and dereference them: give the server and its sockets some. */
function dress(server, shown) {
  const isNew = !shownBy.has(server);
  shownBy.set(server, shown);
  if (!isNew) return;

  const { address } = server; // a path, or null with a descriptor; an object only if it is TCP after all (a cluster's second port)
  server.address = function () {
    const real = address.call(this);
    return this.listening && (real === null || typeof real === 'string') ? { ...shownBy.get(this) } : real;
  };
  const isUnix = () => server.listening && typeof (address.call(server) ?? '') === 'string';

  server.prependListener('listening', () => {
    if (isUnix() && 'keepAliveTimeout' in server) leaveTimeoutsToHostler(server);
  });
  server.prependListener('connection', (socket) => {
    if (socket.remoteAddress === undefined && isUnix()) dressSocket(socket, shownBy.get(server));
  });
}

/** Own properties, not getters: they must still hold when the socket is gone (a log line written at the end reads req.ip). */
function dressSocket(socket, shown) {
  const values = {
    remoteAddress: '127.0.0.1',
    remotePort: 0,
    remoteFamily: 'IPv4',
    localAddress: shown.address,
    localPort: shown.port,
    localFamily: shown.family,
  };
  for (const name of Object.keys(values)) {
    Object.defineProperty(socket, name, { value: values[name], configurable: true, enumerable: true, writable: true });
  }
}

/**
 * Idle connections are Hostler's: one that Node closes just when a request is on its way loses that request. keepAliveTimeout is
 * endless and not 0, because only then does Node lift, between requests, a timeout that the app has put on server, req or res.
 */
function leaveTimeoutsToHostler(server) {
  const fixed = { keepAliveTimeout: NEVER_MS, headersTimeout: 0, requestTimeout: 0, maxRequestsPerSocket: 0 };
  for (const name of Object.keys(fixed)) {
    Object.defineProperty(server, name, { get: () => fixed[name], set() {}, configurable: true, enumerable: true });
  }
}

// === Talking to Hostler ===

function tell(message) {
  if (channel.send) channel.send({ cmd: CMD, ...message });
}

function warn(text) {
  if (channel.send) tell({ act: 'warning', text });
  else process.emitWarning(text, 'HostlerWarning'); // before its claim a grandchild has only stderr, which Hostler reads as well
}

/** Says once that a stop can begin with 'shutdown', now or when the app begins to listen for messages. */
function tellWhenHearing() {
  let isTold = false;
  const hears = () => {
    if (!isTold) tell({ act: 'hears' });
    isTold = true;
  };
  if (process.listenerCount('message') > 0) hears();
  process.on('newListener', (name) => {
    if (name === 'message') hears();
  });
}

/** Does what Hostler asks for; returns whether the message was for us. */
function obey(message) {
  if (message?.cmd !== CMD) return false;
  if (message.act === 'report') report();
  else if (message.act === 'collect') collect(message.kind);
  return true;
}

/** That the answer comes says that the event loop turns; what it says is how much of its time is taken. */
function report() {
  if (isClusterPrimary()) return tell({ act: 'report' });
  const { active, idle } = require('perf_hooks').performance.eventLoopUtilization();
  tell({ act: 'report', active: Math.round(active), idle: Math.round(idle) });
}

let gc = null;

/** Needs no option at the start: a new context is given what V8 was told meanwhile to expose. */
function collect(kind) {
  if (gc === null) {
    require('v8').setFlagsFromString('--expose-gc');
    gc = require('vm').runInNewContext('gc');
    require('v8').setFlagsFromString('--no-expose-gc');
  }
  const began = process.hrtime.bigint();
  if (kind === 'minor') gc({ type: 'minor' });
  else gc(); // with any argument at all, V8 before 12 collects the young generation only
  tell({ act: 'collected', kind, micros: Number((process.hrtime.bigint() - began) / 1000n) });
}

/** The direct child has Node's own channel: sending and receiving work, what is left is to notice Hostler's death. */
function speakOverIpc() {
  const { send, disconnect } = process; // the app may put its own in their place
  channel.send = (message) => {
    if (process.connected) send.call(process, message, () => {});
  };
  process.on('internalMessage', obey);
  // Node calls disconnect() itself when the channel ends. A listener for 'disconnect' would keep the process alive.
  process.disconnect = function () {
    if (process.connected && isEnded(process.channel)) endWithHostler();
    return disconnect.call(this);
  };
  tellWhenHearing();
}

/** Whether the other side has closed: an end of file can be read again and again, an open channel has nothing (or data) to read. */
function isEnded({ fd }) {
  try {
    return fs.readSync(fd, Buffer.alloc(1)) === 0;
  } catch (error) {
    return error.code !== 'EAGAIN';
  }
}

/** A grandchild gets the same over a socket: JSON lines, and process.send() with what belongs to it unless it has a parent of its own. */
function speakOverControl(path) {
  if (!path) return;
  const socket = require('net').connect(path).setEncoding('utf8').unref();
  channel.send = (message, callback) => socket.write(`${JSON.stringify(message)}\n`, callback);
  socket.on('error', () => {}); // 'close' follows
  if (!process.send) return lendIpc(socket);
  receive(socket, () => {});
  socket.on('close', endWithHostler);
}

function lendIpc(socket) {
  const close = () => {
    if (!process.connected) return;
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
    // In turns of their own: a listener that throws must not take the next message with it.
    for (const line of lines) process.nextTick(hear, JSON.parse(line), passOn);
  });
}

function hear(message, passOn) {
  if (!obey(message)) passOn(message);
}

/** As with Node's channel: only an app that listens to it is kept alive by it. */
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

/** Hostler is gone: stop as at any stop, and at the latest after the grace. */
function endWithHostler() {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), END_GRACE_MS).unref();
  process.kill(process.pid, 'SIGTERM');
}
