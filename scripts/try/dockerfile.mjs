// Follows the steps of a Dockerfile in folders, without Docker: as far as FROM, ARG, WORKDIR, COPY, RUN and USER go. Knows no image of ours.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { runIn } from './root.mjs';

/** What a step may say that changes no file. */
const SETTINGS = ['ENTRYPOINT', 'CMD', 'EXPOSE'];

/**
 * Builds the last stage into a folder. `bases` makes the folder of a base image, by its name. Resolves with the folder and with what
 * the image is started with.
 */
export async function follow(dockerfile, { context, folder, bases, args = {} }) {
  const steps = parse(readFileSync(dockerfile, 'utf8'));
  const global = { ...args };
  const stages = {};
  let stage;
  for (const { word, rest } of steps) {
    if (word === 'FROM') {
      const [, base, name] = /^(?:--platform=\S* )?(\S+)(?: AS (\S+))?$/i.exec(fill(rest, global));
      const into = join(folder, name ?? 'image');
      rmSync(into, { recursive: true, force: true });
      stage = { ...begin(), folder: into, args: {}, ...(await bases(base, into)) };
      if (name) stages[name] = stage;
    } else if (word === 'ARG') {
      const [, name, value] = /^(\w+)(?:=(.*))?$/.exec(rest);
      const given = args[name] ?? (stage ? (value ?? global[name]) : value);
      (stage?.args ?? global)[name] = given;
    } else {
      take(stage, word, fill(rest, { ...stage.args, ...stage.env }, word), { context, stages });
    }
  }
  return stage;
}

const begin = () => ({ env: {}, workdir: '/', user: '0:0', shell: ['/bin/sh', '-c'], entrypoint: [], cmd: [] });

function take(stage, word, rest, { context, stages }) {
  const { folder, args, env, workdir, user, shell } = stage;
  if (word === 'WORKDIR') {
    stage.workdir = resolve(workdir, rest);
    mkdirSync(join(folder, stage.workdir), { recursive: true });
  } else if (word === 'ENV') {
    const [, name, value] = /^(\w+)=(.*)$/.exec(rest);
    env[name] = value;
  } else if (word === 'SHELL') {
    stage.shell = JSON.parse(rest);
  } else if (word === 'USER') {
    stage.user = rest;
  } else if (word === 'RUN') {
    runIn(folder, [...shell, rest], { user, folder: workdir, env: { ...args, ...env }, online: true });
  } else if (word === 'COPY') {
    copy(stage, rest.split(/\s+/), { context, stages });
  } else if (SETTINGS.includes(word)) {
    stage[word.toLowerCase()] = word === 'EXPOSE' ? rest : JSON.parse(rest);
  } else {
    throw new Error(`the trial does not know the step ${word}`);
  }
}

function copy(stage, words, { context, stages }) {
  const from = words[0].startsWith('--from=') ? words.shift().slice('--from='.length) : undefined;
  const source = from ? stages[from].folder : context;
  const to = words.pop();
  const into = join(stage.folder, resolve(stage.workdir, to));
  const files = words.flatMap((word) => (word.includes('*') ? matching(source, word) : [word]));
  if (files.length === 0) throw new Error(`COPY ${words.join(' ')}: there is no such file in ${source}`);
  for (const file of files) {
    const path = join(source, file);
    const isFolder = statSync(path).isDirectory();
    const target = !isFolder && (to.endsWith('/') || files.length > 1) ? join(into, basename(file)) : into;
    cpSync(path, target, { recursive: true, verbatimSymlinks: true });
  }
}

/** A `*` stands for any part of a name. */
function matching(folder, pattern) {
  const [before, ...after] = pattern.split('*');
  return readdirSync(folder).filter((name) => name.startsWith(before) && name.endsWith(after.at(-1)));
}

/** The steps, with continued lines joined and comments left out. */
function parse(text) {
  const lines = text.split('\n').filter((line) => !/^\s*#/.test(line));
  const joined = lines.join('\n').replace(/\\\n/g, ' ').split('\n');
  return joined.filter((line) => line.trim()).map((line) => {
    const [, word, rest] = /^(\S+)\s+([^]*)$/.exec(line.trim());
    return { word: word.toUpperCase(), rest };
  });
}

/** Docker fills in `${NAME}` except in RUN, where the shell does it. */
function fill(text, values, word = '') {
  if (word === 'RUN') return text;
  return text.replace(/\$\{(\w+)\}/g, (_, name) => values[name] ?? '');
}
