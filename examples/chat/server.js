// Starts the chat. Its address and its folder come from the environment.
import { fileURLToPath } from 'node:url';
import { createChat } from './src/chat.js';

const folder = process.env.DATA_FOLDER || fileURLToPath(new URL('data', import.meta.url));
const base = (process.env.BASE_PATH ?? '').replace(/\/+$/, '');
const { server, close } = await createChat({ folder, base });

server.listen(process.env.PORT ?? 3000, () => {
  console.log(`listening on http://localhost:${server.address().port}${base}/`);
});

let closing;
process.on('SIGTERM', () => (closing ??= close()));
process.on('SIGINT', () => (closing ??= close()));
