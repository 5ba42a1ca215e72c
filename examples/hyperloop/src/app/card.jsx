// One stay in the list of results.
import { useSite } from './context.js';
import { euros, plural, stars } from './format.js';
import { Icon } from './icons.jsx';
import { Picture } from './picture.jsx';

export function Card({ stay }) {
  const { base } = useSite();
  return (
    <li className="card">
      <article>
        <div className="card-picture">
          <Picture stay={stay} />
          {stay.favourite && <span className="tag">Guest favourite</span>}
        </div>
        <div className="card-head">
          <h3>
            <a href={`${base}/${stay.id}`}>{stay.name}</a>
          </h3>
          <Rating stay={stay} />
        </div>
        <p className="quiet">
          {stay.town}, {stay.country}
        </p>
        <p className="quiet">
          {plural(stay.guests, 'guest')} · {plural(stay.bedrooms, 'bedroom')}
        </p>
        <p className="card-price">
          <b>{euros(stay.nightly)}</b> a night
        </p>
      </article>
    </li>
  );
}

export function Rating({ stay }) {
  if (stay.rating === null) return <span className="rating new">New</span>;
  return (
    <span className="rating">
      <Icon name="star" filled />
      <span aria-hidden="true">{stars(stay.rating)}</span>
      <span className="unseen">{`${stars(stay.rating)} of 5, ${plural(stay.reviews, 'review')}`}</span>
    </span>
  );
}
