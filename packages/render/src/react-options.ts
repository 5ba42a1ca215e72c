// What the server and the browser must agree on for React to take over the markup. Knows neither of them.
import { createElement, type ComponentType, type ReactElement } from 'react';
import type { RootOptions } from 'react-dom/client';

export interface Island {
  name: string;
  id: string;
}

export interface ReactOptions {
  /** Puts providers and the like around the component; called on both sides, and must give the same on both. */
  wrap?(element: ReactElement, island: Island): ReactElement;
  /** Server, with Suspense: an error inside a boundary, which the browser then renders. Without this, React writes it to the log. */
  onError?(error: unknown, island: Island): void;
  /** Server, with Suspense: after so many milliseconds, what is not there yet is left to the browser. Without this, the job's own end counts. */
  timeLimit?: number;
  /** Browser, React 18 and 19: for the root, such as onRecoverableError, which hears of markup that did not match. */
  root?: Omit<RootOptions, 'identifierPrefix'>;
}

export function elementOf<Props extends object>(Component: ComponentType<Props>, data: unknown, island: Island, options: ReactOptions): ReactElement {
  const element = createElement(Component, data as Props);
  return options.wrap ? options.wrap(element, island) : element;
}
