// A service whose plugin brings the components.
const hypernova = require('@hostler/render/server');

const plugin = {
  initialize(config) {
    config.getComponent = (name) => () => `${name} of the plugin`;
  },
};

hypernova({ getComponent: () => undefined, host: '127.0.0.1', port: Number(process.env.PORT), plugins: [plugin] });
