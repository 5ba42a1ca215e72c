// Runs the program as a child, for Node versions without process.execve(): passes signals on, and ends as the child ended.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

/** SIGKILL and SIGSTOP cannot be passed on. A second copy of Ctrl-C does no harm: Hostler takes two within 250 ms for one. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

function follow(program, args) {
  const child = spawn(program, args, { stdio: 'inherit' });
  for (const signal of SIGNALS) process.on(signal, () => child.kill(signal));
  child.once('error', (error) => {
    process.stderr.write(`hostler: ${program} could not be started: ${error.message}\n`);
    process.exit(1);
  });
  child.once('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    // For process 1 of a container: the kernel ends it by no signal that it sends to itself.
    process.exitCode = 128 + constants.signals[signal];
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

module.exports = { follow };
