// React 18 and 19 in the browser: hydrates the server's markup, or renders where the server could not. Knows no server.
import type { ComponentType } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import type { Payload } from './load.js';
import { isEmpty, mountAll } from './mount.js';
import { elementOf, type ReactOptions } from './react-options.js';

export type { Island, ReactOptions } from './react-options.js';

/** Hydrates the component at every place on the page, and returns the component, as hypernova-react does. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  mountAll(name, (payload) => void hydrate(name, Component, payload, options));
  return Component;
}

export { renderReact as renderReactAsync };

/** Does nothing in the browser. */
export function renderReactStatic(): void {}

/** Hydrates one place, as `load` returns it. `unmount` of the returned root removes it from the page. */
export function hydrate<Props extends object>(name: string, Component: ComponentType<Props>, { node, data, id }: Payload, options: ReactOptions = {}): Root {
  const element = elementOf(Component, data, { name, id }, options);
  // The server uses the same prefix, so that ids of useId differ between the islands of a page.
  const rootOptions = { ...options.root, identifierPrefix: id };
  if (!isEmpty(node)) return hydrateRoot(node, element, rootOptions);
  const root = createRoot(node, rootOptions);
  root.render(element);
  return root;
}
