// What an ES module in TypeScript writes. It is compiled only.
import load, { serialize, type Payload } from '@hostler/render';
import { renderReact } from '@hostler/render/react';
import hypernova, { createRenderer, hypernova as byName, type Application, type Config, type Plugin } from '@hostler/render/server';

const Greeting = ({ who }: { who: string }) => `Hello, ${who}`;
const components = { Greeting: renderReact('Greeting', Greeting), Plain: (props: { text: string }) => serialize('Plain', props.text, props) };
const plugins: Plugin[] = [{ jobEnd: ({ name, duration }) => console.log(name, duration) }];
const config: Config = { getComponent: (name) => components[name as keyof typeof components], plugins };

hypernova({ ...config, port: process.env.PORT ?? 3030, host: process.env.HOST ?? 'localhost' });
byName(config, (app) => void app);
createRenderer(config);
load({ server: () => 1, client: () => 2 }).toFixed();
void (load.load('Plain') satisfies Payload[]);

// An application of its own, with more methods than the package needs.
interface Express extends Application {
  get(path: string, handler: () => void): void;
}
declare const express: () => Express;
hypernova({ ...config, createApplication: () => express() }, (app) => app.get('/health', () => {})).get('/later', () => {});
hypernova({ ...config, createApplication: express }, (app: Express, { pid }) => app.get(`/${pid}`, () => {}));
const withExpress: Config<Express> = { ...config, createApplication: express };
hypernova(withExpress).get('/later', () => {});
// @ts-expect-error: without createApplication there is no Express
hypernova(config, (app) => app.get('/health', () => {}));
// @ts-expect-error: not a function
hypernova({ getComponent: 1 });
