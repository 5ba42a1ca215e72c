// The page for an address, and moving to the next page without a reload. Knows the pages, not their design.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useTransition } from 'react';
import { Boundary } from './boundary.jsx';
import { SiteContext } from './context.js';
import { DataContext } from './data.jsx';
import { Document } from './document.jsx';
import { List } from './list.jsx';
import { routeOf } from './route.js';
import { Stay } from './stay.jsx';
import { Broken, Missing } from './trouble.jsx';

/** `at`: the path and query, as text. */
export function Site({ at, base, data, from, files }) {
  const { place, wanted, go, reload, moving } = usePlace(at, base, data);
  const route = useMemo(() => routeOf(place.at, base), [place.at, base]);
  const next = useMemo(() => routeOf(wanted, base), [wanted, base]);
  const site = useMemo(() => ({ base, go, reload }), [base, go, reload]);
  return (
    <DataContext value={data}>
      <SiteContext value={site}>
        <Document base={base} from={from} files={files}>
          <div className={moving ? 'moving on' : 'moving'} role="presentation" />
          <Boundary key={place.visit} instead={<Broken />}>
            <Page route={route} next={next} />
          </Boundary>
        </Document>
      </SiteContext>
    </DataContext>
  );
}

function Page({ route, next }) {
  if (route.name === 'list') return <List search={route.search} next={next.search ?? route.search} path={route.needs} />;
  if (route.name === 'stay') return <Stay key={route.id} route={route} />;
  return <Missing />;
}

/** The current address: the one requested last, once its page can be shown. Until then it is `wanted`. */
function usePlace(at, base, data) {
  const [place, setPlace] = useState({ at, visit: 0, onArrival: undefined });
  const [wanted, setWanted] = useState(at);
  const [moving, startTransition] = useTransition();
  const last = useRef(at);

  const move = useCallback(
    (to, onArrival) => {
      const [before, after] = [last.current, to].map((each) => routeOf(each, base));
      const same = before.name === after.name && before.id === after.id;
      last.current = to;
      setWanted(to);
      startTransition(() => setPlace((now) => ({ at: to, visit: same ? now.visit : now.visit + 1, onArrival: onArrival ?? arrival(same, before, after) })));
    },
    [base],
  );
  const go = useCallback(
    (href, { replace = false } = {}) => {
      history.replaceState({ y: window.scrollY }, '');
      history[replace ? 'replaceState' : 'pushState']({ y: window.scrollY }, '', href);
      move(location.pathname + location.search);
    },
    [move],
  );
  const reload = useCallback(
    (path) => {
      data.drop(path);
      startTransition(() => setPlace((now) => ({ ...now, onArrival: undefined })));
    },
    [data],
  );
  useMovement(base, go, move);
  useLayoutEffect(() => {
    place.onArrival?.();
  }, [place]);
  return { place, wanted, go, reload, moving };
}

/** After a move, another page begins at its top, also for screen readers. The same page keeps its position. */
function arrival(same, before, after) {
  if (same && before.search?.page === after.search?.page) return undefined;
  return () => {
    window.scrollTo(0, same ? (document.getElementById('results')?.offsetTop ?? 0) - 90 : 0);
    document.querySelector(same ? '#results h2' : 'h1')?.focus({ preventScroll: true });
  };
}

/** To where the page was left. A link to a part of the page, such as #when, is told by `popstate` too, and has no state. */
function scrollBack(state) {
  const part = state === null && document.getElementById(location.hash.slice(1));
  if (part) part.scrollIntoView();
  else window.scrollTo(0, state?.y ?? 0);
}

/** Handles links and the browser's own buttons. */
function useMovement(base, go, move) {
  useEffect(() => {
    const onClick = (event) => {
      const link = event.target.closest('a[href]');
      if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const url = new URL(link.href);
      if (url.origin !== location.origin || link.target || url.hash || routeOf(url.pathname + url.search, base).name === 'missing') return;
      event.preventDefault();
      go(url.href, { replace: link.dataset.replace !== undefined });
    };
    const onPop = ({ state }) => move(location.pathname + location.search, () => scrollBack(state));
    const onLeave = () => history.replaceState({ y: window.scrollY }, '');
    history.scrollRestoration = 'manual';
    if (history.state?.y) window.scrollTo(0, history.state.y);
    document.addEventListener('click', onClick);
    window.addEventListener('popstate', onPop);
    window.addEventListener('pagehide', onLeave);
    return () => {
      document.removeEventListener('click', onClick);
      window.removeEventListener('popstate', onPop);
      window.removeEventListener('pagehide', onLeave);
    };
  }, [base, go, move]);
}
