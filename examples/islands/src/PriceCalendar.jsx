// A month with a price for each night. The first click is the arrival, the second the departure. Uses no clock.
import { useState } from 'react';

const WEEK = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'];

export function PriceCalendar({ month, offset, days }) {
  const [from, setFrom] = useState(null);
  const [to, setTo] = useState(null);

  const nights = days.filter(({ day }) => from && to && day >= from && day < to);
  const cheapest = Math.min(...days.filter(({ free }) => free).map(({ price }) => price));

  function choose(day) {
    const blocked = days.some((each) => each.day >= from && each.day < day && !each.free);
    if (from && !to && day > from && !blocked) return setTo(day);
    setFrom(day);
    setTo(null);
  }

  return (
    <>
      <div className="row">
        <h2>{month}</h2>
        <span className="hint">from €{cheapest} a night</span>
      </div>
      <div className="month">
        {WEEK.map((name) => (
          <span key={name}>{name}</span>
        ))}
        {days.map(({ day, price, free }) => (
          <button
            key={day}
            type="button"
            disabled={!free}
            style={day === 1 ? { gridColumnStart: offset + 1 } : undefined}
            className={day === from || day === to ? 'end' : day > from && day < to ? 'between' : price === cheapest ? 'cheap' : undefined}
            onClick={() => choose(day)}
          >
            {day}
            <small>{free ? `€${price}` : '–'}</small>
          </button>
        ))}
      </div>
      <p className="total" aria-live="polite">
        {nights.length > 0
          ? `${nights.length === 1 ? '1 night' : `${nights.length} nights`}: €${nights.reduce((sum, { price }) => sum + price, 0)}`
          : from ? `Arrive on the ${from}. and leave on …` : 'Choose the day you arrive.'}
      </p>
    </>
  );
}
