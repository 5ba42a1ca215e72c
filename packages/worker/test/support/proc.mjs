// Reads from /proc on which TCP ports a process group listens, like `ss -ltnp`, but without that tool.
import fs from 'node:fs';

const LISTEN = '0A';

/** The processes of a group, with the children of the leader and theirs. */
export function groupOf(leader) {
  return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && groupId(pid) === leader);
}

/** A zombie is not alive: it only waits for its parent to reap it. */
export function isAlive(pid) {
  const [state] = statOf(pid);
  return state !== '' && state !== 'Z';
}

function groupId(pid) {
  return Number(statOf(pid)[2]);
}

/** The fields of /proc/PID/stat from the state on. The name before it may contain anything. */
function statOf(pid) {
  const stat = readOr(`/proc/${pid}/stat`, '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

export function listeningTcpPorts(pids) {
  const inodes = new Set(pids.flatMap(socketInodes));
  const ports = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
    readOr(table, '').trim().split('\n').slice(1).map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTEN && inodes.has(fields[9]))
      .map((fields) => Number.parseInt(fields[1].split(':')[1], 16)));
  return [...new Set(ports)].sort((a, b) => a - b);
}

function socketInodes(pid) {
  return listOr(`/proc/${pid}/fd`).map((fd) => linkOr(`/proc/${pid}/fd/${fd}`).match(/^socket:\[(\d+)\]$/)?.[1]).filter(Boolean);
}

// A process may end during the look.
function readOr(file, otherwise) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}

function listOr(folder) {
  try {
    return fs.readdirSync(folder);
  } catch {
    return [];
  }
}

function linkOr(file) {
  try {
    return fs.readlinkSync(file);
  } catch {
    return '';
  }
}
