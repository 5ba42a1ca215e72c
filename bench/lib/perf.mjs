// Samples a running process with perf: its stacks with the number of samples, and its system calls. Knows no program.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, readFileSync, readlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';

/** Samples a second. A prime number, so that samples do not keep step with timers. Many kernels take only 250. */
const FREQUENCY = 1999;
/** Bytes of the stack in each sample: enough for the frames from a system call to the runtime. */
const STACK_BYTES = 16384;

/** Samples the CPU time of a process while `work` runs. Returns { stacks, result }: see `foldStacks`. */
export async function sampled(session, pid, work) {
  const data = session.path('perf.data');
  const program = readlinkSync(`/proc/${pid}/exe`);
  const options = ['-e', 'cpu-clock', '-F', String(FREQUENCY), '--call-graph', `dwarf,${STACK_BYTES}`, '-p', String(pid), '-o', data];
  const record = session.start('perf', ['record', '-q', ...options], { name: 'perf-record' });
  const result = await work();
  process.kill(record.pid, 'SIGINT');
  await record.exit;
  return { result, stacks: await foldStacks(scriptOf(data), program, (addresses) => functionsAt(program, addresses)) };
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

/** The lines of `perf script`. Without the names of inlined functions: `functionsAt` finds these once for each address. */
function scriptOf(data) {
  const { stdout } = spawn('perf', ['script', '-i', data, '--no-inline', '-F', 'ip,sym,dso'], { stdio: ['ignore', 'pipe', 'ignore'] });
  return createInterface({ input: stdout });
}

/**
 * Equal stacks with their number of samples: a Map from "outermost;...;innermost" to a count. `name` gets all addresses in the file
 * `program`, and returns a Map from an address to the functions there, if it knows more of it than perf's name.
 */
export async function foldStacks(lines, program, name = () => new Map()) {
  const samples = [];
  let frames = [];
  const end = () => {
    if (frames.length > 0) samples.push(frames);
    frames = [];
  };
  for await (const line of lines) {
    const [, address, symbol, file] = /^\s*([0-9a-f]+) (.+) \((.+)\)$/.exec(line) ?? [];
    // Of a caller perf shows where the call returns to, which may belong to another function.
    const own = file === program ? parseInt(address, 16) - (frames.length > 0 ? 1 : 0) : undefined;
    if (address) frames.unshift({ own, symbol });
    else end();
  }
  end();
  const functions = name([...new Set(samples.flat().map(({ own }) => own))].filter((address) => address !== undefined));
  const stacks = new Map();
  for (const sample of samples) {
    const stack = sample.flatMap(({ own, symbol }) => functions.get(own) ?? [symbol]).map(shortName).join(';');
    stacks.set(stack, (stacks.get(stack) ?? 0) + 1);
  }
  return stacks;
}

/**
 * Which functions are at places of a program: the inlined ones, too. A Map from the place to names, the outermost first. perf gives places
 * in the file, and addr2line wants addresses.
 */
function functionsAt(program, places) {
  const shift = codeShift(program);
  const input = places.map((place) => `0x${(place + shift).toString(16)}`).join('\n');
  const { status, stdout } = spawnSync('addr2line', ['-e', program, '-a', '-f', '-i', '-C'], { input, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (status !== 0) throw new Error('addr2line failed (package binutils)');
  return new Map([...parseFunctions(stdout)].map(([address, names]) => [address - shift, names]));
}

/** How far the address of the code is from its place in the file. */
function codeShift(program) {
  const headers = execFileSync('readelf', ['-lW', program], { encoding: 'utf8' });
  const [, place, address] = /^ +LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .* R E /m.exec(headers);
  return parseInt(address, 16) - parseInt(place, 16);
}

/**
 * What `addr2line -a -f -i` prints: an address, and for each function there its name and its line, the innermost first. Of an inlined
 * function it knows the name without the module, which the path of the file tells. The innermost one it calls like the outermost.
 */
export function parseFunctions(text) {
  const found = new Map();
  for (const part of text.split(/^(?=0x[0-9a-f]+$)/m)) {
    const [address, ...pairs] = part.split('\n').filter((line) => line !== '');
    const names = pairs.flatMap((name, at) => (at % 2 === 0 && name !== '??' ? [qualified(at === 0 && pairs.length > 2 ? 'inlined' : name, pairs[at + 1])] : []));
    if (names.length > 0) found.set(parseInt(address, 16), names.reverse());
  }
  return found;
}

/** `hostler_wire::field::push_known` of `push_known` in `crates/hostler-wire/src/field.rs:93`. */
function qualified(name, place) {
  const [, crate, module] = /.*\/([^/]+)\/src\/(.*)\.rs:/.exec(place ?? '') ?? [];
  const bare = shortName(name);
  if (!crate || bare.includes('::')) return name;
  const path = [crate.replace(/-\d.*$/, '').replaceAll('-', '_'), ...module.split('/').filter((part) => part !== 'mod' && part !== 'lib')];
  return `${path.join('::')}::${bare}`;
}

/** A function's name without offset, hash and type arguments, which hide the name. */
export function shortName(symbol) {
  let name = symbol.replace(/\+0x[0-9a-f]+$/, '').replace(/::h[0-9a-f]{16}$/, '').replaceAll(';', ':');
  for (let before = ''; before !== name; ) {
    before = name;
    name = name.replace(/(?<=[\w}]|::)<[^<>]*>/g, '');
  }
  return name;
}
