// Acts as Hostler for one worker: makes the socket, starts the command in the way of Hostler, and records the worker's
// messages. Knows only protocol/README.md of the preload.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { eventually } from '@hostler/testkit';

import { groupOf, isAlive, listeningTcpPorts } from './proc.mjs';

const preload = new URL('../../preload.cjs', import.meta.url);
const apps = new URL('../apps/', import.meta.url).pathname;

/** Starts `command` (words; the first `node` is this Node) in the folder of `app`, and ends it with the test. */
export async function startWorker(t, app, command, { env = {}, nodeOptions = '', cwd = path.join(apps, app) } = {}) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'hostler "test" '));
  const preloadPath = path.join(dir, 'preload.cjs');
  fs.copyFileSync(preload, preloadPath);
  const worker = new Worker(dir);
  await worker.listenForControl();
  const socket = await listenOnly(path.join(dir, 'fd.sock'));

  const [program, ...args] = command[0] === 'node' ? [process.execPath, ...command.slice(1)] : command;
  worker.child = spawn(program, args, {
    cwd,
    detached: true, // its own process group
    stdio: ['ignore', 'pipe', 'pipe', socket.fd, 'ipc'],
    env: {
      ...ownEnvironment(),
      NODE_OPTIONS: `${nodeOptions} --require "${preloadPath.replace(/["\\]/g, '\\$&')}"`.trim(),
      HOSTLER_LISTEN_FD: '3',
      HOSTLER_LISTEN_FD_PATH: path.join(dir, 'fd.sock'),
      HOSTLER_LISTEN_INODE: String(fs.fstatSync(socket.fd).ino),
      HOSTLER_LISTEN_PATH: path.join(dir, 'web-1-7.app'),
      HOSTLER_CONTROL_PATH: path.join(dir, 'web-1-7.ctl'),
      ...env,
    },
  });
  socket.letGo();
  worker.listenToChild();
  t.after(() => worker.end());
  return worker;
}

/** A command that runs the file as a grandchild, as npm does, but faster. */
export function behindNode(file) {
  return ['node', '-e', `require('child_process').spawn(process.execPath, ['${file}'], { stdio: 'inherit' })`];
}

/** Options of this Node for its permission model: the app may read all files, and has no other right that is not needed to listen. */
export function withoutPermissions() {
  const known = (option) => process.allowedNodeEnvironmentFlags.has(option);
  return [known('--permission') ? '--permission' : '--experimental-permission', '--allow-fs-read=*', ...(known('--allow-net') ? ['--allow-net'] : [])];
}

/** The environment of a clean shell, without the variables of the test runner and of npm. */
function ownEnvironment() {
  const { PATH, HOME } = process.env;
  return { PATH: `${path.dirname(process.execPath)}:${PATH}`, HOME, NEXT_TELEMETRY_DISABLED: '1', npm_config_update_notifier: 'false' };
}

/** A listening Unix socket on which this process never accepts: it closes the socket before its event loop turns. */
async function listenOnly(name) {
  const server = net.createServer();
  server.listen(`${name}.made`);
  fs.linkSync(`${name}.made`, name); // closing the socket removes the name under which it was made
  return { fd: server._handle.fd, letGo: () => server.close() };
}

class Worker {
  messages = []; // Hostler's messages, over either channel: { cmd: 'NODE_HOSTLER', ... }
  appMessages = []; // the app's own messages
  output = '';
  exit = null;
  #speaking = 0;
  #control = null;
  #controls = new Map(); // by the process that has said over it that it listens
  #controlServer;

  constructor(dir) {
    this.dir = dir;
  }

  listenForControl() {
    this.#controlServer = net.createServer((socket) => {
      this.#control = socket;
      let rest = '';
      socket.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          const message = JSON.parse(line);
          if (message.act === 'listening') this.#controls.set(message.pid, socket);
          this.#heard(message);
        }
      });
      socket.on('error', () => {});
    });
    return new Promise((resolve) => this.#controlServer.listen(path.join(this.dir, 'web-1-7.ctl'), resolve));
  }

  listenToChild() {
    for (const stream of [this.child.stdout, this.child.stderr]) {
      this.#speaking += 1;
      stream.setEncoding('utf8').on('data', (text) => (this.output += text)).on('close', () => (this.#speaking -= 1));
    }
    this.child.on('message', (message) => this.#heard(message));
    this.child.on('internalMessage', (message) => this.#heard(message));
    this.child.on('exit', (code, signal) => (this.exit = { code, signal }));
    this.child.on('error', (error) => (this.output += error.stack));
  }

  #heard(message) {
    (message?.cmd === 'NODE_HOSTLER' ? this.messages : this.appMessages).push(message);
  }

  /** Sends over the channel that the worker has used. */
  send(message) {
    if (this.#control) this.#control.write(`${JSON.stringify(message)}\n`);
    else this.child.send(message);
  }

  /** Sends to one of several processes behind control sockets. */
  sendTo(pid, message) {
    this.#controls.get(pid).write(`${JSON.stringify(message)}\n`);
  }

  /** Closes the channels, as the death of Hostler would. */
  closeChannels() {
    if (this.child.connected) this.child.disconnect();
    this.#control?.end();
    this.#controlServer.close();
  }

  async said(act) {
    return eventually(`the worker says ${act}`, () => this.messages.find((message) => message.act === act), () => this.output);
  }

  async saidTimes(act, times) {
    const count = () => this.messages.filter((message) => message.act === act).length;
    return eventually(`the worker says ${act} ${times} times`, () => count() >= times, () => this.output);
  }

  async saidByApp(text) {
    return eventually(`the app says ${text}`, () => this.appMessages.includes(text), () => this.output);
  }

  async printed(pattern) {
    return eventually(`the worker prints ${pattern}`, () => this.output.match(pattern), () => this.output);
  }

  async isGone(pid) {
    return eventually(`process ${pid} is gone`, () => !isAlive(pid), () => this.output);
  }

  /** How it ended, after its last message was read. */
  async ended() {
    return eventually('the worker ends', () => this.#speaking === 0 && this.exit, () => this.output);
  }

  /** The address in the worker's last report. */
  async address() {
    await this.said('listening');
    const { via, nth } = this.messages.findLast(({ act }) => act === 'listening');
    return { socketPath: path.join(this.dir, via === 'fd' ? 'fd.sock' : `web-1-7.app${nth ? `.${nth}` : ''}`) };
  }

  /** Sends a request to the worker. The body is parsed if it is JSON. */
  async get(url = '/', { headers = {}, agent = false } = {}) {
    const { socketPath } = await this.address();
    return new Promise((resolve, reject) => {
      const request = http.get({ socketPath, path: url, headers, agent }, async (response) => {
        let body = '';
        for await (const chunk of response.setEncoding('utf8')) body += chunk;
        const isJson = response.headers['content-type']?.includes('json');
        resolve({ status: response.statusCode, body: isJson ? JSON.parse(body) : body, reused: request.reusedSocket });
      });
      request.on('error', reject);
    });
  }

  tcpPorts() {
    return listeningTcpPorts(groupOf(this.child.pid));
  }

  async end() {
    try {
      process.kill(-this.child.pid, 'SIGKILL');
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
    // Then its ports are free: the next test may use them.
    await eventually('the worker to end', () => this.exit ?? this.child.pid === undefined);
    this.closeChannels();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}
