// One home in the list of results.
import { under } from './base.js';
import { AMENITIES } from './catalogue.js';
import { days, euros, number } from './format.js';
import { Icon } from './icons.jsx';
import { Picture } from './picture.jsx';

const SHOWN_AMENITIES = 4;

export function Card({ home }) {
  const more = home.amenities.length - SHOWN_AMENITIES;
  return (
    <li className="card">
      <article>
        <div className="card-picture">
          <Picture home={home} />
          <Tags tags={home.tags} />
        </div>
        <div className="card-head">
          <h2>
            <a href={under(`/homes/${home.id}`)}>{home.name}</a>
          </h2>
          <Rating home={home} />
        </div>
        <p className="card-place">
          {home.place.town}, {home.place.region} <span className="dot">·</span> {home.distance} m to {home.place.near}
        </p>
        <Facts home={home} />
        <p className="free">
          Available <b>{days(home.free)}</b>
        </p>
        <ul className="amenities">
          {home.amenities.slice(0, SHOWN_AMENITIES).map((name) => (
            <li key={name}>
              <Icon name={name} />
              <span>{AMENITIES[name]}</span>
            </li>
          ))}
          {more > 0 && <li className="more">+{more}</li>}
        </ul>
        <Price home={home} />
      </article>
    </li>
  );
}

export function Rating({ home }) {
  if (home.rating === null) return <span className="rating new">No reviews yet</span>;
  return (
    <span className="rating" aria-label={`${home.rating} of 5, ${home.reviews} reviews`}>
      <Icon name="star" />
      <b>{number(home.rating)}</b>
      <span className="quiet">({home.reviews})</span>
    </span>
  );
}

export function Facts({ home }) {
  const facts = [plural(home.guests, 'guest'), plural(home.bedrooms, 'bedroom'), plural(home.beds, 'bed'), plural(home.baths, 'bath')];
  return (
    <ul className="facts">
      {facts.map((fact) => (
        <li key={fact}>{fact}</li>
      ))}
    </ul>
  );
}

export function Price({ home }) {
  return (
    <p className="price">
      {home.before && <s>{euros(home.before)}</s>}
      <b>{euros(home.nightly)}</b> <span>a night</span>
      <span className="quiet total">{euros(home.total)} in all</span>
    </p>
  );
}

function Tags({ tags }) {
  return (
    <ul className="tags">
      {tags.slice(0, 2).map((tag) => (
        <li key={tag} className={tag === 'Guest favourite' ? 'tag loved' : 'tag'}>
          {tag}
        </li>
      ))}
    </ul>
  );
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
