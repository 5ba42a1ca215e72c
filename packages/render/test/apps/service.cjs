// A rendering service that misbehaves on demand.
const { once } = require('node:events');
const { setTimeout: sleep } = require('node:timers/promises');
const hypernova = require('@hostler/render/server');

const FOREVER = 1e9;
let outside = () => {};
setInterval(() => outside(), 1); // made before any job, so it belongs to none

const components = {
  ok: () => 'ok',
  async timer() {
    setTimeout(() => {
      throw new Error('in a timer');
    }, 1);
    await sleep(FOREVER);
  },
  async promise() {
    Promise.reject(new Error('in a promise'));
    await sleep(FOREVER);
  },
  async nothing() {
    Promise.reject(null);
    await sleep(FOREVER);
  },
  late() {
    setTimeout(() => {
      throw new Error('too late');
    }, 1);
    return 'in time';
  },
  lateRejection() {
    setTimeout(() => Promise.reject(new Error('rejected too late')), 1);
    return 'in time';
  },
  async outside() {
    await new Promise((resolve) => {
      outside = () => {
        setImmediate(resolve);
        throw new Error('without a job');
      };
    });
    return 'rendered all the same';
  },
  async rejectOutside() {
    await new Promise((resolve) => {
      outside = () => {
        outside = () => {};
        setImmediate(resolve);
        Promise.reject(new Error('rejected without a job'));
      };
    });
    return 'rendered';
  },
  async throwsAtAbort(_props, { signal }) {
    signal.addEventListener('abort', () => {
      throw new Error('at the abort');
    });
    signal.addEventListener('abort', () => Promise.reject(new Error('rejected at the abort')));
    console.log('waiting');
    await sleep(FOREVER);
  },
  listen() {
    process.on('unhandledRejection', () => {});
    return 'listens';
  },
  async untilSignal() {
    console.log('waiting');
    await Promise.race(['SIGTERM', 'SIGINT'].map((signal) => once(process, signal)));
    await sleep(1);
    return 'waited';
  },
};

const plugins = [
  {
    initialize: (config) => console.log(`initialize ${config.port}`),
    shutDown: async (config, error) => {
      await sleep(1);
      console.log(`shutDown ${config.port} ${error?.message}`);
    },
    jobStart({ name }) {
      if (name !== 'refused') return;
      setTimeout(() => {
        throw new Error('after the refusal');
      }, 1);
      throw new Error('refused');
    },
  },
];
hypernova({ getComponent: (name) => components[name], plugins, port: Number(process.env.PORT), host: '127.0.0.1' });
if (process.env.SECOND) hypernova({ getComponent: () => components.ok, port: 0, host: '127.0.0.1' });
