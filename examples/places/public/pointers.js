// Fingers, mouse and wheel on the map. Knows the view that they move, not the drawing.

/** One finger moves the map, two fingers or the wheel zoom it. A short touch or a click chooses the point. */
export function wirePointers(canvas, view, clicked) {
  const fingers = new Map();
  let moved = 0;
  const at = (event) => [event.offsetX, event.offsetY];
  const apart = () => Math.hypot(...minus(...fingers.values()));
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (fingers.size === 0) moved = 0;
    fingers.set(event.pointerId, at(event));
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = fingers.get(event.pointerId);
    if (!before || fingers.size > 2) return;
    const spread = fingers.size === 2 && apart();
    fingers.set(event.pointerId, at(event));
    const [dx, dy] = minus(at(event), before);
    moved += Math.hypot(dx, dy);
    view.drag(dx / fingers.size, dy / fingers.size);
    if (spread) view.zoomAt(middle([...fingers.values()]), apart() / spread);
  });
  for (const name of ['pointerup', 'pointercancel']) {
    canvas.addEventListener(name, (event) => {
      if (fingers.delete(event.pointerId) && name === 'pointerup' && moved < 6) clicked(at(event));
    });
  }
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    view.zoomAt(at(event), 2 ** (-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.003)));
  }, { passive: false });
}

const middle = ([[ax, ay], [bx, by]]) => [(ax + bx) / 2, (ay + by) / 2];
const minus = ([ax, ay], [bx, by]) => [ax - bx, ay - by];
