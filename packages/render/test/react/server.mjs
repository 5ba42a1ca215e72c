// The components as Hypernova's render functions. Knows no HTTP.
import { renderReact, renderReactAsync, renderReactStatic } from '@hostler/render/react';
import * as React from 'react';
import { Counter, Frameless, Patient, Throws, Torn } from './components.mjs';

export const counter = renderReact('Counter.js', Counter);
export const framed = renderReact('Framed', Counter, { wrap: (element, { name, id }) => React.createElement('main', { title: `${name} ${id}` }, element) });
export const plain = renderReactStatic('Counter.js', Counter);
export const throws = renderReact('Throws', Throws);
export const patient = renderReactAsync('Patient', Patient);
export const frameless = renderReactAsync('Frameless', Frameless);
export const impatient = renderReact('Patient', Patient);
export const seen = [];
export const watched = renderReactAsync('Patient', Patient, { onError: (error, island) => seen.push([error.message, island]) });
export const hurried = renderReactAsync('Patient', Patient, { timeLimit: 1, onError: (error) => seen.push([error.message]) });
export const unhurried = renderReactAsync('Patient', Patient, { timeLimit: Infinity });

export const reported = [];
const reporting = { onError: (error, { name }) => reported.push(`${name}: ${error.message}`) };
export const tornAtOnce = renderReact('AtOnce', Torn, reporting);
export const tornLater = renderReactAsync('Later', Torn, reporting);
