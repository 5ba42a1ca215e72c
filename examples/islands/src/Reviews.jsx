// The reviews by guests, sorted by stars. It can fail on the server on purpose, to show that the rest of a page is not
// affected.
import { useState } from 'react';

const FIRST = 3;

export function Reviews({ reviews, broken }) {
  if (broken && typeof window === 'undefined') throw new Error('the reviews were told to break');
  const [stars, setStars] = useState(0);
  const [all, setAll] = useState(false);

  const average = reviews.reduce((sum, review) => sum + review.stars, 0) / reviews.length;
  const matching = reviews.filter((review) => !stars || review.stars === stars);
  const shown = all ? matching : matching.slice(0, FIRST);
  return (
    <>
      <div className="row">
        <h2>What guests say</h2>
        <span className="rating">★ {average.toFixed(1)} of 5</span>
      </div>
      <div className="bars">
        {[5, 4, 3].map((each) => {
          const count = reviews.filter((review) => review.stars === each).length;
          return (
            <button key={each} type="button" aria-pressed={stars === each} onClick={() => setStars(stars === each ? 0 : each)}>
              <span>{each} stars</span>
              <span className="bar"><i style={{ width: `${(count / reviews.length) * 100}%` }} /></span>
              <span>{count}</span>
            </button>
          );
        })}
      </div>
      <ul className="reviews">
        {shown.map((review) => (
          <li key={review.id}>
            <b>{review.who}</b> <span className="hint">{review.from} · {'★'.repeat(review.stars)}</span>
            <p>{review.text}</p>
          </li>
        ))}
      </ul>
      {matching.length > FIRST && <button type="button" className="more" onClick={() => setAll(!all)}>{all ? 'Show fewer' : `Show all ${matching.length}`}</button>}
    </>
  );
}
