// The search fields. Knows no results: it sends an event, and other islands show the results.
import { useId, useState } from 'react';

export function Search({ places, guests: initial }) {
  const id = useId();
  const [place, setPlace] = useState('');
  const [guests, setGuests] = useState(initial);

  function search(event) {
    event.preventDefault();
    window.dispatchEvent(new CustomEvent('skerry:search', { detail: { place } }));
    document.getElementById('homes').scrollIntoView({ behavior: 'smooth' });
  }

  return (
    <form className="search" onSubmit={search}>
      <div className="field">
        <label htmlFor={`${id}where`}>Where</label>
        <select id={`${id}where`} value={place} onChange={(event) => setPlace(event.target.value)}>
          <option value="">Anywhere by the sea</option>
          {places.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </div>
      <div className="field" role="group" aria-labelledby={`${id}who`}>
        <span id={`${id}who`}>Who</span>
        <div className="stepper">
          <button type="button" aria-label="One guest fewer" disabled={guests === 1} onClick={() => setGuests(guests - 1)}>−</button>
          <output>{guests === 1 ? '1 guest' : `${guests} guests`}</output>
          <button type="button" aria-label="One guest more" disabled={guests === 8} onClick={() => setGuests(guests + 1)}>+</button>
        </div>
      </div>
      <button className="primary">Search</button>
    </form>
  );
}
