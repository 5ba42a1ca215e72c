// The content of a page's bundle with React 18 and 19. Knows no server.
import { renderReact, renderReactAsync, renderReactStatic } from '@hostler/render/react';
import { Counter, Patient } from './components.mjs';

window.mounted = renderReact('Counter.js', Counter, { root: { onRecoverableError: (error) => console.error('recovered', error) } });
renderReactAsync('Patient', Patient, { root: { onRecoverableError: (error) => console.error('recovered', error) } });
renderReactStatic('Plain', Counter);
