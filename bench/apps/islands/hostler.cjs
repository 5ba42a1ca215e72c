// The same service on @hostler/render; how many of it there are is for Hostler to say.
const hypernova = require('@hostler/render/server');
const { renderReact } = require('@hostler/render/react');
const { Homes, Button } = require('./components.cjs');

const components = { Homes: renderReact('Homes', Homes), Button: renderReact('Button', Button) };

hypernova({ getComponent: (name) => components[name], host: '127.0.0.1', port: Number(process.env.PORT ?? 3030) });
