// A rendering service on its own Express application.
import hypernova, { createRenderer } from '@hostler/render/server';
import express from 'express';

if (typeof createRenderer !== 'function') throw new Error('the named exports are missing');
const createApplication = () => express();
const getComponent = () => (props, { name }) => `${name} ${JSON.stringify(props)}`;

const app = hypernova({ getComponent, createApplication, getCPUs: () => 7, listenArgs: [Number(process.env.PORT), '127.0.0.1'] }, (mine, theProcess) => {
  mine.get('/health', (_request, response) => response.send(`${theProcess.pid}`));
  mine.use('/echo', (request, response) => response.json(request.body));
});
app.get('/later', (_request, response) => response.send('later'));
