// React on the server, 16 to 19: components as render functions for Hypernova's protocol. Knows no browser; there, react-browser is used.
import { createElement, type ComponentType } from 'react';
import { renderToStaticMarkup, renderToString } from 'react-dom/server';
import { newId, serialize } from './markup.js';
import { elementOf, type ReactOptions } from './react-options.js';
import { renderWhole } from './react-whole.js';

export type { Island, ReactOptions } from './react-options.js';

/** What of a job's context matters here; without one, each call makes an id of its own. */
export interface ReactContext {
  id?: string;
  signal?: AbortSignal;
}

/** Renders at once; what suspends comes as its fallback, and the browser renders it. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  return (props: Props, { id = newId() }: ReactContext = {}): string => {
    const html = renderToString(elementOf(Component, props, { name, id }, options), { identifierPrefix: id });
    return serialize(name, html, props, id);
  };
}

/** Waits for everything that suspends, as long as the job's signal lets it; needs React 18 or later. */
export function renderReactAsync<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  return async (props: Props, { id = newId(), signal }: ReactContext = {}): Promise<string> => {
    const island = { name, id };
    const html = await renderWhole(elementOf(Component, props, island, options), island, options, signal);
    return serialize(name, html, props, id);
  };
}

/** Markup alone: nothing takes it over in the browser. */
export function renderReactStatic<Props extends object>(_name: string, Component: ComponentType<Props>) {
  return (props: Props): string => renderToStaticMarkup(createElement(Component, props));
}
