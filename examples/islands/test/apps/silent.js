import { createServer } from 'node:http';

createServer(() => {}).listen(process.env.PORT);
