#!/usr/bin/env node
// The command `hostler` of the npm package: finds the program for this machine and becomes it. Knows nothing of what the program does.
'use strict';

const { accessSync, constants, realpathSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { candidates, glibcVersion, missing, notExecutable, withoutNotifications, withoutSockets } = require('../lib/platform.js');
const { follow } = require('../lib/follow.js');

const machine = { platform: process.platform, arch: process.arch, glibc: glibcVersion() };
const found = find(candidates(machine));
if (found.program === undefined) {
  process.stderr.write(found.unusable === undefined ? missing(machine) : notExecutable(found.unusable));
  process.exitCode = 1;
} else if (process.env.LISTEN_PID === String(process.pid)) {
  // Node marks every inherited descriptor close-on-exec, so the sockets of systemd would be closed.
  process.stderr.write(withoutSockets(found.program));
  process.exitCode = 1;
} else {
  become(found.program, process.argv.slice(2));
}

/** The path of the program in the first package that is installed. `unusable`: the path of one that may not be executed. */
function find(packages) {
  let unusable;
  for (const name of packages) {
    let path;
    try {
      path = require.resolve(`${name}/bin/hostler`);
      // A failed execve() ends Node with a crash report, so the check comes first.
      accessSync(path, constants.X_OK);
      return { program: byLink(path, `${name}/bin/hostler`) };
    } catch (error) {
      if (error.code === 'EACCES') unusable ??= path;
    }
  }
  return { unusable };
}

/**
 * The same program at a path without its version. pnpm has the version in the path, keeps old versions for days, and lets a link lead to the newest one:
 * `hostler upgrade` would start the old program again.
 */
function byLink(path, file) {
  const linked = `${dirname(process.argv[1])}/../../${file}`;
  try {
    // The system follows the link before it goes up (`..`). join() goes up first, which gives the path itself where there is no link.
    return join(linked) !== path && realpathSync.native(linked) === path ? linked : path;
  } catch {
    return path;
  }
}

/** With execve() the program keeps this process id: signals, exit code and terminal are its own, and Node's memory is free again. */
function become(path, args) {
  if (typeof process.execve !== 'function') {
    const { NOTIFY_SOCKET, SYSTEMD_EXEC_PID } = process.env;
    if (NOTIFY_SOCKET && SYSTEMD_EXEC_PID === String(process.pid)) process.stderr.write(withoutNotifications(path));
    return follow(path, args);
  }
  // Node calls execve() experimental, and would say so before each start.
  process.removeAllListeners('warning');
  // The whole path as the first argument: `hostler upgrade` starts the program that is at this path then.
  return process.execve(path, [path, ...args], process.env);
}
