// Reads CPU time, memory and children of running processes from /proc. Knows only process ids.
import { readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';

const TICK_NS = 1e9 / 100; // USER_HZ: 100 on every Linux port of Node

/**
 * CPU time so far, in two ways. `scheduled`: run time of the scheduler in nanoseconds, over all living threads. `ticks`: utime
 * + stime, less exact but with ended threads, to check that no thread was missed. `waited`: how long they were ready to run
 * while other processes had the core.
 */
export function cpuTime(pids) {
  const total = { scheduled: 0, ticks: 0, waited: 0 };
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const [ran, waited] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ').map(Number);
      total.scheduled += ran;
      total.waited += waited;
    }
    total.ticks += statTicks(readFileSync(`/proc/${pid}/stat`, 'utf8')) * TICK_NS;
  }
  return total;
}

/**
 * Of processes with an event loop, in nanoseconds so far: the CPU time of all threads (`ran`), and of the main threads the CPU
 * time (`main`) and the time on the run queue, ready to run while others had the core (`waited`).
 */
export function workTime(pids) {
  const mains = pids.map((pid) => readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ').map(Number));
  const sum = (column) => mains.reduce((total, main) => total + main[column], 0);
  return { ran: cpuTime(pids).scheduled, main: sum(0), waited: sum(1) };
}

/** utime + stime of a stat line. The command in parentheses may contain spaces and parentheses. */
export function statTicks(line) {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** The result of `work`, and the CPU time of these processes and their children meanwhile. `cpu_waited_ns`: other processes had the core. */
export async function cpuDuring(processes, work) {
  const pids = processes.flatMap((one) => family(one.pid));
  const before = cpuTime(pids);
  const figures = await work();
  const after = cpuTime(pids);
  const cpu = { cpu_ns: after.scheduled - before.scheduled, cpu_ticks_ns: after.ticks - before.ticks, cpu_waited_ns: after.waited - before.waited };
  return { ...figures, ...cpu };
}

/** The process and all its descendants. One that ends meanwhile has none. */
export function family(pid) {
  const tasks = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  const children = tasks.flatMap((task) => (attempt(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8')) ?? '').split(' '));
  return [pid, ...children.filter(Boolean).map(Number).flatMap(family)];
}

/** Resident memory of one process in bytes. */
export function residentBytes(pid) {
  return residentParts(pid).resident;
}

/** Resident memory in bytes: the total, the process's own part, and the pages of mapped files. */
export function residentParts(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [resident, own, files] = ['VmRSS', 'RssAnon', 'RssFile'].map((name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1]) * 1024);
  return { resident, own, files };
}

/** Resident memory of several processes in bytes. Each shared page counts once. */
export function proportionalBytes(pids) {
  return pids.map((pid) => Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) * 1024).reduce((sum, one) => sum + one, 0);
}

/** The space of a folder's files in its file system, with removed files that one of the processes still holds open. */
export function filesBytes(folder, pids) {
  const listed = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const held = pids.flatMap((pid) => readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`)).filter((fd) => attempt(() => readlinkSync(fd))?.startsWith(`${folder}/`));
  const blocks = new Map();
  for (const file of [...listed, ...held]) {
    const about = attempt(() => statSync(file)); // the file may be gone by now
    if (about) blocks.set(about.ino, about.blocks);
  }
  return 512 * [...blocks.values()].reduce((sum, one) => sum + one, 0);
}

/** What `work` returns, or nothing if the file is gone, or the process that it is of. */
function attempt(work) {
  try {
    return work();
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error;
    return undefined;
  }
}

/** Milliseconds that the host of a virtual machine has taken from all its cores so far. */
export function stolen() {
  const [, line] = /^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'utf8'));
  return (Number(line.split(' ')[7]) * TICK_NS) / 1e6;
}

export function loadAverage() {
  return Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]);
}
