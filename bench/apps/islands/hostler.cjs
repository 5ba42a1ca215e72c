// The same service with @hostler/render. Hostler sets the number of its processes.
const hypernova = require('@hostler/render/server');
const { renderReact } = require('@hostler/render/react');
const { Homes, Button } = require('./components.cjs');

const components = { Homes: renderReact('Homes', Homes), Button: renderReact('Button', Button) };

hypernova({ getComponent: (name) => components[name], host: '127.0.0.1', port: Number(process.env.PORT ?? 3030) });
