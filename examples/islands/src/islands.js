// The islands by name: render functions in the renderer, and hydration in a browser.
import { renderReact } from '@hostler/render/react';
import { PriceCalendar } from './PriceCalendar.jsx';
import { Reviews } from './Reviews.jsx';
import { Search } from './Search.jsx';
import { Stays } from './Stays.jsx';
import { Viewers } from './Viewers.jsx';

export const islands = {
  Search: renderReact('Search', Search),
  Viewers: renderReact('Viewers', Viewers),
  Stays: renderReact('Stays', Stays),
  'PriceCalendar.js': renderReact('PriceCalendar.js', PriceCalendar),
  Reviews: renderReact('Reviews', Reviews),
};
