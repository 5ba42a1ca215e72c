import { createServer } from 'node:http';

createServer(() => process.exit(1)).listen(process.env.PORT);
