// npm hypernova as in its README, with its own cluster. Two workers, and no log of successful requests, because Hostler's
// service writes none.
const hypernova = require('hypernova/server');
const { renderReact } = require('hypernova-react');
const { Homes, Button } = require('./components.cjs');

const components = { Homes: renderReact('Homes', Homes), Button: renderReact('Button', Button) };

hypernova({ getComponent: (name) => components[name], getCPUs: () => Number(process.env.WORKERS), host: '127.0.0.1', port: Number(process.env.PORT) });
