// What an ES module in TypeScript writes. It is compiled only.
import load, { serialize } from '@hostler/render';
import { renderReact } from '@hostler/render/react';
import hypernova, { createRenderer, hypernova as byName, type Config, type Plugin } from '@hostler/render/server';

const Greeting = ({ who }: { who: string }) => `Hello, ${who}`;
const components = { Greeting: renderReact('Greeting', Greeting), Plain: (props: { text: string }) => serialize('Plain', props.text, props) };
const plugins: Plugin[] = [{ jobEnd: ({ name, duration }) => console.log(name, duration) }];
const config: Config = { getComponent: (name) => components[name as keyof typeof components], plugins };

hypernova(config);
byName(config, (app) => void app);
createRenderer(config);
load({ server: () => 1, client: () => 2 }).toFixed();
// @ts-expect-error: not a function
hypernova({ getComponent: 1 });
