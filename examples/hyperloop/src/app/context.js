// What any part of a page may use of the site around it.
import { createContext, useContext } from 'react';

export const SiteContext = createContext();

/** `{ base, go(href, { replace }), reload(path), moving }` */
export const useSite = () => useContext(SiteContext);
