// The page of one stay: the data that is there at once, and parts that take longer and arrive one by one.
import { Suspense, memo } from 'react';
import { Boundary } from './boundary.jsx';
import { Calendar } from './calendar.jsx';
import { Rating } from './card.jsx';
import { useSite } from './context.js';
import { Carried, useAnswer } from './data.jsx';
import { Title } from './document.jsx';
import { euros, plural } from './format.js';
import { Gallery } from './gallery.jsx';
import { Icon } from './icons.jsx';
import { AMENITIES, SETTINGS } from './names.js';
import { Reviews } from './reviews.jsx';
import { calendarPath, reviewsPath } from './route.js';
import { Missing, PartBroken, Unreachable } from './trouble.jsx';

export function Stay({ route }) {
  const { base } = useSite();
  const answer = useAnswer(route.needs);
  const here = `${base}/${route.id}`;
  return (
    <>
      {answer.ok ? <Described stay={answer.value} route={route} here={here} /> : answer.status === 404 ? <Missing /> : <Unreachable path={route.needs} here={here} />}
      <Carried path={route.needs} answer={answer} />
    </>
  );
}

function Described({ stay, route, here }) {
  const { base } = useSite();
  return (
    <main id="main" className="stay wide">
      <Title>{`${stay.name}, ${stay.town}`}</Title>
      <meta name="description" content={stay.summary} />
      <nav className="crumbs" aria-label="Where you are">
        <a href={`${base}/`}>All stays</a>
        <a href={`${base}/?q=${encodeURIComponent(stay.country.toLowerCase())}`}>{stay.country}</a>
        <a href={`${base}/?q=${encodeURIComponent(stay.town.toLowerCase())}`}>{stay.town}</a>
      </nav>
      <h1 tabIndex={-1}>{stay.name}</h1>
      <p className="lead">
        <Rating stay={stay} />
        {stay.favourite && <span className="favourite">Guest favourite</span>}
        <span>
          {stay.town}, {stay.region}, {SETTINGS[stay.setting]}
        </span>
      </p>
      <Gallery stay={stay} photo={route.photo} here={here} />
      <div className="columns">
        <div>
          <About stay={stay} />
          <Later id={route.id} here={here} />
        </div>
        <Price stay={stay} nights={route.nights} here={here} />
      </div>
    </main>
  );
}

/**
 * Does not change while the rest of the page changes. Otherwise React would discard the parts that are still coming from the
 * server and fetch them in the browser.
 */
const Later = memo(function Later({ id, here }) {
  return (
    <>
      <Part id="when" what="The calendar" title="When it is free" waiting={<Months />}>
        <Calendar path={calendarPath(id)} here={here} />
      </Part>
      <Part id="reviews" what="The reviews" title="What guests say" waiting={<Lines />}>
        <Reviews path={reviewsPath(id)} here={here} />
      </Part>
    </>
  );
});

/** A section that may come later, or fail, without the rest. */
function Part({ id, what, title, waiting, children }) {
  return (
    <Suspense
      fallback={
        <section className="waiting" id={id}>
          <h2>{title}</h2>
          <p className="unseen">Loading</p>
          {waiting}
        </section>
      }
    >
      <Boundary
        instead={
          <section>
            <h2>{title}</h2>
            <PartBroken what={what} />
          </section>
        }
      >
        <section className="late" id={id}>
          <h2>{title}</h2>
          {children}
        </section>
      </Boundary>
    </Suspense>
  );
}

function About({ stay }) {
  return (
    <>
      <section className="about">
        <h2>
          {plural(stay.guests, 'guest')}, {plural(stay.bedrooms, 'bedroom')}, {plural(stay.beds, 'bed')}, {plural(stay.baths, 'bath')}
        </h2>
        <p className="summary">{stay.summary}</p>
        {stay.about.map((line) => (
          <p key={line}>{line}</p>
        ))}
        <p className="host">
          <span className="initial" aria-hidden="true">
            {stay.host.name[0]}
          </span>
          <span>
            <b>{stay.host.name} has the key.</b> Host since {stay.host.since}, answers {stay.host.answers}.
          </span>
        </p>
      </section>
      <section>
        <h2>What is there</h2>
        <ul className="amenities">
          {stay.amenities.map((name) => (
            <li key={name}>
              <Icon name={name} />
              {AMENITIES[name]}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function Price({ stay, nights, here }) {
  const { go } = useSite();
  const onInput = (event) => go(`${here}?nights=${event.target.value}`, { replace: true });
  return (
    <aside className="price-box" aria-label="Price">
      <p className="nightly">
        <b>{euros(stay.nightly)}</b> a night
      </p>
      <form action={here} onInput={onInput} onSubmit={(event) => event.preventDefault()}>
        <label>
          <span>Nights</span>
          <select name="nights" defaultValue={nights}>
            {[1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 28].map((count) => (
              <option key={count} value={count}>
                {plural(count, 'night')}
              </option>
            ))}
          </select>
        </label>
        <noscript>
          <button type="submit">Count</button>
        </noscript>
      </form>
      <dl>
        <dt>
          {euros(stay.nightly)} × {plural(nights, 'night')}
        </dt>
        <dd>{euros(stay.nightly * nights)}</dd>
        <dt>Cleaning, once</dt>
        <dd>{euros(stay.cleaning)}</dd>
        <dt className="sum">In all</dt>
        <dd className="sum">{euros(stay.nightly * nights + stay.cleaning)}</dd>
      </dl>
      <a className="button" href="#when">
        See when it is free
      </a>
      <p className="quiet">An example: nothing is booked or charged.</p>
    </aside>
  );
}

function Lines() {
  return (
    <div className="bones" aria-hidden="true">
      {['short', 'long', 'long', 'middle', 'long', 'middle'].map((length, index) => (
        <span key={index} className={length} />
      ))}
    </div>
  );
}

function Months() {
  return (
    <div className="bones months" aria-hidden="true">
      <span />
      <span />
      <span />
    </div>
  );
}
