// The position of coordinates on a map of the United States: an equal-area projection, with Alaska and Hawaii below the
// rest. Knows no canvas.

const RADIANS = Math.PI / 180;

/** Albers' equal-area conic projection, exact along its two parallels. In radians of the globe, x to the east and y to the south. */
function albers({ parallels, centre: [centreLng, centreLat] }) {
  const [south, north] = parallels.map((lat) => Math.sin(lat * RADIANS));
  const n = (south + north) / 2;
  const c = 1 - south * south + 2 * n * south;
  const distance = (lat) => Math.sqrt(c - 2 * n * Math.sin(lat * RADIANS)) / n;
  const centre = distance(centreLat);
  return (lat, lng) => {
    const angle = n * (lng - centreLng) * RADIANS;
    const rho = distance(lat);
    return [rho * Math.sin(angle), rho * Math.cos(angle) - centre];
  };
}

const mainland = albers({ parallels: [29.5, 45.5], centre: [-96.6, 38.7] });
const alaska = inset(albers({ parallels: [55, 65], centre: [-154, 60] }), { scale: 0.35, at: [-0.307, 0.201] });
const hawaii = inset(albers({ parallels: [8, 18], centre: [-160, 19.9] }), { scale: 1, at: [-0.205, 0.212] });

function inset(projection, { scale, at: [atX, atY] }) {
  return (lat, lng) => {
    const [x, y] = projection(lat, lng);
    return [atX + x * scale, atY + y * scale];
  };
}

export function project(lat, lng) {
  if (lat > 50) return alaska(lat, lng);
  if (lat < 30 && lng < -150) return hawaii(lat, lng);
  return mainland(lat, lng);
}

/** Whether it is on the map, or nearly. */
export function isOnMap(lat, lng) {
  const within = ([south, north, west, east]) => lat > south && lat < north && lng > west && lng < east;
  return [[24, 50, -126, -66], [51, 72, -180, -129], [18, 23, -161, -154]].some(within);
}

/** The extent of the whole map around its middle. */
export const EXTENT = { left: -0.395, right: 0.395, top: -0.235, bottom: 0.255 };
