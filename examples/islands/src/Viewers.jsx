// The number of visitors, which grows while the page is open. Knows no server: the number is invented.
import { useEffect, useState } from 'react';

const KEEP = 24;

export function Viewers({ looking, past }) {
  const [counts, setCounts] = useState([...past, looking]);
  const [running, setRunning] = useState(true);

  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => {
      setCounts((before) => [...before, Math.max(3, before.at(-1) + Math.round(Math.random() * 4 - 2))].slice(-KEEP));
    }, 1500);
    return () => clearInterval(timer);
  }, [running]);

  const top = Math.max(...counts);
  const points = counts.map((count, index) => `${(index * 96) / (counts.length - 1)},${26 - (count / top) * 22}`).join(' ');
  return (
    <p className="viewers">
      <i className={running ? 'dot live' : 'dot'} />
      <span>
        <b>{counts.at(-1)}</b> people are looking at these homes
      </span>
      <svg viewBox="0 0 96 28" width="96" height="28" aria-hidden="true">
        <polyline points={points} fill="none" stroke="currentColor" strokeWidth="2" strokeLinejoin="round" strokeLinecap="round" />
      </svg>
      <button type="button" onClick={() => setRunning(!running)}>{running ? 'Pause' : 'Go on'}</button>
    </p>
  );
}
