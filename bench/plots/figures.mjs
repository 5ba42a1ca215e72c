// What the plots of docs/benchmarks.md show: for each part, a figure from the rows of bench/results. Knows the rows, not how a figure is drawn.
import { summary } from '../lib/statistics.mjs';

const LESS = 'Shorter';
const MORE = 'Longer';
/** JSON has no infinity: null is a time that never came. */
const late = (us) => (us ?? Infinity) / 1000;
const cpuOf = ({ cpu_ns: ns, requests }) => ns / requests / 1000;

/** The bars of some peers, in their order. `rows` has all rows of a panel. Peers without a row have no bar. */
function bars(result, { rows, value, peers = result.peers, own = ['hostler'], ideal = [] }) {
  return peers.flatMap((peer) => {
    const values = rows.filter((row) => row.peer === peer).map(value);
    if (values.length === 0) return [];
    const kind = own.includes(peer) ? 'own' : ideal.includes(peer) ? 'ideal' : undefined;
    return [{ label: plain(result.titles[peer] ?? peer), ...summary(values), kind }];
  });
}

const plain = (title) => title.replaceAll('`', '');
const only = (rows, wanted) => rows.filter((row) => Object.entries(wanted).every(([name, value]) => row[name] === value));

export const figures = {
  proxy: (result) => ({
    title: 'CPU for one request',
    better: LESS,
    panels: result.cells.map((cell) => ({
      title: `${cell.slots} slot${cell.slots > 1 ? 's' : ''} for each member, ${cell.connections} connections`,
      unit: 'µs',
      bars: bars({ ...result, titles: { ...result.titles, relay: 'a relay that parses nothing (the floor)' } }, { rows: only(result.rows, cell), value: cpuOf, ideal: ['relay'] }),
    })),
  }),

  scale: (result) => ({
    title: 'CPU for one request, with more of everything',
    better: LESS,
    panels: [{
      unit: 'µs',
      bars: Object.entries(result.variants).map(([name, variant]) => ({
        label: variantTitle({ ...result.plain, ...variant }),
        ...summary(only(result.rows, { peer: name }).map(cpuOf)),
        kind: variant.than ? 'own' : undefined,
      })),
    }],
  }),

  tail: (result) => ({
    title: 'The slowest 1 % of pages wait so long (p99)',
    better: LESS,
    panels: result.loads.map((load) => ({
      title: `${Math.round(load * 100)} % of the capacity`,
      unit: 'ms',
      digits: 0,
      bars: bars(
        { ...result, titles: { ...result.titles, bound: 'an ideal queue, simulated', bare: 'two workers, connections dealt at random' } },
        { rows: only(result.rows, { load }), value: (row) => late(row.p99_us), peers: ['bound', 'hostler', 'cluster', 'chain', 'bare'], ideal: ['bound'] },
      ),
    })),
  }),

  overload: (result) => {
    const room = result.capacity.rate * result.settings.during;
    const panel = (title, unit, value) => ({ title, unit, digits: 0, bars: bars(result, { rows: result.rows, value: ({ overload }) => value(overload) }) });
    return {
      title: `Pages within 1 s, at ${result.settings.overload} x the capacity`,
      better: MORE,
      panels: [
        panel('Of all that the workers can render without a proxy', '%', (during) => (100 * during.completed_in_1s) / room),
        panel(`Requests without any response in ${result.settings.patience} s (here shorter is better)`, '', ({ failed }) => failed),
      ],
    };
  },

  fair: (result) => {
    const panel = (title, unit, value) => ({ title, unit, digits: 0, bars: bars(result, { rows: result.rows, value, own: ['fair'] }) });
    return {
      title: 'People beside four crawlers',
      better: MORE,
      panels: [
        panel('People that are answered', '%', ({ people }) => (100 * people.ok) / people.planned),
        panel('Half of the people wait less than this (here shorter is better)', 'ms', ({ people }) => late(people.p50_us)),
        panel("Crawlers' requests that are answered", '%', ({ crawlers }) => (100 * crawlers.ok) / crawlers.planned),
      ],
    };
  },

  deploys: (result) => ({
    title: `Failed requests in ${result.settings.deploys} deploys under load`,
    better: LESS,
    panels: [
      { title: 'Requests that failed', digits: 0, bars: bars(result, { rows: result.rows, value: ({ failed, refused }) => failed + refused }) },
      { title: 'The slowest 1 % while a deploy runs (p99)', unit: 'ms', digits: 0, bars: bars(result, { rows: result.rows, value: ({ during }) => late(during.p99_us) }) },
    ],
  }),

  idle: (result) => ({
    title: 'Memory and start',
    better: LESS,
    panels: [
      {
        title: result.rows.some((row) => row.own_bytes !== undefined) ? 'Memory of Hostler and its guard, without the workers' : 'Resident memory of Hostler, without its guard and its workers',
        unit: 'MB',
        bars: bars(result, { rows: result.rows, value: (row) => (row.own_bytes ?? row.resident_bytes) / 1e6, peers: ['hostler', 'hostler2'], own: ['hostler', 'hostler2'] }),
      },
      { title: 'Start of the process to the first response', unit: 'ms', digits: 0, bars: bars(result, { rows: result.rows, value: (row) => row.first_answer_ms, own: ['hostler', 'hostler2'] }) },
    ],
  }),

  render: (result) => ({
    title: 'Rendered batches each second',
    better: MORE,
    panels: Object.entries(result.islands).map(([island, { title }]) => ({
      title, unit: '/s', digits: 0, bars: bars(result, { rows: only(result.rows, { island }), value: ({ requests, seconds }) => requests / seconds }),
    })),
  }),

  photos: (result) => ({
    title: `Many requests at once that wait ${result.settings.latency} ms for an upstream`,
    better: LESS,
    panels: result.counts.map((count) => ({
      title: `Time until all of ${count} requests are answered`,
      unit: 'ms',
      digits: 0,
      bars: bars(result, {
        rows: only(result.rows, { count, phase: 'measured' }), value: (row) => row.took_us / 1000,
        peers: ['direct', ...result.peers], own: ['hostler', 'hostler2'], ideal: ['direct'],
      }),
    })),
  }),

  tls: (result) => ({
    title: 'CPU of TLS and HTTP/2',
    better: LESS,
    panels: result.cells.map(({ name, of }) => ({ title: `${TLS[name] ?? name}, for one ${of}`, unit: 'µs', bars: bars(result, { rows: only(result.rows, { cell: name }), value: cpuOf }) })),
  }),

  websockets: (result) => ({
    title: `CPU for one WebSocket message, ${result.settings.sockets} sockets`,
    better: LESS,
    panels: result.rates.map((rate) => ({
      title: `${rate.toLocaleString('en-GB')} messages a second`, unit: 'µs', bars: bars(result, { rows: only(result.rows, { rate }), value: (row) => row.cpu_ns / row.echoed / 1000 }),
    })),
  }),

  cache: (result) => ({
    title: 'CPU for one stored response',
    better: LESS,
    panels: ['1 kB', '100 kB', 'many'].map((cell) => ({
      title: cell === 'many' ? `${result.settings.keys.toLocaleString('en-GB')} different pages of ${result.settings.size / 1000} kB` : `One page of ${cell}`,
      unit: 'µs',
      bars: bars(result, { rows: only(result.rows, { cell }), value: cpuOf }),
    })),
  }),

  memcached: (result) => ({
    title: 'Stored responses each second, with each state of memcached',
    better: MORE,
    panels: [{
      unit: '/s',
      digits: 0,
      bars: result.states.map((state) => ({
        label: `memcached ${MEMCACHED[state] ?? state}`, kind: 'own',
        ...summary(only(result.rows, { cell: state }).map(({ hits }) => hits.requests / hits.seconds)),
      })),
    }],
  }),

  lookups: (result) => ({
    title: 'Lookups in one second of CPU time',
    better: MORE,
    panels: result.cells.map(({ name, path, addresses }) => ({
      title: addresses > 1 ? `${path}, ${addresses.toLocaleString('en-GB')} addresses` : path,
      unit: '',
      digits: 0,
      bars: bars({ ...result, titles: { ...result.titles, nginx: 'nginx with a fixed text' } }, { rows: only(result.rows, { cell: name }), value: ({ cpu_ns: ns, requests }) => requests / (ns / 1e9) }),
    })),
  }),

  'any-app': (result) => ({
    title: 'The slowest 1 % of responses, with nothing set (p99)',
    better: LESS,
    panels: Object.entries(result.cells).map(([cell, { title }]) => {
      const rows = only(result.rows, { cell });
      return {
        title: `An app that ${APPS[cell] ?? title}`, unit: 'ms', digits: 0,
        bars: bars(result, { rows, value: (row) => late(row.p99_us), own: ['auto'], peers: result.peers.filter((peer) => peer !== 'fixed') }),
      };
    }).filter(({ bars: drawn }) => drawn.some(({ median }) => Number.isFinite(median))),
  }),

  'many-apps': (result) => ({
    title: `Memory of ${result.settings.apps} apps on one machine`,
    better: LESS,
    panels: [{
      unit: 'MB',
      digits: 0,
      bars: [['started', 'before the first request'], ['awake', 'all apps are awake'], ['asleep', 'all apps are asleep again']].map(([state, label]) => ({
        label, kind: 'own', ...summary(only(result.rows, { state }).map(({ bytes }) => bytes / 1e6)),
      })),
    }],
  }),
};

const TLS = {
  full: 'Full handshake', resumed: 'Resumed handshake', http1: 'HTTP/1.1 over TLS', 'h2 x 1': 'HTTP/2, 100 connections x 1 stream', 'h2 x 20': 'HTTP/2, 10 connections x 20 streams',
};
const MEMCACHED = { none: 'is not configured', fine: 'works', slow: 'answers after 1 s', garbled: 'sends invalid responses', hung: 'never answers', gone: 'does not run' };
const APPS = {
  wait20: 'waits 20 ms', wait200: 'waits 200 ms', data: 'waits, then computes (50 at once)', dataLight: 'waits, then computes (8 at once)', page: 'computes 20 ms', mixed: 'sometimes computes (mixed)', streams: 'has open event streams', flood: 'gets 500 requests at its start',
};

function variantTitle({ members, slots, routes, threads, connections, keys, fair }) {
  const counted = (count, word) => `${count.toLocaleString('en-GB')} ${word}${count === 1 ? '' : 's'}`;
  return `${counted(members, 'member')} x ${counted(slots, 'slot')}, ${counted(routes, 'route')}, ${counted(threads, 'thread')}, c = ${connections}${keys ? `, ${counted(keys, 'key')}` : ''}${fair ? ', fair' : ''}`;
}
