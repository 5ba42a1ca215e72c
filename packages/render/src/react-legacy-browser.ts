// React 16 and 17 in the browser, which have no roots. Knows no server.
import type { ComponentType, ReactElement } from 'react';
import * as ReactDOM from 'react-dom';
import type { Payload } from './load.js';
import { isEmpty, mountAll } from './mount.js';
import { elementOf, type ReactOptions } from './react-options.js';

export type { Island, ReactOptions } from './react-options.js';

type Render = (element: ReactElement, node: Element) => void;

/** The installed types are those of React 19, which has neither function. */
const { hydrate: takeOver, render } = ReactDOM as unknown as { hydrate: Render; render: Render };

/** Hydrates the component at every place on the page, and returns the component, as hypernova-react does. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  mountAll(name, (payload) => hydrate(name, Component, payload, options));
  return Component;
}

export { renderReact as renderReactAsync };

/** Does nothing in the browser. */
export function renderReactStatic(): void {}

/** Hydrates one place, as `load` returns it. */
export function hydrate<Props extends object>(name: string, Component: ComponentType<Props>, { node, data, id }: Payload, options: ReactOptions = {}): void {
  const draw = isEmpty(node) ? render : takeOver;
  draw(elementOf(Component, data, { name, id }, options), node);
}
