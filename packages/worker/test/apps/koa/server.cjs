// Koa 3, behind a proxy.
const Koa = require('koa');

const app = new Koa({ proxy: true });
app.use((ctx) => {
  ctx.body = { app: 'koa', ip: ctx.ip, proto: ctx.protocol, port: server.address().port };
});

const server = app.listen(3000);
