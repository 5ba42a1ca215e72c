// React 18 and 19 in the browser: takes over what the server rendered, or renders where it could not. Knows no server.
import type { ComponentType } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import type { Payload } from './load.js';
import { isEmpty, mountAll } from './mount.js';
import { elementOf, type ReactOptions } from './react-options.js';

export type { Island, ReactOptions } from './react-options.js';

/** Brings every place of the component on the page to life, and returns the component, as hypernova-react does. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  mountAll(name, (payload) => void hydrate(name, Component, payload, options));
  return Component;
}

export { renderReact as renderReactAsync };

/** Nothing is to be done in the browser. */
export function renderReactStatic(): void {}

/** One place, as `load` gives it. The returned root's `unmount` takes it off the page. */
export function hydrate<Props extends object>(name: string, Component: ComponentType<Props>, { node, data, id }: Payload, options: ReactOptions = {}): Root {
  const element = elementOf(Component, data, { name, id }, options);
  // The server has used the same prefix, so that no two islands of a page share an id of useId.
  const rootOptions = { ...options.root, identifierPrefix: id };
  if (!isEmpty(node)) return hydrateRoot(node, element, rootOptions);
  const root = createRoot(node, rootOptions);
  root.render(element);
  return root;
}
