// The options that must be the same on the server and in the browser, so that React can hydrate the markup. Knows neither
// side.
import { createElement, type ComponentType, type ReactElement } from 'react';
import type { RootOptions } from 'react-dom/client';

export interface Island {
  name: string;
  id: string;
}

export interface ReactOptions {
  /** Wraps the component, for example in providers. Called on both sides, and must return the same on both. */
  wrap?(element: ReactElement, island: Island): ReactElement;
  /**
   * On the server, with Suspense: gets an error inside a boundary, which the browser then renders. Without this option, React
   * writes the error to the log.
   */
  onError?(error: unknown, island: Island): void;
  /**
   * On the server, with Suspense: after this many milliseconds, the missing parts are left to the browser. Default: no limit
   * before the job's own end.
   */
  timeLimit?: number;
  /** In the browser, React 18 and 19: options of the root, for example onRecoverableError, which is called when markup does not match. */
  root?: Omit<RootOptions, 'identifierPrefix'>;
}

export function elementOf<Props extends object>(Component: ComponentType<Props>, data: unknown, island: Island, options: ReactOptions): ReactElement {
  const element = createElement(Component, data as Props);
  return options.wrap ? options.wrap(element, island) : element;
}
