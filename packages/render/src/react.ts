// React 16 to 19 on the server: makes render functions for Hypernova's protocol from components. Knows no browser;
// react-browser is for the browser.
import { createElement, type ComponentType } from 'react';
import { renderToStaticMarkup, renderToString } from 'react-dom/server';
import { newId, serialize } from './markup.js';
import { elementOf, type ReactOptions } from './react-options.js';
import { renderWhole } from './react-whole.js';

export type { Island, ReactOptions } from './react-options.js';

/** The used part of a job's context. Without a context, each call makes its own id. */
export interface ReactContext {
  id?: string;
  signal?: AbortSignal;
}

/** Renders at once. A part that suspends is sent as its fallback, and the browser renders it. */
export function renderReact<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  return (props: Props, { id = newId() }: ReactContext = {}): string => {
    const html = renderToString(elementOf(Component, props, { name, id }, options), { identifierPrefix: id });
    return serialize(name, html, props, id);
  };
}

/** Waits for all parts that suspend, as long as the job's signal allows. Needs React 18 or later. */
export function renderReactAsync<Props extends object>(name: string, Component: ComponentType<Props>, options: ReactOptions = {}) {
  return async (props: Props, { id = newId(), signal }: ReactContext = {}): Promise<string> => {
    const island = { name, id };
    const html = await renderWhole(elementOf(Component, props, island, options), island, options, signal);
    return serialize(name, html, props, id);
  };
}

/** Markup only: the browser does not hydrate it. */
export function renderReactStatic<Props extends object>(_name: string, Component: ComponentType<Props>) {
  return (props: Props): string => renderToStaticMarkup(createElement(Component, props));
}
