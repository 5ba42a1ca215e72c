// Line icons on a 24 by 24 grid, one path each.

const PATHS = {
  wifi: 'M4 10a12 12 0 0 1 16 0M7 13.5a7.5 7.5 0 0 1 10 0M10 17a3 3 0 0 1 4 0M12 20h.01',
  kitchen: 'M7 3v7a2.5 2.5 0 0 0 5 0V3M9.5 3v18M17 3c-2 2-2.5 5-2.5 9H17zM17 12v9',
  sauna: 'M5 20h14M7 16h10M9 4c-2 2 2 3 0 6M15 4c-2 2 2 3 0 6',
  fireplace: 'M12 3c1 4 5 5 5 10a5 5 0 0 1-10 0c0-2 1-3 2-4 0 2 1 3 2 3 1-3-1-5 1-9zM5 21h14',
  parking: 'M6 3h12v18H6zM10 17V7h3a3 3 0 0 1 0 6h-3',
  pets: 'M8 13c1-2 7-2 8 0s2 6-1 6c-1 0-2-1-3-1s-2 1-3 1c-3 0-2-4-1-6zM5 10h.01M9 6h.01M15 6h.01M19 10h.01',
  washer: 'M5 3h14v18H5zM12 17a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM8 6h2',
  jetty: 'M3 10h18M6 10v7M12 10v7M18 10v7M3 20c2-2 4-2 6 0s4 2 6 0 4-2 6 0',
  desk: 'M3 9h18M5 9v11M19 9v11M12 9v5h7',
  cot: 'M4 5v15M20 9v11M4 9h16M4 17h16M8 9v8M12 9v8M16 9v8',
  star: 'M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.7-5 2.7 1.1-5.5L4 9.7 9.6 9z',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4',
  pin: 'M12 21c-4-5-6-8-6-11a6 6 0 0 1 12 0c0 3-2 6-6 11zM12 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  calendar: 'M4 6h16v14H4zM4 10h16M8 3v4M16 3v4',
  people: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c0-4 3-6 6.5-6s6.5 2 6.5 6M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5c2.3.6 3.5 2.5 3.5 5.5',
};

/** Every drawing once per page. `Icon` only refers to it. */
export function IconSymbols() {
  return Object.entries(PATHS).map(([name, path]) => (
    <symbol key={name} id={`i-${name}`} viewBox="0 0 24 24">
      <path d={path} />
    </symbol>
  ));
}

export function Icon({ name }) {
  return (
    <svg className={`icon icon-${name}`} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}
