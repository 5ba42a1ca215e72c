// Airbnb's unmodified browser code: npm hypernova and hypernova-react with React 16. Uses nothing of this package.
import { load } from 'hypernova';
import { renderReact } from 'hypernova-react';
import { Counter } from './components.mjs';

window.loaded = load('Counter.js').map(({ data }) => data);
renderReact('Counter.js', Counter);
