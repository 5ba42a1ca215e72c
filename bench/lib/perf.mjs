// Samples a running process with perf: its stacks with the number of samples, and its system calls. Knows no program.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

/** Samples a second. A prime number, so that samples do not keep step with timers. Many kernels take only 250. */
const FREQUENCY = 1999;
/** Bytes of the stack in each sample: enough for the frames from a system call to the runtime. */
const STACK_BYTES = 16384;

/** Samples the CPU time of a process while `work` runs. Returns { stacks, result }: see `foldStacks`. */
export async function sampled(session, pid, work) {
  const data = session.path('perf.data');
  const options = ['-e', 'cpu-clock', '-F', String(FREQUENCY), '--call-graph', `dwarf,${STACK_BYTES}`, '-p', String(pid), '-o', data];
  const record = session.start('perf', ['record', '-q', ...options], { name: 'perf-record' });
  const result = await work();
  process.kill(record.pid, 'SIGINT');
  await record.exit;
  return { result, stacks: await foldStacks(scriptOf(data)) };
}

/** The number of each system call of a process while `work` runs, as { name: count }, and the result of `work`. */
export async function countedCalls(session, pid, work) {
  const [counts, control, done] = ['perf.counts', 'perf.control', 'perf.done'].map((name) => session.path(name));
  execFileSync('mkfifo', [control, done]);
  // perf begins to count (-D -1) when it is told to, and says when it does: there are hundreds of calls, and each takes it a while.
  const stat = session.start('perf', ['stat', '-x', ';', '-D', '-1', `--control=fifo:${control},${done}`, '-e', 'syscalls:sys_enter_*', '-p', String(pid), '-o', counts], { name: 'perf-stat' });
  const counting = once(createReadStream(done), 'data');
  await writeFile(control, 'enable\n');
  await counting;
  const result = await work();
  process.kill(stat.pid, 'SIGINT');
  await stat.exit;
  return { result, calls: parseCounts(readFileSync(counts, 'utf8')) };
}

/** The lines of `perf stat -x ';'` as { name: count }, without the calls that did not occur. */
export function parseCounts(text) {
  const rows = text.split('\n').map((line) => line.split(';'));
  const counts = rows.map(([count, , event = '']) => [event.replace(/^syscalls:sys_enter_|:.*$/g, ''), Number(count)]);
  return Object.fromEntries(counts.filter(([name, count]) => name !== '' && count > 0));
}

/** The lines of `perf script`. */
function scriptOf(data) {
  const { stdout } = spawn('perf', ['script', '-i', data, '--no-inline', '-F', 'ip,sym'], { stdio: ['ignore', 'pipe', 'ignore'] });
  return createInterface({ input: stdout });
}

/** Equal stacks with their number of samples: a Map from "outermost;...;innermost" to a count. */
export async function foldStacks(lines) {
  const stacks = new Map();
  let frames = [];
  const end = () => {
    if (frames.length > 0) stacks.set(frames.join(';'), (stacks.get(frames.join(';')) ?? 0) + 1);
    frames = [];
  };
  for await (const line of lines) {
    const frame = /^\s*[0-9a-f]+ (.+)$/.exec(line);
    if (frame) frames.unshift(shortName(frame[1]));
    else end();
  }
  end();
  return stacks;
}

/** A function's name without offset, hash and type arguments, which hide the name. */
export function shortName(symbol) {
  let name = symbol.replace(/\+0x[0-9a-f]+$/, '').replace(/::h[0-9a-f]{16}$/, '').replaceAll(';', ':');
  for (let before = ''; before !== name; ) {
    before = name;
    name = name.replace(/(?<=\w|::)<[^<>]*>/g, '');
  }
  return name;
}
