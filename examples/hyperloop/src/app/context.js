// What any part of a page may use of the site around it.
import { createContext, useContext } from 'react';

export const SiteContext = createContext();

/** `{ base, go(href, { replace }), reload(path) }`: never another one, for a change would have parts that are still on their way rendered anew. */
export const useSite = () => useContext(SiteContext);
