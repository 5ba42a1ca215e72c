// What a CommonJS module in TypeScript writes. It is compiled only.
import hypernova = require('@hostler/render/server');

const config: hypernova.Config = { getComponent: async (name, { props }) => () => `${name} ${JSON.stringify(props)}` };
hypernova(config);
hypernova.createRenderer(config);
// @ts-expect-error: there is no such thing
hypernova.cluster();
