// Follows the Dockerfiles of packaging/docker without Docker, and runs the images in folders: as process 1, without root, without a network.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../steps.mjs';
import { debianWithNode } from './debian.mjs';
import { follow } from './dockerfile.mjs';
import { freshDebian, runIn, serveIn } from './root.mjs';
import { archiveOf, expect, only, VERSION } from './steps.mjs';

const DOCKERFILES = join(root, 'packaging/docker');
const CONFIG = '[server]\nlisten = ":8080"\nadmin = "127.0.0.1:8081"\n\n[[routes]]\nmatch = "*"\nrespond = "from the image\\n"\n';
const APP = "require('http').createServer((request, response) => response.end('served as ' + process.getuid())).listen(process.env.PORT);";
const APP_CONFIG = '[server]\nlisten = ":8080"\n\n[pools.web]\ncommand = "node server.js"\n\n[[routes]]\nmatch = "*"\npool = "web"\n';

/** The image of Hostler alone, then the image of an app that copies it. */
export function imageTrials({ dist, folder, cpu, version }) {
  let hostler;
  const bases = async (name, into) => {
    if (name === 'scratch') mkdirSync(into, { recursive: true });
    else if (name === 'debian:12-slim') await freshDebian('bookworm', into);
    else if (name === 'node:22-slim') await debianWithNode(into);
    else if (name === `hostler:${version}`) cpSync((await hostler).folder, into, { recursive: true, verbatimSymlinks: true });
    else throw new Error(`the trial has no stand-in for the image ${name}`);
    return {};
  };
  const build = async () => {
    only(dist, archiveOf(`linux-${cpu.npm}-musl`));
    const args = { VERSION: version, TARGETARCH: cpu.debian };
    return follow(join(DOCKERFILES, 'Dockerfile'), { context: dist, folder: join(folder, 'image-hostler'), bases, args });
  };
  return [
    { name: 'image of Hostler (scratch)', run: async () => tryImage(await (hostler = build())) },
    { name: 'image of an app', run: async () => tryApp({ folder, bases, version }) },
  ];
}

async function tryImage(image) {
  expect('--version', runIn(image.folder, [...image.entrypoint, '--version'], { user: image.user }), VERSION);
  expect('the user', image.user, /^65532:65532$/);
  writeFileSync(join(image.folder, 'etc/hostler/hostler.toml'), CONFIG);
  const service = await serveIn(image.folder, [...image.entrypoint, ...image.cmd], { port: 8080, user: image.user });
  expect('answer', service.get('/'), /^from the image\n$/);
  await service.stop();
}

async function tryApp({ folder, bases, version }) {
  const app = join(folder, 'app');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'server.js'), APP);
  writeFileSync(join(app, 'hostler.toml'), APP_CONFIG);
  const about = { name: 'app', version: '1.0.0', private: true };
  writeFileSync(join(app, 'package.json'), JSON.stringify(about));
  writeFileSync(join(app, 'package-lock.json'), JSON.stringify({ ...about, lockfileVersion: 3, packages: { '': about } }));
  const args = { HOSTLER: `hostler:${version}` };
  const image = await follow(join(DOCKERFILES, 'app.Dockerfile'), { context: app, folder: join(folder, 'image-app'), bases, args });
  const { env, user, workdir } = image;
  const service = await serveIn(image.folder, image.cmd, { port: 8080, user, env, folder: workdir });
  expect('answer of the app', service.get('/'), /^served as 1000$/);
  await service.stop();
}
