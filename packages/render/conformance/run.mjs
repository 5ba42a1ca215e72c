// Runs all cases with both services and puts the results side by side. Does not decide which results are right.
import { AWAY, BINDINGS, DEADLY, EXCHANGES, IN_EXPRESS, PAGES } from './cases.mjs';
import { hypernovaClient, pyramidHypernova, raw } from './clients.mjs';
import { normalise } from './normalise.mjs';
import { installPeers } from './peers.mjs';
import { OWN_EXPRESS, startEdge, startOurs, startReference } from './targets.mjs';

/** `{ peers, rows, away }`. Each row has the case, the normalised `reference` and `ours`, and the unchanged `answers`. */
export async function runAll() {
  const peers = await installPeers();
  const services = [];
  const start = async (starting) => {
    const service = await starting;
    services.push(service);
    return service;
  };
  try {
    const reference = await start(startReference(peers));
    const ours = await start(startOurs(peers));
    const withExpress = [await start(startReference(peers, OWN_EXPRESS)), await start(startOurs(peers, OWN_EXPRESS))];
    const rows = [
      ...(await exchanges(reference, ours, [...EXCHANGES, ...BINDINGS])),
      ...(await exchanges(...withExpress, IN_EXPRESS)),
      ...(await deaths(peers, ours, start)),
      ...(await pages(peers, reference, ours)),
    ];
    return { peers, rows, away: await away(peers, await start(startEdge())) };
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

async function exchanges(reference, ours, cases) {
  const rows = [];
  for (const { what, differs, alike, ...exchange } of cases) {
    const [theirs, own] = [await raw(reference.url, exchange), await raw(ours.url, exchange)];
    rows.push(row('HTTP', { what, differs, alike }, theirs, own));
  }
  return rows;
}

async function deaths(peers, ours, start) {
  const rows = [];
  for (const { what, differs, ...exchange } of DEADLY) {
    const victim = await start(startReference(peers));
    const theirs = { ...(await raw(victim.url, exchange)), exit: await victim.died() };
    const own = await raw(ours.url, exchange);
    rows.push(row('HTTP', { what, differs }, theirs, own));
  }
  return rows;
}

async function pages(peers, reference, ours) {
  const rows = [];
  for (const { jobs, ...page } of PAGES) {
    const [theirs, own] = [await hypernovaClient(peers, reference.url, jobs), await hypernovaClient(peers, ours.url, jobs)];
    rows.push(row('hypernova-client', page, theirs, own));
  }
  if (peers.python) {
    const at = (url) => PAGES.map(({ jobs }) => ({ url, jobs: listed(jobs) }));
    const answers = await pyramidHypernova(peers, [...at(reference.url), ...at(ours.url)]);
    PAGES.forEach((page, index) => rows.push(row('pyramid-hypernova', page, withoutUrl(answers[index]), withoutUrl(answers[PAGES.length + index]))));
  }
  return rows;
}

/** What each client shows and reports when no worker renders: with Hostler's edge, and without any server. */
async function away(peers, edge) {
  const nothing = 'http://127.0.0.1:1';
  const found = [
    { by: 'hypernova-client', from: 'edge', ...(await hypernovaClient(peers, edge.url, AWAY)) },
    { by: 'hypernova-client', from: 'itself', ...(await hypernovaClient(peers, nothing, AWAY)) },
  ];
  if (peers.python) {
    const [byEdge, byItself] = await pyramidHypernova(peers, [{ url: edge.url, jobs: listed(AWAY) }, { url: nothing, jobs: listed(AWAY) }]);
    found.push({ by: 'pyramid-hypernova', from: 'edge', ...byEdge }, { by: 'pyramid-hypernova', from: 'itself', ...byItself });
  }
  return found.map(({ html, ...rest }) => ({ ...rest, html: Object.values(html) }));
}

function row(by, { what, differs, alike }, reference, ours) {
  return { by, what, differs, alike, answers: { reference, ours }, reference: normalise(reference), ours: normalise(ours) };
}

function listed(jobs) {
  return Object.entries(jobs).map(([name, data]) => ({ name, data }));
}

/** The messages of requests (Python) contain the address, in which the port differs. */
function withoutUrl(answer) {
  return JSON.parse(JSON.stringify(answer).replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'http://HOST'));
}
