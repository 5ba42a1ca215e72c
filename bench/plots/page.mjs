// docs/benchmarks.md: what is not met first, then a plot and a verdict for each part. Knows the targets that the sections return, not how they
// are measured.
import { reasons } from '../report/reasons.mjs';
import { draw } from './svg.mjs';
import { figures } from './figures.mjs';

/** For each part: its name, and what the plot compares. The figures come from the results. */
const PARTS = {
  tail: ['Waiting for a page', 'Two workers render pages, and one page in ten takes much longer than the others. A bar is short if few pages wait behind a long one. The ideal queue is the least that is possible.'],
  overload: ['Overload', 'Twice as many requests arrive as the workers can render. A page that comes after more than a second counts as nothing, because most visitors have left. HAProxy\'s queue is in the order of arrival: with a limit of 5 s in it, as in Airbnb\'s stack, most pages come later than that.'],
  fair: ['One crawler, many people', 'Four crawlers ask for twice what the workers can render, and people for 0.3 of it.'],
  proxy: ['Cost of a request', 'A small response from a fast member: this is what Hostler itself costs. The relay in C shows what the kernel alone takes.'],
  deploys: ['Deploys', 'All workers are replaced, again and again, at half the capacity.'],
  scale: ['More members, routes and threads', 'Each dark bar has more of one thing than a grey bar.'],
  idle: ['Memory and start', 'What Hostler adds to plain Node.'],
  render: ['Server-side rendering with Hypernova', 'The same components and the same React, behind Hostler with `@hostler/render` and behind npm hypernova.'],
  photos: ['Apps that wait', 'One worker waits for hundreds of upstream calls at once. No proxy can be faster than the upstream itself.'],
  'any-app': ['Any app, with nothing set', '`hostler run` with no other setting, beside Node\'s cluster and PM2.'],
  tls: ['TLS and HTTP/2', 'Handshakes, and requests on kept connections.'],
  websockets: ['WebSockets', 'Small messages through many sockets.'],
  cache: ['Cache', 'Responses from the cache, beside nginx and Varnish.'],
  memcached: ['A cache that several Hostlers share', 'A memcached that is slow, broken or gone must not slow down responses from memory.'],
  lookups: ['Lookups', 'The place of an address and of a postal code. nginx sends a fixed text and looks nothing up.'],
  'many-apps': ['Many apps on one machine', 'An app without requests has no process.'],
};
const MET = 'met';
const isMissed = ([, , , verdict]) => verdict.includes('not met');
const isOpen = (target) => target[3] !== MET && !isMissed(target);

/** The files below docs/, as a map from path to text. `parts`: each with its raw `result` and its `targets`. */
export function benchmarkFiles(parts) {
  const known = Object.keys(PARTS).flatMap((name) => parts.filter(({ result }) => result.scenario === name));
  const plots = known.map(({ result }) => [`benchmarks/${result.scenario}.svg`, draw(figures[result.scenario](result))]);
  return new Map([['benchmarks.md', page(known)], ...plots]);
}

function page(parts) {
  return `<!-- Written by bench/render.mjs from bench/results/*.json. Do not edit: run \`npm run bench\`, or \`node bench/render.mjs\`. -->
# Benchmarks: verdicts and plots

${counted(parts.flatMap(({ targets }) => targets))}
${measured(parts.map(({ result }) => result))}
[All figures](../bench/RESULTS.md) has the machine, the versions, the method and every number. [The method](../bench/README.md) says what each part measures.
Absolute times are valid for that machine. Ratios of runs side by side depend less on the machine, but they do.
Hostler is built with a profile of its own load, which comes from short runs of most of these parts. The other programs are as Debian and npm have them, without such a profile. [Decision 39](decisions/0039-build-profile.md) says what it gains.

## What is not met

${listOf(parts, isMissed) || 'Every target that was decided is met.'}

## What is not decided

The rounds disagree, or there were too few of them.

${listOf(parts, isOpen) || 'Nothing.'}

${parts.map(section).join('\n')}`;
}

function listOf(parts, wanted) {
  return parts.flatMap(({ result: { scenario }, targets }) => {
    const found = targets.filter(wanted);
    if (found.length === 0) return [];
    const worst = found.map(([name, measured, limit]) => `  * ${name}: ${measured}, wanted ${limit}`.replaceAll('<', '&lt;'));
    const [title] = PARTS[scenario];
    return [`* [${title}](#${anchor(title)}): ${found.length} of ${targets.length}. ${reasonsOf(scenario, found)}\n${worst.join('\n')}`];
  }).join('\n');
}

function section({ result: { scenario }, targets }) {
  const [title, about] = PARTS[scenario];
  const [missed, open, met] = [isMissed, isOpen, (target) => target[3] === MET].map((wanted) => targets.filter(wanted).length);
  const words = [missed > 0 && `not met: ${missed}`, open > 0 && `not decided: ${open}`, met > 0 && `met: ${met}`].filter(Boolean).join(', ');
  return `## ${title}

${about}

**Verdict: ${missed + open === 0 ? 'every target is met' : words}** (of ${targets.length}).

![${title}: plot](benchmarks/${scenario}.svg)
`;
}

/** The reasons of some targets, each sentence once. */
function reasonsOf(scenario, targets) {
  const sentences = targets.flatMap(([name]) => (reasons[scenario]?.[name] ?? 'Not explained yet.').split(/(?<=\.) (?=[A-Z])/));
  return [...new Set(sentences)].join(' ');
}

function counted(targets) {
  const [missed, open] = [isMissed, isOpen].map((wanted) => targets.filter(wanted).length);
  return `Of ${targets.length} targets, **${missed} are not met**, ${open} are not decided, and ${targets.length - missed - open} are met.`;
}

/** On which days, with which commits and on which machine: a figure without them says little. */
function measured(results) {
  const named = (value) => [...new Set(results.map(value))];
  const days = named(({ date }) => date.slice(0, 10)).sort();
  const commits = named(({ commit, dirty, binary }) => `\`${commit.slice(0, 12)}\`${dirty ? ' with uncommitted changes' : ''}${binary ? ' with another program' : ''}`);
  return `Measured on ${days.join(', ')} at ${commits.length === 1 ? 'commit' : 'commits'} ${commits.join(', ')}, on ${named(({ machine }) => `${machine.cores} cores of ${machine.cpu}`).join(' and ')}.`;
}

/** As GitHub and mdBook make it from a heading. */
const anchor = (title) => title.toLowerCase().replace(/[^\w -]/g, '').replaceAll(' ', '-');
