// An ideal queue, simulated: one line in the order of arrival in front of k servers, with nothing between them (M/G/k for
// Poisson arrivals). No program that serves in the order of arrival has a lower p99 with the same arrivals and service times.
// Knows numbers only, neither peers nor the generator.
import { percentile } from './statistics.mjs';
import { mulberry32 } from './zipf.mjs';

/** The time of each request from its arrival to its end. `arrivals` ascend; `services[i]` is the service time of request i. */
export function fifo(arrivals, services, servers) {
  const free = new Float64Array(servers);
  return Float64Array.from(arrivals, (at, i) => {
    let first = 0;
    for (let k = 1; k < servers; k += 1) if (free[k] < free[first]) first = k;
    free[first] = Math.max(at, free[first]) + services[i];
    return free[first] - at;
  });
}

/**
 * The ideal times of the requests of `slices`, each a list of [time of arrival, kind]: two lists, one for each kind. Each slice
 * begins with an empty queue, as the slices of the peers do. A service time is drawn from the measured ones of its kind. `draws`:
 * how often the slices are simulated.
 */
export function idealTimes(slices, { services, servers, draws = 20, seed = 1 }) {
  const random = mulberry32(seed);
  const drawn = (kind) => services[kind][Math.floor(random() * services[kind].length)];
  const times = [[], []];
  for (let i = 0; i < draws; i += 1) {
    for (const slice of slices) {
      const found = fifo(slice.map(([at]) => at), slice.map(([, kind]) => drawn(kind)), servers);
      slice.forEach(([, kind], at) => times[kind].push(found[at]));
    }
  }
  return times;
}

/** The ideal p99 of all of them. */
export function idealP99(slices, settings) {
  return percentile(idealTimes(slices, settings).flat(), 99);
}

/** Poisson arrivals for one slice: [time, kind]. Kind 1 has the share `longShare`. */
export function poisson({ rate, seconds, longShare }, random) {
  const slice = [];
  for (let at = 0; ;) {
    at -= Math.log(1 - random()) / rate;
    if (at >= seconds) return slice;
    slice.push([at * 1e6, random() < longShare ? 1 : 0]);
  }
}

/**
 * How much the ideal p99 differs between samples of this size, without any peer: the relative standard deviation over
 * `samples` samples, each with its own arrivals, and their mean. Times are in microseconds.
 */
export function variation({ rate, seconds, longShare, slices, services, servers, samples = 100, seed = 1 }) {
  const random = mulberry32(seed);
  const p99s = Array.from({ length: samples }, (_, i) => {
    const sample = Array.from({ length: slices }, () => poisson({ rate, seconds, longShare }, random));
    return idealP99(sample, { services, servers, draws: 1, seed: seed + i + 1 });
  });
  const mean = p99s.reduce((sum, one) => sum + one, 0) / samples;
  const deviation = Math.sqrt(p99s.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (samples - 1));
  return { mean, relative: deviation / mean };
}

/**
 * The service times of one worker that does one request at a time, from hits of the load generator: a request begins when it was
 * sent or when the response before it has ended, whichever is later. So the time in the worker's own queue is not in them. The
 * order is that of the ends, because a worker may take requests in another order than they were sent. Returned by kind.
 */
export function serviceTimes(hits) {
  const services = [[], []];
  let free = 0;
  const ended = hits.map(([long, , lag, latency, at]) => ({ long, sent: at + lag, end: at + latency })).sort((one, other) => one.end - other.end);
  for (const { long, sent, end } of ended) {
    services[long].push(end - Math.max(sent, free));
    free = end;
  }
  return services;
}
