// The content of a page's bundle with React 16 and 17. Knows no server.
import { renderReact } from '@hostler/render/react-legacy';
import { Counter } from './components.mjs';

window.mounted = renderReact('Counter.js', Counter);
