// Reads from /proc which TCP ports a process group listens on: what `ss -ltnp` would show, without the tool.
import fs from 'node:fs';

const LISTEN = '0A';

/** The processes of a group, the leader's children and theirs included. */
export function groupOf(leader) {
  return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && groupId(pid) === leader);
}

/** A zombie is not alive: it waits only for its parent to look. */
export function isAlive(pid) {
  const [state] = statOf(pid);
  return state !== '' && state !== 'Z';
}

function groupId(pid) {
  return Number(statOf(pid)[2]);
}

/** The fields of /proc/PID/stat from the state on: the name before it may contain anything. */
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

// A process may end while it is looked at.
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
