// A drawn picture of a stay. The drawing is a text that React does not parse, neither on the server nor in the browser.
import { memo } from 'react';
import { hero } from '../art/hero.js';
import { map } from '../art/map.js';
import { room } from '../art/room.js';
import { lightOf, scene } from '../art/scene.js';
import { KIND_NAMES, SETTINGS } from './names.js';

const SIZES = { card: [320, 400], first: [520, 480], tile: [480, 360], wide: [640, 480] };
const KEPT = 600;
const drawn = new Map();

export const PHOTOS = [
  { draw: scene, light: (id) => lightOf(id), label: (stay) => `${KIND_NAMES[stay.kind]} in ${stay.town}, ${SETTINGS[stay.setting]}` },
  { draw: room, part: 'sitting', light: (id) => lightOf(id), label: () => 'The sitting room, with the view' },
  { draw: room, part: 'sleeping', light: (id) => lightOf(id + 2), label: () => 'A bedroom' },
  { draw: scene, light: () => 'night', label: () => 'The house at night' },
  { draw: map, light: () => 'day', label: (stay) => `A map of ${stay.town} and around` },
];

export const Picture = memo(function Picture({ stay, photo = 0, size = 'card', hidden = false }) {
  const [w, h] = SIZES[size];
  const { draw, part, light, label } = PHOTOS[photo];
  const key = `${size}${stay.id}-${photo}`;
  if (!drawn.has(key)) {
    if (drawn.size >= KEPT) drawn.clear();
    drawn.set(key, draw({ key, id: stay.id, setting: stay.setting, kind: stay.kind, part, light: light(stay.id), w, h }));
  }
  const named = hidden ? { 'aria-hidden': true } : { role: 'img', 'aria-label': label(stay) };
  return <svg className="picture" viewBox={`0 0 ${w} ${h}`} preserveAspectRatio="xMidYMid slice" {...named} dangerouslySetInnerHTML={{ __html: drawn.get(key) }} />;
});

const VIEW = hero({ key: 'hero', w: 1600, h: 640 });

export function View() {
  return <svg className="picture" viewBox="0 0 1600 640" preserveAspectRatio="xMaxYMax slice" aria-hidden="true" dangerouslySetInnerHTML={{ __html: VIEW }} />;
}

const NIGHT = scene({ key: 'night', id: 4, setting: 'island', kind: 'cabin', light: 'night', w: 480, h: 300 });

/** The picture for pages without a stay. */
export function Night() {
  return <svg className="picture" viewBox="0 0 480 300" preserveAspectRatio="xMidYMid slice" aria-hidden="true" dangerouslySetInnerHTML={{ __html: NIGHT }} />;
}
