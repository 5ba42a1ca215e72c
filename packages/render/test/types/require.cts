// What a CommonJS module in TypeScript writes. It is compiled only.
import both = require('@hostler/render');
import { renderReact } from '@hostler/render/react';
import hypernova = require('@hostler/render/server');

const config: hypernova.Config = { getComponent: async (name, { props }) => () => `${name} ${JSON.stringify(props)}` };
hypernova(config);
hypernova.createRenderer(config);
// @ts-expect-error: there is no such thing
hypernova.cluster();
const id: both.Payload['id'] = both.newId();
both({ server: () => both.serialize('A', id, {}), client: () => both.load('A').join() }).trim();
renderReact('A', ({ text }: { text: string }) => text)({ text: 'a' }).trim();
