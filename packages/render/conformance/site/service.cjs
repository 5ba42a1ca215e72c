// A rendering service as an application of Hypernova writes it. Variables of its environment name the server to use, and
// say whether it brings its own Express application.
const hypernova = require(process.env.SERVER);
const { renderReact: renderWithAirbnbs, renderReactStatic } = require('hypernova-react');
const { createElement } = require('react');

const { renderReact: renderWithBindings } = require(process.env.BINDINGS);

const Greeting = ({ name, list = [] }) => createElement('p', { className: 'greeting' }, 'Hello, ', name, '! ', list.join(', '));

const components = {
  'Greeting.js': renderWithAirbnbs('Greeting.js', Greeting),
  'a/b c.js': renderWithAirbnbs('a/b c.js', Greeting),
  'Bindings.js': renderWithBindings('Bindings.js', Greeting),
  Static: renderReactStatic('Static', Greeting),
  Later: async (props) => `<i>${props.name}</i>`,
  Throws: () => {
    throw new TypeError('it broke: <b>&</b>');
  },
  ThrowsMessage: () => {
    throw Object.assign(new TypeError('x'), { message: { code: 7 } });
  },
  ThrowsText: () => {
    throw 'thrown text'; // eslint-disable-line no-throw-literal -- the case tests what Hypernova makes of it
  },
  Rejects: async () => {
    throw new RangeError('rejected');
  },
  RejectsText: () => Promise.reject('rejected text'),
  RejectsObject: () => Promise.reject({ code: 7 }),
  Empty: () => '',
  Undefined: () => undefined,
  Exits: () => process.exit(1),
  NotAFunction: { render: Greeting },
  Default: { default: () => '<i>default</i>' },
};

function getComponent(name, context) {
  if (name === 'Meta') {
    Object.assign(context.returnMeta, { seen: context.metadata });
    return (props) => JSON.stringify([context.name, context.token, props]);
  }
  if (name === 'CannotLook') throw new RangeError('it cannot look');
  return components[name];
}

/** Express 4 with other middleware before that of the service. */
function createApplication() {
  const [express, compression] = [require('express'), require('compression')];
  return express().use(compression(), express.urlencoded({ extended: false }), express.text());
}

/** A second parser of JSON, for requests that ask for it. */
function parseAgain() {
  const json = require('express').json();
  return (request, response, next) => (request.get('x-parse-again') ? json(request, response, next) : next());
}

const config = { devMode: true, host: '127.0.0.1', port: Number(process.env.PORT ?? 3030), getComponent };
if (process.env.OWN_EXPRESS) hypernova({ ...config, createApplication }, (app) => app.use(parseAgain()));
else hypernova(config);
