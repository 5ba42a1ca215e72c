// The options that must be the same on the server and in the browser, so that React can hydrate the markup. Knows neither
// side.
import { createElement, type Component, type ComponentType, type ReactElement } from 'react';

export interface Island {
  name: string;
  id: string;
}

/** Of React's `RootOptions`, in our own words, because the types of React 16 and 17 do not have them. */
export interface RootOptions {
  /** When the markup does not match. */
  onRecoverableError?(error: unknown, info: { componentStack?: string }): void;
  onUncaughtError?(error: unknown, info: { componentStack?: string | undefined }): void;
  onCaughtError?(error: unknown, info: { componentStack?: string | undefined; errorBoundary?: Component<unknown> | undefined }): void;
}

export interface ReactOptions {
  /** Wraps the component, for example in providers. Called on both sides, and must return the same on both. */
  wrap?(element: ReactElement, island: Island): ReactElement;
  /**
   * On the server, in `renderReactAsync`: gets an error inside a boundary of Suspense, which the browser then renders. Without
   * this option, React writes the error to the log. In `renderReact`, React drops such an error.
   */
  onError?(error: unknown, island: Island): void;
  /**
   * On the server, in `renderReactAsync`: after this many milliseconds, the missing parts are left to the browser. Default: no
   * limit before the job's own end.
   */
  timeLimit?: number;
  /** In the browser, React 18 and 19: options of the root. */
  root?: RootOptions;
}

export function elementOf<Props extends object>(Component: ComponentType<Props>, data: unknown, island: Island, options: ReactOptions): ReactElement {
  const element = createElement(Component, data as Props);
  return options.wrap ? options.wrap(element, island) : element;
}
