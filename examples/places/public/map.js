// Draws the dots and the marks among them, and handles fingers and the wheel. Knows coordinates and codes, no services.
import { wirePointers } from './pointers.js';
import { project } from './projection.js';
import { View } from './view.js';

const CLOSE = 60; // the zoom for a town, compared with the whole country
const REACH = 14; // pixels around a finger in which a dot can be chosen

export class DotMap {
  #canvas;
  #context;
  #dots = { codes: [], xs: [], ys: [] };
  #lit = [];
  #marks = { near: [] };
  #colours;
  #due = false;

  constructor(canvas, { chosen }) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
    this.view = new View(() => this.draw());
    new ResizeObserver(() => this.#resize()).observe(canvas);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', () => this.#recolour());
    this.#recolour();
    wirePointers(canvas, this.view, (point) => {
      const code = this.#dotAt(point);
      if (code) chosen(code);
    });
  }

  /** `codes`, `lats` and `lngs` are differences between neighbours. Coordinates are in 1/10000 of a degree. */
  load({ codes, lats, lngs }) {
    const count = codes.length;
    const dots = { codes: new Array(count), xs: new Float64Array(count), ys: new Float64Array(count) };
    for (let i = 0, code = 0, lat = 0, lng = 0; i < count; i += 1) {
      code += codes[i];
      lat += lats[i];
      lng += lngs[i];
      dots.codes[i] = String(code).padStart(5, '0');
      [dots.xs[i], dots.ys[i]] = project(lat / 1e4, lng / 1e4);
    }
    this.#dots = dots;
    this.draw();
  }

  /** Highlights the codes with this beginning, and returns their number. */
  light(prefix) {
    this.#lit = this.#dots.codes.map((code) => prefix !== '' && code.startsWith(prefix));
    this.draw();
    return this.#lit.filter(Boolean).length;
  }

  /** { you, place, preview, near }: points { lat, lng, label }; `near` is a list of them. Missing ones stay as they are. */
  mark(marks) {
    this.#marks = { ...this.#marks, ...marks };
    this.draw();
  }

  /** Zooms so that all of these points are visible. */
  flyTo({ lat, lng }, around = []) {
    const [x, y] = project(lat, lng);
    const { width, height } = this.view.size;
    const reach = Math.max(0, ...around.map((one) => Math.hypot(...minus(project(one.lat, one.lng), [x, y]))));
    const closest = this.view.scale / this.view.zoom;
    this.view.flyTo({ x, y, scale: reach > 0 ? Math.min((0.3 * Math.min(width, height)) / reach, closest * 300) : closest * CLOSE });
  }

  draw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#paint();
    });
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#canvas.width = width * devicePixelRatio;
    this.#canvas.height = height * devicePixelRatio;
    this.view.resize(width, height);
  }

  #recolour() {
    const style = getComputedStyle(this.#canvas);
    const names = ['dot', 'lit', 'near', 'you', 'place', 'paper'];
    this.#colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.draw();
  }

  #dotAt([px, py]) {
    const { codes, xs, ys } = this.#dots;
    let best = REACH ** 2;
    let found;
    for (let i = 0; i < codes.length; i += 1) {
      const [x, y] = this.view.toScreen([xs[i], ys[i]]);
      const far = (x - px) ** 2 + (y - py) ** 2;
      if (far < best) [best, found] = [far, codes[i]];
    }
    return found;
  }

  #paint() {
    const { width, height } = this.view.size;
    const context = this.#context;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.#paintDots(false, this.#colours.dot, 1);
    this.#paintDots(true, this.#colours.lit, 1.5);
    this.#paintMarks();
  }

  #paintDots(lit, colour, factor) {
    const { codes, xs, ys } = this.#dots;
    const { width, height } = this.view.size;
    const [left, top] = this.view.toScreen([0, 0]);
    const { scale } = this.view;
    const size = factor * Math.min(7, Math.max(0.75, 1.25 * (width / 1000) ** 0.5 * this.view.zoom ** 0.42));
    const context = this.#context;
    context.fillStyle = colour;
    context.beginPath();
    for (let i = 0; i < codes.length; i += 1) {
      const x = left + xs[i] * scale;
      const y = top + ys[i] * scale;
      if (x < -size || y < -size || x > width + size || y > height + size || Boolean(this.#lit[i]) !== lit) continue;
      if (size < 3) context.rect(x - size / 2, y - size / 2, size, size);
      else round(context, x, y, size / 2);
    }
    context.fill();
  }

  #paintMarks() {
    const { you, place, preview, near } = this.#marks;
    const context = this.#context;
    const screen = ({ lat, lng }) => this.view.toScreen(project(lat, lng));
    if (place) {
      context.strokeStyle = this.#colours.near;
      context.globalAlpha = 0.35;
      context.lineWidth = 1.25;
      context.beginPath();
      for (const one of near) {
        context.moveTo(...screen(place));
        context.lineTo(...screen(one));
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    for (const one of near) this.#disc(screen(one), 4, this.#colours.near);
    if (you) this.#ring(screen(you), this.#colours.you);
    if (place) this.#disc(screen(place), 6.5, this.#colours.place);
    if (preview) this.#disc(screen(preview), 6.5, this.#colours.lit);
    this.#paintLabels([preview, place, you, ...(this.view.zoom > 12 ? near : [])].filter(Boolean).map((one) => ({ label: one.label, at: screen(one) })));
  }

  /** The first labels have priority. A label that would overlap another is left out. */
  #paintLabels(labels) {
    const context = this.#context;
    context.font = '600 13px system-ui, sans-serif';
    context.textAlign = 'left';
    context.lineJoin = 'round';
    context.lineWidth = 4;
    context.strokeStyle = this.#colours.paper;
    const taken = [];
    for (const { label, at: [x, y] } of labels) {
      const wide = context.measureText(label).width;
      const left = x + 11 + wide > this.view.size.width ? x - 11 - wide : x + 11;
      const box = { left: left - 3, right: left + wide + 3, top: y - 10, bottom: y + 10 };
      if (taken.some((one) => one.left < box.right && box.left < one.right && one.top < box.bottom && box.top < one.bottom)) continue;
      taken.push(box);
      context.strokeText(label, left, y);
      context.fillStyle = this.#colours.place;
      context.fillText(label, left, y);
    }
  }

  #disc([x, y], radius, colour) {
    const context = this.#context;
    context.beginPath();
    round(context, x, y, radius);
    context.fillStyle = colour;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = this.#colours.paper;
    context.stroke();
  }

  #ring([x, y], colour) {
    const context = this.#context;
    context.strokeStyle = colour;
    for (const [radius, width, alpha] of [[11, 2.5, 1], [18, 1.5, 0.4]]) {
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.beginPath();
      round(context, x, y, radius);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

function round(context, x, y, radius) {
  context.moveTo(x + radius, y);
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

const minus = ([ax, ay], [bx, by]) => [ax - bx, ay - by];
