// The homes as cards, with filters and hearts. Listens to events of the search, but does not know that island.
import { useEffect, useState } from 'react';
import { Picture } from './Picture.jsx';

export function Stays({ stays }) {
  const [kind, setKind] = useState('');
  const [place, setPlace] = useState('');
  const [loved, setLoved] = useState([]);

  useEffect(() => {
    const hear = ({ detail }) => setPlace(detail.place);
    window.addEventListener('skerry:search', hear);
    return () => window.removeEventListener('skerry:search', hear);
  }, []);

  const kinds = [...new Set(stays.map((stay) => stay.kind))];
  const shown = stays.filter((stay) => (!kind || stay.kind === kind) && (!place || stay.place === place));
  const love = (id) => setLoved(loved.includes(id) ? loved.filter((each) => each !== id) : [...loved, id]);
  return (
    <>
      <div className="row">
        <h2>{place ? `Homes in ${place}` : 'Homes people come back to'}</h2>
        <div className="chips" role="group" aria-label="Kind of home">
          {['', ...kinds].map((each) => (
            <button key={each} type="button" aria-pressed={each === kind} onClick={() => setKind(each)}>{each ? `${each}s` : 'All'}</button>
          ))}
          {place && <button type="button" onClick={() => setPlace('')}>{place} ×</button>}
        </div>
      </div>
      {shown.length === 0 && <p className="none">None like that just now.</p>}
      <ul className="cards">
        {shown.map((stay) => (
          <Card key={stay.id} stay={stay} loved={loved.includes(stay.id)} onLove={() => love(stay.id)} />
        ))}
      </ul>
    </>
  );
}

function Card({ stay, loved, onLove }) {
  return (
    <li className="card">
      <Picture hue={stay.hue} sun={stay.sun} kind={stay.kind} />
      <button type="button" className="heart" aria-pressed={loved} aria-label={`Keep ${stay.name}`} onClick={onLove}>{loved ? '♥' : '♡'}</button>
      <div className="row">
        <h3>{stay.name}</h3>
        <span className="rating">★ {stay.rating.toFixed(2)}</span>
      </div>
      <p>{stay.kind} in {stay.place}</p>
      <p><b>€{stay.price}</b> a night</p>
    </li>
  );
}
