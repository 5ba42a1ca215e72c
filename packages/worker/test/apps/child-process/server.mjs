// An app with a helper process that listens on its own port. GET / shows what the helper reports.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';

const server = http.createServer(async (req, res) => {
  const helper = fork(new URL('helper.mjs', import.meta.url), [process.env.HELPER_PORT ?? '4000']);
  const [seen] = await once(helper, 'message');
  helper.kill();
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify({ app: 'child-process', ip: req.socket.remoteAddress, port: server.address().port, helper: seen }));
});
server.listen(3000);
