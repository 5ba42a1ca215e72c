// The visible part of the map, and animated moves to another part. Knows neither canvas nor places.
import { EXTENT } from './projection.js';

const CLOSEST = 400; // times the whole country
const LONGEST = 1_600; // ms

/** `scale` is pixels per radian of the globe. `x` and `y` are the position of the middle. */
export class View {
  #width = 1;
  #height = 1;
  #flight;

  constructor(changed) {
    this.changed = changed;
    this.set(whole(this));
  }

  get size() {
    return { width: this.#width, height: this.#height };
  }

  /** The zoom, compared with the whole country. */
  get zoom() {
    return this.scale / whole(this).scale;
  }

  resize(width, height) {
    const zoom = this.zoom;
    const wasWhole = zoom < 1.01;
    this.#width = width;
    this.#height = height;
    const all = whole(this);
    this.set(wasWhole && !this.#flight ? all : { x: this.x, y: this.y, scale: all.scale * zoom });
  }

  set({ x, y, scale }) {
    const { scale: least } = whole(this);
    this.scale = Math.min(Math.max(scale, least * 0.9), least * CLOSEST);
    this.x = Math.min(Math.max(x, EXTENT.left), EXTENT.right);
    this.y = Math.min(Math.max(y, EXTENT.top), EXTENT.bottom);
    this.changed();
  }

  toScreen([x, y]) {
    return [(x - this.x) * this.scale + this.#width / 2, (y - this.y) * this.scale + this.#height / 2];
  }

  drag(dx, dy) {
    this.stop();
    this.set({ x: this.x - dx / this.scale, y: this.y - dy / this.scale, scale: this.scale });
  }

  /** The position under this point of the screen stays there. */
  zoomAt([px, py], factor) {
    this.stop();
    const [dx, dy] = [px - this.#width / 2, py - this.#height / 2];
    const { scale: before, x, y } = this;
    const { scale: least } = whole(this);
    const scale = Math.min(Math.max(before * factor, least * 0.9), least * CLOSEST);
    this.set({ x: x + dx / before - dx / scale, y: y + dy / before - dy / scale, scale });
  }

  home() {
    return this.flyTo(whole(this));
  }

  /** Zooms out, moves and zooms in, as smoothly as possible (van Wijk and Nuij, "Smooth and efficient zooming and panning"). */
  flyTo({ x, y, scale = this.scale }) {
    this.stop();
    const to = { x, y, scale };
    const path = flight(this, to, Math.max(this.#width, this.#height));
    const duration = Math.min(LONGEST, 450 * path.length);
    if (duration < 20 || matchMedia('(prefers-reduced-motion: reduce)').matches) return this.set(to);
    const began = performance.now();
    const step = (now) => {
      const t = Math.min(1, Math.max(0, now - began) / duration);
      this.set(t === 1 ? to : path.at(easy(t)));
      this.#flight = t < 1 ? requestAnimationFrame(step) : undefined;
    };
    this.#flight = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.#flight);
    this.#flight = undefined;
  }
}

function whole({ size: { width, height } }) {
  const { left, right, top, bottom } = EXTENT;
  return { x: (left + right) / 2, y: (top + bottom) / 2, scale: Math.min(width / (right - left), height / (bottom - top)) };
}

const easy = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);

function flight(from, to, pixels) {
  const rho = 1.4;
  const [w0, w1] = [pixels / from.scale, pixels / to.scale];
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const way = Math.hypot(dx, dy);
  const between = (u, w) => ({ x: from.x + dx * u, y: from.y + dy * u, scale: pixels / w });
  if (way < 1e-9 * w0 || way === 0) {
    const length = Math.log(w1 / w0) / rho;
    return { length: Math.abs(length), at: (t) => between(t, w0 * Math.exp(rho * t * length)) };
  }
  const b = (w, sign) => (w1 ** 2 - w0 ** 2 + sign * rho ** 4 * way ** 2) / (2 * w * rho ** 2 * way);
  const r = (value) => Math.log(-value + Math.sqrt(value ** 2 + 1));
  const [r0, r1] = [r(b(w0, 1)), r(b(w1, -1))];
  const length = (r1 - r0) / rho;
  const at = (t) => {
    const s = t * length;
    const u = (w0 / (rho ** 2 * way)) * (Math.cosh(r0) * Math.tanh(rho * s + r0) - Math.sinh(r0));
    return between(u, (w0 * Math.cosh(r0)) / Math.cosh(rho * s + r0));
  };
  return { length, at };
}
