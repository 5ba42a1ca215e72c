// One server with apps that read paths each in its own way, told apart by Host: each says ADMIN where it takes a path for one below
// /admin, else its own name and what it has read.
const http = require('node:http');
const path = require('node:path');
const express = require('express');
const Koa = require('koa');
const { Hono } = require('hono');

const app = express();
app.use('/admin', (req, res) => res.send('ADMIN'));
app.use((req, res) => res.send(`express ${req.url}`));

const koa = new Koa();
koa.use((ctx) => {
  ctx.body = isAdmin(ctx.path) ? 'ADMIN' : `koa ${ctx.path}`;
});

const hono = new Hono();
hono.all('/admin/*', (c) => c.text('ADMIN'));
hono.all('*', (c) => c.text(`hono ${c.req.path}`));

const isAdmin = (name) => name === '/admin' || name.startsWith('/admin/');
const reads = (read) => (req, res) => {
  let name;
  try {
    name = read(req.url.split('?')[0], req);
  } catch {
    name = 'malformed';
  }
  res.end(isAdmin(name) ? 'ADMIN' : `read ${name}`);
};

// `routing` is Fastify's own handler; the second one stops at semicolons, as Fastify 4 did.
const fastifies = [{}, { routerOptions: { useSemicolonDelimiter: true, ignoreDuplicateSlashes: true } }].map((options) => {
  const fastify = require('fastify')(options);
  fastify.all('/admin', () => 'ADMIN');
  fastify.all('/admin/*', () => 'ADMIN');
  fastify.setNotFoundHandler((request, reply) => reply.code(200).send(`fastify ${request.url}`));
  return fastify;
});

async function start() {
  await Promise.all(fastifies.map((fastify) => fastify.ready()));
  const { getRequestListener } = await import('@hono/node-server').catch(() => ({}));
  const readers = {
    'express.test': app,
    'koa.test': koa.callback(),
    'fastify.test': fastifies[0].routing,
    'fastify4.test': fastifies[1].routing,
    'url.test': reads((target) => new URL(target, 'http://localhost').pathname),
    'request-url.test': reads((target, req) => new URL(`http://${req.headers.host}${target}`).pathname),
    'decoded-url.test': reads((target) => decodeURIComponent(new URL(target, 'http://localhost').pathname)),
    'decoded.test': reads((target) => decodeURIComponent(target)),
    'normalised.test': reads((target) => path.posix.normalize(decodeURIComponent(target))),
    'windows.test': reads((target) => path.posix.normalize(decodeURIComponent(target).replaceAll('\\', '/'))),
    'merged.test': reads((target) => target.replace(/\/+/g, '/')),
  };
  if (getRequestListener) readers['hono.test'] = getRequestListener(hono.fetch);
  const server = http.createServer((req, res) => {
    const host = req.headers['x-reader'];
    readers[host](req, res);
  });
  server.listen(3000);
}

start();
