// React 16 and 17 in the browser, which have no roots. Knows no server.
import type { ComponentType, ReactElement } from 'react';
import * as ReactDOM from 'react-dom';
import type { Payload } from './load.js';
import { isEmpty, mountAll } from './mount.js';
import { elementOf, type ReactOptions } from './react-options.js';

export type { Island, ReactOptions } from './react-options.js';

type Render = (element: ReactElement, node: Element) => void;

/** The types at hand are those of React 19, which has neither. */
const { hydrate: takeOver, render } = ReactDOM as unknown as { hydrate: Render; render: Render };

/** Brings every place of the component on the page to life, and returns the component, as hypernova-react does. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  mountAll(name, (payload) => hydrate(name, Component, payload, options));
  return Component;
}

export { renderReact as renderReactAsync };

/** Nothing is to be done in the browser. */
export function renderReactStatic(): void {}

/** One place, as `load` gives it. */
export function hydrate<Props extends object>(name: string, Component: ComponentType<Props>, { node, data, id }: Payload, options: ReactOptions = {}): void {
  const draw = isEmpty(node) ? render : takeOver;
  draw(elementOf(Component, data, { name, id }, options), node);
}
