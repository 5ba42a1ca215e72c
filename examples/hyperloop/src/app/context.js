// The context of a page: functions and settings of the site for all parts.
import { createContext, useContext } from 'react';

export const SiteContext = createContext();

/** `{ base, go(href, { replace }), reload(path) }`. The object must never change: React would render parts again that have not arrived yet. */
export const useSite = () => useContext(SiteContext);
