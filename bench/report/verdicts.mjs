// The first page of RESULTS.md: each target of each part, met or not, and why not; and where each part was measured. Knows the
// targets that the sections return, not how they are measured.
import { reasons } from './reasons.mjs';
import { AGREED, table } from './format.mjs';
import { duration } from '../lib/progress.mjs';

const MET = 'met';
const UNEXPLAINED = 'not explained yet';

/** `parts`: each with its raw `result`, its `text`, and its `targets` as [name, measured, wanted, verdict]. `names`: all parts that there are. */
export function verdictsPage(parts, names) {
  const all = parts.flatMap(({ result, targets }) => targets.map((target) => ({ part: result.scenario, target })));
  const open = all.filter(({ target: [, , , verdict] }) => verdict !== MET);
  const met = parts.flatMap(({ result, targets }) => {
    const names = targets.filter(([, , , verdict]) => verdict === MET).map(([name, measured, wanted]) => `${name}: ${measured}, wanted ${escaped(wanted)}`);
    return names.length > 0 ? [[result.scenario, `${names.length} of ${targets.length}`, names.join('<br>')]] : [];
  });
  return `## Verdicts

${counted(all)}${rules(parts)}

${open.length === 0 ? 'Every target is met.' : `Not met, or not decided:\n\n${table(['part', 'target', 'measured', 'wanted', '', 'why'], open.map(openRow))}`}

Met:

${table(['part', 'targets', ''], met)}

${sitting(parts.map(({ result }) => result))}${missing(parts, names)}

${table(['part', 'commit', 'processor', 'measured', 'rounds', 'took'], parts.map(({ result }) => where(result)))}
`;
}

/** By which rule each part is judged. A part whose rounds must agree says so in its own section. */
function rules(parts) {
  const [byRounds, byMedian] = [true, false].map((has) => parts.filter(({ text }) => text.includes(AGREED) === has).map(({ result }) => `\`${result.scenario}\``).join(', '));
  return [
    byRounds && ` In ${byRounds} a verdict needs rounds that agree.`,
    byMedian && ` In ${byMedian} there are few rounds, and the median decides, or the sum of the failures: a target can be met although one round has missed it, which the spread shows.`,
  ].filter(Boolean).join('');
}

function missing(parts, names) {
  const others = names.filter((name) => !parts.some(({ result }) => result.scenario === name));
  return others.length > 0 ? ` **Not measured: ${others.join(', ')}.**` : '';
}

function openRow({ part, target: [name, measured, wanted, verdict] }) {
  const why = reasons[part]?.[name] ?? (verdict === 'not measured' ? '' : UNEXPLAINED);
  return [part, name, measured, escaped(wanted), verdict, why];
}

/** `<` before a letter would begin an element of HTML. */
const escaped = (text) => text.replaceAll('<', '&lt;');

function counted(all) {
  const kinds = new Map([['met', 0], ['not met', 0], ['not decided', 0], ['not measured', 0]]);
  for (const { target: [, , , verdict] } of all) {
    const kind = [...kinds.keys()].find((one) => verdict.replaceAll('*', '').startsWith(one));
    kinds.set(kind, kinds.get(kind) + 1);
  }
  return `${all.length} targets: ${[...kinds].filter(([, count]) => count > 0).map(([kind, count]) => `${count} ${kind}`).join(', ')}.`;
}

/** Says whether the parts can be read together: one run, one commit, a clean tree. */
function sitting(results) {
  const commits = new Set(results.map(({ commit }) => commit));
  const processors = new Set(results.map(({ machine }) => machine.cpu));
  const sittings = new Set(results.map((result) => result.sitting ?? result.date));
  const marks = [
    processors.size > 1 && `**These parts were measured on ${processors.size} different processors.**`,
    commits.size > 1 && `**These parts were measured at ${commits.size} different commits.**`,
    results.some(({ dirty }) => dirty) && '**Some parts were measured with uncommitted changes.**',
    results.some(({ binary }) => binary) && '**Some parts were measured with a program that `HOSTLER_BIN` named.** Its commit is not known.',
  ].filter(Boolean);
  const took = results.reduce((sum, { took_s: seconds = NaN }) => sum + seconds, 0);
  const together = `in one sitting${Number.isFinite(took) ? ` of ${duration(took)}` : ''}`;
  const one = sittings.size === 1 ? `These parts were measured ${together}.` : `These parts were measured in ${sittings.size} sittings.`;
  return [one, ...marks].join(' ');
}

function where({ scenario, commit, machine, dirty, binary, date, settings, took_s: seconds }) {
  const marks = [dirty && 'with uncommitted changes', binary && 'HOSTLER_BIN'].filter(Boolean);
  return [scenario, `\`${commit.slice(0, 12)}\`${marks.length > 0 ? ` (${marks.join(', ')})` : ''}`, machine.cpu, date.slice(0, 16).replace('T', ' '), String(settings.rounds), seconds === undefined ? '–' : duration(seconds)];
}
