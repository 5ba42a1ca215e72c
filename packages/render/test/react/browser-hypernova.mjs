// Airbnb's own browser code, unmodified: npm hypernova and hypernova-react with React 16. Knows nothing of ours.
import { load } from 'hypernova';
import { renderReact } from 'hypernova-react';
import { Counter } from './components.mjs';

window.loaded = load('Counter.js').map(({ data }) => data);
renderReact('Counter.js', Counter);
