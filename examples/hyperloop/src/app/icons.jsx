// The icons, and the mark of the site: strokes on a grid of 24.

const PATHS = {
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16.2 16.2 21 21',
  guests: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c.6-3.8 3.2-6 6.5-6s5.9 2.2 6.5 6M16 4.4a3.5 3.5 0 0 1 0 6.2M17.6 14.4c2.2.9 3.5 2.8 3.9 5.6',
  price: 'M12 3v18M16.5 7.2C15.6 5.9 14 5.2 12 5.2c-2.6 0-4.4 1.3-4.4 3.3 0 4.7 9.2 2.3 9.2 7 0 2-2 3.3-4.7 3.3-2.3 0-4.1-.9-5-2.4',
  star: 'M12 3.6l2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9L3.5 9.8l5.9-.8z',
  left: 'M15 5l-7 7 7 7',
  right: 'M9 5l7 7-7 7',
  close: 'M6 6l12 12M18 6 6 18',
  cabin: 'M3 20V12l9-7 9 7v8zM9.5 20v-6h5v6',
  cottage: 'M4 20v-8h16v8zM2.5 12.5 7 5h10l4.5 7.5M8 20v-4h3v4M14 15.5h3',
  loft: 'M6 21V8l6-4.5L18 8v13zM9.5 11h1.5M13 11h1.5M9.5 15h1.5M13 15h1.5M10.5 21v-3h3v3',
  boathouse: 'M4 15V9.5l8-6 8 6V15M9 15v-4h6v4M2.5 18.5c1.6 0 1.6 1.2 3.2 1.2s1.6-1.2 3.2-1.2 1.6 1.2 3.2 1.2 1.6-1.2 3.2-1.2 1.6 1.2 3.2 1.2 1.6-1.2 3.2-1.2',
  farmhouse: 'M2.5 20v-8l6-5.5 6 5.5v8zM14.5 11H19l2.5 3v6h-7M7 20v-4.5h3V20',
  all: 'M4 4h6.5v6.5H4zM13.5 4H20v6.5h-6.5zM4 13.5h6.5V20H4zM13.5 13.5H20V20h-6.5z',
  stove: 'M6 4h12v14H6zM9 8h6v5H9zM8 18v3M16 18v3M12 4V1.5',
  kitchen: 'M7 3v7a2.5 2.5 0 0 0 2.5 2.5V21M4.5 3v7A2.5 2.5 0 0 0 7 12.5M17 3c-2 1.5-3 4-3 7.5h3V21',
  parking: 'M5 3h14v18H5zM9.5 17V7.5h3.3a3 3 0 0 1 0 6H9.5',
  sauna: 'M4 20h16M5 16h14M8 12c-1.5-2 1.5-3 0-5.5M12 12c-1.5-2 1.5-3 0-5.5M16 12c-1.5-2 1.5-3 0-5.5',
  wood: 'M7.5 18.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM16.5 18.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM12 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7z',
  trail: 'M3 20c4 0 3-5 7-5s3 2 6 1 2.5-4 5-5M6 9l3-5 3 5z',
  pets: 'M8 9.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM16 9.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 12c-3 0-5.5 2.5-5.5 5 0 1.7 1.3 2.5 2.7 2.5 1 0 1.8-.5 2.8-.5s1.8.5 2.8.5c1.4 0 2.7-.8 2.7-2.5 0-2.5-2.5-5-5.5-5z',
  garden: 'M12 21v-9M12 12c0-4 2.5-6.5 7-7 0 4.5-2.5 7-7 7zM12 15c0-3-2-5-6-5.5 0 3.5 2 5.5 6 5.5z',
  wifi: 'M2.5 9c5.5-5 13.5-5 19 0M5.8 12.6c3.6-3.3 8.8-3.3 12.4 0M9 16c1.8-1.6 4.2-1.6 6 0M12 19.5v.1',
  washer: 'M5 3h14v18H5zM12 17.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM8 6h2',
  cot: 'M4 5v15M20 5v15M4 10h16M4 17h16M8 10v7M12 10v7M16 10v7',
  desk: 'M3 9h18M5 9v11M19 9v11M13 9v6h6M8 9V4h6v5',
  view: 'M3 5h18v14H3zM3 16l5.5-6 4 4.5 3-3L21 17',
  records: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z',
  train: 'M7 3h10v13H7zM7 10h10M9.5 13h.1M14.5 13h.1M9 16l-2.5 5M15 16l2.5 5',
  jetty: 'M3 10h18M6 10v10M12 10v10M18 10v10M3 6h10',
  boat: 'M4 15h16l-2.5 5h-11zM12 15V3l6.5 9H12',
};

export function Icon({ name, filled = false }) {
  return (
    <svg className={filled ? 'icon filled' : 'icon'} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 40 40" aria-hidden="true">
      <circle className="mark-sun" cx="24.5" cy="14" r="7.5" />
      <path className="mark-far" d="M3 33 15 13l9 15 3.5-5L37 33z" />
      <path className="mark-near" d="M3 33 13 25l7 5 8-5 9 8z" />
    </svg>
  );
}
