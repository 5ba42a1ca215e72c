// A common layout: a package.json with a start script and a server beside it, written for PM2.
require('../pm2/server.cjs');
